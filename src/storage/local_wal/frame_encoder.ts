/**
 * Encodes commits into the log's buffer and arranges their frames in groups.
 *
 *     buffer  │ group n: frames of one file │ group n+1: frames of the next file │ open …
 *
 * - A group is written at once, so it lies in one file. The last group is open: frames are added to
 *   it until the writer takes it.
 * - File, offset and number of a frame are fixed here, when it is sealed; `abort` and `takeBack`
 *   go back to an earlier place.
 */
import { assert, defined } from "../../base/assert.ts";
import { ByteWriter } from "../../base/bytes.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Batch, Row } from "../../types/mod.ts";
import { formOf } from "../convert.ts";
import type { StoredColumn, TableWrite } from "../store.ts";
import {
  beginFrame,
  FRAME_HEADER_BYTES,
  type FrameKind,
  OPERATION_CODES,
  ROW_HAS_PREV,
  ROW_HAS_SEQ,
  sealFrame,
  WAL_HEADER_BYTES,
} from "./format.ts";
import { writeValue, writeValueAt } from "./value_codec.ts";

/** A commit is split into frames of about this size. */
const PART_BYTES_MAX: number = 4 * 1024 * 1024;

/** A buffer that a huge commit has grown beyond this is given up afterwards. */
const BUFFER_BYTES_KEPT: number = 16 * 1024 * 1024;

const BUFFER_BYTES_AT_START: number = 256 * 1024;

/** A place in the log. */
export interface Position {
  fileNumber: number;
  offset: number;
  frameNumber: number;
}

/** Frames that are written at once: bytes `start` to `end` of the buffer. */
export interface FrameGroup {
  readonly number: number;
  readonly fileNumber: number;
  readonly offset: number;
  readonly firstFrame: number;
  readonly start: number;
  end: number;
  nextFrame: number;
  lastSeq: number;
}

/** What `abort` goes back to. */
interface Mark extends Position {
  bufferLength: number;
  groupCount: number;
  openEnd: number;
  openLastSeq: number;
  lastSeq: number;
}

export interface FrameEncoderOptions {
  /** Size of the files to come. */
  readonly fileBytes: number;
  readonly rowBytesMax: number;
  /** Groups are written before the ones before them are durable. */
  readonly isRelaxed: boolean;
  readonly position: Position;
  readonly lastSeq: number;
}

export class FrameEncoder {
  /** The file that is written now. */
  currentFile = { number: 0, bytes: 0 };
  /** Frames at the start of the current file that are durable. */
  durableFrames = 0;
  readonly #options: FrameEncoderOptions;
  readonly #partBytes: number;
  #buffer = new ByteWriter(BUFFER_BYTES_AT_START);
  /** Not yet taken by the writer, in order. */
  #groups: FrameGroup[] = [];
  #open: FrameGroup | undefined;
  #groupCount = 0;
  #position: Position;
  #lastSeq: number;

  // The commit that is being encoded.
  readonly #mark: Mark;
  #catalogVersion = 0;
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
    // Beside the row that crosses the limit there is the head of its write.
    const slack = WAL_HEADER_BYTES + FRAME_HEADER_BYTES + Math.min(65536, fileBytes / 8);
    this.#partBytes = Math.min(PART_BYTES_MAX, fileBytes - slack - rowBytesMax);
    assert(this.#partBytes >= 1024, "a log file holds the largest row and a little more");
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

  /** The group that is written next. */
  get nextGroup(): FrameGroup | undefined {
    return this.#groups[0];
  }

  begin(catalogVersion: number): void {
    assert(this.#frameStart === -1, "one commit is written at a time");
    const mark = this.#mark;
    mark.fileNumber = this.#position.fileNumber;
    mark.offset = this.#position.offset;
    mark.frameNumber = this.#position.frameNumber;
    mark.bufferLength = this.#buffer.length;
    mark.groupCount = this.#groups.length;
    mark.openEnd = this.#open?.end ?? -1;
    mark.openLastSeq = this.#open?.lastSeq ?? 0;
    mark.lastSeq = this.#lastSeq;
    this.#catalogVersion = catalogVersion;
    this.#partCount = 0;
    this.#beginFrame();
  }

  beginWrite(write: TableWrite, columns: readonly StoredColumn[]): void {
    this.#write = write;
    this.#columns = columns;
    this.#endWrite();
    const buffer = this.#buffer;
    buffer.u32(write.tableId);
    buffer.u53(write.owner);
    buffer.u8(OPERATION_CODES[write.operation]);
    buffer.u16(columns.length);
    for (const { columnId, type } of columns) {
      assert(columnId <= 65535, "a column id has 16 bits");
      buffer.u16(columnId);
      buffer.u8(formOf(type));
    }
    this.#rowCountOffset = buffer.length;
    buffer.u32(0);
  }

  addRow(row: Row, seq: number, prev: number): void {
    const start = this.#beginRow(seq, prev);
    assert(row.length === this.#columns.length, "a row has a value for each column");
    for (const value of row) writeValue(this.#buffer, value);
    this.#endRow(start, seq);
  }

  addBatch({ columns, rowCount }: Batch, seqs: Float64Array, prevs: Float64Array): void {
    assert(columns.length === this.#columns.length, "a batch has a vector for each column");
    assert(seqs.length === rowCount, "every row has its seq");
    for (let row = 0; row < rowCount; row += 1) {
      const seq = seqs[row] ?? 0;
      const start = this.#beginRow(seq, prevs[row] ?? 0);
      for (const column of columns) writeValueAt(this.#buffer, column, row);
      this.#endRow(start, seq);
    }
  }

  #beginRow(seq: number, prev: number): number {
    const buffer = this.#buffer;
    const start = buffer.length;
    if (this.#frameFirstSeq === 0) {
      this.#frameFirstSeq = seq;
      this.#nextSeq = seq;
    }
    const isNext = seq === this.#nextSeq;
    buffer.u8((isNext ? 0 : ROW_HAS_SEQ) | (prev === 0 ? 0 : ROW_HAS_PREV));
    if (!isNext) buffer.u53(seq);
    if (prev !== 0) buffer.u53(prev);
    return start;
  }

  #endRow(start: number, seq: number): void {
    const buffer = this.#buffer;
    if (buffer.length - start > this.#options.rowBytesMax) {
      throw new DatabaseError(
        "ROW_TOO_LARGE",
        `Cannot store a row of ${buffer.length - start} bytes: a row may have up to ${this.#options.rowBytesMax}`,
      );
    }
    this.#nextSeq = seq + 1;
    this.#lastSeq = seq;
    this.#rowCount += 1;
    if (buffer.length - this.#frameStart > this.#partBytes) this.#splitCommit();
  }

  abort(): void {
    assert(this.#frameStart !== -1, "a commit is being written");
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
    assert(this.#frameStart !== -1, "a commit is being written");
    this.#endWrite();
    this.#seal(this.#partCount === 0 ? "commit" : "partEnd");
    this.#frameStart = -1;
    return defined(this.#open, "a sealed frame is in a group").number;
  }

  /** Hands the next group over; no frame is added to it any more. */
  takeGroup(): FrameGroup {
    const group = defined(this.#groups.shift(), "there is a group to write");
    if (group === this.#open) this.#open = undefined;
    return group;
  }

  /** The bytes of a group, aliasing the buffer. */
  bytesOf({ start, end }: FrameGroup): Uint8Array {
    return this.#buffer.range(start, end);
  }

  /** The group that was taken last is written: its room is used again when none waits. */
  reuseBuffer(): void {
    if (this.#groups.length > 0) return;
    if (this.#buffer.view().buffer.byteLength > BUFFER_BYTES_KEPT) {
      this.#buffer = new ByteWriter(BUFFER_BYTES_AT_START);
    } else {
      this.#buffer.reset();
    }
  }

  /** Drops every group; the next frame goes to an earlier place. */
  takeBack(position: Position, lastSeq: number): void {
    this.#groups = [];
    this.#open = undefined;
    this.reuseBuffer();
    this.#position = { ...position };
    this.#lastSeq = lastSeq;
  }

  #beginFrame(): void {
    this.#frameStart = beginFrame(this.#buffer);
    this.#frameFirstSeq = 0;
    this.#rowCountOffset = 0;
    this.#rowCount = 0;
  }

  /** Fills in how many rows the write has. */
  #endWrite(): void {
    if (this.#rowCountOffset !== 0) this.#buffer.setU32(this.#rowCountOffset, this.#rowCount);
    this.#rowCountOffset = 0;
    this.#rowCount = 0;
  }

  /** Ends a frame in the middle of a commit, and goes on with the same write in another. */
  #splitCommit(): void {
    this.#endWrite();
    this.#seal(this.#partCount === 0 ? "partBegin" : "part");
    this.#partCount += 1;
    this.#beginFrame();
    this.beginWrite(defined(this.#write, "a row belongs to a write"), this.#columns);
  }

  /** Fills in the frame's header and puts it into the open group, or into a new one. */
  #seal(kind: FrameKind): void {
    const buffer = this.#buffer;
    const start = this.#frameStart;
    const position = this.#position;
    const length = Math.ceil((buffer.length - start) / 8) * 8;
    const isCurrent = position.fileNumber === this.currentFile.number;
    const fileBytes = isCurrent ? this.currentFile.bytes : this.#options.fileBytes;
    assert(length <= this.#options.fileBytes - WAL_HEADER_BYTES, "a frame fits a log file");
    if (position.offset + length > fileBytes) {
      position.fileNumber += 1;
      position.offset = WAL_HEADER_BYTES;
      position.frameNumber = 0;
      this.#open = undefined;
    }
    const group = this.#open ?? this.#openGroup(start);
    const { fileNumber, frameNumber } = position;
    const { isRelaxed } = this.#options;
    sealFrame(buffer, start, {
      kind,
      fileNumber,
      frameNumber,
      durableFrames: isRelaxed ? (isCurrent ? this.durableFrames : 0) : group.firstFrame,
      firstSeq: this.#frameFirstSeq === 0 ? this.#lastSeq : this.#frameFirstSeq,
      lastSeq: this.#lastSeq,
      catalogVersion: this.#catalogVersion,
    });
    position.offset += length;
    position.frameNumber += 1;
    group.end = buffer.length;
    group.nextFrame = position.frameNumber;
    group.lastSeq = this.#lastSeq;
  }

  #openGroup(start: number): FrameGroup {
    this.#groupCount += 1;
    const { fileNumber, offset, frameNumber } = this.#position;
    const group: FrameGroup = {
      number: this.#groupCount,
      fileNumber,
      offset,
      firstFrame: frameNumber,
      start,
      end: start,
      nextFrame: frameNumber,
      lastSeq: 0,
    };
    this.#groups.push(group);
    this.#open = group;
    return group;
  }
}
