/**
 * Tests materialised queries through the database: after every commit, the rows of a subscriber
 * must equal the result of the SELECT.
 */
import { describe, expect, test } from "bun:test";
import { SubscriptionError } from "../../../src/live/mod.ts";
import type { WireRow } from "../../../src/protocol/mod.ts";
import { principalFor } from "../../support/principal_for.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { ResultFollower } from "../../support/result_follower.ts";
import { until } from "../../support/until.ts";
import {
  COMMITS,
  cellsOf,
  current,
  database,
  follow,
  root,
  run,
  sorted,
  useRooms,
} from "./rooms.ts";

useRooms();

const QUERIES: readonly (readonly [string, string])[] = [
  ["an inner join", "SELECT r.name, m.text FROM app.rooms r JOIN app.messages m ON m.room = r.id"],
  [
    "a left join",
    "SELECT r.id, r.name, m.id AS message FROM app.rooms r LEFT JOIN app.messages m ON m.room = r.id AND m.stars > 0",
  ],
  [
    "a full join",
    "SELECT r.name, m.text FROM app.rooms r FULL JOIN app.messages m ON m.room = r.id",
  ],
  [
    "a self join",
    "SELECT a.id, b.id FROM app.messages a JOIN app.messages b ON a.room = b.room AND a.id < b.id",
  ],
  [
    "a semi join",
    "SELECT name FROM app.rooms r WHERE EXISTS (SELECT 1 FROM app.messages m WHERE m.room = r.id)",
  ],
  [
    "an anti join",
    "SELECT id, name FROM app.rooms WHERE id NOT IN (SELECT room FROM app.messages WHERE room IS NOT NULL)",
  ],
  [
    "groups",
    "SELECT room, count(*) AS n, sum(stars), avg(stars), min(text), max(stars) FROM app.messages GROUP BY room",
  ],
  ["groups without their column", "SELECT count(*) FROM app.messages GROUP BY room"],
  ["HAVING", "SELECT room, count(*) FROM app.messages GROUP BY room HAVING count(*) > 1"],
  ["one row", "SELECT count(*), max(id) FROM app.messages"],
  ["grouping sets", "SELECT room, stars, count(*) FROM app.messages GROUP BY ROLLUP (room, stars)"],
  ["DISTINCT", "SELECT DISTINCT text, stars FROM app.messages"],
  ["equal rows", "SELECT text, stars FROM app.messages UNION ALL SELECT name, id FROM app.rooms"],
  ["a set operation", "SELECT id FROM app.rooms EXCEPT SELECT room FROM app.messages"],
  ["a window", "SELECT id, rank() OVER (PARTITION BY room ORDER BY stars) FROM app.messages"],
  [
    "a scalar subquery",
    "SELECT name, (SELECT count(*) FROM app.messages m WHERE m.room = r.id) FROM app.rooms r",
  ],
  [
    "WITH",
    "WITH m AS (SELECT room, max(id) AS last FROM app.messages GROUP BY room) SELECT name, last FROM app.rooms r LEFT JOIN m ON m.room = r.id",
  ],
  [
    "WITH RECURSIVE",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < (SELECT count(*) FROM app.messages)) SELECT i FROM n",
  ],
  [
    "LATERAL",
    "SELECT r.id, m.text FROM app.rooms r LEFT JOIN LATERAL (SELECT text FROM app.messages WHERE room = r.id ORDER BY id DESC LIMIT 1) m ON true",
  ],
  [
    "VALUES beside a table",
    "SELECT v.column1, m.id FROM (VALUES (1), (2)) v LEFT JOIN app.messages m ON m.room = v.column1",
  ],
  ["a table function", "SELECT id, g FROM app.rooms, generate_series(1, id) g"],
];

describe("after every commit, a subscriber has the rows of the SELECT", () => {
  test("the subscribers to queries of every kind have their rows", async () => {
    const followed: { what: string; sql: string; follower: ResultFollower }[] = [];
    for (const [what, sql] of QUERIES) {
      const follower = await current(follow(sql));
      expect(cellsOf(follower), what).toHaveLength((await run(sql)).length);
      followed.push({ what, sql, follower });
    }
    for (const commit of COMMITS) {
      await run(commit);
      for (const { follower, sql, what } of followed) {
        await current(follower);
        const names = follower.ack?.schema.length ?? 0;
        const expected = await run(sql);
        const width = expected[0]?.length ?? names - 2;
        const got = cellsOf(follower).map((row) => row.slice(0, width));
        expect(sorted(got), `${what}, after ${commit}`).toEqual(sorted(expected));
      }
    }
    for (const { follower, what } of followed) {
      const open = follower.changes.filter(({ commit_end }) => commit_end === undefined);
      expect(open, what).toEqual([]);
    }
  });
});

test("a changed row keeps its key, and only its changed values are sent", async () => {
  const sql = "SELECT m.text, r.name FROM app.messages m JOIN app.rooms r ON r.id = m.room";
  const follower = await current(follow(sql));
  expect(follower.ack?.key_columns).toEqual(["id", "id_2"]);
  const [before] = follower.rows.filter(({ text }) => text === "dust") as [WireRow];
  await run("UPDATE app.messages SET text = 'moth' WHERE id = 12");
  await current(follower);
  const { change_type: type, old_values: olds, rows } = follower.changes.at(-1) ?? {};
  expect([type, olds]).toEqual([
    "update",
    [{ _key: before["_key"], _seq: before["_seq"], text: "dust" }],
  ] as never);
  expect(rows).toMatchObject([{ _key: before["_key"], text: "moth", name: "attic" }]);
  expect(rows?.[0]?.["_seq"]).toBe(database.store.visibleSeq);
});

describe("live queries with ORDER BY and LIMIT", () => {
  const TOP = "SELECT id, text FROM app.messages ORDER BY stars DESC NULLS LAST, id LIMIT 2";

  test("the ack contains the order, and rows contain the columns that determine their place", async () => {
    const { ack, rows } = await current(follow(TOP));
    expect(ack?.sort).toEqual([
      { column: "stars", direction: "desc", nulls: "last" },
      { column: "id", direction: "asc", nulls: "last" },
    ]);
    expect(ack?.key_columns).toEqual(["id"]);
    expect(rows).toMatchObject([
      { id: 10, stars: 3 },
      { id: 12, stars: 1 },
    ]);
  });

  test("a window is ordered by the collation that the ack describes", async () => {
    await run("INSERT INTO app.messages VALUES (20, 1, 'zoo', 9), (21, 1, 'öl', 9)");
    const sql = `SELECT id, text FROM app.messages ORDER BY text COLLATE "sv-x-icu" DESC, id LIMIT 2`;
    const follower = await current(follow(sql));
    expect(follower.ack?.sort?.[0]).toMatchObject({
      direction: "desc",
      collation: {
        locale: "sv",
        sensitivity: "variant",
        ignore_punctuation: false,
        deterministic: true,
      },
    });
    expect(follower.rows).toMatchObject([{ id: 21 }, { id: 20 }]);
    await run("INSERT INTO app.messages VALUES (22, 1, 'ås', 9)");
    await current(follower);
    expect(follower.changes).toMatchObject([
      { change_type: "delete", old_values: [{ id: 20 }] },
      { change_type: "insert", rows: [{ id: 22 }] },
    ]);
  });

  test("a row that leaves the window arrives as a delete, and its successor as an insert", async () => {
    const follower = await current(follow(TOP));
    await run("INSERT INTO app.messages VALUES (20, 1, 'new', 9)");
    await current(follower);
    const seq = database.store.visibleSeq;
    expect(follower.changes).toMatchObject([
      { change_type: "delete", old_values: [{ id: 12, _seq: seq, _deleted: true }] },
      { change_type: "insert", rows: [{ id: 20, _seq: seq }], commit_seq: seq, commit_end: true },
    ]);
    expect(follower.changes[0]).toMatchObject({ commit_seq: seq, commit_end: false });
    await run("DELETE FROM app.messages WHERE id = 20");
    await current(follower);
    expect(follower.rows).toMatchObject([{ id: 10 }, { id: 12 }]);
  });

  test("an ORDER BY term that is not in the select list becomes a field", async () => {
    const { ack } = await current(
      follow("SELECT text FROM app.messages ORDER BY length(text), id"),
    );
    expect(ack?.schema.map(({ name }) => name)).toEqual(["text", "_order_1", "id", "_key", "_seq"]);
  });
});

test("every delivered state is a state of all tables together", async () => {
  await run("UPDATE app.rooms SET name = '5'; UPDATE app.messages SET stars = 5");
  const sums: number[] = [];
  const follower = new ResultFollower({
    onState: ({ rows }) => sums.push(rows.reduce((sum, { n }) => sum + Number(n), 0)),
  });
  const sql =
    "SELECT 'r' AS t, id, name::INT AS n FROM app.rooms UNION ALL SELECT 'm', id, stars FROM app.messages";
  follower.subscription = database.live.subscribe({
    principal: root,
    spec: { id: "q", sql },
    sink: follower,
  });
  for (let round = 1; round <= 30; round += 1) {
    await run(`BEGIN; UPDATE app.rooms SET name = (name::INT - ${round})::TEXT WHERE id = 1;
      UPDATE app.messages SET stars = stars + ${round} WHERE id = 10; COMMIT`);
  }
  await current(follower);
  expect(sums.length).toBeGreaterThan(1);
  expect(new Set(sums)).toEqual(new Set([30]));
});

test("subscriptions to the same query share an evaluation and its rows, even across users", async () => {
  await database.sql.execute(root, {
    sql: "CREATE USER bo WITH PASSWORD 'beware 42 crabs' ROLE 'user'",
    params: [],
  });
  await run("ALTER TABLE app.rooms SET ACCESS LEVEL PUBLIC");
  const sql = "SELECT count(*) AS n FROM app.rooms";
  const first = await current(follow(sql));
  const second = await current(follow(sql, { id: "other", as: principalFor(database, "bo") }));
  const explained = (await run(`EXPLAIN SUBSCRIBE TO ${sql}`)).map(([line]) => String(line));
  expect(explained[0]).toBe("The live query is materialised because it has an aggregate");
  expect(explained.at(-1)).toMatch(
    /^ {2}group: [1-9]\d* bytes of rows, shared by 2 open subscriptions$/,
  );
  const rows = await run("SELECT user_id, table_name, state_bytes > 0 FROM system.live ORDER BY 1");
  expect(rows).toEqual([
    ["bo", "rooms", true],
    ["root", "rooms", true],
  ]);
  await run("INSERT INTO app.rooms VALUES (9, 'new')");
  await current(first);
  await current(second);
  expect([first.rows[0]?.["n"], second.rows[0]?.["n"]]).toEqual([4, 4]);
  await run("ALTER TABLE app.rooms SET ACCESS LEVEL PRIVATE");
  await until(() => second.failure !== undefined);
  expect(second.failure).toMatchObject({ code: "UNAUTHORIZED", subscription_id: "other" });
  await run("INSERT INTO app.rooms VALUES (10, 'newer')");
  await current(first);
  expect(first.rows).toMatchObject([{ n: 5 }]);
  await run("DROP USER bo");
});

test("a subscriber to a USER table receives only their own rows", async () => {
  await run(`CREATE USER cy WITH PASSWORD 'beware 42 crabs' ROLE 'user';
    CREATE USER TABLE app.own (id INT PRIMARY KEY, n INT)`);
  const cy = principalFor(database, "cy");
  const sql = "SELECT CURRENT_USER AS who, sum(n) AS n FROM app.own";
  const ofCy = await current(follow(sql, { as: cy }));
  const ofRoot = await current(follow(sql));
  await run("INSERT INTO app.own VALUES (1, 5)", cy);
  await run("INSERT INTO app.own VALUES (1, 7)");
  await current(ofCy);
  await current(ofRoot);
  expect([ofCy.rows, ofRoot.rows]).toMatchObject([[{ who: "cy", n: 5 }], [{ who: "root", n: 7 }]]);
  await run("DROP TABLE app.own; DROP USER cy");
});

test("a live-only subscription begins with the next change", async () => {
  const sql = "SELECT count(*) AS n FROM app.messages";
  const follower = await current(follow(sql, { options: null }));
  expect(follower.messages).toMatchObject([
    { type: "subscription_ack", batch_control: { has_more: false, status: "ready" } },
  ]);
  await run("INSERT INTO app.messages VALUES (20, 1, 'new', 9)");
  await until(() => follower.messages.length > 1);
  expect(follower.messages.slice(1)).toMatchObject([
    { change_type: "update", rows: [{ n: 4 }], old_values: [{ n: 3 }], commit_end: true },
  ]);
});

test("a snapshot in batches shows one state, and later changes follow it", async () => {
  const sql = "SELECT id, text FROM app.messages ORDER BY id";
  const follower = follow(sql, { options: { batch_size: 1 } });
  await until(() => follower.messages.length > 1);
  await run("UPDATE app.messages SET text = 'changed'");
  await current(follower);
  const batches = follower.messages.filter(({ type }) => type === "initial_data_batch");
  expect(batches).toHaveLength(3);
  expect(follower.rows.map(({ text }) => text)).toEqual(["changed", "changed", "changed"]);
});

test("a slow client receives the net difference once it reads again", async () => {
  const follower = await current(follow("SELECT id, text FROM app.messages ORDER BY id"));
  follower.isFull = true;
  for (const text of ["a", "b", "c"]) {
    await run(`UPDATE app.messages SET text = '${text}' WHERE id = 10`);
    await run(`INSERT INTO app.messages VALUES (20, 1, '${text}', 0)`);
    await until(() => follower.changes.length > 0);
    await run("DELETE FROM app.messages WHERE id = 20");
  }
  const before = follower.changes.length;
  follower.drain();
  await current(follower);
  expect(follower.changes.length).toBeGreaterThan(before);
  expect(follower.rows.map(({ id, text }) => [id, text])).toEqual([
    [10, "c"],
    [11, "ho"],
    [12, "dust"],
  ]);
});

test("a result has the rows of the SELECT while it grows from few rows to many and shrinks again", async () => {
  const sql =
    "SELECT m.id, r.id AS place, r.name FROM app.messages m JOIN app.rooms r ON r.id = m.room";
  const slow = await current(follow(sql));
  const follower = await current(follow(sql));
  const select = async (): Promise<unknown[][]> => sorted(await run(sql));
  for (let id = 100; id < 110; id += 1) {
    slow.isFull = id % 3 !== 0;
    await run(`INSERT INTO app.messages VALUES (${id}, ${1 + (id % 2)}, 'new', 0)`);
    expect(cellsOf(await current(follower))).toEqual(await select());
    slow.drain();
    expect(cellsOf(await current(slow))).toEqual(await select());
  }
  for (let id = 100; id < 110; id += 1) {
    slow.isFull = id % 3 !== 0;
    await run(`DELETE FROM app.messages WHERE id = ${id}; UPDATE app.rooms SET name = 'n${id}'`);
    expect(cellsOf(await current(follower))).toEqual(await select());
    slow.drain();
    expect(cellsOf(await current(slow))).toEqual(await select());
  }
});

test("subscribers share a result whether the digits of a parameter are sent or its value", async () => {
  const sql = "SELECT r.name FROM app.messages m JOIN app.rooms r ON r.id = m.room WHERE m.id = $1";
  const first = await current(follow(sql, { params: [10] }));
  const second = await current(follow(sql, { params: [{ number: "10" }] }));
  expect(cellsOf(second)).toEqual(cellsOf(first));
  const { results } = await database.sql.execute(root, {
    sql: `EXPLAIN SUBSCRIBE TO ${sql}`,
    params: [10],
  });
  const lines = results.at(-1)?.rows?.flat() ?? [];
  expect(lines.filter((line) => String(line).includes("open subscription"))).toEqual([
    expect.stringContaining("2 open subscriptions"),
  ]);
});

describe("a live query reacts to changes to definitions and rights", () => {
  const JOIN = "SELECT r.name, m.text FROM app.rooms r JOIN app.messages m ON m.room = r.id";
  const ENDINGS: readonly (readonly [string, string, string, string])[] = [
    ["a dropped table", JOIN, "DROP TABLE app.messages", "NOT_FOUND"],
    ["a dropped column", JOIN, "ALTER TABLE app.messages DROP COLUMN text", "SCHEMA_CHANGED"],
    [
      "a renamed column",
      JOIN,
      "ALTER TABLE app.messages RENAME COLUMN text TO body",
      "SCHEMA_CHANGED",
    ],
    [
      "a wider type",
      "SELECT max(stars) FROM app.messages",
      "ALTER TABLE app.messages ALTER stars TYPE BIGINT",
      "SCHEMA_CHANGED",
    ],
    [
      "a new column under *",
      "SELECT * FROM app.rooms ORDER BY id",
      "ALTER TABLE app.rooms ADD COLUMN n INT",
      "SCHEMA_CHANGED",
    ],
    ["a dropped view", "SELECT * FROM app.open_rooms", "DROP VIEW app.open_rooms", "NOT_FOUND"],
    [
      "a view of another table",
      "SELECT * FROM app.open_rooms",
      "CREATE OR REPLACE VIEW app.open_rooms AS SELECT room AS id, text AS name FROM app.messages",
      "SCHEMA_CHANGED",
    ],
    [
      "a dropped table under a view",
      "SELECT * FROM app.open_rooms",
      "DROP TABLE app.rooms CASCADE",
      "NOT_FOUND",
    ],
  ];

  test.each(ENDINGS)("%s ends the subscription", async (_, sql, change, code) => {
    await run("CREATE VIEW app.open_rooms AS SELECT id, name FROM app.rooms");
    const follower = await current(follow(sql));
    await run(change);
    await until(() => follower.failure !== undefined);
    expect(follower.failure).toMatchObject({ code, subscription_id: "q", ended: true });
    expect(database.live.subscriptions()).not.toContainEqual(
      expect.objectContaining({ query: sql }),
    );
  });

  test("changes continue after a definition changes in a way that the query survives", async () => {
    await run("CREATE VIEW app.open_rooms AS SELECT id, name FROM app.rooms");
    const follower = await current(follow("SELECT count(*) AS n FROM app.open_rooms"));
    await run("ALTER TABLE app.rooms ADD COLUMN more INT DEFAULT 3");
    await run(
      "CREATE OR REPLACE VIEW app.open_rooms AS SELECT id, name FROM app.rooms WHERE id > 1",
    );
    await current(follower);
    expect(follower.rows).toMatchObject([{ n: 2 }]);
    await run("INSERT INTO app.rooms VALUES (5, 'e', 4)");
    await current(follower);
    expect(follower.rows).toMatchObject([{ n: 3 }]);
  });

  test("a view that becomes dependent on the caller ends the subscriptions that share it", async () => {
    await run(`CREATE USER reader WITH ROLE system PASSWORD 'long enough 4 all';
      CREATE VIEW app.open_rooms AS SELECT id, name FROM app.rooms`);
    const sql = "SELECT count(*) AS n FROM app.open_rooms";
    const reader = principalFor(database, "reader");
    const followers = [follow(sql), follow(sql, { as: reader })];
    for (const follower of followers) await current(follower);
    await run(`UPDATE app.rooms SET name = 'reader' WHERE id = 1;
      CREATE OR REPLACE VIEW app.open_rooms AS
        SELECT id, name FROM app.rooms WHERE name = current_user`);
    for (const follower of followers) {
      await until(() => follower.failure !== undefined);
      expect(follower.failure).toMatchObject({ code: "SCHEMA_CHANGED" });
    }
    expect((await current(follow(sql))).rows).toMatchObject([{ n: 0 }]);
    expect((await current(follow(sql, { as: reader }))).rows).toMatchObject([{ n: 1 }]);
    await run("DROP USER reader");
  });

  test("callers are distinguished by the time from which they may read changes", async () => {
    await run("CREATE USER reader WITH ROLE system PASSWORD 'long enough 4 all'");
    const reader = principalFor(database, "reader");
    const sql = `SELECT count(*) AS n FROM
      changes('app.rooms', CASE current_user WHEN 'root' THEN 0 ELSE $1::BIGINT END)`;
    const params = [String(database.store.visibleSeq)];
    const all = await current(follow(sql, { params }));
    const none = await current(follow(sql, { params, as: reader }));
    expect([...all.rows, ...none.rows]).toMatchObject([{ n: 3 }, { n: 0 }]);
    await run("DROP USER reader");
  });

  test("deleted rows reach only a caller who may read history", async () => {
    await run(`CREATE USER reader WITH ROLE user PASSWORD 'long enough 4 all';
      ALTER TABLE app.rooms SET (ACCESS_LEVEL = 'PUBLIC');
      DELETE FROM app.rooms WHERE id = 2`);
    const reader = principalFor(database, "reader");
    for (const sql of [
      "SELECT count(*) AS n FROM app.rooms WHERE _deleted",
      "SELECT max(n) AS n FROM (SELECT count(*) AS n FROM app.rooms WHERE _deleted) c",
      "SELECT (SELECT count(*) FROM app.rooms WHERE _deleted) AS n FROM app.rooms LIMIT 1",
      "WITH c AS (SELECT count(*) AS n FROM app.rooms WHERE _deleted) SELECT a.n FROM c a, c b",
    ]) {
      const [admin, other] = [follow(sql), follow(sql, { as: reader })];
      for (const follower of [admin, other]) await current(follower);
      expect(admin.rows).toMatchObject([{ n: 1 }]);
      expect(other.rows).toMatchObject([{ n: 0 }]);
    }
    await run("DROP USER reader");
  });

  test("a view with a moment that moves is refused", async () => {
    await run(`CREATE VIEW app.open_rooms AS
      SELECT id, name FROM app.rooms FOR SYSTEM_TIME AS OF (now() - INTERVAL '1 hour')`);
    expect(() => follow("SELECT count(*) FROM app.open_rooms")).toThrow(
      "Cannot subscribe with function now: its value would change even if the row does not",
    );
  });
});

test("KILL LIVE QUERY ends a subscription, and so does an error on a row, with the reason", async () => {
  const killed = await current(follow("SELECT count(*) FROM app.messages"));
  const [row] = database.live.subscriptions();
  await run(`KILL LIVE QUERY '${row?.liveId ?? ""}'`);
  expect(killed.failure).toMatchObject({ code: "KILLED" });
  const failing = await current(follow("SELECT sum(6 / stars) FROM app.messages"));
  await run("INSERT INTO app.messages VALUES (20, 1, 'zero', 0)");
  await until(() => failing.failure !== undefined);
  expect(failing.failure).toMatchObject({ code: "CONVERSION_ERROR" });
});

testThoroughly("system views are followed by comparing their contents", async () => {
  const follower = await current(
    follow("SELECT table_name FROM system.tables WHERE namespace_id = 'app' ORDER BY 1"),
  );
  await run("CREATE SHARED TABLE app.zzz (id INT PRIMARY KEY)");
  await until(() => follower.rows.length === 3);
  expect(follower.rows.map(({ table_name: name }) => name)).toEqual(["messages", "rooms", "zzz"]);
  await run("DROP TABLE app.zzz");
  await until(() => follower.rows.length === 2);
  follower.subscription?.close();
});

test("columns with the same name are distinguished, and none hides _key or _seq", async () => {
  const sql =
    "SELECT r.id, m.id, m._seq, r.name AS _key FROM app.rooms r JOIN app.messages m ON true LIMIT 1";
  const { ack } = await current(follow(sql));
  expect(ack?.schema.map(({ name }) => name)).toEqual([
    "id",
    "id_2",
    "_seq_2",
    "_key_2",
    "_key",
    "_seq",
  ]);
});

const REFUSED: readonly (readonly [string, string, string])[] = [
  [
    "SELECT count(*) FROM app.rooms WHERE now() > '2026-01-01'",
    "UNSUPPORTED",
    "Cannot subscribe with function now: its value would change even if the row does not",
  ],
  [
    "SELECT (SELECT max(random()) FROM app.rooms)",
    "UNSUPPORTED",
    "Cannot subscribe with function random: its value would change even if the row does not",
  ],
  [
    "SELECT count(*) FROM app.rooms TABLESAMPLE BERNOULLI (10) REPEATABLE (1)",
    "UNSUPPORTED",
    "Cannot subscribe to a query with TABLESAMPLE: another sample would have other rows",
  ],
  [
    "WITH a AS (SELECT uuidv4() AS u) SELECT * FROM a",
    "UNSUPPORTED",
    "Cannot subscribe with function uuidv4: its value would change even if the row does not",
  ],
  [
    "SELECT count(*) FROM app.rooms WHERE 'today'::DATE > '2026-01-01'",
    "UNSUPPORTED",
    "Cannot subscribe with 'today' as a time: its value would change even if the row does not",
  ],
  [
    "SELECT count(*) FROM app.rooms FOR SYSTEM_TIME AS OF '2026-01-01'",
    "INVALID_SQL",
    "Cannot subscribe to a query with FOR SYSTEM_TIME: its rows would never change",
  ],
  [
    "WITH d AS (DELETE FROM app.rooms RETURNING id) SELECT * FROM d",
    "INVALID_SQL",
    "Cannot subscribe to a statement that changes rows",
  ],
  ["SHOW TABLES", "INVALID_SQL", "Cannot subscribe to SHOW TABLES"],
];

test.each(REFUSED)("%s is refused with %s", (sql, code, message) => {
  let refusal: unknown;
  try {
    follow(sql);
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toBeInstanceOf(SubscriptionError);
  expect((refusal as SubscriptionError).response).toMatchObject({ code, message, ended: true });
});

test.each([
  ["an aggregate", "SELECT count(*) FROM app.rooms"],
  ["a join", "SELECT r.id FROM app.rooms r JOIN app.messages m ON m.room = r.id"],
])("last_rows is refused for a query with %s, and the error names it", (part, sql) => {
  expect(() => follow(sql, { options: { last_rows: 5 } })).toThrow(
    `Cannot subscribe "q": last_rows applies only to a query that is followed row by row, not to a query with ${part}; use ORDER BY … LIMIT instead`,
  );
});

test("last_rows is refused for one table whose policy reads another, and the error says so", async () => {
  await run(`CREATE TABLE app.guests (name TEXT PRIMARY KEY); CREATE USER carl INTERNAL;
    CREATE TABLE app.doors (id INT PRIMARY KEY) WITH (ACCESS_LEVEL = 'RESTRICTED');
    CREATE POLICY guests_read ON app.doors FOR SELECT USING
      (EXISTS (SELECT 1 FROM app.guests WHERE name = CURRENT_USER()))`);
  const carl = principalFor(database, "carl");
  const options = { last_rows: 5 };
  expect(() => follow("SELECT id FROM app.doors", { as: carl, options })).toThrow(
    "not to a query with a policy that reads other tables; use ORDER BY … LIMIT instead",
  );
});
