/**
 * Gives a server under torture, and each of its threads, a disk that kills the process right
 * before or after an operation named in the environment, so that the server dies at every step of
 * the on-disk protocols. The process and its threads load this module first.
 *
 *     KILL_AT="after rename pending segment" KILL_COUNT=2
 *
 * A process cannot catch its own SIGKILL, and no code after it runs.
 */
import { Database as SqliteDatabase } from "bun:sqlite";
import { bunDisk } from "../../../src/base/bun_disk.ts";
import type { Disk } from "../../../src/base/disk.ts";
import { ForwardingFile } from "../../support/forwarding_disk.ts";
import { fileKind } from "./kill_points.ts";

const wanted = process.env["KILL_AT"] ?? "";
const wantedCount = Number(process.env["KILL_COUNT"] ?? "1");
let count = 0;

/**
 * Runs an operation. If the environment names this operation, the process dies right before or
 * after it.
 */
function passing<T>(operation: string, kind: string, work: () => T): T {
  dieAt(`before ${operation} ${kind}`);
  const result = work();
  dieAt(`after ${operation} ${kind}`);
  return result;
}

function dieAt(point: string): void {
  if (point !== wanted) return;
  count += 1;
  if (count < wantedCount) return;
  process.kill(process.pid, "SIGKILL");
  // In a process with several threads, the signal takes effect a moment later, so this thread
  // waits.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

class KillingFile extends ForwardingFile {
  readonly #kind: string = fileKind(this.path);

  override write(bytes: Uint8Array, offset: number): void {
    passing("write", this.#kind, () => this.file.write(bytes, offset));
  }

  /**
   * Writes and syncs in a single system call. The named kill point is the place where a separate
   * sync would begin.
   */
  override async writeDurably(bytes: Uint8Array, offset: number): Promise<void> {
    dieAt(`before write ${this.#kind}`);
    const written = this.file.writeDurably(bytes, offset);
    dieAt(`before sync ${this.#kind}`);
    await written;
    dieAt(`after write ${this.#kind}`);
    dieAt(`after sync ${this.#kind}`);
  }

  override truncate(length: number): void {
    passing("truncate", this.#kind, () => this.file.truncate(length));
  }

  override async sync(): Promise<void> {
    dieAt(`before sync ${this.#kind}`);
    await this.file.sync();
    dieAt(`after sync ${this.#kind}`);
  }

  override syncNow(): void {
    passing("sync", this.#kind, () => this.file.syncNow());
  }
}

const plain = { ...bunDisk };
const killing: Pick<
  Disk,
  "open" | "rename" | "remove" | "removeSoon" | "syncDirectory" | "syncDirectorySoon"
> = {
  open: (path, options) => new KillingFile(plain.open(path, options)),
  rename: (from, to) => passing("rename", fileKind(from), () => plain.rename(from, to)),
  remove: (path) => passing("remove", fileKind(path), () => plain.remove(path)),
  removeSoon: async (path) => {
    dieAt(`before remove ${fileKind(path)}`);
    await plain.removeSoon(path);
    dieAt(`after remove ${fileKind(path)}`);
  },
  syncDirectory: (path) =>
    passing("sync", `directory of ${fileKind(`${path}/`)}`, () => plain.syncDirectory(path)),
  syncDirectorySoon: async (path) => {
    const kind = `directory of ${fileKind(`${path}/`)}`;
    dieAt(`before sync ${kind}`);
    await plain.syncDirectorySoon(path);
    dieAt(`after sync ${kind}`);
  },
};
Object.assign(bunDisk, killing);

// SQLite writes the catalog's files itself. Only its commits are visible from outside.
type Run = SqliteDatabase["run"];
const plainRun: Run = Reflect.get(SqliteDatabase.prototype, "run");
Object.assign(SqliteDatabase.prototype, {
  run(this: SqliteDatabase, ...args: Parameters<Run>): ReturnType<Run> {
    const work = (): ReturnType<Run> => Reflect.apply(plainRun, this, args);
    return args[0] === "COMMIT" ? passing("commit", "catalog", work) : work();
  },
});
