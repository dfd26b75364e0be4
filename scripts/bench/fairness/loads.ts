/** Defines the demanding statements, which use the tables that `fairness.ts` creates. */

export interface Load {
  readonly name: string;
  readonly sql: string;
  /** Whether the statement finishes in a reasonable time. If not, it is killed. */
  readonly ends: boolean;
  /** A query whose result must be the same after the statement has been killed. */
  readonly stays: string | undefined;
}

/**
 * The number of tables in a join, more than anyone would write by hand. Each table has one row.
 */
const JOINED = 64;

/** The number of queries in a UNION chain. */
const CHAINED = 500;
const CHECKED = 800;

/** The maximum number of rows written by a change that is meant to finish. */
const CHANGED_MAX = 1_500_000;

export function loadsOver(rows: number): readonly Load[] {
  const changed = Math.min(rows, CHANGED_MAX);
  const joined = Array.from({ length: JOINED }, (_, i) => `f.big AS t${i}`).join(", ");
  const chained = Array.from({ length: JOINED - 1 }, (_, i) => `t${i}.id = t${i + 1}.id`);
  const third = Math.ceil(Math.cbrt(1e9));
  const state = "SELECT COUNT(*), SUM(a), MAX(_seq) FROM f.big";
  const copied = "SELECT COUNT(*) FROM f.copy";
  const listed = Array.from({ length: 40_000 }, (_, i) => `(${10 * rows + i}, 1, 'x')`);
  return [
    read("aggregate", "SELECT v, COUNT(*), SUM(a), MIN(id) FROM f.big GROUP BY v"),
    read(
      "cartesian product of 10^9",
      `SELECT COUNT(*) FROM f.big a, f.big b, f.big c WHERE a.id <= ${third} AND b.id <= ${third} AND c.id <= ${third} AND a.a + b.a + c.a < 0`,
    ),
    read("64-way join", `SELECT COUNT(*) FROM ${joined} WHERE ${chained.join(" AND ")}`),
    read("64-way product", `SELECT COUNT(*) FROM ${joined}`),
    read("sort", `SELECT v FROM f.big ORDER BY v, id OFFSET ${rows - 10}`),
    read("distinct", "SELECT COUNT(DISTINCT v || id) FROM f.big"),
    read("window", "SELECT MAX(n) FROM (SELECT ROW_NUMBER() OVER (ORDER BY v) AS n FROM f.big) w"),
    {
      name: "a million rows to answer",
      sql: "SELECT id, a, v FROM f.big LIMIT 1000000",
      ends: true,
      stays: undefined,
    },
    ...longTexts(),
    {
      name: "VALUES of 40,000 rows",
      sql: `INSERT INTO f.copy VALUES ${listed.join(",")}`,
      ends: true,
      stays: undefined,
    },
    {
      name: "DELETE of those",
      sql: "DELETE FROM f.copy",
      ends: true,
      stays: undefined,
    },
    ...changesWithQueries(state, copied),
    { name: "UPDATE, killed", sql: "UPDATE f.big SET a = a + 1", ends: false, stays: state },
    {
      name: "INSERT … SELECT, killed",
      sql: "INSERT INTO f.copy SELECT * FROM f.big",
      ends: false,
      stays: copied,
    },
    { name: "DELETE, killed", sql: "DELETE FROM f.big", ends: false, stays: state },
    {
      name: `INSERT … SELECT of ${changed} rows`,
      sql: `INSERT INTO f.copy SELECT * FROM f.big WHERE id <= ${changed}`,
      ends: true,
      stays: undefined,
    },
    {
      name: `UPDATE of ${changed} rows`,
      sql: `UPDATE f.big SET a = a + 1 WHERE id <= ${changed}`,
      ends: true,
      stays: undefined,
    },
    {
      name: `DELETE of ${changed} rows`,
      sql: `DELETE FROM f.big WHERE id <= ${changed}`,
      ends: true,
      stays: undefined,
    },
  ];
}

/** Returns changes that read little, but contain a query that takes a long time. */
function changesWithQueries(state: string, copied: string): Load[] {
  const query = "(SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM f.big GROUP BY v) s)";
  return [
    {
      ...killed("query in VALUES"),
      sql: `INSERT INTO f.copy VALUES (-1, 1, 'x'), (-2, ${query}, 'x'), (-3, DEFAULT, 'x')`,
      stays: copied,
    },
    {
      ...killed("query in ON CONFLICT"),
      sql: `INSERT INTO f.big SELECT id, a, v FROM f.big WHERE id <= 1000
        ON CONFLICT (id) DO UPDATE SET a = ${query} + ${queryOf("excluded.a")}`,
      stays: state,
    },
    {
      ...killed("query in RETURNING"),
      sql: `UPDATE f.big SET a = a + 1 WHERE id <= 1000 RETURNING ${query}`,
      stays: state,
    },
    {
      ...killed("query in RETURNING for each row"),
      sql: `DELETE FROM f.big WHERE id <= 1000 RETURNING ${queryOf("big.a + LENGTH(b.v) - LENGTH(big.v)")}`,
      stays: state,
    },
  ];
}

function killed(name: string): Pick<Load, "name" | "ends"> {
  return { name: `${name}, killed`, ends: false };
}

/** Returns a query whose inner query runs once for each outer row. */
function queryOf(value: string): string {
  return `(SELECT COUNT(*) FROM f.big b WHERE b.a < ${value})`;
}

function read(name: string, sql: string): Load {
  return { name, sql, ends: false, stays: undefined };
}

/** Returns statements that take a long time to bind but not to run. */
function longTexts(): Load[] {
  const united = Array.from({ length: CHAINED }, (_, i) => `SELECT ${i} AS a`).join(" UNION ");
  const checks = Array.from({ length: CHECKED }, (_, i) => `c${i} INT CHECK (c${i} > ${i})`);
  const checked = `id BIGINT PRIMARY KEY, ${checks.join(", ")}`;
  return [
    { name: `UNION of ${CHAINED} queries`, sql: united, ends: true, stays: undefined },
    {
      name: `CREATE TABLE with ${CHECKED} checks`,
      sql: `CREATE SHARED TABLE f.checked (${checked}); DROP TABLE f.checked`,
      ends: true,
      stays: undefined,
    },
  ];
}
