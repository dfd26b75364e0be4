/**
 * Lists queries whose results can be verified by themselves: each query reads a single snapshot,
 * in which two sums or counts are equal, whatever has been written before.
 */

type Rows = readonly (readonly unknown[])[];

export interface ProvingQuery {
  readonly sql: string;
  /** The time limit in milliseconds, if the query is meant to exceed it. */
  readonly timeoutMs?: number;
  /** True if the query is meant to need more memory than a statement may use. */
  readonly isTooMuch?: boolean;
  /** Returns a contradiction between rows of the result; undefined if there is none. */
  contradiction(rows: Rows): string | undefined;
}

/** Checks that the cells in the first row are equal in pairs. */
function pairsAreEqual([row = []]: Rows): string | undefined {
  if (row.length === 0) return "there is no row";
  for (let at = 0; at + 1 < row.length; at += 2) {
    if (String(row[at]) !== String(row[at + 1]))
      return `${JSON.stringify(row)} has different pairs`;
  }
  return undefined;
}

/** Checks that the rows (id, a, b, count of all rows) form a complete snapshot. */
function areWhole(rows: Rows): string | undefined {
  let difference = 0;
  for (const [, a, b] of rows) difference += Number(a) - Number(b);
  if (difference !== 0) return `the sums differ by ${difference}`;
  const count = Number(rows[0]?.[3]);
  if (rows.length !== count) return `${rows.length} rows of ${count}`;
  if (new Set(rows.map(([id]) => id)).size !== count) return "a row came twice";
  return undefined;
}

function ascend(rows: Rows): string | undefined {
  const isOrdered = rows.every(
    (row, at) => at === 0 || String(rows[at - 1]?.[0]) <= String(row[0]),
  );
  return isOrdered && rows.length === 500 ? undefined : "rows are not in order";
}

function neverAnswers(): string {
  return "it answered, although it needs more time or memory than it may use";
}

export const QUERIES: readonly ProvingQuery[] = [
  {
    sql: "SELECT sum(a), sum(b), count(*), count(DISTINCT s) FROM r.t",
    contradiction: pairsAreEqual,
  },
  {
    sql: "SELECT (SELECT count(*) FROM r.t), (SELECT count(*) FROM r.t x JOIN r.t y ON x.id = y.id)",
    contradiction: pairsAreEqual,
  },
  {
    sql: "SELECT sum(a), sum(b), sum(n), (SELECT count(*) FROM r.t) FROM (SELECT id % 97 AS k, sum(a) AS a, sum(b) AS b, count(*) AS n FROM r.t GROUP BY 1) AS g",
    contradiction: pairsAreEqual,
  },
  {
    sql: "SELECT id, a, b, (SELECT count(*) FROM r.t) FROM r.t",
    contradiction: areWhole,
  },
  { sql: "SELECT s FROM r.t ORDER BY s LIMIT 500", contradiction: ascend },
  // This query and the next two read data that exists only on the event loop.
  {
    sql: "SELECT sum(n), max(n) * count(*) FROM (SELECT name, count(*) AS n FROM system.settings, r.t WHERE id % 100 = 1 GROUP BY name) AS g",
    contradiction: pairsAreEqual,
  },
  {
    sql: "SELECT count(*), count(DISTINCT i) FROM (SELECT snowflake_id() AS i FROM r.t) AS x",
    contradiction: pairsAreEqual,
  },
  {
    sql: "BEGIN; UPDATE r.t SET a = a + 1, b = b + 1 WHERE id % 100 = 3; SELECT sum(a), sum(b), count(*), count(DISTINCT id) FROM r.t; ROLLBACK",
    contradiction: pairsAreEqual,
  },
  {
    sql: "BEGIN; UPDATE r.t SET a = a + 1, b = b + 1 WHERE id % 100 = 4 RETURNING (SELECT sum(a) FROM r.t), (SELECT sum(b) FROM r.t); ROLLBACK",
    contradiction: pairsAreEqual,
  },
  {
    sql: "BEGIN; INSERT INTO r.t SELECT * FROM r.t WHERE id % 100 = 5 ON CONFLICT (id) DO UPDATE SET a = (SELECT sum(a) FROM r.t) % 1000, b = (SELECT sum(b) FROM r.t) % 1000 RETURNING a, b; ROLLBACK",
    contradiction: pairsAreEqual,
  },
  {
    // This query spills to temporary files.
    sql: "SELECT count(*), count(DISTINCT n) FROM (SELECT row_number() OVER (ORDER BY repeat(s, 20) DESC) AS n FROM r.t) AS o",
    contradiction: pairsAreEqual,
  },
  {
    sql: "SELECT count(*) FROM r.t x, r.t y WHERE x.a + y.b = -1",
    timeoutMs: 300,
    contradiction: neverAnswers,
  },
  {
    sql: "SELECT length(array_to_string(array_agg(repeat(s, 500) || id), ',')) FROM r.t",
    isTooMuch: true,
    contradiction: neverAnswers,
  },
];
