/**
 * Writes a batch of rows as JSON directly from its columns.
 *
 * Invariant: the result is equivalent to what `jsonFromMessage` returns for the same batch.
 */
import { assert } from "../../base/assert.ts";
import { cellOf, type PagedBatch, type ShapedRows, type ShapeField } from "../../live/mod.ts";
import type { WireCell } from "../../protocol/mod.ts";
import { textSourceOf, type Value, type Vector, valueAt } from "../../types/mod.ts";
import { type JsonPiece, JsonWriter, jsonPiece } from "./json_writer.ts";

/** All batches share one writer, because each batch is written completely within one tick. */
const writer = new JsonWriter();

const NULL: JsonPiece = jsonPiece("null");
const COMMA: JsonPiece = jsonPiece(",");
const ROW_END: JsonPiece = jsonPiece("}");

/** Writes the cell of the given row in a particular column. */
type PutCell = (row: number) => void;

/** The JSON text before the cell of each field, cached for each list of fields. */
const namePieces = new WeakMap<readonly ShapeField[], readonly JsonPiece[]>();

/**
 * The JSON of each string in a dictionary, written on first use and kept because the vectors of
 * many batches share a dictionary.
 */
const dictionaryPieces = new WeakMap<readonly Value[], (JsonPiece | undefined)[]>();

export function jsonFromPage({ control, rows, subscriptionId }: PagedBatch): string {
  const { fields } = rows.shape;
  const id = JSON.stringify(subscriptionId);
  writer.json(`{"type":"initial_data_batch","subscription_id":${id},"rows":[`);
  let isFirst = true;
  for (const part of rows.parts) {
    putRows(part, fields, isFirst);
    isFirst &&= part.rowCount === 0;
  }
  writer.json(`],"batch_control":${JSON.stringify(control)}}`);
  return writer.finish();
}

function putRows(
  { columns, rowCount }: ShapedRows,
  fields: readonly ShapeField[],
  isFirst: boolean,
) {
  const names = namesOf(fields);
  const cells = columns.map((column, index) => cellPutter(column, fields[index]));
  for (let row = 0; row < rowCount; row += 1) {
    if (row > 0 || !isFirst) writer.piece(COMMA);
    for (let index = 0; index < cells.length; index += 1) {
      const name = names[index];
      if (name !== undefined) writer.piece(name);
      cells[index]?.(row);
    }
    writer.piece(ROW_END);
  }
}

function namesOf(fields: readonly ShapeField[]): readonly JsonPiece[] {
  let names = namePieces.get(fields);
  if (names === undefined) {
    names = fields.map(({ name }, index) => {
      return jsonPiece(`${index === 0 ? "{" : ","}${JSON.stringify(name)}:`);
    });
    namePieces.set(fields, names);
  }
  return names;
}

function cellPutter(column: Vector, field: ShapeField | undefined): PutCell {
  assert(field !== undefined, "JSON page: column has no field");
  const put = field.isPlain ? plainPutter(column) : undefined;
  if (put === undefined) return (row) => writer.json(jsonOf(cellOf(field, valueAt(column, row))));
  if (column.kind === "any" || column.kind === "const" || column.nulls === undefined) return put;
  const { nulls } = column;
  return (row) => {
    if (nulls[row] === 1) writer.piece(NULL);
    else put(row);
  };
}

/**
 * Returns a function that writes the values of a column if none of them needs conversion;
 * otherwise undefined.
 */
function plainPutter(column: Vector): PutCell | undefined {
  switch (column.kind) {
    case "f64": {
      const { values } = column;
      return (row) => writer.number(values[row] ?? 0);
    }
    case "i32": {
      const { values } = column;
      return (row) => writer.number(values[row] ?? 0);
    }
    case "utf8": {
      const { offsets } = column;
      const source = textSourceOf(column.bytes);
      return (row) => writer.text(source, offsets[row] ?? 0, offsets[row + 1] ?? 0);
    }
    case "dict": {
      const { codes, values } = column;
      const pieces = piecesOf(values);
      return (row) => {
        const code = codes[row] ?? 0;
        const piece = (pieces[code] ??= jsonPiece(JSON.stringify(values[code] ?? null)));
        writer.piece(piece);
      };
    }
    default:
      return undefined;
  }
}

function piecesOf(dictionary: readonly Value[]): (JsonPiece | undefined)[] {
  let pieces = dictionaryPieces.get(dictionary);
  if (pieces === undefined) dictionaryPieces.set(dictionary, (pieces = []));
  return pieces;
}

/** Writes an integer beyond 2^53 as a decimal string, as all other messages do. */
function jsonOf(cell: WireCell): string {
  if (typeof cell === "bigint") return `"${cell}"`;
  return Array.isArray(cell) ? `[${cell.map(jsonOf).join(",")}]` : JSON.stringify(cell);
}
