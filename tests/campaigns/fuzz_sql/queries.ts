/**
 * Generates random SELECT statements in the common subset of SQL. A statement with a LIMIT orders
 * its rows completely, so that both sides must choose the same rows.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { aggregateOf, conditionOf, expressionOf, type Scope } from "./expressions.ts";
import { lateralOf, type Table, withEntryOf, withQueries } from "./subqueries.ts";
import { tableCallOf } from "./table_functions.ts";
import { list, type Node, node, optional, textOf } from "./tree.ts";
import { type Column, literalOf, SORTS, type Sort, typeNameOf } from "./values.ts";
import { columnsOfNodes, ORDERS, windowCallsOf } from "./windows.ts";

/** A statement, with the way in which its rows may be compared. */
export interface Query {
  readonly root: Node;
  readonly isOrdered: boolean;
}

export interface FromItem {
  readonly item: Node;
  readonly columns: readonly Column[];
}

/** Returns a random sort of expression by which both sides can order and group. */
function anySort(chance: Chance): Sort {
  return chance.pick(SORTS);
}

/**
 * Returns a random query.
 * @param depth The maximum nesting depth of derived tables.
 */
export function queryOf(tables: readonly Table[], chance: Chance, depth = 1): Query {
  if (depth === 1 && chance.below(6) === 0) return withQueryOf(tables, chance);
  if (chance.below(5) === 0) return setQueryOf(tables, chance);
  const { item, columns } = fromOf(tables, chance, depth);
  const scope: Scope = { chance, columns };
  const inner = chance.below(2) === 0 ? scope : withQueries(tables, scope);
  const where =
    chance.below(3) === 0 ? "" : optional(" WHERE ", conditionOf(2 + chance.below(2), inner));
  const block = { from: item, where, scope, inner };
  return chance.below(3) === 0 ? groupedQuery(block) : plainQuery(block);
}

/** Returns a query that reads WITH entries in addition to the tables. */
function withQueryOf(tables: readonly Table[], chance: Chance): Query {
  const first = withEntryOf(tables, chance, "w1");
  const second = withEntryOf([...tables, first.table], chance, "w2");
  const entries = list("entries", [first.entry, second.entry]);
  const all = [...tables.slice(0, 1), first.table, second.table];
  const { isOrdered, root } = queryOf(all, chance, 2);
  return { root: node("query", "WITH ", entries, " ", ...root.pieces), isOrdered };
}

/** Returns UNION, INTERSECT or EXCEPT over blocks whose columns have the same sorts. */
function setQueryOf(tables: readonly Table[], chance: Chance): Query {
  const sorts = Array.from({ length: 1 + chance.below(3) }, () => anySort(chance));
  const root = setOf(tables, { chance, sorts, depth: 2 });
  if (chance.below(2) === 0) return { root, isOrdered: false };
  const ordinals = sorts.map((_, i) => node("key", String(i + 1), chance.pick(ORDERS)));
  const tail = cut(list("keys", ordinals), chance);
  return { root: node("query", ...root.pieces, tail), isOrdered: true };
}

interface SetOptions {
  readonly chance: Chance;
  readonly sorts: readonly Sort[];
  readonly depth: number;
}

function setOf(tables: readonly Table[], options: SetOptions): Node {
  const { chance, depth } = options;
  const side = (): Node =>
    depth > 0 && chance.below(4) === 0
      ? node("query", "(", setOf(tables, { ...options, depth: depth - 1 }), ")")
      : blockOf(tables, options);
  const word = chance.pick([" UNION ", " INTERSECT ", " EXCEPT "]);
  const all = chance.below(2) === 0 ? "ALL " : "";
  const more =
    chance.below(4) === 0 ? optional(chance.pick([" UNION ALL ", " INTERSECT "]), side()) : "";
  return node("query", side(), word, all, side(), more);
}

function blockOf(tables: readonly Table[], { chance, sorts }: SetOptions): Node {
  const { columns, item } = fromOf(tables, chance, 0);
  const scope: Scope = { chance, columns };
  const outputs = sorts.map((sort) => expressionOf(sort, chance.below(2), scope));
  const where =
    chance.below(2) === 0 ? "" : optional(" WHERE ", conditionOf(2, withQueries(tables, scope)));
  const distinct = chance.below(5) === 0 ? optional("DISTINCT ") : "";
  return node("query", "SELECT ", distinct, list("outputs", outputs), " FROM ", item, where);
}

interface Block {
  readonly from: Node;
  readonly where: Node | string;
  readonly scope: Scope;
  /**
   * The scope without subqueries, for expressions that must be repeated exactly. Two equal
   * subqueries never count as the same expression.
   */
  readonly inner: Scope;
}

function plainQuery({ from, inner, scope, where }: Block): Query {
  const { chance } = scope;
  const kind = chance.below(6);
  const outputs = Array.from({ length: 1 + chance.below(4) }, () =>
    expressionOf(anySort(chance), chance.below(4), kind <= 1 ? scope : inner),
  );
  if (kind === 0) {
    const on = expressionOf(anySort(chance), 1, scope);
    const tail = orderOf([on, ...outputs], chance);
    const pieces = ["SELECT DISTINCT ON (", on, ") ", list("outputs", outputs), " FROM ", from];
    return { root: node("query", ...pieces, where, tail.node), isOrdered: true };
  }
  const distinct = kind === 1 ? optional("DISTINCT ") : "";
  const windows = chance.below(3) === 0 ? windowCallsOf(scope, { isUnique: true }) : undefined;
  for (const { call, sort } of windows?.calls ?? []) {
    outputs.push(overAggregate(call, sort, chance));
  }
  const tail = tailOf(outputs, kind === 1 ? [] : [expressionOf(anySort(chance), 2, scope)], chance);
  const pieces = ["SELECT ", distinct, list("outputs", outputs), " FROM ", from, where];
  const root = node("query", ...pieces, windows?.clause ?? "", tail.node);
  return { root, isOrdered: tail.isOrdered };
}

function groupedQuery({ from, scope, where }: Block): Query {
  const { chance } = scope;
  const hasSets = chance.below(4) === 0;
  const keys = Array.from({ length: hasSets ? 1 + chance.below(3) : chance.below(3) }, () => {
    // PostgreSQL does not set a constant expression to NULL in a grouping set that omits it, so
    // the keys must be columns.
    const column = chance.pick(scope.columns);
    if (hasSets) return { sort: column.sort, key: node(column.sort, column.name) };
    const sort = anySort(chance);
    return { sort, key: expressionOf(sort, chance.below(3), scope) };
  });
  const outputs: Node[] = keys.map(({ key }) => key);
  const calls = Array.from({ length: 1 + chance.below(3) }, () => aggregateOf(scope));
  for (const { call, sort } of calls) outputs.push(overAggregate(call, sort, chance));
  const groupBy = keys.map(({ key }, i) => (chance.below(3) === 0 ? String(i + 1) : key));
  const groupList = hasSets
    ? groupingSetsOf(
        keys.map(({ key }) => key),
        chance,
      )
    : undefined;
  const group =
    keys.length === 0 ? "" : node("group", " GROUP BY ", groupList ?? list("keys", groupBy));
  if (hasSets) {
    const count = 1 + chance.below(keys.length);
    const args = keys.slice(0, count).map(({ key }) => key);
    outputs.push(node("int", "GROUPING(", list("args", args), ")"));
  }
  const windows =
    chance.below(4) === 0 ? windowsOverGroups([...keys, ...calls], chance, hasSets) : undefined;
  for (const { call } of windows?.calls ?? []) outputs.push(call);
  const { call } = aggregateOf(scope);
  const having =
    chance.below(3) === 0
      ? optional(" HAVING (", call, chance.pick([") IS NOT NULL", ") IS NULL"]))
      : "";
  const tail = tailOf(outputs, [aggregateOf(scope).call], chance);
  const pieces = ["SELECT ", list("outputs", outputs), " FROM ", from, where, group, having];
  const root = node("query", ...pieces, windows?.clause ?? "", tail.node);
  return { root, isOrdered: tail.isOrdered };
}

type GroupPart = { readonly sort: Sort } & ({ readonly key: Node } | { readonly call: Node });

/**
 * Returns window calls over the rows of a grouped query. The calls read the query's keys and
 * aggregates.
 */
function windowsOverGroups(
  parts: readonly GroupPart[],
  chance: Chance,
  hasSets: boolean,
): ReturnType<typeof windowCallsOf> {
  const columns = columnsOfNodes(
    parts.map((part) => ({ sort: part.sort, text: textOf("key" in part ? part.key : part.call) })),
  );
  return windowCallsOf({ chance, columns }, { isUnique: !hasSets });
}

function groupingSetsOf(keys: readonly Node[], chance: Chance): Node {
  const [first = "", ...others] = keys;
  const rest = others.length === 0 ? [first] : others;
  switch (chance.below(5)) {
    case 0:
      return node("sets", "ROLLUP (", list("keys", keys), ")");
    case 1:
      return node("sets", "CUBE (", list("keys", keys), ")");
    case 2: {
      const sets = [...keys, "()"].map((key) => node("set", key));
      return node("sets", "GROUPING SETS (", list("keys", sets), ")");
    }
    case 3:
      return node("sets", first, ", ROLLUP (", list("keys", rest), ")");
    default: {
      const all = node("set", "(", list("keys", keys), ")");
      return node("sets", "GROUPING SETS (", all, ", ROLLUP (", list("keys", rest), "))");
    }
  }
}

function overAggregate(call: Node, sort: Sort, chance: Chance): Node {
  switch (chance.below(5)) {
    case 0:
      return node("bool", "(", call, ") IS NULL");
    case 1:
      return sort === "int" ? node("int", "((", call, ") + 1)") : call;
    case 2:
      return node(sort, "COALESCE((", call, "), ", literalOf(sort, chance), ")");
    default:
      return call;
  }
}

interface Tail {
  readonly node: Node | string;
  readonly isOrdered: boolean;
}

/**
 * Returns random ORDER BY and LIMIT clauses, or nothing.
 * @param others Further expressions to order by.
 */
function tailOf(outputs: readonly Node[], others: readonly Node[], chance: Chance): Tail {
  switch (chance.below(4)) {
    case 0:
      return { node: "", isOrdered: false };
    case 1: {
      const items = [...others, ...outputs].map((key) => node("key", key, chance.pick(ORDERS)));
      return { node: optional(" ORDER BY ", list("keys", items)), isOrdered: false };
    }
    case 2: {
      const ordinals = outputs.map((_, i) => node("key", String(i + 1), chance.pick(ORDERS)));
      const keys = [...others.map((other) => node("key", other)), ...ordinals];
      return { node: cut(list("keys", keys), chance), isOrdered: true };
    }
    default:
      return orderOf(outputs, chance);
  }
}

function orderOf(outputs: readonly Node[], chance: Chance): { node: Node; isOrdered: true } {
  const items = outputs.map((key) => node("key", key, chance.pick(ORDERS)));
  return { node: cut(list("keys", items), chance), isOrdered: true };
}

function cut(keys: Node, chance: Chance): Node {
  const limit = chance.below(3) === 0 ? optional(` LIMIT ${chance.below(9)}`) : "";
  const offset = chance.below(4) === 0 ? optional(` OFFSET ${chance.below(5)}`) : "";
  const fetch = limit === "" && offset === "" && chance.below(6) === 0;
  const ties = fetch ? optional(` FETCH FIRST ${1 + chance.below(5)} ROWS WITH TIES`) : "";
  return node("tail", " ORDER BY ", keys, limit, offset, ties);
}

/** Returns the items of FROM: tables, values, queries and table functions, joined or not. */
export function fromOf(tables: readonly Table[], chance: Chance, depth: number): FromItem {
  let from = itemOf({ tables, chance, depth, number: 1 });
  const joinCount = [0, 0, 0, 1, 1, 2][chance.below(6)] ?? 0;
  for (let number = 2; number < 2 + joinCount; number += 1) {
    if (chance.below(4) === 0) {
      const before: Scope = { chance, columns: from.columns };
      const { columns, item } =
        chance.below(2) === 0
          ? tableCallOf(before, `q${number}`)
          : lateralOf(tables, before, `q${number}`);
      const [word, on] = chance.pick([
        [", ", ""],
        [" CROSS JOIN ", ""],
        [" LEFT JOIN ", " ON TRUE"],
      ] as const);
      const all = [...from.columns, ...columns];
      from = { item: node("from", from.item, word, item, on), columns: all };
      continue;
    }
    from = joinOf(from, itemOf({ tables, chance, depth, number }), chance);
  }
  return from;
}

function joinOf(left: FromItem, right: FromItem, chance: Chance): FromItem {
  const columns = [...left.columns, ...right.columns];
  const word = chance.pick([
    " JOIN ",
    " LEFT JOIN ",
    " INNER JOIN ",
    " LEFT OUTER JOIN ",
    " RIGHT JOIN ",
    " FULL JOIN ",
  ]);
  switch (chance.below(7)) {
    case 6: {
      const natural = chance.pick([
        " NATURAL JOIN ",
        " NATURAL LEFT JOIN ",
        " NATURAL RIGHT JOIN ",
        " NATURAL FULL JOIN ",
      ]);
      return { item: node("from", left.item, natural, right.item), columns };
    }
    case 0:
      return { item: node("from", left.item, ", ", right.item), columns };
    case 1:
      return { item: node("from", left.item, " CROSS JOIN ", right.item), columns };
    case 2: {
      const shared = bareNames(left).filter((name) => bareNames(right).includes(name));
      const name = shared[chance.below(Math.max(shared.length, 1))];
      const sorted = columns.find((column) => column.name.endsWith(`.${name}`));
      if (name === undefined || sorted === undefined) break;
      if (chance.below(3) === 0 && shared.length === new Set(bareNames(left)).size) break;
      const item = node("from", left.item, word, right.item, ` USING (${name})`);
      return { item, columns: [...columns, { name, sort: sorted.sort }] };
    }
    default:
      break;
  }
  const scope: Scope = { chance, columns };
  if (word === " FULL JOIN ") {
    // PostgreSQL accepts only equalities as the condition of a full join.
    const on = plainEqualityOf(left, right, chance);
    return { item: node("from", left.item, word, right.item, " ON ", on), columns };
  }
  const on = chance.below(3) === 0 ? conditionOf(2, scope) : equalityOf(left, right, scope);
  return { item: node("from", left.item, word, right.item, " ON ", on), columns };
}

/**
 * Returns the column names that occur in only one table of an item, so that USING can refer to
 * them.
 */
function bareNames({ columns }: FromItem): string[] {
  const names = columns.flatMap(({ name }) =>
    name.includes(".") ? [name.split(".")[1] ?? ""] : [],
  );
  return names.filter((name) => names.indexOf(name) === names.lastIndexOf(name));
}

function equalityOf(left: FromItem, right: FromItem, scope: Scope): Node {
  const { chance } = scope;
  const one = chance.pick(left.columns);
  const partners = right.columns.filter(({ sort }) => sort === one.sort);
  if (partners.length === 0) return conditionOf(1, scope);
  const equality = node("bool", one.name, " = ", chance.pick(partners).name);
  if (chance.below(2) === 0) return equality;
  return node("bool", "(", equality, " AND ", conditionOf(1, scope), ")");
}

function plainEqualityOf(left: FromItem, right: FromItem, chance: Chance): string {
  const one = chance.pick(left.columns);
  const partners = right.columns.filter(({ sort }) => sort === one.sort);
  return partners.length === 0 ? "TRUE" : `${one.name} = ${chance.pick(partners).name}`;
}

interface ItemOptions {
  readonly tables: readonly Table[];
  readonly chance: Chance;
  readonly depth: number;
  readonly number: number;
}

function itemOf({ chance, depth, number, tables }: ItemOptions): FromItem {
  const alias = `q${number}`;
  const kind = chance.below(9);
  if (kind === 0) return valuesOf(alias, chance);
  if (kind === 2) return tableCallOf({ chance, columns: [] }, alias);
  if (kind === 1 && depth > 0) {
    const { item, columns } = fromOf(tables, chance, depth - 1);
    const scope: Scope = { chance, columns };
    const sorts = Array.from({ length: 1 + chance.below(3) }, () => anySort(chance));
    const values = sorts.map((sort) => expressionOf(sort, 2, scope));
    const windows = chance.below(4) === 0 ? windowCallsOf(scope, { isUnique: true }) : undefined;
    for (const { call, sort } of windows?.calls ?? []) {
      sorts.push(sort);
      values.push(call);
    }
    const outputs = values.map((value, i) => node("output", value, ` AS x${i + 1}`));
    const where = chance.below(2) === 0 ? "" : optional(" WHERE ", conditionOf(2, scope));
    const ordinals = sorts.map((_, i) => String(i + 1)).join(", ");
    const tail = chance.below(3) === 0 ? optional(` ORDER BY ${ordinals} LIMIT 5`) : "";
    const distinct = chance.below(4) === 0 ? optional("DISTINCT ") : "";
    const pieces = ["(SELECT ", distinct, list("outputs", outputs), " FROM ", item, where];
    pieces.push(windows?.clause ?? "", tail);
    return {
      item: node("item", ...pieces, `) AS ${alias}`),
      columns: sorts.map((sort, i) => ({ name: `${alias}.x${i + 1}`, sort })),
    };
  }
  const table = chance.pick(tables);
  return {
    item: node("item", `${table.name} AS ${alias}`),
    columns: table.columns.map(({ name, sort }) => ({ name: `${alias}.${name}`, sort })),
  };
}

function valuesOf(alias: string, chance: Chance): FromItem {
  const sorts = Array.from({ length: 1 + chance.below(3) }, () => anySort(chance));
  const rows = Array.from({ length: 1 + chance.below(4) }, () => {
    const cells = sorts.map((sort) =>
      chance.below(4) === 0 ? `NULL::${typeNameOf(sort)}` : literalOf(sort, chance),
    );
    return node("row", `(${cells.join(", ")})`);
  });
  const names = sorts.map((_, i) => `v${i + 1}`);
  return {
    item: node("item", "(VALUES ", list("rows", rows), `) AS ${alias}(${names.join(", ")})`),
    columns: sorts.map((sort, i) => ({ name: `${alias}.v${i + 1}`, sort })),
  };
}
