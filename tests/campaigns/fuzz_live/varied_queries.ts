/**
 * Generates random queries with rows that depend on more than the tables: on the caller, on
 * parameters or on the time.
 */
import {
  ALL_JOINS,
  equality,
  type FuzzQuery,
  INNER_JOINS,
  itemOf,
  joined,
  outputs,
  type Sources,
  where,
} from "./from.ts";

/** Returns a query with rows that depend on its caller. */
export function callerQuery(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, INNER_JOINS, chance.below(2) === 0 ? 1 : 2);
  const own = "CASE CURRENT_USER() WHEN 'bob' THEN 'a' ELSE 'b' END";
  if (chance.below(3) === 0) {
    return `SELECT a.i, count(*), CURRENT_USER() FROM ${from.text} WHERE a.t = ${own} GROUP BY a.i`;
  }
  return `SELECT ${[...from.ids, "a.t"].join(", ")} FROM ${from.text} WHERE a.t = ${own} ORDER BY ${from.ids.join(", ")} LIMIT 9`;
}

/** Returns a query with a parameter, and several values for it. */
export function parameterQuery(sources: Sources): FuzzQuery {
  const { chance } = sources;
  const from = joined(sources, ALL_JOINS.slice(0, 2), chance.below(3) === 0 ? 1 : 3);
  const [condition, values] = chance.pick([
    ["a.i = $1", [0, 1, 2, 3, null]],
    ["a.j = $1", [0, 1, 2, 7]],
    ["a.t = $1", ["a", "b", ""]],
    ["a.id = $1", [1, 2, 3, 4]],
    ["a.i > $1", [0, 2]],
  ] as const);
  const parameters = values.map((value) => [value]);
  const inner = itemOf(sources.tables, chance, "e");
  const tested = `a.${chance.pick(["id", "i", "j"])} IN (SELECT e.id FROM ${inner.text} WHERE ${condition.replace("a.", "e.")})`;
  const filter = ` WHERE ${chance.below(3) === 0 ? tested : condition}`;
  switch (chance.below(3)) {
    case 0:
      return {
        sql: `SELECT a.t, count(*), sum(a.j) FROM ${from.text}${filter} GROUP BY a.t`,
        parameters,
      };
    case 1:
      return {
        sql: `SELECT ${[...from.ids, "a.u"].join(", ")} FROM ${from.text}${filter} ORDER BY a.u, ${from.ids.join(", ")} LIMIT 4`,
        parameters,
      };
    default:
      return {
        sql: `SELECT ${[...from.ids, ...outputs(from, chance)].join(", ")} FROM ${from.text}${filter} ORDER BY ${from.ids.join(", ")}`,
        parameters,
      };
  }
}

/** Returns a query that uses a parameter outside the comparisons in WHERE. */
export function placedParameterQuery({ chance, tables }: Sources): FuzzQuery {
  const [from, inner] = [itemOf(tables, chance, "a"), itemOf(tables, chance, "e")];
  const [sql, values] = chance.pick([
    ["SELECT a.id, a.i FROM {a} ORDER BY a.i NULLS FIRST, a.id LIMIT $1", [1, 4, 0]],
    ["SELECT a.id, a.i FROM {a} ORDER BY a.u, a.id LIMIT 3 OFFSET $1", [0, 2, 9]],
    ["SELECT a.t, count(*) FROM {a} GROUP BY a.t HAVING count(*) > $1", [0, 1, 3]],
    ["SELECT a.id, coalesce(a.i, $1) FROM {a} WHERE a.b", [7, null]],
    ["SELECT a.id FROM {a} WHERE a.i = ANY($1)", ["{0,1}", "{}", "{2,NULL}"]],
    ["SELECT a.id FROM {a} WHERE a.i IS NOT DISTINCT FROM $1", [1, null]],
    ["SELECT a.id FROM {a} WHERE a.i BETWEEN $1 AND 3", [0, 2, null]],
    ["SELECT a.id FROM {a} WHERE a.t = $1 UNION SELECT e.i FROM {e} WHERE e.t = $1", ["a", "b"]],
    [
      "SELECT a.id, l.id FROM {a} LEFT JOIN LATERAL (SELECT e.id FROM {e} WHERE e.i = a.j AND e.j > $1 ORDER BY e.id LIMIT 2) AS l ON TRUE",
      [0, 2],
    ],
    ["SELECT a.id, (SELECT count(*) FROM {e} WHERE e.i = a.i AND e.t = $1) FROM {a}", ["a", "zz"]],
    [
      "SELECT a.id, row_number() OVER (PARTITION BY a.i ORDER BY a.id) FROM {a} WHERE a.j = $1",
      [0, 1, 3],
    ],
    ["SELECT DISTINCT a.i FROM {a} WHERE a.t >= $1", ["", "b"]],
  ] as const);
  const text = sql.replaceAll("{a}", from.text).replaceAll("{e}", inner.text);
  return { sql: text, parameters: values.map((value) => [value]) };
}

/** Returns a query that compares a column with the time. */
export function clockQuery(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, ALL_JOINS.slice(0, 2), chance.below(2) === 0 ? 1 : 2);
  const inner = itemOf(sources.tables, chance, "e");
  const now = chance.pick(["NOW()", "LOCALTIMESTAMP"]);
  const moment = chance.pick([
    now,
    `${now} - INTERVAL '1 second'`,
    `${now} + INTERVAL '2 seconds'`,
  ]);
  const condition = `a.ts ${chance.pick([">", ">=", "<", "<="])} ${moment}`;
  const ids = from.ids.join(", ");
  const exists = `EXISTS (SELECT 1 FROM ${inner.text} WHERE ${equality(from, inner, chance)} AND e.ts > ${moment})`;
  return chance.pick([
    `SELECT ${[...from.ids, ...outputs(from, chance)].join(", ")} FROM ${from.text} WHERE ${condition}`,
    `SELECT a.i, count(*), max(a.u) FROM ${from.text} WHERE ${condition} GROUP BY a.i`,
    `SELECT ${ids}, ${condition} FROM ${from.text}${where(from, chance)}`,
    `SELECT ${ids}, a.ts FROM ${from.text} WHERE ${condition} ORDER BY a.ts DESC, ${ids} LIMIT ${1 + chance.below(5)}`,
    `SELECT a.id, a.t FROM ${from.text} WHERE ${chance.pick(["", "NOT "])}${exists}`,
    `SELECT ${ids}, row_number() OVER (PARTITION BY a.i ORDER BY ${ids}) FROM ${from.text} WHERE ${condition}`,
    `SELECT a.t, count(*) FILTER (WHERE ${condition}) FROM ${from.text} GROUP BY a.t`,
    `SELECT ${ids} FROM ${from.text} WHERE a.ts >= CURRENT_DATE - 1 AND ${condition}`,
  ]);
}
