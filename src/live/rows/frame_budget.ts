/**
 * Counts the bytes of rows, so that a message ends before it grows too large.
 *
 * A cheap upper bound on the size is tried first. The exact size is computed only if that bound
 * exceeds the remaining space, because computing it requires encoding each string.
 */
import type { WireCell, WireRow } from "../../protocol/mod.ts";

/**
 * The maximum size of a message without its rows, in bytes, if its id has the maximum length and
 * every character of the id is escaped.
 */
export const ENVELOPE_BYTES_MAX = 2048;

/**
 * The maximum length of a number in JSON: a sign, 17 digits, a decimal point and an exponent. In
 * MessagePack, a number is always shorter.
 */
export const NUMBER_BYTES_MAX = 25;

/** Counts the bytes of the rows in a frame, so that the frame ends before it becomes too large. */
export class FrameBudget {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(frameBytesMax: number) {
    this.#bytesMax = frameBytesMax - ENVELOPE_BYTES_MAX;
  }

  clear(): void {
    this.#bytes = 0;
  }

  /** Adds rows of at most `bytes` bytes if they fit. Returns false if they do not. */
  admitsBytes(bytes: number): boolean {
    if (this.#bytes + bytes > this.#bytesMax) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Adds a row if it fits. The first row always fits. */
  admits(row: WireRow): boolean {
    const rough = rowBytes(row, roughTextBytes);
    let bytes = rough;
    // The exact size is computed only if the rough bound exceeds the remaining space, because
    // computing it requires encoding the strings.
    if (this.#bytes + rough > this.#bytesMax) bytes = rowBytes(row, exactTextBytes);
    if (this.#bytes > 0 && this.#bytes + bytes > this.#bytesMax) return false;
    this.#bytes += bytes;
    return true;
  }
}

/** Returns an upper bound on the size of a row, both in JSON and in MessagePack. */
export function rowBytes(row: WireRow, textBytes: (text: string) => number): number {
  let bytes = 3;
  for (const name in row) {
    const cell: WireCell | undefined = row[name];
    bytes += textBytes(name) + 2 + cellBytes(cell ?? null, textBytes);
  }
  return bytes;
}

/** Returns an upper bound on the size of a cell, both in JSON and in MessagePack. */
export function cellBytes(cell: WireCell, textBytes: (text: string) => number): number {
  if (typeof cell === "string") return textBytes(cell);
  if (typeof cell !== "object" || cell === null) return NUMBER_BYTES_MAX;
  if (typeof cell[0] === "number") return 8 + cell.length * NUMBER_BYTES_MAX;
  let bytes = 8;
  for (const item of cell) bytes += cellBytes(item, textBytes);
  return bytes;
}

/**
 * Returns an upper bound on the encoded size of a string. JSON escapes take up to six bytes per
 * character, and MessagePack puts up to five bytes in front of a string.
 */
export function roughTextBytes(text: string): number {
  return 6 * text.length + 5;
}

export function exactTextBytes(text: string): number {
  return Math.max(Buffer.byteLength(JSON.stringify(text)), Buffer.byteLength(text) + 5);
}
