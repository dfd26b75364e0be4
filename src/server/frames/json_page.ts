/**
 * A batch of rows as JSON, written from its columns.
 *
 * Invariant: the text means what `jsonFromMessage` says of the same batch.
 */
import { assert } from "../../base/assert.ts";
import { cellOf, type Field, type PagedBatch, type ShapedRows } from "../../live/mod.ts";
import type { Cell } from "../../protocol/mod.ts";
import { textSourceOf, type Value, type Vector, valueAt } from "../../types/mod.ts";
import { type JsonPiece, JsonWriter, jsonPiece } from "./json_writer.ts";

/** One for all: a batch is written in one turn. */
const writer = new JsonWriter();

const NULL: JsonPiece = jsonPiece("null");
const COMMA: JsonPiece = jsonPiece(",");
const ROW_END: JsonPiece = jsonPiece("}");

/** Writes the cell of a row. */
type PutCell = (row: number) => void;

/** What stands before the cell of each field, by the fields. */
const namePieces = new WeakMap<readonly Field[], readonly JsonPiece[]>();

/**
 * The texts of a dictionary as JSON, as far as they were needed; vectors of many batches share it.
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

function putRows({ columns, rowCount }: ShapedRows, fields: readonly Field[], isFirst: boolean) {
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

function namesOf(fields: readonly Field[]): readonly JsonPiece[] {
  let names = namePieces.get(fields);
  if (names === undefined) {
    names = fields.map(({ name }, index) => {
      return jsonPiece(`${index === 0 ? "{" : ","}${JSON.stringify(name)}:`);
    });
    namePieces.set(fields, names);
  }
  return names;
}

function cellPutter(column: Vector, field: Field | undefined): PutCell {
  assert(field !== undefined, "every column of a page has a field");
  const put = field.isPlain ? plainPutter(column) : undefined;
  if (put === undefined) return (row) => writer.json(jsonOf(cellOf(field, valueAt(column, row))));
  if (column.kind === "any" || column.kind === "const" || column.nulls === undefined) return put;
  const { nulls } = column;
  return (row) => {
    if (nulls[row] === 1) writer.piece(NULL);
    else put(row);
  };
}

/** For values that are cells as they are; undefined where they have to be looked at. */
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

/** A whole number beyond 2^53 is decimal text, as in every message. */
function jsonOf(cell: Cell): string {
  return typeof cell === "bigint" ? `"${cell}"` : JSON.stringify(cell);
}
