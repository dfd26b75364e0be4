/**
 * What a table function is: a function in FROM, or in a select list, that gives rows.
 *
 * The rows are made as they are asked for, so that `LIMIT` ends a long series early and a killed
 * statement stops in the middle of one.
 */
import type { DataType, Row, Value } from "../../../types/mod.ts";
import type { Signature } from "../base/function.ts";

export interface ResultColumn {
  /** Undefined: it is named like the alias of the call, else like the function. */
  readonly name: string | undefined;
  readonly type: DataType;
}

export interface TableForm extends Signature {
  /** Called also when an argument is NULL; otherwise a NULL argument gives no rows. */
  readonly seesNull?: boolean;
  /**
   * The columns for argument types after casting; undefined if there is no such function for them
   * after all. "defined": the call lists them, `AS x (a INT, b TEXT)`.
   */
  readonly columns:
    | "defined"
    | ((types: readonly DataType[]) => readonly ResultColumn[] | undefined);
  /** @throws {DatabaseError} VALUE_OUT_OF_RANGE, INVALID_VALUE, … */
  rows(values: readonly Value[], shape: RowShape): Iterable<Row>;
}

/** What the rows of one call are made for. */
export interface RowShape {
  /** Of the arguments after casting. */
  readonly types: readonly DataType[];
  readonly columns: readonly { readonly name: string; readonly type: DataType }[];
}

export interface TableFunction {
  /** Lower case. */
  readonly name: string;
  readonly forms: readonly TableForm[];
}

/** The columns of a function that gives one column without a name of its own. */
export function oneColumn(type: DataType): () => readonly ResultColumn[] {
  return () => [{ name: undefined, type }];
}
