/**
 * Faults of the storage protocol, planted between the engine and its disk: what the engine asks for
 * is not done, or done too early. A campaign is trusted because it finds each of them.
 */
import { crc32 } from "../../src/base/checksum.ts";
import type { Disk, DiskFile } from "../../src/base/disk.ts";
import { ForwardingDisk, ForwardingFile } from "../../tests/support/forwarding_disk.ts";

export const PLANTS = [
  /** The log answers before its bytes are durable. */
  "early_ack",
  /** Names are not made durable. */
  "no_directory_sync",
  /** A log file goes as soon as the next one begins. */
  "log_removed_early",
  /** Frames of the log count whatever their checksum says. */
  "no_checksum",
  "segment_not_synced",
  "deletions_not_synced",
  /** Ids are handed out before it is durable that they were. */
  "ids_not_synced",
  /** The last transaction of the manifest is not durable. */
  "manifest_not_synced",
] as const;

export type Plant = (typeof PLANTS)[number];

/** Files whose syncs do nothing. */
const UNSYNCED: Partial<Record<Plant, RegExp>> = {
  early_ack: /\.wal$/,
  segment_not_synced: /\.seg$/,
  deletions_not_synced: /\.dv$/,
  ids_not_synced: /\/IDS$/,
};

/** A disk on which one fault is planted. */
export class PlantedDisk extends ForwardingDisk {
  readonly #plant: Plant;

  constructor(disk: Disk, plant: Plant) {
    super(disk);
    this.#plant = plant;
  }

  override open(path: string, options: { create?: boolean; exclusive?: boolean }): DiskFile {
    const file = this.disk.open(path, options);
    const isUnsynced = UNSYNCED[this.#plant]?.test(path) ?? false;
    return isUnsynced ? new UnsyncedFile(file) : file;
  }

  override readFile(path: string): Uint8Array {
    const bytes = this.disk.readFile(path);
    if (this.#plant === "no_checksum" && path.endsWith(".wal")) believeFrames(bytes);
    return bytes;
  }

  override rename(from: string, to: string): void {
    this.disk.rename(from, to);
    if (this.#plant !== "log_removed_early") return;
    const number = /^(.*\/)(\d{10})\.wal$/.exec(to);
    const before = `${number?.[1]}${String(Number(number?.[2]) - 1).padStart(10, "0")}.wal`;
    if (number !== null && this.disk.exists(before)) this.disk.remove(before);
  }

  override syncDirectory(path: string): void {
    if (this.#plant !== "no_directory_sync") this.disk.syncDirectory(path);
  }
}

class UnsyncedFile extends ForwardingFile {
  override sync(): Promise<void> {
    return Promise.resolve();
  }

  override syncNow(): void {
    // This is the fault.
  }
}

/** Gives every frame of a log file, whole or torn, the checksum that it should have. */
function believeFrames(bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 64; at + 48 <= bytes.length; ) {
    const length = view.getUint32(at + 4, true);
    const isFrame = view.getUint32(at + 8, true) === view.getUint32(8, true);
    if (!isFrame || length < 48 || at + length > bytes.length) return;
    view.setUint32(at, crc32(bytes.subarray(at + 4, at + length)), true);
    at += length;
  }
}
