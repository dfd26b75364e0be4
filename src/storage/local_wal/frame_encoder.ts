/**
 * Encodes commits into the log's buffer, and divides their frames into groups.
 *
 *     buffer  │ group n: frames of one file │ group n+1: frames of the next file │ open …
 *
 * - A group is written in one call, so it lies within a single file. The last group is open:
 *   frames are added to it until the writer takes it.
 * - The file, offset and number of a frame are determined when it is sealed. `abort` and
 *   `takeBack` return to an earlier position.
 * - There are two buffers. While one is being written, frames are added to the other, which
 *   contains only waiting groups.
 */
import { assert, defined } from "../../base/assert.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import type { Batch, Row } from "../../types/mod.ts";
import type { StoredColumn } from "../contract/table_definition.ts";
import type { TableWrite } from "../contract/writes.ts";
import {
  beginFrame,
  FRAME_HEADER_BYTES,
  type FrameKind,
  sealFrame,
  WAL_HEADER_BYTES,
} from "./format.ts";
import { writeColumns } from "./frame_columns.ts";
import { requireCommitFits, writeHead, writeRow, writeRowAt } from "./frame_rows.ts";
import { PART_BYTES_MAX, PreparedFrames } from "./prepared_commit.ts";

/**
 * The maximum size in bytes of a buffer that is kept for reuse. A buffer that grew beyond it for a
 * huge commit is dropped afterwards.
 */
const BUFFER_BYTES_KEPT: number = 16 * 1024 * 1024;

const BUFFER_BYTES_AT_START: number = 256 * 1024;

/** A position in the log: a file, and an offset within it. */
export interface Position {
  fileNumber: number;
  offset: number;
  frameNumber: number;
}

/** Log frames that are written together: bytes `start` to `end` of the buffer or of `own`. */
export interface FrameGroup {
  /**
   * The bytes of a part of a commit that was encoded elsewhere. Such a part forms a group of its
   * own.
   */
  readonly own?: Uint8Array;
  readonly number: number;
  readonly fileNumber: number;
  readonly offset: number;
  readonly firstFrame: number;
  readonly start: number;
  end: number;
  nextFrame: number;
  lastSeq: number;
}

/** A group of frames that the writer has taken and is writing to the log. */
export interface TakenGroup extends FrameGroup {
  /**
   * The bytes of the group's frames. They do not change until {@linkcode
   * FrameEncoder.groupWritten} is called.
   */
  readonly bytes: Uint8Array;
}

/** The state of the encoder to which `abort` returns. */
interface Mark extends Position {
  bufferLength: number;
  groupCount: number;
  openEnd: number;
  openLastSeq: number;
  lastSeq: number;
}

export interface FrameEncoderOptions {
  /** The size of new log files in bytes. */
  readonly fileBytes: number;
  readonly rowBytesMax: number;
  /** The maximum total size in bytes of one commit's frames, excluding its last frame. */
  readonly commitBytesMax: number;
  /** Whether a group of frames may be written before the previous groups are durable. */
  readonly isRelaxed: boolean;
  readonly position: Position;
  readonly lastSeq: number;
}

export class FrameEncoder {
  /** The log file being written. */
  currentFile = { number: 0, bytes: 0 };
  /** The number of durable frames at the start of the current log file. */
  durableFrames = 0;
  readonly #options: FrameEncoderOptions;
  readonly #partBytes: number;
  #buffer = new ByteWriter(BUFFER_BYTES_AT_START);
  /** The buffer of the group of frames being written; empty if there is none. */
  #writtenBuffer = new ByteWriter(BUFFER_BYTES_AT_START);
  /** The groups of frames not yet taken by the writer, in order. */
  #groups: FrameGroup[] = [];
  #open: FrameGroup | undefined;
  #groupCount = 0;
  #position: Position;
  #lastSeq: number;

  // The state of the encoder before the commit that is being encoded.
  readonly #mark: Mark;
  #catalogSeq = 0;
  #frameStart = -1;
  #frameFirstSeq = 0;
  #nextSeq = 0;
  #partCount = 0;
  #rowCountOffset = 0;
  #rowCount = 0;
  #write: TableWrite | undefined;
  #columns: readonly StoredColumn[] = [];

  constructor(options: FrameEncoderOptions) {
    const { fileBytes, rowBytesMax, position, lastSeq } = options;
    this.#options = options;
    // The slack leaves room for the row that crosses the limit and for the head of its write.
    const slack = WAL_HEADER_BYTES + FRAME_HEADER_BYTES + Math.min(65536, fileBytes / 8);
    this.#partBytes = Math.min(PART_BYTES_MAX, fileBytes - slack - rowBytesMax);
    assert(this.#partBytes >= 1024, "frame encoder: log file size is below the minimum");
    this.#position = { ...position };
    this.#lastSeq = lastSeq;
    this.#mark = {
      ...position,
      bufferLength: 0,
      groupCount: 0,
      openEnd: 0,
      openLastSeq: 0,
      lastSeq: 0,
    };
  }

  /** The next group of frames to be written to the log. */
  get nextGroup(): FrameGroup | undefined {
    return this.#groups[0];
  }

  begin(catalogSeq: number): void {
    assert(this.#frameStart === -1, "frame encoder: previous commit has not ended");
    const mark = this.#mark;
    mark.fileNumber = this.#position.fileNumber;
    mark.offset = this.#position.offset;
    mark.frameNumber = this.#position.frameNumber;
    mark.bufferLength = this.#buffer.length;
    mark.groupCount = this.#groups.length;
    mark.openEnd = this.#open?.end ?? -1;
    mark.openLastSeq = this.#open?.lastSeq ?? 0;
    mark.lastSeq = this.#lastSeq;
    this.#catalogSeq = catalogSeq;
    this.#partCount = 0;
    this.#beginFrame();
  }

  beginWrite(write: TableWrite, columns: readonly StoredColumn[]): void {
    this.#write = write;
    this.#columns = columns;
    this.#endWrite();
    this.#rowCountOffset = writeHead(this.#buffer, write, columns);
  }

  addRow(row: Row, seq: number, prev: number): void {
    assert(
      row.length === this.#columns.length,
      "frame encoder: number of values differs from the number of columns",
    );
    const { rowBytesMax } = this.#options;
    writeRow(this.#buffer, row, { seq: this.#seqToWrite(seq), prev, rowBytesMax });
    this.#endRow(seq);
  }

  addBatch({ columns, rowCount }: Batch, seqs: Float64Array, prevs: Float64Array): void {
    assert(
      columns.length === this.#columns.length,
      "frame encoder: number of vectors differs from the number of columns",
    );
    assert(
      seqs.length === rowCount,
      "frame encoder: number of seqs differs from the number of rows",
    );
    const { rowBytesMax } = this.#options;
    if (rowCount > 0 && this.#addColumns({ columns, rowCount }, seqs, prevs)) return;
    for (let row = 0; row < rowCount; row += 1) {
      const seq = seqs[row] ?? 0;
      const head = { seq: this.#seqToWrite(seq), prev: prevs[row] ?? 0, rowBytesMax };
      writeRowAt(this.#buffer, { columns, row }, head);
      this.#endRow(seq);
    }
  }

  /**
   * Writes columnar rows if they fit into the frame and their columns are supported. Returns false
   * otherwise.
   */
  #addColumns(batch: Batch, seqs: Float64Array, prevs: Float64Array): boolean {
    const firstSeq = this.#frameFirstSeq === 0 ? (seqs[0] ?? 0) : this.#frameFirstSeq;
    const nextSeq = this.#frameFirstSeq === 0 ? firstSeq : this.#nextSeq;
    const { rowBytesMax } = this.#options;
    const bytesMax = this.#partBytes - (this.#buffer.length - this.#frameStart);
    const heads = { seqs, prevs, nextSeq, rowBytesMax, bytesMax };
    if (!writeColumns(this.#buffer, batch, heads)) return false;
    this.#frameFirstSeq = firstSeq;
    this.#lastSeq = seqs.at(-1) ?? this.#lastSeq;
    this.#nextSeq = this.#lastSeq + 1;
    this.#rowCount += batch.rowCount;
    return true;
  }

  /**
   * Returns the seq to write for the next row; undefined if a decoder expects exactly this seq, in
   * which case it is not written.
   */
  #seqToWrite(seq: number): number | undefined {
    if (this.#frameFirstSeq === 0) {
      this.#frameFirstSeq = seq;
      this.#nextSeq = seq;
    }
    return seq === this.#nextSeq ? undefined : seq;
  }

  #endRow(seq: number): void {
    this.#nextSeq = seq + 1;
    this.#lastSeq = seq;
    this.#rowCount += 1;
    if (this.#buffer.length - this.#frameStart > this.#partBytes) this.#splitCommit();
  }

  /** Begins a commit that is encoded elsewhere and later submitted with `append`. */
  prepare(offsetOf: (index: number) => number): PreparedFrames {
    const { commitBytesMax, rowBytesMax } = this.#options;
    return new PreparedFrames({
      partBytes: this.#partBytes,
      rowBytesMax,
      commitBytesMax,
      offsetOf,
    });
  }

  /**
   * Appends the parts of a prepared commit, each as a group of its own. Returns the last group.
   */
  append(
    prepared: PreparedFrames,
    { catalogSeq, firstSeq }: { catalogSeq: number; firstSeq: number },
  ): number {
    assert(this.#frameStart === -1, "frame encoder: previous commit has not ended");
    assert(prepared.partCount > 0, "frame encoder: prepared commit has no rows");
    const position = this.#position;
    for (let part = 0; part < prepared.partCount; part += 1) {
      const length = prepared.sealedLength(part);
      this.#placeFrame(length);
      const { fileNumber, frameNumber } = position;
      const before = { fileNumber, firstFrame: frameNumber };
      const durableFrames = this.#durableBefore(before);
      const head = { fileNumber, frameNumber, durableFrames, catalogSeq };
      const own = prepared.seal(part, head, firstSeq);
      const group = this.#openGroup({ start: 0, end: length, own });
      position.offset += length;
      position.frameNumber += 1;
      this.#lastSeq = prepared.lastSeqOf(part, firstSeq);
      group.nextFrame = position.frameNumber;
      group.lastSeq = this.#lastSeq;
    }
    this.#open = undefined;
    return this.#groupCount;
  }

  abort(): void {
    assert(this.#frameStart !== -1, "frame encoder: no commit is in progress");
    const mark = this.#mark;
    this.#buffer.cutTo(mark.bufferLength);
    this.#position.fileNumber = mark.fileNumber;
    this.#position.offset = mark.offset;
    this.#position.frameNumber = mark.frameNumber;
    this.#groups.length = mark.groupCount;
    this.#open = undefined;
    const last = this.#groups.at(-1);
    if (last !== undefined && mark.openEnd !== -1) {
      last.end = mark.openEnd;
      last.nextFrame = mark.frameNumber;
      last.lastSeq = mark.openLastSeq;
      this.#open = last;
    }
    this.#lastSeq = mark.lastSeq;
    this.#frameStart = -1;
    this.#rowCountOffset = 0;
  }

  end(): number {
    assert(this.#frameStart !== -1, "frame encoder: no commit is in progress");
    this.#endWrite();
    this.#seal(this.#partCount === 0 ? "commit" : "partEnd");
    this.#frameStart = -1;
    return defined(this.#open, "frame encoder: sealed frame belongs to no commit group").number;
  }

  /**
   * Returns the next group of frames to write. The previous group must have been written. No
   * frames are added to a group once it is taken.
   */
  takeGroup(): TakenGroup {
    assert(this.#frameStart === -1, "frame encoder: commit group taken during a commit");
    const group = defined(
      this.#groups.shift(),
      "frame encoder: no commit group is waiting to be written",
    );
    if (group === this.#open) this.#open = undefined;
    const bytes = group.own ?? this.#buffer.range(group.start, group.end);
    if (this.#groups.length === 0) {
      const { length } = this.#writtenBuffer;
      assert(length === 0, "frame encoder: the spare buffer still holds unwritten frames");
      [this.#buffer, this.#writtenBuffer] = [this.#writtenBuffer, this.#buffer];
    }
    return { ...group, bytes };
  }

  /**
   * Called when the group of frames taken last has been written or has failed. Its buffer can then
   * be reused.
   */
  groupWritten(): void {
    this.#writtenBuffer = emptied(this.#writtenBuffer);
  }

  /**
   * Drops all groups of frames, including a group taken by the writer. The next frame is written
   * at `position`, an earlier position in the log.
   */
  takeBack(position: Position, lastSeq: number): void {
    this.#groups = [];
    this.#open = undefined;
    this.#buffer = emptied(this.#buffer);
    this.groupWritten();
    this.#position = { ...position };
    this.#lastSeq = lastSeq;
  }

  #beginFrame(): void {
    this.#frameStart = beginFrame(this.#buffer);
    this.#frameFirstSeq = 0;
    this.#rowCountOffset = 0;
    this.#rowCount = 0;
  }

  /** Fills in the row count in the head of the current write. */
  #endWrite(): void {
    if (this.#rowCountOffset !== 0) this.#buffer.setU32(this.#rowCountOffset, this.#rowCount);
    this.#rowCountOffset = 0;
    this.#rowCount = 0;
  }

  /** Ends a frame in the middle of a commit, and continues the current write in the next frame. */
  #splitCommit(): void {
    requireCommitFits(this.#buffer.length - this.#mark.bufferLength, this.#options.commitBytesMax);
    this.#endWrite();
    this.#seal(this.#partCount === 0 ? "partBegin" : "part");
    this.#partCount += 1;
    this.#beginFrame();
    this.beginWrite(
      defined(this.#write, "frame encoder: row belongs to no table write"),
      this.#columns,
    );
  }

  /** Fills in the frame's header, and adds the frame to the open group or to a new group. */
  #seal(kind: FrameKind): void {
    const buffer = this.#buffer;
    const start = this.#frameStart;
    const position = this.#position;
    const length = Math.ceil((buffer.length - start) / 8) * 8;
    this.#placeFrame(length);
    const group = this.#open ?? this.#openGroup({ start, end: start });
    const { fileNumber, frameNumber } = position;
    sealFrame(buffer, start, {
      kind,
      fileNumber,
      frameNumber,
      durableFrames: this.#durableBefore(group),
      firstSeq: this.#frameFirstSeq === 0 ? this.#lastSeq : this.#frameFirstSeq,
      lastSeq: this.#lastSeq,
      catalogSeq: this.#catalogSeq,
    });
    position.offset += length;
    position.frameNumber += 1;
    group.end = buffer.length;
    group.nextFrame = position.frameNumber;
    group.lastSeq = this.#lastSeq;
  }

  /** Moves to the next log file if the current file has no room for a frame of this length. */
  #placeFrame(length: number): void {
    const position = this.#position;
    const isCurrent = position.fileNumber === this.currentFile.number;
    const fileBytes = isCurrent ? this.currentFile.bytes : this.#options.fileBytes;
    assert(
      length <= this.#options.fileBytes - WAL_HEADER_BYTES,
      "frame encoder: frame does not fit in a log file",
    );
    if (position.offset + length <= fileBytes) return;
    position.fileNumber += 1;
    position.offset = WAL_HEADER_BYTES;
    position.frameNumber = 0;
    this.#open = undefined;
  }

  /**
   * Returns how many earlier frames in a file are durable by the time that a group of frames is
   * written to it.
   */
  #durableBefore({
    fileNumber,
    firstFrame,
  }: Pick<FrameGroup, "fileNumber" | "firstFrame">): number {
    if (!this.#options.isRelaxed) return firstFrame;
    return fileNumber === this.currentFile.number ? this.durableFrames : 0;
  }

  #openGroup({ end, own, start }: Pick<FrameGroup, "end" | "own" | "start">): FrameGroup {
    this.#groupCount += 1;
    const { fileNumber, offset, frameNumber } = this.#position;
    const group: FrameGroup = {
      number: this.#groupCount,
      fileNumber,
      offset,
      firstFrame: frameNumber,
      start,
      end,
      nextFrame: frameNumber,
      lastSeq: 0,
      ...(own === undefined ? {} : { own }),
    };
    this.#groups.push(group);
    this.#open = group;
    return group;
  }
}

function emptied(buffer: ByteWriter): ByteWriter {
  if (buffer.view().buffer.byteLength > BUFFER_BYTES_KEPT) {
    return new ByteWriter(BUFFER_BYTES_AT_START);
  }
  buffer.reset();
  return buffer;
}
