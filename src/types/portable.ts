/**
 * Prepares batches for another thread by copying vectors into memory that can be transferred.
 */
import type { Value } from "./value.ts";
import type { Batch, Vector } from "./vector.ts";

export interface PortableBatch {
  readonly batch: Batch;
  /** The memory to transfer. The sending thread can no longer use it afterwards. */
  readonly moved: readonly ArrayBuffer[];
  /** The approximate number of bytes sent. */
  readonly bytes: number;
}

/** How many bytes a value is estimated to take in addition to its text or bytes. */
const PLAIN_BYTES = 32;

type TransferableNumbers = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array;

/** Copies elements into transferable memory. */
type Own = <T extends TransferableNumbers>(array: T, start: number, end: number) => T;

/** Bytes read from a file are a Buffer, and the `slice` method of Buffer does not copy. */
function copied<T extends TransferableNumbers>(array: T, start: number, end: number): T;
function copied(array: TransferableNumbers, start: number, end: number): TransferableNumbers {
  return array instanceof Uint8Array
    ? new Uint8Array(array.subarray(start, end))
    : array.slice(start, end);
}

/** Copies the first columns of a batch, to send them to another thread. */
export function portableBatch({ columns, rowCount }: Batch, columnCount: number): PortableBatch {
  const moved: ArrayBuffer[] = [];
  let bytes = 0;
  const own: Own = (array, start, end) => {
    const copy = copied(array, start, end);
    moved.push(copy.buffer as ArrayBuffer);
    bytes += copy.byteLength;
    return copy;
  };
  const sent = columns.slice(0, columnCount).map((column): Vector => {
    switch (column.kind) {
      case "const":
        bytes += plainBytes(column.value);
        return { kind: "const", length: column.length, value: column.value };
      case "any":
        for (const value of column.values) bytes += plainBytes(value);
        return { kind: "any", length: column.length, values: column.values };
      case "utf8":
        return portableTexts(column, own);
      default: {
        const { kind, length } = column;
        const nulls = column.nulls === undefined ? undefined : own(column.nulls, 0, length);
        if (kind === "dict") {
          const { codes, values } = column;
          for (const value of values) bytes += plainBytes(value);
          return { kind, length, codes: own(codes, 0, length), values, nulls };
        }
        if (kind === "bool") return { kind, length, values: own(column.values, 0, length), nulls };
        if (kind === "i32") return { kind, length, values: own(column.values, 0, length), nulls };
        return { kind, length, values: own(column.values, 0, length), nulls };
      }
    }
  });
  return { batch: { rowCount, columns: sent }, moved, bytes };
}

/** Estimates the bytes of a value sent as an object. */
function plainBytes(value: Value): number {
  if (typeof value === "string") return PLAIN_BYTES + value.length;
  if (ArrayBuffer.isView(value)) return PLAIN_BYTES + value.byteLength;
  return Array.isArray(value) ? PLAIN_BYTES * (1 + value.length) : PLAIN_BYTES;
}

function portableTexts(
  { bytes, length, nulls, offsets }: Extract<Vector, { kind: "utf8" }>,
  own: Own,
): Vector {
  const first = offsets[0] ?? 0;
  const ends = own(offsets, 0, length + 1);
  if (first > 0) for (let row = 0; row <= length; row += 1) ends[row] = (ends[row] ?? 0) - first;
  return {
    kind: "utf8",
    length,
    bytes: own(bytes, first, offsets[length] ?? 0),
    offsets: ends,
    nulls: nulls === undefined ? undefined : own(nulls, 0, length),
  };
}
