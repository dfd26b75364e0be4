/**
 * Compiles the defaults, checks and keys needed to write rows of a table, once per table
 * definition.
 */

import { assert } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { KEY_BYTES_MAX } from "../../../base/limits.ts";
import type { ColumnEntry, TableEntry } from "../../../catalog/mod.ts";
import {
  type Batch,
  constVector,
  type DataType,
  isNullAt,
  partOf,
  type Row,
  type Value,
  type Vector,
  valueAt,
} from "../../../types/mod.ts";
import { StatementBinding } from "../../bind/binding.ts";
import type { BoundColumn, BoundExpression } from "../../bind/bound_expressions.ts";
import { isFaultOfValue } from "../../bind/cell_error.ts";
import { nameOf } from "../../bind/change/dml_target.ts";
import { castTo } from "../../bind/expression/casts.ts";
import { bindDomainCheck } from "../../bind/expression/domains.ts";
import { bindCondition, bindExpression } from "../../bind/expression/expression_binder.ts";
import { parseStored } from "../../bind/expression/type_names.ts";
import { Scope } from "../../bind/scope.ts";
import { columnIdsIn } from "../../bind/walk.ts";
import type { Expr } from "../../parse/ast/ast.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { isDomainFault, valueTest } from "../evaluate/checked_values.ts";
import { compileExpression, type Evaluator } from "../evaluate/expression.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { columnsFromRows, rowsFromBatch } from "../operators/filter.ts";
import { storedIndexOf } from "./stored_index.ts";

type DefaultValue = (context: ExecutionContext) => Value;

/**
 * A condition on written rows: a CHECK that they must not violate, the condition that some
 * partition accepts them, an index expression that must not fail, or a column whose values contain
 * values of domains.
 */
interface Check {
  readonly kind: "check" | "column" | "index" | "partition";
  readonly name: string;
  /** The names of the columns that the check reads, in table order. */
  readonly columns: readonly string[];
  /** The name of the column if the check is that it is NOT NULL in a partition. */
  readonly notNull?: string | undefined;
  readonly evaluate: Evaluator;
}

/** A column computed from other columns of the row. */
interface GeneratedColumn {
  readonly name: string;
  readonly position: number;
  readonly evaluate: Evaluator;
}

interface FaultyRow {
  readonly row: number;
  readonly fault: DatabaseError;
}

export class TableRuntime {
  readonly table: TableEntry;
  readonly types: readonly DataType[];
  /** The positions of the primary key columns, in key order. */
  readonly keyPositions: readonly number[];
  readonly keyTypes: readonly DataType[];
  /** The positions of the columns of type FILE. */
  readonly filePositions: readonly number[];
  readonly #defaults: readonly (DefaultValue | undefined)[];
  readonly #notNull: readonly number[];
  readonly #checks: readonly Check[];
  readonly #hasLongKey: boolean;
  readonly #generated: readonly GeneratedColumn[];

  constructor(table: TableEntry) {
    this.table = table;
    this.types = table.columns.map(({ type }) => type);
    this.keyPositions = table.primaryKey.map((columnId) => {
      const position = table.columns.findIndex((column) => column.columnId === columnId);
      assert(
        position !== -1,
        "table runtime: primary key column is missing from the table definition",
      );
      return position;
    });
    this.keyTypes = this.keyPositions.map((position) => typeAt(this.types, position));
    this.filePositions = this.types.flatMap(({ kind }, i) => (kind === "file" ? [i] : []));
    this.#defaults = table.columns.map((column) => compileDefault(column));
    this.#notNull = table.columns.flatMap(({ domain, notNull }, i) =>
      notNull || domain?.notNull === true ? [i] : [],
    );
    this.#checks = [
      ...compileDomains(table),
      ...compileAcceptance(table),
      ...compileChecks(table),
      ...compilePartitionChecks(table),
      ...compileKeys(table),
    ];
    this.#generated = compileGenerated(table);
    this.#hasLongKey = this.keyTypes.some(({ kind }) => kind === "text" || kind === "bytes");
  }

  defaultAt(position: number, context: ExecutionContext): Value {
    return this.#defaults[position]?.(context) ?? null;
  }

  hasDefault(position: number): boolean {
    return this.#defaults[position] !== undefined;
  }

  keyOf(row: Row): Row {
    return this.keyPositions.map((position) => row[position] ?? null);
  }

  /**
   * Whether some columns are computed from other columns of the same row. {@linkcode completed}
   * computes them.
   */
  get isGenerated(): boolean {
    return this.#generated.length > 0;
  }

  /**
   * Whether changes must be processed row by row, because columns are computed or rows refer to
   * other rows.
   */
  get isByRow(): boolean {
    return this.isGenerated || (this.table.foreignKeys?.length ?? 0) > 0;
  }

  /**
   * Returns rows with the values of their generated columns filled in.
   * @throws {DatabaseError}
   */
  completed(rows: readonly Row[], context: ExecutionContext): readonly Row[] {
    if (this.#generated.length === 0 || rows.length === 0) return rows;
    const batch = { rowCount: rows.length, columns: columnsFromRows(rows, this.types) };
    const whole = rows.map((row): Value[] => [...row]);
    for (const { evaluate, name, position } of this.#generated) {
      let values: Vector;
      try {
        values = evaluate(batch, context);
      } catch (error) {
        if (!isFaultOfValue(error)) throw error;
        throw withPlace(error, `generated column "${name}" of ${nameOf(this.table)}`);
      }
      for (const [i, row] of whole.entries()) row[position] = valueAt(values, i);
    }
    return whole;
  }

  /**
   * Checks rows against NOT NULL, CHECK and the maximum key size. The first faulty row determines
   * the error.
   *
   * @throws {DatabaseError} NOT_NULL_VIOLATION, CHECK_VIOLATION, VALUE_TOO_LONG
   */
  check(rows: readonly Row[], context: ExecutionContext): void {
    let fault: DatabaseError | undefined;
    let soundCount = 0;
    for (; soundCount < rows.length; soundCount += 1) {
      fault = this.#faultOf(rows[soundCount] ?? []);
      if (fault !== undefined) break;
    }
    if (this.#checks.length > 0) {
      const sound = fault === undefined ? rows : rows.slice(0, soundCount);
      this.#runChecks(
        { rowCount: soundCount, columns: columnsFromRows(sound, this.types) },
        context,
      );
    }
    if (fault !== undefined) throw fault;
  }

  /** Returns the first fault of a row that can be found without evaluating a CHECK. */
  #faultOf(row: Row): DatabaseError | undefined {
    for (const position of this.#notNull) {
      if (row[position] === null || row[position] === undefined) return this.#isNull(position);
    }
    return this.#hasLongKey ? this.#faultOfKey(row) : undefined;
  }

  /**
   * Checks the rows of a batch that contains all columns of the table, in the same way as
   * {@linkcode check}.
   * @throws {DatabaseError} The same errors as `check`.
   */
  checkBatch(batch: Batch, context: ExecutionContext): void {
    if (this.#mayBeFaulty(batch)) this.check(rowsFromBatch(batch), context);
    else if (this.#checks.length > 0) this.#runChecks(batch, context);
  }

  /** Whether NULLs or long keys make it necessary to check the batch row by row. */
  #mayBeFaulty({ columns }: Batch): boolean {
    if (this.#notNull.some((position) => hasNull(columns[position]))) return true;
    if (!this.#hasLongKey) return false;
    let keyBytes = 0;
    for (const position of this.keyPositions) keyBytes += longestOf(columns[position]);
    return keyBytes > KEY_BYTES_MAX;
  }

  #runChecks(batch: Batch, context: ExecutionContext): void {
    let first: FaultyRow | undefined;
    let before = batch;
    for (const check of this.#checks) {
      const found = this.#firstFaultOf(check, before, context);
      if (found === undefined) continue;
      first = found;
      // The remaining checks matter only if an earlier row may be faulty: for the row found so
      // far, the first failing CHECK is already known.
      if (found.row === 0) break;
      before = partOf(before, 0, found.row);
    }
    if (first !== undefined) throw first.fault;
  }

  /**
   * Returns the first row of a batch that violates a CHECK, or for which evaluating the CHECK
   * fails.
   */
  #firstFaultOf(check: Check, batch: Batch, context: ExecutionContext): FaultyRow | undefined {
    const { rowCount } = batch;
    let truth: Vector;
    try {
      truth = check.evaluate(batch, context);
    } catch (error) {
      if (!isFaultOfValue(error)) throw error;
      if (rowCount === 0) return undefined;
      if (rowCount === 1) return { row: 0, fault: this.#failed(check, error) };
      // The error does not identify the faulty row, so the row is found by repeatedly halving the
      // batch.
      const half = Math.floor(rowCount / 2);
      const early = this.#firstFaultOf(check, partOf(batch, 0, half), context);
      if (early !== undefined) return early;
      const late = this.#firstFaultOf(check, partOf(batch, half, rowCount), context);
      return late && { row: half + late.row, fault: late.fault };
    }
    for (let row = 0; row < rowCount; row += 1) {
      if (valueAt(truth, row) === false) return { row, fault: this.#violates(check) };
    }
    return undefined;
  }

  #violates({ columns, kind, name, notNull }: Check): DatabaseError {
    if (notNull !== undefined) {
      return new DatabaseError(
        "NOT_NULL_VIOLATION",
        `Cannot write a row to ${nameOf(this.table)}: column "${notNull}" must not be NULL in the ` +
          "partition of the row",
      );
    }
    if (kind === "partition") {
      return new DatabaseError(
        "CHECK_VIOLATION",
        `Cannot write a row to ${nameOf(this.table)}: the row fits in none of its ` +
          `partitions${becauseOf(columns)}`,
        { hint: "create a partition for such rows with CREATE TABLE … PARTITION OF" },
      );
    }
    return new DatabaseError(
      "CHECK_VIOLATION",
      `Cannot write a row to ${nameOf(this.table)}: it violates check ` +
        `"${name}"${ofColumns(columns)}`,
    );
  }

  #failed({ kind, name }: Check, cause: DatabaseError): DatabaseError {
    return withPlace(cause, `${kind} "${name}" of ${nameOf(this.table)}`);
  }

  #faultOfKey(row: Row): DatabaseError | undefined {
    let bytes = 0;
    for (const position of this.keyPositions) {
      const value = row[position];
      if (typeof value === "string") bytes += Buffer.byteLength(value);
      else if (value instanceof Uint8Array) bytes += value.length;
      else bytes += 8;
    }
    if (bytes <= KEY_BYTES_MAX) return undefined;
    return new DatabaseError(
      "VALUE_TOO_LONG",
      `Cannot write a row to ${nameOf(this.table)}: its key has ${bytes} bytes, but the ` +
        `maximum is ${KEY_BYTES_MAX}`,
    );
  }

  #isNull(position: number): DatabaseError {
    const name = this.table.columns[position]?.name ?? "";
    return new DatabaseError(
      "NOT_NULL_VIOLATION",
      `Cannot write a row to ${nameOf(this.table)}: column "${name}" must not be NULL`,
    );
  }
}

/** Returns a copy of an error whose message also describes the place of the fault. */
function withPlace(cause: DatabaseError, place: string): DatabaseError {
  const { code, hint, message } = cause;
  return new DatabaseError(code, `${message} (${place})`, {
    cause,
    ...(hint === undefined ? {} : { hint }),
  });
}

/** Returns a phrase such as ` of column "a"`, which follows the name of a check in messages. */
function ofColumns(names: readonly string[]): string {
  if (names.length === 0) return "";
  const listed = names.map((name) => `"${name}"`).join(", ");
  return ` of ${names.length === 1 ? "column" : "columns"} ${listed}`;
}

function becauseOf(names: readonly string[]): string {
  return names.length === 0 ? "" : `, because of the values${ofColumns(names)}`;
}

function hasNull(column: Vector | undefined): boolean {
  if (column === undefined) return true;
  for (let row = 0; row < column.length; row += 1) if (isNullAt(column, row)) return true;
  return false;
}

/** Returns the number of bytes that a column's longest value takes up in a key. */
function longestOf(column: Vector | undefined): number {
  if (column?.kind === "i32" || column?.kind === "f64" || column?.kind === "bool") return 8;
  if (column?.kind !== "utf8") return Number.POSITIVE_INFINITY;
  let bytes = 0;
  for (let row = 0; row < column.length; row += 1) {
    bytes = Math.max(bytes, (column.offsets[row + 1] ?? 0) - (column.offsets[row] ?? 0));
  }
  return bytes;
}

const runtimes = new WeakMap<TableEntry, TableRuntime>();

/** Returns the runtime for a table definition, which is created on first use. */
export function runtimeOf(table: TableEntry): TableRuntime {
  let runtime = runtimes.get(table);
  if (runtime === undefined) {
    runtime = new TableRuntime(table);
    runtimes.set(table, runtime);
  }
  return runtime;
}

function typeAt(types: readonly DataType[], position: number): DataType {
  const type = types[position];
  assert(type !== undefined, "table runtime: column has no type");
  return type;
}

function compileDefault(column: ColumnEntry): DefaultValue | undefined {
  const sql = column.defaultSql ?? column.domain?.defaultSql;
  return sql === undefined ? undefined : compileDefaultSql(sql, column);
}

/** Compiles the DEFAULT of a column. */
export function compileDefaultSql(
  sql: string,
  column: Pick<ColumnEntry, "domain" | "type">,
): DefaultValue {
  const { type } = column;
  const node = parseStored(sql, [column]);
  return compileScalar(castTo(bindDefault(node), { to: type, mode: "assignment", node }));
}

/** Binds the expression of a DEFAULT, without the cast to the type of its column. */
export function bindDefault(node: Expr): BoundExpression {
  const statement = new StatementBinding([]);
  const context = { statement, scope: new Scope([]), clause: "DEFAULT", sink: undefined };
  const bound = bindExpression(node, context);
  statement.requireNoLock("DEFAULT");
  return bound;
}

function compileGenerated(table: TableEntry): GeneratedColumn[] {
  if (table.columns.every(({ generatedSql }) => generatedSql === undefined)) return [];
  const { layout, scope } = checkScope(table);
  return table.columns.flatMap(({ generatedSql, name, type }, position): GeneratedColumn[] => {
    if (generatedSql === undefined) return [];
    const node = parseStored(generatedSql, table.columns);
    const statement = new StatementBinding([]);
    const context = { statement, scope, clause: "GENERATED", sink: undefined };
    const bound = castTo(bindExpression(node, context), { to: type, mode: "assignment", node });
    return [{ name, position, evaluate: compileExpression(bound, layout) }];
  });
}

/** Compiles index expressions as checks, because they must not fail for any row. */
function compileKeys({ columns, indexes = [], name }: TableEntry): Check[] {
  const computed = indexes.filter(
    ({ expressions, where }) => expressions !== undefined || where !== undefined,
  );
  if (computed.length === 0) return [];
  const { layout, scope } = checkScope({ columns, name });
  return computed.flatMap((index) =>
    (storedIndexOf({ columns }, index).expressions ?? []).map(({ sql }): Check => {
      const statement = new StatementBinding([]);
      const context = { statement, scope, clause: "an index", sink: undefined };
      const key = compileExpression(bindExpression(parseStored(sql, columns), context), layout);
      return {
        kind: "index",
        name: index.name,
        columns: [],
        evaluate: (batch, execution) => {
          key(batch, execution);
          return constVector(true, batch.rowCount);
        },
      };
    }),
  );
}

/** Compiles the conditions of the columns' domains, and of the domains within their values. */
function compileDomains(table: TableEntry): Check[] {
  return table.columns.flatMap(({ domain, name: column, type }, position) => [
    ...(domain?.checks ?? []).map(({ name, sql }): Check => {
      assert(domain !== undefined, "table runtime: domain condition has no domain");
      const condition = bindDomainCheck(sql, domain, bindExpression);
      // The domain's condition reads the tested value as column 0.
      const evaluate = compileExpression(condition, new Map([[0, position]]));
      return { kind: "check", name, columns: [column], evaluate };
    }),
    ...compileParts(table, { name: column, type }, position),
  ]);
}

/** Compiles the test of the elements and fields of a column as a check that fails or is true. */
function compileParts(
  table: TableEntry,
  { name, type }: Pick<ColumnEntry, "name" | "type">,
  at: number,
): Check[] {
  const test = valueTest({ type }, compileExpression);
  if (test === undefined) return [];
  const evaluate: Evaluator = ({ columns, rowCount }, context) => {
    const values = columns[at] ?? constVector(null, rowCount);
    try {
      for (let row = 0; row < rowCount; row += 1) test(valueAt(values, row), context);
    } catch (error) {
      throw isDomainFault(error) ? withPlace(error, `column "${name}" of ${nameOf(table)}`) : error;
    }
    return constVector(true, rowCount);
  };
  return [{ kind: "column", name, columns: [name], evaluate }];
}

/** Compiles the check that some partition of the table accepts a row. */
function compileAcceptance({ partitioned, ...table }: TableEntry): Check[] {
  const { accepts } = partitioned ?? {};
  if (accepts === undefined) return [];
  const checks = [{ name: "partitions", sql: accepts }];
  return compileChecks({ ...table, checks }, "partition");
}

function compileChecks(table: TableEntry, kind: Check["kind"] = "check"): Check[] {
  const { columns, layout, scope } = checkScope(table);
  return table.checks.map(({ name, sql }) => {
    const statement = new StatementBinding([]);
    const context = { statement, scope, clause: "CHECK", sink: undefined };
    const condition = bindCondition(parseStored(sql, table.columns), context);
    assert(
      columns.length === table.columns.length,
      "table runtime: CHECK context lacks columns of the table",
    );
    const read = columnIdsIn(condition);
    return {
      kind,
      name,
      columns: columns.flatMap((column) => (read.has(column.id) ? [column.name] : [])),
      evaluate: compileExpression(condition, layout),
    };
  });
}

/** Compiles the checks of single partitions, which hold for rows of all other partitions. */
function compilePartitionChecks(table: TableEntry): Check[] {
  const { partitionChecks = [], ...rest } = table;
  const compiled = compileChecks({ ...rest, checks: partitionChecks });
  const own = compileChecks({
    ...rest,
    checks: partitionChecks.map((each) => ({ ...each, sql: each.own })),
  });
  return compiled.map(({ evaluate, kind, name }, i): Check => {
    const column = table.columns.find(({ columnId }) => columnId === partitionChecks[i]?.notNull);
    return { kind, name, evaluate, columns: own[i]?.columns ?? [], notNull: column?.name };
  });
}

/**
 * Returns the scope of CHECK constraints: the columns of the table, optionally qualified with its
 * name.
 */
export function checkScope({
  columns,
  name: alias,
}: {
  readonly columns: readonly Pick<ColumnEntry, "name" | "type">[];
  readonly name: string;
}): {
  columns: readonly BoundColumn[];
  layout: ReadonlyMap<number, number>;
  scope: Scope;
} {
  const bound = columns.map(({ name, type }, id): BoundColumn => ({ id, name, type }));
  const relation = { alias, namespace: undefined, columns: bound, systemColumns: [] };
  return {
    columns: bound,
    layout: new Map(bound.map(({ id }, position) => [id, position])),
    scope: new Scope([relation]),
  };
}
