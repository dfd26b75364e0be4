/**
 * Keeps the rows of a batch in columnar form until the server encodes them.
 *
 * A snapshot is read as vectors, and JSON can be written from vectors without creating an object
 * for each row or a string for each text value. Row objects are created only on request.
 *
 * Invariant: a page owns its data, so it remains valid after the scan has ended.
 */
import type { WireRow } from "../../protocol/mod.ts";
import { type Vector, valueAt } from "../../types/mod.ts";
import { cellBytes, NUMBER_BYTES_MAX, roughTextBytes } from "./frame_budget.ts";
import { cellOf, type ShapedRows, type ShapeField, type WireRowShape } from "./row_shape.ts";

export class RowPage {
  readonly shape: WireRowShape;
  readonly #parts: ShapedRows[] = [];
  #rowCount = 0;

  constructor(shape: WireRowShape) {
    this.shape = shape;
  }

  get rowCount(): number {
    return this.#rowCount;
  }

  /** The rows of the page, split into consecutive parts. */
  get parts(): readonly ShapedRows[] {
    return this.#parts;
  }

  /** Appends a copy of the rows. */
  add({ columns, rowCount }: ShapedRows): void {
    this.#parts.push({ rowCount, columns: columns.map(copyOf) });
    this.#rowCount += rowCount;
  }

  /** Returns the rows as new objects. */
  rows(): WireRow[] {
    return this.#parts.flatMap((part) => this.shape.rowsOf(part));
  }
}

/** Returns an upper bound on the size of rows, both in JSON and in MessagePack. */
export function roughBytesOf({ columns, rowCount }: ShapedRows, { fields }: WireRowShape): number {
  let bytes = 3 * rowCount;
  for (const [index, field] of fields.entries()) {
    const column = columns[index];
    if (column === undefined) continue;
    bytes += (roughTextBytes(field.name) + 2) * rowCount + roughBytesOfColumn(column, field);
  }
  return bytes;
}

function roughBytesOfColumn(column: Vector, field: ShapeField): number {
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

/** Copies the values, so that they remain valid after the scan. */
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
