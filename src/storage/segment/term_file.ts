/**
 * Defines the file of one inverted index of one segment, which lists the rows that contain each
 * term.
 *
 *     OFFSET SIZE   little-endian
 *          0    8   magic "TIDETRM1": the digit is the format
 *          8    8   u53 segment id
 *         16    8   u53 table id
 *         24    8   u53 index id
 *         32    4   u32 rows of the segment
 *         36    4   u32 parts, one for each row group
 *         40    8   hash64 of everything after the header
 *         48    8   u53 bytes after the header
 *         56    8   hash64 of bytes 0 to 56
 *         64    …   parts (`term_part.ts`)
 *
 * - The rows listed for a term include replaced rows and tombstones.
 * - The contents depend only on the segment and the definition of the index. Neither of them ever
 *   changes, so a missing or damaged file can be rebuilt.
 */
import { ByteWriter } from "../../base/byte_writer.ts";
import { numberInMagic, u53At } from "../../base/bytes.ts";
import { type Hash64, placeSeed, xxHash3 } from "../../base/checksum.ts";
import type { Disk, DiskFile } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import { HASH_BYTES_MAX, PlaceHash } from "./format.ts";
import { type IndexFilePlace, openIndexFile } from "./index_file.ts";
import { SegmentFile } from "./segment_file.ts";
import { partLengthAt, TermPart } from "./term_part.ts";

const MAGIC_NAME = "TIDETRM";
const FORMAT = 1;
const HEADER_BYTES = 64;
const SEALED_BYTES = 56;

/** The location in checksum seeds; the id of the index takes the place of the column id. */
const HEADER_PLACE = -202;
const BODY_PLACE = -203;

/** The contents of an inverted index of one segment. */
export interface TermEntries {
  /** One part for each row group, in the order of the groups. */
  readonly parts: readonly TermPart[];
}

/** Writes the parts of a file as they are produced, and the header once all parts are written. */
export class TermFileWriter {
  readonly #file: DiskFile;
  readonly #place: IndexFilePlace;
  readonly #hash: PlaceHash;
  /** The bytes that do not yet fill a whole piece. */
  #rest: Uint8Array = new Uint8Array(0);
  #offset = HEADER_BYTES;
  #partCount = 0;

  constructor(file: DiskFile, place: IndexFilePlace) {
    this.#file = file;
    this.#place = place;
    this.#hash = new PlaceHash(placeSeed(place.segmentId, BODY_PLACE, place.indexId));
  }

  /** Writes a part in steps. @throws {DiskError} */
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
    // The bytes belong to the part, which the caller may discard, so they are copied.
    this.#rest = this.#rest.slice();
  }

  /** Writes the header, which completes the file. @throws {DiskError} */
  finish(): void {
    if (this.#rest.length > 0) this.#writeRest();
    const header = encodeHeader(this.#place, {
      bodyHash: this.#hash.hash,
      bodyBytes: this.#offset - HEADER_BYTES,
      partCount: this.#partCount,
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
 * Opens a file, and verifies all of it.
 *
 * @throws {CorruptionError} If it is damaged or belongs elsewhere.
 * @throws {DiskError} If it is missing or cannot be read.
 */
export function openTermFile(
  disk: Disk,
  path: string,
  place: IndexFilePlace,
): TermEntries & { close(): void } {
  const file = new SegmentFile(disk, path);
  try {
    const header = decodeHeader(file.read(0, HEADER_BYTES), place);
    if (header === undefined) {
      throw new CorruptionError(path, 0, "this is not the header of this index of this segment");
    }
    const { bodyBytes, bodyHash, partCount } = header;
    if (file.bytes.length !== HEADER_BYTES + bodyBytes) {
      const what = `the file has ${file.bytes.length} bytes, but should have ${HEADER_BYTES + bodyBytes}`;
      throw new CorruptionError(path, HEADER_BYTES, what);
    }
    file.check({
      offset: HEADER_BYTES,
      byteCount: bodyBytes,
      seed: placeSeed(place.segmentId, BODY_PLACE, place.indexId),
      hash: bodyHash,
      what: "the checksum of the index",
    });
    return { parts: partsIn(file.bytes, partCount), close: () => file.close() };
  } catch (error) {
    file.close();
    throw error;
  }
}

/** Opens an index file of either form, in order to verify it. */
export function openEitherFile(disk: Disk, path: string, place: IndexFilePlace): { close(): void } {
  const file = disk.open(path, { readOnly: true });
  const magic = new Uint8Array(8);
  try {
    file.read(magic, 0);
  } finally {
    file.close();
  }
  const isInverted = numberInMagic(magic, MAGIC_NAME) !== undefined;
  return isInverted ? openTermFile(disk, path, place) : openIndexFile(disk, path, place);
}

function partsIn(bytes: Uint8Array, count: number): TermPart[] {
  const parts: TermPart[] = [];
  let at = HEADER_BYTES;
  for (let part = 0; part < count; part += 1) {
    const length = partLengthAt(bytes, at);
    parts.push(new TermPart(bytes.subarray(at, at + length)));
    at += length;
  }
  return parts;
}

/** The fields of a header other than the ids that identify the file. */
interface TermHeader {
  readonly bodyHash: Hash64;
  readonly bodyBytes: number;
  readonly partCount: number;
}

function encodeHeader(
  place: IndexFilePlace,
  { bodyBytes, bodyHash, partCount }: TermHeader,
): Uint8Array {
  const writer = new ByteWriter(HEADER_BYTES);
  writer.raw(new TextEncoder().encode(`${MAGIC_NAME}${FORMAT}`));
  writer.u53(place.segmentId);
  writer.u53(place.tableId);
  writer.u53(place.indexId);
  writer.u32(place.rowCount);
  writer.u32(partCount);
  writer.u32(bodyHash.low);
  writer.u32(bodyHash.high);
  writer.u53(bodyBytes);
  const hash = xxHash3(writer.view(), headerSeed(place));
  writer.u32(hash.low);
  writer.u32(hash.high);
  return writer.copy();
}

/** Reads a header. Returns undefined if the header is damaged or belongs to a different file. */
function decodeHeader(bytes: Uint8Array, place: IndexFilePlace): TermHeader | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  const { high, low } = xxHash3(bytes.subarray(0, SEALED_BYTES), headerSeed(place));
  const isWhole =
    low === view.getUint32(SEALED_BYTES, true) && high === view.getUint32(SEALED_BYTES + 4, true);
  if (!isWhole || numberInMagic(bytes, MAGIC_NAME) !== FORMAT) return undefined;
  const header = {
    partCount: view.getUint32(36, true),
    bodyHash: { low: view.getUint32(40, true), high: view.getUint32(44, true) },
    bodyBytes: u53At(view, 48),
  };
  return Buffer.compare(bytes, encodeHeader(place, header)) === 0 ? header : undefined;
}

function headerSeed({ indexId, segmentId }: IndexFilePlace): number {
  return placeSeed(segmentId, HEADER_PLACE, indexId);
}
