/**
 * Rolls a copy of a backup forward to a later point in time, up to and including a given seq. The
 * sources are the log files since the backup, from the archive and from the server itself, and the
 * catalog's journal.
 *
 *     1 find the log files that lead from the backup to the point without a gap
 *     2 copy them after the log of the backup, and compare each with its checksum
 *     3 if the log is long, write the copied part to segments from time to time, and remove it
 *     4 cut the log after the last commit at or below the point
 *     5 apply the catalog changes up to the point to the catalog, and write the list again,
 *       without the uploaded files of tables and rows that no longer exist at the point
 *
 * The result is a backup of that point in time. If a source is unavailable, the error names it. The
 * archive contains no uploaded files, so missing ones are only reported.
 */
import { dirname } from "node:path";
import { type Clock, HOUR_MS } from "../base/clock.ts";
import { checksumOfFile, copyFile, filesBelow, makeDirectoryOf } from "../base/copy_file.ts";
import type { Disk } from "../base/disk.ts";
import { CorruptionError, DatabaseError } from "../base/errors.ts";
import { silentLog } from "../base/log.ts";
import { pauser } from "../base/pauser.ts";
import type { Random } from "../base/random.ts";
import {
  CATALOG_FILE,
  CATALOG_SIDE_FILES,
  CatalogDatabase,
  catalogPathOf,
  type JournalEntry,
} from "../catalog/mod.ts";
import { ownTables, tableDefinition } from "../sql/mod.ts";
import {
  type BackupFile,
  type BackupList,
  blobPath,
  type DataPaths,
  findLogPoint,
  type LogPoint,
  rewriteNumberFile,
  shortenLog,
  walFileNumberFromName,
  walFilePath,
  writeBackupList,
} from "../storage/files.ts";
import { LocalStore } from "../storage/mod.ts";
import { INCARNATION } from "./archive_units.ts";
import { requireFreeSpace } from "./free_space.ts";
import type { StageListener } from "./restore.ts";
import {
  type ArchivedSource,
  journalOf,
  type PointBegin,
  type PointRequest,
  pointRefused,
  pointUncovered,
  sourcesOf,
  textOfSeq,
} from "./restore_sources.ts";

export interface PointParts extends PointRequest {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly random: Random;
  readonly listener: StageListener;
}

/**
 * A request for a point-in-time restore and the copied backup, in a form that can be sent to the
 * thread that runs `bringTo`.
 */
export interface PointWork {
  readonly request: PointRequest;
  readonly pending: DataPaths;
  readonly list: BackupList;
  readonly listener: StageListener;
}

/**
 * The maximum size of the copied log, in bytes. Reading a larger log at startup would take too
 * much memory.
 */
const HELD_BYTES_MAX: number = 256 * 1024 * 1024;

/**
 * The maximum size of a row during the replay, in bytes. It is large enough for any row that a
 * configuration allows.
 */
const ROW_BYTES_MAX: number = 3 * 1024 * 1024;

/** A log file, and its entry in the list of the backup's files. */
interface LogFile {
  readonly number: number;
  readonly file: BackupFile;
}

/**
 * Rolls a closed copy of a backup forward to a point in time. @returns The resulting list of
 * files.
 */
export async function bringTo(
  parts: PointParts,
  pending: DataPaths,
  list: BackupList,
): Promise<BackupList> {
  return await new PointRun(parts, pending, list).run();
}

class PointRun {
  readonly #parts: PointParts;
  readonly #pending: DataPaths;
  readonly #list: BackupList;
  /** The last log file of the backup itself. */
  readonly #base: LogFile;
  readonly #pause: () => Promise<void>;
  /** The position in the log up to which its contents have already been written to segments. */
  #settled: LogPoint | undefined;

  constructor(parts: PointParts, pending: DataPaths, list: BackupList) {
    this.#parts = parts;
    this.#pending = pending;
    this.#list = list;
    this.#pause = pauser(parts.clock);
    const base = lastLogFile(list);
    if (base === undefined) throw pointRefused(parts, "the backup contains no log files");
    this.#base = base;
  }

  async run(): Promise<BackupList> {
    const { disk, listener, seq } = this.#parts;
    const { baseSeq, begin } = await this.#lookAtCatalog();
    if (seq < baseSeq) {
      const { seq: rowsSeq } = this.#list;
      const of = `the backup has rows up to _seq ${rowsSeq} (${textOfSeq(rowsSeq, this.#parts)})`;
      const what = `${of}, and definitions up to _seq ${baseSeq}, which is later`;
      const hint =
        "choose an older backup or a later point, or omit the point to restore the backup " +
        "unchanged";
      throw pointRefused(this.#parts, what, hint);
    }
    const sources = sourcesOf(disk, this.#parts, begin);
    this.#requireFreeSpace(sources);
    let copied = 0;
    let held = 0;
    const total = sources.reduce((sum, { bytes }) => sum + bytes, 0);
    const journal = journalOf(sources, this.#parts, begin);
    for (const [index, source] of sources.entries()) {
      await this.#copy(source, (count) => {
        copied += count;
        listener.onCopied(copied, total);
        if (listener.isCancelled()) throw this.#cancelled();
      });
      held += source.bytes;
      const isLast = index === sources.length - 1;
      if (isLast || held <= (this.#parts.heldBytesMax ?? HELD_BYTES_MAX)) continue;
      this.#step("writing the copied part of the log to segments");
      if (await this.#settle(journal)) held = 0;
    }
    this.#step("searching the log for the point");
    const endSeq = await this.#cut(sources);
    await this.#replayJournal(journal, endSeq);
    rewriteNumberFile(disk, this.#pending.highWater, endSeq);
    const missing = await this.#adoptUploads();
    if (missing.length > 0) listener.onMissing(missing);
    this.#step("computing the checksums of all files");
    return this.#relist();
  }

  #step(what: string): void {
    const { listener } = this.#parts;
    if (listener.isCancelled()) throw this.#cancelled();
    listener.onStep(what);
  }

  /** Returns the position at which the backup ends, and the seq up to which it is complete. */
  async #lookAtCatalog(): Promise<{ readonly begin: PointBegin; readonly baseSeq: number }> {
    const { seq } = this.#list;
    return await this.#withCatalog((catalog) => {
      const incarnation = catalog.setting(INCARNATION) ?? "";
      const { end, stamp } = catalog.journal;
      const begin = {
        incarnation: incarnation === "" ? undefined : incarnation,
        fileNumber: this.#base.number,
        seq,
        journalEnd: end,
      };
      // A catalog change may be newer than the last commit that changed rows, so the backup is
      // complete up to the highest of these seqs.
      return { begin, baseSeq: Math.max(seq, catalog.manifest.highestSeq(), stamp) };
    });
  }

  #requireFreeSpace(sources: readonly ArchivedSource[]): void {
    const { disk, minFreeBytes, source: backup } = this.#parts;
    const bytes = sources.reduce((sum, source) => sum + source.bytes, 0);
    const action = `restore the log after ${backup}`;
    requireFreeSpace(disk, dirname(this.#pending.root), { action, bytes, minFreeBytes });
  }

  async #copy(
    { bytes, number, path, unit }: ArchivedSource,
    onCopied: (count: number) => void,
  ): Promise<void> {
    const { disk } = this.#parts;
    const to = walFilePath(this.#pending, number);
    if (disk.exists(to)) disk.remove(to);
    const size = disk.sizeOf(path);
    if (size === undefined || size < bytes) {
      const what =
        size === undefined
          ? "the file is missing"
          : `the file has ${size} bytes instead of ${bytes}`;
      throw new CorruptionError(path, size ?? 0, what);
    }
    const pause = this.#pause;
    const copied = await copyFile(path, to, { disk, upTo: bytes, pause, onCopied });
    if (unit !== undefined && copied.crc !== unit.crc) {
      throw new CorruptionError(path, 0, "the file does not match its checksum in the archive");
    }
    if (number !== this.#base.number) return;
    const { bytes: begun, crc } = this.#base.file;
    if (copied.bytes >= begun && checksumOfFile(disk, to, begun).crc === crc) return;
    throw new CorruptionError(
      path,
      0,
      `the beginning of the file differs from log file ${number} in the backup, so the file ` +
        "is damaged or belongs to a different database",
    );
  }

  /**
   * Replays the log and writes the resulting rows to segments, so that the entire log never has to
   * be in memory at once.
   *
   * @returns False if a commit continues in the next file, because such a commit cannot be split.
   */
  async #settle(journal: readonly JournalEntry[]): Promise<boolean> {
    const { clock, disk, random } = this.#parts;
    const point = await this.#point(Infinity);
    const { damage, endSeq, isWhole } = point;
    if (damage !== undefined) throw damage;
    if (!isWhole) return false;
    const upToHere = journal.filter(({ stamp }) => stamp <= endSeq);
    await this.#replayJournal(upToHere, endSeq);
    await this.#withCatalog(async (catalog) => {
      // The copy itself contains all segments. The tables return to their storages once the copy
      // has replaced the database.
      catalog.manifest.leaveStorages();
      // These are the highest limits that a configuration allows, so nothing is flushed
      // automatically. All tables are flushed explicitly below.
      const flush = { rowsMax: 999_999, ageMsMax: 24 * HOUR_MS };
      const defaults = { flush, historyMs: 8760 * HOUR_MS };
      const tables = catalog.tables().map((table) => tableDefinition(table, defaults));
      const definitions = [...tables, ...ownTables({ answersTtlMs: HOUR_MS })];
      const store = await LocalStore.open({
        disk,
        dataPath: this.#pending.root,
        clock,
        random,
        log: silentLog,
        manifest: catalog.manifest,
        definitions,
        options: {
          nodeId: 0,
          nodeBits: 0,
          durability: "sync",
          walSegmentBytes: 2 * ROW_BYTES_MAX,
          walMaxBytes: Infinity,
          rowBytesMax: ROW_BYTES_MAX,
          minFreeBytes: 0,
          ballastBytes: 0,
        },
      });
      try {
        for (const { tableId } of definitions) {
          await store.flush(tableId);
          if (this.#parts.listener.isCancelled()) throw this.#cancelled();
        }
      } finally {
        await store.close();
      }
    });
    this.#settled = point;
    return true;
  }

  /**
   * Truncates the log after the requested point in time. @returns The seq at the new end of the
   * log.
   */
  async #cut(sources: readonly ArchivedSource[]): Promise<number> {
    const { disk, seq } = this.#parts;
    const point = await this.#point(seq);
    const lastSeq = Math.max(point.lastSeq, this.#settled?.lastSeq ?? 0, this.#list.seq);
    if (sources.length === 0) return lastSeq;
    if (point.damage !== undefined && point.endSeq <= seq) throw point.damage;
    const isOpenEnd = sources.at(-1)?.unit === undefined && this.#parts.tail?.endSeq === undefined;
    if (isOpenEnd && point.endSeq < seq) {
      throw pointUncovered(this.#parts, point.endSeq, "nothing was committed after this point");
    }
    shortenLog(disk, this.#pending, point);
    return lastSeq;
  }

  async #point(seq: number): Promise<ReturnType<typeof findLogPoint>> {
    const firstFile = await this.#withCatalog(({ manifest }) => manifest.load().firstLogFile ?? 0);
    const begun = { fileNumber: this.#base.number, offset: this.#base.file.bytes };
    const otherwise = this.#settled ?? begun;
    return findLogPoint(this.#parts.disk, this.#pending, { firstFile, otherwise, seq });
  }

  /** Applies the journal's changes to the catalog, except those that have already been applied. */
  async #replayJournal(journal: readonly JournalEntry[], seq: number): Promise<void> {
    const end = await this.#withCatalog((catalog) => catalog.journal.end);
    const entries = journal.filter(({ id }) => id > end);
    const path = catalogPathOf(this.#pending.root);
    CatalogDatabase.replay(path, entries, { log: silentLog, seq });
  }

  /**
   * Moves the files uploaded since the backup from the database being replaced into the copy.
   *
   * @returns The paths of the files that the database being replaced does not have either.
   */
  async #adoptUploads(): Promise<string[]> {
    const { disk, tail } = this.#parts;
    // The catalog may still list files of a table that was dropped before the requested point in
    // time.
    const entries = await this.#withCatalog((catalog) =>
      catalog.files.all().filter(({ tableId }) => catalog.tableById(tableId) !== undefined),
    );
    const missing: string[] = [];
    const listed = new Set<string>();
    for (const entry of entries) {
      const path = blobPath(entry);
      listed.add(path);
      const to = `${this.#pending.root}/${path}`;
      if (disk.exists(to)) continue;
      const from = tail === undefined ? undefined : `${tail.filesRoot}/${path}`;
      if (from === undefined || disk.sizeOf(from) !== entry.size) {
        missing.push(path);
        continue;
      }
      for (const directory of makeDirectoryOf(disk, this.#pending.root, path).toReversed()) {
        disk.syncDirectory(directory);
      }
      await copyFile(from, to, { disk, pause: this.#pause, onCopied() {} });
      disk.syncDirectory(dirname(to));
    }
    // Files that the catalog does not list must be removed now, because later removals find files
    // only through the catalog.
    removeUnlisted(disk, this.#pending.root, { name: "files", listed });
    return missing;
  }

  #relist(): BackupList {
    const { disk, seq } = this.#parts;
    const { root } = this.#pending;
    for (const name of ["LOCK", ...CATALOG_SIDE_FILES]) {
      if (disk.exists(`${root}/${name}`)) disk.remove(`${root}/${name}`);
    }
    const files: BackupFile[] = [
      { path: "format.json", ...checksumOfFile(disk, this.#pending.format) },
    ];
    files.push({ path: CATALOG_FILE, ...checksumOfFile(disk, catalogPathOf(root)) });
    for (const name of ["segments", "files", "wal"]) {
      for (const path of filesBelow(disk, `${root}/${name}`)) {
        files.push({ path: path.slice(root.length + 1), ...checksumOfFile(disk, path) });
      }
    }
    const { createdAtMs, version } = this.#list;
    const list = { version, createdAtMs, seq, files };
    writeBackupList(disk, root, list);
    return list;
  }

  /** Opens the catalog of the copied database, and closes it once `work` has finished. */
  async #withCatalog<T>(work: (catalog: CatalogDatabase) => T | Promise<T>): Promise<T> {
    const path = catalogPathOf(this.#pending.root);
    const catalog = CatalogDatabase.open({ path, clock: this.#parts.clock, log: silentLog });
    try {
      return await work(catalog);
    } finally {
      catalog.close();
    }
  }

  #cancelled(): DatabaseError {
    const { source } = this.#parts;
    return new DatabaseError("CANCELLED", `Cannot restore from ${source}: the job was killed`);
  }
}

function lastLogFile({ files }: BackupList): LogFile | undefined {
  for (const file of files.toReversed()) {
    const [directory, name = ""] = file.path.split("/");
    const number = directory === "wal" ? walFileNumberFromName(name) : undefined;
    if (number !== undefined) return { number, file };
  }
  return undefined;
}

/**
 * Removes the files below a directory that the catalog does not list, and directories that become
 * empty.
 */
function removeUnlisted(
  disk: Disk,
  root: string,
  { listed, name }: { listed: ReadonlySet<string>; name: string },
): void {
  const directory = `${root}/${name}`;
  if (!disk.exists(directory)) return;
  let isChanged = false;
  for (const entry of disk.list(directory)) {
    const path = `${name}/${entry.name}`;
    if (entry.isDirectory) {
      removeUnlisted(disk, root, { listed, name: path });
      if (disk.list(`${root}/${path}`).length > 0) continue;
      disk.removeDirectory(`${root}/${path}`);
    } else {
      if (listed.has(path)) continue;
      disk.remove(`${root}/${path}`);
    }
    isChanged = true;
  }
  if (isChanged) disk.syncDirectory(directory);
}
