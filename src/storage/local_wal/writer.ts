/**
 * Writes the log to local files. Each commit is encoded in its own tick, and written as part of a
 * group.
 *
 *     commits ──encode──► buffer: │ group n+1 (open) │    one group on its way to the disk at most
 *                                                      ► group n ──written, durable──► settled
 *
 * - Once a group is durable, the commits in the buffer at that moment form the next group. No
 *   timer is involved. A single call off the event loop writes the group and makes it durable.
 * - Nothing is written after a group before that group is durable. A frame can therefore state how
 *   many earlier frames are durable (see `format.ts`).
 * - If a single commit makes a large group, the group is handed over in that commit's own tick,
 *   which lets the disk work while the commit finishes in memory.
 * - The first group of a file, and all groups after it, wait while that file is being created.
 * - In relaxed mode, a group settles as soon as it is written, within a tick. It is synced later,
 *   together with other groups written in the meantime.
 * - If the disk is full, the group that could not be written is wiped, and it and all later groups
 *   are rolled back. The same happens if no file descriptor is left to open the group's file. In
 *   that case no part of the group is on disk, and the next group tries to enter the same file
 *   again. Any other error is fatal, since the state of the disk is unknown. A failed sync is
 *   never repeated.
 */
import { assert } from "../../base/assert.ts";
import { DiskError, hasNoDescriptor } from "../../base/errors.ts";
import { COMMIT_BYTES_MAX } from "../../base/limits.ts";
import type { Batch, Row } from "../../types/mod.ts";
import type { CommitLog, CommitLogEvents, ListedLogFile } from "../contract/commit_log.ts";
import type { StoredColumn } from "../contract/table_definition.ts";
import type { TableWrite } from "../contract/writes.ts";
import { WalFiles, type WalFilesOptions } from "./files.ts";
import { WAL_HEADER_BYTES } from "./format.ts";
import { FrameEncoder, type FrameGroup, type Position, type TakenGroup } from "./frame_encoder.ts";
import type { HighWaterFile } from "./high_water.ts";
import type { PreparedFrames } from "./prepared_commit.ts";
import type { WalEnd } from "./reader.ts";

export interface LocalWalOptions extends WalFilesOptions {
  readonly highWater: HighWaterFile;
  readonly rowBytesMax: number;
  /** The maximum size of a commit in bytes. Defaults to {@linkcode COMMIT_BYTES_MAX}. */
  readonly commitBytesMax?: number | undefined;
  /**
   * The size in bytes from which groups are written early. Defaults to {@linkcode
   * EARLY_BYTES_MIN}.
   */
  readonly earlyBytesMin?: number | undefined;
  readonly end: WalEnd;
  /**
   * Called after the log has switched to a new file, but never while that file is being created.
   */
  readonly onRolled: () => void;
}

/**
 * The step at which writing a group of commits failed: syncing it, switching to its file, or
 * writing it.
 */
type GroupStep = "sync" | "roll" | "write";

/**
 * The time without writes after which the log is idle, in milliseconds. No commit of an idle log
 * is waiting for the disk.
 */
const REST_MS = 100;

/** The number of groups by which the high-water file may lag behind under load. */
const GROUPS_PER_NOTE = 16;

/**
 * The size in bytes from which a group of commits gains more from being written early than from
 * waiting for further commits.
 */
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
  /** The position at which the written part of the log ends. */
  #written: Position;
  #writtenSeq: number;
  #lastWritten: FrameGroup | undefined;
  /** The number of settled groups of commits that the high-water file does not yet cover. */
  #unnotedGroups = 0;
  #isScheduled = false;
  #awaitsRest = false;
  /**
   * Whether the log is waiting for its next file, into which the next group of commits is written.
   */
  #awaitsFile = false;
  /**
   * Whether a group of commits is being written, or bytes written in relaxed mode are being
   * synced.
   */
  #isDiskBusy = false;
  #isFatal = false;
  #isClosed = false;
  /**
   * Whether the log must not start writing a group, because a caller writes the next groups itself
   * within a tick.
   */
  #isPaused = false;
  #idleWaiters: (() => void)[] = [];
  /** Callers waiting for a write or a pause to end. */
  #pauseWaiters: (() => void)[] = [];
  readonly #synced: SyncedSeq;
  /** The error after which the log no longer accepts commits; undefined while it accepts them. */
  #failure: unknown;

  /**
   * Continues the log at the position found by recovery.
   *
   * @throws {DiskError} If the first file cannot be created, or a torn group cannot be wiped.
   */
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
    assert(!this.#isFatal, "log writer: write after the log has failed");
    assert(!this.#isClosed, "log writer: write after the log was closed");
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

  prepare(offsetOf: (index: number) => number): PreparedFrames {
    return this.#encoder.prepare(offsetOf);
  }

  append(prepared: PreparedFrames, head: { catalogSeq: number; firstSeq: number }): number {
    assert(!this.#isFatal, "log writer: write after the log has failed");
    assert(!this.#isClosed, "log writer: write after the log was closed");
    const groupNumber = this.#encoder.append(prepared, head);
    this.#schedule();
    return groupNumber;
  }

  async pause(): Promise<() => void> {
    while (this.#isPaused) await this.#paused();
    this.#isPaused = true;
    for (;;) {
      const { making } = this.#files;
      if (making !== undefined) await making;
      else if (this.#isDiskBusy && !this.#isFatal) await this.#paused();
      else break;
    }
    return () => {
      this.#isPaused = false;
      this.#wakePaused();
      if (this.#encoder.nextGroup === undefined) this.#wakeIdle();
      else this.#schedule();
    };
  }

  writeNow(decide?: () => void): boolean {
    assert(
      this.#isPaused && !this.#isDiskBusy,
      "log writer: another commit group is still being written",
    );
    const groups: TakenGroup[] = [];
    while (!this.#isFatal && this.#encoder.nextGroup !== undefined) {
      const group = this.#encoder.takeGroup();
      if (!this.#reachFile(group) || !this.#writeSynced(group)) return false;
      groups.push(group);
    }
    const [first] = groups;
    const last = groups.at(-1);
    if (this.#isFatal) return false;
    if (first === undefined || last === undefined) return true;
    try {
      decide?.();
    } catch (error) {
      this.events.onTakenBack(first.number, error);
      throw error;
    }
    this.#noteSettled(last.lastSeq);
    this.events.onSettled(last.number);
    return true;
  }

  /**
   * Writes and syncs a group of commits within this tick. If that fails, calls {@linkcode
   * #failGroup} and returns false.
   */
  #writeSynced(group: TakenGroup): boolean {
    let step: GroupStep = "write";
    try {
      this.#files.current.write(group.bytes, group.offset);
      step = "sync";
      this.#files.current.syncNow();
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      this.#failGroup(group, step, error);
      return false;
    }
    this.#noteWritten(group);
    this.#encoder.durableFrames = group.nextFrame;
    this.#synced.note(group.lastSeq);
    return true;
  }

  #paused(): Promise<void> {
    return new Promise<void>((resolve) => this.#pauseWaiters.push(resolve));
  }

  #wakePaused(): void {
    for (const wake of this.#pauseWaiters.splice(0)) wake();
  }

  synced(seq: number): Promise<void> {
    const reached = this.#synced.reached(seq);
    if (this.#isFatal) this.#synced.fail(this.#failure);
    return reached;
  }

  release(belowFileNumber: number): void {
    this.#files.release(belowFileNumber);
    // A released file may serve as the next file, which is still being created.
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
    // Recovery may have read these bytes and the file's name from the system's cache only, so both
    // are synced.
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
   * Writes in a later tick, which lets commits of other requests in this tick join the same group.
   * In measurements with many clients, this raised the commit rate.
   */
  async #writeSoon(): Promise<void> {
    await this.#options.clock.yield();
    this.#isScheduled = false;
    this.#writeNext();
  }

  /** Writes the next group of commits unless there is none or another operation is in progress. */
  #writeNext(): void {
    if (this.#isFatal || this.#isClosed || this.#isPaused) return;
    const { isRelaxed } = this.#options;
    for (;;) {
      const { nextGroup } = this.#encoder;
      if (nextGroup === undefined) break;
      // A file must not be closed while it is being synced.
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
   * Whether later commits must wait because the next file is being created. Creating another file
   * here would block this tick until the disk has written all of it.
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

  /** Writes the next group of commits within this tick if writing it calls no event handlers. */
  #writeAtOnce({ fileNumber }: FrameGroup): void {
    if (this.#options.isRelaxed || this.#isPaused) return;
    // Entering another file calls event handlers, which must run in a separate tick.
    if (fileNumber !== this.#files.currentNumber || this.#files.isBetweenFiles) return;
    this.#writeDurably(this.#encoder.takeGroup());
  }

  /**
   * Opens the log file of a group of commits if necessary. If that fails, calls {@linkcode
   * #failGroup} and returns false.
   */
  #reachFile(group: FrameGroup): boolean {
    const isRolling = group.fileNumber !== this.#files.currentNumber;
    let step: GroupStep = "sync";
    try {
      // Recovery accepts a torn group only in the last file. In relaxed mode, the last group of
      // the previous file may not be durable yet, so it is synced first.
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
        this.#wakePaused();
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

  /**
   * Writes a group of commits without syncing it. If the write fails, calls {@linkcode #failGroup}
   * and returns false.
   */
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

  /**
   * Creates the next file once the current file is half full or, if the log is idle, a quarter
   * full.
   */
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
    // Even if the group is rolled back, later commits are written to this file, since the previous
    // file is full.
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
    this.#wakePaused();
    if (this.#isFatal) return;
    if (fileNumber === this.#files.currentNumber) this.#encoder.durableFrames = nextFrame;
    this.#synced.note(lastSeq);
    // Lets the disk write the waiting group while the writers of the durable group are answered.
    const { nextGroup } = this.#encoder;
    if (nextGroup !== undefined) this.#writeAtOnce(nextGroup);
    this.#noteSettled(lastSeq);
    if (!this.#options.isRelaxed) this.events.onSettled(number);
    this.#schedule();
    if (this.#encoder.nextGroup === undefined) this.#wakeIdle();
    // In relaxed mode, more groups may have been written during the sync.
    const last = this.#lastWritten;
    if (last !== undefined && last.number > number && !this.#isDiskBusy) this.#sync(last);
  }

  /**
   * Writes the high-water file, but only once for several groups that follow one another without a
   * pause.
   */
  #noteSettled(seq: number): void {
    this.#unnotedGroups += 1;
    const isPause = !this.#isDiskBusy && this.#encoder.nextGroup === undefined;
    if (!isPause && this.#unnotedGroups < GROUPS_PER_NOTE) return;
    this.#unnotedGroups = 0;
    try {
      this.#options.highWater.write(seq);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // Ignoring the error is safe: the high-water file is allowed to lag behind the log.
      this.#options.log.warn("cannot write the high-water file", { code: error.code });
    }
  }

  /**
   * Handles a group of commits that did not become durable: either rolls it and all later groups
   * back, or fails the log.
   */
  #failGroup(group: FrameGroup, step: GroupStep, error: DiskError): void {
    if (!this.#isRefused(step, error)) {
      this.#fail(error);
      return;
    }
    try {
      // The bytes of the failed group must never be mistaken for a commit.
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

  /**
   * Whether an error means that the step had no effect. After any other error, it is unknown
   * whether the step had an effect.
   */
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
    this.#wakePaused();
    this.#wakeIdle();
  }

  #wakeIdle(): void {
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const wake of waiters) wake();
  }
}

/**
 * Tracks the highest seq on disk, and the callers that wait for a higher seq.
 *
 * Invariant: no caller waits for a seq that is already on disk, or after the log has failed.
 */
class SyncedSeq {
  /** The highest seq synced to the disk. */
  #seq: number;
  #waiters: { readonly seq: number; readonly done: PromiseWithResolvers<void> }[] = [];

  constructor(seq: number) {
    this.#seq = seq;
  }

  /**
   * Resolves once all commits up to a seq are on disk. Rejects with the error passed to {@linkcode
   * fail}.
   */
  reached(seq: number): Promise<void> {
    if (seq <= this.#seq) return Promise.resolve();
    const done = Promise.withResolvers<void>();
    this.#waiters.push({ seq, done });
    return done.promise;
  }

  /** Records that all commits up to a seq are on disk. */
  note(seq: number): void {
    this.#seq = Math.max(this.#seq, seq);
    if (this.#waiters.length === 0) return;
    const waiters = this.#waiters;
    this.#waiters = waiters.filter((waiter) => waiter.seq > this.#seq);
    for (const waiter of waiters) if (waiter.seq <= this.#seq) waiter.done.resolve();
  }

  /** Records that no further seq will reach the disk. */
  fail(error: unknown): void {
    for (const { done } of this.#waiters.splice(0)) done.reject(error);
  }
}
