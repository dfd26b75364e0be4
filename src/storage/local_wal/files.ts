/**
 * The files of the log: made ahead and full of zeros, so that a sync never has to write metadata,
 * and recycled, so that making them is rare.
 *
 *     (none) ──make──► spare in tmp/ ──roll──► named ──enter──► current ──roll──► kept ──release──► spare or removed
 *
 * - A flush lets several files go at once, and a fast load fills as many before the next: so
 *   several spares are kept, and such a load writes no zeros any more.
 * - A file gets its name in wal/ only when its header is durable, so the two always agree.
 * - A file is rolled only when everything in it is durable, so all but the last are whole.
 * - Once the next one is named nothing is written to it any more, also while the next cannot be
 *   entered: a crash may end with either as the last.
 */
import { assert, defined } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import type { Disk, DiskFile } from "../../base/disk.ts";
import { DiskError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { ListedLogFile } from "../contract/commit_log.ts";
import { type DataPaths, walFilePath } from "../directory/file_names.ts";
import { encodeWalHeader, type WalHeader } from "./format.ts";

/** Zeros are written in pieces of this size, with other work in between. */
const PIECE_BYTES_MAX: number = 1024 * 1024;

/** What 60 MB a second fill between two flushes. */
const SPARES_MAX = 4;

/**
 * After no file could be made ahead it is not tried again for so long: every group would try, and
 * say so.
 */
const RETRY_MS = 10_000;

/** A disk that has no room for so many files more gets all spares back but one. */
const ROOM_FILES = 16;

export interface WalFilesOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  readonly clock: Clock;
  readonly log: Log;
  /** Size of each file. */
  readonly fileBytes: number;
  /** What is written is synced later. */
  readonly isRelaxed: boolean;
}

export class WalFiles {
  readonly #options: WalFilesOptions;
  #kept: ListedLogFile[];
  #current: DiskFile | undefined;
  #currentNumber = 0;
  #isNamed = false;
  /** Durable, zeros or recycled. */
  readonly #spares: string[] = [];
  #madeCount = 0;
  #making: Promise<void> | undefined;
  /** When a file may be made ahead again. */
  #retryAtMs = 0;
  #isClosed = false;

  /** `kept` are the files that recovery found, in order; the last one is written on. */
  constructor(options: WalFilesOptions, kept: readonly ListedLogFile[]) {
    this.#options = options;
    this.#kept = [...kept];
    const last = kept.at(-1);
    if (last !== undefined) {
      this.#currentNumber = last.number;
      this.#current = this.#opened(last.number);
    }
  }

  /**
   * The current file has its name, and is not entered yet: whether the name is durable is not
   * known.
   */
  get isBetweenFiles(): boolean {
    return this.#isNamed;
  }

  /** 0 before the first file. */
  get currentNumber(): number {
    return this.#currentNumber;
  }

  get current(): DiskFile {
    return defined(this.#current, "the log has a current file");
  }

  /** What is written next is in no file before this one, also after a crash. */
  get oldestUnwritten(): number {
    return this.#isNamed ? this.#currentNumber - 1 : this.#currentNumber;
  }

  get oldestNumber(): number {
    return this.#kept[0]?.number ?? this.#currentNumber;
  }

  get kept(): readonly ListedLogFile[] {
    return this.#kept;
  }

  /** Size of the current file. */
  get currentBytes(): number {
    return this.#isNamed ? this.#options.fileBytes : (this.#kept.at(-1)?.bytes ?? 0);
  }

  /**
   * Names a file, whose number follows the current one's, as the current one: `enter` it then. Who
   * can wait does so for {@linkcode making}: without a spare one is made in this turn.
   *
   * @throws {DiskError} The current file is then the one before.
   */
  roll(header: WalHeader): void {
    assert(header.fileNumber === this.#currentNumber + 1, "log files are numbered without gaps");
    assert(!this.#isNamed, "a file is entered before the next is named");
    const { disk, paths } = this.#options;
    if (this.#spares.length === 0) this.#spares.push(this.#makeNow());
    const spare = defined(this.#spares.at(-1), "there is a spare file");
    const file = disk.open(spare, {});
    try {
      file.write(encodeWalHeader(header), 0);
      file.syncNow();
    } finally {
      file.close();
    }
    disk.rename(spare, walFilePath(paths, header.fileNumber));
    this.#isNamed = true;
    this.#spares.pop();
    this.#currentNumber = header.fileNumber;
    this.#current?.close();
    this.#current = undefined;
  }

  /**
   * Makes the name of the current file durable and opens it.
   *
   * @throws {DiskError} If it is for want of a descriptor, nothing was done, and it can be tried
   * again.
   */
  enter(): void {
    assert(this.#isNamed, "a file is named before it is entered");
    const { disk, fileBytes, paths } = this.#options;
    disk.syncDirectory(paths.wal);
    this.#current = this.#opened(this.#currentNumber);
    this.#isNamed = false;
    // The one before is full only now: after a crash without this name it would be written on.
    this.#kept.push({ number: this.#currentNumber, bytes: fileBytes });
  }

  #opened(number: number): DiskFile {
    const { disk, isRelaxed, paths } = this.#options;
    return disk.open(walFilePath(paths, number), { writesThrough: !isRelaxed });
  }

  /** Whether the next file is there, or being made, or could not be made a moment ago. */
  get isPrepared(): boolean {
    if (this.#spares.length > 0 || this.#making !== undefined) return true;
    return this.#options.clock.monotonicMs() < this.#retryAtMs;
  }

  /** Settles when the next file is there or could not be made; undefined if none is being made. */
  get making(): Promise<void> | undefined {
    return this.#spares.length > 0 ? undefined : this.#making;
  }

  /** Makes the next file in the background, unless it is there. */
  prepare(): void {
    if (this.isPrepared || this.#isClosed) return;
    this.#making = this.#make().finally(() => {
      this.#making = undefined;
    });
  }

  /** Lets files below a number go, but never the current one. */
  release(belowNumber: number): void {
    const { disk, paths, fileBytes, log } = this.#options;
    const limit = Math.min(belowNumber, this.oldestUnwritten);
    const unneeded = this.#kept.filter(({ number }) => number < limit);
    if (unneeded.length === 0 && this.#spares.length <= 1) return;
    const hasRoom = disk.freeBytes(paths.wal) >= ROOM_FILES * fileBytes;
    const sparesMax = hasRoom ? SPARES_MAX : 1;
    for (const spare of this.#spares.splice(sparesMax)) disk.remove(spare);
    if (unneeded.length === 0) return;
    this.#kept = this.#kept.filter(({ number }) => number >= limit);
    for (const { number, bytes } of unneeded) {
      const path = walFilePath(paths, number);
      if (this.#spares.length < sparesMax && bytes === fileBytes) {
        const spare = this.#nextSparePath();
        disk.rename(path, spare);
        this.#spares.push(spare);
      } else {
        disk.remove(path);
      }
    }
    // Before the recycled file gets a new header, its old name must be gone for good.
    disk.syncDirectory(paths.wal);
    log.debug("released log files", { below: limit, count: unneeded.length });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#making;
    this.#current?.close();
    this.#current = undefined;
    for (const spare of this.#spares.splice(0)) this.#options.disk.remove(spare);
  }

  #nextSparePath(): string {
    this.#madeCount += 1;
    return `${this.#options.paths.tmp}/wal.${this.#madeCount}`;
  }

  #makeNow(): string {
    const { disk } = this.#options;
    const path = this.#nextSparePath();
    const file = disk.open(path, { exclusive: true });
    try {
      for (const [offset, piece] of this.#pieces()) file.write(piece, offset);
      file.syncNow();
    } catch (error) {
      this.#removeDraft(path);
      throw error;
    } finally {
      file.close();
    }
    return path;
  }

  /** A file that is being made may come too late: another one was recycled, or made for a roll. */
  get #needsSpare(): boolean {
    return !this.#isClosed && this.#spares.length === 0;
  }

  async #make(): Promise<void> {
    const { disk, clock, log } = this.#options;
    const path = this.#nextSparePath();
    try {
      const file = disk.open(path, { exclusive: true });
      try {
        for (const [offset, piece] of this.#pieces()) {
          file.write(piece, offset);
          await clock.yield();
          if (!this.#needsSpare) break;
        }
        if (this.#needsSpare) await file.sync();
      } finally {
        file.close();
      }
      if (this.#needsSpare) this.#spares.push(path);
      else this.#removeDraft(path);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // Safe: the roll that needs the file makes it then, and reports what it meets.
      this.#retryAtMs = clock.monotonicMs() + RETRY_MS;
      log.warn("cannot make the next log file ahead", { path, code: error.code });
      this.#removeDraft(path);
    }
  }

  #removeDraft(path: string): void {
    const { disk, log } = this.#options;
    try {
      if (disk.exists(path)) disk.remove(path);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // Safe: what is left in tmp/ goes at the next start, and nothing is given its name again.
      log.warn("cannot remove a log file that is not needed", { path, code: error.code });
    }
  }

  /** The zeros of a file, piece by piece. */
  *#pieces(): Generator<[number, Uint8Array]> {
    const { fileBytes } = this.#options;
    const zeros = new Uint8Array(Math.min(fileBytes, PIECE_BYTES_MAX));
    for (let offset = 0; offset < fileBytes; offset += zeros.length) {
      yield [offset, zeros.subarray(0, Math.min(zeros.length, fileBytes - offset))];
    }
  }
}
