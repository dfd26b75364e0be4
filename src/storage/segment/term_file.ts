/**
 * Defines the file of one inverted index of one segment. It lists the rows that contain each term.
 *
 *     OFFSET SIZE   little-endian
 *          0   64   header (`index_header.ts`) with magic "TIDETRM1", the bytes of the parts, and as
 *                   its detail the number of parts, one for each row group
 *         64    …   parts (`term_part.ts`)
 *
 * - The rows listed for a term include replaced rows and tombstones.
 * - The contents depend only on the segment and the definition of the index. Neither ever changes,
 *   so a missing or damaged file can be rebuilt.
 */
import { numberInMagic } from "../../base/bytes.ts";
import type { Disk, DiskFile } from "../../base/disk.ts";
import { HASH_BYTES_MAX, PlaceHash } from "./format.ts";
import { openIndexFile } from "./index_file.ts";
import {
  bodySeed,
  encodeIndexHeader,
  INDEX_HEADER_BYTES,
  type IndexFilePlace,
  type IndexForm,
  openVerified,
} from "./index_header.ts";
import { partLengthAt, TermPart } from "./term_part.ts";

const FORM: IndexForm = {
  magicName: "TIDETRM",
  format: 1,
  headerPlace: -202,
  bodyPlace: -203,
};

/** The contents of a segment's inverted index. */
export interface TermEntries {
  /** The parts of the index, one per row group, in the order of the groups. */
  readonly parts: readonly TermPart[];
}

/** Writes the parts of an index file as they are produced, and the header at the end. */
export class TermFileWriter {
  readonly #file: DiskFile;
  readonly #place: IndexFilePlace;
  readonly #hash: PlaceHash;
  /**
   * The last bytes received. They do not yet fill a whole piece, and have been neither hashed nor
   * written.
   */
  #rest: Uint8Array = new Uint8Array(0);
  #offset = INDEX_HEADER_BYTES;
  #partCount = 0;

  constructor(file: DiskFile, place: IndexFilePlace) {
    this.#file = file;
    this.#place = place;
    this.#hash = new PlaceHash(bodySeed(FORM, place));
  }

  /** Writes a part of the index in steps. @throws {DiskError} */
  *add({ bytes }: TermPart): Generator<void, void> {
    this.#partCount += 1;
    let at = 0;
    while (at < bytes.length) {
      const taken = bytes.subarray(at, at + HASH_BYTES_MAX - this.#rest.length);
      at += taken.length;
      this.#rest = this.#rest.length === 0 ? taken : joined(this.#rest, taken);
      if (this.#rest.length < HASH_BYTES_MAX) break;
      this.#writeRest();
      yield;
    }
    // The caller may reuse the part's bytes, so the remaining bytes are copied.
    this.#rest = this.#rest.slice();
  }

  /** Writes the header and thereby completes the file. @throws {DiskError} */
  finish(): void {
    if (this.#rest.length > 0) this.#writeRest();
    const header = encodeIndexHeader(FORM, this.#place, {
      detail: this.#partCount,
      bodyHash: this.#hash.hash,
      bodyBytes: this.#offset - INDEX_HEADER_BYTES,
    });
    this.#file.write(header, 0);
  }

  #writeRest(): void {
    this.#hash.add(this.#rest);
    this.#file.write(this.#rest, this.#offset);
    this.#offset += this.#rest.length;
    this.#rest = new Uint8Array(0);
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}

/**
 * Opens the file of an inverted index, and verifies all of its bytes.
 *
 * @throws {CorruptionError} If the file is damaged or belongs to another segment or index.
 * @throws {DiskError} If the file is missing or cannot be read.
 */
export function openTermFile(
  disk: Disk,
  path: string,
  place: IndexFilePlace,
): TermEntries & { close(): void } {
  const { file, header } = openVerified(disk, path, { form: FORM, place });
  return { parts: partsIn(file.bytes, header.detail), close: () => file.close() };
}

/** Opens the file of a sorted or an inverted index in order to verify it. */
export function openEitherFile(disk: Disk, path: string, place: IndexFilePlace): { close(): void } {
  const file = disk.open(path, { readOnly: true });
  const magic = new Uint8Array(8);
  try {
    file.read(magic, 0);
  } finally {
    file.close();
  }
  const isInverted = numberInMagic(magic, FORM.magicName) !== undefined;
  return isInverted ? openTermFile(disk, path, place) : openIndexFile(disk, path, place);
}

function partsIn(bytes: Uint8Array, count: number): TermPart[] {
  const parts: TermPart[] = [];
  let at = INDEX_HEADER_BYTES;
  for (let part = 0; part < count; part += 1) {
    const length = partLengthAt(bytes, at);
    parts.push(new TermPart(bytes.subarray(at, at + length)));
    at += length;
  }
  return parts;
}
