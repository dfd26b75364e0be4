/**
 * Small files that hold one growing number, in two slots that are written in turn, so that a torn
 * write leaves the number before it.
 *
 * - `wal/HWM`: the last seq that is known to be durable, rewritten without a sync after each group
 *   that was synced. It may lag behind the log, and never leads it, so a log that ends below it has
 *   lost acknowledged commits.
 * - `wal/IDS`: ids of SNOWFLAKE_ID() up to here may have been handed out; synced before they are.
 *
 *     two slots, written in turn   OFFSET SIZE
 *                                     0     8   u53 number
 *                                     8     4   u32 count of writes, the larger one is newer
 *                                    12     4   u32 CRC of bytes 0..12
 */
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { crc32 } from "../../base/checksum.ts";
import type { Disk, DiskFile } from "../../base/disk.ts";

const SLOT_BYTES = 16;
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
    this.#writeCount = (this.#writeCount + 1) >>> 0;
    const slot = this.#slot;
    slot.reset();
    slot.u53(value);
    slot.u32(this.#writeCount);
    slot.u32(crc32(slot.view()));
    this.#file.write(slot.view(), (this.#writeCount % 2) * SLOT_BYTES);
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
  const bytes = new Uint8Array(2 * SLOT_BYTES);
  file.read(bytes, 0);
  const slots = [0, 1].map((index) => readSlot(bytes, { index, path }));
  const [first, second] = slots;
  const newest =
    (second?.writeCount ?? -1) > (first?.writeCount ?? -1) ? second : (first ?? second);
  // The number only grows, so the larger of two whole slots is right even if the count wrapped.
  const value = Math.max(first?.value ?? 0, second?.value ?? 0);
  return { file: new HighWaterFile(file, newest?.writeCount ?? 0), value };
}

function readSlot(
  bytes: Uint8Array,
  { index, path }: { index: number; path: string },
): { value: number; writeCount: number } | undefined {
  const slot = bytes.subarray(index * SLOT_BYTES, (index + 1) * SLOT_BYTES);
  const from = new ByteReader(slot, { path, fileOffset: index * SLOT_BYTES });
  from.position = CRC_OFFSET;
  // A slot that is torn, or was never written, is not damage: the other one counts.
  if (from.u32() !== crc32(slot.subarray(0, CRC_OFFSET))) return undefined;
  from.position = 0;
  return { value: from.u53(), writeCount: from.u32() };
}
