/**
 * Tests that `_seq` of a row of a maintained query is the seq of the commit that last changed the
 * row, regardless of when the subscription began.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { rowsByKey, Shop, seqsOf } from "./shop.ts";

let shop: Shop;

beforeAll(async () => {
  shop = await Shop.open();
});

beforeEach(() => shop.renew());

afterAll(() => shop.close());

test("rows of inner joins have the seq of their last change, whenever the subscription began", async () => {
  const sql = `SELECT o.id, u.name FROM shop.orders o JOIN shop.users u ON u.id = o.user_id
    WHERE EXISTS (SELECT 1 FROM shop.items i WHERE i.order_id = o.id) ORDER BY o.id LIMIT 9`;
  const early = await shop.current(shop.follow(sql, "maintained"));
  const inserted = await shop.seqOf("INSERT INTO shop.orders VALUES (40, 1, 1)");
  const shown = await shop.seqOf("INSERT INTO shop.items VALUES (140, 40, 1, 1, 1)");
  const renamed = await shop.seqOf("UPDATE shop.users SET name = 'io' WHERE id = 2");
  await shop.current(early);
  const late = await shop.current(shop.follow(sql, "evaluated"));
  expect(shown).toBeGreaterThan(inserted);
  expect(seqsOf(early)).toMatchObject({ 12: renamed, 40: shown });
  expect(seqsOf(late)).toMatchObject({ 12: renamed, 40: inserted });
  expect(early.ack?.schema.map(({ name }) => name)).toEqual(["id", "name", "id_2", "_key", "_seq"]);
});

test.each([
  ["SELECT user_id, count(*) AS n FROM shop.orders GROUP BY user_id", "groups"],
  [
    "SELECT user_id, sum(total) AS n FROM shop.orders GROUP BY user_id ORDER BY n DESC, user_id LIMIT 9",
    "a window",
  ],
  [
    "SELECT user_id, string_agg(id::TEXT, ',' ORDER BY id) FROM shop.orders GROUP BY user_id",
    "computed groups",
  ],
  [
    "SELECT u.id, count(o.id) FROM shop.users u LEFT JOIN shop.orders o ON o.user_id = u.id GROUP BY u.id",
    "an outer join",
  ],
  [
    "SELECT u.id, (SELECT count(*) FROM shop.orders o WHERE o.user_id = u.id) FROM shop.users u",
    "a query for each row",
  ],
])(
  "%s: a row has the seq of the commit that changed it, also among several commits",
  async (sql) => {
    const follower = await shop.current(shop.follow(sql, "maintained"));
    const added = await shop.seqOf("INSERT INTO shop.orders VALUES (50, 1, 1)");
    const removed = await shop.seqOf("DELETE FROM shop.orders WHERE id = 12");
    const other = await shop.seqOf("INSERT INTO shop.orders VALUES (51, 3, 1)");
    await shop.current(follower);
    expect([added, removed, other]).toEqual([added, removed, other].toSorted((a, b) => a - b));
    const seqs = seqsOf(follower);
    expect(seqs).toMatchObject({ 1: added, 3: other });
    // A group whose rows are all gone does not appear in the result. The test expects the seq of
    // the commit that removed the last row.
    expect(seqs["2"] ?? removed).toBe(removed);
    for (const { commit_seq: seq } of follower.changes)
      expect([added, removed, other]).toContain(Number(seq));
  },
);

test("rows that need no key have the seq of the commit that brought them", async () => {
  const distinct = await shop.current(
    shop.follow("SELECT DISTINCT city FROM shop.users", "maintained"),
  );
  const union = await shop.current(
    shop.follow("SELECT city FROM shop.users UNION SELECT place FROM shop.stock", "maintained"),
  );
  const bonn = await shop.seqOf("INSERT INTO shop.users VALUES (60, 'jo', 'bonn', NULL)");
  const kiel = await shop.seqOf("INSERT INTO shop.users VALUES (61, 'li', 'kiel', NULL)");
  expect(seqsOf(await shop.current(distinct))).toMatchObject({ bonn, kiel });
  expect(seqsOf(await shop.current(union))).toMatchObject({ bonn, kiel });
});

test("first rows of groups have the seq of the newest row in the group, in both ways", async () => {
  const sql = "SELECT user_id, count(*) AS n FROM shop.orders GROUP BY user_id";
  const added = await shop.seqOf("INSERT INTO shop.orders VALUES (70, 1, 1)");
  const changed = await shop.seqOf("UPDATE shop.orders SET total = 8 WHERE id = 12");
  for (const way of ["maintained", "evaluated"] as const) {
    const follower = await shop.current(shop.follow(sql, way));
    expect(seqsOf(follower)).toMatchObject({ 1: added, 2: changed });
    follower.subscription?.close();
  }
});

test("rows that a resume brings are newer than the position, even if a row was only removed", async () => {
  const sql = "SELECT user_id, count(*) AS n FROM shop.orders GROUP BY user_id";
  const held = await shop.current(shop.follow(sql, "maintained"));
  const position = Number(held.seq);
  held.subscription?.close();
  const removed = await shop.seqOf("DELETE FROM shop.orders WHERE id = 10");
  const back = await shop.current(
    shop.follow(sql, "maintained", { held, options: { from_seq_id: position } }),
  );
  expect(rowsByKey(back)).toEqual(rowsByKey(await shop.current(shop.follow(sql, "evaluated"))));
  expect(seqsOf(back)).toMatchObject({ 1: removed });
  expect(position).toBeLessThan(removed);
});

test("first rows without a seq of their own have that of the last commit in their tables", async () => {
  const sql = "SELECT city FROM shop.users EXCEPT SELECT place FROM shop.stock";
  const last = await shop.seqOf("INSERT INTO shop.users VALUES (80, 'al', 'bern', NULL)");
  await shop.run("INSERT INTO shop.items VALUES (180, 10, 1, 1, 1)");
  for (const way of ["maintained", "evaluated"] as const) {
    const follower = await shop.current(shop.follow(sql, way));
    expect(seqsOf(follower)).toMatchObject({ bern: last });
    follower.subscription?.close();
  }
});
