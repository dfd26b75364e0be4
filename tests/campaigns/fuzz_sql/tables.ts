/**
 * Creates tables for random statements. The tables are filled, flushed, indexed and altered at
 * random, so that rows are read from memory, from segments, from segments older than their
 * columns, and through indexes.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { columnsOf, type StoredTable } from "./changes.ts";
import { type IndexPreparer, withIndex } from "./indexes.ts";
import { type Table, viewOf } from "./subqueries.ts";
import { COLUMN_TYPES, type ColumnType, cellOf } from "./values.ts";

/** Runs the statements that prepare the tables. */
export interface Preparer {
  /** Runs a statement that all sides accept. */
  readonly both: (sql: string) => Promise<void>;
  /**
   * Runs a statement that the other side may refuse. If the other side refuses it, the statement
   * runs on neither side. Returns whether it ran. Absent if there is no other side.
   */
  readonly ifBoth?: (sql: string) => Promise<boolean>;
  /** Runs a statement that only Tidemark supports. */
  readonly tidemark: (sql: string) => Promise<void>;
}

/** The clause that divides a table into partitions, and the statements that create these. */
export interface Partitions {
  readonly clause: string;
  readonly parts: readonly string[];
}

/** The type to which ALTER COLUMN changes each type. */
const WIDER: Readonly<Record<string, string>> = {
  SMALLINT: "INT",
  INT: "BIGINT",
  REAL: "DOUBLE PRECISION",
  "NUMERIC(10,2)": "NUMERIC(14,4)",
  "VARCHAR(5)": "TEXT",
};

/** Creates a table, possibly with partitions, and flushes some of its rows. */
export async function makeTable(
  sides: Preparer,
  name: string,
  chance: Chance,
  { clause, parts }: Partitions = { clause: "", parts: [] },
): Promise<StoredTable> {
  const columns = COLUMN_TYPES.filter(() => chance.below(3) > 0);
  const elements = columns.map(
    (column) => `${column.name} ${column.type}${defaultOf(column, chance)}`,
  );
  const definition = ["id INT PRIMARY KEY", ...elements].join(", ");
  await sides.both(`CREATE TABLE ${name} (${definition})${clause}`);
  for (const part of parts) await sides.both(part);
  const rows = Array.from({ length: chance.below(25) }, (_, id) => {
    return `(${[String(id), ...columns.map((column) => cellOf(column, chance))].join(", ")})`;
  });
  const middle = chance.below(rows.length + 1);
  for (const part of [rows.slice(0, middle), rows.slice(middle)]) {
    if (part.length > 0) await sides.both(`INSERT INTO ${name} VALUES ${part.join(", ")}`);
    if (chance.below(3) === 0) await sides.tidemark(`STORAGE FLUSH TABLE ${name}`);
  }
  return { name, columns };
}

function defaultOf(column: ColumnType, chance: Chance): string {
  if (chance.below(4) > 0) return "";
  const cell = cellOf(column, chance);
  return cell === "NULL" ? "" : ` DEFAULT ${cell}`;
}

/** Creates up to two views over the tables. The second view may read the first. */
export async function makeViews(
  sides: Preparer,
  tables: readonly StoredTable[],
  chance: Chance,
): Promise<readonly Table[]> {
  const views: Table[] = [];
  const stored = tables.map((table) => ({ name: table.name, columns: columnsOf(table) }));
  for (let number = 1; number <= chance.below(3); number += 1) {
    const { sql, table } = viewOf([...stored, ...views], chance, `v${number}`);
    const isMade = sides.ifBoth === undefined ? true : await sides.ifBoth(sql);
    if (sides.ifBoth === undefined) await sides.both(sql);
    if (isMade) views.push(table);
  }
  return views;
}

/** Drops views in reverse order. */
export async function dropViews(sides: Preparer, views: readonly Table[]): Promise<void> {
  for (const { name } of views.toReversed()) await sides.both(`DROP VIEW ${name}`);
}

/** Adds an index to one of the tables. */
export async function addIndex(
  sides: IndexPreparer,
  tables: StoredTable[],
  parts: Parameters<typeof withIndex>[2],
): Promise<void> {
  const position = parts.chance.below(tables.length);
  const table = tables[position];
  if (table !== undefined) tables[position] = await withIndex(sides, table, parts);
}

/** Flushes one of the tables. */
export async function flush(
  sides: Preparer,
  tables: readonly StoredTable[],
  chance: Chance,
): Promise<void> {
  await sides.tidemark(`STORAGE FLUSH TABLE ${chance.pick(tables).name}`);
}

/** Alters one of the tables. No view may depend on the table. */
export async function alter(sides: Preparer, tables: StoredTable[], chance: Chance): Promise<void> {
  const position = chance.below(tables.length);
  const table = tables[position];
  if (table === undefined) return;
  const { columns, indexNames = [], name } = table;
  const column = columns[chance.below(Math.max(columns.length, 1))];
  if (column === undefined) return;
  const kind = chance.below(5);
  if (kind === 0) {
    await sides.both(`ALTER TABLE ${name} DROP COLUMN ${column.name}`);
    tables[position] = { name, indexNames, columns: columns.filter((other) => other !== column) };
  } else if (kind === 1) {
    const free = COLUMN_TYPES.filter((type) => columns.every((other) => other.name !== type.name));
    const added = free[chance.below(Math.max(free.length, 1))];
    if (added === undefined) return;
    const definition = `${added.name} ${added.type}${defaultOf(added, chance)}`;
    await sides.both(`ALTER TABLE ${name} ADD COLUMN ${definition}`);
    tables[position] = { ...table, columns: [...columns, added] };
  } else if (kind === 2) {
    const set = chance.below(3) === 0 ? "DROP DEFAULT" : `SET DEFAULT ${cellOf(column, chance)}`;
    await sides.both(`ALTER TABLE ${name} ALTER COLUMN ${column.name} ${set}`);
  } else if (kind === 3) {
    const type = WIDER[column.type];
    if (type === undefined) return;
    // Tidemark refuses to change the type of a column from which an index computes values.
    for (const index of indexNames) await sides.both(`DROP INDEX IF EXISTS ${index}`);
    await sides.both(`ALTER TABLE ${name} ALTER COLUMN ${column.name} TYPE ${type}`);
    tables[position] = {
      name,
      columns: columns.map((other) => (other === column ? { ...column, type } : other)),
    };
  } else {
    const renamed = { ...column, name: `z${chance.text(4)}` };
    await sides.both(`ALTER TABLE ${name} RENAME COLUMN ${column.name} TO ${renamed.name}`);
    tables[position] = {
      name,
      indexNames,
      columns: columns.map((other) => (other === column ? renamed : other)),
    };
  }
}
