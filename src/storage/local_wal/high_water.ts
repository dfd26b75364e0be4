/**
 * Small files that hold one growing number, in two slots that are written in turn, so that a torn
 * write leaves the number before it.
 *
 * - `wal/HWM`: the last seq that is known to be durable, rewritten without a sync when groups were
 *   synced: at every pause, and under load once for several. It may lag behind the log, and never
 *   leads it, so a log that ends below it has lost acknowledged commits.
 * - `wal/IDS`: ids of SNOWFLAKE_ID() up to here may have been handed out; synced before they are.
 *
 *     two slots, written in turn   OFFSET SIZE
 *                                     0     8   u53 number
 *                                     8     4   u32 count of writes, the larger one is newer
 *                                    12     4   u32 CRC of bytes 0..12
 */
import { ByteReader } from "../../base/byte_reader.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import { crc32 } from "../../base/checksum.ts";
import type { Disk, DiskFile } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import { readable } from "../directory/readable.ts";

const SLOT_BYTES = 16;
const FILE_BYTES = 32;
const CRC_OFFSET = 12;

export class HighWaterFile {
  readonly #file: DiskFile;
  readonly #slot = new ByteWriter(SLOT_BYTES);
  #writeCount: number;

  constructor(file: DiskFile, writeCount: number) {
    this.#file = file;
    this.#writeCount = writeCount;
  }

  /** Replaces the number, not yet durably. @throws {DiskError} */
  write(value: number): void {
    const writeCount = (this.#writeCount + 1) >>> 0;
    const slot = this.#slot;
    slot.reset();
    slot.u53(value);
    slot.u32(writeCount);
    slot.u32(crc32(slot.view()));
    this.#file.write(slot.view(), (writeCount % 2) * SLOT_BYTES);
    // A write that failed may have torn its slot: the next one takes the same, not the good one.
    this.#writeCount = writeCount;
  }

  /** Makes the number durable. @throws {DiskError} */
  syncNow(): void {
    this.#file.syncNow();
  }

  close(): void {
    this.#file.close();
  }
}

/** Opens the file, which need not be there yet, and reads the newest slot that is whole. */
export function openHighWater(disk: Disk, path: string): { file: HighWaterFile; value: number } {
  const file = disk.open(path, { create: true });
  const bytes = new Uint8Array(FILE_BYTES);
  file.read(bytes, 0);
  const { value, writeCount } = newestOf(bytes, path);
  return { file: new HighWaterFile(file, writeCount), value };
}

/** What the file says, and what of it is not what was written. */
export interface NumberFileCheck {
  /** Of the slots that are whole; 0 for none. */
  readonly value: number;
  readonly damage: readonly CorruptionError[];
}

/** Checks every byte of a file, and changes none. */
export function checkNumberFile(disk: Disk, path: string): NumberFileCheck {
  let bytes: Uint8Array;
  try {
    bytes = readable(path, () => disk.readFile(path));
  } catch (error) {
    if (!(error instanceof CorruptionError)) throw error;
    return { value: 0, damage: [error] };
  }
  // Made before the first number is known; and what was not synced can be gone after power loss.
  if (bytes.length === 0) return { value: 0, damage: [] };
  const whole = new Uint8Array(FILE_BYTES);
  whole.set(bytes.subarray(0, FILE_BYTES));
  const { value, writeCount } = newestOf(whole, path);
  const damage = [0, 1]
    .filter((index) => {
      const isEmpty = slotOf(whole, index).every((byte) => byte === 0);
      // The second slot is written first, and the other one with the next number.
      return (
        !(isEmpty && writeCount <= 1 - index) && readSlot(whole, { index, path }) === undefined
      );
    })
    .map((index) => new CorruptionError(path, index * SLOT_BYTES, "the checksum does not match"));
  if (bytes.length !== FILE_BYTES) {
    const what = `the file has ${bytes.length} bytes and should have ${FILE_BYTES}`;
    damage.push(new CorruptionError(path, Math.min(bytes.length, FILE_BYTES), what));
  }
  return { value, damage };
}

/** Makes both slots hold a number, durably. @throws {DiskError} */
export function rewriteNumberFile(disk: Disk, path: string, value: number): void {
  const { file } = openHighWater(disk, path);
  try {
    file.write(value);
    file.write(value);
    file.syncNow();
  } finally {
    file.close();
  }
  const shortened = disk.open(path, {});
  try {
    shortened.truncate(FILE_BYTES);
    shortened.syncNow();
  } finally {
    shortened.close();
  }
}

interface Slot {
  readonly value: number;
  readonly writeCount: number;
}

function newestOf(bytes: Uint8Array, path: string): Slot {
  const slots = [0, 1].map((index) => readSlot(bytes, { index, path }));
  const [first, second] = slots;
  const newest =
    (second?.writeCount ?? -1) > (first?.writeCount ?? -1) ? second : (first ?? second);
  // The number only grows, so the larger of two whole slots is right even if the count wrapped.
  const value = Math.max(first?.value ?? 0, second?.value ?? 0);
  return { value, writeCount: newest?.writeCount ?? 0 };
}

function readSlot(
  bytes: Uint8Array,
  { index, path }: { index: number; path: string },
): Slot | undefined {
  const slot = slotOf(bytes, index);
  const from = new ByteReader(slot, { path, fileOffset: index * SLOT_BYTES });
  from.position = CRC_OFFSET;
  // A slot that is torn, or was never written, is not damage: the other one counts.
  if (from.u32() !== crc32(slot.subarray(0, CRC_OFFSET))) return undefined;
  from.position = 0;
  return { value: from.u53(), writeCount: from.u32() };
}

function slotOf(bytes: Uint8Array, index: number): Uint8Array {
  return bytes.subarray(index * SLOT_BYTES, (index + 1) * SLOT_BYTES);
}
