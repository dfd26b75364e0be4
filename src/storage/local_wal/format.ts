/**
 * Defines the bytes of a log file, for `writer.ts`, `reader.ts`, `logged_writes.ts` and
 * `scripts/dump_wal.ts`.
 *
 *     ┌──────────┬─────────┬─────────┬─────┬───────────────────────────────┐
 *     │ header   │ frame 0 │ frame 1 │ ... │ zeros, or an older file's     │
 *     │ 64 bytes │ 8·n     │ 8·n     │     │ frames when it was recycled   │
 *     └──────────┴─────────┴─────────┴─────┴───────────────────────────────┘
 *
 *     header OFFSET SIZE  all integers little-endian
 *               0     4   magic "TWAL"
 *               4     2   u16 format, 1
 *               6     2   u16 flags, 0
 *               8     4   u32 file number
 *              16     8   u53 base seq: last seq of the files before this one
 *              60     4   u32 CRC of bytes 0..60
 *
 *     frame  OFFSET SIZE
 *               0     4   u32 CRC of bytes 4..length
 *               4     4   u32 length of the frame, a multiple of 8
 *               8     4   u32 file number
 *              12     4   u32 frame number, from 0 in each file
 *              16     4   u32 durable frames: the number of frames at the start of this file synced
 *                         before this frame was written
 *              20     1   u8 kind
 *              21     1   u8 count of padding bytes at the end, 0 to 7
 *              24     8   u53 first seq
 *              32     8   u53 last seq
 *              40     8   u53 catalog seq: the seq of the newest definition known to the writer
 *              48         body
 *
 * A frame is valid only if its CRC, its file number and its frame number are all correct. A stale
 * frame in a recycled file has the wrong file number. A valid frame after an invalid one proves
 * damage to durable bytes if it states that the invalid frame was durable. Otherwise both frames
 * belong to a group that was being written when the power failed, and any part of such a group may
 * have reached the disk.
 *
 * The body of a commit is a list of writes, each for one table and one owner:
 *
 *     u32 table id   u53 owner   u8 operation   u16 column count
 *     per column     u16 column id   u8 form: scale of a DECIMAL, 1 of JSONB, else 0
 *     u32 row count
 *     per row        u8 flags   [u53 seq, if flags & 1, else the one before + 1]
 *                    [u53 prev, if flags & 2, else 0]   a value per column (types/value_codec.ts)
 *
 * A commit too large for one frame consists of a part-begin frame, part frames and a part-end
 * frame, possibly spread over several files. Such a commit is valid only if its part-end frame is
 * present.
 */
import { assert } from "../../base/assert.ts";
import { ByteReader } from "../../base/byte_reader.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import { u53At } from "../../base/bytes.ts";
import { crc32 } from "../../base/checksum.ts";
import { CorruptionError, DatabaseError } from "../../base/errors.ts";

export const WAL_HEADER_BYTES = 64;
export const FRAME_HEADER_BYTES = 48;
/**
 * The version of the log format. In every version, header bytes 4 to 6 and the CRC are at the same
 * offsets.
 */
export const WAL_FORMAT = 1;

const MAGIC = 0x4c415754;
const HEADER_CRC_OFFSET = 60;

/** The kinds of frames in a log file. */
const FRAME_KINDS = {
  commit: 1,
  partBegin: 2,
  part: 3,
  partEnd: 4,
} as const;

export type FrameKind = keyof typeof FRAME_KINDS;

export const OPERATION_CODES = { insert: 1, update: 2, delete: 3 } as const;

export const ROW_HAS_SEQ = 1;
export const ROW_HAS_PREV = 2;

export interface WalHeader {
  readonly fileNumber: number;
  readonly baseSeq: number;
}

export interface FrameHead {
  readonly kind: FrameKind;
  readonly fileNumber: number;
  readonly frameNumber: number;
  readonly durableFrames: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly catalogSeq: number;
}

/** A valid frame of the log, and its offset within its file. */
export interface Frame extends FrameHead {
  readonly path: string;
  readonly offset: number;
  readonly length: number;
  /** The frame's body, which shares the memory of the file's bytes. */
  readonly body: Uint8Array;
}

export function encodeWalHeader({ fileNumber, baseSeq }: WalHeader): Uint8Array {
  const bytes = new ByteWriter(WAL_HEADER_BYTES);
  bytes.u32(MAGIC);
  bytes.u16(WAL_FORMAT);
  bytes.u16(0);
  bytes.u32(fileNumber);
  bytes.u32(0);
  bytes.u53(baseSeq);
  bytes.skip(HEADER_CRC_OFFSET - bytes.length);
  bytes.u32(crc32(bytes.view()));
  assert(bytes.length === WAL_HEADER_BYTES, "commit log: log file header has the wrong size");
  return bytes.copy();
}

/**
 * Returns the format stated in a log file's header; undefined if the header is damaged or missing.
 */
export function walFormatOf(header: Uint8Array): number | undefined {
  if (header.length < WAL_HEADER_BYTES) return undefined;
  const view = new DataView(header.buffer, header.byteOffset, WAL_HEADER_BYTES);
  if (view.getUint32(0, true) !== MAGIC) return undefined;
  const crc = view.getUint32(HEADER_CRC_OFFSET, true);
  return crc === crc32(header.subarray(0, HEADER_CRC_OFFSET)) ? view.getUint16(4, true) : undefined;
}

/**
 * Decodes a log file's header.
 * @throws {CorruptionError} If the header is damaged.
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if a newer version of the server wrote it.
 */
export function decodeWalHeader(bytes: Uint8Array, path: string): WalHeader {
  if (bytes.length < WAL_HEADER_BYTES) throw new CorruptionError(path, 0, "the file has no header");
  const from = new ByteReader(bytes.subarray(0, WAL_HEADER_BYTES), { path });
  if (from.u32() !== MAGIC) throw new CorruptionError(path, 0, "the file is not a log file");
  const format = from.u16();
  from.position = HEADER_CRC_OFFSET;
  if (from.u32() !== crc32(bytes.subarray(0, HEADER_CRC_OFFSET))) {
    throw new CorruptionError(path, 0, "the checksum of the file header does not match");
  }
  if (format !== WAL_FORMAT) {
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot read ${path}: it has format ${format}, but this version reads only ${WAL_FORMAT}`,
    );
  }
  from.position = 8;
  const fileNumber = from.u32();
  from.skip(4);
  return { fileNumber, baseSeq: from.u53() };
}

/** Reserves room for a frame's header. Returns the offset where the frame begins. */
export function beginFrame(into: ByteWriter): number {
  const start = into.length;
  assert(start % 8 === 0, "commit log: frame does not begin at a multiple of 8 bytes");
  into.skip(FRAME_HEADER_BYTES);
  return start;
}

/** Pads the frame that began at `start` and fills in its header. */
export function sealFrame(into: ByteWriter, start: number, head: FrameHead): void {
  const bodyEnd = into.length;
  into.align(8);
  const end = into.length;
  into.setU32(start + 4, end - start);
  into.setU32(start + 8, head.fileNumber);
  into.setU32(start + 12, head.frameNumber);
  into.setU32(start + 16, head.durableFrames);
  into.setU32(start + 20, FRAME_KINDS[head.kind] | ((end - bodyEnd) << 8));
  into.setU53(start + 24, head.firstSeq);
  into.setU53(start + 32, head.lastSeq);
  into.setU53(start + 40, head.catalogSeq);
  into.setU32(start, crc32(into.range(start + 4, end)));
}

/** The place in the log at which a frame is expected. */
export interface FramePlace {
  readonly path: string;
  readonly offset: number;
  readonly fileNumber: number;
}

/**
 * Decodes the frame at an offset; returns undefined if there is no valid frame of this file. The
 * caller must check that the frame's number is the expected number.
 */
export function decodeFrame(bytes: Uint8Array, place: FramePlace): Frame | undefined {
  const { path, offset, fileNumber } = place;
  if (offset + FRAME_HEADER_BYTES > bytes.length) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset, FRAME_HEADER_BYTES);
  if (view.getUint32(8, true) !== fileNumber) return undefined;
  const length = view.getUint32(4, true);
  if (length < FRAME_HEADER_BYTES || length % 8 !== 0) return undefined;
  if (offset + length > bytes.length) return undefined;
  const kind = kindFromCode(view.getUint8(20));
  const padding = view.getUint8(21);
  if (kind === undefined || padding > 7) return undefined;
  if (view.getUint32(0, true) !== crc32(bytes.subarray(offset + 4, offset + length))) {
    return undefined;
  }
  const bodyStart = offset + FRAME_HEADER_BYTES;
  return {
    path,
    offset,
    length,
    kind,
    fileNumber,
    frameNumber: view.getUint32(12, true),
    durableFrames: view.getUint32(16, true),
    firstSeq: u53At(view, 24),
    lastSeq: u53At(view, 32),
    catalogSeq: u53At(view, 40),
    body: bytes.subarray(bodyStart, offset + length - padding),
  };
}

/**
 * If a frame consists of a single write, returns its table without decoding its rows; undefined if
 * there may be several writes. The seqs of a frame ascend, so a write with as many rows as the
 * frame has seqs must be the only one.
 */
export function onlyTableOf({ body, firstSeq, lastSeq, offset, path }: Frame): number | undefined {
  if (body.length === 0) return undefined;
  const from = new ByteReader(body, { path, fileOffset: offset + FRAME_HEADER_BYTES });
  const tableId = from.u32();
  from.u53();
  from.u8();
  const columnCount = from.u16();
  from.skip(columnCount * 3);
  return from.u32() === lastSeq - firstSeq + 1 ? tableId : undefined;
}

function kindFromCode(code: number): FrameKind | undefined {
  switch (code) {
    case FRAME_KINDS.commit:
      return "commit";
    case FRAME_KINDS.partBegin:
      return "partBegin";
    case FRAME_KINDS.part:
      return "part";
    case FRAME_KINDS.partEnd:
      return "partEnd";
    default:
      return undefined;
  }
}
