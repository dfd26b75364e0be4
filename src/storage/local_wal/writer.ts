/**
 * The log in local files: commits are encoded in their turn, and written in groups.
 *
 *     commits ──encode──► buffer: │ group n+1 (open) │    one group on its way to the disk at most
 *                                                      ► group n ──written, durable──► settled
 *
 * - A group is what is in the buffer when the one before it has become durable: there is no timer.
 *   It is written and made durable by one call, off the event loop.
 * - Nothing is written behind a group before that group is durable, so a frame can say how many
 *   frames before it are durable: see `format.ts`.
 * - A large group of one commit is handed over in that commit's own turn: what the commit has still
 *   to do in memory is done while the disk works.
 * - A group that begins a file waits, and all behind it, while that file is being made.
 * - In relaxed mode a group settles when it is written, in the event loop's own turn; it is synced
 *   later, together with those that were written meanwhile.
 * - A group that met a full disk is wiped, and it and all later ones are taken back; so is one for
 *   which no further log file could be opened, of which nothing is on the disk: the next group
 *   tries again to enter that file. Any other error is fatal, since nobody can know what is there:
 *   a sync is never tried again.
 */
import { assert } from "../../base/assert.ts";
import { DiskError, hasNoDescriptor } from "../../base/errors.ts";
import { COMMIT_BYTES_MAX } from "../../base/limits.ts";
import type { Batch, Row } from "../../types/mod.ts";
import type { CommitLog, CommitLogEvents, ListedLogFile } from "../contract/commit_log.ts";
import type { StoredColumn, TableWrite } from "../contract/store.ts";
import type { FrameDraft } from "./commit_draft.ts";
import { WalFiles, type WalFilesOptions } from "./files.ts";
import { WAL_HEADER_BYTES } from "./format.ts";
import { FrameEncoder, type FrameGroup, type Position, type TakenGroup } from "./frame_encoder.ts";
import type { HighWaterFile } from "./high_water.ts";
import type { WalEnd } from "./reader.ts";
import { SyncedSeq } from "./synced_seq.ts";

export interface LocalWalOptions extends WalFilesOptions {
  readonly highWater: HighWaterFile;
  readonly rowBytesMax: number;
  /** Bytes of one commit, {@linkcode COMMIT_BYTES_MAX} when absent. */
  readonly commitBytesMax?: number | undefined;
  /** Groups of so many bytes are written early; as is best where absent. */
  readonly earlyBytesMin?: number | undefined;
  readonly end: WalEnd;
  /** The log began another file; never called while it is made. */
  readonly onRolled: () => void;
}

/** What of a group fails: that something becomes durable, the file that it begins, or its write. */
type GroupStep = "sync" | "roll" | "write";

/** A log in which nothing was written for so long is at rest, and nobody waits for the disk. */
const REST_MS = 100;

/** How far the high-water file may lag under load, in groups. */
const GROUPS_PER_NOTE = 16;

/** A group of so many bytes gains more from an early write than from company. */
const EARLY_BYTES_MIN = 32_768;

const NO_EVENTS: CommitLogEvents = {
  onSettled() {},
  onTakenBack() {},
  onFatal() {},
};

export class LocalWal implements CommitLog {
  events: CommitLogEvents = NO_EVENTS;
  readonly #options: LocalWalOptions;
  readonly #files: WalFiles;
  readonly #encoder: FrameEncoder;
  /** The end of what was written. */
  #written: Position;
  #writtenSeq: number;
  #lastWritten: FrameGroup | undefined;
  /** Settled, and not yet in the high-water file. */
  #unnotedGroups = 0;
  #isScheduled = false;
  #awaitsRest = false;
  /** The next file is being made, and the next group begins it. */
  #awaitsFile = false;
  /** A group is on its way to the disk, or what relaxed mode has written is being synced. */
  #isDiskBusy = false;
  #isFatal = false;
  #isClosed = false;
  #idleWaiters: (() => void)[] = [];
  readonly #synced: SyncedSeq;
  /** Why it takes nothing more. */
  #failure: unknown;

  /** @throws {DiskError} If the first file cannot be made, or remains of a torn group not wiped. */
  constructor(options: LocalWalOptions) {
    const { commitBytesMax = COMMIT_BYTES_MAX, end, fileBytes, rowBytesMax, isRelaxed } = options;
    this.#options = options;
    this.#files = new WalFiles(options, end.files);
    this.#writtenSeq = end.lastSeq;
    this.#synced = new SyncedSeq(end.lastSeq);
    const { lastSeq } = end;
    let position = { offset: end.offset, frameNumber: end.frameNumber };
    if (this.#files.currentNumber === 0) {
      this.#files.roll({ fileNumber: 1, baseSeq: lastSeq });
      this.#files.enter();
      position = { offset: WAL_HEADER_BYTES, frameNumber: 0 };
    } else {
      this.#wipeTorn(end);
    }
    this.#written = { fileNumber: this.#files.currentNumber, ...position };
    this.#encoder = new FrameEncoder({
      fileBytes,
      rowBytesMax,
      commitBytesMax,
      isRelaxed,
      position: this.#written,
      lastSeq,
    });
    this.#noteCurrentFile(position.frameNumber);
  }

  get oldestUnwrittenFile(): number {
    return this.#files.oldestUnwritten;
  }

  get files(): readonly ListedLogFile[] {
    return this.#files.kept;
  }

  get oldestFile(): number {
    return this.#files.oldestNumber;
  }

  get written(): { fileNumber: number; offset: number; seq: number } {
    const { fileNumber, offset } = this.#written;
    return { fileNumber, offset, seq: this.#writtenSeq };
  }

  begin(catalogSeq: number): void {
    assert(!this.#isFatal, "a failed log takes nothing more");
    assert(!this.#isClosed, "a closed log takes nothing more");
    this.#encoder.begin(catalogSeq);
  }

  beginWrite(write: TableWrite, columns: readonly StoredColumn[]): void {
    this.#encoder.beginWrite(write, columns);
  }

  addRow(row: Row, seq: number, prev: number): void {
    this.#encoder.addRow(row, seq, prev);
  }

  addBatch(batch: Batch, seqs: Float64Array, prevs: Float64Array): void {
    this.#encoder.addBatch(batch, seqs, prevs);
  }

  abort(): void {
    this.#encoder.abort();
  }

  end(): number {
    const groupNumber = this.#encoder.end();
    this.#schedule();
    return groupNumber;
  }

  writeEarly(): void {
    const group = this.#encoder.nextGroup;
    const { earlyBytesMin = EARLY_BYTES_MIN } = this.#options;
    if (group === undefined || group.end - group.start < earlyBytesMin) return;
    if (!this.#isDiskBusy) this.#writeAtOnce(group);
  }

  draft(offsetOf: (index: number) => number): FrameDraft {
    return this.#encoder.draft(offsetOf);
  }

  append(draft: FrameDraft, head: { catalogSeq: number; firstSeq: number }): number {
    assert(!this.#isFatal, "a failed log takes nothing more");
    assert(!this.#isClosed, "a closed log takes nothing more");
    const groupNumber = this.#encoder.append(draft, head);
    this.#schedule();
    return groupNumber;
  }

  synced(seq: number): Promise<void> {
    const reached = this.#synced.reached(seq);
    if (this.#isFatal) this.#synced.fail(this.#failure);
    return reached;
  }

  release(belowFileNumber: number): void {
    this.#files.release(belowFileNumber);
    // One that was let go may serve where the next is still being made.
    if (this.#awaitsFile) this.#schedule();
  }

  async close(): Promise<void> {
    while (!this.#isFatal && (this.#isDiskBusy || this.#encoder.nextGroup !== undefined)) {
      await new Promise<void>((resolve) => this.#idleWaiters.push(resolve));
    }
    this.#isClosed = true;
    this.#options.highWater.close();
    await this.#files.close();
  }

  #wipeTorn({ offset, wipeUpTo }: WalEnd): void {
    const { current } = this.#files;
    if (wipeUpTo > offset) current.write(new Uint8Array(wipeUpTo - offset), offset);
    // What was read may have been in the system's memory only, and so may the file's name.
    current.syncNow();
    this.#options.disk.syncDirectory(this.#options.paths.wal);
  }

  #noteCurrentFile(durableFrames: number): void {
    const { currentNumber: number, currentBytes: bytes } = this.#files;
    this.#encoder.currentFile = { number, bytes };
    this.#encoder.durableFrames = durableFrames;
  }

  #schedule(): void {
    const waitsForSync = this.#isDiskBusy && !this.#options.isRelaxed;
    if (this.#isScheduled || waitsForSync) return;
    this.#isScheduled = true;
    void this.#writeSoon();
  }

  /**
   * Writes in a later turn: what other requests of this one commit goes into the same group. With
   * 64 clients that made 28,000 commits a second of 22,000.
   */
  async #writeSoon(): Promise<void> {
    await this.#options.clock.yield();
    this.#isScheduled = false;
    this.#writeNext();
  }

  /** Writes the next group, if there is one and nothing stands before it. */
  #writeNext(): void {
    if (this.#isFatal || this.#isClosed) return;
    const { isRelaxed } = this.#options;
    for (;;) {
      const { nextGroup } = this.#encoder;
      if (nextGroup === undefined) break;
      // A file that is being synced is not closed.
      const isRolling = nextGroup.fileNumber !== this.#files.currentNumber;
      if (this.#isDiskBusy && (isRolling || !isRelaxed)) return;
      if (isRolling && this.#waitsForFile()) return;
      const group = this.#encoder.takeGroup();
      if (!this.#reachFile(group)) break;
      if (!isRelaxed) {
        this.#writeDurably(group);
        return;
      }
      if (!this.#writeRelaxed(group)) break;
      this.events.onSettled(group.number);
      if (!this.#isDiskBusy) this.#sync(group);
    }
    if (!this.#isDiskBusy && this.#encoder.nextGroup === undefined) this.#wakeIdle();
  }

  /**
   * Whether the next file is being made. What is next is written behind that: to make another one
   * would hold this turn for as long as the disk takes to write all of it.
   */
  #waitsForFile(): boolean {
    const { making } = this.#files;
    if (making === undefined) return false;
    if (!this.#awaitsFile) void this.#writeBehind(making);
    return true;
  }

  async #writeBehind(making: Promise<void>): Promise<void> {
    this.#awaitsFile = true;
    await making;
    this.#awaitsFile = false;
    this.#writeNext();
  }

  /** Hands the next group over within this turn, if that calls no events. */
  #writeAtOnce({ fileNumber }: FrameGroup): void {
    if (this.#options.isRelaxed) return;
    // To enter another file calls events, which belong to a turn of their own.
    if (fileNumber !== this.#files.currentNumber || this.#files.isBetweenFiles) return;
    this.#writeDurably(this.#encoder.takeGroup());
  }

  /** Returns whether the file of a group can be written; if not, as {@linkcode #failGroup}. */
  #reachFile(group: FrameGroup): boolean {
    const isRolling = group.fileNumber !== this.#files.currentNumber;
    let step: GroupStep = "sync";
    try {
      // In relaxed mode the last group may not be durable yet, and only the last file may be torn.
      if (isRolling && this.#options.isRelaxed) this.#syncNow();
      step = "roll";
      if (isRolling) this.#roll(group.fileNumber);
      if (this.#files.isBetweenFiles) this.#enter();
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.#failGroup(group, step, error);
      return false;
    }
    return true;
  }

  #writeDurably(group: TakenGroup): void {
    this.#isDiskBusy = true;
    this.#files.current.writeDurably(group.bytes, group.offset).then(
      () => this.#afterWrite(group),
      (error: unknown) => {
        this.#isDiskBusy = false;
        if (error instanceof DiskError) {
          this.#failGroup(group, error.operation === "write" ? "write" : "sync", error);
        } else {
          this.#fail(error);
        }
        this.#writeNext();
      },
    );
  }

  #afterWrite(group: TakenGroup): void {
    this.#noteWritten(group);
    this.#afterSync(group);
    this.#prepareFile();
  }

  /** Returns whether the group is written; if not, as {@linkcode #failGroup}. */
  #writeRelaxed(group: TakenGroup): boolean {
    try {
      this.#files.current.write(group.bytes, group.offset);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.#failGroup(group, "write", error);
      return false;
    }
    this.#noteWritten(group);
    this.#prepareFile();
    return true;
  }

  #noteWritten(group: FrameGroup): void {
    this.#written = {
      fileNumber: group.fileNumber,
      offset: group.offset + group.end - group.start,
      frameNumber: group.nextFrame,
    };
    this.#writtenSeq = group.lastSeq;
    this.#lastWritten = group;
    this.#encoder.groupWritten();
  }

  /** Has the next file made: from a quarter on at the next rest, from the middle on at once. */
  #prepareFile(): void {
    if (this.#files.isPrepared) return;
    const { offset } = this.#written;
    const { currentBytes } = this.#files;
    if (offset > currentBytes / 2) this.#files.prepare();
    else if (offset > currentBytes / 4) this.#prepareAtRest();
  }

  #prepareAtRest(): void {
    if (this.#awaitsRest) return;
    this.#awaitsRest = true;
    const { fileNumber, offset } = this.#written;
    this.#options.clock.after(REST_MS, () => {
      this.#awaitsRest = false;
      if (this.#isFatal || this.#isClosed) return;
      const isSame = fileNumber === this.#written.fileNumber && offset === this.#written.offset;
      if (isSame) this.#files.prepare();
      else this.#prepareFile();
    });
  }

  #syncNow(): void {
    this.#files.current.syncNow();
    this.#synced.note(this.#writtenSeq);
  }

  #roll(fileNumber: number): void {
    this.#files.roll({ fileNumber, baseSeq: this.#writtenSeq });
    // What is taken back later goes on in this file: the one before is at its end.
    this.#written = { fileNumber, offset: WAL_HEADER_BYTES, frameNumber: 0 };
    this.#noteCurrentFile(0);
  }

  #enter(): void {
    this.#files.enter();
    this.#options.onRolled();
  }

  #sync(group: FrameGroup): void {
    this.#isDiskBusy = true;
    this.#files.current.sync().then(
      () => this.#afterSync(group),
      (error: unknown) => {
        this.#isDiskBusy = false;
        this.#fail(error);
      },
    );
  }

  #afterSync({ number, fileNumber, nextFrame, lastSeq }: FrameGroup): void {
    this.#isDiskBusy = false;
    if (this.#isFatal) return;
    if (fileNumber === this.#files.currentNumber) this.#encoder.durableFrames = nextFrame;
    this.#synced.note(lastSeq);
    // The disk works on what waits while the writers of this group are answered.
    const { nextGroup } = this.#encoder;
    if (nextGroup !== undefined) this.#writeAtOnce(nextGroup);
    this.#noteSettled(lastSeq);
    if (!this.#options.isRelaxed) this.events.onSettled(number);
    this.#schedule();
    if (this.#encoder.nextGroup === undefined) this.#wakeIdle();
    // In relaxed mode more may have been written meanwhile.
    const last = this.#lastWritten;
    if (last !== undefined && last.number > number && !this.#isDiskBusy) this.#sync(last);
  }

  /** Writes the high-water file once for groups that follow each other without a pause. */
  #noteSettled(seq: number): void {
    this.#unnotedGroups += 1;
    const isPause = !this.#isDiskBusy && this.#encoder.nextGroup === undefined;
    if (!isPause && this.#unnotedGroups < GROUPS_PER_NOTE) return;
    this.#unnotedGroups = 0;
    try {
      this.#options.highWater.write(seq);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // Safe: the file may lag behind the log.
      this.#options.log.warn("cannot write the high-water file", { code: error.code });
    }
  }

  /** Takes a group back that did not become durable, and all behind it, or fails the log. */
  #failGroup(group: FrameGroup, step: GroupStep, error: DiskError): void {
    if (!this.#isRefused(step, error)) {
      this.#fail(error);
      return;
    }
    try {
      // What was written of the group must never be taken for a commit.
      if (step === "write") {
        this.#files.current.write(new Uint8Array(group.end - group.start), group.offset);
        this.#files.current.syncNow();
      }
    } catch (wipeError) {
      this.#fail(wipeError);
      return;
    }
    this.#encoder.takeBack(this.#written, this.#writtenSeq);
    this.events.onTakenBack(group.number, error);
  }

  /** Whether an error says that nothing was done, and not that nobody knows what was. */
  #isRefused(step: GroupStep, { code }: DiskError): boolean {
    if (step === "sync") return false;
    if (step === "write") return code === "ENOSPC";
    return hasNoDescriptor(code) || (code === "ENOSPC" && !this.#files.isBetweenFiles);
  }

  #fail(error: unknown): void {
    if (this.#isFatal) return;
    this.#isFatal = true;
    this.#failure = error;
    this.events.onFatal(error);
    this.#synced.fail(error);
    this.#wakeIdle();
  }

  #wakeIdle(): void {
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const wake of waiters) wake();
  }
}
