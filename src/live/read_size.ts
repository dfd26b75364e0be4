/**
 * How many versions of a table are read at once: as many as bytes allow, by what the last ones had.
 *
 * Counted by rows alone, a reader decodes 256 versions of 100 KB with the versions that they
 * replaced, 50 MB, to fill one frame, and throws the rest away when that fills the socket. What
 * versions weigh is known once they are read, so the first batches are small, each at most twice as
 * long as the one before, and a heavy one makes the next short at once.
 */
import type { Cell, CellObject } from "../protocol/mod.ts";
import type { ChangeBatch } from "../storage/mod.ts";
import type { Vector } from "../types/mod.ts";
import type { Budget } from "./budget.ts";
import type { LiveChange } from "./live_program.ts";

/** What one batch should have: more than a turn makes messages of. */
const BATCH_BYTES_MAX = 1 << 20;

/** Of a version, before one was read. */
const VERSION_BYTES_FIRST = 16_384;

/** Bytes that are decoded and made into a message for one unit. */
const BYTES_PER_UNIT = 1024;

/** Of a cell that is no text. */
const PLAIN_BYTES = 8;

export class ReadSize {
  #versionBytes = VERSION_BYTES_FIRST;

  /**
   * How many versions to read at once, 1 or more.
   *
   * @param frameBytesMax What one message may hold: beyond it nothing may be sent soon.
   */
  rowsOf({ frameBytesMax, rowsMax }: { rowsMax: number; frameBytesMax: number }): number {
    const bytesMax = Math.min(BATCH_BYTES_MAX, frameBytesMax);
    return Math.max(1, Math.min(rowsMax, Math.floor(bytesMax / this.#versionBytes)));
  }

  /** So many versions, 1 or more, had so many bytes. */
  note(versionCount: number, bytes: number): void {
    this.#versionBytes = Math.max(bytes / versionCount, this.#versionBytes / 2, 1);
  }

  /** Notes and pays for rows of a batch, and what became of them. */
  take(
    { batch, end, start }: { batch: ChangeBatch; start: number; end: number },
    changes: readonly LiveChange[],
    budget: Budget,
  ): void {
    if (start === end) return;
    const bytes = replacedBytesOf(batch, start, end) + rowBytesOf(changes);
    this.note(end - start, bytes);
    spendBytes(budget, bytes);
  }
}

/** Pays for what versions cost beyond what each does anyway. */
export function spendBytes(budget: Budget, bytes: number): void {
  budget.spend(bytes / BYTES_PER_UNIT);
}

/** About how many bytes the versions have that some rows of a batch replaced. */
export function replacedBytesOf({ oldColumns }: ChangeBatch, start: number, end: number): number {
  let bytes = 0;
  for (const column of oldColumns) bytes += bytesOfColumn(column, start, end);
  return bytes;
}

/** About how many bytes the rows have that versions became. */
export function rowBytesOf(changes: readonly LiveChange[]): number {
  let bytes = 0;
  for (const { row } of changes) if (row !== undefined) bytes += bytesOfRow(row);
  return bytes;
}

/** Replaced values are found one by one, so texts lie side by side as values. */
function bytesOfColumn(column: Vector, start: number, end: number): number {
  if (column.kind !== "any") return column.kind === "const" ? 0 : PLAIN_BYTES * (end - start);
  let bytes = 0;
  for (let row = start; row < end; row += 1) {
    const value = column.values[row];
    if (typeof value === "string" || value instanceof Uint8Array) bytes += value.length;
    else bytes += PLAIN_BYTES;
  }
  return bytes;
}

function bytesOfRow(row: CellObject): number {
  let bytes = 0;
  for (const name in row) {
    const cell: Cell | undefined = row[name];
    if (typeof cell === "string") bytes += cell.length;
    else if (typeof cell === "object" && cell !== null) bytes += PLAIN_BYTES * cell.length;
    else bytes += PLAIN_BYTES;
  }
  return bytes;
}
