/**
 * Runs BACKUP DATABASE and RESTORE DATABASE as jobs: checks the paths, does the work, and reports
 * the outcome. Only one job of each kind runs at a time.
 */
import { shownMs } from "../base/clock.ts";
import type { DiskFile } from "../base/disk.ts";
import { DatabaseError, DiskError, isExpected } from "../base/errors.ts";
import type { Log, LogFields } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Seq } from "../base/seq.ts";
import { catalogPathOf, seqErasOf } from "../catalog/mod.ts";
import type { BackupAccess, BegunJob } from "../sql/mod.ts";
import { type BackupList, type DataPaths, walFilePath } from "../storage/files.ts";
import {
  errorFrom,
  type Job,
  type JobEnd,
  type JobKind,
  type JobList,
  type NewJob,
  requireAllowedPath,
  runJob,
} from "../storage/mod.ts";
import { INCARNATION } from "./archive_units.ts";
import { type BackupSource, backUp } from "./backup.ts";
import {
  refuseStaged,
  type StageListener,
  type StageRequest,
  stagedPath,
  stageRestore,
} from "./restore.ts";
import { bringTo, type PointWork } from "./restore_point.ts";
import {
  type LogTail,
  missingText,
  type PointText,
  readPoint,
  seqOfPoint,
} from "./restore_sources.ts";

/**
 * Rolls a copy of a backup forward to a point in time, as `bringTo` does, but in a separate
 * thread.
 * @returns The list of files in the resulting copy.
 */
export type PointBringer = (work: PointWork) => Promise<BackupList>;

export interface BackupJobsOptions extends Omit<BackupSource, "catalogFile"> {
  readonly jobs: JobList;
  readonly random: Random;
  readonly log: Log;
  /** The maximum number of log bytes that a point-in-time restore keeps in memory. */
  readonly heldBytesMax: number;
  /** The configured directory for archived log files; undefined if log files are not archived. */
  readonly archivePath: string | undefined;
  /**
   * Rolls a copy of a backup forward to a point in time, in another thread. If absent, the event
   * loop does the work, which causes long ticks.
   */
  readonly bringInThread?: PointBringer | undefined;
  /** The absolute paths of the directories under which backups are allowed. */
  readonly allowedRoots: readonly string[];
}

/** The result of a backup or restore, with the message to report. */
interface Outcome {
  readonly list: BackupList;
  readonly message: string;
}

export class BackupJobs implements BackupAccess {
  readonly #options: BackupJobsOptions;
  #catalogFile: DiskFile | undefined;

  constructor(options: BackupJobsOptions) {
    this.#options = options;
  }

  backUp(target: string, createdBy: string): BegunJob {
    this.#requireAllowed("back up to", target);
    const open = this.#options.jobs.openOf("backup", undefined);
    if (open !== undefined) return { job: open, isNew: false };
    const catalogFile = (): DiskFile => this.#openCatalogFile();
    const source = { ...this.#options, catalogFile };
    return this.#begin({ kind: "backup", createdBy, parameters: { path: target } }, async (job) => {
      const { incompleteTables, list } = await backUp(source, target, job);
      const files = `${list.files.length} files`;
      if (incompleteTables.length === 0) {
        return { list, message: `${files}, up to _seq ${list.seq}` };
      }
      const tables = incompleteTables.join(", ");
      this.#options.log.warn("a backup lacks rows that an earlier repair has reported as lost", {
        path: target,
        tables,
      });
      const without = `without the rows of ${tables} that an earlier repair has reported as lost`;
      return { list, message: `${files}, ${without}, up to _seq ${list.seq}` };
    });
  }

  #seqOf(to: PointText): Seq {
    const { store } = this.#options;
    return seqOfPoint(readPoint(to), { lastSeqUpTo: (unixMs) => store.lastSeqUpTo(unixMs) });
  }

  restore(
    source: string,
    { createdBy, to }: { createdBy: string; to: PointText | undefined },
  ): BegunJob {
    this.#requireAllowed("restore from", source);
    const point = to === undefined ? undefined : this.#seqOf(to);
    const { clock, disk, jobs, minFreeBytes, paths } = this.#options;
    const open = jobs.openOf("restore", undefined);
    if (open !== undefined) return { job: open, isNew: false };
    refuseStaged(disk, paths, source);
    const parameters = { path: source, ...(point === undefined ? {} : { seq: point }) };
    return this.#begin({ kind: "restore", createdBy, parameters }, async (job) => {
      let missing: readonly string[] = [];
      const listener: StageListener = {
        isCancelled: () => job.isCancelled,
        onCopied: (copied, total) =>
          job.advance(total === 0 ? 0 : copied / total, `${copied} of ${total} bytes copied`),
        onStep: (what) => job.advance(0, what),
        onMissing(files) {
          missing = files;
        },
      };
      const brought = point === undefined ? {} : this.#bringTo(point, { source, listener });
      const begin = { source, paths, minFreeBytes, listener, orderedBy: createdBy };
      const request = { ...begin, ...brought };
      const list = await stageRestore({ disk, clock }, request);
      const next =
        `prepared: at its next startup, the server continues from _seq ${list.seq}, and moves ` +
        "everything written since then to lost+found";
      const cancel = `to cancel the restore before that, remove ${stagedPath(paths)}`;
      const texts = [next, cancel, missingText(missing)];
      return { list, message: texts.filter((text) => text !== undefined).join("; ") };
    });
  }

  /** Closes the catalog's file. Must be called after the catalog has been closed. */
  close(): void {
    this.#catalogFile?.close();
    this.#catalogFile = undefined;
  }

  /**
   * Returns the catalog's file. It must be opened only once in the lifetime of the catalog; see
   * `CatalogDatabase.hold`.
   */
  #openCatalogFile(): DiskFile {
    const { disk, paths } = this.#options;
    this.#catalogFile ??= disk.open(catalogPathOf(paths.root), { readOnly: true });
    return this.#catalogFile;
  }

  /**
   * Returns the function that rolls a copy of a backup forward to a seq. It reads the archive and
   * this server's log.
   */
  #bringTo(
    seq: Seq,
    { listener, source }: { listener: StageListener; source: string },
  ): Pick<StageRequest, "bringTo"> {
    const { archivePath, bringInThread, clock, disk, random } = this.#options;
    const { heldBytesMax, minFreeBytes } = this.#options;
    const eras = seqErasOf(this.#options.catalog);
    const run = async (pending: DataPaths, list: BackupList): Promise<BackupList> => {
      using held = new DisposableStack();
      const tail = await this.#tail(seq, held);
      const request = { source, seq, eras, archivePath, tail, heldBytesMax, minFreeBytes };
      if (bringInThread !== undefined) {
        return await bringInThread({ request, pending, list, listener });
      }
      return await bringTo({ ...request, disk, clock, random, listener }, pending, list);
    };
    return { bringTo: { seq, eras, run } };
  }

  /**
   * Returns the part of this server's log that is on disk. Its files are kept until `held` is
   * disposed.
   */
  async #tail(seq: Seq, held: DisposableStack): Promise<LogTail> {
    const { catalog, paths, store } = this.#options;
    // Commits that are not on disk yet are already being written, so it is enough to wait for
    // them.
    if (seq > store.visibleSeq) await store.durable(store.appliedSeq);
    const snapshot = store.snapshot();
    held.defer(() => snapshot.release());
    const { logEnd, logFiles, seq: writtenSeq } = snapshot;
    const incarnation = catalog.setting(INCARNATION);
    // If no commit is in progress, all later commits get a higher seq than the one issued here.
    const endSeq = writtenSeq === store.appliedSeq ? store.issueSeq() : writtenSeq;
    const last = logFiles.at(-1);
    const files = store.logFiles().flatMap(({ bytes, number }) => {
      if (number > (last ?? 0)) return [];
      const end = number === last ? logEnd : bytes;
      return [{ number, path: walFilePath(paths, number), bytes: end }];
    });
    return {
      incarnation,
      files,
      journal: catalog.journal.after(0),
      journalEnd: catalog.journal.end,
      endSeq,
      filesRoot: paths.root,
    };
  }

  #begin(
    begun: Pick<NewJob, "createdBy" | "parameters"> & { kind: "backup" | "restore" },
    work: (job: Job) => Promise<Outcome>,
  ): BegunJob {
    const job = this.#options.jobs.begin(begun);
    void this.#run(job, work);
    return { job, isNew: true };
  }

  async #run(job: Job, work: (job: Job) => Promise<Outcome>): Promise<void> {
    const { clock, log } = this.#options;
    const { createdBy: orderedBy, jobId, kind, parameters } = job;
    const about = { job: jobId, orderedBy, ...parameters };
    const startMs = clock.monotonicMs();
    await runJob<JobEnd>(job, async () => {
      job.start();
      log.info(`began a ${kind}`, about);
      try {
        const { list, message } = await work(job);
        const bytes = list.files.reduce((sum, file) => sum + file.bytes, 0);
        const ms = shownMs(clock.monotonicMs() - startMs);
        this.#tellCompleted(kind, { ...about, seq: list.seq, bytes, ms });
        return { status: "completed", message };
      } catch (error) {
        if (error instanceof DatabaseError && error.code === "CANCELLED") {
          log.info(`a ${kind} was cancelled`, about);
          return { status: "cancelled", message: error.message };
        }
        const reason = told(error);
        log.error(`a ${kind} failed`, { ...about, error: reason.message });
        if (!isExpected(error)) throw error;
        return { status: "failed", error: reason };
      }
    });
  }

  #tellCompleted(kind: JobKind, fields: LogFields): void {
    const { log, paths } = this.#options;
    if (kind === "backup") {
      log.info("completed a backup", fields);
      return;
    }
    // Only this message tells the operator that the next startup will replace the database.
    const cancel = `remove ${stagedPath(paths)}`;
    log.warn("prepared a restore; it will be carried out at the next startup", {
      ...fields,
      cancel,
    });
  }

  /**
   * Refuses a path outside the allowed directories. The path is checked both as given and with its
   * symbolic links resolved.
   *
   * @throws {DatabaseError} INVALID_OPTION, UNSUPPORTED_FEATURE
   */
  #requireAllowed(action: string, path: string): void {
    const { allowedRoots, disk, paths, store } = this.#options;
    if (path.startsWith("s3://")) {
      throw new DatabaseError(
        "UNSUPPORTED_FEATURE",
        `Cannot ${action} "${path}": object storage is not available yet`,
        { hint: "use a directory on the server" },
      );
    }
    requireAllowedPath({ allowedRoots, disk, dataPath: paths.root }, { action, path });
    store.storages.requireApart({ action, path });
  }
}

/**
 * Returns an error whose message names the file concerned. A user who may copy the entire database
 * may also see this name.
 */
function told(error: unknown): Error {
  if (!(error instanceof DiskError)) return errorFrom(error);
  const condition = error.code === "ENOSPC" ? "DISK_FULL" : "STORAGE_UNAVAILABLE";
  return new DatabaseError(condition, `Cannot copy the database: ${error.message}`, {
    cause: error,
  });
}
