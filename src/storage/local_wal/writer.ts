/**
 * The log in local files: commits are encoded in their turn, written in groups, and synced.
 *
 *     commits ──encode──► buffer: │ group n+1 (open) │      one write, one sync under way at most
 *                                                        ► group n ──sync──► settled
 *
 * - A group is what is in the buffer when the sync before it ends: there is no timer.
 * - A group lies in one file. A commit that does not fit goes on in the next file, in a later group.
 * - Nothing is written behind a group before that group is durable (but in relaxed mode), so a frame
 *   can say how many frames before it are durable: see `format.ts`.
 * - A group that met a full disk is wiped, and it and all later ones are taken back. Any other error
 *   is fatal, since nobody can know what is on the disk: a sync is never tried again.
 */
import { assert, defined } from "../../base/assert.ts";
import { ByteWriter } from "../../base/bytes.ts";
import { DatabaseError, DiskError } from "../../base/errors.ts";
import type { Row } from "../../types/mod.ts";
import type { CommitLog, CommitLogEvents } from "../commit_log.ts";
import type { StoredColumn, TableWrite } from "../store.ts";
import { WalFiles, type WalFilesOptions } from "./files.ts";
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
import type { HighWaterFile } from "./high_water.ts";
import type { WalEnd } from "./reader.ts";
import { writeValue } from "./value_codec.ts";

/** A commit is split into frames of about this size. */
const PART_BYTES_MAX: number = 4 * 1024 * 1024;

/** A buffer that a huge commit has grown beyond this is given up afterwards. */
const BUFFER_BYTES_KEPT: number = 16 * 1024 * 1024;

const BUFFER_BYTES_AT_START: number = 256 * 1024;

export interface LocalWalOptions extends WalFilesOptions {
  readonly highWater: HighWaterFile;
  /** Answer before the sync. */
  readonly isRelaxed: boolean;
  readonly rowBytesMax: number;
  readonly end: WalEnd;
}

/** A place in the log. */
interface Position {
  fileNumber: number;
  offset: number;
  frameNumber: number;
}

/** Frames that are written at once: bytes `start` to `end` of the buffer. */
interface Group {
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

const NO_EVENTS: CommitLogEvents = {
  onSettled() {},
  onTakenBack() {},
  onFatal() {},
  onRolled() {},
};

export class LocalWal implements CommitLog {
  events: CommitLogEvents = NO_EVENTS;
  readonly #options: LocalWalOptions;
  readonly #files: WalFiles;
  readonly #partBytes: number;
  #buffer = new ByteWriter(BUFFER_BYTES_AT_START);
  /** Not yet written, in order. */
  #groups: Group[] = [];
  /** The last of `#groups`, while frames may be added to it. */
  #open: Group | undefined;
  #groupCount = 0;
  #position: Position;
  /** The end of what was written. */
  #written: Position;
  #writtenSeq: number;
  #lastWritten: Group | undefined;
  /** Frames at the start of the current file that are durable. */
  #durableFrames: number;
  #lastSeq: number;
  #idsUpTo: number;
  #isScheduled = false;
  #isSyncing = false;
  #isFatal = false;
  #isClosed = false;
  #idleWaiters: (() => void)[] = [];

  // The commit that is being written.
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

  /** @throws {DiskError} If the first file cannot be made, or remains of a torn group not wiped. */
  constructor(options: LocalWalOptions) {
    const { end, fileBytes, rowBytesMax } = options;
    this.#options = options;
    // Beside the row that crosses the limit there is the head of its write.
    const slack = WAL_HEADER_BYTES + FRAME_HEADER_BYTES + Math.min(65536, fileBytes / 8);
    this.#partBytes = Math.min(PART_BYTES_MAX, fileBytes - slack - rowBytesMax);
    assert(this.#partBytes >= 1024, "a log file holds the largest row and a little more");
    this.#files = new WalFiles(options, end.files);
    this.#lastSeq = end.lastSeq;
    this.#idsUpTo = end.idsUpTo;
    this.#writtenSeq = end.lastSeq;
    const { currentNumber: fileNumber } = this.#files;
    this.#position = { fileNumber, offset: end.offset, frameNumber: end.frameNumber };
    if (fileNumber === 0) {
      this.#files.roll({ fileNumber: 1, baseSeq: end.lastSeq, idsUpTo: end.idsUpTo });
      this.#position = { fileNumber: 1, offset: WAL_HEADER_BYTES, frameNumber: 0 };
    } else {
      const { current } = this.#files;
      if (end.wipeUpTo > end.offset) {
        current.write(new Uint8Array(end.wipeUpTo - end.offset), end.offset);
      }
      // What was read may have been in the system's memory only.
      current.syncNow();
    }
    this.#written = { ...this.#position };
    this.#durableFrames = this.#position.frameNumber;
    this.#mark = {
      ...this.#position,
      bufferLength: 0,
      groupCount: 0,
      openEnd: 0,
      openLastSeq: 0,
      lastSeq: 0,
    };
  }

  get oldestUnwrittenFile(): number {
    return this.#files.currentNumber;
  }

  get bytes(): number {
    return this.#files.bytes;
  }

  get oldestFile(): number {
    return this.#files.oldestNumber;
  }

  begin(catalogVersion: number): void {
    assert(this.#frameStart === -1, "one commit is written at a time");
    assert(!this.#isFatal, "a failed log takes nothing more");
    assert(!this.#isClosed, "a closed log takes nothing more");
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
      buffer.u8(type.kind === "decimal" ? type.scale : 0);
    }
    this.#rowCountOffset = buffer.length;
    buffer.u32(0);
  }

  addRow(row: Row, seq: number, prev: number): void {
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
    assert(row.length === this.#columns.length, "a row has a value for each column");
    for (const value of row) writeValue(buffer, value);
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
    this.#schedule();
    return defined(this.#open, "a sealed frame is in a group").number;
  }

  reserveIds(upTo: number): void {
    if (this.#isFatal || this.#isClosed) return;
    this.#idsUpTo = upTo;
    this.#addControlFrame("ids");
    this.#schedule();
  }

  release(belowFileNumber: number): void {
    this.#files.release(belowFileNumber);
  }

  async close(): Promise<void> {
    while (!this.#isFatal && (this.#isSyncing || this.#groups.length > 0)) {
      await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
    }
    this.#isClosed = true;
    if (!this.#isFatal) this.#markClosed();
    this.#options.highWater.close();
    await this.#files.close();
  }

  #markClosed(): void {
    // A log that is full to the last bytes does without the mark, which only saves ids.
    const frameBytes = FRAME_HEADER_BYTES + 8;
    if (this.#position.offset + frameBytes > this.#files.currentBytes) return;
    this.#addControlFrame("close");
    const group = defined(this.#groups.shift(), "the mark is in a group");
    this.#files.current.write(this.#buffer.view().subarray(group.start, group.end), group.offset);
    this.#files.current.syncNow();
    this.#options.highWater.write(group.lastSeq);
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

  #addControlFrame(kind: "ids" | "close"): void {
    assert(this.#frameStart === -1, "a control frame is not part of a commit");
    this.#beginFrame();
    this.#buffer.u53(this.#idsUpTo);
    this.#seal(kind);
    this.#frameStart = -1;
  }

  /** Fills in the frame's header and puts it into the open group, or into a new one. */
  #seal(kind: FrameKind): void {
    const buffer = this.#buffer;
    const start = this.#frameStart;
    const position = this.#position;
    const length = Math.ceil((buffer.length - start) / 8) * 8;
    const isCurrent = position.fileNumber === this.#files.currentNumber;
    const fileBytes = isCurrent ? this.#files.currentBytes : this.#options.fileBytes;
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
      durableFrames: isRelaxed ? (isCurrent ? this.#durableFrames : 0) : group.firstFrame,
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

  #openGroup(start: number): Group {
    this.#groupCount += 1;
    const { fileNumber, offset, frameNumber } = this.#position;
    const group: Group = {
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

  #schedule(): void {
    if (this.#isScheduled || this.#isSyncing) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      this.#writeNext();
    });
  }

  /** Writes the next group, if there is one and nothing stands before it. */
  #writeNext(): void {
    if (this.#isFatal || this.#isClosed) return;
    for (;;) {
      const group = this.#groups[0];
      if (group === undefined) break;
      // A file that is being synced is not closed.
      const isRolling = group.fileNumber !== this.#files.currentNumber;
      if (this.#isSyncing && (isRolling || !this.#options.isRelaxed)) return;
      this.#groups.shift();
      if (group === this.#open) this.#open = undefined;
      if (!this.#writeGroup(group)) break;
      if (this.#options.isRelaxed) this.events.onSettled(group.number);
      if (!this.#isSyncing) this.#sync(group);
    }
    if (!this.#isSyncing && this.#groups.length === 0) this.#wakeIdle();
  }

  /** Returns whether the group is written; if not, it was taken back or the log has failed. */
  #writeGroup(group: Group): boolean {
    let isBegun = false;
    try {
      if (group.fileNumber !== this.#files.currentNumber) this.#roll(group.fileNumber);
      isBegun = true;
      this.#files.current.write(this.#buffer.view().subarray(group.start, group.end), group.offset);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.#failWrite(group, { error, isBegun });
      return false;
    }
    this.#written = {
      fileNumber: group.fileNumber,
      offset: group.offset + group.end - group.start,
      frameNumber: group.nextFrame,
    };
    this.#writtenSeq = group.lastSeq;
    this.#lastWritten = group;
    if (this.#groups.length === 0) this.#emptyBuffer();
    if (this.#written.offset > this.#files.currentBytes / 2) this.#files.prepare();
    return true;
  }

  #roll(fileNumber: number): void {
    // In relaxed mode the last group may not be durable yet, and only the last file may be torn.
    if (this.#options.isRelaxed) this.#files.current.syncNow();
    this.#files.roll({ fileNumber, baseSeq: this.#writtenSeq, idsUpTo: this.#idsUpTo });
    this.#durableFrames = 0;
    this.events.onRolled();
  }

  #sync(group: Group): void {
    this.#isSyncing = true;
    const { fileNumber, nextFrame, lastSeq } = group;
    this.#files.current.sync().then(
      () => {
        this.#isSyncing = false;
        if (this.#isFatal) return;
        if (fileNumber === this.#files.currentNumber) this.#durableFrames = nextFrame;
        this.#noteHighWater(lastSeq);
        if (!this.#options.isRelaxed) this.events.onSettled(group.number);
        this.#writeNext();
        const last = this.#lastWritten;
        if (last !== undefined && last.number > group.number && !this.#isSyncing) this.#sync(last);
      },
      (error: unknown) => {
        this.#isSyncing = false;
        this.#fail(error);
      },
    );
  }

  #noteHighWater(seq: number): void {
    try {
      this.#options.highWater.write(seq);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // Safe: the file may lag behind the log.
      this.#options.log.warn("cannot write the high-water file", { code: error.code });
    }
  }

  #failWrite(group: Group, { error, isBegun }: { error: DiskError; isBegun: boolean }): void {
    if (error.code !== "ENOSPC") {
      this.#fail(error);
      return;
    }
    try {
      // What was written of the group must never be taken for a commit.
      if (isBegun) {
        this.#files.current.write(new Uint8Array(group.end - group.start), group.offset);
        this.#files.current.syncNow();
      }
    } catch (wipeError) {
      this.#fail(wipeError);
      return;
    }
    this.#groups = [];
    this.#open = undefined;
    this.#emptyBuffer();
    this.#position = { ...this.#written };
    this.#lastSeq = this.#writtenSeq;
    this.events.onTakenBack(group.number, error);
  }

  #fail(error: unknown): void {
    if (this.#isFatal) return;
    this.#isFatal = true;
    this.#groups = [];
    this.#open = undefined;
    this.events.onFatal(error);
    this.#wakeIdle();
  }

  #emptyBuffer(): void {
    if (this.#buffer.view().buffer.byteLength > BUFFER_BYTES_KEPT) {
      this.#buffer = new ByteWriter(BUFFER_BYTES_AT_START);
    } else {
      this.#buffer.reset();
    }
  }

  #wakeIdle(): void {
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const wake of waiters) wake();
  }
}
