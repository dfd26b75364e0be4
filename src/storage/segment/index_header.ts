/**
 * Defines the header of the files of all secondary indexes, and opens such files.
 *
 *     OFFSET SIZE   little-endian
 *          0    8   magic, whose last digit is the format
 *          8    8   u53 segment id
 *         16    8   u53 table id
 *         24    8   u53 index id
 *         32    4   u32 rows of the segment
 *         36    4   u32 detail, whose meaning depends on the form of the index
 *         40    8   hash64 of everything after the header
 *         48    8   u53 bytes after the header; 0 if the number of rows determines them
 *         56    8   hash64 of bytes 0 to 56
 *
 * A file is verified completely when it is opened, so damage never reaches a reader.
 */
import { ByteWriter } from "../../base/byte_writer.ts";
import { numberInMagic, u53At } from "../../base/bytes.ts";
import { type Hash64, placeSeed, xxHash3 } from "../../base/checksum.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import { SegmentFile } from "./segment_file.ts";

export const INDEX_HEADER_BYTES = 64;

const SEALED_BYTES = 56;

/**
 * The properties that distinguish the files of sorted indexes from the files of inverted indexes.
 */
export interface IndexForm {
  readonly magicName: string;
  readonly format: number;
  /**
   * The locations of header and body for their checksum seeds, in which the index id takes the
   * place of a column id.
   */
  readonly headerPlace: number;
  readonly bodyPlace: number;
}

/** The ids that identify an index file. */
export interface IndexFilePlace {
  readonly segmentId: number;
  readonly tableId: number;
  readonly indexId: number;
  readonly rowCount: number;
}

/** The fields of an index file's header other than the ids that identify the file. */
export interface IndexHeader {
  readonly detail: number;
  readonly bodyHash: Hash64;
  readonly bodyBytes: number;
}

/** Returns the seed of the checksum over everything after the header. */
export function bodySeed({ bodyPlace }: IndexForm, { indexId, segmentId }: IndexFilePlace): number {
  return placeSeed(segmentId, bodyPlace, indexId);
}

export function encodeIndexHeader(
  form: IndexForm,
  place: IndexFilePlace,
  { bodyBytes, bodyHash, detail }: IndexHeader,
): Uint8Array {
  const writer = new ByteWriter(INDEX_HEADER_BYTES);
  writer.raw(new TextEncoder().encode(`${form.magicName}${form.format}`));
  writer.u53(place.segmentId);
  writer.u53(place.tableId);
  writer.u53(place.indexId);
  writer.u32(place.rowCount);
  writer.u32(detail);
  writer.u32(bodyHash.low);
  writer.u32(bodyHash.high);
  writer.u53(bodyBytes);
  const hash = xxHash3(writer.view(), headerSeed(form, place));
  writer.u32(hash.low);
  writer.u32(hash.high);
  return writer.copy();
}

/** An index file whose bytes match its checksums. */
export interface VerifiedIndexFile {
  readonly file: SegmentFile;
  readonly header: IndexHeader;
}

/**
 * Opens an index file, and verifies all of its bytes.
 *
 * @param bodyBytes The number of bytes after the header; undefined if the header states it.
 * @throws {CorruptionError} If the file is damaged or belongs to another segment or index.
 * @throws {DiskError} If the file is missing or cannot be read.
 */
export function openVerified(
  disk: Disk,
  path: string,
  { bodyBytes, form, place }: { form: IndexForm; place: IndexFilePlace; bodyBytes?: number },
): VerifiedIndexFile {
  const expected = bodyBytes === undefined ? undefined : INDEX_HEADER_BYTES + bodyBytes;
  const file = new SegmentFile(disk, path, expected);
  try {
    const header = decodeHeader(file.read(0, INDEX_HEADER_BYTES), form, place);
    if (header === undefined) {
      throw new CorruptionError(path, 0, "the header does not belong to this index and segment");
    }
    const byteCount = bodyBytes ?? header.bodyBytes;
    if (file.bytes.length !== INDEX_HEADER_BYTES + byteCount) {
      const what = `the file has ${file.bytes.length} bytes instead of ${INDEX_HEADER_BYTES + byteCount}`;
      throw new CorruptionError(path, INDEX_HEADER_BYTES, what);
    }
    file.check({
      offset: INDEX_HEADER_BYTES,
      byteCount,
      seed: bodySeed(form, place),
      hash: header.bodyHash,
      what: "the checksum of the index",
    });
    return { file, header };
  } catch (error) {
    file.close();
    throw error;
  }
}

/**
 * Reads the header of an index file; undefined if it is damaged or belongs to a different file.
 */
function decodeHeader(
  bytes: Uint8Array,
  form: IndexForm,
  place: IndexFilePlace,
): IndexHeader | undefined {
  if (numberInMagic(bytes, form.magicName) !== form.format) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, INDEX_HEADER_BYTES);
  const { high, low } = xxHash3(bytes.subarray(0, SEALED_BYTES), headerSeed(form, place));
  const isWhole =
    low === view.getUint32(SEALED_BYTES, true) && high === view.getUint32(SEALED_BYTES + 4, true);
  if (!isWhole) return undefined;
  const header = {
    detail: view.getUint32(36, true),
    bodyHash: { low: view.getUint32(40, true), high: view.getUint32(44, true) },
    bodyBytes: u53At(view, 48),
  };
  const isThis = Buffer.compare(bytes, encodeIndexHeader(form, place, header)) === 0;
  return isThis ? header : undefined;
}

function headerSeed({ headerPlace }: IndexForm, { indexId, segmentId }: IndexFilePlace): number {
  return placeSeed(segmentId, headerPlace, indexId);
}
