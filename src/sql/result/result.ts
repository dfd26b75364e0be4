/**
 * Builds the results of statements for responses: converts columns to schema fields, and batches
 * of rows to wire cells.
 */
import type { SchemaField } from "../../protocol/mod.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../../storage/mod.ts";
import {
  type Batch,
  cellMakerFor,
  type DataType,
  dataTypeWord,
  isCellIdentity,
  type Row,
  textsOf,
  type Value,
  valueAt,
} from "../../types/mod.ts";
import type { BoundOutput } from "../bind/bound.ts";
import type { StatementResult } from "../ports/engine.ts";

type CellMaker = (value: Value) => unknown;

/** Converts batches with fixed column types to rows of wire cells. */
export class CellRows {
  readonly types: readonly DataType[];
  readonly #makers: readonly (CellMaker | undefined)[];

  /**
   * Creates a converter for rows of the given types.
   * @param makerFor Returns the function that creates the cells of a type at a position. By
   *   default, the cells are those of HTTP responses.
   */
  constructor(
    types: readonly DataType[],
    makerFor: (type: DataType, position: number) => CellMaker = cellMakerFor,
  ) {
    this.types = types;
    this.#makers = types.map((type, position) =>
      isCellIdentity(type) ? undefined : makerFor(type, position),
    );
  }

  /**
   * Returns the cells of a row, which must not have more columns than there are types. If the
   * values are already cells, the row itself is returned.
   */
  cellsOf(row: Row): readonly unknown[] {
    let cells: unknown[] | undefined;
    for (let position = 0; position < this.#makers.length; position += 1) {
      const value = row[position] ?? null;
      const make = this.#makers[position];
      const cell = value === null || make === undefined ? value : make(value);
      if (cell !== row[position]) cells ??= row.slice(0, position);
      cells?.push(cell);
    }
    return cells ?? row;
  }

  /** Appends the rows of a batch. Columns for which the converter has no type are omitted. */
  append({ columns, rowCount }: Batch, rows: unknown[][]): void {
    const width = this.#makers.length;
    const start = rows.length;
    for (let row = 0; row < rowCount; row += 1) rows.push([]);
    for (let position = 0; position < width; position += 1) {
      const column = columns[position];
      const make = this.#makers[position];
      if (column === undefined) continue;
      // Decodes the strings of a column as substrings of one large string. The response contains
      // all of them, so keeping the large string alive wastes no memory.
      const texts = column.kind === "utf8" && rowCount > 1 ? textsOf(column) : undefined;
      for (let row = 0; row < rowCount; row += 1) {
        const value = texts === undefined ? valueAt(column, row) : (texts[row] ?? null);
        rows[start + row]?.push(value === null || make === undefined ? value : make(value));
      }
    }
  }
}

/** Returns the response fields of a select list. */
export function fieldsOf(outputs: readonly BoundOutput[]): SchemaField[] {
  return outputs.map(({ expression, name }, index) => {
    const flags = flagsOf(expression);
    const field = { name, data_type: dataTypeWord(expression.type), index };
    return flags.length === 0 ? field : { ...field, flags };
  });
}

type Flag = "pk" | "nn" | "uq";

function flagsOf(expression: BoundOutput["expression"]): Flag[] {
  if (expression.kind !== "column" || expression.column.origin === undefined) return [];
  const { columnId, table } = expression.column.origin;
  if (columnId === SEQ_COLUMN_ID || columnId === DELETED_COLUMN_ID) return ["nn"];
  if (table.primaryKey.includes(columnId)) return ["pk", "nn", "uq"];
  const column = table.columns.find((entry) => entry.columnId === columnId);
  return column?.notNull === true ? ["nn"] : [];
}

/** A result column that does not come from a query. */
export interface PlainColumn {
  readonly name: string;
  readonly type: DataType;
}

/** Builds the result of a statement from rows that already exist. */
export function rowsResult(
  columns: readonly PlainColumn[],
  rows: readonly Row[],
  asUser: string,
): StatementResult {
  const makers = columns.map(({ type }) => cellMakerFor(type));
  return {
    schema: columns.map(({ name, type }, index) => ({
      name,
      data_type: dataTypeWord(type),
      index,
    })),
    rows: rows.map((row) =>
      makers.map((make, position) => {
        const value = row[position] ?? null;
        return value === null ? null : make(value);
      }),
    ),
    rowCount: rows.length,
    asUser,
  };
}

/** Builds the result of a statement that returns no rows. */
export function messageResult(message: string, asUser: string): StatementResult {
  return { rowCount: 0, message, asUser };
}
