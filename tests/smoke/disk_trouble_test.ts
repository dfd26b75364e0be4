/**
 * Tests a real process with a failing disk: system calls return errors, the file system is full,
 * or the process reaches kernel limits. After a restart, acknowledged rows are present and refused
 * rows are not. Nothing hangs, and an error of the log ends the process.
 */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { maintain, removeDirectories } from "../support/maintenance.ts";
import { programMissing, straceMissing, testUnless } from "../support/requirements.ts";
import { ServerProcess, type SqlAnswer, startReadyServer } from "../support/server_process.ts";
import { onlyThorough } from "../support/thoroughness.ts";

afterAll(removeDirectories);

const CONFIG = {
  storage: { wal_segment_bytes: 1 << 20, min_free_bytes: 0, flush_rows: 900_000 },
  limits: { max_row_bytes: 262_144 },
};

/** The maximum time that a request may wait for its response, in milliseconds. */
const ANSWER_MS_MAX = 60_000;

/** The maximum time that strace may take to detach before the test kills it, in milliseconds. */
const DETACH_MS_MAX = 3000;

const EXIT_FATAL = 70;

interface Trouble {
  readonly call: "pwrite64" | "fdatasync" | "fsync" | "openat" | "rename";
  readonly error: "EIO" | "ENOSPC" | "EMFILE";
  /** The calls of each thread that fail, as numbers counted from 1; `1+` means every call. */
  readonly when: string;
  /**
   * Set if only the threads that write the log get the error. The event loop can then erase the
   * bytes of their incomplete writes.
   */
  readonly isBehind?: true;
}

const CASES: readonly Trouble[] = [
  { call: "pwrite64", error: "ENOSPC", when: "1", isBehind: true },
  { call: "pwrite64", error: "ENOSPC", when: "1" },
  { call: "pwrite64", error: "ENOSPC", when: "2" },
  { call: "pwrite64", error: "ENOSPC", when: "5" },
  { call: "pwrite64", error: "ENOSPC", when: "1+" },
  { call: "pwrite64", error: "EIO", when: "1" },
  { call: "pwrite64", error: "EIO", when: "4" },
  { call: "pwrite64", error: "EIO", when: "9+" },
  { call: "fdatasync", error: "EIO", when: "1" },
  { call: "fdatasync", error: "EIO", when: "3" },
  { call: "fdatasync", error: "ENOSPC", when: "2+" },
  { call: "fsync", error: "EIO", when: "1+" },
  { call: "openat", error: "EMFILE", when: "1+" },
  { call: "openat", error: "ENOSPC", when: "1+3" },
  { call: "rename", error: "EIO", when: "1+" },
  { call: "rename", error: "ENOSPC", when: "1" },
];

/**
 * The cases of a usual run, one of each kind. With DISK_TROUBLE=all, all cases run, which takes
 * minutes on a busy machine.
 */
const QUICK: readonly Trouble[] = CASES.filter((_, index) => [0, 4, 5, 8, 12].includes(index));

const chosen: readonly Trouble[] = process.env["DISK_TROUBLE"] === "all" ? CASES : QUICK;

/** Records for each row whether the server acknowledged it, refused it, or gave no response. */
class Ledger {
  readonly acknowledged = new Set<number>();
  readonly refused = new Set<number>();
  nextId = 0;

  async insert(server: ServerProcess, length = 100): Promise<void> {
    this.nextId += 1;
    const id = this.nextId;
    const text = `INSERT INTO t VALUES (${id}, '${"x".repeat(length)}')`;
    const answer = await answered(server.sql(text));
    if (answer?.body.status === "success") this.acknowledged.add(id);
    else if (answer !== undefined && answer.body.error?.code !== "COMMIT_UNKNOWN") {
      this.refused.add(id);
    }
  }

  /** Returns the rows that are present but should not be, and those that are missing. */
  async faults(server: ServerProcess): Promise<string[]> {
    const rows = await server.rows("SELECT id FROM t");
    const found = new Set(rows.map(([id]) => Number(id)));
    const lost = [...this.acknowledged].filter((id) => !found.has(id));
    const risen = [...this.refused].filter((id) => found.has(id));
    return [...lost.map((id) => `lost ${id}`), ...risen.map((id) => `refused ${id}`)];
  }
}

/** Awaits a response. Returns undefined if the process ended and so broke the connection. */
async function answered(asked: Promise<SqlAnswer>): Promise<SqlAnswer | undefined> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("no answer: it hangs")), ANSWER_MS_MAX);
  try {
    return await Promise.race([asked, late.promise]);
  } catch (error) {
    if (error instanceof Error && error.message === "no answer: it hangs") throw error;
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Makes the server use its disk: runs commits, a flush, and a statement that changes a definition.
 */
async function work(server: ServerProcess, ledger: Ledger, round: number): Promise<void> {
  for (let count = 0; count < 3; count += 1) await ledger.insert(server);
  await answered(server.sql("STORAGE FLUSH TABLE t"));
  await answered(server.sql(`CREATE SHARED TABLE made_${round} (id INT PRIMARY KEY)`));
  // These rows fill up a log file.
  for (let count = 0; count < 6; count += 1) await ledger.insert(server, 200_000);
}

/** Attaches strace to a server. Resolves once it is attached. */
async function inject(
  server: ServerProcess,
  { call, error, isBehind, when }: Trouble,
): Promise<{ end: () => Promise<void> }> {
  const traced = isBehind === true ? poolThreads(server.pid) : ["-f", "-p", String(server.pid)];
  const injected = `inject=${call}:error=${error}:when=${when}`;
  const tracer = Bun.spawn(
    ["strace", ...traced, "-e", `trace=${call}`, "-e", injected, "-o", "/dev/null"],
    { stdin: "ignore", stdout: "ignore", stderr: "pipe" },
  );
  const reader = tracer.stderr.getReader();
  const timer = setTimeout(() => tracer.kill("SIGKILL"), ANSWER_MS_MAX);
  let told = "";
  while (!told.includes("attached")) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`Cannot attach strace: ${told}`);
    told += new TextDecoder().decode(value);
  }
  clearTimeout(timer);
  reader.releaseLock();
  return {
    async end() {
      tracer.kill("SIGINT");
      const isGone = await Promise.race([
        tracer.exited.then(() => true),
        Bun.sleep(DETACH_MS_MAX).then(() => false),
      ]);
      // Killing strace does not end the traced process.
      if (!isGone) tracer.kill("SIGKILL");
      await tracer.exited;
    },
  };
}

/** Returns all threads of the process except the event loop, as strace arguments. */
function poolThreads(pid: number): string[] {
  const threads = readdirSync(`/proc/${pid}/task`).filter((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/comm`, "utf8").startsWith("Bun Pool"),
  );
  expect(threads.length).toBeGreaterThan(0);
  return threads.flatMap((thread) => ["-p", thread]);
}

async function hasEnded(server: ServerProcess): Promise<number | undefined> {
  return await Promise.race([server.exited(), Bun.sleep(150).then(() => undefined)]);
}

const noStrace = straceMissing();

testUnless(onlyThorough ?? noStrace)(
  "system call errors lose nothing that was acknowledged, and restore nothing that was refused",
  async () => {
    await using server = await startReadyServer({ config: CONFIG });
    await server.rows("CREATE SHARED TABLE t (id INT PRIMARY KEY, v TEXT)");
    const ledger = new Ledger();
    const endings: string[] = [];
    for (const [round, trouble] of chosen.entries()) {
      const tracer = await inject(server, trouble);
      await work(server, ledger, round);
      await tracer.end();
      const code = await hasEnded(server);
      const where = trouble.isBehind === true ? " behind" : "";
      const name = `${trouble.call} ${trouble.error} ${trouble.when}${where}`;
      if (code !== undefined) expect({ name, code }).toEqual({ name, code: EXIT_FATAL });
      endings.push(`${name}: ${code === undefined ? "goes on" : "ended"}`);
      if (code === undefined) await server.restart("SIGKILL");
      else await server.start();
      expect({ name, faults: await ledger.faults(server) }).toEqual({ name, faults: [] });
      await ledger.insert(server);
      expect([...ledger.acknowledged], name).toContain(ledger.nextId);
    }
    // A log error is fatal, because writing and syncing the log is a single step. A full disk is
    // not fatal.
    expect(endings).toContain("pwrite64 ENOSPC 1 behind: goes on");
    expect(endings).toContain("pwrite64 EIO 1: ended");
    server.kill("SIGTERM");
    await server.exited();
    expect(maintain("verify", [server.dataPath])).toMatchObject({ code: 0 });
    await server.start();
  },
  300_000,
);

const LIMITS: readonly (readonly [limit: string, name: string])[] = [
  ["--nofile=30:30", "no descriptor is left"],
  ["--nofile=45:45", "few descriptors are left"],
  ["--fsize=200000:200000", "no file may grow"],
  ["--fsize=1100000:1100000", "no file may be longer than a log file"],
];

testUnless(noStrace)(
  "a definition whose sync failed ends the process, since only the next start knows of it",
  async () => {
    await using server = await startReadyServer({ config: CONFIG });
    await server.rows("CREATE SHARED TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1)");
    const tracer = await inject(server, { call: "fsync", error: "EIO", when: "1+" });
    const ledger = new Ledger();
    expect(await answered(server.sql("DROP TABLE t"))).toBeUndefined();
    // The server must refuse any row that would be lost by a restart.
    await ledger.insert(server);
    expect(ledger.acknowledged.size).toBe(0);
    expect(await server.exited()).toBe(EXIT_FATAL);
    await tracer.end();
    await server.outputHas(
      /the log or the catalog on disk failed; start the server again to recover/,
    );
    await server.start();
    const { body } = await server.sql("SELECT * FROM t");
    if (body.error === undefined) expect(body.results[0]?.rows).toEqual([[1]]);
    else expect(body.error.code).toBe("TABLE_NOT_FOUND");
  },
);

testUnless(noStrace)(
  "an error of the catalog's first sync ends the start as it would end the server",
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "tidemark-trouble-"));
    const catalogLog = join(directory, "data", "catalog.sqlite-wal");
    const injected = "inject=fsync,fdatasync:error=EIO";
    const wrapper = ["strace", "-f", "-P", catalogLog, "-e", injected, "-o", "/dev/null"];
    const server = new ServerProcess(directory, { config: CONFIG, wrapper });
    try {
      const failure = await server.start().catch(String);
      expect(failure).toContain(`it ended with ${EXIT_FATAL}`);
      await server.outputHas(
        /the log or the catalog on disk failed; start the server again to recover/,
      );
    } finally {
      await server.stop();
    }
  },
);

testUnless(onlyThorough ?? programMissing("prlimit", "util-linux"))(
  "limits of the kernel lose nothing that was acknowledged",
  async () => {
    await using server = await startReadyServer({ config: CONFIG });
    await server.rows("CREATE SHARED TABLE t (id INT PRIMARY KEY, v TEXT)");
    const ledger = new Ledger();
    for (const [round, [limit, name]] of LIMITS.entries()) {
      const limited = Bun.spawnSync(["prlimit", "--pid", String(server.pid), limit]);
      expect(limited.exitCode, limited.stderr.toString()).toBe(0);
      await work(server, ledger, round);
      const code = await hasEnded(server);
      if (code !== undefined) expect({ name, code }).toEqual({ name, code: EXIT_FATAL });
      if (code === undefined) await server.restart("SIGKILL");
      else await server.start();
      expect({ name, faults: await ledger.faults(server) }).toEqual({ name, faults: [] });
      await ledger.insert(server);
      expect([...ledger.acknowledged], name).toContain(ledger.nextId);
    }
  },
);

/** Mounts a file system of 16 MiB in memory. Returns undefined if that is not permitted. */
function smallDisk(): { path: string; unmount: () => void } | undefined {
  const path = mkdtempSync(join(tmpdir(), "tidemark-small-"));
  const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", path]);
  if (mounted.exitCode !== 0) {
    rmSync(path, { recursive: true });
    process.stderr.write(`no small disk: ${mounted.stderr.toString()}`);
    return undefined;
  }
  return {
    path,
    unmount() {
      Bun.spawnSync(["umount", path]);
      rmSync(path, { recursive: true });
    },
  };
}

test("a disk of 16 MiB that fills up makes the server read-only, and DROP makes room", async () => {
  const small = smallDisk();
  if (small === undefined) return;
  try {
    const directory = join(small.path, "server");
    mkdirSync(directory);
    const config = {
      ...CONFIG,
      storage: { ...CONFIG.storage, min_free_bytes: 1 << 20, ballast_bytes: 1 << 20 },
    };
    const server = new ServerProcess(directory, { config });
    await server.start();
    await server.setup();
    await server.rows("CREATE SHARED TABLE t (id INT PRIMARY KEY, v TEXT)");
    await server.rows("CREATE SHARED TABLE spare (id INT PRIMARY KEY, v TEXT)");
    for (let id = 0; id < 12; id += 1) {
      await server.rows(`INSERT INTO spare SELECT ${id}, repeat(chr(65 + ${id}), 200000)`);
    }
    await server.rows("STORAGE FLUSH TABLE spare");
    const ledger = new Ledger();
    while (ledger.refused.size < 3 && ledger.nextId < 200) await ledger.insert(server, 200_000);
    expect(ledger.refused.size).toBe(3);
    expect(ledger.acknowledged.size).toBeGreaterThan(3);
    expect(await ledger.faults(server)).toEqual([]);
    await server.restart("SIGKILL");
    expect(await ledger.faults(server)).toEqual([]);
    await server.rows("DROP TABLE spare");
    await server.rows("DELETE FROM t WHERE id = 1");
    ledger.acknowledged.delete(1);
    expect(await ledger.faults(server)).toEqual([]);
    server.kill("SIGTERM");
    await server.exited();
    expect(maintain("verify", [server.dataPath])).toMatchObject({ code: 0 });
  } finally {
    small.unmount();
  }
});
