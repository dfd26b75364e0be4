/**
 * Generates random queries of every class that can be materialised.
 *
 * Most of them belong to the classes that are maintained change by change: equality joins, groups
 * and windows of ORDER BY … LIMIT. A query with a LIMIT orders its rows completely, because two
 * evaluations at one seq could otherwise choose different rows. Every table in FROM has an alias,
 * so that `queryAsOf` finds it.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { aggregateOf, conditionOf, expressionOf, type Scope } from "../fuzz_sql/expressions.ts";
import { queryOf } from "../fuzz_sql/queries.ts";
import type { Table } from "../fuzz_sql/subqueries.ts";
import { textOf } from "../fuzz_sql/tree.ts";
import { type Column, SORTS } from "../fuzz_sql/values.ts";
import { ORDERS, windowCallsOf } from "../fuzz_sql/windows.ts";

export interface FuzzQuery {
  readonly sql: string;
  /**
   * Queries that have the same text but different parameters, so that the server follows them
   * together.
   */
  readonly parameters: readonly (readonly unknown[])[];
}

/** The tables and views that a query may read. */
export interface Sources {
  readonly chance: Chance;
  readonly tables: readonly Table[];
  readonly views: readonly Table[];
}

const NO_PARAMETERS: FuzzQuery["parameters"] = [[]];
const INNER_JOINS = [" JOIN ", " INNER JOIN "];
const ALL_JOINS = [" JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN "];

/** The classes of queries, with the weight of each. */
const CLASSES: readonly (readonly [weight: number, make: (sources: Sources) => FuzzQuery])[] = [
  [4, (sources) => plain(joinQuery(sources, INNER_JOINS))],
  [3, (sources) => plain(joinQuery(sources, ALL_JOINS))],
  [2, (sources) => plain(joinQuery(onlyFirst(sources), ALL_JOINS))],
  [1, (sources) => plain(mergingQuery(sources))],
  [5, (sources) => plain(groupQuery(sources))],
  [4, (sources) => plain(windowOfRows(sources))],
  [2, (sources) => plain(distinctQuery(sources))],
  [4, (sources) => plain(setQuery(sources))],
  [3, (sources) => plain(matchQuery(sources))],
  [2, (sources) => plain(scalarQuery(sources))],
  [2, (sources) => plain(lateralQuery(sources))],
  [2, (sources) => plain(windowQuery(sources))],
  [4, (sources) => plain(partitionQuery(sources))],
  [1, (sources) => plain(withQuery(sources))],
  [1, (sources) => plain(recursiveQuery(sources))],
  [2, (sources) => plain(callerQuery(sources))],
  [4, parameterQuery],
  [3, ({ chance, tables, views }) => plain(textOf(queryOf([...tables, ...views], chance).root))],
];

const WEIGHT = CLASSES.reduce((sum, [weight]) => sum + weight, 0);

/** Returns a random query. */
export function fuzzQueryOf(sources: Sources): FuzzQuery {
  let left = sources.chance.below(WEIGHT);
  for (const [weight, make] of CLASSES) {
    if (left < weight) return make(sources);
    left -= weight;
  }
  throw new Error("the weights of the classes have another sum");
}

function plain(sql: string): FuzzQuery {
  return { sql, parameters: NO_PARAMETERS };
}

function onlyFirst({ tables, ...sources }: Sources): Sources {
  return { ...sources, tables: [sources.chance.pick(tables)], views: [] };
}

interface From {
  readonly text: string;
  readonly columns: readonly Column[];
  /** The keys of all tables, which together identify a row. */
  readonly ids: readonly string[];
}

/** Returns two or three tables, joined by equalities of their keys. */
function joined({ chance, tables, views }: Sources, words: readonly string[], countMax = 3): From {
  let from = itemOf(chance.below(6) === 0 ? [...tables, ...views] : tables, chance, "a");
  const count = countMax === 1 ? 1 : 2 + (chance.below(3) === 0 ? countMax - 2 : 0);
  for (const alias of ["b", "c"].slice(0, count - 1)) {
    const right = itemOf(tables, chance, alias);
    const word = chance.pick(words);
    const columns = [...from.columns, ...right.columns];
    const isUnequal = word !== " FULL JOIN " && chance.below(6) === 0;
    const conditions = [
      isUnequal ? inequality(from, right, chance) : equality(from, right, chance),
    ];
    if (chance.below(4) === 0 && !isUnequal) conditions.push(equality(from, right, chance));
    // PostgreSQL supports FULL JOIN only with equalities, so the generated queries use only these.
    if (chance.below(3) === 0 && word !== " FULL JOIN ") {
      conditions.push(textOf(conditionOf(1, { chance, columns })));
    }
    const text = `${from.text}${word}${right.text} ON ${conditions.join(" AND ")}`;
    from = { text, columns, ids: [...from.ids, ...right.ids] };
  }
  return from;
}

function itemOf(tables: readonly Table[], chance: Chance, alias: string): From {
  const { columns, name } = chance.pick(tables);
  return {
    text: `${name} AS ${alias}`,
    columns: columns.map(({ name: column, sort }) => ({ name: `${alias}.${column}`, sort })),
    ids: [`${alias}.id`],
  };
}

/** Returns an equality of two columns, usually of keys that an index can serve. */
function equality(left: From, right: From, chance: Chance): string {
  if (chance.below(4) > 0) {
    const of = ({ ids }: From): string => {
      const alias = chance.pick(ids).split(".")[0] ?? "";
      return `${alias}.${chance.pick(["id", "i", "j"])}`;
    };
    return `${of(left)} = ${of(right)}`;
  }
  const sort = chance.pick(["text", "bool", "int"] as const);
  const of = (from: From): readonly Column[] => from.columns.filter((each) => each.sort === sort);
  const [ours, theirs] = [of(left), of(right)];
  if (ours.length === 0 || theirs.length === 0) return `${left.ids.at(-1)} = ${right.ids[0]}`;
  return `${chance.pick(ours).name} = ${chance.pick(theirs).name}`;
}

/** Returns a comparison that neither a key nor an index serves. */
function inequality(left: From, right: From, chance: Chance): string {
  const alias = chance.pick(left.ids).split(".")[0] ?? "";
  const [ours, theirs] = [chance.pick(["id", "i", "j"]), chance.pick(["id", "i", "j"])];
  return `${alias}.${ours} ${chance.pick(["<", ">=", "<>"])} ${right.ids[0]?.split(".")[0]}.${theirs}`;
}

function scopeOf({ columns }: From, chance: Chance): Scope {
  return { chance, columns };
}

function where(from: From, chance: Chance): string {
  if (chance.below(2) === 0) return "";
  return ` WHERE ${textOf(conditionOf(1 + chance.below(2), scopeOf(from, chance)))}`;
}

/** Returns columns and expressions for a select list, with or without the keys. */
function outputs(from: From, chance: Chance): string[] {
  const list = Array.from({ length: 1 + chance.below(3) }, () =>
    chance.below(3) > 0
      ? chance.pick(from.columns).name
      : textOf(expressionOf(chance.pick(SORTS), 2, scopeOf(from, chance))),
  );
  return chance.below(2) === 0 ? [...from.ids, ...list] : list;
}

function joinQuery(sources: Sources, words: readonly string[]): string {
  const { chance } = sources;
  const from = joined(sources, words);
  const order = chance.below(3) === 0 ? ` ORDER BY ${chance.pick(from.columns).name}` : "";
  return `SELECT ${outputs(from, chance).join(", ")} FROM ${from.text}${where(from, chance)}${order}`;
}

/** Returns a full join in which USING merges columns. */
function mergingQuery({ chance, tables }: Sources): string {
  const [left, right] = [itemOf(tables, chance, "a"), itemOf(tables, chance, "b")];
  const names = chance.pick([["id"], ["i"], ["t"], ["id", "i"]]);
  const list = [...names, ...chance.pick([[], ["a.id", "b.id"]]), "coalesce(a.u, b.u)"];
  const condition = chance.below(2) === 0 ? "" : ` WHERE ${names[0]} IS NOT NULL`;
  return `SELECT ${list.join(", ")} FROM ${left.text} FULL JOIN ${right.text} USING (${names.join(", ")})${condition}`;
}

/** Aggregates that can be updated when a row is removed. */
const REMOVING_AGGREGATES: readonly string[] = [
  "count(*)",
  "count(a.t)",
  "sum(a.j)",
  "avg(a.m)",
  "min(a.j)",
  "max(a.j)",
  "min(a.id)",
  "max(a.u)",
  "min(a.ts)",
  "bool_or(a.b)",
];

/** Aggregates whose value does not depend on the order of the rows. */
const AGGREGATES: readonly string[] = [
  ...REMOVING_AGGREGATES,
  "count(DISTINCT a.i)",
  "sum(a.i)",
  "sum(a.m)",
  "avg(a.i)",
  "avg(a.m)",
  "min(a.i)",
  "max(a.i)",
  "min(a.t)",
  "max(a.ts)",
  "bool_and(a.b)",
  "bool_or(a.b)",
  "max(a.j) - min(a.j)",
  "string_agg(a.t, ',' ORDER BY a.id, a.t)",
  "array_agg(a.id ORDER BY a.id)",
  "count(*) FILTER (WHERE a.i > 1)",
  "sum(a.j) FILTER (WHERE a.b)",
  "coalesce(sum(a.j), 0) + count(*)",
];

function groupQuery(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, ALL_JOINS.slice(0, 2), chance.below(3) === 0 ? 2 : 1);
  const isSimple = chance.below(2) === 0;
  const keys = Array.from({ length: [0, 1, 1, 1, 2][chance.below(5)] ?? 1 }, () =>
    isSimple || chance.below(4) > 0
      ? chance.pick(["a.i", "a.j", "a.t", "a.b", "a.i % 3", "coalesce(a.t, 'none')"])
      : textOf(expressionOf(chance.pick(SORTS), 1, scopeOf(from, chance))),
  );
  const calls = Array.from({ length: 1 + chance.below(3) }, () => {
    if (isSimple) return chance.pick(REMOVING_AGGREGATES);
    if (chance.below(4) > 0) return chance.pick(AGGREGATES);
    return textOf(aggregateOf(scopeOf(from, chance)).call);
  });
  const group = keys.length === 0 ? "" : ` GROUP BY ${keys.map((_, i) => i + 1).join(", ")}`;
  const having = chance.below(3) === 0 ? ` HAVING count(*) > ${chance.below(3)}` : "";
  const list = [...keys, ...calls];
  const ordinals = list.map((_, i) => `${i + 1}${chance.pick(ORDERS)}`).toReversed();
  const order = chance.below(3) === 0 ? ` ORDER BY ${ordinals.join(", ")}${limitOf(chance)}` : "";
  return `SELECT ${list.join(", ")} FROM ${from.text}${where(from, chance)}${group}${having}${order}`;
}

function limitOf(chance: Chance): string {
  const offset = chance.below(3) === 0 ? ` OFFSET ${chance.below(6)}` : "";
  return `${chance.below(6) === 0 ? "" : ` LIMIT ${1 + chance.below(8)}`}${offset}`;
}

/** Returns a query for the first rows in some order, of one table or of a join. */
function windowOfRows(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, ALL_JOINS.slice(0, 2), chance.below(2) === 0 ? 1 : 2);
  const keys = Array.from({ length: 1 + chance.below(2) }, () =>
    chance.below(3) > 0
      ? chance.pick(from.columns).name
      : textOf(expressionOf(chance.pick(SORTS), 1, scopeOf(from, chance))),
  );
  const order = [...keys.map((key) => `${key}${chance.pick(ORDERS)}`), ...from.ids].join(", ");
  const list = outputs(from, chance).join(", ");
  return `SELECT ${list} FROM ${from.text}${where(from, chance)} ORDER BY ${order} LIMIT ${1 + chance.below(8)}${chance.below(3) === 0 ? ` OFFSET ${chance.below(6)}` : ""}`;
}

function distinctQuery(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, INNER_JOINS, chance.below(2) === 0 ? 1 : 2);
  if (chance.below(2) === 0) {
    return `SELECT DISTINCT ${outputs(from, chance).join(", ")} FROM ${from.text}${where(from, chance)}`;
  }
  const key = chance.pick(from.columns).name;
  const order = [key, chance.pick(from.columns).name, ...from.ids].join(", ");
  return `SELECT DISTINCT ON (${key}) ${outputs(from, chance).join(", ")} FROM ${from.text}${where(from, chance)} ORDER BY ${order}`;
}

function setQuery(sources: Sources): string {
  const { chance } = sources;
  const sorts = Array.from({ length: 1 + chance.below(2) }, () => chance.pick(SORTS));
  const isSimple = chance.below(2) === 0;
  const block = (): string => {
    const from = joined(sources, INNER_JOINS, isSimple ? 1 : 1 + chance.below(2));
    if (isSimple && chance.below(4) === 0) {
      const [call, group] = chance.pick([
        ["count(*)::int", ""],
        ["max(a.i)", ""],
        ["count(a.j)::int", " GROUP BY a.i % 3"],
      ] as const);
      return `SELECT ${call} FROM ${from.text}${where(from, chance)}${group}`;
    }
    const list = isSimple
      ? [`a.${chance.pick(["id", "i", "j"])}`]
      : sorts.map((sort) => textOf(expressionOf(sort, 1, scopeOf(from, chance))));
    return `SELECT ${list.join(", ")} FROM ${from.text}${where(from, chance)}`;
  };
  const word = chance.pick([
    "UNION",
    "UNION ALL",
    "INTERSECT",
    "INTERSECT ALL",
    "EXCEPT",
    "EXCEPT ALL",
  ]);
  const pair = `${block()} ${word} ${block()}`;
  return chance.below(4) === 0
    ? `(${pair}) ${chance.pick(["UNION", "EXCEPT ALL"])} ${block()}`
    : pair;
}

/** Returns a query for the rows that have, or do not have, a match in another table. */
function matchQuery(sources: Sources): string {
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

function scalarQuery(sources: Sources): string {
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

/** Returns a query for the first rows of another table for each row of a table. */
function lateralQuery(sources: Sources): string {
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

function windowQuery(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, INNER_JOINS, 1 + chance.below(2));
  const { calls, clause } = windowCallsOf(scopeOf(from, chance), { isUnique: true });
  const list = [...from.ids, ...calls.map(({ call }) => textOf(call))];
  const windows = typeof clause === "string" ? clause : textOf(clause);
  return `SELECT ${list.join(", ")} FROM ${from.text}${where(from, chance)}${windows}`;
}

/** Calls over the rows of a partition whose results do not depend on the order of equal rows. */
const PARTITION_CALLS: readonly string[] = [
  "row_number() OVER (PARTITION BY $ ORDER BY a.j DESC, a.id)",
  "sum(a.j) OVER (PARTITION BY $)",
  "count(*) OVER (PARTITION BY $)",
  "lag(a.u) OVER (PARTITION BY $ ORDER BY a.id)",
  "max(a.m) OVER (PARTITION BY $ ORDER BY a.id ROWS 2 PRECEDING)",
  "rank() OVER (PARTITION BY $, a.b ORDER BY a.j)",
];

/** Aggregates that cannot be updated when a row is removed. */
const KEPT_AGGREGATES: readonly string[] = [
  "string_agg(a.t, ',' ORDER BY a.id, a.t)",
  "array_agg(a.id ORDER BY a.id)",
  "count(DISTINCT a.j)",
  "sum(DISTINCT a.j)",
  "sum((a.j % 9)::double precision)",
];

/**
 * Returns a query whose rows depend on the other rows with the same key. An index often finds these
 * rows.
 */
function partitionQuery(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, INNER_JOINS, chance.below(3) === 0 ? 2 : 1);
  const key = chance.pick(["a.i", "a.j", "a.t"]);
  const some = (calls: readonly string[]): string =>
    Array.from({ length: 1 + chance.below(2) }, () => chance.pick(calls).replace("$", key)).join(
      ", ",
    );
  switch (chance.below(4)) {
    case 0:
      return `SELECT ${key}, ${some(KEPT_AGGREGATES)} FROM ${from.text}${where(from, chance)} GROUP BY ${key}`;
    case 1: {
      const order = [key, chance.pick(["a.m", "a.ts", "a.j DESC"]), ...from.ids].join(", ");
      return `SELECT DISTINCT ON (${key}) ${key}, ${from.ids.join(", ")}, a.u FROM ${from.text}${where(from, chance)} ORDER BY ${order}`;
    }
    default:
      return `SELECT ${from.ids.join(", ")}, ${some(PARTITION_CALLS)} FROM ${from.text}${where(from, chance)}`;
  }
}

function withQuery(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, INNER_JOINS, 1);
  const entry = `WITH n AS (SELECT a.i AS k, count(*) AS c FROM ${from.text}${where(from, chance)} GROUP BY a.i)`;
  const second = itemOf(sources.tables, chance, "b");
  const word = chance.pick([" JOIN ", " LEFT JOIN "]);
  return `${entry} SELECT b.id, n.c FROM ${second.text}${word}n ON n.k = b.${chance.pick(["i", "j", "id"])}`;
}

/** Returns a query for the rows that are reachable from some rows by their join keys. */
function recursiveQuery({ chance, tables }: Sources): string {
  const { name } = chance.pick(tables);
  const [start, key] = [chance.pick(["i IS NULL", "id < 4", "b"]), chance.pick(["i", "j"])];
  return (
    `WITH RECURSIVE r(id, depth) AS (SELECT a.id, 0 FROM ${name} AS a WHERE a.${start} ` +
    `UNION SELECT c.id, r.depth + 1 FROM ${name} AS c JOIN r ON c.${key} = r.id WHERE r.depth < 4) ` +
    "SELECT id, min(depth) FROM r GROUP BY id"
  );
}

/** Returns a query whose rows depend on its caller. */
function callerQuery(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, INNER_JOINS, chance.below(2) === 0 ? 1 : 2);
  const own = "CASE CURRENT_USER() WHEN 'bob' THEN 'a' ELSE 'b' END";
  if (chance.below(3) === 0) {
    return `SELECT a.i, count(*), CURRENT_USER() FROM ${from.text} WHERE a.t = ${own} GROUP BY a.i`;
  }
  return `SELECT ${[...from.ids, "a.t"].join(", ")} FROM ${from.text} WHERE a.t = ${own} ORDER BY ${from.ids.join(", ")} LIMIT 9`;
}

/** Returns a query with a parameter, and several values for it. */
function parameterQuery(sources: Sources): FuzzQuery {
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
