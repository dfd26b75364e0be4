/**
 * Runs programs within the evaluation of an expression, which cannot wait. Such a program reads at
 * the snapshot of its statement, changes nothing, and must end soon, because nothing else runs in
 * the meantime.
 */
import { DatabaseError } from "../../base/errors.ts";
import { PROGRAM_CALLS_MAX, PROGRAM_MS_MAX } from "../../base/limits.ts";
import { type Row, type Value, valueAt } from "../../types/mod.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { made } from "../execute/context/operator.ts";
import type { CalledProgram, ProgramCalls } from "../functions/base/function.ts";
import { isQueryNode, isSelectNode } from "../parse/ast/query_nodes.ts";
import { parseStatements } from "../parse/parser.ts";
import type { Ask, DriverAnswer, ProgramSteps, RowsAnswer } from "../procedural/asks.ts";
import { ProgramFrame } from "../procedural/frame.ts";
import { leaveFunction, runBody } from "../procedural/interpreter.ts";
import type { HoistedCall } from "./hoisted_calls.ts";
import { compiledProgram, placeOfProgram } from "./program_bodies.ts";
import {
  type BoundRowsPiece,
  boundPiece,
  boundText,
  onlyValue,
  type PiecePlace,
} from "./program_pieces.ts";
import { argumentSlots, resultOf } from "./program_results.ts";

/** The access that programs have to the statement that calls them. */
export interface ProgramHost {
  readonly place: PiecePlace;
  /** Creates the context for a statement of a program, which has these slots. */
  context(slots: readonly Value[], programs: ProgramCalls): ExecutionContext;
  readonly notice: (message: string) => void;
}

export class ProgramsInQuery implements ProgramCalls {
  readonly #host: ProgramHost;
  readonly #depth: number;

  constructor(host: ProgramHost, depth = 0) {
    this.#host = host;
    this.#depth = depth;
  }

  call(program: CalledProgram, args: readonly Value[]): Value {
    requireDepth(this.#depth, program);
    const place = placeOfProgram(program.entry, this.#host.place);
    const compiled = compiledProgram(program, place);
    const frame = new ProgramFrame(compiled, argumentSlots(program.entry, args));
    const inner = new ProgramsInQuery(this.#host, this.#depth + 1);
    const driver = new QueryDriver({ host: this.#host, inner, place });
    try {
      driver.run(runBody(frame));
    } catch (error) {
      leaveFunction(error);
      throw error;
    }
    return resultOf(frame);
  }
}

/** @throws {DatabaseError} LIMIT_EXCEEDED */
export function requireDepth(depth: number, { entry }: Pick<CalledProgram, "entry">): void {
  if (depth < PROGRAM_CALLS_MAX) return;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot call function ${entry.namespace}.${entry.name}: calls are nested deeper than ${PROGRAM_CALLS_MAX}`,
    { hint: "write a loop instead of the recursion", sqlstate: "54001" },
  );
}

interface DriverParts {
  readonly host: ProgramHost;
  readonly inner: ProgramCalls;
  readonly place: PiecePlace;
}

/** Answers what one program asks, at once. */
class QueryDriver {
  readonly #parts: DriverParts;
  #endMs = Number.POSITIVE_INFINITY;

  constructor(parts: DriverParts) {
    this.#parts = parts;
  }

  run(asking: ProgramSteps<void>): void {
    let step = asking.next({ kind: "done" });
    while (step.done !== true) {
      let answer: DriverAnswer;
      try {
        answer = this.#answer(step.value);
      } catch (error) {
        step = asking.throw(error);
        continue;
      }
      step = asking.next(answer);
    }
  }

  #answer(ask: Ask): DriverAnswer {
    const { host, place } = this.#parts;
    switch (ask.kind) {
      case "value": {
        const bound = boundPiece(ask.piece, ask.frame, place);
        if (bound.kind === "rows") {
          const { rows } = this.#rows(bound, ask.frame.values);
          return { kind: "value", ...onlyValue(bound, rows, ask.piece) };
        }
        const context = this.#contextFor(ask.frame.values, bound.calls);
        return { kind: "value", type: bound.type, value: bound.evaluate(context) };
      }
      case "rows": {
        const { node } = ask.piece;
        if (!isSelectNode(node)) throw changes();
        const bound = boundPiece(ask.piece, ask.frame, place);
        if (bound.kind !== "rows") throw changes();
        return this.#rows(bound, ask.frame.values);
      }
      case "text": {
        const [node, ...others] = parseStatements(ask.sql);
        if (node === undefined || others.length > 0 || !isQueryNode(node)) throw changes();
        const values = ask.using.map(({ value }) => value);
        return this.#rows(boundText(node, ask.using, place), values);
      }
      case "pause":
        this.#checkTime();
        return { kind: "done" };
      case "notice":
        host.notice(`${ask.level.toUpperCase()}: ${ask.message}`);
        return { kind: "done" };
      default:
        // A program that changes nothing has nothing to undo.
        return { kind: "done" };
    }
  }

  /** Returns a context whose slots are the variables, followed by the values of calls. */
  #contextFor(values: readonly Value[], calls: readonly HoistedCall[]): ExecutionContext {
    const { host, inner } = this.#parts;
    if (calls.length === 0) return host.context(values, inner);
    const slots = [...values];
    for (const { args, program, seesNull } of calls) {
      const context = host.context(slots, inner);
      const given = args.map((argument) => argument(context));
      slots.push(!seesNull && given.includes(null) ? null : inner.call(program, given));
    }
    return host.context(slots, inner);
  }

  #rows({ columns, prepared }: BoundRowsPiece, values: readonly Value[]): RowsAnswer {
    if (prepared.kind !== "query") throw changes();
    const context = this.#contextFor(values, prepared.calls);
    const operator = made(prepared.build, context);
    const rows: Row[] = [];
    try {
      for (let batch = operator.next(); batch !== undefined; batch = operator.next()) {
        this.#checkTime(context);
        for (let at = 0; at < batch.rowCount; at += 1) {
          rows.push(
            Array.from({ length: prepared.columnCount }, (_, column) => {
              const vector = batch.columns[column];
              return vector === undefined ? null : valueAt(vector, at);
            }),
          );
        }
        context.checkResultRows(rows.length);
      }
    } finally {
      operator.close();
    }
    return { kind: "rows", columns, rows, rowCount: rows.length };
  }

  #checkTime(context: ExecutionContext = this.#parts.host.context([], this.#parts.inner)): void {
    context.checkTime();
    const nowMs = context.monotonicMs();
    if (this.#endMs === Number.POSITIVE_INFINITY) this.#endMs = nowMs + PROGRAM_MS_MAX;
    if (nowMs < this.#endMs) return;
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot run the function in a query: a call may take at most ${PROGRAM_MS_MAX} ms there`,
      { hint: ALONE, sqlstate: "54001" },
    );
  }
}

const ALONE = "call it by itself: SELECT f(…) without FROM a table, SELECT * FROM f(…), or CALL";

function changes(): DatabaseError {
  return new DatabaseError(
    "INVALID_OPERATION",
    "Cannot change rows in a function that a query calls: it may only read there",
    { hint: ALONE, sqlstate: "2F002" },
  );
}
