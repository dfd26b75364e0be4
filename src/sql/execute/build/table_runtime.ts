/**
 * What writing a table needs, compiled once for each of its definitions: defaults, checks, key.
 */
import { assert } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { KEY_BYTES_MAX } from "../../../base/limits.ts";
import type { ColumnEntry, TableEntry } from "../../../catalog/mod.ts";
import {
  type Batch,
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
import { bindCondition, bindExpression } from "../../bind/expression/expression_binder.ts";
import { Scope } from "../../bind/scope.ts";
import { columnIdsIn } from "../../bind/walk.ts";
import type { Expr } from "../../parse/ast/ast.ts";
import { parseExpression } from "../../parse/parser.ts";
import { compileExpression, type Evaluator } from "../evaluate/expression.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { columnsFromRows, rowsFromBatch } from "../operators/filter.ts";
import type { Run } from "../run/run.ts";

type DefaultValue = (run: Run) => Value;

interface Check {
  readonly name: string;
  /** Names of those that it reads, in the order of the table. */
  readonly columns: readonly string[];
  readonly evaluate: Evaluator;
}

interface FaultyRow {
  readonly row: number;
  readonly fault: DatabaseError;
}

export class TableRuntime {
  readonly table: TableEntry;
  readonly types: readonly DataType[];
  /** Where the key columns stand, in key order. */
  readonly keyPositions: readonly number[];
  readonly keyTypes: readonly DataType[];
  /** Positions of FILE columns. */
  readonly filePositions: readonly number[];
  readonly #defaults: readonly (DefaultValue | undefined)[];
  readonly #notNull: readonly number[];
  readonly #checks: readonly Check[];
  readonly #hasLongKey: boolean;

  constructor(table: TableEntry) {
    this.table = table;
    this.types = table.columns.map(({ type }) => type);
    this.keyPositions = table.primaryKey.map((columnId) => {
      const position = table.columns.findIndex((column) => column.columnId === columnId);
      assert(position !== -1, "a key column is a column of the table");
      return position;
    });
    this.keyTypes = this.keyPositions.map((position) => typeAt(this.types, position));
    this.filePositions = this.types.flatMap(({ kind }, i) => (kind === "file" ? [i] : []));
    this.#defaults = table.columns.map((column) => compileDefault(column));
    this.#notNull = table.columns.flatMap(({ notNull }, i) => (notNull ? [i] : []));
    this.#checks = compileChecks(table);
    this.#hasLongKey = this.keyTypes.some(({ kind }) => kind === "text" || kind === "bytes");
  }

  defaultAt(position: number, run: Run): Value {
    return this.#defaults[position]?.(run) ?? null;
  }

  hasDefault(position: number): boolean {
    return this.#defaults[position] !== undefined;
  }

  keyOf(row: Row): Row {
    return this.keyPositions.map((position) => row[position] ?? null);
  }

  /**
   * Checks rows against NOT NULL, CHECK and the size of a key; the first faulty row decides.
   *
   * @throws {DatabaseError} NOT_NULL_VIOLATION, CHECK_VIOLATION, VALUE_TOO_LONG
   */
  check(rows: readonly Row[], run: Run): void {
    let fault: DatabaseError | undefined;
    let soundCount = 0;
    for (; soundCount < rows.length; soundCount += 1) {
      fault = this.#faultOf(rows[soundCount] ?? []);
      if (fault !== undefined) break;
    }
    if (this.#checks.length > 0) {
      const sound = fault === undefined ? rows : rows.slice(0, soundCount);
      this.#runChecks({ rowCount: soundCount, columns: columnsFromRows(sound, this.types) }, run);
    }
    if (fault !== undefined) throw fault;
  }

  /** What a row lacks before any CHECK is asked. */
  #faultOf(row: Row): DatabaseError | undefined {
    for (const position of this.#notNull) {
      if (row[position] === null || row[position] === undefined) return this.#isNull(position);
    }
    return this.#hasLongKey ? this.#faultOfKey(row) : undefined;
  }

  /** As {@linkcode check}, for all columns of the table. @throws {DatabaseError} The same. */
  checkBatch(batch: Batch, run: Run): void {
    if (this.#mayBeFaulty(batch)) this.check(rowsFromBatch(batch), run);
    else if (this.#checks.length > 0) this.#runChecks(batch, run);
  }

  /** Whether NULLs or long keys make it necessary to look at row after row. */
  #mayBeFaulty({ columns }: Batch): boolean {
    if (this.#notNull.some((position) => hasNull(columns[position]))) return true;
    if (!this.#hasLongKey) return false;
    let keyBytes = 0;
    for (const position of this.keyPositions) keyBytes += longestOf(columns[position]);
    return keyBytes > KEY_BYTES_MAX;
  }

  #runChecks(batch: Batch, run: Run): void {
    let first: FaultyRow | undefined;
    let before = batch;
    for (const check of this.#checks) {
      const found = this.#firstFaultOf(check, before, run);
      if (found === undefined) continue;
      first = found;
      // Only a row before it can still be the first; of this one, its first CHECK decides.
      if (found.row === 0) break;
      before = partOf(before, 0, found.row);
    }
    if (first !== undefined) throw first.fault;
  }

  /** The first row that a CHECK refuses, or fails on. */
  #firstFaultOf(check: Check, batch: Batch, run: Run): FaultyRow | undefined {
    const { rowCount } = batch;
    let truth: Vector;
    try {
      truth = check.evaluate(batch, run);
    } catch (error) {
      if (!isFaultOfValue(error)) throw error;
      if (rowCount === 0) return undefined;
      if (rowCount === 1) return { row: 0, fault: this.#failed(check, error) };
      // It does not say on which row: the halves do.
      const half = Math.floor(rowCount / 2);
      const early = this.#firstFaultOf(check, partOf(batch, 0, half), run);
      if (early !== undefined) return early;
      const late = this.#firstFaultOf(check, partOf(batch, half, rowCount), run);
      return late && { row: half + late.row, fault: late.fault };
    }
    for (let row = 0; row < rowCount; row += 1) {
      if (valueAt(truth, row) === false) return { row, fault: this.#violates(check) };
    }
    return undefined;
  }

  #violates({ columns, name }: Check): DatabaseError {
    return new DatabaseError(
      "CHECK_VIOLATION",
      `Cannot write a row of ${nameOf(this.table)}: it violates check "${name}"${ofColumns(columns)}`,
    );
  }

  #failed({ name }: Check, cause: DatabaseError): DatabaseError {
    const { condition, hint, message } = cause;
    return new DatabaseError(condition, `${message} (check "${name}" of ${nameOf(this.table)})`, {
      cause,
      ...(hint === undefined ? {} : { hint }),
    });
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
      `Cannot write a row of ${nameOf(this.table)}: its key has ${bytes} bytes, the most is ${KEY_BYTES_MAX}`,
    );
  }

  #isNull(position: number): DatabaseError {
    const name = this.table.columns[position]?.name ?? "";
    return new DatabaseError(
      "NOT_NULL_VIOLATION",
      `Cannot write a row of ${nameOf(this.table)}: column "${name}" must not be NULL`,
    );
  }
}

/** " of column "a"", as it stands behind the name of a check. */
function ofColumns(names: readonly string[]): string {
  if (names.length === 0) return "";
  const listed = names.map((name) => `"${name}"`).join(", ");
  return ` of ${names.length === 1 ? "column" : "columns"} ${listed}`;
}

function hasNull(column: Vector | undefined): boolean {
  if (column === undefined) return true;
  for (let row = 0; row < column.length; row += 1) if (isNullAt(column, row)) return true;
  return false;
}

/** Bytes of the longest value, as a key counts them. */
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

/** The runtime of a definition, made at first use. */
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
  assert(type !== undefined, "a column has a type");
  return type;
}

function compileDefault({ defaultSql, type }: ColumnEntry): DefaultValue | undefined {
  return defaultSql === undefined ? undefined : compileDefaultSql(defaultSql, type);
}

/** Compiles a DEFAULT. */
export function compileDefaultSql(sql: string, type: DataType): DefaultValue {
  const node = parseExpression(sql);
  return compileScalar(castTo(bindDefault(node), { to: type, mode: "assignment", node }));
}

/** Binds what a DEFAULT says, as it is before it is cast to the type of its column. */
export function bindDefault(node: Expr): BoundExpression {
  const statement = new StatementBinding([]);
  const place = { statement, scope: new Scope([]), clause: "DEFAULT", sink: undefined };
  const bound = bindExpression(node, place);
  statement.requireNoSleep("DEFAULT");
  return bound;
}

function compileChecks(table: TableEntry): Check[] {
  const { columns, layout, scope } = checkScope(table);
  return table.checks.map(({ name, sql }) => {
    const statement = new StatementBinding([]);
    const place = { statement, scope, clause: "CHECK", sink: undefined };
    const condition = bindCondition(parseExpression(sql), place);
    assert(columns.length === table.columns.length, "a check sees every column");
    const read = columnIdsIn(condition);
    return {
      name,
      columns: columns.flatMap((column) => (read.has(column.id) ? [column.name] : [])),
      evaluate: compileExpression(condition, layout),
    };
  });
}

/** The columns of a table as CHECK sees them, also under the name of the table. */
export function checkScope({ columns, name: alias }: Pick<TableEntry, "columns" | "name">): {
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
