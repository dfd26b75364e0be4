/**
 * Restores to a point in time: a backup and the log since then yield the state at any seq in
 * between, according to an oracle that knows every commit. A backup that does not cover the point
 * changes nothing.
 */
import { Database as Sqlite } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { bringInThread, type PointBringer } from "../../src/backup/mod.ts";
import { bunDisk } from "../../src/base/bun_disk.ts";
import { systemClock } from "../../src/base/clock.ts";
import { checksumOfFile } from "../../src/base/copy_file.ts";
import { silentLog } from "../../src/base/log.ts";
import { systemRandom } from "../../src/base/random.ts";
import { unixMsFromSeq } from "../../src/base/seq.ts";
import { CatalogDatabase } from "../../src/catalog/mod.ts";
import type { Database } from "../../src/database.ts";
import { SubscriptionError } from "../../src/live/mod.ts";
import { runRestore } from "../../src/maintenance/mod.ts";
import type { SqlResponse } from "../../src/sql/mod.ts";
import { backupListPath, readBackupList, writeBackupList } from "../../src/storage/files.ts";
import { openAt } from "../support/database.ts";
import { RecordingSink } from "../support/live_fixture.ts";
import {
  copyOf,
  freshDirectory,
  maintain,
  removeDirectories,
  treeOf,
} from "../support/maintenance.ts";
import { principalFor } from "../support/principal_for.ts";
import { fileMissing, testThoroughly, testUnless } from "../support/requirements.ts";
import { SeededRandom } from "../support/seeded_random.ts";
import { startReadyServer } from "../support/server_process.ts";
import { shareOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";

afterAll(removeDirectories);

const SEED = 20261;

interface Place {
  readonly data: string;
  /** The directory that contains the backups. */
  readonly root: string;
  readonly archive: string;
}

interface OpenOptions {
  readonly data?: string;
  readonly archives?: boolean;
  readonly bringInThread?: PointBringer;
}

function freshPlace(): Place {
  const directory = freshDirectory();
  const place = {
    data: join(directory, "data"),
    root: join(directory, "backups"),
    archive: join(directory, "archive"),
  };
  mkdirSync(place.root);
  mkdirSync(place.archive);
  return place;
}

function open(
  place: Place,
  {
    bringInThread: bring = (work) => bringInThread(systemClock, work),
    data = place.data,
    archives = true,
  }: OpenOptions = {},
): Promise<Database> {
  return openAt(data, {
    bringInThread: bring,
    config: [
      "storage.ballast_bytes = 0",
      "storage.wal_segment_bytes = 1048576",
      "storage.wal_max_bytes = 4194304",
      "storage.flush_rows = 2000",
      "limits.max_row_bytes = 65536",
      `storage.allowed_roots = ${JSON.stringify([place.root])}`,
      archives ? `storage.archive_path = ${JSON.stringify(place.archive)}` : "",
    ].join("\n"),
  });
}

async function ask(database: Database, sql: string, as = "root"): Promise<SqlResponse> {
  return await database.sql.execute(principalFor(database, as), { sql, params: [] });
}

async function rows(database: Database, sql: string, as = "root"): Promise<readonly unknown[]> {
  const { error, results } = await ask(database, sql, as);
  if (error !== undefined) throw error;
  return results.at(-1)?.rows ?? [];
}

async function backUp(database: Database, path: string): Promise<number> {
  const [row] = (await rows(database, `BACKUP DATABASE TO '${path}'`)) as unknown[][];
  expect(row?.slice(1, 3)).toEqual(["backup", "completed"]);
  return Number(/_seq (\d+)$/.exec(String(row?.[5]))?.[1]);
}

/** Runs `tidemark restore`. */
async function restore(
  args: readonly string[],
  { heldBytesMax }: { heldBytesMax?: number } = {},
): Promise<{ code: number; said: string }> {
  const lines: string[] = [];
  const say = (line: string): void => void lines.push(line);
  const code = await runRestore(args, {
    disk: bunDisk,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    say,
    tell: say,
    ...(heldBytesMax === undefined ? {} : { heldBytesMax }),
  });
  return { code, said: lines.join("\n") };
}

async function archived(database: Database): Promise<void> {
  await until(() => database.archiveLag()?.files === 0);
}

/** The effect of a commit: the rows of one table by id, where `undefined` marks a removed row. */
interface Done {
  readonly seq: number;
  readonly table: string;
  readonly rows: readonly (readonly [id: number, value: string | undefined])[];
}

/** The effect of a definition: the object is absent up to one seq, and present from another seq. */
interface Defined {
  readonly before: number;
  readonly seq: number;
  readonly what: string;
}

function contentAt(ledger: readonly Done[], table: string, seq: number): [number, string][] {
  const content = new Map<number, string>();
  const upTo = ledger.filter((done) => done.table === table && done.seq <= seq);
  for (const done of upTo.toSorted((left, right) => left.seq - right.seq)) {
    for (const [id, value] of done.rows) {
      if (value === undefined) content.delete(id);
      else content.set(id, value);
    }
  }
  return [...content].toSorted(([left], [right]) => left - right);
}

/** Makes every kind of change to a table that belongs to its own user. Returns the effects. */
async function write(
  database: Database,
  {
    as,
    count,
    firstId = 0,
    random,
    table,
  }: { as: string; count: number; firstId?: number; random: SeededRandom; table: string },
): Promise<Done[]> {
  const done: Done[] = [];
  const live: number[] = [];
  let nextId = firstId;
  for (let turn = 0; turn < count; turn += 1) {
    const changed: [number, string | undefined][] = [];
    const kind = Math.floor(random.unit() * 4);
    let sql: string;
    if (kind < 2 || live.length < 3) {
      const added = Array.from({ length: 1 + Math.floor(random.unit() * 5) }, () => {
        nextId += 1;
        live.push(nextId);
        return [nextId, `${table} ${nextId} `.padEnd(400 + (nextId % 1500), "x")] as const;
      });
      for (const [id, value] of added) changed.push([id, value]);
      sql = `INSERT INTO ${table} (id, v) VALUES ${added.map(([id, v]) => `(${id}, '${v}')`).join()}`;
    } else if (kind === 2) {
      const [id = 0] = live.splice(Math.floor(random.unit() * live.length), 1);
      changed.push([id, undefined]);
      sql = `DELETE FROM ${table} WHERE id = ${id}`;
    } else {
      const ids = live.slice(0, 2);
      const value = `changed in turn ${turn}`;
      for (const id of ids) changed.push([id, value]);
      const updates = ids.map((id) => `UPDATE ${table} SET v = '${value}' WHERE id = ${id}`);
      sql = `BEGIN; ${updates.join("; ")}; COMMIT`;
    }
    const { error, results } = await ask(database, sql, as);
    if (error !== undefined) throw error;
    const seq = Math.max(...results.map(({ lastSeq }) => lastSeq ?? 0));
    done.push({ seq, table: `${as} ${table}`, rows: changed });
  }
  return done;
}

interface World {
  readonly place: Place;
  readonly ledger: readonly Done[];
  readonly definitions: readonly Defined[];
  /** The name of the database's directory in the archive. */
  readonly incarnation: string;
  readonly backup: string;
  readonly backupSeq: number;
  readonly endSeq: number;
}

const TABLES: readonly (readonly [as: string, table: string])[] = [
  ["root", "shared"],
  ["root", "mine"],
  ["late", "mine"],
  ["root", "added"],
];

/** Returns a backup made under load, followed by definitions of every kind. */
async function busyWorld(): Promise<World> {
  const place = freshPlace();
  const database = await open(place);
  const random = new SeededRandom(SEED);
  const definitions: Defined[] = [];
  const define = async (sql: string): Promise<void> => {
    const before = database.store.issueSeq();
    await rows(database, sql);
    definitions.push({ before, seq: database.store.issueSeq(), what: sql });
  };
  await rows(
    database,
    "CREATE SHARED TABLE shared (id INT PRIMARY KEY, v TEXT); CREATE USER TABLE mine (id INT PRIMARY KEY, v TEXT); CREATE SHARED TABLE doomed (id INT PRIMARY KEY); INSERT INTO doomed VALUES (1)",
  );
  const backup = join(place.root, "base");
  const first = [
    write(database, { as: "root", count: 800, random, table: "shared" }),
    write(database, { as: "root", count: 800, random, table: "mine" }),
  ];
  while (
    Number(((await rows(database, "SELECT count(*) FROM shared")) as number[][])[0]?.[0]) < 300
  ) {
    await systemClock.yield();
  }
  const backupSeq = await backUp(database, backup);
  const second = (async (): Promise<Done[]> => {
    const done: Done[] = [];
    await define("CREATE USER late WITH PASSWORD 'correct horse 9' ROLE dba");
    done.push(...(await write(database, { as: "late", count: 300, random, table: "mine" })));
    await define("CREATE SHARED TABLE added (id INT PRIMARY KEY, v TEXT)");
    done.push(...(await write(database, { as: "root", count: 300, random, table: "added" })));
    await define("ALTER TABLE added ADD COLUMN extra INT DEFAULT 7");
    const more = { as: "root", count: 100, firstId: 10_000, random, table: "added" };
    done.push(...(await write(database, more)));
    await define("DROP TABLE doomed");
    const last = { as: "late", count: 300, firstId: 10_000, random, table: "mine" };
    done.push(...(await write(database, last)));
    await define("CREATE NAMESPACE aside");
    await define("CREATE VIEW aside.few AS SELECT id FROM shared WHERE id < 10");
    return done;
  })();
  const ledger = (await Promise.all([...first, second])).flat();
  await archived(database);
  const endSeq = Math.max(...ledger.map(({ seq }) => seq));
  await database.close();
  const [incarnation = ""] = readdirSync(place.archive);
  return { place, ledger, definitions, incarnation, backup, backupSeq, endSeq };
}

/** Returns the differences between a restored database and the expected state at a seq. */
async function differences(database: Database, world: World, seq: number): Promise<string[]> {
  const found: string[] = [];
  const compare = (what: string, is: unknown, should: unknown): void => {
    if (!Bun.deepEquals(is, should)) found.push(what);
  };
  const isThere = (what: string): boolean =>
    world.definitions.some(
      (definition) => definition.what.startsWith(what) && definition.seq <= seq,
    );
  const tables = (await rows(
    database,
    "SELECT table_name FROM system.tables WHERE namespace_id = 'default' ORDER BY 1",
  )) as string[][];
  const expected = ["mine", "shared"];
  if (isThere("CREATE SHARED TABLE added")) expected.unshift("added");
  if (!isThere("DROP TABLE doomed")) expected.push("doomed");
  compare(`tables ${tables.flat().join()}`, tables.flat(), expected.toSorted());
  const users = (await rows(database, "SELECT user_id FROM system.users WHERE user_id = 'late'"))
    .length;
  compare(`users ${users}`, users, isThere("CREATE USER") ? 1 : 0);
  const spaces = (await rows(database, "SHOW NAMESPACES")) as unknown[][];
  compare("namespaces", spaces.flat().includes("aside"), isThere("CREATE NAMESPACE"));
  const { error: noView } = await ask(database, "SELECT * FROM aside.few");
  compare("the view", noView === undefined, isThere("CREATE VIEW"));
  for (const [as, table] of TABLES) {
    if (table === "added" && !isThere("CREATE SHARED TABLE added")) continue;
    if (as === "late" && !isThere("CREATE USER")) continue;
    const content = await rows(database, `SELECT id, v FROM ${table} ORDER BY id`, as);
    compare(`${as} ${table}`, content, contentAt(world.ledger, `${as} ${table}`, seq));
  }
  if (isThere("CREATE SHARED TABLE added")) {
    const { error } = await ask(database, "SELECT extra FROM added LIMIT 1");
    compare("added.extra", error === undefined, isThere("ALTER TABLE"));
  }
  return found;
}

let made: Promise<World> | undefined;

function theWorld(): Promise<World> {
  made ??= busyWorld();
  return made;
}

async function endOfArchive(world: World): Promise<number> {
  const root = join(world.place.archive, world.incarnation);
  const last = readdirSync(root)
    .filter((file) => file.endsWith(".json"))
    .toSorted()
    .at(-1);
  const [body = ""] = readFileSync(join(root, last ?? ""), "utf8").split("\n");
  return (JSON.parse(body) as { lastSeq: number }).lastSeq;
}

const RANDOM_POINTS = 14;
const DEFINITION_POINTS = 4;

testThoroughly(
  "a backup made under load is restored to many seqs from archive and log, always with the right rows",
  async () => {
    const world = await theWorld();
    const { archive, data } = world.place;
    const archiveEnd = await endOfArchive(world);
    expect(archiveEnd).toBeGreaterThan(world.backupSeq);
    const random = new SeededRandom(SEED + 1);
    const span = world.endSeq - world.backupSeq;
    const isBeside = (seq: number): boolean =>
      world.definitions.some((definition) => seq > definition.before && seq < definition.seq);
    const points: number[] = [];
    while (points.length < RANDOM_POINTS) {
      const seq = world.backupSeq + Math.floor(random.unit() * span);
      // At a point while a definition is being made, the object may or may not exist.
      if (!isBeside(seq)) points.push(seq);
    }
    // The points to restore are next to definitions and at both ends.
    points.push(...world.definitions.map(({ before }) => before).slice(0, DEFINITION_POINTS));
    points.push(world.backupSeq, world.endSeq);
    expect(points).toHaveLength(RANDOM_POINTS + DEFINITION_POINTS + 2);
    let fromArchive = 0;
    for (const [index, seq] of points.entries()) {
      // Some restores use only the archive and another directory; the others replace the database
      // itself.
      const isElsewhere = seq <= archiveEnd && index % 2 === 0;
      const target = isElsewhere ? join(freshDirectory(), "data") : copyOf(data);
      fromArchive += isElsewhere ? 1 : 0;
      const args = [world.backup, target, "--archive", archive, "--to-seq", String(seq)];
      const held = index % 3 === 0 ? { heldBytesMax: 1_500_000 } : {};
      const { code, said } = await restore(args, held);
      expect(code, said).toBe(0);
      expect(said).toContain(`the state at _seq ${seq}`);
      const database = await open(world.place, { data: target });
      expect({ seq, found: await differences(database, world, seq) }).toEqual({ seq, found: [] });
      await rows(database, "INSERT INTO shared VALUES (1000000, 'new')");
      const [[newSeq] = []] = (await rows(
        database,
        "SELECT _seq FROM shared WHERE id = 1000000",
      )) as unknown[][];
      expect(Number(newSeq)).toBeGreaterThan(isElsewhere ? seq : world.endSeq);
      await database.close();
      expect(maintain("verify", [target])).toMatchObject({ code: 0 });
      rmSync(target, { recursive: true });
    }
    expect(fromArchive).toBeGreaterThan(points.length / 6);
  },
  300_000,
);

testThoroughly(
  "a restore reaches a point inside a commit of many files, although segments contain later changes",
  async () => {
    const place = freshPlace();
    const database = await open(place);
    await rows(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY, v INT, w TEXT)");
    await rows(
      database,
      "INSERT INTO t SELECT g, 0, repeat('w', 50) FROM generate_series(1, 20000) g",
    );
    const backup = join(place.root, "base");
    await backUp(database, backup);
    for (const _ of [1, 2]) await rows(database, "UPDATE t SET v = v + 1");
    const before = database.store.visibleSeq;
    await rows(database, "UPDATE t SET v = v + 1");
    const inside = database.store.visibleSeq - 1;
    await archived(database);
    await database.close();
    for (const heldBytesMax of shareOf([1_100_000, 2_000_000, 4_000_000], { oneOf: 3 })) {
      const target = copyOf(place.data);
      const args = [backup, target, "--archive", place.archive, "--to-seq", String(inside)];
      const { code, said } = await restore(args, { heldBytesMax });
      expect(code, said).toBe(0);
      const restored = await open(place, { data: target });
      const found = await rows(restored, "SELECT count(*), min(v), max(v), max(_seq) FROM t");
      expect(found).toEqual([[20_000, 2, 2, before]]);
      await restored.close();
      expect(maintain("verify", [target])).toMatchObject({ code: 0 });
      rmSync(target, { recursive: true });
    }
  },
);

test("RESTORE … TO accepts a seq and a time on a running server, and no client keeps a lost position", async () => {
  const place = freshPlace();
  let database = await open(place);
  await rows(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY, v TEXT)");
  const base = join(place.root, "base");
  await backUp(database, base);
  await rows(database, "INSERT INTO t VALUES (1, 'a')");
  await rows(
    database,
    "CREATE SHARED TABLE later (id INT PRIMARY KEY); INSERT INTO later VALUES (1)",
  );
  const wanted = database.store.visibleSeq;
  // Points in time have a resolution of one millisecond, so the next one must differ.
  await Bun.sleep(5);
  await rows(database, "DELETE FROM t; DROP TABLE later; INSERT INTO t VALUES (2, 'b')");
  const lost = database.store.visibleSeq;

  const future = await ask(database, `RESTORE DATABASE FROM '${base}' TO TIMESTAMP '2090-01-01'`);
  expect(future.error?.message).toContain("nothing has been committed after it yet");
  const before = await ask(database, `RESTORE DATABASE FROM '${base}' TO SEQ 5`);
  expect(before.error?.message).toContain("which is later");
  expect(existsSync(join(place.data, "restore"))).toBe(false);

  const moment = new Date(unixMsFromSeq(wanted)).toISOString();
  const answer = await rows(database, `RESTORE DATABASE FROM '${base}' TO TIMESTAMP '${moment}'`);
  expect(answer).toMatchObject([
    [expect.any(String), "restore", "completed", null, null, expect.any(String)],
  ]);
  const jobs = await rows(
    database,
    "SELECT status FROM system.jobs WHERE job_type = 'restore' ORDER BY status",
  );
  expect(jobs).toEqual([["completed"], ["failed"], ["failed"]]);
  await database.close();

  database = await open(place);
  expect(await rows(database, "SELECT id FROM t")).toEqual([[1]]);
  expect(await rows(database, "SELECT id FROM later")).toEqual([[1]]);
  await rows(database, "INSERT INTO t VALUES (3, 'c')");
  const { visibleSeq } = database.store;
  expect(visibleSeq).toBeGreaterThan(lost);
  const resumeFrom = (position: number): string => {
    const sink = new RecordingSink();
    try {
      database.live.subscribe({
        principal: principalFor(database, "root"),
        spec: { id: "s", sql: "SELECT * FROM t", options: { from_seq_id: String(position) } },
        sink,
      });
    } catch (error) {
      if (!(error instanceof SubscriptionError)) throw error;
      return error.response.code;
    }
    return "served";
  };
  expect(resumeFrom(lost)).toBe("INVALID_RESUME");
  expect(resumeFrom(lost + 1)).toBe("INVALID_RESUME");
  expect(resumeFrom(visibleSeq + 1)).toBe("INVALID_RESUME");
  expect(resumeFrom(wanted - 1)).toBe("RESUME_EXPIRED");
  expect(resumeFrom(visibleSeq)).toBe("served");
  await database.close();
  database = await open(place);
  expect(resumeFrom(lost)).toBe("INVALID_RESUME");
  await database.close();
});

test("users erased between the backup and the point are erased again", async () => {
  const place = freshPlace();
  let database = await open(place);
  await rows(database, "CREATE USER TABLE mine (id INT PRIMARY KEY, v TEXT)");
  for (const user of ["ada", "bob"]) {
    await rows(database, `CREATE USER ${user} WITH INTERNAL EMAIL '${user}@x.org'`);
    await rows(database, "INSERT INTO mine VALUES (1, 'secret')", user);
  }
  const tableId = database.catalog.table("default", "mine")?.tableId ?? 0;
  const [ada = -1, bob = -1] = ["ada", "bob"].map((user) =>
    database.catalog.accounts.ownerNumber(user),
  );
  const base = join(place.root, "base");
  await backUp(database, base);
  await rows(database, "INSERT INTO mine VALUES (2, 'later secret')", "ada");
  await rows(database, "DROP USER ada PURGE");
  expect(database.store.owners(tableId)).toEqual([bob]);
  await rows(database, "INSERT INTO mine VALUES (2, 'wanted')", "bob");
  const wanted = database.store.visibleSeq;
  await rows(database, "INSERT INTO mine VALUES (3, 'unwanted')", "bob");
  await database.close();

  const point = ["--archive", place.archive, "--to-seq", String(wanted)];
  const { code, said } = await restore([base, place.data, ...point]);
  expect(code, said).toBe(0);
  database = await open(place);
  expect(
    database.catalog.accounts.users().find(({ userId }) => userId === "ada")?.email,
  ).toBeUndefined();
  await until(() => database.catalog.accounts.erasures().length === 0);
  expect(database.store.owners(tableId)).toEqual([bob]);
  expect(database.catalog.accounts.ownerName(ada)).toBe("ada");
  expect(await rows(database, "SELECT id FROM mine ORDER BY id", "bob")).toEqual([[1], [2]]);
  await database.close();
});

test("a restore to a point leaves no files if it is killed or its thread dies", async () => {
  const place = freshPlace();
  let database = await open(place, {
    // The process is killed when the restore begins its own work.
    bringInThread: (work) =>
      bringInThread(systemClock, {
        ...work,
        listener: { ...work.listener, isCancelled: () => true },
      }),
  });
  await rows(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY, v TEXT)");
  const base = join(place.root, "base");
  await backUp(database, base);
  await rows(database, "INSERT INTO t VALUES (1, 'a')");
  const text = `RESTORE DATABASE FROM '${base}' TO SEQ ${database.store.visibleSeq}`;
  await ask(database, text);
  const ended = "SELECT status, message FROM system.jobs WHERE job_type = 'restore'";
  // A long restore is reported as a job before it ends.
  await until(async () => !JSON.stringify(await rows(database, ended)).includes('"running"'));
  expect(await rows(database, ended)).toEqual([
    ["cancelled", expect.stringContaining("the job was killed")],
  ]);
  expect(existsSync(join(place.data, "restore.new"))).toBe(false);
  await database.close();

  const entry = new URL("../support/dying_worker.ts", import.meta.url);
  database = await open(place, {
    bringInThread: (work) => bringInThread(systemClock, work, entry),
  });
  const failed = await ask(database, text);
  expect(failed.error?.message).toContain("the thread that rolls the backup forward failed");
  expect(existsSync(join(place.data, "restore.new"))).toBe(false);
  expect(await rows(database, "SELECT count(*) FROM t")).toEqual([[1]]);
  await database.close();
});

testThoroughly(
  "the statement and the command both report uploads that no archive contains",
  async () => {
    const place = freshPlace();
    const config = { storage: { allowed_roots: [place.root], archive_path: place.archive } };
    await using server = await startReadyServer({ config });
    await server.rows("CREATE SHARED TABLE t (id INT PRIMARY KEY, f FILE)");
    const base = join(place.root, "base");
    await server.rows(`BACKUP DATABASE TO '${base}'`);
    const seqs: number[] = [];
    for (const id of [1, 2]) {
      const form = new FormData();
      form.set("sql", `INSERT INTO t VALUES (${id}, FILE("doc"))`);
      form.set("file:doc", new File([`upload ${id}`], `${id}.txt`));
      const headers = { Authorization: `Bearer ${server.token}` };
      const answer = await fetch(`${server.url}/v1/api/sql`, {
        method: "POST",
        headers,
        body: form,
      });
      const { results } = (await answer.json()) as { results: { last_seq: number }[] };
      seqs.push(results[0]?.last_seq ?? 0);
    }
    const files = join(server.dataPath, "files");
    const [first = "", second = ""] = readdirSync(files, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".txt"))
      .toSorted((left, right) => Number(left.endsWith("2.txt")) - Number(right.endsWith("2.txt")));
    rmSync(join(files, first));
    const restoreTo = async (seq = 0): Promise<string> => {
      const [row = []] = await server.rows(`RESTORE DATABASE FROM '${base}' TO SEQ ${seq}`);
      rmSync(join(server.dataPath, "restore"), { recursive: true });
      return String(row[5]);
    };
    expect(await restoreTo(seqs[1])).toContain(
      `1 uploaded file is lost, for instance files/${first}: the log archive contains no files uploaded after the backup`,
    );
    rmSync(join(files, second));
    expect(await restoreTo(seqs[1])).toContain("2 uploaded files are lost");
    expect(await restoreTo(seqs[0])).toContain("1 uploaded file is lost");
    server.kill("SIGTERM");
    await server.exited();
    const { code, said } = await restore([base, server.dataPath, "--to-seq", String(seqs[1])]);
    expect(code, said).toBe(0);
    expect(said).toContain("2 uploaded files are lost");
  },
);

test("a transaction with definitions exists completely from the seq of its commit on", async () => {
  const place = freshPlace();
  const database = await open(place);
  await rows(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (0)");
  const backup = join(place.root, "base");
  await backUp(database, backup);
  const { error, results } = await ask(
    database,
    `BEGIN; ALTER TABLE t ADD COLUMN v INT DEFAULT 7; INSERT INTO t VALUES (1, 8);
     CREATE SHARED TABLE u (id INT PRIMARY KEY); INSERT INTO u VALUES (1); COMMIT`,
  );
  expect(error).toBeUndefined();
  const seq = Math.max(...results.map(({ lastSeq }) => lastSeq ?? 0));
  await rows(database, "INSERT INTO t VALUES (2, 9)");
  await database.close();
  const restored = async (point: number): Promise<Database> => {
    const data = copyOf(place.data);
    const { code, said } = await restore([backup, data, "--to-seq", String(point)]);
    expect(code, said).toBe(0);
    return await open(place, { data, archives: false });
  };
  const before = await restored(seq - 1);
  expect(await rows(before, "SELECT id FROM t")).toEqual([[0]]);
  expect((await ask(before, "SELECT v FROM t")).error?.code).toBe("COLUMN_NOT_FOUND");
  expect((await ask(before, "SELECT * FROM u")).error?.code).toBe("TABLE_NOT_FOUND");
  await before.close();
  const after = await restored(seq);
  expect(await rows(after, "SELECT id, v FROM t ORDER BY id")).toEqual([
    [0, 7],
    [1, 8],
  ]);
  expect(await rows(after, "SELECT id FROM u")).toEqual([[1]]);
  await after.close();
});

testThoroughly("a backup that cannot reach the point is refused, and nothing changes", async () => {
  const world = await theWorld();
  const target = copyOf(world.place.data);
  const before = treeOf(target, ["LOCK", "tmp"]);
  const archiveEnd = await endOfArchive(world);
  const { incarnation } = world;
  const damaged = (damage: (root: string, files: string[]) => void): string => {
    const archive = join(copyOf(world.place.archive));
    const root = join(archive, incarnation);
    damage(root, readdirSync(root).toSorted());
    return archive;
  };
  const logs = (files: string[]): string[] => files.filter((file) => file.endsWith(".wal"));
  const lists = (files: string[]): string[] => files.filter((file) => file.endsWith(".json"));
  // The archive contains the files after the one in which the backup ends.
  const cases: [why: string, archive: string, seq: number, code: number, text: string][] = [
    [
      "beyond all",
      world.place.archive,
      world.endSeq + 5_000_000_000,
      2,
      "nothing has been committed after it",
    ],
    ["before the backup", world.place.archive, world.backupSeq - 1, 2, "which is later"],
    [
      "a gap",
      damaged((root, files) => rmSync(join(root, lists(files).at(-2) ?? ""))),
      archiveEnd,
      2,
      "is missing in the archive, but later ones exist",
    ],
    [
      "a flipped bit in a log file",
      damaged((root, files) => flip(join(root, logs(files).at(-1) ?? ""))),
      archiveEnd,
      1,
      "does not match its checksum in the archive",
    ],
    [
      "a flipped bit in a list",
      damaged((root, files) => flip(join(root, lists(files).at(-1) ?? ""))),
      archiveEnd,
      1,
      "does not match its checksum",
    ],
    [
      "a log file that is missing",
      damaged((root, files) => rmSync(join(root, logs(files).at(-1) ?? ""))),
      archiveEnd,
      1,
      "it is missing",
    ],
    [
      "a list under another number",
      damaged((root, files) => {
        const [left = "", right = ""] = lists(files).slice(-2);
        copyFileSync(join(root, left), join(root, right));
      }),
      archiveEnd,
      1,
      "it is the list of file",
    ],
    [
      "an archive of another database",
      damaged((root) => renameSync(root, `${root.slice(0, -4)}0000`)),
      archiveEnd,
      2,
      "there is no log file",
    ],
    [
      "an archive that is not there",
      join(freshDirectory(), "none"),
      archiveEnd,
      2,
      "there is no archive",
    ],
  ];
  for (const [why, archive, seq, code, text] of cases) {
    // After the log files are removed, a restore can use only the archive.
    const copy = join(freshDirectory(), "data");
    const isOwn = why === "beyond all" || why === "before the backup";
    const args = ["--archive", archive, "--to-seq", String(seq)];
    const result = await restore([world.backup, isOwn ? target : copy, ...args]);
    expect({ why, code: result.code }, result.said).toEqual({ why, code });
    expect(result.said, why).toContain(text);
    expect(existsSync(join(copy, "catalog.sqlite")), why).toBe(false);
    expect(existsSync(join(copy, "restore")), why).toBe(false);
  }
  expect(treeOf(target, ["LOCK", "tmp"])).toEqual(before);
});

testThoroughly(
  "a log that does not begin where the log of the backup begins is refused",
  async () => {
    const world = await theWorld();
    const other = await theOtherLog(world);
    const target = join(freshDirectory(), "data");
    const seq = String(await endOfArchive(world));
    const { code, said } = await restore([
      world.backup,
      target,
      "--archive",
      other,
      "--to-seq",
      seq,
    ]);
    expect(code, said).toBe(1);
    expect(said).toContain("it is damaged, or the log of another database");
  },
);

/** Returns an archive with intact files of a different database that has the same name. */
async function theOtherLog(world: World): Promise<string> {
  const place = freshPlace();
  const database = await open(place);
  await rows(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY, v TEXT)");
  await write(database, { as: "root", count: 3000, random: new SeededRandom(3), table: "t" });
  await archived(database);
  await database.close();
  const mine = world.incarnation;
  const [theirs = ""] = readdirSync(place.archive);
  const root = join(place.archive, mine);
  renameSync(join(place.archive, theirs), root);
  const { crc32 } = await import("../../src/base/checksum.ts");
  for (const file of readdirSync(root).filter((name) => name.endsWith(".json"))) {
    const [body = ""] = readFileSync(join(root, file), "utf8").split("\n");
    const renamed = body
      .replace(theirs, mine)
      .replace(/"lastSeq":\d+/, `"lastSeq":${world.endSeq + 1}`);
    const sum = crc32(Buffer.from(renamed)).toString(16).padStart(8, "0");
    writeFileSync(join(root, file), `${renamed}\n${sum}\n`);
  }
  return place.archive;
}

function flip(path: string): void {
  const bytes = readFileSync(path);
  const at = bytes.length >> 1;
  bytes[at] = (bytes[at] ?? 0) ^ 4;
  writeFileSync(path, bytes);
}

test("the refusal of a point beyond a backup names the seq of the backup", async () => {
  const place = freshPlace();
  const database = await open(place);
  await rows(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY)");
  await rows(database, "INSERT INTO t VALUES (1)");
  // A direct call writes no statement event to the audit log, which would be another row.
  database.catalog.createNamespace({
    name: "later",
    owner: undefined,
    createdAtMs: 0,
    options: {},
  });
  const base = join(place.root, "base");
  const seq = await backUp(database, base);
  await database.close();
  const to = async (point: number): Promise<string> => {
    const target = join(freshDirectory(), "data");
    const { code, said } = await restore([base, target, "--to-seq", String(point)]);
    expect(code).toBe(2);
    return said;
  };
  expect(await to(seq)).toMatch(
    new RegExp(`the backup has seq ${seq} .*, and has definitions up to seq \\d+, which is later`),
  );
  expect(await to(seq - 1)).toMatch(new RegExp(`the backup has seq ${seq} .*, which is later`));
  // This happens before any copying, since the copy would fail on the damage.
  flip(join(base, "catalog.sqlite"));
  expect(await to(seq - 1)).toMatch(new RegExp(`the backup has seq ${seq} .*, which is later`));
});

test("uploads of a table that is dropped before the point are removed, and others are kept", async () => {
  const place = freshPlace();
  const database = await open(place);
  const paths: string[] = [];
  for (const [index, table] of ["dropped", "kept"].entries()) {
    await rows(database, `CREATE SHARED TABLE ${table} (id INT PRIMARY KEY, f FILE)`);
    const tableId = database.catalog.table("default", table)?.tableId ?? 0;
    const path = `files/${tableId}/0/f0001/7${index}-a.txt`;
    paths.push(path);
    mkdirSync(dirname(join(place.data, path)), { recursive: true });
    writeFileSync(join(place.data, path), "hello");
    database.catalog.files.add([
      {
        fileId: `7${index}`,
        tableId,
        owner: 0,
        columnId: 2,
        keyJson: "[1]",
        sub: "f0001",
        storedName: `7${index}-a.txt`,
        name: "a.txt",
        mime: "text/plain",
        size: 5,
        sha256: new Bun.CryptoHasher("sha256").update("hello").digest("hex"),
        createdAtMs: 0,
      },
    ]);
  }
  const base = join(place.root, "base");
  await backUp(database, base);
  await rows(database, "DROP TABLE dropped");
  const seq = database.store.visibleSeq;
  await rows(database, "CREATE NAMESPACE later");
  await database.close();
  const target = join(freshDirectory(), "data");
  cpSync(place.data, target, { recursive: true });
  const { code, said } = await restore([base, target, "--to-seq", String(seq)]);
  expect(code, said).toBe(0);
  const found = readdirSync(join(target, "files"), { recursive: true, encoding: "utf8" });
  const kept = (paths[1] ?? "").split("/").slice(1);
  expect(found.toSorted()).toEqual(kept.map((_, index) => kept.slice(0, index + 1).join("/")));
});

/** Returns the catalogs under restore that this process has open, including removed ones. */
function openPending(): string[] {
  const names = readdirSync("/proc/self/fd").flatMap((name) => {
    try {
      return [readlinkSync(`/proc/self/fd/${name}`)];
    } catch {
      // The listing itself had opened this descriptor, and has closed it again.
      return [];
    }
  });
  return names.filter((name) => name.includes("/restore.new/catalog.sqlite"));
}

testUnless(fileMissing("/proc/self/fd"))(
  "a restore to a point that meets damage in the list of files leaves no catalog open",
  async () => {
    const place = freshPlace();
    const database = await open(place);
    await rows(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY)");
    const base = join(place.root, "base");
    await backUp(database, base);
    await rows(database, "INSERT INTO t VALUES (1)");
    const [[seq] = []] = (await rows(database, "SELECT _seq FROM t")) as number[][];
    await database.close();
    const path = join(base, "catalog.sqlite");
    const catalog = new Sqlite(path);
    catalog.run("INSERT INTO files VALUES ('damaged', '{}', 0)");
    catalog.close();
    const list = readBackupList(bunDisk, base);
    const files = list.files.map((file) =>
      file.path === "catalog.sqlite" ? { ...file, ...checksumOfFile(bunDisk, path) } : file,
    );
    rmSync(backupListPath(base));
    writeBackupList(bunDisk, base, { ...list, files });

    const { code, said } = await restore([base, place.data, "--to-seq", String(seq)]);

    expect(code, said).toBe(1);
    expect(said).toContain("catalog.sqlite");
    expect(openPending()).toEqual([]);
  },
);

test("uploads of a table that is dropped at the point are not reported as lost", async () => {
  const place = freshPlace();
  const database = await open(place);
  const { catalog } = database;
  if (!(catalog instanceof CatalogDatabase))
    throw new Error("a database has its catalog in a file");
  await rows(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY, f FILE)");
  const { tableId = 0 } = catalog.table("default", "t") ?? {};
  const base = join(place.root, "base");
  await backUp(database, base);
  catalog.files.add(
    Array.from({ length: 200 }, (_, index) => ({
      fileId: `f${1000 + index}`,
      storedName: `${index}.txt`,
      tableId,
      owner: 0,
      columnId: 2,
      keyJson: "[1]",
      sub: "f0001",
      name: "note.txt",
      mime: "text/plain",
      size: 1,
      sha256: "00",
      createdAtMs: 0,
    })),
  );
  const listedAt = catalog.journal.end;
  await rows(database, "CREATE SHARED TABLE other (id INT PRIMARY KEY); DROP TABLE t");
  await rows(database, "INSERT INTO other VALUES (1)");
  const entries = catalog.journal.after(listedAt);
  const removals = entries.filter(({ changes }) => changes.some(([name]) => name === "files"));
  expect(removals.length).toBeGreaterThan(1);
  const restoreTo = async (seq = 0): Promise<string> => {
    const [row = []] = (await rows(
      database,
      `RESTORE DATABASE FROM '${base}' TO SEQ ${seq}`,
    )) as unknown[][];
    rmSync(join(place.data, "restore"), { recursive: true });
    return String(row[5]);
  };
  const [drop] = removals;
  expect(await restoreTo((drop?.stamp ?? 0) - 1)).toContain("200 uploaded files are lost");
  expect(await restoreTo(drop?.stamp)).not.toContain("uploaded file");
  await database.close();
});
