/**
 * Copies full log files to the archive, so that a restore can roll a backup forward to any later
 * point in time.
 *
 *     1 copy to <no>.wal.new, sync        the log still keeps its file
 *     2 rename to <no>.wal, sync the directory
 *     3 write <no>.json in the same way; the file is then in the archive
 *     4 remove the listed changes from the catalog's journal; the log may recycle its file
 *
 * - Files are archived one at a time, in order. A failure is reported once, and the file is
 *   retried from step 1 until it is archived: after a failed sync in step 3, the list exists, but
 *   it may not survive a crash. A list written by another database is never overwritten.
 * - A running server does not start a new archive. If the directory is missing, for example
 *   because its disk is not mounted, log files wait, and a message explains what to do. At
 *   startup, the directory is created, and a message says that earlier backups cannot be rolled
 *   forward.
 * - The waiting log files may take up as much as four times `wal_max_bytes`. Beyond that, the
 *   oldest files are dropped. The loss is logged as an error and counted in /metrics, and restores
 *   across the gap are refused.
 */

import type { OnBug } from "../base/bugs.ts";
import type { CancelTimer, Clock } from "../base/clock.ts";
import { copyFile } from "../base/copy_file.ts";
import type { Disk } from "../base/disk.ts";
import { reasonOfCode } from "../base/disk_reasons.ts";
import { CorruptionError, DatabaseError, DiskError, isExpected } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { pauser } from "../base/pauser.ts";
import type { CatalogDatabase } from "../catalog/mod.ts";
import {
  type DataPaths,
  decodeWalHeader,
  WAL_HEADER_BYTES,
  walFilePath,
} from "../storage/files.ts";
import type { ListedLogFile, LocalStore } from "../storage/mod.ts";
import {
  type ArchiveUnit,
  archivedFiles,
  readUnit,
  unitListPath,
  unitLogPath,
  writeUnit,
} from "./archive_units.ts";

/** The pause between a failed attempt to archive a file and the next attempt, in milliseconds. */
const RETRY_MS = 5000;

/**
 * The error codes that do not prevent startup, because disk space may become available again
 * without intervention.
 */
const FULL_CODES: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT"]);

/**
 * Refuses to start if the archive is unusable. Failures at any later time are only reported, and
 * the archiver tries again.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE
 */
export function requireArchive(disk: Disk, archivePath: string): void {
  const probe = `${archivePath}/writable.new`;
  try {
    disk.open(probe, { create: true }).close();
    disk.remove(probe);
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    if (FULL_CODES.has(error.code)) return;
    const isMissing = error.code === "ENOENT";
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot archive the log: storage.archive_path names ${archivePath}, ${isMissing ? "but there is no such directory" : `but no file can be written there (${error.code})`}`,
      {
        hint:
          `${isMissing ? "create the directory" : "give the server's user write access to the directory"}, ` +
          "or remove storage.archive_path from the configuration",
        cause: error,
      },
    );
  }
}

export interface ArchiverOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  readonly onBug: OnBug;
  readonly catalog: CatalogDatabase;
  readonly paths: DataPaths;
  /** The configured directory that contains the archives of all incarnations. */
  readonly archivePath: string;
  readonly incarnation: string;
  /** The maximum disk space that log files waiting to be archived may occupy, in bytes. */
  readonly waitingBytesMax: number;
}

/** The state of the log files that are waiting to be archived. */
export interface ArchiveLag {
  /** The number of full log files that are not in the archive yet. */
  readonly files: number;
  readonly bytes: number;
  /** The number of log files that were dropped without being archived since startup. */
  readonly lostFiles: number;
  /** The reason why the last attempt to archive a file failed; undefined if it succeeded. */
  readonly failure: string | undefined;
}

export class Archiver {
  readonly #options: ArchiverOptions;
  /** The directory that contains the archive of this incarnation of the database. */
  readonly root: string;
  #store: LocalStore | undefined;
  /**
   * The number of the last log file that was archived or dropped. All files before it have been
   * archived or dropped, too. Undefined until the archive has been read.
   */
  #done: number | undefined;
  #isConnected = false;
  #lostFiles = 0;
  #failure: string | undefined;
  #running: Promise<void> | undefined;
  #cancelRetry: CancelTimer = () => {};
  #isClosed = false;

  constructor(options: ArchiverOptions) {
    this.#options = options;
    this.root = `${options.archivePath}/${options.incarnation}`;
    try {
      this.#connect();
    } catch (error) {
      this.#noteFailure(error);
    }
  }

  /** The number of the oldest log file that must be kept because it has not been archived. */
  get neededFrom(): number {
    return this.#done === undefined ? 0 : this.#done + 1;
  }

  get lag(): ArchiveLag {
    const waiting = this.#waiting();
    return {
      files: waiting.length,
      bytes: waiting.reduce((sum, { bytes }) => sum + bytes, 0),
      lostFiles: this.#lostFiles,
      failure: this.#failure,
    };
  }

  /** Starts archiving: copies the existing full log files, and later each file once it is full. */
  start(store: LocalStore): void {
    this.#store = store;
    this.#wake();
  }

  /** Must be called when the log has started a new file. Has no effect before `start`. */
  noteRolled(): void {
    if (this.#store !== undefined) this.#wake();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry();
    await this.#running;
  }

  #waiting(): ListedLogFile[] {
    const files = this.#store?.logFiles() ?? [];
    return files.slice(0, -1).filter(({ number }) => number >= this.neededFrom);
  }

  #wake(): void {
    if (this.#running !== undefined || this.#isClosed) return;
    this.#cancelRetry();
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async #run(): Promise<void> {
    try {
      this.#connect();
      for (;;) {
        const [file] = this.#waiting();
        if (file === undefined || this.#isClosed) break;
        await this.#archive(file);
        this.#store?.releaseLog();
      }
      if (this.#failure !== undefined) {
        this.#failure = undefined;
        this.#options.log.info("the log archive is reachable again", { path: this.root });
      }
    } catch (error) {
      this.#noteFailure(error);
      this.#giveUpBeyondBound();
      if (this.#isClosed) return;
      this.#cancelRetry = this.#options.clock.after(RETRY_MS, () => this.#wake());
    }
  }

  /** Reads the state of the archive from its directory. */
  #connect(): void {
    if (this.#isConnected) return;
    const { archivePath, catalog, disk, log } = this.#options;
    if (!disk.exists(archivePath)) {
      throw new DatabaseError("STORAGE_UNAVAILABLE", `there is no directory ${archivePath}`);
    }
    if (!disk.exists(this.root)) {
      disk.makeDirectory(this.root);
      disk.syncDirectory(archivePath);
    }
    const last = archivedFiles(disk, this.root).at(-1);
    if (last === undefined) {
      this.#done ??= 0;
      this.#isConnected = true;
      this.#warnOfBeginning();
      return;
    }
    const { journalEnd } = readUnit(disk, this.root, last);
    if (journalEnd > catalog.journal.end) {
      const what =
        `the archive ${this.root} is ahead of this database, because a different copy of the ` +
        "database also writes there";
      throw new DatabaseError("STORAGE_UNAVAILABLE", what);
    }
    // The process that wrote the last list may have ended before its directory entry was durable.
    disk.syncDirectory(this.root);
    this.#done = Math.max(last, this.#done ?? 0);
    this.#isConnected = true;
    catalog.journal.forget(journalEnd);
    log.info("archiving the log", { path: this.root, upToFile: last });
  }

  async #archive({ number }: ListedLogFile): Promise<void> {
    const { catalog, clock, disk, incarnation, paths } = this.#options;
    this.#requireRoot();
    const found = disk.exists(unitListPath(this.root, number)) ? this.#found(number) : undefined;
    this.#warnOfGap(number);
    const from = walFilePath(paths, number);
    const target = unitLogPath(this.root, number);
    const pendingPath = `${target}.new`;
    if (disk.exists(pendingPath)) disk.remove(pendingPath);
    const copied = await copyFile(from, pendingPath, { disk, pause: pauser(clock), onCopied() {} });
    if (found !== undefined && (found.bytes !== copied.bytes || found.crc !== copied.crc)) {
      disk.remove(pendingPath);
      throw this.#foreign(number);
    }
    disk.rename(pendingPath, target);
    await disk.syncDirectorySoon(this.root);
    const journal = catalog.journal.after(0);
    const journalEnd = catalog.journal.end;
    const baseSeq = this.#baseSeqOf(number);
    const lastSeq = this.#baseSeqOf(number + 1);
    const unit = { incarnation, file: number, ...copied, baseSeq, lastSeq, journalEnd, journal };
    writeUnit(disk, this.root, unit);
    this.#done = number;
    catalog.journal.forget(journalEnd);
    this.#options.log.debug("archived a log file", { file: number, bytes: copied.bytes });
  }

  /**
   * Refuses to archive if the archive of this database has disappeared from the archive directory.
   * @throws {DatabaseError} STORAGE_UNAVAILABLE
   */
  #requireRoot(): void {
    const { archivePath, disk } = this.#options;
    if (disk.exists(this.root) || !disk.exists(archivePath)) return;
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `the archive of this database, ${this.root}, has disappeared from ${archivePath}`,
      {
        hint:
          "mount or restore the missing directory; or restart the server, which starts a new " +
          "archive, and make a new backup",
      },
    );
  }

  /**
   * Reads the list of a log file whose archiving was interrupted. If this database wrote the list,
   * it contains the changes that are still in the catalog's journal.
   *
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if another database wrote the list.
   */
  #found(number: number): ArchiveUnit {
    const { catalog, disk } = this.#options;
    let found: ArchiveUnit;
    try {
      found = readUnit(disk, this.root, number);
    } catch (error) {
      // An unreadable list counts as written by another database. This is safe, because such a
      // list is never overwritten.
      if (!(error instanceof CorruptionError)) throw error;
      throw this.#foreign(number);
    }
    const { journal, journalEnd } = found;
    const own = catalog.journal.after(0).filter(({ id }) => id <= journalEnd);
    const isOwn = journalEnd <= catalog.journal.end && Bun.deepEquals(own, journal);
    if (!isOwn) throw this.#foreign(number);
    return found;
  }

  #foreign(number: number): DatabaseError {
    const what =
      `the archive ${this.root} contains a different file ${number}, because a different copy of ` +
      "this database also writes there";
    return new DatabaseError("STORAGE_UNAVAILABLE", what);
  }

  #baseSeqOf(number: number): number {
    const { disk, paths } = this.#options;
    const path = walFilePath(paths, number);
    const file = disk.open(path, { readOnly: true });
    try {
      const header = new Uint8Array(WAL_HEADER_BYTES);
      file.read(header, 0);
      return decodeWalHeader(header, path).baseSeq;
    } finally {
      file.close();
    }
  }

  /**
   * Warns that catalog changes are not in this archive, because it was missing, or another archive
   * was in use, when they were made.
   */
  #warnOfBeginning(): void {
    const { journal } = this.#options.catalog;
    const firstKept = journal.after(0)[0]?.id ?? journal.end + 1;
    if (firstKept === 1) return;
    this.#options.log.warn(
      "the log archive starts here; earlier backups cannot be rolled forward, so make a new backup",
      { path: this.root },
    );
  }

  /** Warns about log files that were removed before they could be archived. */
  #warnOfGap(number: number): void {
    const done = this.#done ?? 0;
    if (done === 0 || number === done + 1) return;
    this.#options.log.warn("the log archive has a gap; make a new backup", {
      path: this.root,
      missing: `${done + 1} to ${number - 1}`,
    });
  }

  #giveUpBeyondBound(): void {
    const waiting = this.#waiting();
    const lostBefore = this.#lostFiles;
    let bytes = waiting.reduce((sum, file) => sum + file.bytes, 0);
    for (const file of waiting) {
      if (bytes <= this.#options.waitingBytesMax) break;
      bytes -= file.bytes;
      this.#done = file.number;
      this.#lostFiles += 1;
      this.#options.log.error(
        "deleted a log file that could not be archived, so no restore to a point within it is " +
          "possible; make a new backup once the archive is reachable",
        { file: file.number, path: this.root, failure: this.#failure },
      );
    }
    if (this.#lostFiles > lostBefore) this.#store?.releaseLog();
  }

  #noteFailure(error: unknown): void {
    if (!isExpected(error)) {
      this.#failure =
        "archiving failed because of a bug in the server; the server's log has the details";
      this.#options.onBug(error, "the archiving of the log", { path: this.root });
      return;
    }
    const isNews = this.#failure !== error.message;
    this.#failure = error.message;
    if (!isNews) return;
    this.#options.log.error("cannot archive the log; its files are kept until archiving succeeds", {
      path: this.root,
      failure: error.message,
      hint: hintOf(error),
    });
  }
}

function hintOf(error: Error): string | undefined {
  if (error instanceof DatabaseError) return error.hint;
  return error instanceof DiskError ? reasonOfCode(error.code) : undefined;
}
