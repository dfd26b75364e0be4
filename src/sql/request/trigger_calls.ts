/**
 * Calls trigger functions within the transaction of the statement that fires the trigger. A
 * function runs with the rights of the user who runs that statement. The function's own statements
 * run on the event loop, because the transition tables exist only there.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { awaited, settle, type WaitingSteps } from "../../base/waiting_steps.ts";
import {
  type FunctionEntry,
  shownColumnsOf,
  type TableEntry,
  type TriggerEntry,
} from "../../catalog/mod.ts";
import { type DataType, INT, type Row, type RowValue, TEXT, type Value } from "../../types/mod.ts";
import type { BoundRecursion } from "../bind/bound.ts";
import type { CteList } from "../bind/query/select_deps.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { Transaction, TransactionMark } from "../execute/context/transaction.ts";
import type { TriggerCall, TriggerCalls } from "../execute/context/trigger_calls.ts";
import { MaterialisedRows } from "../execute/materialised/materialised_rows.ts";
import { MemoryBudget } from "../execute/materialised/memory_budget.ts";
import { columnsFromRows } from "../execute/operators/filter.ts";
import type { Expr, SavepointStatement, Statement } from "../parse/ast/ast.ts";
import { rewritten } from "../parse/ast/tree_parts.ts";
import { bodyOf, placeOfProgram, typedBody } from "../prepare/program_bodies.ts";
import { type CompiledBody, ProgramFrame } from "../procedural/frame.ts";
import { rowOfValue } from "../procedural/interpreter.ts";
import type { ProcedureBody } from "../procedural/tree.ts";
import { type ProgramDeps, ProgramRunner, type ProgramTransaction } from "./program_runner.ts";
import type { RequestSettings } from "./request_settings.ts";
import type { StatementRunner } from "./statement_runner.ts";

/** The maximum nesting depth of triggers. */
const TRIGGER_DEPTH_MAX = 32;

export interface TriggerCallOptions {
  readonly deps: ProgramDeps;
  readonly ledger: RequestLedger;
  readonly settings: RequestSettings;
  readonly principal: Principal;
  readonly transaction: Transaction;
  /** The nesting depth of triggers at which the statement that fires the trigger runs. */
  readonly depth: number;
  /**
   * Creates a runner that reads rows on the event loop, for the statements of a trigger function.
   */
  readonly runner: () => StatementRunner;
  readonly onNotice: (message: string) => void;
}

export class OwnTriggerCalls implements TriggerCalls {
  readonly #options: TriggerCallOptions;
  readonly #transaction: ProgramTransaction;

  constructor(options: TriggerCallOptions) {
    this.#options = options;
    this.#transaction = new TriggerTransaction(options);
  }

  call(call: TriggerCall): Row | null | Promise<Row | null> {
    return settle(this.#called(call));
  }

  *#called(call: TriggerCall): WaitingSteps<Row | null> {
    const { depth, deps, ledger, onNotice, principal, runner } = this.#options;
    const { table } = call;
    requireDepth(depth, call);
    const entry = functionOf(call, deps);
    const transition = transitionOf(call, deps);
    const place = {
      ...placeOfProgram(entry, { deps, principal, namespace: table.namespace }),
      ctes: transition?.ctes,
    };
    const frame = new ProgramFrame(compiledTrigger(entry, table, place), variablesOf(call));
    const programs = new ProgramRunner({
      deps: () => deps,
      principal,
      namespace: place.namespace,
      transaction: this.#transaction,
      runner,
      ledger,
      trigger: { depth: depth + 1, transition: transition?.rows },
      runOther: (node) => Promise.reject(refused(node)),
    });
    try {
      yield* awaited(programs.run(frame, { place, depth: 0 }));
    } finally {
      for (const notice of programs.notices ?? []) onNotice(notice);
    }
    return returnedRow(frame, call);
  }
}

/** @throws {DatabaseError} LIMIT_EXCEEDED */
function requireDepth(depth: number, { table, trigger }: TriggerCall): void {
  if (depth < TRIGGER_DEPTH_MAX) return;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot fire trigger "${trigger.name}" on ${table.namespace}.${table.name}: triggers may ` +
      `be nested at most ${TRIGGER_DEPTH_MAX} levels deep`,
    {
      hint: "add a condition such as WHEN (pg_trigger_depth() = 0) to the trigger",
      sqlstate: "54001",
    },
  );
}

function functionOf({ trigger }: TriggerCall, { catalog }: ProgramDeps): FunctionEntry {
  const called = catalog.functions().find(({ viewId }) => viewId === trigger.functionId);
  if (called !== undefined) return called;
  throw new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot fire trigger "${trigger.name}": its function was dropped in the meantime`,
    { hint: "run the statement again" },
  );
}

function refused(node: Statement): DatabaseError {
  return new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot run ${node.type.toUpperCase()} in a trigger: this statement is not allowed there`,
    { hint: "run it as a separate statement", sqlstate: "0A000" },
  );
}

interface KeptTrigger {
  readonly version: number;
  readonly compiled: CompiledBody;
}

/** The compiled bodies of each trigger function, keyed by table. */
const compiledTriggers = new WeakMap<FunctionEntry, WeakMap<TableEntry, KeptTrigger>>();

/**
 * Returns the body of a trigger function, compiled for the rows of a table. @throws
 * {DatabaseError}
 */
function compiledTrigger(
  entry: FunctionEntry,
  table: TableEntry,
  place: Parameters<typeof typedBody>[1]["place"],
): CompiledBody {
  const { version } = place.deps.catalog;
  let bodies = compiledTriggers.get(entry);
  if (bodies === undefined) {
    bodies = new WeakMap();
    compiledTriggers.set(entry, bodies);
  }
  const known = bodies.get(table);
  if (known?.version === version) return known.compiled;
  const columns = shownColumnsOf(table).map(({ name, type }) => ({ name, type }));
  const row: DataType = { kind: "row", fields: columns };
  const given = [row, row, ...Array.from({ length: 7 }, () => TEXT), INT, NAMES];
  const compiled: CompiledBody = {
    ...typedBody(bodyFor(entry), { given, actual: {}, place }),
    shown: `${entry.namespace}.${entry.name}`,
    result: { columns, isRow: true, isSet: false, outputs: undefined, isVoid: false },
  };
  bodies.set(table, { version, compiled });
  return compiled;
}

/**
 * Returns the body of a trigger function, with subscripts of TG_ARGV increased by one. As in
 * PostgreSQL, trigger arguments are counted from 0, but every array in Tidemark starts at 1.
 */
function bodyFor({ routine, sql }: FunctionEntry): ProcedureBody {
  return rewritten(bodyOf({ routine, sql }), (part) => {
    const node: Partial<Expr> = part;
    if (node.type !== "arrayIndex" || node.array?.type !== "ref" || node.index === undefined) {
      return part;
    }
    if (node.array.name !== "tg_argv") return part;
    const { index } = node;
    const { _location } = index;
    const one: Expr = { type: "integer", value: 1, text: "1", _location };
    return { ...part, index: { type: "binary", op: "+", left: index, right: one, _location } };
  });
}

const NAMES: DataType = { kind: "array", element: TEXT };

/** Returns the values of NEW, OLD and the other variables of a trigger function, in slot order. */
function variablesOf(call: TriggerCall): Value[] {
  const { after, before, table } = call;
  return [rowValue(after, table), rowValue(before, table), ...namesAndArguments(call)];
}

/** The variables of each trigger that are the same for all rows of an event. */
const sameVariables = new WeakMap<TriggerEntry, { call: TriggerCall; values: Value[] }>();

function namesAndArguments(call: TriggerCall): readonly Value[] {
  const { event, table, trigger } = call;
  const known = sameVariables.get(trigger);
  if (known?.call.table === table && known.call.event === event) return known.values;
  const given = trigger.arguments;
  const values = [
    trigger.name,
    trigger.timing.toUpperCase(),
    trigger.level.toUpperCase(),
    event.toUpperCase(),
    table.name,
    table.name,
    table.namespace,
    given.length,
    [...given],
  ];
  sameVariables.set(trigger, { call: { event, table, trigger }, values });
  return values;
}

function rowValue(row: Row | undefined, { columns }: TableEntry): RowValue | null {
  if (row === undefined) return null;
  if (!hasHidden(columns)) return { cells: row };
  return { cells: row.filter((_, position) => columns[position]?.isHidden !== true) };
}

function hasHidden(columns: TableEntry["columns"]): boolean {
  return columns.some(({ isHidden }) => isHidden === true);
}

/** Returns the row that a trigger function has returned, with all columns of its table. */
function returnedRow(
  frame: ProgramFrame,
  { after, before, table, trigger }: TriggerCall,
): Row | null {
  const { returned } = frame;
  if (returned === undefined || returned.value === null) return null;
  const given = after ?? before;
  if (trigger.level === "statement" || trigger.timing === "after" || given === undefined) {
    return given ?? [];
  }
  const cells = rowOfValue(returned, frame);
  if (!hasHidden(table.columns)) return cells;
  let next = 0;
  return table.columns.map(({ isHidden }, position) => {
    if (isHidden === true) return given[position] ?? null;
    const cell = cells[next] ?? null;
    next += 1;
    return cell;
  });
}

/** The transition tables of a trigger call, in the form of WITH entries. */
interface TransitionTables {
  readonly ctes: CteList;
  readonly rows: ReadonlyMap<BoundRecursion, MaterialisedRows>;
}

interface TransitionNames {
  readonly table: TableEntry;
  readonly ctes: CteList;
  readonly before: BoundRecursion | undefined;
  readonly after: BoundRecursion | undefined;
}

const transitionNames = new WeakMap<object, TransitionNames>();

/**
 * Returns the names of the transition tables, with which the statements of a trigger function are
 * bound.
 */
function namesOf({ table, trigger }: TriggerCall): TransitionNames | undefined {
  const known = transitionNames.get(trigger);
  if (known?.table === table) return known;
  const columns = shownColumnsOf(table).map(({ name, type }) => ({ name, type }));
  let ctes: CteList | undefined;
  const named = (name: string | undefined): BoundRecursion | undefined => {
    if (name === undefined) return undefined;
    const recursion = { name };
    ctes = { entry: { kind: "changed", name, columns, recursion }, others: ctes };
    return recursion;
  };
  const before = named(trigger.oldTable);
  const after = named(trigger.newTable);
  if (ctes === undefined) return undefined;
  const names = { table, ctes, before, after };
  transitionNames.set(trigger, names);
  return names;
}

function transitionOf(
  call: TriggerCall,
  { limits }: Pick<ProgramDeps, "limits">,
): TransitionTables | undefined {
  const names = namesOf(call);
  if (names === undefined) return undefined;
  const { after = [], before = [] } = call.transition ?? {};
  const memory = new MemoryBudget(limits.queryMemoryBytes);
  const shown = shownColumnsOf(call.table);
  const types = shown.map(({ type }) => type);
  const made = (rows: readonly Row[]): MaterialisedRows => {
    const kept = new MaterialisedRows(types, memory);
    for (let from = 0; from < rows.length; from += ROWS_PER_STEP) {
      const some = rows.slice(from, from + ROWS_PER_STEP).map((row) => {
        return row.filter((_, position) => call.table.columns[position]?.isHidden !== true);
      });
      kept.append(columnsFromRows(some, types), some.length);
    }
    return kept;
  };
  const rows = new Map<BoundRecursion, MaterialisedRows>();
  if (names.before !== undefined) rows.set(names.before, made(before));
  if (names.after !== undefined) rows.set(names.after, made(after));
  return { ctes: names.ctes, rows };
}

const ROWS_PER_STEP = 1024;

/** The transaction of a statement, as seen by a trigger function that the statement calls. */
class TriggerTransaction implements ProgramTransaction {
  readonly #options: TriggerCallOptions;
  readonly #marks: { readonly rows: TransactionMark; readonly advisory: number }[] = [];

  constructor(options: TriggerCallOptions) {
    this.#options = options;
  }

  get current(): Transaction {
    return this.#options.transaction;
  }

  get settings(): RequestSettings {
    return this.#options.settings;
  }

  requireUsable(): void {
    this.current.requireUnaltered(this.#options.deps.catalog);
  }

  /**
   * Begins or ends a block with exception handlers. Blocks are nested, so the end of a block
   * refers to the latest mark.
   */
  savepoint({ type }: SavepointStatement): void {
    const { advisory, locks } = this.#options.deps.activity;
    const transaction = this.current;
    if (type === "savepoint") {
      this.#marks.push({ rows: transaction.mark(), advisory: advisory.markOf(transaction) });
      return;
    }
    const mark = this.#marks.at(-1);
    if (mark === undefined) return;
    if (type === "release savepoint") {
      this.#marks.pop();
      return;
    }
    transaction.undoTo(mark.rows, ({ seq }, before) => locks.restore(seq, before, transaction));
    advisory.returnTo(transaction, mark.advisory);
  }
}
