/**
 * Tests when a maintained query is evaluated again instead: if that takes less work, or if the
 * state of the query does not fit into the memory for live queries.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { rowsByKey, Shop } from "./shop.ts";

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
});

beforeEach(() => shop.renew());

afterAll(() => shop.close());

test("a window is refilled once more rows leave it than its margin holds", async () => {
  const rows = Array.from({ length: 300 }, (_, id) => `(${1000 + id}, 1, ${id})`).join();
  await shop.run(`DELETE FROM shop.orders; INSERT INTO shop.orders VALUES ${rows}`);
  const sql = "SELECT id, total FROM shop.orders ORDER BY total DESC LIMIT 5";
  const maintained = await shop.current(shop.follow(sql, "maintained"));
  for (let id = 1299; id > 1200; id -= 3) {
    await shop.run(`DELETE FROM shop.orders WHERE id > ${id - 3} AND id <= ${id}`);
    await shop.current(maintained);
    const totals = maintained.rows.map((row) => Number(row["total"]));
    const expected = [1, 2, 3, 4, 5].map((behind) => id - 1000 - 2 - behind);
    expect(totals.toSorted((left, right) => right - left)).toEqual(expected);
  }
});

test("a large commit is evaluated, and later changes are applied incrementally again", async () => {
  const sql = "SELECT user_id, count(*) AS n FROM shop.orders GROUP BY user_id";
  const maintained = await shop.current(shop.follow(sql, "maintained"));
  const rows = Array.from({ length: 3000 }, (_, id) => `(${1000 + id}, ${id % 3}, 1)`).join();
  await shop.run(`INSERT INTO shop.orders VALUES ${rows}`);
  await shop.current(maintained);
  await shop.run("INSERT INTO shop.orders VALUES (9000, 2, 1)");
  await shop.current(maintained);
  const counts = Object.fromEntries(maintained.rows.map(({ n, user_id: of }) => [of, n]));
  expect(counts).toEqual({ null: 1, 0: 1000, 1: 1002, 2: 1002, 9: 1 });
});

test("groups of a set operation are evaluated if too many of them change in one commit", async () => {
  const sql =
    "SELECT user_id, count(DISTINCT total) AS n FROM shop.orders GROUP BY user_id UNION ALL SELECT id, n FROM shop.items";
  const maintained = await shop.current(shop.follow(sql, "maintained"));
  const rows = Array.from({ length: 600 }, (_, id) => `(${1000 + id}, ${1000 + id}, 1)`).join();
  for (const change of [
    `INSERT INTO shop.orders VALUES ${rows}`,
    "UPDATE shop.orders SET user_id = 7 WHERE id IN (1000, 1001)",
    "DELETE FROM shop.orders WHERE id > 1001",
  ]) {
    await shop.run(change);
    await shop.current(maintained);
    const shown = maintained.rows.map((row) => JSON.stringify([row["user_id"], row["n"]]));
    const selected = (await shop.run(sql)).map((row) => JSON.stringify(row));
    expect(shown.toSorted()).toEqual(selected.toSorted());
  }
});

test("commits during the first build of an index in memory are followed once", async () => {
  const rows = Array.from({ length: 9000 }, (_, id) => `(${1000 + id}, 1, ${id})`);
  for (let start = 0; start < rows.length; start += 1000) {
    await shop.run(`INSERT INTO shop.orders VALUES ${rows.slice(start, start + 1000).join()}`);
  }
  const sql = "SELECT i.id, o.id AS o FROM shop.items i JOIN shop.orders o ON o.total = i.n";
  const maintained = shop.follow(sql, undefined);
  for (let id = 200; id < 230; id += 1) {
    await shop.run(`INSERT INTO shop.items VALUES (${id}, 1, 1, ${id}, 1)`);
    await shop.run(`DELETE FROM shop.items WHERE id = ${id - 1}`);
  }
  await shop.current(maintained);
  const shown = maintained.rows.map(({ id, o }) => JSON.stringify([id, o]));
  const selected = (await shop.run(sql)).map((row) => JSON.stringify(row));
  expect(shown.toSorted()).toEqual(selected.toSorted());
  const [evaluations] = await shop.stepsOf(sql);
  expect(evaluations).toBe(1);
});

test.each([
  ["groups", "SELECT total, count(*) AS n FROM shop.orders GROUP BY total"],
  ["rows of a set operation", "SELECT id FROM shop.orders EXCEPT SELECT n FROM shop.items"],
  [
    "groups in a set operation",
    "SELECT total % 700 AS k, count(*) AS n FROM shop.orders GROUP BY total % 700 UNION ALL SELECT id, n FROM shop.items",
  ],
])("a query that begins with hundreds of %s is maintained", async (_, sql) => {
  const rows = Array.from({ length: 1500 }, (_each, id) => `(${1000 + id}, 1, ${id % 750})`).join();
  await shop.run(`INSERT INTO shop.orders VALUES ${rows}`);
  const maintained = await shop.current(shop.follow(sql, "maintained"));
  for (const change of [
    "UPDATE shop.orders SET total = total + 1 WHERE id BETWEEN 1740 AND 1760",
    "DELETE FROM shop.orders WHERE id IN (1000, 1255, 1256, 1511, 1512, 2499)",
  ]) {
    await shop.run(change);
    await shop.current(maintained);
    const evaluated = await shop.current(shop.follow(sql, "evaluated"));
    expect([change, rowsByKey(maintained)]).toEqual([change, rowsByKey(evaluated)]);
  }
});

test("an index in memory drops the old values of rows, and still finds all rows", async () => {
  const rows = Array.from({ length: 900 }, (_, id) => `(${1000 + id}, ${id}, ${id})`).join();
  await shop.run(`DELETE FROM shop.orders; INSERT INTO shop.orders VALUES ${rows}`);
  const sql = "SELECT u.id, o.id AS o FROM shop.users u JOIN shop.orders o ON o.total = u.id";
  const maintained = await shop.current(shop.follow(sql, "maintained"));
  for (const step of [1, 2, 3, 4, 5, 6, 7]) {
    await shop.run(`UPDATE shop.orders SET total = (total + ${step}) % 900 WHERE id < 1898`);
    await shop.run("UPDATE shop.users SET name = 'x' WHERE id = 3");
    await shop.current(maintained);
    const evaluated = await shop.current(shop.follow(sql, "evaluated"));
    expect([step, rowsByKey(maintained)]).toEqual([step, rowsByKey(evaluated)]);
    evaluated.subscription?.close();
  }
});

test("a join without an equality is evaluated again if its table is large or grows", async () => {
  const sql = "SELECT u.id, o.id AS o FROM shop.users u JOIN shop.orders o ON o.total < u.boss";
  const maintained = await shop.current(shop.follow(sql, undefined));
  const growth = "INSERT INTO shop.orders SELECT g, 1, 9 FROM generate_series(100, 5200) AS g";
  await shop.run(growth);
  await shop.current(maintained);
  const [evaluationsBefore = 0] = await shop.stepsOf(sql);
  await shop.run("UPDATE shop.users SET boss = 6 WHERE id = 1");
  await shop.current(maintained);
  const evaluated = await shop.current(shop.follow(sql, "evaluated"));
  expect(rowsByKey(maintained)).toEqual(rowsByKey(evaluated));
  const [evaluations = 0] = await shop.stepsOf(sql);
  expect(evaluations).toBeGreaterThan(evaluationsBefore);
  maintained.subscription?.close();
  evaluated.subscription?.close();
  const lines = await shop.run(`EXPLAIN SUBSCRIBE TO ${sql} AND o.id > 0`);
  expect(lines.flat().join("\n")).toContain(
    "no key or index can find the rows of shop.orders that a change affects, and the table is " +
      "too large to scan",
  );
});

test("a change that repeatedly leads to many rows is evaluated instead", async () => {
  await shop.run(`DELETE FROM shop.orders;
    INSERT INTO shop.orders SELECT g, g, 1 FROM generate_series(1, 12000) AS g`);
  const sql =
    "SELECT u.id, o.id AS o FROM shop.users u JOIN shop.orders o ON o.total = u.id AND o.user_id < u.boss";
  const maintained = await shop.current(shop.follow(sql, undefined));
  const [evaluationsBefore = 0] = await shop.stepsOf(sql);
  // The old version of the row and its new version each match all 12,000 orders.
  await shop.run("UPDATE shop.users SET boss = 4 WHERE id = 1");
  await shop.run("UPDATE shop.users SET boss = 3 WHERE id = 1");
  await shop.current(maintained);
  expect(rowsByKey(maintained).map(({ o }) => o)).toEqual([1, 2]);
  const [evaluations = 0] = await shop.stepsOf(sql);
  expect(evaluations).toBeGreaterThan(evaluationsBefore);
  maintained.subscription?.close();
});

test("a join whose index does not fit into the memory for live queries is evaluated again", async () => {
  const small = await Shop.open("limits.live_state_bytes = 1048576");
  await small.run(`CREATE NAMESPACE app; CREATE SHARED TABLE app.a (id INT PRIMARY KEY);
    CREATE SHARED TABLE app.b (id INT PRIMARY KEY, n INT); INSERT INTO app.a VALUES (1), (2);
    INSERT INTO app.b SELECT g, g FROM generate_series(1, 2000) AS g`);
  const sql = "SELECT a.id, b.id AS b FROM app.a JOIN app.b ON b.n = a.id";
  const follower = small.follow(sql, undefined);
  for (const commit of ["SELECT 1", "UPDATE app.b SET n = 2 WHERE id = 7"]) {
    await small.run(commit);
    await small.current(follower);
  }
  const pairs = follower.rows.map(({ b, id }) => `${Number(id)} ${Number(b)}`).toSorted();
  expect(pairs).toEqual(["1 1", "2 2", "2 7"]);
  const lines = (await small.run(`EXPLAIN SUBSCRIBE TO ${sql}`)).flat();
  expect(lines).toContain("  so far: 2 evaluations, and 0 steps without an evaluation");
  expect(lines).toContain("    a change to a: finds b by an in-memory index on (n)");
  await small.close();
});

test("memory for maintained queries includes their texts", async () => {
  const small = await Shop.open("limits.live_state_bytes = 1048576");
  await small.run(`CREATE NAMESPACE app; CREATE SHARED TABLE app.a (id INT PRIMARY KEY, t TEXT);
    CREATE SHARED TABLE app.b (id INT PRIMARY KEY, t TEXT);
    INSERT INTO app.b SELECT g, repeat('x', 2000) || g FROM generate_series(1, 300) AS g`);
  for (const [id, sql] of [
    "SELECT a.id, b.id AS b FROM app.a JOIN app.b ON b.t = a.t",
    "SELECT t FROM app.a EXCEPT SELECT t FROM app.b",
    "SELECT t, count(*) AS n FROM app.b GROUP BY t HAVING count(*) > 5",
  ].entries()) {
    const follower = small.follow(sql, undefined);
    await small.current(follower);
    await small.run(`UPDATE app.b SET t = 'y' WHERE id = ${id + 1}`);
    await small.current(follower);
    const lines = (await small.run(`EXPLAIN SUBSCRIBE TO ${sql}`)).flat();
    const steps = lines.filter((line) => String(line).includes("so far"));
    expect([sql, ...steps]).toEqual([
      sql,
      "  so far: 2 evaluations, and 0 steps without an evaluation",
    ]);
    follower.subscription?.close();
  }
  await small.close();
});

test("memory for maintained queries is counted although no row of the result changes", async () => {
  const small = await Shop.open("limits.live_state_bytes = 1048576");
  await small.run(`CREATE NAMESPACE app; CREATE SHARED TABLE app.b (id INT PRIMARY KEY, n INT)`);
  const sql = "SELECT n, count(*) AS c FROM app.b GROUP BY n HAVING count(*) > 5";
  const follower = small.follow(sql, undefined);
  for (let start = 1; start < 2000; start += 400) {
    await small.run(
      `INSERT INTO app.b SELECT g, g FROM generate_series(${start}, ${start + 399}) AS g`,
    );
    await small.current(follower);
  }
  const [[bytes] = []] = await small.run("SELECT state_bytes FROM system.live");
  expect(Number(bytes)).toBe(0);
  await small.close();
});
