/**
 * Verifies that a live snapshot whose rows a reader finds equals the result of a SELECT at the
 * same seq, from memtables and segments alike, whatever is written, flushed or altered while the
 * snapshot is being read. The readers of the test database run in this thread and perform every
 * search.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../../src/auth/mod.ts";
import type { Database } from "../../../src/database.ts";
import type { LiveSubscription } from "../../../src/live/mod.ts";
import type { SubscribeOptions, WireRow } from "../../../src/protocol/mod.ts";
import { openAt, SMALL_FILES } from "../../support/database.ts";
import { RecordingSink, subscriber } from "../../support/live_fixture.ts";
import { shareOf } from "../../support/thoroughness.ts";
import { until } from "../../support/until.ts";

const ROOT: Principal = { ...subscriber("root", 1), role: "system" };
const ANN: Principal = subscriber("ann", 2);

let directory: string;
let database: Database;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-search-"));
  database = await openAt(directory, { config: SMALL_FILES, readsElsewhere: true });
  await run(`CREATE NAMESPACE f;
    CREATE SHARED TABLE f.t (id INT PRIMARY KEY, room TEXT, n INT, body TEXT)
      WITH (ACCESS_LEVEL = 'PUBLIC');
    CREATE USER TABLE f.own (id INT PRIMARY KEY, room TEXT, n INT, body TEXT)`);
  for (const table of ["f.t", "f.own"]) {
    await run(`INSERT INTO ${table} SELECT g, 'room ' || g % 7, g % 50, repeat('x', g % 40)
      FROM generate_series(1, 3000) AS s(g)`);
    await run(`DELETE FROM ${table} WHERE id % 13 = 0`);
    await run(`STORAGE FLUSH TABLE ${table}`);
    await run(`UPDATE ${table} SET body = body || '!' WHERE id % 9 = 0`);
    await run(`INSERT INTO ${table} SELECT g, 'room ' || g % 7, g % 50, NULL
      FROM generate_series(4001, 4300) AS s(g)`);
  }
  await run("INSERT INTO f.own VALUES (1, 'room 1', 1, 'of ann')", ANN);
});

afterAll(async () => {
  await database.close();
  rmSync(directory, { recursive: true });
});

async function run(sql: string, as = ROOT, params: readonly string[] = []): Promise<WireRow[]> {
  const { error, results } = await database.sql.execute(as, { sql, params });
  if (error !== undefined) throw error;
  const { rows = [], schema = [] } = results.at(-1) ?? {};
  return rows.map((row) =>
    Object.fromEntries(schema.map(({ name }, index) => [name, row[index] ?? null])),
  ) as WireRow[];
}

interface Following {
  readonly sink: RecordingSink;
  readonly subscription: LiveSubscription;
  /** Requests batches until the snapshot has no more rows. */
  readonly readOn: () => Promise<WireRow[]>;
  readonly rows: () => WireRow[];
}

function follow(
  sql: string,
  options: SubscribeOptions = {},
  { as = ROOT, params = [] }: { as?: Principal; params?: readonly string[] } = {},
): Following {
  const sink = new RecordingSink();
  const spec = { id: "s", sql, options, params };
  const subscription = database.live.subscribe({ principal: as, spec, sink });
  const rows = (): WireRow[] => sink.batches().flatMap((batch) => batch.rows);
  const readOn = async (): Promise<WireRow[]> => {
    for (let count = 1; ; count += 1) {
      await until(() => sink.batches().length >= count || sink.errors().length > 0);
      const isLast = sink.batches().at(-1)?.batch_control.has_more === false;
      if (isLast || sink.errors().length > 0) return rows();
      if (sink.batches().length === count) subscription.nextBatch();
    }
  };
  return { sink, subscription, readOn, rows };
}

function queriesInReaders(): number {
  return database.readerCounts()?.queries ?? 0;
}

const FILTERS: readonly (readonly [string, string, ...string[]])[] = [
  ["f.t", "true"],
  ["f.t", "n = 5"],
  ["f.t", "room = 'room 3' AND n > 10 OR body IS NULL"],
  ["f.t", "body LIKE 'xxx%!' OR lower(room) = $1", "room 2"],
  ["f.t", "id BETWEEN 100 AND 2000 AND n <> 3"],
  ["f.t", "f.t.id % 100 = 7"],
  ["f.t AS m", "m.id % 100 = 7"],
  ["f.t AS m (key, place)", "key % 100 = 7 AND place <> 'room 1'"],
  ["f.t", "id = 17"],
  ["f.t", "id IN (3000, 5, 800, 17, 100000)"],
  ["f.t", "current_user = 'root' AND n = 1"],
  ["f.t", "current_user = 'somebody'"],
  ["f.t", "n = $1 AND id > $2", "5", "1000"],
  ["f.own", "n = 5"],
  ["f.own", "id < 10 OR n = 49"],
];

test.each(shareOf(FILTERS, { oneOf: 2 }))(
  "FROM %s WHERE %s: a reader finds the same rows as a SELECT",
  async (...filter) => {
    const [from, where, ...params] = filter;
    const sql = `SELECT * FROM ${from} WHERE ${where}`;
    const expected = await run(`${sql} ORDER BY _seq`, ROOT, params);
    for (const batchSize of [37, 10_000]) {
      const before = queriesInReaders();
      const following = follow(sql, { batch_size: batchSize }, { params });
      expect(await following.readOn()).toEqual(expected);
      expect(queriesInReaders()).toBeGreaterThan(before);
      following.subscription.close();
      const last = follow(sql, { batch_size: batchSize, last_rows: 40 }, { params });
      expect(await last.readOn()).toEqual(expected.slice(-40));
      last.subscription.close();
    }
  },
);

test("a filter on _deleted stays on the event loop, and finds no deleted row", async () => {
  const expected = await run(
    "SELECT id, n, _seq FROM f.t WHERE _deleted IS NOT NULL AND n = 5 AND NOT _deleted ORDER BY _seq",
  );
  const before = queriesInReaders();
  const following = follow("SELECT id, n FROM f.t WHERE _deleted IS NOT NULL AND n = 5");
  expect(await following.readOn()).toEqual(expected);
  expect(queriesInReaders()).toBe(before);
  following.subscription.close();
});

test("fields are computed for the rows that a reader has found", async () => {
  const following = follow("SELECT id, upper(room) AS loud, 100 / n AS part FROM f.t WHERE n > 40");
  const expected = await run(
    "SELECT id, upper(room) AS loud, 100 / n AS part, _seq FROM f.t WHERE n > 40 ORDER BY _seq",
  );
  expect(await following.readOn()).toEqual(expected);
  following.subscription.close();
});

test("a reader finds only the user's own rows of a USER table", async () => {
  const following = follow("SELECT id, body FROM f.own WHERE n < 3", {}, { as: ANN });
  expect(await following.readOn()).toMatchObject([{ id: 1, body: "of ann" }]);
  following.subscription.close();
});

test("the snapshot stays at its boundary while rows are changed, flushed and merged", async () => {
  await run("CREATE SHARED TABLE f.moving (id INT PRIMARY KEY, n INT)");
  await run("INSERT INTO f.moving SELECT g, g % 10 FROM generate_series(1, 2000) AS s(g)");
  const sql = "SELECT * FROM f.moving WHERE n < 5";
  const expected = await run(`${sql} ORDER BY _seq`);
  const { readOn, sink, subscription } = follow(sql, { batch_size: 300 });
  const steps = [
    "UPDATE f.moving SET n = n + 100 WHERE id % 2 = 0",
    "STORAGE FLUSH TABLE f.moving",
    "DELETE FROM f.moving WHERE id % 3 = 0; STORAGE COMPACT TABLE f.moving",
    "ALTER TABLE f.moving ADD COLUMN late INT DEFAULT 4",
  ];
  for (const [index, step] of steps.entries()) {
    await until(() => sink.batches().length > index);
    // One search starts before the change, and the next one after it.
    if (index < 3) subscription.nextBatch();
    await run(step);
  }
  await until(() => sink.errors().length > 0 || sink.batches().length === 4);
  const rows = await readOn();
  // A live query with `*` ends when a column is added.
  expect(sink.errors().map(({ code }) => code)).toEqual(["SCHEMA_CHANGED"]);
  expect(rows.length).toBeGreaterThan(600);
  expect(rows).toEqual(expected.slice(0, rows.length));
});

test("a query that survives ALTER TABLE continues its search", async () => {
  await run("CREATE SHARED TABLE f.wider (id INT PRIMARY KEY, n INT)");
  await run("INSERT INTO f.wider SELECT g, g % 10 FROM generate_series(1, 1000) AS s(g)");
  const sql = "SELECT id, n FROM f.wider WHERE n < 5";
  const expected = await run("SELECT id, n, _seq FROM f.wider WHERE n < 5 ORDER BY _seq");
  const { readOn, subscription } = follow(sql, { batch_size: 100 });
  const altered = run("ALTER TABLE f.wider ADD COLUMN late INT DEFAULT 4");
  expect(await readOn()).toEqual(expected);
  await altered;
  subscription.close();
});

test("DROP TABLE during a search ends the subscription", async () => {
  await run("CREATE SHARED TABLE f.gone (id INT PRIMARY KEY, n INT)");
  await run("INSERT INTO f.gone SELECT g, g % 10 FROM generate_series(1, 1000) AS s(g)");
  const { readOn, sink } = follow("SELECT id FROM f.gone WHERE n < 5");
  await run("DROP TABLE f.gone");
  await readOn();
  expect(sink.errors()).toHaveLength(1);
  expect(database.live.subscriptions().filter(({ query }) => query.includes("gone"))).toEqual([]);
});

test("an error of a filter in a reader is reported as on the event loop", async () => {
  const { readOn, sink } = follow("SELECT id FROM f.t WHERE 100 / (n - 7) > 3");
  await readOn();
  expect(sink.errors()).toMatchObject([
    { code: "CONVERSION_ERROR", message: "Cannot divide by zero" },
  ]);
});

test("searches that end in any way make way for waiting ones", async () => {
  const expected = await run("SELECT id, n, _seq FROM f.t WHERE n = 9 ORDER BY _seq");
  const sql = "SELECT id, n FROM f.t WHERE n = 9";
  const failing = "SELECT id FROM f.t WHERE 100 / (n - 7) > 3";
  const all = Array.from({ length: 40 }, (_, index) => follow(index % 4 === 3 ? failing : sql));
  // Some searches are waiting for a time slice, some are waiting for a reader, and some already
  // have one.
  const turns = [0, 1, 2, 3, 4, 5].map((turn) => turn * 3);
  for (const turn of turns) {
    all[turn]?.subscription.close();
    all[39 - turn]?.subscription.close();
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  const left = all.filter(({ subscription }) => subscription.state !== "ended");
  expect(left.length).toBeGreaterThan(10);
  for (const { readOn, sink, subscription } of left) {
    const rows = await readOn();
    if (sink.errors().length === 0) expect(rows).toEqual(expected);
    subscription.close();
  }
  const { readOn, subscription } = follow(sql);
  expect(await readOn()).toEqual(expected);
  subscription.close();
});
