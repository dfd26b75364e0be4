/**
 * BACKUP DATABASE and RESTORE DATABASE as jobs: which paths they may name, what they do, and how
 * they end. One of each kind at a time.
 */
import { resolve } from "node:path";
import { type BackupSource, backUp } from "./backup.ts";
import type { Disk } from "./base/disk.ts";
import { CorruptionError, DatabaseError, DiskError } from "./base/errors.ts";
import { isRestoreStaged, stageRestore } from "./restore.ts";
import type { BackupAccess, BegunJob } from "./sql/mod.ts";
import { errorFrom, type Job, type JobList } from "./storage/mod.ts";

export interface BackupJobsOptions extends BackupSource {
  readonly jobs: JobList;
  /** Absolute paths of directories; what is below them may be named. */
  readonly allowedRoots: readonly string[];
}

/** Absolute, without `.`, `..` and empty parts, which could lead out of a root. */
const PLAIN_PATH = /^(?:\/(?!\.{1,2}(?:\/|$))[^/\0]+)+$/;

export class BackupJobs implements BackupAccess {
  readonly #options: BackupJobsOptions;

  constructor(options: BackupJobsOptions) {
    this.#options = options;
  }

  backUp(target: string, createdBy: string): BegunJob {
    this.#requireAllowed("back up to", target);
    const open = this.#options.jobs.openOf("backup", undefined);
    if (open !== undefined) return { job: open, isNew: false };
    return this.#begin({ kind: "backup", createdBy, path: target }, async (job) => {
      const { files, seq } = await backUp(this.#options, target, job);
      return `${files.length} files, up to _seq ${seq}`;
    });
  }

  restore(source: string, createdBy: string): BegunJob {
    this.#requireAllowed("restore from", source);
    const { clock, disk, jobs, paths } = this.#options;
    const open = jobs.openOf("restore", undefined);
    if (open !== undefined) return { job: open, isNew: false };
    if (isRestoreStaged(disk, paths)) {
      throw new DatabaseError(
        "INVALID_OPERATION",
        `Cannot restore from ${source}: another restore waits for the restart of the server`,
        { hint: `to take it back, remove ${paths.root}/restore` },
      );
    }
    return this.#begin({ kind: "restore", createdBy, path: source }, async (job) => {
      const listener = {
        isCancelled: () => job.isCancelled,
        onCopied: (copied: number, total: number) =>
          job.advance(total === 0 ? 0 : copied / total, `${copied} of ${total} bytes copied`),
      };
      const { seq } = await stageRestore({ disk, clock }, { source, paths, listener });
      return `restart the server: it then goes on from the state of _seq ${seq}, and what was written since goes to lost+found`;
    });
  }

  #begin(
    { createdBy, kind, path }: { createdBy: string; kind: "backup" | "restore"; path: string },
    work: (job: Job) => Promise<string>,
  ): BegunJob {
    const job = this.#options.jobs.begin({ kind, createdBy, parameters: { path } });
    // Its failure is a bug, and stops the process.
    void run(job, work);
    return { job, isNew: true };
  }

  /**
   * What a path says has to be allowed, and where it leads through symbolic links as well.
   *
   * @throws {DatabaseError} INVALID_OPTION
   */
  #requireAllowed(action: string, path: string): void {
    const { allowedRoots, disk, paths } = this.#options;
    const refuse = (what: string, hint: string): DatabaseError =>
      new DatabaseError("INVALID_OPTION", `Cannot ${action} "${path}": ${what}`, { hint });
    if (path.startsWith("s3://")) {
      throw refuse("object storage is not available yet", "name a directory of the server");
    }
    if (!PLAIN_PATH.test(path)) {
      throw refuse("it is no absolute path without . and ..", "for instance /var/backups/monday");
    }
    const known = allowedRoots.length === 0 ? "and it is empty" : allowedRoots.join(", ");
    const where = `storage.allowed_roots lists them: ${known}`;
    if (!allowedRoots.some((root) => isBelow(path, root))) {
      throw refuse("it is below no directory that the configuration allows", where);
    }
    const real = realPathOf(disk, path);
    if (!allowedRoots.some((root) => isBelow(real, realPathOf(disk, root)))) {
      throw refuse(`it leads to ${real}, below no directory that the configuration allows`, where);
    }
    const roots = [resolve(paths.root), disk.realPath(paths.root)];
    if (roots.some((root) => [path, real].some((name) => name === root || isBelow(name, root)))) {
      throw refuse("it is in the data directory", "name a directory elsewhere");
    }
  }
}

function isBelow(path: string, root: string): boolean {
  return path.startsWith(`${root.replace(/\/$/, "")}/`);
}

/** Where a path leads that need not be there yet: what is there of it is resolved. */
function realPathOf(disk: Disk, path: string): string {
  if (disk.exists(path)) return disk.realPath(path);
  const end = path.lastIndexOf("/");
  if (end <= 0) return path;
  return `${realPathOf(disk, path.slice(0, end)).replace(/\/$/, "")}${path.slice(end)}`;
}

async function run(job: Job, work: (job: Job) => Promise<string>): Promise<void> {
  job.start();
  try {
    job.end({ status: "completed", message: await work(job) });
  } catch (error) {
    if (error instanceof DatabaseError && error.condition === "CANCELLED") {
      job.end({ status: "cancelled", message: error.message });
      return;
    }
    const isExpected =
      error instanceof DatabaseError ||
      error instanceof DiskError ||
      error instanceof CorruptionError;
    job.end({ status: "failed", error: told(error) });
    if (!isExpected) throw error;
  }
}

/** Who copies a database may know which file of which disk failed. */
function told(error: unknown): Error {
  if (!(error instanceof DiskError)) return errorFrom(error);
  const condition = error.code === "ENOSPC" ? "DISK_FULL" : "STORAGE_UNAVAILABLE";
  return new DatabaseError(condition, `Cannot copy the database: ${error.message}`, {
    cause: error,
  });
}
