/**
 * Stores an increasing number in a small file with two slots. The slots are written alternately,
 * so a torn write leaves the previous number intact.
 *
 * - `wal/HWM` contains the last seq known to be durable. After groups have been synced, the file
 *   is rewritten without a sync: at every pause, and under load once for several groups. The
 *   number may lag behind the log but is never ahead of it. A log that ends below the number has
 *   therefore lost acknowledged commits.
 * - `wal/IDS` contains an upper bound on the ids that SNOWFLAKE_ID() may have issued. The file is
 *   synced before the ids are issued.
 *
 *     two slots, written in turn   OFFSET SIZE
 *                                     0     8   u53 number
 *                                     8     4   u32 count of writes: the larger count is newer
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

  /** Replaces the number in the file without a sync. @throws {DiskError} */
  write(value: number): void {
    const writeCount = (this.#writeCount + 1) >>> 0;
    const slot = this.#slot;
    slot.reset();
    slot.u53(value);
    slot.u32(writeCount);
    slot.u32(crc32(slot.view()));
    this.#file.write(slot.view(), (writeCount % 2) * SLOT_BYTES);
    // A failed write may have torn a slot. In that case this line is not reached, so the next
    // write uses the same slot again and leaves the intact slot untouched.
    this.#writeCount = writeCount;
  }

  /** Makes the number in the file durable. @throws {DiskError} */
  syncNow(): void {
    this.#file.syncNow();
  }

  close(): void {
    this.#file.close();
  }
}

/** Opens a number file, creating it if necessary, and reads its newest intact slot. */
export function openHighWater(disk: Disk, path: string): { file: HighWaterFile; value: number } {
  const file = disk.open(path, { create: true });
  const bytes = new Uint8Array(FILE_BYTES);
  file.read(bytes, 0);
  const { value, writeCount } = newestOf(bytes, path);
  return { file: new HighWaterFile(file, writeCount), value };
}

/** The number in a file, and the damage found in the file. */
export interface NumberFileCheck {
  /** The number in the newest intact slot; 0 if neither slot is intact. */
  readonly value: number;
  readonly damage: readonly CorruptionError[];
}

/** Checks every byte of a number file. Changes nothing. */
export function checkNumberFile(disk: Disk, path: string): NumberFileCheck {
  let bytes: Uint8Array;
  try {
    bytes = readable(path, () => disk.readFile(path));
  } catch (error) {
    if (!(error instanceof CorruptionError)) throw error;
    return { value: 0, damage: [error] };
  }
  // An empty file is not damaged: it is created before the first number is known, and a power
  // failure may lose content that has not been synced.
  if (bytes.length === 0) return { value: 0, damage: [] };
  const whole = new Uint8Array(FILE_BYTES);
  whole.set(bytes.subarray(0, FILE_BYTES));
  const { value, writeCount } = newestOf(whole, path);
  const damage = [0, 1]
    .filter((index) => {
      const isEmpty = slotOf(whole, index).every((byte) => byte === 0);
      // The second slot is written first, so the first slot stays empty until the second write.
      return (
        !(isEmpty && writeCount <= 1 - index) && readSlot(whole, { index, path }) === undefined
      );
    })
    .map((index) => new CorruptionError(path, index * SLOT_BYTES, "the checksum does not match"));
  if (bytes.length !== FILE_BYTES) {
    const what = `the file has ${bytes.length} bytes instead of ${FILE_BYTES}`;
    damage.push(new CorruptionError(path, Math.min(bytes.length, FILE_BYTES), what));
  }
  return { value, damage };
}

/** Durably sets both slots of a number file to a number. @throws {DiskError} */
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
  // The number only ever increases. The larger of two intact slots is therefore correct, even if
  // the count has wrapped around.
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
  // A slot that is torn or was never written is not damage, because the other slot is valid.
  if (from.u32() !== crc32(slot.subarray(0, CRC_OFFSET))) return undefined;
  from.position = 0;
  return { value: from.u53(), writeCount: from.u32() };
}

function slotOf(bytes: Uint8Array, index: number): Uint8Array {
  return bytes.subarray(index * SLOT_BYTES, (index + 1) * SLOT_BYTES);
}
