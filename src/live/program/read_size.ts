/**
 * Decides how many versions of a table are read at a time: as many as a byte limit allows,
 * estimated from the size of recent versions.
 *
 * To fill a single frame, a reader that counted only rows might decode 256 versions of 100 KB and
 * the versions that they replaced, 50 MB in all. It would discard the rest when that frame filled
 * the socket. The size of a version is known only after the version has been read. The first
 * batches are therefore small, each batch is at most twice as long as the previous one, and a
 * heavy batch immediately shortens the next one.
 */
import type { WireCell, WireRow } from "../../protocol/mod.ts";
import type { ChangeBatch } from "../../storage/mod.ts";
import type { Vector } from "../../types/mod.ts";
import type { TickBudget } from "../scheduler/tick_budget.ts";
import type { LiveChange } from "./live_program.ts";

/**
 * The target size of a batch in bytes. No tick can turn more than this many bytes into messages.
 */
const BATCH_BYTES_MAX = 1 << 20;

/** The size assumed for a version before the first one has been read, in bytes. */
const VERSION_BYTES_FIRST = 16_384;

/** How many bytes can be decoded and turned into a message at the cost of one unit. */
const BYTES_PER_UNIT = 1024;

/** The size assumed for a cell that is not a string, in bytes. */
const PLAIN_BYTES = 8;

export class ReadSize {
  #versionBytes = VERSION_BYTES_FIRST;

  /**
   * Returns how many versions to read in one step, at least 1.
   *
   * @param frameBytesMax The maximum size of a message in bytes. Versions beyond this size are not
   *   read, because they could not be sent soon.
   */
  rowsOf({ frameBytesMax, rowsMax }: { rowsMax: number; frameBytesMax: number }): number {
    const bytesMax = Math.min(BATCH_BYTES_MAX, frameBytesMax);
    return Math.max(1, Math.min(rowsMax, Math.floor(bytesMax / this.#versionBytes)));
  }

  /** Records the total size of `versionCount` versions. `versionCount` must be at least 1. */
  note(versionCount: number, bytes: number): void {
    this.#versionBytes = Math.max(bytes / versionCount, this.#versionBytes / 2, 1);
  }

  /**
   * Records the sizes of the rows in a batch and of the changes produced from them, and charges
   * both to the budget.
   */
  take(
    { batch, end, start }: { batch: ChangeBatch; start: number; end: number },
    changes: readonly LiveChange[],
    budget: TickBudget,
  ): void {
    if (start === end) return;
    const bytes = replacedBytesOf(batch, start, end) + rowBytesOf(changes);
    this.note(end - start, bytes);
    spendBytes(budget, bytes);
  }
}

/** Charges the size of versions to the budget, in addition to the fixed cost of each version. */
export function spendBytes(budget: TickBudget, bytes: number): void {
  budget.spend(bytes / BYTES_PER_UNIT);
}

/** Estimates the total size, in bytes, of the versions replaced by a range of rows in a batch. */
export function replacedBytesOf({ oldColumns }: ChangeBatch, start: number, end: number): number {
  let bytes = 0;
  for (const column of oldColumns) bytes += bytesOfColumn(column, start, end);
  return bytes;
}

/** Estimates the total size, in bytes, of the rows in a list of changes. */
export function rowBytesOf(changes: readonly LiveChange[]): number {
  let bytes = 0;
  for (const { row } of changes) if (row !== undefined) bytes += bytesOfRow(row);
  return bytes;
}

/**
 * Estimates the size, in bytes, of a range of a column's values. Replaced strings always arrive in
 * a vector of kind `any`, because replaced values are looked up one by one.
 */
function bytesOfColumn(column: Vector, start: number, end: number): number {
  if (column.kind !== "any") return column.kind === "const" ? 0 : PLAIN_BYTES * (end - start);
  let bytes = 0;
  for (let row = start; row < end; row += 1) {
    const value = column.values[row];
    if (typeof value === "string" || value instanceof Uint8Array) bytes += value.length;
    else if (Array.isArray(value)) bytes += PLAIN_BYTES * (1 + value.length);
    else bytes += PLAIN_BYTES;
  }
  return bytes;
}

function bytesOfRow(row: WireRow): number {
  let bytes = 0;
  for (const name in row) {
    const cell: WireCell | undefined = row[name];
    if (typeof cell === "string") bytes += cell.length;
    else if (typeof cell === "object" && cell !== null) bytes += PLAIN_BYTES * cell.length;
    else bytes += PLAIN_BYTES;
  }
  return bytes;
}
