/**
 * Generates random queries of every class that can be materialised.
 *
 * Most of the queries belong to the classes that are maintained incrementally: equality joins,
 * groups and ORDER BY … LIMIT. A query with a LIMIT orders its rows completely, because two
 * evaluations at the same seq could otherwise choose different rows.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { aggregateOf, expressionOf } from "../fuzz_sql/expressions.ts";
import { queryOf } from "../fuzz_sql/queries.ts";
import { textOf } from "../fuzz_sql/tree.ts";
import { SORTS } from "../fuzz_sql/values.ts";
import { ORDERS, windowCallsOf } from "../fuzz_sql/windows.ts";
import {
  ALL_JOINS,
  type FuzzQuery,
  INNER_JOINS,
  itemOf,
  joined,
  newestSeqIn,
  outputs,
  type Sources,
  scopeOf,
  where,
} from "./from.ts";
import {
  computedRowsQuery,
  correlatedQuery,
  derivedQuery,
  lateralQuery,
  matchQuery,
  pathsQuery,
  recursiveQuery,
  scalarQuery,
  topOfGroupsQuery,
  twiceQuery,
  withQuery,
} from "./nested_queries.ts";
import { callerQuery, clockQuery, parameterQuery, placedParameterQuery } from "./varied_queries.ts";

function onlyFirst({ tables, ...sources }: Sources): Sources {
  return { ...sources, tables: [sources.chance.pick(tables)], views: [] };
}

const NO_PARAMETERS: FuzzQuery["parameters"] = [[]];

/** The classes of queries, each with its weight in the random choice. */
const CLASSES: readonly (readonly [weight: number, make: (sources: Sources) => FuzzQuery])[] = [
  [4, (sources) => joinQuery(sources, INNER_JOINS)],
  [3, (sources) => joinQuery(sources, ALL_JOINS)],
  [2, (sources) => joinQuery(onlyFirst(sources), ALL_JOINS)],
  [1, (sources) => plain(mergingQuery(sources))],
  [8, groupQuery],
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
  [1, (sources) => plain(pathsQuery(sources))],
  [3, (sources) => plain(derivedQuery(sources))],
  [1, (sources) => plain(twiceQuery(sources))],
  [2, (sources) => plain(topOfGroupsQuery(sources))],
  [2, (sources) => plain(correlatedQuery(sources))],
  [1, (sources) => plain(computedRowsQuery(sources))],
  [4, (sources) => plain(callerQuery(sources))],
  [3, (sources) => plain(clockQuery(sources))],
  [4, parameterQuery],
  [2, placedParameterQuery],
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

/**
 * Returns a query, and the same query with the seq of each row's newest table row.
 *
 * @param seq The seq as an item of the select list; undefined if the query cannot return it.
 */
function withSeqs(list: readonly string[], rest: string, seq: string | undefined): FuzzQuery {
  const written = (items: readonly string[]): string => `SELECT ${items.join(", ")} ${rest}`;
  // If the select list contains a query, the first rows have the seq of the last commit.
  const isFixed = seq === undefined || list.some((item) => /\bSELECT\b/.test(item));
  return { ...plain(written(list)), seqSql: isFixed ? undefined : written([...list, seq]) };
}

function joinQuery(sources: Sources, words: readonly string[]): FuzzQuery {
  const { chance } = sources;
  const from = joined(sources, words);
  const order = chance.below(3) === 0 ? ` ORDER BY ${chance.pick(from.columns).name}` : "";
  const list = outputs(from, chance);
  return withSeqs(list, `FROM ${from.text}${where(from, chance)}${order}`, newestSeqIn(from));
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

/** Aggregates whose result does not depend on the order of the rows. */
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

function groupQuery(sources: Sources): FuzzQuery {
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
  const newest = newestSeqIn(from);
  return withSeqs(
    list,
    `FROM ${from.text}${where(from, chance)}${group}${having}${order}`,
    newest === undefined ? undefined : `max(${newest})`,
  );
}

function limitOf(chance: Chance): string {
  const offset = chance.below(3) === 0 ? ` OFFSET ${chance.below(6)}` : "";
  return `${chance.below(6) === 0 ? "" : ` LIMIT ${1 + chance.below(8)}`}${offset}`;
}

/** Returns a query for the first rows, in some order, of a table or a join. */
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

function windowQuery(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, INNER_JOINS, 1 + chance.below(2));
  const { calls, clause } = windowCallsOf(scopeOf(from, chance), { isUnique: true });
  const list = [...from.ids, ...calls.map(({ call }) => textOf(call))];
  const windows = typeof clause === "string" ? clause : textOf(clause);
  return `SELECT ${list.join(", ")} FROM ${from.text}${where(from, chance)}${windows}`;
}

/** Window calls whose results do not depend on the order of equal rows. */
const PARTITION_CALLS: readonly string[] = [
  "row_number() OVER (PARTITION BY $ ORDER BY a.j DESC, {ids})",
  "sum(a.j) OVER (PARTITION BY $)",
  "count(*) OVER (PARTITION BY $)",
  "lag(a.u) OVER (PARTITION BY $ ORDER BY {ids})",
  "max(a.m) OVER (PARTITION BY $ ORDER BY {ids} ROWS 2 PRECEDING)",
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
 * Returns a query in which each row depends on the other rows with the same key. An index can
 * often find these rows.
 */
function partitionQuery(sources: Sources): string {
  const { chance } = sources;
  const from = joined(sources, INNER_JOINS, chance.below(3) === 0 ? 2 : 1);
  const key = chance.pick(["a.i", "a.j", "a.t"]);
  const some = (calls: readonly string[]): string =>
    Array.from({ length: 1 + chance.below(2) }, () =>
      chance.pick(calls).replace("$", key).replace("{ids}", from.ids.join(", ")),
    ).join(", ");
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
