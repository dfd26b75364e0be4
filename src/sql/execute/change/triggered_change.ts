/**
 * Makes the changes of a statement when its table has triggers. The statement always has a
 * transaction, which commits everything that the statement and its triggers change at once.
 *
 *     read all rows ─► BEFORE STATEMENT ─► each row: BEFORE ROW ─► checks ─► staged
 *                      ─► foreign keys followed ─► AFTER ROW ─► AFTER STATEMENT
 *
 * - All rows are read before the first trigger runs, so that the statement does not see the
 *   changes made by its triggers.
 * - Constraints, generated columns, policies and keys are checked on the rows returned by the
 *   BEFORE triggers.
 * - If a table has BEFORE ROW triggers, each row is staged before the triggers run for the next
 *   row.
 * - INSTEAD OF triggers of a view make the changes themselves, so that nothing is staged:
 *
 *     read all rows ─► BEFORE STATEMENT ─► each row: INSTEAD OF ─► AFTER STATEMENT
 */
import { assert } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { FIRST_SLICE_MS_MAX } from "../../../base/limits.ts";
import { awaited, settle, type WaitingSteps } from "../../../base/waiting_steps.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import type { Batch, Value } from "../../../types/mod.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { SLICE_OVER } from "../context/time_slice.ts";
import type { ChangeSource, DmlOutcome } from "./change_writer.ts";
import { type Conflict, TouchedKeys } from "./conflict.ts";
import { type EvaluationPlace, evaluated } from "./evaluation.ts";
import { type FiredTriggers, fireAll, type StatementEvent } from "./fired_triggers.ts";
import { followReferences } from "./followed_references.ts";
import { placeUploads } from "./placed_uploads.ts";
import { type Returning, returnedRows } from "./returning.ts";
import {
  completedChanges,
  holdChanges,
  type RowChange,
  releaseKeys,
  requireStageable,
  stageChanges,
} from "./row_changes.ts";
import type { RowGuard } from "./row_guard.ts";
import { requireCurrent } from "./stored_rows.ts";

/** The number of rows that are checked and staged in one step if no trigger may change them. */
const ROWS_PER_STEP = 256;

export interface TriggeredOptions extends EvaluationPlace {
  readonly triggers: FiredTriggers;
  /** The events that fire the statement's triggers, even if it changes no rows. */
  readonly events: readonly StatementEvent[];
  readonly returning: Returning | undefined;
  readonly guard: RowGuard | undefined;
  /** The ON CONFLICT clause of an INSERT. */
  readonly conflict?: Conflict | undefined;
}

/**
 * Reads the rows from a source, and makes the changes.
 * @throws SLICE_OVER
 */
export function writeTriggered(
  source: ChangeSource,
  change: TriggeredChange,
): DmlOutcome | Promise<DmlOutcome> {
  return settle(change.steps(source));
}

export class TriggeredChange {
  readonly #runtime: TableRuntime;
  readonly #options: TriggeredOptions;
  readonly #context: ExecutionContext;
  readonly #touched = new TouchedKeys();
  readonly #sliceEndMs: number;
  /** The changes of the statement, before any trigger has seen the rows. */
  #given: RowChange[] = [];

  constructor(runtime: TableRuntime, options: TriggeredOptions) {
    this.#runtime = runtime;
    this.#options = options;
    this.#context = options.context;
    this.#sliceEndMs = options.context.monotonicMs() + FIRST_SLICE_MS_MAX;
    requireStageable(runtime, options.context);
  }

  /**
   * Adds changes. The rows of the changes contain the table's defaults, but not the values of
   * generated columns.
   */
  add(changes: readonly RowChange[]): void {
    this.#context.effort.beginRows();
    for (const change of changes) this.#given.push(change);
  }

  *steps(source: ChangeSource): WaitingSteps<DmlOutcome> {
    const context = this.#context;
    try {
      while (yield* awaited(source.next())) {
        if (context.monotonicMs() < this.#sliceEndMs) continue;
        if (context.mayLeave) throw SLICE_OVER;
        yield context.pause();
      }
    } finally {
      source.close();
    }
    // The effects of a trigger cannot be undone on their own, so from now on the statement can no
    // longer be restarted elsewhere.
    context.stay();
    const { events, triggers } = this.#options;
    if (events.some(({ event }) => triggers.replaces(event))) return yield* this.#runInstead();
    context.requireUnaltered(this.#runtime.table);
    return yield* this.#run();
  }

  /** Calls the INSTEAD OF triggers of a view for each row. */
  *#runInstead(): WaitingSteps<DmlOutcome> {
    const context = this.#context;
    const { elsewhere, events, guard, returning, triggers } = this.#options;
    if (context.parts !== undefined) throw withinParts(this.#runtime.table);
    for (const event of events) yield* triggers.fireStatement("before", event, context);
    const changes: RowChange[] = [];
    for (const change of this.#given) {
      yield context.pause();
      const fired = { ...this.#eventOf(change), change };
      const made = yield* triggers.fireFor("instead of", fired, context);
      if (made === undefined) continue;
      yield* awaited(guard?.require([made], { context, elsewhere }));
      changes.push(made);
      if (returning !== undefined) context.checkResultRows(changes.length);
    }
    this.#given = [];
    const returned = returning && (yield* this.#returned(returning, changes, []));
    for (const event of events.toReversed()) {
      yield* triggers.fireStatement("after", event, context);
    }
    return { rowCount: changes.length, applied: { commit: undefined, seqs: [] }, returned };
  }

  *#run(): WaitingSteps<DmlOutcome> {
    const context = this.#context;
    const { events, returning, triggers } = this.#options;
    assert(
      context.transaction !== undefined,
      "trigger execution: change with triggers has no transaction",
    );
    for (const event of events) yield* triggers.fireStatement("before", event, context);
    // Queries in RETURNING read the state before the statement, so rows must not be staged one by
    // one.
    const stagesEach =
      this.#changesRows && context.parts === undefined && returning?.evaluation.holdsQuery !== true;
    const changes: RowChange[] = [];
    const seqs: Value[] = [];
    const size = this.#changesRows ? 1 : ROWS_PER_STEP;
    for (let from = 0; from < this.#given.length; from += size) {
      yield context.pause();
      const made = yield* this.#prepared(this.#given.slice(from, from + size));
      for (const change of made) changes.push(change);
      if (returning !== undefined) context.checkResultRows(changes.length);
      if (stagesEach) for (const seq of this.#staged(made)) seqs.push(seq);
    }
    this.#given = [];
    let returned = returning && (yield* this.#returned(returning, changes, []));
    if (context.uploads !== undefined) placeUploads(this.#runtime, changes, context);
    if (context.parts !== undefined) {
      const { seqs: held } = holdChanges(this.#runtime, changes, context, () =>
        this.#follow(changes),
      );
      return { rowCount: changes.length, applied: { commit: undefined, seqs: held }, returned };
    }
    if (!stagesEach) seqs.push(...(yield* this.#stagedInSteps(changes)));
    if (returning?.readsSystemColumns === true) {
      returned = yield* this.#returned(returning, changes, seqs);
    }
    yield* this.#follow(changes);
    return { rowCount: changes.length, applied: { commit: undefined, seqs }, returned };
  }

  get #changesRows(): boolean {
    const { events, triggers } = this.#options;
    return events.some(({ event }) => triggers.mayChangeRows(event));
  }

  /** Fires the BEFORE triggers for some rows, and checks the rows that the triggers return. */
  *#prepared(given: readonly RowChange[]): WaitingSteps<readonly RowChange[]> {
    const { conflict, elsewhere, guard } = this.#options;
    const context = this.#context;
    const place = { context, elsewhere };
    let changes = this.#checked(yield* this.#changed(given));
    if (conflict !== undefined) {
      const rows = changes.map(({ row }) => row);
      yield* awaited(guard?.requireProposed(rows, place));
      const met = yield* awaited(
        conflict.program(rows, this.#touched, { ...place, isUnchecked: true }),
      );
      changes = this.#checked(yield* this.#changed(met, "update"));
    }
    yield* awaited(guard?.require(changes, place));
    return changes;
  }

  /**
   * Returns the changes that remain to be made after the BEFORE triggers.
   * @param only The operation for which triggers fire; all operations if absent.
   */
  *#changed(
    given: readonly RowChange[],
    only?: RowChange["operation"],
  ): WaitingSteps<readonly RowChange[]> {
    const { triggers } = this.#options;
    if (!given.some(({ operation }) => triggers.mayChangeRows(operation))) return given;
    const left: RowChange[] = [];
    for (const change of given) {
      const event = this.#eventOf(change);
      if (event === undefined || event.event !== (only ?? event.event)) left.push(change);
      else {
        const fired = { ...event, change };
        const made = yield* triggers.fireFor("before", fired, this.#context);
        if (made !== undefined) left.push(made);
      }
    }
    return left;
  }

  /** Returns the statement event to which a changed row belongs; undefined for TRUNCATE. */
  #eventOf({ operation }: RowChange): StatementEvent | undefined {
    return this.#options.events.find(({ event }) => event === operation);
  }

  #checked(changes: readonly RowChange[]): readonly RowChange[] {
    return completedChanges(changes, this.#runtime, this.#context);
  }

  #staged(changes: readonly RowChange[]): readonly Value[] {
    this.#context.requireUnaltered(this.#runtime.table);
    this.#requireCurrent(changes);
    releaseKeys(this.#runtime, changes, this.#context);
    return stageChanges(this.#runtime, changes, this.#context);
  }

  *#stagedInSteps(changes: readonly RowChange[]): WaitingSteps<readonly Value[]> {
    const seqs: Value[] = [];
    const parts = [...partsOf(changes)];
    for (const part of parts) {
      yield this.#context.pause();
      this.#requireCurrent(part);
      releaseKeys(this.#runtime, part, this.#context);
    }
    for (const part of parts) {
      yield this.#context.pause();
      this.#context.requireUnaltered(this.#runtime.table);
      seqs.push(...stageChanges(this.#runtime, part, this.#context));
    }
    return seqs;
  }

  /** Requires that no BEFORE trigger has changed a row that the statement is about to change. */
  #requireCurrent(changes: readonly RowChange[]): void {
    const { events, triggers } = this.#options;
    const runs = (["row", "statement"] as const).some((level) =>
      events.some(({ event }) => triggers.has("before", level, event)),
    );
    if (!runs) return;
    for (const change of changes) requireCurrent(this.#runtime, change, this.#context);
  }

  *#returned(
    returning: Returning,
    changes: readonly RowChange[],
    seqs: readonly Value[],
  ): WaitingSteps<Batch[]> {
    const { context, elsewhere } = this.#options;
    const batches: Batch[] = [];
    let from = 0;
    for (const part of partsOf(changes)) {
      yield context.pause();
      const rows = returnedRows(returning, part, seqs.slice(from, from + part.length));
      batches.push(yield* awaited(evaluated(returning.evaluation, rows, { context, elsewhere })));
      from += part.length;
    }
    return batches;
  }

  /** Carries out foreign key actions, and fires the AFTER triggers. */
  *#follow(changes: readonly RowChange[]): WaitingSteps<void> {
    const { events, triggers } = this.#options;
    const context = this.#context;
    const later = yield* followReferences(this.#runtime, changes, context);
    yield* fireAll(triggers, { changes, events }, context);
    for (const each of later) yield* each;
  }
}

function withinParts({ name, namespace }: TableEntry): DatabaseError {
  return new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot write to view ${namespace}.${name} in a statement whose WITH changes rows: the view ` +
      "has INSTEAD OF triggers",
    { hint: "write to the view with a separate statement" },
  );
}

function* partsOf(changes: readonly RowChange[]): Iterable<readonly RowChange[]> {
  for (let from = 0; from < changes.length; from += ROWS_PER_STEP) {
    yield changes.slice(from, from + ROWS_PER_STEP);
  }
}
