/**
 * Runs a statement with changes in WITH: first its parts in order, and then all of their changes
 * together.
 *
 *     part ──rows of RETURNING──► part ──► … ──► query or change behind WITH
 *       └─────────── held changes ────────────────┴──► staged ──► foreign keys followed
 *
 * The statement always has a transaction, which commits all changes at once. All parts read their
 * rows in the same reader, which receives the rows returned by earlier parts.
 */
import { defined } from "../../../base/assert.ts";
import { BATCH_ROWS_MAX, FIRST_SLICE_MS_MAX } from "../../../base/limits.ts";
import { settle, type WaitingSteps } from "../../../base/waiting_steps.ts";
import type { Batch, DataType } from "../../../types/mod.ts";
import type { BoundRecursion } from "../../bind/bound.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { nextRows } from "../context/next_rows.ts";
import { made, type OperatorFactory } from "../context/operator.ts";
import type { StatementParts } from "../context/statement_parts.ts";
import { MaterialisedRows } from "../materialised/materialised_rows.ts";
import type { DmlOutcome, DmlProgram } from "./change_writer.ts";
import { type Elsewhere, whenThere } from "./evaluation.ts";

/** A compiled change in WITH. */
export interface PartProgram {
  /**
   * Identifies the rows that the change returns, so that later parts of the statement can read
   * them.
   */
  readonly recursion: BoundRecursion;
  /** The types of the columns that the change returns. */
  readonly types: readonly DataType[];
  readonly program: DmlProgram;
}

/**
 * Compiles a statement with changes in WITH.
 * @param main The main query or change, after the WITH clause.
 */
export function compileParts(parts: readonly PartProgram[], main: DmlProgram): DmlProgram {
  return (context, elsewhere) => {
    const state = defined(
      context.parts,
      "WITH execution: state of the data-modifying parts is missing",
    );
    type Outcome = DmlOutcome | Promise<DmlOutcome>;
    const runFrom = (index: number, before: Iterable<Batch>): Outcome => {
      const part = parts[index];
      const place = elsewhere?.part(index, before);
      if (part === undefined) {
        return whenThere(main(context, place), (outcome) => staged(outcome, state, context));
      }
      return whenThere(part.program(context, place), ({ returned = [] }) => {
        const rows = new MaterialisedRows(part.types, context.memory);
        for (const { columns, rowCount } of returned) rows.append(columns, rowCount);
        state.rows.set(part.recursion, rows);
        return runFrom(index + 1, batchesOf(rows));
      });
    };
    return runFrom(0, []);
  };
}

/** Stages the changes of all parts, in this tick if there are only a few. */
function staged(
  outcome: DmlOutcome,
  { held }: StatementParts,
  context: ExecutionContext,
): DmlOutcome | Promise<DmlOutcome> {
  // Nothing may interrupt the staging of changes, because the statement cannot be restarted
  // afterwards.
  context.stay();
  let rowCount = 0;
  for (const changes of held) rowCount += changes.rowCount;
  const steps = stagingOf(held);
  const paced = rowCount > BATCH_ROWS_MAX ? pacedSteps(steps, context) : steps;
  return whenThere(settle(paced), () => outcome);
}

function* stagingOf(held: StatementParts["held"]): WaitingSteps<void> {
  for (const { staging } of held) yield* staging;
  for (const changes of held) {
    yield* changes.follow();
    yield;
  }
}

/** Adds a pause after each step that does not itself wait, so that other work can run. */
function* pacedSteps(steps: WaitingSteps<void>, context: ExecutionContext): WaitingSteps<void> {
  for (const waited of steps) yield waited ?? context.pause();
}

/** Compiles a main query that only returns rows, and changes nothing, into a program. */
export function compileReading(build: OperatorFactory, types: readonly DataType[]): DmlProgram {
  return (context, elsewhere) => {
    const rows = new MaterialisedRows(types, context.memory);
    const take = (batch: Batch | undefined): boolean => {
      if (batch === undefined) return false;
      rows.append(batch.columns, batch.rowCount);
      context.checkResultRows(rows.rowCount);
      return true;
    };
    const outcome = (): DmlOutcome => ({
      rowCount: rows.rowCount,
      applied: { commit: undefined, seqs: [] },
      returned: batchesOf(rows),
    });
    if (elsewhere !== undefined) return takenFrom(elsewhere, take).then(outcome);
    const operator = made(build, context);
    const add = (): boolean => take(nextRows(operator, context));
    const sliceEndMs = context.monotonicMs() + FIRST_SLICE_MS_MAX;
    let isPaced = false;
    try {
      let more = true;
      while (more && context.monotonicMs() < sliceEndMs) more = add();
      if (!more) return outcome();
      isPaced = true;
    } finally {
      if (!isPaced) operator.close();
    }
    return inTicks(add, context)
      .finally(() => operator.close())
      .then(outcome);
  };
}

async function takenFrom(
  elsewhere: Elsewhere,
  take: (batch: Batch | undefined) => boolean,
): Promise<void> {
  while (take(await elsewhere.next()));
}

async function inTicks(step: () => boolean, context: ExecutionContext): Promise<void> {
  do await context.pause();
  while (step());
}

function* batchesOf(rows: MaterialisedRows): Generator<Batch> {
  for (let row = 0; row < rows.rowCount; row += BATCH_ROWS_MAX) yield rows.batchFrom(row);
}
