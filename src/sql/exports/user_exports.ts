/**
 * Implements EXPORT USER DATA, which starts a job that writes an archive for the user to download.
 *
 *     tmp/{job id}.zip              while the job runs; startup empties tmp/
 *     exports/{owner}/{job id}.zip  complete
 *
 * - The path of an archive is its only metadata: the owner number identifies its owner, and the
 *   job id shows when the export was started. No other data has to be kept consistent with the
 *   files.
 * - A user has at most one open export and one archive. A new archive replaces the previous one.
 * - The job list keeps only the two most recent ended exports of a user. Otherwise, a user who
 *   exports often would push operators' jobs out of the list.
 * - The jobs of all users run one after another, so that together they use no more processor time
 *   than a single query.
 * - An expired archive cannot be found, and the next sweep removes it.
 * - No archive appears after its user was dropped, because the check and the publication happen in
 *   the same tick.
 */
import { dirname } from "node:path";
import { mayActFor, mayReadFilesOf, type Principal, requireRun } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import { removeTreeSoon } from "../../base/copy_file.ts";
import type { Disk } from "../../base/disk.ts";
import { DatabaseError } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import { WorkLine } from "../../base/work_line.ts";
import { beganAtMs, type Job, type JobEnd, runJob } from "../../storage/mod.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { BegunJob, ExportAccess, ExportState } from "../ports/ports.ts";
import { type ArchiveDeps, writeArchive } from "./user_archive.ts";
import { ZipFile } from "./zip_file.ts";

/** The number of bytes by which an archive may grow between two checks of the free space. */
const LOOK_BYTES: number = 8 * 1024 * 1024;

/**
 * The disk space, in bytes, that an export leaves free for the log, in addition to the reserve.
 */
const SPARE_BYTES: number = 64 * 1024 * 1024;

/** Matches the file name of a complete archive, which is the id of its job. */
const ARCHIVE = /^(EX\d{1,17})\.zip$/;

export interface UserExportsOptions
  extends ArchiveDeps,
    Pick<SqlEnvironment, "clock" | "jobs" | "log"> {
  readonly disk: Disk;
  /** The directory for complete archives. Its parent directory must exist. */
  readonly directory: string;
  /** The directory for unfinished archives. */
  readonly temporary: string;
  /** How long an archive can be downloaded, in milliseconds. */
  readonly keepMs: number;
  /** The disk space that an export must leave free, in bytes. */
  readonly minFreeBytes: number;
}

/** The parts of a URL that identify an archive. */
export interface ArchivePath {
  readonly userId: string;
  readonly exportId: string;
}

/** Opens the archives that callers download. */
export interface ArchiveAccess {
  /**
   * Returns the content of an archive.
   *
   * @throws {DatabaseError} PERMISSION_DENIED, EXPORT_NOT_FOUND
   */
  open(principal: Principal, path: ArchivePath): Blob;
}

interface ExportingUser {
  readonly userId: string;
  /** The owner number of the rows that are exported. */
  readonly owner: number;
}

export class UserExports implements ArchiveAccess, ExportAccess {
  readonly #options: UserExportsOptions;
  readonly #line = new WorkLine();

  constructor(options: UserExportsOptions) {
    this.#options = options;
  }

  begin({ userId }: Principal): BegunJob {
    const { catalog, jobs } = this.#options;
    // A user who has never written data is given an owner number now, and gets an empty archive.
    const owner = defined(
      catalog.accounts.ownerNumber(userId, { create: true }),
      "user export: catalog did not create an owner number",
    );
    const known = this.#jobsOf(owner);
    const open = known.find((job) => !job.isEnded);
    if (open !== undefined) return { job: open, isNew: false };
    for (const earlier of known.slice(0, -1)) jobs.forget(earlier);
    const job = jobs.begin({ kind: "export", createdBy: userId, parameters: { owner } });
    void this.#line.run(() => this.#run(job, { owner, userId }));
    return { job, isNew: true };
  }

  list({ owner }: Principal): readonly ExportState[] {
    if (owner === undefined) return [];
    const archives = new Set(this.#archivesOf(owner));
    const known = this.#jobsOf(owner);
    const states = known
      // The archive of a completed job may have been replaced or may have expired.
      .filter((job) => job.status !== "completed" || archives.has(job.jobId))
      .map(({ createdAtMs, error, jobId, message, status }): ExportState => {
        const shown = error?.message ?? message;
        return { jobId, status, createdAtMs, message: shown, hasArchive: archives.has(jobId) };
      });
    for (const jobId of archives) {
      if (known.some((job) => job.jobId === jobId)) continue;
      const createdAtMs = beganAtMs(jobId);
      const message = undefined;
      states.push({ jobId, status: "completed", createdAtMs, message, hasArchive: true });
    }
    // Job ids ascend with time, and all have the same number of digits.
    return states.toSorted((left, right) => (left.jobId < right.jobId ? 1 : -1));
  }

  open(principal: Principal, { exportId, userId }: ArchivePath): Blob {
    requireRun(principal, "export", { action: "download an export" });
    const { catalog, disk } = this.#options;
    const { role } = catalog.accounts.user(userId) ?? {};
    // A caller who may act for a user can read the same rows with EXECUTE AS anyway.
    if (!mayReadFilesOf(principal, userId) && !mayActFor(principal, { userId, role })) {
      throw new DatabaseError(
        "PERMISSION_DENIED",
        "Cannot download another user's export: this requires the role dba or system, or the " +
          "right to act for that user",
      );
    }
    const owner =
      userId === principal.userId ? principal.owner : catalog.accounts.ownerNumber(userId);
    if (owner === undefined || !this.#archivesOf(owner).includes(exportId)) {
      throw notFound(exportId);
    }
    return disk.blob(this.#pathOf(owner, exportId));
  }

  async removeOwner(owner: number): Promise<void> {
    const { directory, disk } = this.#options;
    await removeTreeSoon(disk, `${directory}/${owner}`);
  }

  async removeExpired(): Promise<number> {
    const { directory, disk } = this.#options;
    if (!disk.exists(directory)) return 0;
    let count = 0;
    for (const { name } of disk.list(directory)) {
      for (const jobId of this.#namesIn(`${directory}/${name}`)) {
        if (!this.#isExpired(jobId)) continue;
        await disk.removeSoon(`${directory}/${name}/${jobId}.zip`);
        count += 1;
      }
    }
    return count;
  }

  async #run(job: Job, user: ExportingUser): Promise<void> {
    const { log } = this.#options;
    const { error } = await runJob<JobEnd>(job, async () => {
      if (!this.#isWanted(job, user)) return { status: "cancelled" };
      job.start();
      return await this.#write(job, user);
    });
    if (error === undefined) return;
    log.warn("an export failed", { user: user.userId, error: error.message });
  }

  /** Writes the archive, and then publishes it. */
  async #write(job: Job, user: ExportingUser): Promise<JobEnd> {
    const { disk, store, temporary } = this.#options;
    store.requireFreeSpace();
    const path = `${temporary}/${job.jobId}.zip`;
    try {
      const message = await this.#writeTo(path, job, user);
      // The check and the publication happen in the same tick, because no archive may appear after
      // its user has been dropped.
      this.#requireWanted(job, user);
      await this.#publish(path, this.#pathOf(user.owner, job.jobId));
      return { status: "completed", message };
    } catch (error) {
      if (disk.exists(path)) disk.remove(path);
      if (!this.#isWanted(job, user)) return { status: "cancelled" };
      throw error;
    }
  }

  /** Writes the archive to a path. Returns a message about its contents. */
  async #writeTo(path: string, job: Job, user: ExportingUser): Promise<string> {
    const { clock, disk } = this.#options;
    const onGrow = growthWatch(this.#options);
    const zip = new ZipFile({ disk, path, timeMs: clock.nowMs(), onGrow });
    try {
      const { files, rows, tables } = await writeArchive(zip, this.#options, {
        ...user,
        pause: pauser(clock, { check: () => this.#requireWanted(job, user) }),
        onDone: (share) => job.advance(share),
      });
      const bytes = await zip.finish();
      return `${rows} row(s) of ${tables} table(s) and ${files} file(s), ${bytes} bytes`;
    } catch (error) {
      zip.discard();
      throw error;
    }
  }

  /** Makes an archive available for download, and removes the user's previous archive. */
  async #publish(from: string, target: string): Promise<void> {
    const { directory, disk } = this.#options;
    const own = dirname(target);
    const earlier = this.#namesIn(own);
    disk.makeDirectory(own);
    disk.rename(from, target);
    for (const path of [dirname(directory), directory, own]) await disk.syncDirectorySoon(path);
    for (const jobId of earlier) await disk.removeSoon(`${own}/${jobId}.zip`);
  }

  /**
   * Requires that the export is still wanted.
   * @throws {DatabaseError} CANCELLED
   */
  #requireWanted(job: Job, user: ExportingUser): void {
    if (this.#isWanted(job, user)) return;
    throw new DatabaseError("CANCELLED", "Cannot finish the export: the job was killed");
  }

  /** Whether the job has not been killed and its user has not been dropped. */
  #isWanted(job: Job, { owner, userId }: ExportingUser): boolean {
    return !job.isCancelled && this.#options.catalog.accounts.ownerNumber(userId) === owner;
  }

  #jobsOf(owner: number): Job[] {
    return this.#options.jobs
      .all()
      .filter((job) => job.kind === "export" && job.parameters?.["owner"] === owner);
  }

  /** Returns the ids of the archives that can be downloaded. */
  #archivesOf(owner: number): string[] {
    const names = this.#namesIn(`${this.#options.directory}/${owner}`);
    return names.filter((jobId) => !this.#isExpired(jobId));
  }

  #namesIn(directory: string): string[] {
    const { disk } = this.#options;
    if (!disk.exists(directory)) return [];
    return disk.list(directory).flatMap(({ name }) => ARCHIVE.exec(name)?.[1] ?? []);
  }

  #isExpired(jobId: string): boolean {
    const { clock, keepMs } = this.#options;
    return clock.nowMs() >= beganAtMs(jobId) + keepMs;
  }

  #pathOf(owner: number, jobId: string): string {
    return `${this.#options.directory}/${owner}/${jobId}.zip`;
  }
}

function growthWatch({
  disk,
  minFreeBytes,
  temporary,
}: Pick<UserExportsOptions, "disk" | "minFreeBytes" | "temporary">): (bytes: number) => void {
  let bytesToLook = 0;
  return (bytes) => {
    bytesToLook -= bytes;
    if (bytesToLook > 0) return;
    bytesToLook = LOOK_BYTES;
    if (disk.freeBytes(temporary) >= minFreeBytes + SPARE_BYTES) return;
    throw new DatabaseError(
      "DISK_FULL",
      "Cannot finish the export: there is too little free disk space for its archive",
    );
  };
}

function notFound(exportId: string): DatabaseError {
  return new DatabaseError("EXPORT_NOT_FOUND", `Cannot find export ${exportId}`, {
    hint: "to list your exports, run SHOW EXPORT",
  });
}
