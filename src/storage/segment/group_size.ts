/**
 * Decides where a row group ends: after ROW_GROUP_ROWS_MAX rows, or earlier if it would exceed a
 * size limit.
 */
import { assert } from "../../base/assert.ts";
import { ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import { isArrayValue, type Value, type Vector } from "../../types/mod.ts";

/**
 * The maximum size in bytes of the text and binary values in one row group. Only a single row may
 * exceed it. A thread that writes or reads a chunk has several copies of it in memory: its parts,
 * the whole chunk, and the packed chunk. With a limit of 64 MiB, a merge of wide rows alone
 * exceeded the minimum memory of a server.
 */
export const GROUP_BYTES_MAX: number = 8 * 1024 * 1024;

/** Returns the end (exclusive) of the row group that begins at `start`. */
export function groupEnd(vectors: readonly Vector[], start: number, rowCount: number): number {
  assert(start < rowCount, "segment writer: row group would be empty");
  let end = Math.min(rowCount, start + ROW_GROUP_ROWS_MAX);
  while (end - start > 1 && bytesWithin(vectors, start, end) > GROUP_BYTES_MAX) {
    end = start + Math.ceil((end - start) / 2);
  }
  return end;
}

/** Returns the total size in bytes of all values other than numbers in a range of rows. */
export function bytesWithin(vectors: readonly Vector[], start: number, end: number): number {
  let byteCount = 0;
  for (const vector of vectors) {
    if (vector.kind === "utf8") {
      byteCount += (vector.offsets[end] ?? 0) - (vector.offsets[start] ?? 0);
    } else if (vector.kind === "any") {
      for (let row = start; row < end; row += 1) byteCount += bytesOf(vector.values[row] ?? null);
    } else if (vector.kind === "dict") {
      const lengths = vector.values.map(bytesOf);
      for (let row = start; row < end; row += 1) byteCount += lengths[vector.codes[row] ?? 0] ?? 0;
    } else if (vector.kind === "const") {
      byteCount += bytesOf(vector.value) * (end - start);
    }
  }
  return byteCount;
}

function bytesOf(value: Value): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (value instanceof Uint8Array || value instanceof Float32Array) return value.byteLength;
  return isArrayValue(value) ? value.reduce<number>((sum, item) => sum + 9 + bytesOf(item), 0) : 0;
}
