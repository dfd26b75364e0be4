/**
 * The rows of one batch as columns, until the server writes them down.
 *
 * A snapshot is read as vectors, and JSON can be written of those without an object for each row
 * and a string for each text. Rows as objects are made for who asks.
 *
 * Invariant: a page owns what it holds, so it outlives the scan that its rows came from.
 */
import type { CellObject } from "../protocol/mod.ts";
import { type Vector, valueAt } from "../types/mod.ts";
import { cellBytes, NUMBER_BYTES_MAX, roughTextBytes } from "./frame_budget.ts";
import { cellOf, type Field, type RowShape, type ShapedRows } from "./row_shape.ts";

export class RowPage {
  readonly shape: RowShape;
  readonly #parts: ShapedRows[] = [];
  #rowCount = 0;

  constructor(shape: RowShape) {
    this.shape = shape;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /** The rows, in pieces that follow each other. */
  get parts(): readonly ShapedRows[] {
    return this.#parts;
  }

  /** Adds a copy of rows behind those that are there. */
  add({ columns, rowCount }: ShapedRows): void {
    this.#parts.push({ rowCount, columns: columns.map(copyOf) });
    this.#rowCount += rowCount;
  }

  /** The rows as objects, made anew. */
  rows(): CellObject[] {
    return this.#parts.flatMap((part) => this.shape.rowsOf(part));
  }
}

/** An upper bound for the bytes of rows, as JSON and as MessagePack. */
export function roughBytesOf({ columns, rowCount }: ShapedRows, { fields }: RowShape): number {
  let bytes = 3 * rowCount;
  for (const [index, field] of fields.entries()) {
    const column = columns[index];
    if (column === undefined) continue;
    bytes += (roughTextBytes(field.name) + 2) * rowCount + roughBytesOfColumn(column, field);
  }
  return bytes;
}

function roughBytesOfColumn(column: Vector, field: Field): number {
  const { length } = column;
  if (field.isPlain) {
    switch (column.kind) {
      case "f64":
      case "i32":
      case "bool":
        return NUMBER_BYTES_MAX * length;
      case "utf8": {
        const { offsets } = column;
        const byteCount = (offsets[length] ?? 0) - (offsets[0] ?? 0);
        return 6 * byteCount + Math.max(NUMBER_BYTES_MAX, roughTextBytes("")) * length;
      }
      default:
    }
  }
  let bytes = 0;
  for (let row = 0; row < length; row += 1) {
    bytes += cellBytes(cellOf(field, valueAt(column, row)), roughTextBytes);
  }
  return bytes;
}

/** The same values in memory of their own. */
function copyOf(vector: Vector): Vector {
  const { length } = vector;
  switch (vector.kind) {
    case "any":
    case "const":
      return vector;
    case "utf8": {
      const { bytes, offsets } = vector;
      const start = offsets[0] ?? 0;
      const end = offsets[length] ?? start;
      const nulls = vector.nulls?.slice(0, length);
      const own = offsets.slice(0, length + 1);
      for (let row = 0; row <= length; row += 1) own[row] = (own[row] ?? 0) - start;
      const copy = Buffer.allocUnsafeSlow(end - start);
      copy.set(bytes.subarray(start, end));
      return { kind: "utf8", length, bytes: copy, offsets: own, nulls };
    }
    case "dict": {
      const { codes, values } = vector;
      const nulls = vector.nulls?.slice(0, length);
      return { kind: "dict", length, codes: codes.slice(0, length), values, nulls };
    }
    case "bool": {
      const nulls = vector.nulls?.slice(0, length);
      return { kind: "bool", length, values: vector.values.slice(0, length), nulls };
    }
    case "i32": {
      const nulls = vector.nulls?.slice(0, length);
      return { kind: "i32", length, values: vector.values.slice(0, length), nulls };
    }
    case "f64": {
      const nulls = vector.nulls?.slice(0, length);
      return { kind: "f64", length, values: vector.values.slice(0, length), nulls };
    }
  }
}
