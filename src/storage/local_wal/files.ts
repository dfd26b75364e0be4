/**
 * Manages the files of the log. Files are created ahead of time and filled with zeros, so that a
 * sync never has to write metadata. Old files are recycled, so that few files have to be
 * created.
 *
 *     (none) ──make──► spare in tmp/ ──roll──► named ──enter──► current ──roll──► kept ──release──► spare or removed
 *
 * - A flush releases several files at once, and a fast load fills as many before the next flush.
 *   With several spare files, such a load does not have to write more zeros.
 * - A file is given its name in wal/ only once its header is durable, so name and header always
 *   agree.
 * - The log moves on from a file only when all of its content is durable, so every file but the
 *   last is complete.
 * - Once the next file has its name, nothing more is written to the current one, even if the next
 *   file cannot be entered yet. After a crash, either of the two may be the last file.
 */
import { assert, defined } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import type { Disk, DiskFile } from "../../base/disk.ts";
import { DiskError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { ListedLogFile } from "../contract/commit_log.ts";
import { type DataPaths, walFilePath } from "../directory/file_names.ts";
import { encodeWalHeader, type WalHeader } from "./format.ts";

/**
 * The maximum number of zero bytes written to a new file at a time. Other work can run between two
 * writes.
 */
const PIECE_BYTES_MAX: number = 1024 * 1024;

/** The maximum number of spare files: about as many as a fast load fills between two flushes. */
const SPARES_MAX = 4;

/**
 * The delay before the next attempt if a file could not be created ahead of time. Without the
 * delay, every group of commits would make another attempt and log its failure.
 */
const RETRY_MS = 10_000;

/**
 * The number of additional log files for which the disk must have room. If it has less, all spare
 * files but one are removed.
 */
const SPACE_FILES = 16;

export interface WalFilesOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  readonly clock: Clock;
  readonly log: Log;
  /** The size of each log file in bytes. */
  readonly fileBytes: number;
  /** Whether bytes written to the log are synced later rather than at once. */
  readonly isRelaxed: boolean;
}

export class WalFiles {
  readonly #options: WalFilesOptions;
  #kept: ListedLogFile[];
  #current: DiskFile | undefined;
  #currentNumber = 0;
  #isNamed = false;
  /** The paths of durable spare files, which contain zeros or recycled frames. */
  readonly #spares: string[] = [];
  #madeCount = 0;
  #making: Promise<void> | undefined;
  /** The earliest time of the next attempt to create a file ahead of time. */
  #retryAtMs = 0;
  #isClosed = false;

  /**
   * Continues the log with the files found by recovery.
   * @param kept The files in order. The last file is still being written.
   */
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
   * Whether the current file has been named but not yet opened by `enter`, in which case its name
   * may not be durable.
   */
  get isBetweenFiles(): boolean {
    return this.#isNamed;
  }

  /** The number of the current file; 0 before the first file. */
  get currentNumber(): number {
    return this.#currentNumber;
  }

  get current(): DiskFile {
    return defined(this.#current, "commit log: no current log file");
  }

  /** A lower bound on the numbers of the files that receive later writes, even after a crash. */
  get oldestUnwritten(): number {
    return this.#isNamed ? this.#currentNumber - 1 : this.#currentNumber;
  }

  get oldestNumber(): number {
    return this.#kept[0]?.number ?? this.#currentNumber;
  }

  get kept(): readonly ListedLogFile[] {
    return this.#kept;
  }

  /** The size of the current log file in bytes. */
  get currentBytes(): number {
    return this.#isNamed ? this.#options.fileBytes : (this.#kept.at(-1)?.bytes ?? 0);
  }

  /**
   * Names a file with the next number and makes it the current file. The caller calls `enter`
   * next. If there is no spare file, one is created within this tick. Callers that can wait should
   * await {@linkcode making} first.
   *
   * @throws {DiskError} The previous file is then still the current file.
   */
  roll(header: WalHeader): void {
    assert(
      header.fileNumber === this.#currentNumber + 1,
      "commit log: gap in the numbering of log files",
    );
    assert(!this.#isNamed, "commit log: next file named before the previous one was entered");
    const { disk, paths } = this.#options;
    if (this.#spares.length === 0) this.#spares.push(this.#makeNow());
    const spare = defined(this.#spares.at(-1), "commit log: no spare log file");
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
   * Makes the current file's name durable, and opens the file.
   *
   * @throws {DiskError} If no file descriptor was available, nothing has changed, and the call can
   *   be repeated.
   */
  enter(): void {
    assert(this.#isNamed, "commit log: log file entered before it was named");
    const { disk, fileBytes, paths } = this.#options;
    disk.syncDirectory(paths.wal);
    this.#current = this.#opened(this.#currentNumber);
    this.#isNamed = false;
    // The new file belongs to the log only once its name has been synced. If a crash lost the
    // name, the log would continue in the previous file.
    this.#kept.push({ number: this.#currentNumber, bytes: fileBytes });
  }

  #opened(number: number): DiskFile {
    const { disk, isRelaxed, paths } = this.#options;
    return disk.open(walFilePath(paths, number), { writesThrough: !isRelaxed });
  }

  /** Whether the next file exists, is being created, or could not be created recently. */
  get isPrepared(): boolean {
    if (this.#spares.length > 0 || this.#making !== undefined) return true;
    return this.#options.clock.monotonicMs() < this.#retryAtMs;
  }

  /**
   * Resolves when the next file exists or could not be created; undefined if it is not being
   * created.
   */
  get making(): Promise<void> | undefined {
    return this.#spares.length > 0 ? undefined : this.#making;
  }

  /** Creates the next file in the background unless it already exists. */
  prepare(): void {
    if (this.isPrepared || this.#isClosed) return;
    this.#making = this.#make().finally(() => {
      this.#making = undefined;
    });
  }

  /** Releases the files with numbers below `belowNumber`, but never the current file. */
  release(belowNumber: number): void {
    const { disk, paths, fileBytes, log } = this.#options;
    const limit = Math.min(belowNumber, this.oldestUnwritten);
    const unneeded = this.#kept.filter(({ number }) => number < limit);
    if (unneeded.length === 0 && this.#spares.length <= 1) return;
    const hasSpace = disk.freeBytes(paths.wal) >= SPACE_FILES * fileBytes;
    const sparesMax = hasSpace ? SPARES_MAX : 1;
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
    // The removal of a recycled file's old name must be durable before the file gets a new header.
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
      this.#removeSpare(path);
      throw error;
    } finally {
      file.close();
    }
    return path;
  }

  /**
   * Whether the log still needs a spare file. A file created in the background may turn out to be
   * superfluous, because another file was recycled, or created during a roll, in the meantime.
   */
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
      else this.#removeSpare(path);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // Ignoring the error is safe: the roll that needs the file creates it and reports its own
      // errors.
      this.#retryAtMs = clock.monotonicMs() + RETRY_MS;
      log.warn("cannot create the next log file ahead of time", { path, code: error.code });
      this.#removeSpare(path);
    }
  }

  #removeSpare(path: string): void {
    const { disk, log } = this.#options;
    try {
      if (disk.exists(path)) disk.remove(path);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // Ignoring the error is safe: tmp/ is emptied on the next startup, and this name is not
      // reused.
      log.warn("cannot remove a log file that is not needed", { path, code: error.code });
    }
  }

  /** Yields the zeros that fill a new log file, piece by piece. */
  *#pieces(): Generator<[number, Uint8Array]> {
    const { fileBytes } = this.#options;
    const zeros = new Uint8Array(Math.min(fileBytes, PIECE_BYTES_MAX));
    for (let offset = 0; offset < fileBytes; offset += zeros.length) {
      yield [offset, zeros.subarray(0, Math.min(zeros.length, fileBytes - offset))];
    }
  }
}
