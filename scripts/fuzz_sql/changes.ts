/**
 * Random INSERT, UPDATE and DELETE statements. A key meets another often, and where several rows
 * could decide, only one is there to do so.
 */
import type { Chance } from "../support/chance.ts";
import { conditionOf, expressionOf, type Scope } from "./expressions.ts";
import { type Table, withQueries } from "./subqueries.ts";
import { list, type Node, node, optional } from "./tree.ts";
import { type Column, type ColumnType, cellOf, literalOf } from "./values.ts";

/** A stored table: `id` is its key and not among `columns`. */
export interface StoredTable {
  readonly name: string;
  readonly columns: readonly ColumnType[];
}

const ID: Column = { name: "id", sort: "int" };
const KEYS = 30;

export function columnsOf(table: StoredTable): readonly Column[] {
  return [ID, ...table.columns];
}

/** A random change, sometimes with RETURNING. */
export function changeOf(tables: readonly StoredTable[], chance: Chance): Node {
  const table = chance.pick(tables);
  switch (chance.below(6)) {
    case 0:
    case 1:
    case 2:
      return insertOf(table, tables, chance);
    case 3:
    case 4:
      return updateOf(table, chance);
    default:
      return deleteOf(table, chance);
  }
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
    chance.below(5) === 0 ? selectSource(columns, tables, chance) : valuesSource(columns, chance);
  const target = node("target", `INSERT INTO ${table.name} AS w (${names}) `);
  const conflict = conflictOf(table, chance);
  return node("change", target, source, conflict, returningOf(columnsOf(table), chance));
}

function valuesSource(columns: readonly ColumnType[], chance: Chance): Node {
  const start = chance.below(KEYS);
  const rows = Array.from({ length: 1 + chance.below(4) }, (_, i) => {
    // No key stands twice: whether an upsert that changes nothing touches its row is our choice.
    const id = chance.below(25) === 0 ? "NULL" : String((start + 7 * i) % KEYS);
    const cells = columns.map((column) =>
      chance.below(12) === 0 ? "DEFAULT" : cellOf(column, chance),
    );
    return node("row", `(${[id, ...cells].join(", ")})`);
  });
  return node("source", "VALUES ", list("rows", rows));
}

function selectSource(
  columns: readonly ColumnType[],
  tables: readonly StoredTable[],
  chance: Chance,
): Node {
  const from = chance.pick(tables);
  const scope: Scope = { chance, columns: qualified(columnsOf(from), "f") };
  const cells = columns.map(({ sort, type }) =>
    node("cell", expressionOf(sort, 1, scope), `::${type}`),
  );
  const shift = chance.pick(["", " + 1", " + 30", " * 2"]);
  const pieces = ["SELECT ", list("cells", [`f.id${shift}`, ...cells]), ` FROM ${from.name} AS f`];
  return node("source", ...pieces, " WHERE ", conditionOf(2, scope));
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

function updateOf(table: StoredTable, chance: Chance): Node {
  if (table.columns.length === 0) return deleteOf(table, chance);
  const own = qualified(columnsOf(table), "w");
  if (chance.below(4) > 0) {
    const scope = withQueries([tableOf(table)], { chance, columns: own });
    const where = chance.below(6) === 0 ? "" : optional(" WHERE ", conditionOf(2, scope));
    const pieces = [`UPDATE ${table.name} AS w SET `, setsOf(table, scope), where];
    return node("change", ...pieces, returningOf(own, chance));
  }
  const { columns, item } = keyedValues(chance);
  const scope: Scope = { chance, columns: [...own, ...columns] };
  const pieces = [`UPDATE ${table.name} AS w SET `, setsOf(table, scope), ` FROM ${item}`];
  const where = node("where", " WHERE w.id = e.k AND ", conditionOf(1, scope));
  return node("change", ...pieces, where, returningOf(scope.columns, chance));
}

function deleteOf(table: StoredTable, chance: Chance): Node {
  const own = qualified(columnsOf(table), "w");
  if (chance.below(3) > 0) {
    const scope = withQueries([tableOf(table)], { chance, columns: own });
    const where = node("where", " WHERE w.id % 3 = 0 AND ", conditionOf(2, scope));
    return node("change", `DELETE FROM ${table.name} AS w`, where, returningOf(own, chance));
  }
  const { columns, item } = keyedValues(chance);
  const scope: Scope = { chance, columns: [...own, ...columns] };
  const where = node("where", " WHERE w.id = e.k AND ", conditionOf(1, scope));
  const pieces = [`DELETE FROM ${table.name} AS w USING ${item}`, where];
  return node("change", ...pieces, returningOf(scope.columns, chance));
}

/** A list of values in which no key stands twice. */
function keyedValues(chance: Chance): { item: string; columns: readonly Column[] } {
  const start = chance.below(KEYS);
  const rows = Array.from(
    { length: 1 + chance.below(4) },
    (_, i) => `(${start + i}, ${literalOf("text", chance)}, ${literalOf("int", chance)})`,
  );
  return {
    item: `(VALUES ${rows.join(", ")}) AS e(k, x, z)`,
    columns: [
      { name: "e.k", sort: "int" },
      { name: "e.x", sort: "text" },
      { name: "e.z", sort: "int" },
    ],
  };
}

/** A table as queries inside of a change name it. */
function tableOf(table: StoredTable): Table {
  return { name: table.name, columns: columnsOf(table) };
}
