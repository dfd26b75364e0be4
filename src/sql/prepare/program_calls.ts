/**
 * Runs programs during the evaluation of an expression, which cannot wait. Such a program reads at
 * the snapshot of its statement, changes no data, and must end soon, because nothing else runs in
 * the meantime.
 */
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import { PROGRAM_CALLS_MAX, PROGRAM_MS_MAX, PROGRAMS_MS_MAX } from "../../base/limits.ts";
import { type Row, type Value, valueAt } from "../../types/mod.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { made } from "../execute/context/operator.ts";
import { SLICE_OVER } from "../execute/context/time_slice.ts";
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
import type { RecordedCalls } from "./recorded_calls.ts";
import type { AttemptPrograms } from "./statement_context.ts";

/** The parts of a calling statement that the called programs may use. */
export interface ProgramHost {
  readonly place: PiecePlace;
  readonly clock: Pick<Clock, "yield">;
  /** Creates the context for a statement of a program, with the given slots. */
  context(slots: readonly Value[], programs: ProgramCalls, sliceEndMs?: number): ExecutionContext;
  readonly notice: (message: string) => void;
}

export class ProgramsInQuery implements AttemptPrograms {
  readonly #host: ProgramHost;
  readonly #depth: number;
  readonly #limit: TimeLimit;
  readonly #recorded: RecordedCalls | undefined;

  /**
   * @param about.depth The number of programs already running.
   * @param about.limit The time limit of the outermost call.
   * @param about.recorded Interrupts the query; absent for calls within programs.
   */
  constructor(
    host: ProgramHost,
    about: { depth?: number; limit?: TimeLimit; recorded?: RecordedCalls } = {},
  ) {
    this.#host = host;
    this.#depth = about.depth ?? 0;
    this.#recorded = about.recorded;
    this.#limit = about.limit ?? {
      callEndMs: undefined,
      turnEndMs: undefined,
      context: undefined,
    };
  }

  beginAnew(): void {
    this.#recorded?.beginAnew();
  }

  call(program: CalledProgram, args: readonly Value[]): Value {
    const run = (): Value => this.#run(program, args);
    return this.#recorded === undefined ? run() : this.#recorded.resultOf(program, args, run);
  }

  #run(program: CalledProgram, args: readonly Value[]): Value {
    requireDepth(this.#depth, program);
    const place = placeOfProgram(program.entry, this.#host.place);
    const compiled = compiledProgram(program, place);
    const frame = new ProgramFrame(compiled, argumentSlots(program.entry, args));
    const limit = this.#limit;
    const inner = new ProgramsInQuery(this.#host, { depth: this.#depth + 1, limit });
    const driver = new QueryDriver({ host: this.#host, inner, limit, place });
    try {
      driver.run(runBody(frame));
    } catch (error) {
      leaveFunction(error);
      throw error;
    } finally {
      if (this.#depth === 0) limit.callEndMs = undefined;
    }
    return resultOf(frame);
  }
}

/** @throws {DatabaseError} LIMIT_EXCEEDED */
export function requireDepth(depth: number, { entry }: Pick<CalledProgram, "entry">): void {
  if (depth < PROGRAM_CALLS_MAX) return;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot call function ${entry.namespace}.${entry.name}: calls are nested more than ` +
      `${PROGRAM_CALLS_MAX} levels deep`,
    { hint: "use a loop instead of recursion", sqlstate: "54001" },
  );
}

/**
 * The times at which the program calls of a query must end, because nothing else runs in the
 * meantime.
 */
interface TimeLimit {
  /** The time at which the outermost call must end; set when the time is first checked. */
  callEndMs: number | undefined;
  /**
   * The time at which all calls in a turn of the event loop must end; set when the time is first
   * checked in the turn.
   */
  turnEndMs: number | undefined;
  /** The execution context that supplies the time, and checks whether the request may continue. */
  context: ExecutionContext | undefined;
}

interface DriverParts {
  readonly host: ProgramHost;
  readonly inner: ProgramCalls;
  readonly limit: TimeLimit;
  readonly place: PiecePlace;
}

/** Runs a program to its end, answering each of its requests immediately. */
class QueryDriver {
  readonly #parts: DriverParts;

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
        step = asking.throw(error === SLICE_OVER ? tookTooLong() : error);
        continue;
      }
      step = asking.next(answer);
    }
  }

  #answer(ask: Ask): DriverAnswer {
    const { host, place } = this.#parts;
    // A recursive program may contain no loop, so the time is also checked at each evaluation.
    if (TIMED.has(ask.kind)) this.#checkTime();
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
      case "notice":
        host.notice(`${ask.level.toUpperCase()}: ${ask.message}`);
        return { kind: "done" };
      default:
        // A program that changes no data has nothing to undo.
        return { kind: "done" };
    }
  }

  /**
   * Returns a context whose slots are the program's variables, followed by the results of the
   * calls.
   */
  #contextFor(values: readonly Value[], calls: readonly HoistedCall[]): ExecutionContext {
    const { host, inner } = this.#parts;
    const endMs = this.#endMs();
    if (calls.length === 0) return host.context(values, inner, endMs);
    const slots = [...values];
    for (const { args, program, seesNull } of calls) {
      const context = host.context(slots, inner, endMs);
      const given = args.map((argument) => argument(context));
      slots.push(!seesNull && given.includes(null) ? null : inner.call(program, given));
    }
    return host.context(slots, inner, endMs);
  }

  #rows({ columns, prepared }: BoundRowsPiece, values: readonly Value[]): RowsAnswer {
    if (prepared.kind !== "query") throw changes();
    const context = this.#contextFor(values, prepared.calls);
    const operator = made(prepared.build, context);
    const rows: Row[] = [];
    try {
      for (let batch = operator.next(); batch !== undefined; batch = operator.next()) {
        this.#checkTime();
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

  #checkTime(): void {
    const context = this.#timeContext();
    context.checkTime();
    if (context.monotonicMs() >= this.#endMs()) throw SLICE_OVER;
  }

  #timeContext(): ExecutionContext {
    const { host, inner, limit } = this.#parts;
    limit.context ??= host.context([], inner);
    return limit.context;
  }

  /** Returns the time at which the current calls must end. */
  #endMs(): number {
    const { limit } = this.#parts;
    const nowMs = this.#timeContext().monotonicMs();
    limit.callEndMs ??= nowMs + PROGRAM_MS_MAX;
    if (limit.turnEndMs === undefined) void this.#limitTurn(nowMs + PROGRAMS_MS_MAX);
    return Math.min(limit.callEndMs, limit.turnEndMs ?? Number.POSITIVE_INFINITY);
  }

  /**
   * Sets the time limit for the current turn of the event loop, and removes it in the next turn.
   */
  async #limitTurn(endMs: number): Promise<void> {
    const { host, limit } = this.#parts;
    limit.turnEndMs = endMs;
    await host.clock.yield();
    limit.turnEndMs = undefined;
  }
}

function tookTooLong(): DatabaseError {
  return new DatabaseError(
    "LIMIT_EXCEEDED",
    "Cannot run the function in a query: within a query, each call may take at most " +
      `${PROGRAM_MS_MAX} ms, and all calls together at most ${PROGRAMS_MS_MAX} ms without a ` +
      "pause",
    { hint: ALONE, sqlstate: "54001" },
  );
}

/** The kinds of program requests before which the time is checked. */
const TIMED: ReadonlySet<Ask["kind"]> = new Set(["pause", "rows", "text", "value"]);

const ALONE = "call it on its own, with SELECT f(…) without FROM, SELECT * FROM f(…), or CALL";

function changes(): DatabaseError {
  return new DatabaseError(
    "INVALID_OPERATION",
    "Cannot change rows in a function that is called by a query: such a function may only " +
      "read rows",
    { hint: ALONE, sqlstate: "2F002" },
  );
}
