/**
 * Represents an open segment file, which is mapped for use but read without the map for
 * verification.
 *
 * Bytes to be verified are read through `read`, so a failing disk is reported as damage instead of
 * killing the process. Only verified bytes are accessed through the map. The file stays open while
 * it is mapped, since its name may be removed earlier.
 */

import type { Hash64 } from "../../base/checksum.ts";
import type { Disk, DiskFile, MappedFile } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import { readable } from "../directory/readable.ts";
import { HASH_BYTES_MAX, PlaceHash } from "./format.ts";

let scratch: Uint8Array | undefined;

/** A range of bytes, and the checksum that it must have. */
export interface CheckedRange {
  readonly offset: number;
  readonly byteCount: number;
  readonly seed: number;
  readonly hash: Hash64;
  /**
   * The name of the checked value in error messages, for example "the checksum of the directory".
   */
  readonly what: string;
}

export class SegmentFile {
  readonly path: string;
  readonly #file: DiskFile;
  readonly #map: MappedFile;

  /**
   * Maps a segment file.
   * @param expectedBytes The size that the file must have; undefined if its header states it.
   */
  constructor(disk: Disk, path: string, expectedBytes?: number) {
    this.path = path;
    this.#file = disk.open(path, { readOnly: true });
    try {
      const size = this.#file.size();
      if (expectedBytes !== undefined && size !== expectedBytes) {
        const what = `the file has ${size} bytes instead of ${expectedBytes}`;
        throw new CorruptionError(path, Math.min(size, expectedBytes), what);
      }
      this.#map = disk.map(path);
    } catch (error) {
      // Mapping the file takes another descriptor. If that fails, the file has to be closed here.
      // Otherwise its descriptor would leak.
      this.#file.close();
      throw error;
    }
  }

  /** The bytes of the mapped file. Their length is 0 once the file is closed. */
  get bytes(): Uint8Array {
    return this.#map.bytes;
  }

  /** Reads bytes into a new array, without using the memory map. */
  read(offset: number, byteCount: number): Uint8Array {
    const bytes = new Uint8Array(byteCount);
    this.#fill(bytes, offset);
    return bytes;
  }

  /** Verifies a range of bytes. @throws {CorruptionError} If the checksum does not match. */
  check({ offset, byteCount, seed, hash, what }: CheckedRange): void {
    scratch ??= new Uint8Array(HASH_BYTES_MAX);
    const found = new PlaceHash(seed);
    for (let done = 0; done < byteCount; done += HASH_BYTES_MAX) {
      const piece = scratch.subarray(0, Math.min(HASH_BYTES_MAX, byteCount - done));
      this.#fill(piece, offset + done);
      found.add(piece);
    }
    if (found.hash.low === hash.low && found.hash.high === hash.high) return;
    throw new CorruptionError(this.path, offset, `${what} does not match`);
  }

  close(): void {
    this.#map.release();
    this.#file.close();
  }

  #fill(into: Uint8Array, offset: number): void {
    const count = readable(this.path, () => this.#file.read(into, offset), offset);
    if (count === into.length) return;
    throw new CorruptionError(this.path, offset + count, "the file ends too early");
  }
}
