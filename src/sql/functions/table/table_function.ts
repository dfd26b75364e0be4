/**
 * Defines the interface of table functions, which return rows and are called in FROM or in a
 * select list.
 *
 * Rows are created on demand, so that `LIMIT` can end a long series early, and a killed statement
 * stops in the middle of a series.
 */
import type { DataType, DomainType, Row, Value } from "../../../types/mod.ts";
import type { CallDeps, Signature } from "../base/function.ts";

export interface ResultColumn {
  /**
   * The name of the result column. If undefined, the column is named after the alias of the call
   * or, without an alias, after the function.
   */
  readonly name: string | undefined;
  readonly type: DataType;
  /** The domain whose constraints the values must satisfy. */
  readonly domain?: DomainType;
}

export interface TableForm extends Signature {
  /**
   * Whether the function is called even if an argument is NULL. If false, a NULL argument yields
   * no rows.
   */
  readonly seesNull?: boolean;
  /**
   * The result columns for the given argument types after casting, or undefined if the function
   * turns out not to accept these types. "defined" means that the call lists its columns: `AS x (a
   * INT, b TEXT)`.
   */
  readonly columns:
    | "defined"
    | ((types: readonly DataType[]) => readonly ResultColumn[] | undefined);
  /**
   * Computes an array of rows from the arguments. `rows` then receives this array instead of the
   * arguments. Only for functions whose rows depend on the environment of the statement.
   */
  readonly compute?: (values: readonly Value[], call: CallDeps) => Value;
  /**
   * Yields the rows of a function call.
   * @throws {DatabaseError} VALUE_OUT_OF_RANGE, INVALID_VALUE, …
   */
  rows(values: readonly Value[], shape: CallRowShape): Iterable<Row>;
}

/** The argument types and result columns of a call, which determine the shape of its rows. */
export interface CallRowShape {
  /** The types of the arguments after casting. */
  readonly types: readonly DataType[];
  readonly columns: readonly { readonly name: string; readonly type: DataType }[];
}

export interface TableFunction {
  /** The name of the table function in lower case. */
  readonly name: string;
  readonly forms: readonly TableForm[];
}

/** Returns the columns of a table function that has a single column without a fixed name. */
export function oneColumn(type: DataType): () => readonly ResultColumn[] {
  return () => [{ name: undefined, type }];
}
