/**
 * Creates the tables and views of a round. Some tables are shared and some belong to each user, so
 * that queries join both kinds. Every table has the columns by which the queries join, group and
 * order; the other columns are random. Many of these columns have an index, because a join is
 * maintained only where a key or an index serves it.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { columnsOf, type StoredTable } from "../fuzz_sql/changes.ts";
import { type Table, viewOf } from "../fuzz_sql/subqueries.ts";
import { COLUMN_TYPES, cellOf } from "../fuzz_sql/values.ts";

/**
 * The columns that every table has: two join keys, a decimal, two texts, a boolean and a timestamp.
 */
const CORE: ReadonlySet<string> = new Set(["i", "j", "m", "t", "u", "b", "ts"]);

/** A table of a round. Its name begins with the letter of its kind. */
export interface FollowedTable extends StoredTable {
  readonly isShared: boolean;
}

export interface View extends Table {
  /** The query of the view, without the view's own column names. */
  readonly query: string;
}

export interface Schema {
  readonly tables: readonly FollowedTable[];
  readonly views: readonly View[];
}

/** Runs a statement that must succeed, as the administrator. */
type Preparing = (sql: string) => Promise<void>;

/** Creates two or three tables, and views over the shared tables. */
export async function makeSchema(prepare: Preparing, chance: Chance): Promise<Schema> {
  const tables: FollowedTable[] = [];
  const count = 2 + chance.below(2);
  for (let number = 1; number <= count; number += 1) {
    const isShared = number === 1 || chance.below(3) > 0;
    tables.push(await makeTable(prepare, { number, isShared, chance }));
  }
  const views: View[] = [];
  for (let number = 1; number <= chance.below(3); number += 1) {
    const sources = [...tables.filter(({ isShared }) => isShared).map(tableOf), ...views];
    const { sql, table } = viewOf(sources, chance, `vw${number}`);
    await prepare(sql);
    views.push({ ...table, query: sql.slice(sql.indexOf(" AS ") + " AS ".length) });
  }
  return { tables, views };
}

async function makeTable(
  prepare: Preparing,
  { chance, isShared, number }: { number: number; isShared: boolean; chance: Chance },
): Promise<FollowedTable> {
  const name = `${isShared ? "shared" : "own"}${number}`;
  const columns = COLUMN_TYPES.filter((column) => CORE.has(column.name) || chance.below(4) === 0);
  const elements = columns.map((column) => `${column.name} ${column.type}`);
  const options = isShared ? "TYPE = 'SHARED', ACCESS_LEVEL = 'PUBLIC'" : "TYPE = 'USER'";
  await prepare(
    `CREATE TABLE ${name} (id INT PRIMARY KEY, ${elements.join(", ")}) WITH (${options})`,
  );
  for (const column of ["i", "j", "t"]) {
    if (chance.below(2) === 0)
      await prepare(`CREATE INDEX ${name}_${column} ON ${name} (${column})`);
  }
  const rows = Array.from({ length: chance.below(20) }, (_, id) => {
    return `(${[String(id), ...columns.map((column) => cellOf(column, chance))].join(", ")})`;
  });
  if (rows.length > 0) await prepare(`INSERT INTO ${name} VALUES ${rows.join(", ")}`);
  if (chance.below(3) === 0) await prepare(`STORAGE FLUSH TABLE ${name}`);
  return { name, columns, isShared };
}

/** Returns a table as queries name it. */
export function tableOf(table: StoredTable): Table {
  return { name: table.name, columns: columnsOf(table) };
}

/**
 * Returns a query over the tables as they were at a seq. Every table in a query has an alias. A
 * view is replaced by its query, because FOR SYSTEM_TIME applies only to tables.
 */
export function queryAsOf(sql: string, { tables, views }: Schema, seq: number): string {
  let text = sql;
  for (const { columns, name, query } of views.toReversed()) {
    const names = columns.map((column) => column.name).join(", ");
    text = text.replace(
      new RegExp(`\\b${name} AS (\\w+)`, "g"),
      (_, alias: string) => `(${query}) AS ${alias}(${names})`,
    );
  }
  for (const { name } of tables) {
    text = text.replaceAll(
      new RegExp(`\\b${name} AS\\b`, "g"),
      `${name} FOR SYSTEM_TIME AS OF ${seq} AS`,
    );
  }
  return text;
}

/** The type to which ALTER COLUMN may change each type. */
const WIDER: Readonly<Record<string, string>> = {
  INT: "BIGINT",
  SMALLINT: "INT",
  "NUMERIC(10,2)": "NUMERIC(14,4)",
  "VARCHAR(5)": "TEXT",
};

/**
 * Returns a random change of a table's definition, and the resulting table. The server may refuse
 * the change because of a view that depends on the table.
 */
export function alterationOf(
  table: FollowedTable,
  chance: Chance,
): { sql: string; after: FollowedTable } | undefined {
  const { columns, name } = table;
  const others = columns.filter((column) => !CORE.has(column.name));
  const column = others[chance.below(Math.max(1, others.length))];
  const kind = chance.below(3);
  if (kind === 0) {
    const free = COLUMN_TYPES.filter((type) => columns.every((each) => each.name !== type.name));
    const added = free[chance.below(Math.max(1, free.length))];
    if (added === undefined) return undefined;
    const sql = `ALTER TABLE ${name} ADD COLUMN ${added.name} ${added.type}`;
    return { sql, after: { ...table, columns: [...columns, added] } };
  }
  if (kind === 1 && column !== undefined) {
    const sql = `ALTER TABLE ${name} DROP COLUMN ${column.name}`;
    return { sql, after: { ...table, columns: columns.filter((each) => each !== column) } };
  }
  const widened = columns.find((each) => WIDER[each.type] !== undefined);
  const type = WIDER[widened?.type ?? ""];
  if (widened === undefined || type === undefined) return undefined;
  const sql = `ALTER TABLE ${name} ALTER COLUMN ${widened.name} TYPE ${type}`;
  const after = columns.with(columns.indexOf(widened), { ...widened, type });
  return { sql, after: { ...table, columns: after } };
}
