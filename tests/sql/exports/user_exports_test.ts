/**
 * Tests EXPORT USER DATA in-process: an archive shows a single point in time, each user has at
 * most one open export and one archive, and archives expire. Also tests KILL, DROP USER, a full
 * disk, and what remains after the server stops.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bunDisk } from "../../../src/base/bun_disk.ts";
import { DatabaseError } from "../../../src/base/errors.ts";
import type { Job } from "../../../src/storage/mod.ts";
import { ForwardingDisk } from "../../support/forwarding_disk.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { readZip, textOf } from "../../support/zip_reader.ts";

const HOUR_MS = 3_600_000;

/** A disk whose free space the test sets. */
class SmallDisk extends ForwardingDisk {
  free: number | undefined;

  override freeBytes(path: string): number {
    return this.free ?? super.freeBytes(path);
  }
}

let disk: SmallDisk;
let clock: ManualClock;
let engine: TestEngine;

beforeEach(async () => {
  disk = new SmallDisk(bunDisk);
  clock = new ManualClock();
  engine = await TestEngine.open({ clock, disk, config: "files.export_keep_hours = 2" });
  await engine.run(
    "CREATE USER TABLE a (id INT PRIMARY KEY, v TEXT, f FILE); CREATE USER TABLE none (id INT PRIMARY KEY); CREATE STREAM TABLE s (v TEXT) WITH (TTL_SECONDS = 3000); CREATE TABLE shared (id INT PRIMARY KEY)",
  );
  await engine.run("INSERT INTO shared VALUES (1)");
  for (const user of ["ada", "bob"]) {
    await engine.run(`CREATE USER ${user} WITH INTERNAL`);
    await as(user, async () => {
      const bytes = new TextEncoder().encode(`file of ${user}`);
      const files = new Map([["p", { name: "p q.txt", mime: "text/plain", bytes }]]);
      await engine.run(`INSERT INTO a VALUES (1, 'one of ${user}', NULL), (2, NULL, NULL)`);
      await engine.run("INSERT INTO a VALUES (3, 'x', FILE('p'))", { files });
      await engine.run("INSERT INTO s VALUES ('typing')");
    });
  }
});
afterEach(() => engine[Symbol.asyncDispose]());

async function as<T>(user: string, work: () => Promise<T>): Promise<T> {
  const before = engine.userId;
  engine.userId = user;
  try {
    return await work();
  } finally {
    engine.userId = before;
  }
}

function exportOf(user: string): Promise<readonly unknown[]> {
  return as(user, async () => (await engine.rows("EXPORT USER DATA"))[0] ?? []);
}

function listOf(user: string): Promise<readonly (readonly unknown[])[]> {
  return as(user, () => engine.rows("SHOW EXPORT"));
}

/** Returns the entries of a user's archive, keyed by name. */
async function archiveOf(user: string, exportId: unknown): Promise<Map<string, Uint8Array>> {
  const path = { userId: user, exportId: String(exportId) };
  const blob = await as(user, async () => engine.database.exports.open(engine.principal, path));
  return readZip(await blob.bytes());
}

function codeOf(work: () => unknown): string {
  try {
    work();
    return "none";
  } catch (error) {
    return error instanceof DatabaseError ? error.code : String(error);
  }
}

/** Returns the files below a folder of the data directory. */
function filesIn(name: string): string[] {
  const root = join(engine.dataPath, name);
  if (!existsSync(root)) return [];
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => entry.name);
}

/** Starts an export, and returns its job before the first step. */
function begunJob(user: string): Job {
  engine.userId = user;
  const { job } = engine.database.exports.begin(engine.principal);
  engine.userId = "root";
  return job;
}

describe("the data of a user is exported", () => {
  test("an export contains the user's rows and files, and nothing of other users", async () => {
    const [jobId, type, status, , , message] = await exportOf("ada");
    expect([type, status]).toEqual(["export", "completed"]);
    expect(message).toMatch(/^4 row\(s\) of 2 table\(s\) and 1 file\(s\), \d+ bytes$/);
    const entries = await archiveOf("ada", jobId);
    const file = [...entries.keys()].find((name) => name.startsWith("files/"));
    expect(file).toMatch(/^files\/default\/a\/\d+-p-q\.txt$/);
    expect(textOf(entries, file ?? "")).toBe("file of ada");
    expect([...entries.keys()]).toEqual([
      "default/a.ndjson",
      "default/s.ndjson",
      file ?? "",
      "export.json",
    ]);
    const lines = textOf(entries, "default/a.ndjson").trimEnd().split("\n");
    expect(lines.slice(0, 2).map((line) => JSON.parse(line) as unknown)).toEqual([
      { id: 1, v: "one of ada", f: null },
      { id: 2, v: null, f: null },
    ]);
    expect(textOf(entries, "default/s.ndjson")).toBe('{"v":"typing"}\n');
    expect(JSON.parse(textOf(entries, "export.json"))).toMatchObject({
      user_id: "ada",
      tables: [
        { namespace: "default", table: "a", kind: "user", rows: 3, path: "default/a.ndjson" },
        { namespace: "default", table: "s", kind: "stream", rows: 1, path: "default/s.ndjson" },
      ],
      files: 1,
    });
    for (const [name, content] of entries) {
      expect(new TextDecoder().decode(content), name).not.toContain("bob");
    }
  });

  test("an export of a user without rows is an archive that says so", async () => {
    await engine.run("CREATE USER eve WITH INTERNAL");
    const [jobId] = await exportOf("eve");
    const entries = await archiveOf("eve", jobId);
    expect([...entries.keys()]).toEqual(["export.json"]);
  });

  test("an export reads every table at one moment, even if rows change while it runs", async () => {
    await as("ada", () =>
      engine.run("INSERT INTO none SELECT i FROM generate_series(1, 500) g(i)"),
    );
    const job = begunJob("ada");
    // The job takes its first step before these statements run, and the other steps while they
    // run.
    await clock.yield();
    await as("ada", () => engine.run("DELETE FROM none WHERE id > 10; DELETE FROM a"));
    await engine.run("STORAGE FLUSH ALL");
    await job.ended;
    const entries = await archiveOf("ada", job.jobId);
    const rowsOf = (name: string): number => textOf(entries, name).trimEnd().split("\n").length;
    expect([rowsOf("default/none.ndjson"), rowsOf("default/a.ndjson")]).toEqual([500, 3]);
    expect(await as("ada", () => engine.rows("SELECT count(*) FROM none"))).toEqual([[10]]);
  });

  test("an export can be read back by COPY", async () => {
    const [jobId] = await exportOf("ada");
    const text = textOf(await archiveOf("ada", jobId), "default/s.ndjson");
    await engine.run("CREATE USER TABLE back (v TEXT)");
    let sent = false;
    const body = {
      next: async () => {
        if (sent) return undefined;
        sent = true;
        return new TextEncoder().encode(text);
      },
      cancel: () => undefined,
    };
    await as("ada", () =>
      engine.run("COPY back FROM STDIN WITH (FORMAT ndjson)", { copy: { body } }),
    );
    expect(await as("ada", () => engine.rows("SELECT v FROM back"))).toEqual([["typing"]]);
  });

  test("an export omits rows that have expired", async () => {
    clock.advance(3001 * 1000);
    const [jobId] = await exportOf("ada");
    expect([...(await archiveOf("ada", jobId)).keys()]).not.toContain("default/s.ndjson");
  });
});

describe("a user has a list of archives", () => {
  test("a new archive of a user replaces the previous one", async () => {
    const [first] = await exportOf("ada");
    const [second] = await exportOf("ada");
    expect(second).not.toBe(first);
    expect((await listOf("ada")).map(([jobId, status]) => [jobId, status])).toEqual([
      [second, "completed"],
    ]);
    expect(filesIn("exports")).toEqual([`${String(second)}.zip`]);
    expect(await archiveOf("ada", first).catch((error: { code: string }) => error.code)).toBe(
      "EXPORT_NOT_FOUND",
    );
  });

  test("archives are listed and readable after a restart", async () => {
    const [jobId] = await exportOf("ada");
    const createdAt = (await listOf("ada"))[0]?.[2];
    await engine.restart();
    const [row = []] = await listOf("ada");
    expect(row.slice(0, 4)).toEqual([jobId, "completed", createdAt, null]);
    expect(row[4]).toBe(`/v1/exports/ada/${String(jobId)}`);
    expect((await archiveOf("ada", jobId)).has("default/a.ndjson")).toBe(true);
  });

  test("archives expire, and are removed within an hour", async () => {
    const [jobId] = await exportOf("ada");
    clock.advance(2 * HOUR_MS - 1);
    expect(await listOf("ada")).toHaveLength(1);
    clock.advance(1);
    expect(await listOf("ada")).toEqual([]);
    expect(await archiveOf("ada", jobId).catch((error: { code: string }) => error.code)).toBe(
      "EXPORT_NOT_FOUND",
    );
    clock.advance(HOUR_MS);
    while (filesIn("exports").length > 0) await clock.yield();
  });

  test("archives are accessible to their user and to role dba", async () => {
    const [jobId] = await exportOf("ada");
    const path = { userId: "ada", exportId: String(jobId) };
    const codeFor = (user: string, asked = path): Promise<string> =>
      as(user, async () => codeOf(() => engine.database.exports.open(engine.principal, asked)));
    expect(await codeFor("bob")).toBe("PERMISSION_DENIED");
    expect(await codeFor("root")).toBe("none");
    expect(await codeFor("bob", { ...path, userId: "bob" })).toBe("EXPORT_NOT_FOUND");
    expect(await codeFor("bob", { ...path, userId: "nobody" })).toBe("PERMISSION_DENIED");
    expect(await codeFor("root", { ...path, userId: "nobody" })).toBe("EXPORT_NOT_FOUND");
    for (const exportId of ["", "..", "../ada", "EX1", `${path.exportId}.zip`, "EX1/../x"]) {
      expect(await codeFor("ada", { ...path, exportId })).toBe("EXPORT_NOT_FOUND");
    }
  });

  test("archives are erased with the account, and a new account of the name has none", async () => {
    await exportOf("ada");
    await engine.run("DROP USER ada");
    expect(filesIn("exports")).toHaveLength(1);
    await engine.run("CREATE USER ada WITH INTERNAL");
    expect(await listOf("ada")).toEqual([]);
    while (filesIn("exports").length > 0) await clock.yield();
  });
});

describe("an export that is still running can be observed and ended", () => {
  test("a user can have only one open export, which continues", async () => {
    const job = begunJob("ada");
    const other = begunJob("bob");
    const [jobId, type, status, , , message] = await exportOf("ada");
    expect([jobId, type, status]).toEqual([job.jobId, "export", "skipped"]);
    expect(message).toMatch(/^a job of this kind is already (?:queued|running)$/);
    await Promise.all([job.ended, other.ended]);
    expect([job.status, other.status]).toEqual(["completed", "completed"]);
  });

  test("an open export ends by KILL JOB and leaves nothing behind", async () => {
    const job = begunJob("ada");
    await engine.run(`KILL JOB '${job.jobId}'`);
    await job.ended;
    expect(job.status).toBe("cancelled");
    expect((await listOf("ada")).map((row) => row.slice(1))).toEqual([
      ["cancelled", job.createdAtMs * 1000, null, null],
    ]);
    expect([...filesIn("exports"), ...filesIn("tmp")]).toEqual([]);
  });

  test("an open export ends when its user is dropped", async () => {
    const job = begunJob("ada");
    await engine.run("DROP USER ada PURGE");
    await job.ended;
    expect(job.status).toBe("cancelled");
    expect(filesIn("exports")).toEqual([]);
  });

  test("an open export ends with the database, and a start removes what a crash left behind", async () => {
    const job = begunJob("ada");
    await engine.database.close();
    expect(job.isEnded).toBe(true);
    writeFileSync(join(engine.dataPath, "tmp", "EX1.zip"), "half");
    await engine.reopen();
    expect(filesIn("tmp")).toEqual([]);
  });

  test("an export fails on a full disk, keeps the previous archive, and gives the reason", async () => {
    const [first] = await exportOf("ada");
    disk.free = 100 * 1024 * 1024;
    expect(await as("ada", () => engine.failure("EXPORT USER DATA"))).toBe("DISK_FULL@1");
    const [[, status, , message] = [], [kept] = []] = await listOf("ada");
    expect([status, kept]).toEqual(["failed", first]);
    expect(message).toBe(
      "Cannot finish the export: there is too little free disk space for its archive",
    );
    expect(filesIn("tmp")).toEqual([]);
  });

  test("an export fails if a file is damaged", async () => {
    const [path = ""] = await as("ada", async () => engine.storedFiles());
    for (const each of engine.storedFiles()) writeFileSync(each, "other bytes");
    expect(path).not.toBe("");
    expect(await as("ada", () => engine.failure("EXPORT USER DATA"))).toBe("DATA_DAMAGED@1");
    expect([...filesIn("exports"), ...filesIn("tmp")]).toEqual([]);
  });

  test("an export is refused in a transaction", async () => {
    const code = await as("ada", () => engine.failure("BEGIN; EXPORT USER DATA; COMMIT"));
    expect(code).toStartWith("INVALID_");
  });
});
