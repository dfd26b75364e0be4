/**
 * Generates random INSERT, UPDATE, DELETE and MERGE statements, and WITH statements that change
 * rows. Keys often collide. If several rows could affect the outcome, either only one of them
 * exists, or no column in which they differ is read.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { conditionOf, expressionOf, type Scope } from "./expressions.ts";
import type { MadeIndex } from "./indexes.ts";
import { type Table, withEntryOf, withQueries } from "./subqueries.ts";
import { list, type Node, node, optional } from "./tree.ts";
import { type Column, type ColumnType, cellOf, literalOf } from "./values.ts";

/** A stored table. Its key `id` is not among `columns`. */
export interface StoredTable {
  readonly name: string;
  readonly columns: readonly ColumnType[];
  /** The indexes created since a column was last dropped, renamed or given a different type. */
  readonly indexes?: readonly MadeIndex[];
  /** The names of all indexes that may exist. */
  readonly indexNames?: readonly string[];
}

const ID: Column = { name: "id", sort: "int" };
const KEYS = 30;

export function columnsOf(table: StoredTable): readonly Column[] {
  return [ID, ...table.columns];
}

/** Returns a random change, sometimes with RETURNING. */
export function changeOf(tables: readonly StoredTable[], chance: Chance): Node {
  const table = chance.pick(tables);
  switch (chance.below(9)) {
    case 0:
    case 1:
    case 2:
      return insertOf(table, tables, chance);
    case 3:
    case 4:
      return updateOf(table, tables, chance);
    case 5:
    case 6:
      return mergeOf(table, tables, chance);
    case 7:
      return partedOf(table, tables, chance);
    default:
      return deleteOf(table, tables, chance);
  }
}

/** Returns a MERGE in which no two source rows match the same target row. */
function mergeOf(table: StoredTable, tables: readonly StoredTable[], chance: Chance): Node {
  const { columns, item, on } =
    chance.below(3) > 0 ? keyedValues(chance) : wholeTable(chance.pick(tables));
  const own = qualified(columnsOf(table), "w");
  const source: Scope = { chance, columns };
  const both: Scope = { chance, columns: [...own, ...columns] };
  const given = (scope: Scope): Node => optional(" AND ", conditionOf(1, scope));
  const clauses: Node[] = [];
  if (table.columns.length > 0 && chance.below(4) > 0) {
    const sets = setsOf(table, both);
    clauses.push(node("when", " WHEN MATCHED", given(both), " THEN UPDATE SET ", sets));
  }
  if (chance.below(2) === 0) {
    const action = chance.pick(["DELETE", "DO NOTHING"]);
    const few = node("few", " AND w.id % 2 = 0 AND ", conditionOf(1, both));
    // SQL refuses a clause after a clause without a condition, so the clause with a condition
    // comes first.
    clauses.unshift(node("when", " WHEN MATCHED", few, ` THEN ${action}`));
  }
  if (clauses.length === 0 || chance.below(4) > 0) {
    const filled = table.columns.filter(() => chance.below(3) > 0);
    const names = ["id", ...filled.map(({ name }) => name)].join(", ");
    const cells = filled.map((column) =>
      chance.below(6) === 0 ? "DEFAULT" : cellOf(column, chance),
    );
    const row = [columns[0]?.name ?? "1", ...cells].join(", ");
    const insert = ` THEN INSERT (${names}) VALUES (${row})`;
    clauses.push(node("when", " WHEN NOT MATCHED", given(source), insert));
  }
  const head = `MERGE INTO ${table.name} AS w USING `;
  return node("change", head, item, ` ON ${on}`, list("clauses", clauses, 1, ""));
}

function wholeTable(table: StoredTable): Keyed {
  const columns = qualified(columnsOf(table), "f");
  return { item: node("item", `${table.name} AS f`), columns, on: "w.id = f.id" };
}

/**
 * Returns a statement that changes one table in WITH, and changes another table based on the rows
 * that WITH returns.
 */
function partedOf(table: StoredTable, tables: readonly StoredTable[], chance: Chance): Node {
  const entry = node("part", "WITH c AS (", partOf(table, chance), " RETURNING w.id AS k)");
  const others = tables.filter(({ name }) => name !== table.name);
  const [first] = others;
  if (first === undefined) return deleteOf(table, tables, chance);
  const { name } = chance.pick(others);
  const main = chance.pick([
    `INSERT INTO ${name} (id) SELECT k + 1 FROM c ON CONFLICT DO NOTHING`,
    `INSERT INTO ${name} (id) SELECT k + 60 + (SELECT count(*) FROM ${table.name}) FROM c ON CONFLICT DO NOTHING`,
    `DELETE FROM ${name} AS w USING c WHERE w.id = c.k AND w.id % 2 = 0`,
    `MERGE INTO ${name} AS w USING c ON w.id = c.k WHEN NOT MATCHED THEN INSERT (id) VALUES (k)`,
  ]);
  return node("change", entry, ` ${main}`);
}

function partOf(table: StoredTable, chance: Chance): Node {
  const scope: Scope = { chance, columns: qualified(columnsOf(table), "w") };
  const where = node("where", " WHERE w.id % 3 = 0 AND ", conditionOf(2, scope));
  const kind = table.columns.length === 0 ? chance.below(2) : chance.below(3);
  if (kind === 0) return node("delete", `DELETE FROM ${table.name} AS w`, where);
  if (kind === 2) {
    return node("update", `UPDATE ${table.name} AS w SET `, setsOf(table, scope), where);
  }
  const target = `INSERT INTO ${table.name} AS w (id) `;
  return node("insert", target, valuesSource([], chance), " ON CONFLICT DO NOTHING");
}

function qualified(columns: readonly Column[], qualifier: string): Column[] {
  return columns.map(({ name, sort }) => ({ name: `${qualifier}.${name}`, sort }));
}

function returningOf(columns: readonly Column[], chance: Chance): Node | string {
  if (chance.below(3) > 0) return "";
  const scope: Scope = { chance, columns };
  const outputs = Array.from({ length: 1 + chance.below(3) }, () =>
    expressionOf(chance.pick(columns).sort, 1, scope),
  );
  return optional(" RETURNING ", list("outputs", outputs));
}

function insertOf(table: StoredTable, tables: readonly StoredTable[], chance: Chance): Node {
  const columns = table.columns.filter(() => chance.below(4) > 0);
  const names = ["id", ...columns.map(({ name }) => name)].join(", ");
  const source =
    chance.below(3) === 0 ? querySource(columns, tables, chance) : valuesSource(columns, chance);
  const target = node("target", `INSERT INTO ${table.name} AS w (${names}) `);
  const conflict = conflictOf(table, chance);
  return node("change", target, source, conflict, returningOf(columnsOf(table), chance));
}

function valuesSource(columns: readonly ColumnType[], chance: Chance): Node {
  const start = chance.below(KEYS);
  const rows = Array.from({ length: 1 + chance.below(4) }, (_, i) => {
    // No key appears twice, because PostgreSQL and Tidemark intentionally differ in whether an
    // upsert that changes nothing touches its row.
    const id = chance.below(25) === 0 ? "NULL" : String((start + 7 * i) % KEYS);
    const cells = columns.map((column) =>
      chance.below(12) === 0 ? "DEFAULT" : cellOf(column, chance),
    );
    return node("row", `(${[id, ...cells].join(", ")})`);
  });
  return node("source", "VALUES ", list("rows", rows));
}

/** Returns a query that yields no key twice. */
function querySource(
  columns: readonly ColumnType[],
  tables: readonly StoredTable[],
  chance: Chance,
): Node {
  const shift = chance.pick(["", " + 1", " + 30", " * 2"]);
  switch (chance.below(6)) {
    case 0: {
      const { entry, table } = withEntryOf(tables.map(tableOf), chance, "w1");
      const body = selectFrom(table, { columns, chance, shift });
      return node("source", "WITH ", entry, " ", body);
    }
    case 1: {
      const [first, second] = [chance.pick(tables), chance.pick(tables)].map(tableOf);
      if (first === undefined || second === undefined) return valuesSource(columns, chance);
      // If two new rows had the same key, their order would determine which of them is kept.
      const one = selectFrom(first, { columns, chance, shift: " * 2" });
      const other = selectFrom(second, { columns, chance, shift: " * 2 + 1" });
      return node("source", one, chance.pick([" UNION ALL ", " UNION ", " EXCEPT "]), other);
    }
    case 2: {
      const body = selectFrom(tableOf(chance.pick(tables)), { columns, chance, shift });
      const order = ` ORDER BY 1 LIMIT ${chance.below(9)}`;
      return node("source", body, order);
    }
    default:
      return selectFrom(tableOf(chance.pick(tables)), { columns, chance, shift });
  }
}

function selectFrom(
  from: Table,
  { chance, columns, shift }: { columns: readonly ColumnType[]; chance: Chance; shift: string },
): Node {
  const scope: Scope = { chance, columns: qualified(from.columns, "f") };
  const cells = columns.map(({ sort, type }) =>
    node("cell", expressionOf(sort, 1, scope), `::${type}`),
  );
  const distinct = chance.below(6) === 0 ? "DISTINCT " : "";
  const outputs = list("cells", [`f.id${shift}`, ...cells], cells.length + 1);
  const pieces = [`SELECT ${distinct}`, outputs, ` FROM ${from.name} AS f WHERE `];
  return node("source", ...pieces, conditionOf(2, scope));
}

function conflictOf(table: StoredTable, chance: Chance): Node | string {
  switch (chance.below(4)) {
    case 0:
      return optional(chance.pick([" ON CONFLICT DO NOTHING", " ON CONFLICT (id) DO NOTHING"]));
    case 1:
    case 2: {
      if (table.columns.length === 0) return "";
      const stored = qualified(columnsOf(table), "w");
      const proposed = qualified(columnsOf(table), "excluded");
      const scope: Scope = { chance, columns: [...stored, ...proposed] };
      const where = chance.below(3) === 0 ? optional(" WHERE ", conditionOf(2, scope)) : "";
      return optional(" ON CONFLICT (id) DO UPDATE SET ", setsOf(table, scope), where);
    }
    default:
      return "";
  }
}

function setsOf({ columns }: StoredTable, scope: Scope): Node {
  const { chance } = scope;
  const start = chance.below(columns.length);
  const chosen = columns.slice(start, start + 1 + chance.below(2));
  const sets = chosen.map(({ name, sort, type }) => {
    if (chance.below(8) === 0) return node("set", `${name} = DEFAULT`);
    const value = expressionOf(sort, 1, scope);
    return node("set", `${name} = `, value, type === "JSONB" ? "" : `::${type}`);
  });
  return list("sets", sets);
}

/**
 * Returns the start of a SET clause that gives each row a key above all keys in the table.
 * PostgreSQL would refuse a key that another row gives up only in a later step of the statement.
 */
function keySet({ name }: StoredTable): string {
  return `id = w.id + (SELECT max(id) - min(id) + 1 FROM ${name}), `;
}

function updateOf(table: StoredTable, tables: readonly StoredTable[], chance: Chance): Node {
  if (table.columns.length === 0) return deleteOf(table, tables, chance);
  const own = qualified(columnsOf(table), "w");
  const head = `UPDATE ${table.name} AS w SET ${chance.below(6) === 0 ? keySet(table) : ""}`;
  if (chance.below(2) > 0) {
    const scope = withQueries([tableOf(table)], { chance, columns: own });
    const where = chance.below(6) === 0 ? "" : optional(" WHERE ", conditionOf(2, scope));
    return node("change", head, setsOf(table, scope), where, returningOf(own, chance));
  }
  const { item, scope, where } = partnersOf(own, tables, chance);
  const pieces = [head, setsOf(table, scope), " FROM ", item, where];
  return node("change", ...pieces, returningOf(scope.columns, chance));
}

function deleteOf(table: StoredTable, tables: readonly StoredTable[], chance: Chance): Node {
  const own = qualified(columnsOf(table), "w");
  const head = `DELETE FROM ${table.name} AS w`;
  if (chance.below(2) > 0) {
    const scope = withQueries([tableOf(table)], { chance, columns: own });
    const where = node("where", " WHERE w.id % 3 = 0 AND ", conditionOf(2, scope));
    return node("change", head, where, returningOf(own, chance));
  }
  const { item, scope, where } = partnersOf(own, tables, chance);
  const few = node("where", where, " AND w.id % 2 = 0");
  return node("change", head, " USING ", item, few, returningOf(scope.columns, chance));
}

interface Partners {
  /** The SQL of the item after FROM or USING. */
  readonly item: Node;
  readonly where: Node;
  /**
   * The columns that the change may read in addition to its own columns; empty if a row may have
   * several partners.
   */
  readonly scope: Scope;
}

/** Returns an item for FROM or USING, usually with at most one partner for each changed row. */
function partnersOf(
  own: readonly Column[],
  tables: readonly StoredTable[],
  chance: Chance,
): Partners {
  const { columns, item, on } = chance.below(2) === 0 ? keyedValues(chance) : keyed(tables, chance);
  const both: Scope = { chance, columns: [...own, ...columns] };
  if (chance.below(4) === 0) {
    const where = node("where", " WHERE ", conditionOf(2, both));
    return { item, where, scope: { chance, columns: own } };
  }
  const inner = withQueries(tables.map(tableOf), both);
  const where = node("where", ` WHERE ${on} AND `, conditionOf(1, inner));
  return { item, where, scope: chance.below(3) === 0 ? inner : both };
}

interface Keyed {
  readonly item: Node;
  readonly columns: readonly Column[];
  /** The condition that selects one of the item's rows for each changed row. */
  readonly on: string;
}

/**
 * Returns an item that is a single table, two tables joined by their keys, or a query over a
 * table.
 */
function keyed(tables: readonly StoredTable[], chance: Chance): Keyed {
  const first = chance.pick(tables);
  const columns = qualified(columnsOf(first), "f");
  const item = `${first.name} AS f`;
  switch (chance.below(3)) {
    case 0: {
      const second = chance.pick(tables);
      const join = chance.pick([" JOIN ", " LEFT JOIN ", " RIGHT JOIN "]);
      const joined = node("item", `${item}${join}${second.name} AS g ON g.id = f.id`);
      const all = [...columns, ...qualified(columnsOf(second), "g")];
      return { item: joined, columns: all, on: chance.pick(["w.id = f.id", "g.id = w.id"]) };
    }
    case 1: {
      const { entry, table } = withEntryOf(tables.map(tableOf), chance, "w1");
      const query = node("item", "(WITH ", entry, " SELECT * FROM w1) AS f");
      return { item: query, columns: qualified(table.columns, "f"), on: "f.id = w.id" };
    }
    default:
      return { item: node("item", item), columns, on: "w.id = f.id" };
  }
}

/** Returns a list of values in which no key appears twice. */
function keyedValues(chance: Chance): Keyed {
  const start = chance.below(KEYS);
  const rows = Array.from(
    { length: 1 + chance.below(4) },
    (_, i) => `(${start + i}, ${literalOf("text", chance)}, ${literalOf("int", chance)})`,
  );
  return {
    item: node("item", `(VALUES ${rows.join(", ")}) AS e(k, x, z)`),
    on: "w.id = e.k",
    columns: [
      { name: "e.k", sort: "int" },
      { name: "e.x", sort: "text" },
      { name: "e.z", sort: "int" },
    ],
  };
}

/** Returns a table under the name that queries inside a change use. */
function tableOf(table: StoredTable): Table {
  return { name: table.name, columns: columnsOf(table) };
}
