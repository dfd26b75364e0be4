/**
 * Runs programs as statements: a function call on its own, CALL and DO. The SQL of a program is
 * executed like any other statement, within the caller's transaction, and may change rows and
 * definitions. Between its steps, a program lets other work run. It ends with its request.
 */
import type { Principal } from "../../auth/mod.ts";
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import { FURTHER_SLICE_MS_MAX } from "../../base/limits.ts";
import { awaited, settle, type WaitingSteps } from "../../base/waiting_steps.ts";
import type { Row, Value } from "../../types/mod.ts";
import type { CursorRow } from "../bind/bound.ts";
import { dividedRows } from "../bind/change/cursor_rows.ts";
import { checkDeadline, type RequestLedger } from "../execute/context/request_ledger.ts";
import type { CalledProgram, ProgramCalls } from "../functions/base/function.ts";
import type { SavepointStatement, SelectForStatement, Statement } from "../parse/ast/ast.ts";
import { callQuery, isQueryNode } from "../parse/ast/query_nodes.ts";
import { parseStatements } from "../parse/parser.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import { parseLimitsOf } from "../ports/parameters.ts";
import type { HoistedCall } from "../prepare/hoisted_calls.ts";
import { compiledProgram, placeOfProgram, typedBody } from "../prepare/program_bodies.ts";
import { ProgramsInQuery, requireDepth } from "../prepare/program_calls.ts";
import {
  type BoundRowsPiece,
  boundInner,
  boundPiece,
  boundText,
  onlyValue,
  type PiecePlace,
} from "../prepare/program_pieces.ts";
import { argumentSlots, resultOf } from "../prepare/program_results.ts";
import { newContext, type StatementContext } from "../prepare/statement_context.ts";
import type { Ask, DriverAnswer, ProgramSteps, RowsAnswer } from "../procedural/asks.ts";
import { type CompiledBody, ProgramFrame } from "../procedural/frame.ts";
import { leaveFunction, runBody } from "../procedural/interpreter.ts";
import { findName } from "../procedural/names.ts";
import { ProgramCursors } from "../procedural/open_cursors.ts";
import { parseBody } from "../procedural/parse_body.ts";
import type { SqlPiece } from "../procedural/tree.ts";
import { isDefining } from "../rights/statement_kinds.ts";
import { cursorNotFound, keyedResult } from "./cursors.ts";
import { lockedNames, readAndLock } from "./locking_read.ts";
import { Notices } from "./notices.ts";
import type { RequestTransaction } from "./request_transaction.ts";
import type { StatementDeps, TriggerFrame } from "./run_options.ts";
import { OwnSettingCalls } from "./setting_calls.ts";
import type { StatementRunner } from "./statement_runner.ts";

/** The parts of the SQL environment that programs need. */
export type ProgramDeps = Pick<SqlEnvironment, "history"> & StatementDeps;

/** The operations on a transaction that programs need. */
export type ProgramTransaction = Pick<
  RequestTransaction,
  "current" | "requireUsable" | "savepoint" | "settings"
>;

export interface ProgramRunnerParts {
  readonly deps: () => ProgramDeps;
  readonly principal: Principal;
  /** The namespace in which a DO block looks up names. */
  readonly namespace: string;
  /** The transaction of the request, which must be open. */
  readonly transaction: ProgramTransaction;
  /** Creates a runner that returns the rows of a statement instead of streaming them. */
  readonly runner: () => StatementRunner;
  readonly ledger: RequestLedger;
  /** Returns the key of a caller's cursor's current row; absent if the caller has no cursors. */
  readonly currentKey?: (row: CursorRow) => Row;
  /** The trigger that called the program; absent if the program was called otherwise. */
  readonly trigger?: TriggerFrame | undefined;
  /** Runs a statement that neither reads nor writes rows, such as a definition. */
  readonly runOther: (node: Statement, namespace: string) => Promise<StatementResult>;
}

/** The maximum number of loop iterations before other work may run. */
const STEPS_PER_SLICE = 1024;

const DONE: DriverAnswer = { kind: "done" };

/** The kinds of program requests before which a program lets other work run. */
const TIMED: ReadonlySet<Ask["kind"]> = new Set(["pause", "rows", "text", "value"]);

/** A program call that is running. */
interface RunningCall {
  readonly place: PiecePlace;
  readonly depth: number;
  /** Returns the key of a cursor's current row, for a statement that changes this row. */
  readonly currentKey?: (row: CursorRow) => Row;
}

export class ProgramRunner {
  readonly #parts: ProgramRunnerParts;
  readonly #clock: Clock;
  readonly #cursors = new ProgramCursors();
  readonly #savepoints: string[] = [];
  readonly #notices = new Notices();
  #sliceEndMs: number;
  #stepCount = 0;

  constructor(parts: ProgramRunnerParts) {
    this.#parts = parts;
    this.#clock = parts.deps().clock;
    this.#sliceEndMs = this.#clock.monotonicMs() + FURTHER_SLICE_MS_MAX;
  }

  /** The notices that programs have raised; undefined if there are none. */
  get notices(): readonly string[] | undefined {
    return this.#notices.messages;
  }

  readonly note = (message: string): void => this.#notices.add(message);

  /**
   * Runs program calls one after another. Returns the slots, followed by the results of the calls.
   */
  async called(
    calls: readonly HoistedCall[],
    slots: readonly Value[],
    depth = 0,
  ): Promise<Value[]> {
    const extended = [...slots];
    for (const { args, program, seesNull } of calls) {
      const place = this.#placeOf(program);
      const context = this.#contextFor(extended, place);
      const given = args.map((argument) => argument(context));
      const isNull = !seesNull && given.includes(null);
      extended.push(isNull ? null : await this.#call(program, given, depth));
    }
    return extended;
  }

  #placeOf({ entry }: CalledProgram): PiecePlace {
    return placeOfProgram(entry, this.#place(this.#parts.namespace));
  }

  #place(namespace: string): PiecePlace {
    return { deps: this.#parts.deps(), principal: this.#parts.principal, namespace };
  }

  async #call(program: CalledProgram, args: readonly Value[], depth: number): Promise<Value> {
    requireDepth(depth, program);
    const place = this.#placeOf(program);
    const compiled = compiledProgram(program, place);
    const frame = new ProgramFrame(compiled, argumentSlots(program.entry, args));
    await this.run(frame, { place, depth: depth + 1 });
    return resultOf(frame);
  }

  /** Runs the block of a DO statement to its end. @throws {DatabaseError} */
  async block(source: string): Promise<void> {
    const body = parseBody(source, DO_CONTEXT);
    const place = this.#place(this.#parts.namespace);
    const compiled: CompiledBody = {
      ...typedBody(body, { given: [], actual: {}, place }),
      shown: "a DO block",
      result: { columns: [], isRow: false, isSet: false, outputs: undefined, isVoid: true },
    };
    await this.run(new ProgramFrame(compiled, []), { place, depth: 0 });
  }

  /**
   * Runs the body of a function. Returns a promise only if the body has to wait.
   *
   * @throws {DatabaseError}
   */
  run(frame: ProgramFrame, call: RunningCall): void | Promise<void> {
    return settle(this.#running(frame, call));
  }

  *#running(frame: ProgramFrame, call: RunningCall): WaitingSteps<void> {
    const savepointCount = this.#savepoints.length;
    try {
      yield* this.#drive(runBody(frame, this.#cursors), call);
    } catch (error) {
      leaveFunction(error);
      while (this.#savepoints.length > savepointCount) this.#endSavepoint(false);
      throw error;
    }
  }

  *#drive(asking: ProgramSteps<void>, call: RunningCall): WaitingSteps<void> {
    let step = asking.next(DONE);
    while (step.done !== true) {
      let answer: DriverAnswer;
      try {
        // A recursive program may contain no loop, so other work may also run before a statement
        // or expression.
        if (TIMED.has(step.value.kind)) yield* awaited(this.#pause());
        answer = yield* awaited(this.#answer(step.value, call));
      } catch (error) {
        step = asking.throw(error);
        continue;
      }
      step = asking.next(answer);
    }
  }

  #answer(ask: Ask, { depth, place }: RunningCall): DriverAnswer | Promise<DriverAnswer> {
    // Definitions that the program has changed apply from its next statement on.
    const call = { depth, place: { ...place, deps: this.#parts.deps() } };
    switch (ask.kind) {
      case "value":
        return this.#value(ask, call);
      case "rows":
        return this.#rows(ask, call);
      case "text":
        return this.#text(ask, call);
      case "begin":
        this.#beginSavepoint();
        return DONE;
      case "end":
        this.#endSavepoint(ask.isKept);
        return DONE;
      case "pause":
        return DONE;
      case "notice":
        this.note(`${ask.level.toUpperCase()}: ${ask.message}`);
        return DONE;
    }
  }

  /** Lets other work run if the time slice is over. */
  #pause(): DriverAnswer | Promise<DriverAnswer> {
    const nowMs = checkDeadline(this.#parts.ledger, this.#clock);
    this.#stepCount += 1;
    if (nowMs < this.#sliceEndMs && this.#stepCount % STEPS_PER_SLICE !== 0) return DONE;
    return this.#clock.yield().then(() => {
      checkDeadline(this.#parts.ledger, this.#clock);
      this.#sliceEndMs = this.#clock.monotonicMs() + FURTHER_SLICE_MS_MAX;
      return DONE;
    });
  }

  #value(
    { frame, piece }: Extract<Ask, { kind: "value" }>,
    { depth, place }: RunningCall,
  ): DriverAnswer | Promise<DriverAnswer> {
    const bound = boundPiece(piece, frame, place);
    if (bound.kind === "rows") {
      return this.#runBound(bound, frame.values, { depth, place }).then(({ rows }) => ({
        kind: "value",
        ...onlyValue(bound, rows, piece),
      }));
    }
    const { calls, evaluate, type } = bound;
    if (calls.length === 0) {
      return { kind: "value", type, value: evaluate(this.#contextFor(frame.values, place)) };
    }
    return this.called(calls, frame.values, depth).then((slots) => ({
      kind: "value",
      type,
      value: evaluate(this.#contextFor(slots, place)),
    }));
  }

  async #rows(
    { frame, isCursor, piece }: Extract<Ask, { kind: "rows" }>,
    call: RunningCall,
  ): Promise<RowsAnswer> {
    const { node } = piece;
    const { place } = call;
    if (isQueryNode(node) || node.type === "call procedure") {
      const bound = boundPiece(piece, frame, place, isCursor);
      if (bound.kind !== "rows")
        throw new TypeError("program runner: statement was bound as an expression");
      const currentKey = (row: CursorRow): Row => this.#currentKey(row, piece, frame);
      const answer = await this.#runBound(bound, frame.values, { ...call, currentKey });
      return node.type === "call procedure" ? withOutputs(answer, node, bound) : answer;
    }
    if (node.type === "select for") {
      const cursor = isCursor === true ? { locked: lockedNames(node) } : undefined;
      const bind = (query: Parameters<typeof boundInner>[0]): BoundRowsPiece =>
        boundInner(query, { frame, names: piece.names, place, cursor });
      return await this.#lock(node, { bind, slots: frame.values, call });
    }
    return await this.#other(node, place);
  }

  /**
   * Returns the key of the current row of a cursor, which a variable of the program or the caller
   * has opened.
   */
  #currentKey(row: CursorRow, { names }: SqlPiece, { values }: ProgramFrame): Row {
    const { name } = row.cursor;
    const variable = findName([name], names);
    const opened = variable === undefined ? name : values[variable.slot];
    const key = typeof opened === "string" ? this.#cursors.currentKey(opened, row) : undefined;
    return key ?? this.#callersKey(row);
  }

  /** Returns the key of the current row of a cursor that the caller has declared. */
  #callersKey(row: CursorRow): Row {
    const { currentKey } = this.#parts;
    if (currentKey === undefined) throw cursorNotFound(row.cursor);
    return currentKey(row);
  }

  async #runBound(
    bound: BoundRowsPiece,
    slots: readonly Value[],
    call: RunningCall,
  ): Promise<RowsAnswer> {
    const { rowCount, rows = [] } = await this.#runPrepared(bound, slots, call);
    const read = rows as readonly (readonly Value[])[];
    const { columns, prepared } = bound;
    const keys = prepared.kind === "query" ? prepared.cursorKeys : undefined;
    if (keys === undefined) return { kind: "rows", columns, rows: read, rowCount };
    const { keyed, shown } = dividedRows(read, keys, columns?.length ?? 0);
    return { kind: "rows", columns, rows: shown, rowCount, keyed };
  }

  /** Runs the programs that a statement calls, and then runs the statement. */
  async #runPrepared(
    { prepared }: BoundRowsPiece,
    slots: readonly Value[],
    { currentKey, depth, place }: RunningCall,
  ): Promise<StatementResult> {
    const { transaction } = this.#parts;
    const calls = prepared.kind === "query" ? prepared.calls : [];
    const parameters = calls.length === 0 ? slots : await this.called(calls, slots, depth);
    transaction.requireUsable();
    return await this.#parts.runner().run(prepared, {
      principal: this.#parts.principal,
      namespace: place.namespace,
      transaction: transaction.current,
      parameters,
      files: undefined,
      trigger: this.#parts.trigger,
      onNotice: this.note,
      ...(currentKey && { currentKey }),
    });
  }

  async #lock(
    node: SelectForStatement,
    {
      bind,
      call,
      slots,
    }: {
      readonly bind: (query: Parameters<typeof boundInner>[0]) => BoundRowsPiece;
      readonly slots: readonly Value[];
      readonly call: RunningCall;
    },
  ): Promise<RowsAnswer> {
    const deps = this.#parts.deps();
    let columns: RowsAnswer["columns"];
    let keyed: RowsAnswer["keyed"];
    const result = await readAndLock(node, {
      deps,
      locks: deps.activity.locks,
      principal: this.#parts.principal,
      namespace: call.place.namespace,
      transaction: this.#parts.transaction.current,
      run: async (query) => {
        const bound = bind(query);
        columns = bound.columns;
        const found = keyedResult(await this.#runPrepared(bound, slots, call), bound.prepared);
        ({ keyed } = found);
        return found.result;
      },
    });
    const rows = (result.rows ?? []) as readonly (readonly Value[])[];
    const width = rows[0]?.length ?? columns?.length;
    return {
      kind: "rows",
      columns: columns?.slice(0, width),
      rows,
      rowCount: result.rowCount,
      ...(keyed && { keyed }),
    };
  }

  async #text(
    { isCursor, sql, using }: Extract<Ask, { kind: "text" }>,
    call: RunningCall,
  ): Promise<RowsAnswer> {
    const statements = parseStatements(sql, parseLimitsOf(this.#parts.deps().limits));
    let answer: RowsAnswer = { kind: "rows", columns: undefined, rows: [], rowCount: 0 };
    const slots = using.map(({ value }) => value);
    for (const node of statements) {
      if (isQueryNode(node) || node.type === "call procedure") {
        const query = node.type === "call procedure" ? callQuery(node) : node;
        const cursor = isCursor === true ? { locked: undefined } : undefined;
        const bound = boundText(query, using, call.place, cursor);
        const currentKey = (row: CursorRow): Row =>
          this.#cursors.currentKey(row.cursor.name, row) ?? this.#callersKey(row);
        answer = await this.#runBound(bound, slots, { ...call, currentKey });
      } else if (node.type === "select for") {
        const cursor = isCursor === true ? { locked: lockedNames(node) } : undefined;
        const bind = (query: Parameters<typeof boundInner>[0]): BoundRowsPiece =>
          boundText(query, using, call.place, cursor);
        answer = await this.#lock(node, { bind, slots, call });
      } else answer = await this.#other(node, call.place);
    }
    return answer;
  }

  async #other(node: Statement, place: PiecePlace): Promise<RowsAnswer> {
    if (node.type === "do block") {
      await this.block(node.source);
    } else {
      if (!isDefining(node) && !OTHERS.has(node.type)) throw refused(node);
      await this.#parts.runOther(node, place.namespace);
    }
    return { kind: "rows", columns: undefined, rows: [], rowCount: 0, isUtility: true };
  }

  #contextFor(slots: readonly Value[], place: PiecePlace): StatementContext {
    const { ledger, principal, transaction, trigger } = this.#parts;
    const deps = this.#parts.deps();
    const create = (
      values: readonly Value[],
      programs: ProgramCalls,
      sliceEndMs?: number,
    ): StatementContext =>
      newContext(deps, {
        principal,
        namespace: place.namespace,
        slots: values,
        atSeq: deps.store.visibleSeq,
        transaction: transaction.current,
        ledger,
        settings: () => new OwnSettingCalls(transaction.settings, { deps, principal }),
        ...(trigger && { transition: trigger.transition, triggerDepth: trigger.depth }),
        programs,
        sliceEndMs,
      });
    const { clock } = deps;
    return create(slots, new ProgramsInQuery({ place, clock, context: create, notice: this.note }));
  }

  #beginSavepoint(): void {
    // SQL cannot contain the name of this savepoint, so it hides none of the caller's savepoints.
    const name = `\0${this.#savepoints.length}`;
    this.#parts.transaction.savepoint(savepointNode("savepoint", name));
    this.#savepoints.push(name);
  }

  #endSavepoint(isKept: boolean): void {
    const name = this.#savepoints.pop();
    if (name === undefined) return;
    const { transaction } = this.#parts;
    if (!isKept) transaction.savepoint(savepointNode("rollback to", name));
    transaction.savepoint(savepointNode("release savepoint", name));
  }
}

export const DO_CONTEXT = {
  label: undefined,
  given: [],
  positionalCount: 0,
  returns: { kind: "nothing", isSet: false },
} as const;

function savepointNode(type: SavepointStatement["type"], name: string): SavepointStatement {
  const _location = { start: 0, end: 0 };
  return { type, name: { name, _location }, _location };
}

/** Statements, other than definitions, that a program may run. */
const OTHERS: ReadonlySet<Statement["type"]> = new Set<Statement["type"]>([
  "create table as",
  "reset all",
  "set",
  "set constraints",
  "set timezone",
  "truncate",
]);

function refused(node: Statement): DatabaseError {
  return new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot run ${node.type.toUpperCase()} in a function: this statement is not allowed there`,
    { hint: "run it as a separate statement", sqlstate: "0A000" },
  );
}

/** Adds to the result of a CALL the index of the argument to which each column is assigned. */
function withOutputs(
  answer: RowsAnswer,
  { call }: Extract<Statement, { type: "call procedure" }>,
  { prepared }: BoundRowsPiece,
): RowsAnswer {
  const program = prepared.kind === "query" ? prepared.calls.at(-1)?.program : undefined;
  const { argNames = [] } = call;
  const outputArguments = (program?.entry.routine.parameters ?? []).flatMap(({ mode, name }, i) => {
    if (mode !== "inout" && mode !== "out") return [];
    const named = argNames.findIndex((each) => each !== undefined && each === name);
    return [named === -1 ? i : named];
  });
  return { ...answer, outputArguments };
}
