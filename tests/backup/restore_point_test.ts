/**
 * Tests restores to a point: by seq and by time, inside a commit that spans many files, with
 * erased users and with definitions. An interrupted restore leaves no files.
 */
import { afterAll, expect, test } from "bun:test";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bringInThread } from "../../src/backup/mod.ts";
import { systemClock } from "../../src/base/clock.ts";
import { unixMsFromSeq } from "../../src/base/seq.ts";
import type { Database } from "../../src/database.ts";
import { SubscriptionError } from "../../src/live/mod.ts";
import { RecordingSink } from "../support/live_fixture.ts";
import {
  copyOf,
  flip,
  freshDirectory,
  maintain,
  removeDirectories,
} from "../support/maintenance.ts";
import { principalFor } from "../support/principal_for.ts";
import { testThoroughly } from "../support/requirements.ts";
import { shareOf } from "../support/thoroughness.ts";
import { until } from "../support/until.ts";
import { archived, ask, backUp, freshPlace, open, restore, rows } from "./places.ts";

afterAll(removeDirectories);

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
  // Points in time have a resolution of one millisecond, so the next point must be in a later
  // millisecond.
  await Bun.sleep(5);
  await rows(database, "DELETE FROM t; DROP TABLE later; INSERT INTO t VALUES (2, 'b')");
  const lost = database.store.visibleSeq;

  const future = await ask(database, `RESTORE DATABASE FROM '${base}' TO TIMESTAMP '2090-01-01'`);
  expect(future.error?.message).toContain("nothing has been committed after this point yet");
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

testThoroughly(
  "a restore to a point leaves no files if it is killed or its thread dies",
  async () => {
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
    // A long-running restore is reported as a job before it ends.
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

test("the refusal of a point beyond a backup names the seq of the backup", async () => {
  const place = freshPlace();
  const database = await open(place);
  await rows(database, "CREATE SHARED TABLE t (id INT PRIMARY KEY)");
  await rows(database, "INSERT INTO t VALUES (1)");
  // A direct call writes no statement event to the audit log. Such an event would be another row.
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
    new RegExp(
      `the backup has rows up to _seq ${seq} .*, and definitions up to _seq \\d+, which is later`,
    ),
  );
  expect(await to(seq - 1)).toMatch(
    new RegExp(`the backup has rows up to _seq ${seq} .*, which is later`),
  );
  // The point is refused before anything is copied, because copying would fail on the damaged
  // file.
  flip(join(base, "catalog.sqlite"));
  expect(await to(seq - 1)).toMatch(
    new RegExp(`the backup has rows up to _seq ${seq} .*, which is later`),
  );
});
