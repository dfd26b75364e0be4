/**
 * Tests DROP USER … PURGE and the erasure of dropped accounts. All data of the owner are removed,
 * no data of other owners are, and an interrupted erasure is completed later.
 */

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { defined } from "../../../src/base/assert.ts";
import { DEAD_LETTERS_TABLE } from "../../../src/sql/mod.ts";
import type { Job } from "../../../src/storage/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { startReadyServer } from "../../support/server_process.ts";
import { TestEngine } from "../../support/sql_engine.ts";
import { until } from "../../support/until.ts";

const DAY_MS = 86_400_000;
const TABLES = ["a", "b", "s"] as const;

/**
 * The time limit of a test. Advancing the clock by a month fires the timers of every minute in it,
 * which takes a busy machine several seconds.
 */
const TEST_MS_MAX = 60_000;

/** The maximum number of steps to wait, more than a statement takes to reach its first pause. */
const STEPS_MAX = 10_000;

/** The prefix of the text in every row whose message becomes a dead letter. */
const SECRET = "word of ";

let engine: TestEngine;
let clock: ManualClock;

beforeEach(async () => {
  clock = new ManualClock();
  engine = await TestEngine.open({ clock });
  await engine.run(
    "CREATE USER TABLE a (id INT PRIMARY KEY, v TEXT, f FILE); CREATE USER TABLE b (id INT PRIMARY KEY, v TEXT); CREATE STREAM TABLE s (id INT PRIMARY KEY) WITH (TTL_SECONDS = 31536000)",
  );
  for (const user of ["ada", "bob"]) await fill(user);
});
afterEach(() => engine[Symbol.asyncDispose]());

async function as<T>(user: string, work: () => Promise<T>): Promise<T> {
  engine.userId = user;
  const result = await work();
  engine.userId = "root";
  return result;
}

/**
 * Fills every table with rows in segments, some of which are replaced later, and with rows in
 * memory.
 */
async function fill(user: string): Promise<void> {
  await engine.run(`CREATE USER ${user} WITH INTERNAL EMAIL '${user}@x.org'`);
  await as(user, () =>
    engine.run(
      "INSERT INTO a VALUES (1, 'x', NULL), (2, 'y', NULL); INSERT INTO b SELECT i, 'v' || i FROM generate_series(1, 50) g(i); INSERT INTO s VALUES (1), (2)",
    ),
  );
  await engine.run("STORAGE FLUSH ALL");
  await as(user, async () => {
    const bytes = new TextEncoder().encode(`secret of ${user}`);
    const files = new Map([["p", { name: "p.txt", mime: "text/plain", bytes }]]);
    await engine.run("INSERT INTO a VALUES (3, 'z', FILE('p'))", { files });
    await engine.run("UPDATE b SET v = 'new' WHERE id <= 10; DELETE FROM b WHERE id > 40");
    await engine.run("INSERT INTO s VALUES (3)");
  });
}

function ownerOf(user: string): number {
  return engine.database.catalog.accounts.ownerNumber(user) ?? -1;
}

/** Returns the tables that contain versions of an owner's rows, in memory or in a segment. */
function tablesOf(owner: number): string[] {
  const { catalog, store } = engine.database;
  return TABLES.filter((name) => {
    const table = catalog.table("default", name);
    return table !== undefined && store.owners(table.tableId).includes(owner);
  });
}

async function contentsOf(user: string): Promise<unknown> {
  return as(user, async () => ({
    a: await engine.rows("SELECT id, v, f IS NULL FROM a ORDER BY id"),
    b: await engine.rows("SELECT id, v, _deleted FROM b WHERE _deleted = true OR true ORDER BY id"),
    s: await engine.rows("SELECT id FROM s ORDER BY id"),
  }));
}

/** Creates dead letters for each user, in segments and in memory. */
async function fillDeadLetters(...users: string[]): Promise<void> {
  await engine.run(
    `CREATE TOPIC dead; CREATE TOPIC work WITH (MAX_DELIVERIES = 1, DEAD_LETTER = 'default.dead');
     ALTER TOPIC work ADD SOURCE b ON INSERT WITH (payload = 'full')`,
  );
  for (const [index, user] of users.entries()) {
    const row = `(${100 + index}, '${SECRET}${user}')`;
    await as(user, () => engine.run(`INSERT INTO b VALUES ${row}`));
    const read = "CONSUME FROM work GROUP 'g' FROM EARLIEST NO ACK";
    expect(await engine.rows(read)).toHaveLength(1);
    clock.advance(DAY_MS);
    // This read discovers that the message has reached the maximum number of deliveries.
    expect(await engine.rows(read)).toEqual([]);
    const { store } = engine.database;
    await store.durable(store.appliedSeq);
    if (index === 0) await store.flush(DEAD_LETTERS_TABLE.tableId);
  }
}

/** Returns the dead letters as [offset, user], after checking their contents. */
async function deadLetters(): Promise<unknown[][]> {
  const rows = await engine.rows("CONSUME FROM dead FROM EARLIEST");
  return rows.map(([, , offset, , payload, , user]) => {
    expect(payload).toContain(`${SECRET}${String(user)}`);
    return [offset, user];
  });
}

/** Returns whether any file of the dead letters table contains a text. */
function filesHave(text: string): boolean {
  const folder = join(engine.dataPath, "segments", String(DEAD_LETTERS_TABLE.tableId));
  return readdirSync(folder).some((name) => readFileSync(join(folder, name)).includes(text));
}

/** Waits until all jobs have ended. */
async function jobsEnded(): Promise<void> {
  await Promise.all(engine.database.jobs.all().map(({ ended }) => ended));
}

describe("PURGE erases the history of a user", () => {
  test("PURGE deletes dead letters that name the user and were written before dead letters had owners", async () => {
    await engine.run(
      "CREATE TOPIC dead; CREATE TOPIC work WITH (MAX_DELIVERIES = 1, DEAD_LETTER = 'default.dead')",
    );
    const { catalog, store } = engine.database;
    const { topicId } = defined(catalog.topic("default", "dead"), "the topic must exist");
    const rows = ["ada", "bob", null].map((user, index) => {
      const work = "default.work";
      return [`letter ${index}`, topicId, work, 0, index, "g", 1, "k", "Insert", user, 0, "{}"];
    });
    const { tableId } = DEAD_LETTERS_TABLE;
    const writes = [{ tableId, owner: 0, operation: "insert", rows }] as const;
    await store.durable(store.apply({ writes }).lastSeq);
    const letters = async (): Promise<unknown[]> =>
      (await engine.rows("CONSUME FROM dead FROM EARLIEST")).map(([, , offset, key]) => [
        offset,
        key,
      ]);
    expect(await letters()).toHaveLength(3);
    await engine.run("DROP USER ada PURGE");
    expect(await letters()).toEqual([
      [1, "letter 1"],
      [2, "letter 2"],
    ]);
    expect(store.liveRowCount(tableId, 0)).toBe(2);
  });

  test("PURGE erases the rows, history and files of the user, and of no other user", async () => {
    const ada = ownerOf("ada");
    const before = await contentsOf("bob");
    expect(tablesOf(ada)).toEqual([...TABLES]);
    expect(engine.storedFiles()).toHaveLength(2);

    const [[id, kind, status, namespace, table, message] = []] =
      await engine.rows("DROP USER ada PURGE");
    expect(id).toMatch(/^PU\d+$/);
    expect([kind, status, namespace, table]).toEqual(["purge", "completed", null, null]);
    expect(message).toMatch(/^\d+ row versions? and 1 file of ada erased$/);
    expect(
      await engine.rows("SELECT progress, created_by FROM system.jobs WHERE job_type = 'purge'"),
    ).toEqual([[1, "root"]]);

    expect(tablesOf(ada)).toEqual([]);
    expect(engine.storedFiles()).toHaveLength(1);
    expect(await contentsOf("bob")).toEqual(before);
    await engine.restart();
    expect(tablesOf(ada)).toEqual([]);
    expect(await contentsOf("bob")).toEqual(before);
    expect(
      await engine.rows(
        "SELECT email, deleted_at IS NULL, erase_after FROM system.users WHERE user_id = 'ada'",
      ),
    ).toEqual([[null, false, null]]);
  });

  test("PURGE erases the dead letters of the user, and the others keep their offsets", async () => {
    await fillDeadLetters("ada", "bob", "ada");
    expect(await deadLetters()).toEqual([
      [0, "ada"],
      [1, "bob"],
      [2, "ada"],
    ]);
    expect(filesHave(`${SECRET}ada`)).toBe(true);
    await engine.run("DROP USER ada PURGE");
    expect(await deadLetters()).toEqual([[1, "bob"]]);
    // A replaced segment is removed once no statement reads it any more.
    await until(() => !filesHave(`${SECRET}ada`));
    await engine.restart();
    expect(await deadLetters()).toEqual([[1, "bob"]]);
  });

  testThoroughly(
    "PURGE leaves no dead letter of a message that fails while its account is erased",
    async () => {
      await fillDeadLetters("bob");
      const { store } = engine.database;
      await as("ada", () => engine.run("INSERT INTO b VALUES (200, 'last')"));
      const read = "CONSUME FROM work GROUP 'g' FROM EARLIEST NO ACK";
      expect(await engine.rows(read)).toHaveLength(1);
      // An erasure has begun, but has not reached the source table yet.
      await store.erase(DEAD_LETTERS_TABLE.tableId, ownerOf("ada"));
      clock.advance(DAY_MS);
      expect(await engine.rows(read)).toEqual([]);
      await store.durable(store.appliedSeq);
      expect(await deadLetters()).toEqual([[0, "bob"]]);
      const acked = "SELECT last_acked_offset FROM system.topic_offsets WHERE group_id = 'g'";
      expect(await engine.rows(acked)).toEqual([[1]]);
    },
  );

  test("PURGE erases all tables except a damaged one, and then reports the damage", async () => {
    const { catalog } = engine.database;
    const ada = ownerOf("ada");
    const { tableId = 0 } = catalog.table("default", "a") ?? {};
    await engine.run("STORAGE FLUSH ALL");
    await engine.database.close();
    const folder = join(engine.dataPath, "segments", String(tableId));
    for (const name of readdirSync(folder)) truncateSync(join(folder, name), 100);
    await engine.reopen();

    const [[, , status, , , message] = []] = await engine.rows("DROP USER ada PURGE");
    expect(status).toBe("failed");
    expect(message).toContain(`segments/${tableId}/`);
    const { catalog: reopened, store } = engine.database;
    for (const name of ["b", "s"]) {
      const table = reopened.table("default", name);
      expect(store.owners(table?.tableId ?? 0)).not.toContain(ada);
    }
    expect(engine.storedFiles()).toHaveLength(1);
    // The erasure remains due, and is carried out once the table can be read or has been dropped.
    expect(reopened.accounts.erasures()).toHaveLength(1);
    await engine.run("DROP TABLE a");
    await engine.restart();
    await jobsEnded();
    expect(engine.database.catalog.accounts.erasures()).toEqual([]);
  });

  test("PURGE returns no job if the user does not exist, and refuses what DROP USER refuses", async () => {
    expect((await engine.run("DROP USER IF EXISTS nobody PURGE"))[0]?.message).toBe(
      "User nobody does not exist",
    );
    expect(await engine.failure("DROP USER nobody PURGE")).toStartWith("USER_NOT_FOUND@1");
    expect(await engine.failure("DROP USER root PURGE")).toStartWith("INVALID_OPERATION@1");
    expect(await as("bob", () => engine.failure("DROP USER ada PURGE"))).toStartWith(
      "PERMISSION_DENIED@1",
    );
    expect(tablesOf(ownerOf("ada"))).toEqual([...TABLES]);
  });

  testThoroughly("PURGE continues after a stop in the middle", async () => {
    const ada = ownerOf("ada");
    await fillDeadLetters("ada", "bob");
    const before = await contentsOf("bob");
    const dropped = engine.run("DROP USER ada PURGE");
    let found: Job | undefined;
    // The job is listed before it first yields, and may have ended by now.
    for (let step = 0; found === undefined && step < STEPS_MAX; step += 1) {
      await Promise.resolve();
      found = engine.database.jobs.all().find(({ kind }) => kind === "purge");
    }
    const job = defined(found, "the erasure must be listed");
    expect(job.isEnded).toBe(false);
    // Closing the database stops the job, and so does KILL JOB.
    job.isCancelled = true;
    await dropped;
    expect(job.status).toBe("cancelled");
    expect(tablesOf(ada)).not.toEqual([]);
    expect(engine.database.catalog.accounts.erasures()).toHaveLength(1);

    await engine.restart();
    await jobsEnded();
    expect(tablesOf(ada)).toEqual([]);
    expect(engine.database.catalog.accounts.erasures()).toEqual([]);
    expect(engine.storedFiles()).toHaveLength(1);
    expect(await contentsOf("bob")).toEqual(before);
    expect(await deadLetters()).toEqual([[1, "bob"]]);
    // A replaced segment is removed once no statement reads it any more.
    await until(() => !filesHave(`${SECRET}ada`));
  });
});

describe("DROP USER erases the user's rows", () => {
  test(
    "DROP USER keeps the rows unreadable for 30 days, and then erases them",
    async () => {
      const ada = ownerOf("ada");
      await engine.run("DROP USER ada");
      expect(await engine.failure("EXECUTE AS USER 'ada' (SELECT * FROM a)")).toStartWith(
        "USER_NOT_FOUND",
      );
      clock.setWall(clock.nowMs() + 28 * DAY_MS);
      clock.advance(DAY_MS);
      await jobsEnded();
      expect(tablesOf(ada)).toEqual([...TABLES]);
      clock.setWall(clock.nowMs() + DAY_MS);
      clock.advance(DAY_MS);
      // The sweep visits one table after another, and removes the file last.
      await until(() => engine.storedFiles().length === 1);
      expect(tablesOf(ada)).toEqual([]);
    },
    TEST_MS_MAX,
  );

  test("DROP USER is completed by a new account of the name, which starts empty", async () => {
    const ada = ownerOf("ada");
    await engine.run("DROP USER ada");
    await engine.run("CREATE USER ada WITH INTERNAL");
    expect(tablesOf(ada)).toEqual([]);
    expect(engine.database.catalog.accounts.erasures()).toEqual([]);
    expect(await contentsOf("ada")).toEqual({ a: [], b: [], s: [] });
  });
});

testThoroughly(
  "a kill during an erasure leaves the user complete, or continues the erasure",
  async () => {
    await using server = await startReadyServer();
    await server.sql("CREATE USER TABLE n (id INT PRIMARY KEY, v TEXT)");
    const token = await server.createUser("eve");
    await server.sql(
      "INSERT INTO n SELECT i, repeat('x', 90) FROM generate_series(1, 20000) g(i)",
      {
        token,
      },
    );
    await server.sql("STORAGE FLUSH ALL");
    await server.sql("INSERT INTO n SELECT i, 'y' FROM generate_series(20001, 30000) g(i)", {
      token,
    });
    const answer = server.sql("DROP USER eve PURGE").then(
      () => "answered",
      () => "cut off",
    );
    // A job that `system.jobs` lists has already started.
    const listed = "SELECT 1 FROM system.jobs WHERE job_type = 'purge'";
    await until(async () => (await server.rows(listed)).length > 0);
    await server.restart("SIGKILL");
    expect(["answered", "cut off"]).toContain(await answer);
    const due = "SELECT 1 FROM system.users WHERE user_id = 'eve' AND erase_after IS NOT NULL";
    await until(async () => (await server.rows(due)).length === 0);
    expect(
      await server.rows(
        "SELECT deleted_at IS NULL, erase_after FROM system.users WHERE user_id = 'eve'",
      ),
    ).toEqual([[false, null]]);
    expect(
      await server.rows(
        "SELECT logical_rows FROM (SELECT coalesce(sum(row_count), 0) AS logical_rows FROM system.segments WHERE table_name = 'n') q",
      ),
    ).toEqual([["0"]]);
  },
);
