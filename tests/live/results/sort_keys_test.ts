/**
 * Verifies that the rows of SELECT DISTINCT and of set operations contain sort keys of the values
 * by which the query is ordered, and that these keys sort the rows as the SELECT does.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Principal } from "../../../src/auth/mod.ts";
import type { Database } from "../../../src/database.ts";
import { openAt, SMALL_FILES } from "../../support/database.ts";
import { principalFor } from "../../support/principal_for.ts";
import { ResultFollower } from "../../support/result_follower.ts";
import { rowsOf } from "../../support/rows_of.ts";

let directory: string;
let database: Database;
let root: Principal;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "tidemark-sort-keys-"));
  database = await openAt(directory, { config: SMALL_FILES });
  root = principalFor(database, "root");
  await run("CREATE NAMESPACE s; CREATE TYPE s.mood AS ENUM ('low', 'high', 'elated')");
});

afterAll(async () => {
  await database.close();
  rmSync(directory, { recursive: true, force: true });
});

function run(sql: string): Promise<readonly (readonly unknown[])[]> {
  return rowsOf(database, root, sql);
}

type Way = "evaluated" | "maintained" | undefined;

function follow(sql: string, way: Way): ResultFollower {
  const follower = new ResultFollower();
  const spec = { id: "q", sql, ...(way && { options: { way } }) };
  follower.subscription = database.live.subscribe({ principal: root, spec, sink: follower });
  return follower;
}

/** Returns the rows in the order that the acknowledgement describes, with `width` columns. */
function sortedRows({ ack, rows }: ResultFollower, width: number): unknown[][] {
  const names = (ack?.schema ?? []).slice(0, width).map(({ name }) => name);
  const terms = (ack?.sort ?? []).map(({ column, direction, nulls }) => {
    return { column, sign: direction === "desc" ? -1 : 1, nullSign: nulls === "first" ? -1 : 1 };
  });
  const ordered = rows.toSorted((left, right) => {
    for (const { column, nullSign, sign } of terms) {
      const [one, two] = [left[column] ?? null, right[column] ?? null];
      if (one === null || two === null) {
        if (one !== two) return one === null ? nullSign : -nullSign;
      } else if (one !== two) return String(one) < String(two) ? -sign : sign;
    }
    return 0;
  });
  return ordered.map((row) => names.map((name) => row[name]));
}

/** Types whose cells do not sort as they are sent, each with three values. */
const TYPES: readonly (readonly [type: string, values: readonly string[]])[] = [
  ["s.mood", ["'high'", "'elated'", "'low'"]],
  ["MONEY", ["'9.50'", "'10'", "'-3'"]],
  ["INTERVAL", ["'2 hours'", "'1 day'", "'90 minutes'"]],
  ["INET", ["'9.0.0.1'", "'10.0.0.0/8'", "'10.0.0.1'"]],
  ["INT4RANGE", ["'[9,12)'", "'[10,11)'", "'empty'"]],
  ["JSONB", ["'[9]'", "'[10]'", "'{\"a\": 1}'"]],
];

/** The types whose equal values may have several forms, so that their queries are evaluated. */
const EVALUATED: ReadonlySet<string> = new Set(["INTERVAL", "JSONB"]);

const QUERIES: readonly (readonly [sql: string, width: number])[] = [
  ["SELECT DISTINCT v FROM s.a ORDER BY v", 1],
  ["SELECT DISTINCT v AS w, id % 2 AS odd FROM s.a ORDER BY 2 DESC, w DESC", 2],
  ["SELECT v FROM s.a UNION SELECT v FROM s.b ORDER BY v DESC NULLS LAST", 1],
  ["SELECT v AS w FROM s.a EXCEPT SELECT v FROM s.b ORDER BY 1", 1],
  ["(SELECT v FROM s.a INTERSECT SELECT v FROM s.b) UNION SELECT v FROM s.a ORDER BY v LIMIT 2", 1],
  ["WITH x AS (SELECT v FROM s.b) SELECT v FROM x UNION SELECT v FROM s.a ORDER BY v", 1],
  ["SELECT 1 AS n, v FROM s.a UNION SELECT 2, v FROM s.b ORDER BY n, v", 2],
];

test.each(TYPES)(
  "the sort keys of %s order distinct rows and set operations",
  async (type, all) => {
    const [one, two, three] = all;
    await run(`DROP TABLE IF EXISTS s.a; DROP TABLE IF EXISTS s.b;
    CREATE SHARED TABLE s.a (id INT PRIMARY KEY, v ${type});
    CREATE SHARED TABLE s.b (id INT PRIMARY KEY, v ${type});
    INSERT INTO s.a VALUES (1, ${one}), (2, ${two}), (3, ${one}), (4, NULL);
    INSERT INTO s.b VALUES (1, ${two})`);
    const followed = QUERIES.flatMap(([sql, width]) =>
      ([EVALUATED.has(type) ? undefined : "maintained", "evaluated"] as const).map((way) => ({
        sql,
        width,
        follower: follow(sql, way),
      })),
    );
    for (const change of [
      "UPDATE s.a SET id = 9 WHERE id = 4",
      `INSERT INTO s.a VALUES (5, ${three}), (6, ${two})`,
      `UPDATE s.b SET v = ${three} WHERE id = 1; INSERT INTO s.b VALUES (2, ${one})`,
      "DELETE FROM s.a WHERE id IN (1, 2, 9)",
    ]) {
      await run(change);
      for (const { follower, sql, width } of followed) {
        await follower.reaches(database.store.visibleSeq);
        expect([sql, change, sortedRows(follower, width)]).toEqual([
          sql,
          change,
          [...(await run(sql))],
        ] as never);
      }
    }
    for (const { follower } of followed) {
      const { ack } = follower;
      expect(ack?.key_columns ?? []).not.toContain("_order_1");
      follower.subscription?.close();
    }
  },
);

test("a set operation whose queries select values of two types has no sort key", async () => {
  await run("CREATE SHARED TABLE s.c (id INT PRIMARY KEY, v MONEY)");
  const { ack } = await reached(
    follow("SELECT v FROM s.c UNION SELECT NULL ORDER BY 1", undefined),
  );
  expect(ack?.sort ?? []).toEqual([]);
  expect(ack?.schema.map(({ name }) => name)).toEqual(["v", "_key", "_seq"]);
});

async function reached(follower: ResultFollower): Promise<ResultFollower> {
  await follower.reaches(database.store.visibleSeq);
  return follower;
}
