/**
 * Generates random subqueries inside expressions. Most of them are correlated with the outer
 * query.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { aggregateOf, conditionOf, expressionOf, type Scope } from "./expressions.ts";
import { list, type Node, node, optional, textOf } from "./tree.ts";
import { type Column, SORTS, type Sort } from "./values.ts";
import { windowCallsOf } from "./windows.ts";

export interface Table {
  readonly name: string;
  readonly columns: readonly Column[];
}

interface Inner {
  /** The FROM and WHERE clauses of the inner query. */
  readonly body: Node;
  readonly alias: string;
  /** The scope of the inner query, without the outer columns. */
  readonly scope: Scope;
}

/** Returns a scope in which expressions may contain queries over the given tables. */
export function withQueries(tables: readonly Table[], scope: Scope, depth = 1): Scope {
  const inner = (sort: Sort): Node =>
    sort === "bool" && scope.chance.below(4) > 0
      ? conditionOver(tables, scope, depth)
      : scalarOver(sort, { tables, outer: scope, depth });
  return { ...scope, inner };
}

function scalarOver(
  sort: Sort,
  { depth, outer, tables }: { tables: readonly Table[]; outer: Scope; depth: number },
): Node {
  const { chance } = outer;
  const { alias, body, scope } = innerOf(tables, outer, depth);
  if (chance.below(2) === 0) {
    for (let tries = 0; tries < 8; tries += 1) {
      const aggregate = aggregateOf(scope);
      if (aggregate.sort === sort) return node(sort, "(SELECT ", aggregate.call, body, ")");
    }
  }
  const windows = chance.below(4) === 0 ? windowCallsOf(scope, { isUnique: true }) : undefined;
  const window = windows?.calls.find((call) => call.sort === sort);
  const output = window?.call ?? expressionOf(sort, 1, scope);
  const offset = chance.below(4) === 0 ? optional(" OFFSET 1") : "";
  const clause = window === undefined ? "" : (windows?.clause ?? "");
  return node(sort, "(SELECT ", output, body, clause, ` ORDER BY ${alias}.id LIMIT 1`, offset, ")");
}

function conditionOver(tables: readonly Table[], outer: Scope, depth: number): Node {
  const { chance } = outer;
  const { body, scope } = innerOf(tables, outer, depth);
  const sort = chance.pick(SORTS);
  const distinct = chance.below(4) === 0 ? "DISTINCT " : "";
  switch (chance.below(5)) {
    case 0:
    case 1: {
      const not = chance.pick(["", "NOT "]);
      return node(
        "bool",
        `(${not}EXISTS (SELECT ${distinct}`,
        expressionOf(sort, 1, scope),
        body,
        "))",
      );
    }
    case 2:
    case 3: {
      const word = chance.pick([" IN ", " NOT IN "]);
      const left = expressionOf(sort, 1, outer);
      const output = expressionOf(sort, 1, scope);
      if (chance.below(4) > 0) {
        return node("bool", "(", left, word, `(SELECT ${distinct}`, output, body, "))");
      }
      const other = chance.pick(SORTS);
      const row = list("row", [left, expressionOf(other, 1, outer)], 2);
      const outputs = list("row", [output, expressionOf(other, 1, scope)], 2);
      return node("bool", "((", row, ")", word, "(SELECT ", outputs, body, "))");
    }
    default: {
      const op = chance.pick(["=", "<>", "<", "<=", ">", ">="]);
      const quantifier = chance.pick(["ANY", "ALL", "SOME"]);
      const pieces = [` ${op} ${quantifier} (SELECT `, expressionOf(sort, 1, scope), body, "))"];
      return node("bool", "(", expressionOf(sort, 1, outer), ...pieces);
    }
  }
}

/** Returns a LATERAL item for FROM, which reads the items before it. */
export function lateralOf(
  tables: readonly Table[],
  outer: Scope,
  alias: string,
): { item: Node; columns: readonly Column[] } {
  const { chance } = outer;
  const { alias: inner, body, scope } = innerOf(tables, outer, 2);
  const sorts = [chance.pick(SORTS), chance.pick(SORTS)];
  const outputs = sorts.map((sort, i) =>
    node("output", expressionOf(sort, 1, scope), ` AS x${i + 1}`),
  );
  const cut = chance.below(2) === 0 ? optional(` ORDER BY ${inner}.id LIMIT 2`) : "";
  return {
    item: node("item", "LATERAL (SELECT ", list("items", outputs, 2), body, cut, `) AS ${alias}`),
    columns: sorts.map((sort, i) => ({ name: `${alias}.x${i + 1}`, sort })),
  };
}

/** Returns `WITH name (id, …) AS (…)`, and the table that it defines. */
export function withEntryOf(
  tables: readonly Table[],
  chance: Chance,
  name: string,
): { entry: Node; table: Table } {
  const hint = chance.pick(["", "", " MATERIALIZED", " NOT MATERIALIZED"]);
  const { head, query, table } = derivedOf(tables, chance, name);
  return { entry: node("entry", `${head} AS${hint} (`, query, ")"), table };
}

/** Returns `CREATE VIEW name (id, …) AS …`, and the table that it defines. */
export function viewOf(
  tables: readonly Table[],
  chance: Chance,
  name: string,
): { sql: string; table: Table } {
  const { head, query, table } = derivedOf(tables, chance, name);
  return { sql: `CREATE VIEW ${head} AS ${textOf(query)}`, table };
}

/** Returns a query over a table that preserves the table's key, and the table that it yields. */
function derivedOf(
  tables: readonly Table[],
  chance: Chance,
  name: string,
): { head: string; query: Node; table: Table } {
  const table = chance.pick(tables);
  const columns = table.columns.map((column) => ({ ...column, name: `q9.${column.name}` }));
  const scope: Scope = { chance, columns };
  const sorts = Array.from({ length: 1 + chance.below(3) }, () => chance.pick(SORTS));
  const outputs = [node("output", "q9.id"), ...sorts.map((sort) => expressionOf(sort, 1, scope))];
  const where =
    chance.below(2) === 0 ? "" : optional(" WHERE ", conditionOf(2, withQueries(tables, scope)));
  const names = sorts.map((_, i) => `w${i + 1}`);
  const items = list("items", outputs, outputs.length);
  return {
    head: `${name} (id, ${names.join(", ")})`,
    query: node("derived", "SELECT ", items, ` FROM ${table.name} AS q9`, where),
    table: {
      name,
      columns: [
        { name: "id", sort: "int" },
        ...sorts.map((sort, i) => ({ name: `w${i + 1}`, sort })),
      ],
    },
  };
}

function innerOf(tables: readonly Table[], outer: Scope, depth: number): Inner {
  const { chance } = outer;
  const table = chance.pick(tables);
  const alias = `e${depth}${chance.below(1000)}`;
  const columns = table.columns.map(({ name, sort }) => ({ name: `${alias}.${name}`, sort }));
  const plain: Scope = { chance, columns };
  const scope = depth < 2 && chance.below(3) === 0 ? withQueries(tables, plain, depth + 1) : plain;
  const conditions: Node[] = [];
  const pair = chance.below(4) > 0 ? equalityOf(columns, outer.columns, chance) : undefined;
  if (pair !== undefined) conditions.push(pair);
  if (chance.below(3) === 0) conditions.push(conditionOf(2, scope));
  if (chance.below(4) === 0) {
    const both = { ...scope, columns: [...columns, ...outer.columns] };
    conditions.push(conditionOf(2, both));
  }
  const where =
    conditions.length === 0 ? "" : optional(" WHERE ", list("conditions", conditions, 1, " AND "));
  return { body: node("body", ` FROM ${table.name} AS ${alias}`, where), alias, scope };
}

function equalityOf(
  inner: readonly Column[],
  outer: readonly Column[],
  chance: Chance,
): Node | undefined {
  const pairs = inner.flatMap((one) =>
    outer.filter(({ sort }) => sort === one.sort).map((other) => [one.name, other.name] as const),
  );
  if (pairs.length === 0) return undefined;
  const [left, right] = chance.pick(pairs);
  return chance.below(2) === 0
    ? node("bool", `${left} = ${right}`)
    : node("bool", `${right} = ${left}`);
}
