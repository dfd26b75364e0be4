/**
 * Creates the tables and views of a round. Some tables are shared, some have rows per user, and
 * some have policies, so that queries join all kinds. Every table has the columns by which the
 * queries join, group and order; the other columns are random. Many of these columns have an
 * index, because a join is maintained only if a key or an index serves it.
 */
import type { Chance } from "../../../scripts/support/chance.ts";
import { columnsOf, type StoredTable } from "../fuzz_sql/changes.ts";
import { type Table, viewOf } from "../fuzz_sql/subqueries.ts";
import { COLUMN_TYPES, cellOf } from "../fuzz_sql/values.ts";

/** The columns of every table: two join keys, a decimal, two texts, a boolean and a timestamp. */
const CORE: ReadonlySet<string> = new Set(["i", "j", "m", "t", "u", "b", "ts"]);

/**
 * The kind of a table. Everybody can read a "shared" table, each user has separate rows in an
 * "own" table, and policies decide who can read each row of a "ruled" table.
 */
export type TableKind = "shared" | "own" | "ruled";

/**
 * The kinds of the tables after the first table, which is shared. A more frequent kind is listed
 * several times.
 */
const KINDS: readonly TableKind[] = ["shared", "shared", "own", "ruled"];

/** A table of a round. Its name begins with its kind. */
export interface FollowedTable extends StoredTable {
  readonly kind: TableKind;
}

export interface View extends Table {
  /** The view's query, without the column names that the view defines itself. */
  readonly query: string;
}

export interface Schema {
  readonly tables: readonly FollowedTable[];
  readonly views: readonly View[];
}

/** Runs a statement as the administrator. The statement must succeed. */
type Preparing = (sql: string) => Promise<void>;

/**
 * A table that lists the users who may read rows with a certain `j` under the policy of the ruled
 * tables.
 */
const GUESTS =
  "CREATE TABLE guests (room INT, guest TEXT, PRIMARY KEY (room, guest)) " +
  "WITH (TYPE = 'SHARED', ACCESS_LEVEL = 'DBA')";

/**
 * Creates some tables, and views over the tables that have no rows per user.
 *
 * @param countMin The minimum number of tables. There may be up to two more.
 */
export async function makeSchema(
  prepare: Preparing,
  chance: Chance,
  countMin = 2,
): Promise<Schema> {
  const tables: FollowedTable[] = [];
  const count = countMin + chance.below(countMin > 2 ? 3 : 2);
  await prepare(GUESTS);
  for (let number = 1; number <= count; number += 1) {
    const kind = number === 1 ? "shared" : chance.pick(KINDS);
    tables.push(await makeTable(prepare, { number, kind, chance }));
  }
  const views: View[] = [];
  for (let number = 1; number <= chance.below(3); number += 1) {
    const sources = [...tables.filter(({ kind }) => kind !== "own").map(tableOf), ...views];
    const { sql, table } = viewOf(sources, chance, `vw${number}`);
    await prepare(sql);
    views.push({ ...table, query: sql.slice(sql.indexOf(" AS ") + " AS ".length) });
  }
  return { tables, views };
}

async function makeTable(
  prepare: Preparing,
  { chance, kind, number }: { number: number; kind: TableKind; chance: Chance },
): Promise<FollowedTable> {
  const name = `${kind}${number}`;
  const columns = COLUMN_TYPES.filter((column) => CORE.has(column.name) || chance.below(4) === 0);
  const elements = columns.map((column) => `${column.name} ${column.type}`);
  const options =
    kind === "own" ? "TYPE = 'USER'" : `TYPE = 'SHARED', ACCESS_LEVEL = '${levelOf(kind)}'`;
  await prepare(
    `CREATE TABLE ${name} (id INT PRIMARY KEY, ${elements.join(", ")}) WITH (${options})`,
  );
  if (kind === "ruled") {
    const condition = ruleOf(name, { guests: "fuzz.guests", user: "CURRENT_USER()" });
    await prepare(`CREATE POLICY by_guest ON ${name} FOR SELECT USING (${condition})`);
  }
  for (const column of ["i", "j", "t"]) {
    if (chance.below(2) === 0)
      await prepare(`CREATE INDEX ${name}_${column} ON ${name} (${column})`);
  }
  const rows = Array.from({ length: chance.below(20) }, (_, id) => {
    return `(${[String(id), ...columns.map((column) => cellOf(column, chance))].join(", ")})`;
  });
  if (rows.length > 0) await prepare(`INSERT INTO ${name} VALUES ${rows.join(", ")}`);
  if (chance.below(3) === 0) await prepare(`STORAGE FLUSH TABLE ${name}`);
  return { name, columns, kind };
}

/** Returns the access level that lets the reader read a table. */
export function levelOf(kind: "ruled" | "shared"): string {
  return kind === "ruled" ? "RESTRICTED" : "PUBLIC";
}

/** Returns the condition of a ruled table's policy. */
function ruleOf(table: string, { guests, user }: { guests: string; user: string }): string {
  return `${table}.b OR EXISTS (SELECT 1 FROM ${guests} AS g WHERE g.room = ${table}.j AND g.guest = ${user})`;
}

/** Returns a table in the form in which queries refer to it. */
export function tableOf(table: StoredTable): Table {
  return { name: table.name, columns: columnsOf(table) };
}

/** The moment at which a query is read, as SQL expressions. */
export interface Moment {
  readonly seq: string;
  /** The time at which a query is read; undefined for a query that does not read the time. */
  readonly time: string | undefined;
  /** The user whose rows another user selects; undefined if users select their own rows. */
  readonly user: string | undefined;
}

/**
 * Returns a query over the tables as they were at a seq. Every table in a query has an alias. A
 * view is replaced by its query, because FOR SYSTEM_TIME applies only to tables, and the
 * conditions of policies are written out if another user asks.
 */
export function queryAsOf(sql: string, { tables, views }: Schema, moment: Moment): string {
  const { seq, time, user } = moment;
  let text = sql;
  for (const { columns, name, query } of views.toReversed()) {
    const names = columns.map((column) => column.name).join(", ");
    text = text.replace(
      new RegExp(`\\b${name} AS (\\w+)`, "g"),
      (_, alias: string) => `(${query}) AS ${alias}(${names})`,
    );
  }
  const at = `FOR SYSTEM_TIME AS OF ${seq}`;
  for (const { kind, name } of tables) {
    const past = `${name} ${at}`;
    const rule = ruleOf("p", { guests: `guests ${at}`, user: String(user) });
    const isRuled = kind === "ruled" && user !== undefined;
    const source = isRuled ? `(SELECT * FROM ${past} AS p WHERE ${rule})` : past;
    text = text.replaceAll(new RegExp(`\\b${name} AS\\b`, "g"), () => `${source} AS`);
  }
  if (user !== undefined) text = text.replaceAll("CURRENT_USER()", () => user);
  return time === undefined ? text : text.replaceAll(CLOCK, (word) => clockAt(word, time));
}

/** Matches the calls that read the time. */
const CLOCK = /\b(?:NOW\(\)|LOCALTIMESTAMP|CURRENT_DATE)/g;

/** Whether the rows of a query change as time passes. */
export function readsClock(sql: string): boolean {
  return sql.search(CLOCK) >= 0;
}

function clockAt(word: string, time: string): string {
  if (word === "NOW()") return time;
  return `(${time})::${word === "CURRENT_DATE" ? "date" : "timestamp"}`;
}

/** The type to which ALTER COLUMN may change each type. */
const WIDER: Readonly<Record<string, string>> = {
  INT: "BIGINT",
  SMALLINT: "INT",
  "NUMERIC(10,2)": "NUMERIC(14,4)",
  "VARCHAR(5)": "TEXT",
};

/**
 * Returns a random change to a table's definition, and the resulting table. The server may refuse
 * the change because a view depends on the table.
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
