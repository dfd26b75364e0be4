/**
 * Generates random queries within queries: existence tests, scalar subqueries, LATERAL, derived
 * tables, WITH and recursion.
 */
import { conditionOf } from "../fuzz_sql/expressions.ts";
import { textOf } from "../fuzz_sql/tree.ts";
import {
  equality,
  INNER_JOINS,
  itemOf,
  joined,
  outputs,
  type Sources,
  scopeOf,
  where,
} from "./from.ts";

/** Returns a query for the rows that have, or lack, a match in another table. */
export function matchQuery(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, INNER_JOINS, chance.below(4) === 0 ? 2 : 1);
  const inner = itemOf(sources.tables, chance, "e");
  const not = chance.pick(["", "NOT "]);
  const rest =
    chance.below(3) === 0 ? ` AND ${textOf(conditionOf(1, scopeOf(inner, chance)))}` : "";
  const conditions = [
    `${not}EXISTS (SELECT 1 FROM ${inner.text} WHERE ${equality(from, inner, chance)}${rest})`,
    `a.${chance.pick(["id", "i", "j"])} ${not}IN (SELECT e.${chance.pick(["id", "i", "j"])} FROM ${inner.text} WHERE ${rest === "" ? "TRUE" : rest.slice(" AND ".length)})`,
    `a.i ${chance.pick(["=", "<", ">="])} ${chance.pick(["ANY", "ALL"])} (SELECT e.j FROM ${inner.text} WHERE ${equality(from, inner, chance)})`,
  ];
  return `SELECT ${outputs(from, chance).join(", ")} FROM ${from.text} WHERE ${chance.pick(conditions)}`;
}

export function scalarQuery(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, INNER_JOINS, 1);
  const inner = itemOf(sources.tables, chance, "e");
  const call = chance.pick(["count(*)", "sum(e.i)", "min(e.t)", "max(e.m)", "avg(e.j)"]);
  const exists = `EXISTS (SELECT 1 FROM ${inner.text} WHERE ${equality(from, inner, chance)})`;
  const scalar = `(SELECT ${call} FROM ${inner.text} WHERE ${equality(from, inner, chance)})`;
  const other = `(SELECT e.t FROM ${inner.text} WHERE ${equality(from, inner, chance)} ORDER BY e.id LIMIT 1)`;
  const value = chance.pick([scalar, other, exists]);
  if (chance.below(4) === 0) return `SELECT a.id FROM ${from.text} WHERE a.b OR ${exists}`;
  return `SELECT a.id, ${value} FROM ${from.text}${where(from, chance)}`;
}

/** Returns a query that adds to each row of a table the first matching rows of another table. */
export function lateralQuery(sources: Sources): string {
  const { chance } = sources;
  const from = itemOf(sources.tables, chance, "a");
  const inner = itemOf(sources.tables, chance, "e");
  const order = `${chance.pick(["e.id", "e.i", "e.ts"])}${chance.pick([" DESC", ""])}, e.id`;
  if (chance.below(3) === 0) {
    const own = `SELECT count(*), max(e.j) FROM ${inner.text} WHERE ${equality(from, inner, chance)}`;
    return `SELECT a.id, l.n, l.m FROM ${from.text} CROSS JOIN LATERAL (${own}) AS l(n, m)`;
  }
  const query = `SELECT e.id, e.t FROM ${inner.text} WHERE ${equality(from, inner, chance)} ORDER BY ${order} LIMIT ${1 + chance.below(3)}`;
  const [word, on] = chance.pick([
    [" CROSS JOIN ", ""],
    [" LEFT JOIN ", " ON TRUE"],
  ] as const);
  return `SELECT a.id, a.t, l.id, l.t FROM ${from.text}${word}LATERAL (${query}) AS l${on}`;
}

export function withQuery(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, INNER_JOINS, 1);
  const entry = `WITH n AS (SELECT a.i AS k, count(*) AS c FROM ${from.text}${where(from, chance)} GROUP BY a.i)`;
  const second = itemOf(sources.tables, chance, "b");
  const word = chance.pick([" JOIN ", " LEFT JOIN "]);
  return `${entry} SELECT b.id, n.c FROM ${second.text}${word}n ON n.k = b.${chance.pick(["i", "j", "id"])}`;
}

/** Returns a query for the rows that are reachable from some rows through their join keys. */
export function recursiveQuery({ chance, tables }: Sources): string {
  const { name } = chance.pick(tables);
  const [start, key] = [chance.pick(["i IS NULL", "id < 4", "b"]), chance.pick(["i", "j"])];
  return (
    `WITH RECURSIVE r(id, depth) AS (SELECT a.id, 0 FROM ${name} AS a WHERE a.${start} ` +
    `UNION SELECT c.id, r.depth + 1 FROM ${name} AS c JOIN r ON c.${key} = r.id WHERE r.depth < 4) ` +
    "SELECT id, min(depth) FROM r GROUP BY id"
  );
}

/** Returns a query for groups of paths. UNION ALL counts a path as many times as it occurs. */
export function pathsQuery({ chance, tables }: Sources): string {
  const { name } = chance.pick(tables);
  const [start, key] = [chance.pick(["i = 0", "id < 3", "t = 'a'"]), chance.pick(["i", "j"])];
  return (
    `WITH RECURSIVE r(id, root, depth) AS (SELECT a.id, a.id, 0 FROM ${name} AS a WHERE a.${start} ` +
    `UNION ALL SELECT c.id, r.root, r.depth + 1 FROM ${name} AS c JOIN r ON c.${key} = r.id WHERE r.depth < 2) ` +
    chance.pick(["SELECT root, count(*) FROM r GROUP BY root", "SELECT * FROM r WHERE depth > 0"])
  );
}

/** A query in FROM or WITH. */
interface Derived {
  readonly query: string;
  /** The columns of the derived table. The first column joins it with other tables. */
  readonly columns: readonly string[];
}

/**
 * Returns a derived table: a query with groups, windows, DISTINCT, set operations or ORDER BY …
 * LIMIT.
 */
function derivedOf({ chance, tables }: Sources): Derived {
  const from = itemOf(tables, chance, "d");
  const key = chance.pick(["d.i", "d.j", "d.t"]);
  const rest = `FROM ${from.text}${where(from, chance)}`;
  const other = itemOf(tables, chance, "h");
  switch (chance.below(6)) {
    case 0:
    case 1: {
      const call = chance.pick(["count(*)", "sum(d.j)", "max(d.i)", "min(d.u)", "bool_or(d.b)"]);
      return {
        query: `SELECT ${key} AS k, ${call} AS x ${rest} GROUP BY ${key}`,
        columns: ["k", "x"],
      };
    }
    case 2: {
      const call = chance.pick([
        `row_number() OVER (PARTITION BY ${key} ORDER BY d.j DESC, d.id)`,
        `count(*) OVER (PARTITION BY ${key})`,
        `lag(d.u) OVER (PARTITION BY ${key} ORDER BY d.id)`,
        "rank() OVER (ORDER BY d.i)",
      ]);
      return {
        query: `SELECT d.id AS k, ${key} AS g, ${call} AS x ${rest}`,
        columns: ["k", "g", "x"],
      };
    }
    case 3:
      return { query: `SELECT DISTINCT ${key} AS k ${rest}`, columns: ["k"] };
    case 4: {
      const word = chance.pick(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL"]);
      const column = key.slice("d.".length);
      return {
        query: `SELECT ${key} AS k ${rest} ${word} SELECT h.${column} FROM ${other.text}${where(other, chance)}`,
        columns: ["k"],
      };
    }
    default: {
      const order = `${chance.pick(["d.i", "d.ts DESC", "d.m NULLS FIRST"])}, d.id`;
      return {
        query: `SELECT d.id AS k, ${key} AS x ${rest} ORDER BY ${order} LIMIT ${1 + chance.below(9)}`,
        columns: ["k", "x"],
      };
    }
  }
}

/** Returns a query over a derived table, either alone or joined with a table. */
export function derivedQuery(sources: Sources): string {
  const { chance, tables } = sources;
  const derived = derivedOf(sources);
  const columns = derived.columns.map((column) => `q.${column}`);
  const inner = `(${derived.query}) AS q`;
  const shown = columns.at(-1) ?? "q.k";
  switch (chance.below(4)) {
    case 0:
      return `SELECT ${shown}, count(*) FROM ${inner} GROUP BY ${shown}`;
    case 1: {
      const limit = chance.pick(["", " WHERE q.k IS NOT NULL", ` ORDER BY ${columns.join(", ")}`]);
      return `SELECT ${columns.join(", ")} FROM ${inner}${limit}`;
    }
    default: {
      const right = itemOf(tables, chance, "a");
      const column = derived.query.includes(".t AS k") ? "t" : chance.pick(["id", "i", "j"]);
      const word = chance.pick([" JOIN ", " LEFT JOIN "]);
      const tail = chance.pick(["", "", where(right, chance), ` WHERE ${shown} IS NULL`]);
      return `SELECT a.id, ${columns.join(", ")} FROM ${right.text}${word}${inner} ON q.k = a.${column}${tail}`;
    }
  }
}

/** Returns a query that reads the same WITH entry twice, or one WITH entry through another. */
export function twiceQuery(sources: Sources): string {
  const { chance } = sources;
  const { columns, query } = derivedOf(sources);
  const hint = chance.pick(["", " MATERIALIZED", " NOT MATERIALIZED"]);
  const shown = columns.at(-1) ?? "k";
  const entry = `WITH n AS${hint} (${query})`;
  return chance.pick([
    `${entry} SELECT x.k, y.${shown} FROM n AS x JOIN n AS y ON y.k = x.k`,
    `${entry}, m AS (SELECT n.k, count(*) AS c FROM n GROUP BY n.k) SELECT m.k FROM m WHERE m.c >= 1`,
    `${entry} SELECT count(*), (SELECT count(DISTINCT y.${shown}) FROM n AS y) FROM n AS x`,
    `${entry} SELECT x.k FROM n AS x WHERE x.${shown} IS DISTINCT FROM (SELECT max(y.${shown}::text)::text FROM n AS y)`,
  ]);
}

/** Returns a query for the first rows in each group of another table. */
export function topOfGroupsQuery(sources: Sources): string {
  const { chance, tables } = sources;
  const [from, inner] = [itemOf(tables, chance, "a"), itemOf(tables, chance, "e")];
  const key = chance.pick(["i", "j"]);
  const order = `${chance.pick(["e.ts", "e.i", "e.m"])}${chance.pick([" DESC", " NULLS FIRST", ""])}, e.id`;
  const groups = chance.pick([
    `(SELECT DISTINCT a.${key} AS k FROM ${from.text}) AS g`,
    `(SELECT a.${key} AS k, count(*) AS c FROM ${from.text} GROUP BY a.${key}) AS g`,
    "(VALUES (0), (1), (2), (3)) AS g(k)",
  ]);
  const rest = chance.pick([
    "",
    " AND e.b",
    ` AND ${textOf(conditionOf(1, scopeOf(inner, chance)))}`,
  ]);
  const top = `SELECT e.id, e.t FROM ${inner.text} WHERE e.${chance.pick(["i", "j"])} = g.k${rest} ORDER BY ${order} LIMIT ${1 + chance.below(3)}`;
  return `SELECT g.k, l.id, l.t FROM ${groups} LEFT JOIN LATERAL (${top}) AS l ON TRUE`;
}

/** Returns a query with groups that depend on a correlated query. */
export function correlatedQuery(sources: Sources): string {
  const { chance, tables } = sources;
  const [from, inner] = [itemOf(tables, chance, "a"), itemOf(tables, chance, "e")];
  const [key, other] = [chance.pick(["i", "j"]), chance.pick(["id", "i", "j"])];
  const count = `(SELECT count(*) FROM ${inner.text} WHERE e.${other} = a.${key})`;
  return chance.pick([
    `SELECT a.${key}, count(*) FROM ${from.text} GROUP BY a.${key} HAVING count(*) > ${count}`,
    `SELECT a.${key}, ${count} FROM ${from.text}${where(from, chance)} GROUP BY a.${key}`,
    `SELECT a.id, CASE WHEN a.b THEN ${count} ELSE -1 END FROM ${from.text}${where(from, chance)}`,
    `SELECT a.id FROM ${from.text} WHERE (a.i, a.j) ${chance.pick(["IN", "NOT IN"])} (SELECT e.${key}, e.${other} FROM ${inner.text})`,
    `SELECT a.id, a.t FROM ${from.text} WHERE a.m >= ALL (SELECT e.m FROM ${inner.text} WHERE e.${other} = a.${key} AND e.m IS NOT NULL)`,
    `SELECT a.id FROM ${from.text} WHERE a.${key} = (SELECT max(e.${other}) FROM ${inner.text})`,
    `SELECT a.id, a.i FROM ${from.text} LEFT JOIN ${inner.text} ON e.${other} = a.${key} WHERE e.id IS NULL`,
    `SELECT a.id, ${count} FROM ${from.text} ORDER BY 2 DESC, 1 LIMIT ${1 + chance.below(6)}`,
  ]);
}

/** Returns a query that joins a table with rows computed from it or listed in VALUES. */
export function computedRowsQuery({ chance, tables }: Sources): string {
  const from = itemOf(tables, chance, "a");
  const filter = where(from, chance);
  return chance.pick([
    `SELECT a.id, g.n FROM ${from.text} CROSS JOIN LATERAL generate_series(1, least(a.i, 3)) AS g(n)${filter}`,
    `SELECT g.n, count(a.id) FROM generate_series(0, 5) AS g(n) LEFT JOIN ${from.text} ON a.i = g.n GROUP BY g.n`,
    `SELECT a.id, v.word FROM ${from.text} JOIN (VALUES (0, 'none'), (1, 'one'), (2, NULL)) AS v(k, word) ON v.k = a.j${filter}`,
    `SELECT v.k, max(a.id) FROM (VALUES ('a'), ('b'), (NULL)) AS v(k) LEFT JOIN ${from.text} ON a.t = v.k GROUP BY v.k`,
    `SELECT a.id, x.part FROM ${from.text}, LATERAL unnest(ARRAY[a.i, a.j]) AS x(part)${filter}`,
  ]);
}
