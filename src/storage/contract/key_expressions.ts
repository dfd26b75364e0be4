/**
 * Defines expressions that are part of an index key. The store keeps the SQL of an expression, and
 * the SQL layer computes its values.
 *
 * - An expression is immutable: its value depends only on the row. Any thread can therefore
 *   compute it at any time, and an index can be rebuilt from its rows.
 * - If an expression fails for a row, its value for that row is NULL. Higher layers refuse such
 *   rows when they are written, so it can fail only for rows older than the index.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  constVector,
  type DataType,
  type Row,
  TEXT,
  type TermKind,
  textsOf,
  type Value,
  type Vector,
  valueAt,
  valuesOf,
  vectorFromValues,
} from "../../types/mod.ts";
import type { StoredColumn } from "./table_definition.ts";

/** An expression over the columns of a table, as plain data. */
export interface KeyExpression {
  readonly sql: string;
  readonly type: DataType;
  /** The columns that the key expression reads. */
  readonly reads: readonly StoredColumn[];
  /**
   * Set for a part of an inverted index. The expression then returns the terms of the value,
   * joined into one string.
   */
  readonly terms?: TermKind | undefined;
}

/** A part of an index key: a column of the table, or an expression. */
export interface IndexColumn extends StoredColumn {
  readonly expression?: KeyExpression | undefined;
}

/** Whether the key parts belong to an inverted index. */
export function holdsTerms(columns: readonly Pick<IndexColumn, "expression">[]): boolean {
  return columns.some(({ expression }) => expression?.terms !== undefined);
}

/** Returns the expressions that compute an inverted index's terms. */
export function termExpressionsOf(columns: readonly IndexColumn[]): readonly KeyExpression[] {
  return columns.map(({ expression }) =>
    defined(expression, "inverted index: term column has no expression"),
  );
}

/**
 * Returns the terms of each row, joined into one string, given the values computed for one part of
 * an inverted index.
 */
export function joinedTermsOf(vector: Vector): readonly (string | null)[] {
  if (vector.kind === "utf8") return textsOf(vector);
  return valuesOf(vector).map((value) => (typeof value === "string" ? value : null));
}

/**
 * Computes an expression for `rowCount` rows, given the columns that it reads.
 *
 * @throws {DatabaseError} If the expression fails for any of the rows.
 */
export type KeyComputation = (columns: readonly Vector[], rowCount: number) => Vector;

export type KeyCompiler = (expression: KeyExpression) => KeyComputation;

let compile: KeyCompiler | undefined;
const compiled = new WeakMap<KeyExpression, KeyComputation>();

/** Sets the function that compiles key expressions in this thread. */
export function setKeyCompiler(compiler: KeyCompiler): void {
  compile = compiler;
}

/** Whether this thread is able to compute key expressions. */
export function canComputeKeys(): boolean {
  return compile !== undefined;
}

/**
 * Computes the values of an expression. The value for a row is NULL if the expression fails for
 * the row.
 */
export function computedKeys(
  expression: KeyExpression,
  columns: readonly Vector[],
  rowCount: number,
): Vector {
  const compute = computationOf(expression);
  try {
    return compute(columns, rowCount);
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
  }
  // The error does not tell which row failed, so the expression is computed again for each row
  // separately.
  const values: Value[] = [];
  for (let row = 0; row < rowCount; row += 1) {
    values.push(
      computedKey(
        expression,
        columns.map((column) => valueAt(column, row)),
      ),
    );
  }
  return vectorFromValues(expression.terms === undefined ? expression.type : TEXT, values);
}

/**
 * Computes an expression for one row, given the values that the expression reads. Returns NULL if
 * the computation fails.
 */
export function computedKey(expression: KeyExpression, row: Row): Value {
  const compute = computationOf(expression);
  const columns = expression.reads.map(({ type }, at) => {
    const value = row[at] ?? null;
    return value === null ? constVector(null, 1) : vectorFromValues(type, [value]);
  });
  try {
    return valueAt(compute(columns, 1), 0);
  } catch (error) {
    if (error instanceof DatabaseError) return null;
    throw error;
  }
}

function computationOf(expression: KeyExpression): KeyComputation {
  let compute = compiled.get(expression);
  if (compute === undefined) {
    compute = defined(
      compile,
      "expression index: this thread has no expression compiler",
    )(expression);
    compiled.set(expression, compute);
  }
  return compute;
}
