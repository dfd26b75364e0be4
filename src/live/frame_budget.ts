/**
 * Counts the bytes of rows, so that a message is cut before it grows too large.
 *
 * A bound that is quick to know comes first; the exact length of a text costs an encoding, so it
 * is asked for only where the bound is too much.
 */
import type { Cell, CellObject } from "../protocol/mod.ts";

/**
 * Bytes of a message around its rows: the longest id with every character escaped, and the rest.
 */
export const ENVELOPE_BYTES_MAX = 2048;

/** JSON of a number: sign, 17 digits, point, exponent; also more than any MessagePack number. */
export const NUMBER_BYTES_MAX = 25;

/**
 * Counts the bytes of the rows of one frame, so that a message is cut before it grows too large.
 */
export class FrameBudget {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(frameBytesMax: number) {
    this.#bytesMax = frameBytesMax - ENVELOPE_BYTES_MAX;
  }

  clear(): void {
    this.#bytes = 0;
  }

  /** Adds rows of at most so many bytes if they fit; the first rows, too. */
  admitsBytes(bytes: number): boolean {
    if (this.#bytes + bytes > this.#bytesMax) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Adds a row if it fits, or if it is the first. */
  admits(row: CellObject): boolean {
    const rough = rowBytes(row, roughTextBytes);
    let bytes = rough;
    // The exact length costs an encoding, so it is asked for only where the rough one is too much.
    if (this.#bytes + rough > this.#bytesMax) bytes = rowBytes(row, exactTextBytes);
    if (this.#bytes > 0 && this.#bytes + bytes > this.#bytesMax) return false;
    this.#bytes += bytes;
    return true;
  }
}

/** An upper bound for the bytes of a row, as JSON and as MessagePack. */
export function rowBytes(row: CellObject, textBytes: (text: string) => number): number {
  let bytes = 3;
  for (const name in row) {
    const cell: Cell | undefined = row[name];
    bytes += textBytes(name) + 2 + cellBytes(cell ?? null, textBytes);
  }
  return bytes;
}

/** Likewise of a cell. */
export function cellBytes(cell: Cell, textBytes: (text: string) => number): number {
  if (typeof cell === "string") return textBytes(cell);
  if (typeof cell === "object" && cell !== null) return 8 + cell.length * NUMBER_BYTES_MAX;
  return NUMBER_BYTES_MAX;
}

/** Six bytes a character is a JSON escape; MessagePack needs five before a text. */
export function roughTextBytes(text: string): number {
  return 6 * text.length + 5;
}

export function exactTextBytes(text: string): number {
  return Math.max(Buffer.byteLength(JSON.stringify(text)), Buffer.byteLength(text) + 5);
}
