/**
 * Defines the systems that a benchmark measures: Tidemark and the front ends of its peers. Each
 * request here makes every system do the same work.
 */
import type { Item } from "./rows.ts";

export interface MeasuredSystem {
  readonly name: string;
  readonly isTidemark: boolean;
  /** The base URL of the system's HTTP endpoint. */
  readonly url: string;
  /** The administrator's token. */
  readonly token: string;
  /** The tokens of the users who follow their own rows. */
  readonly userTokens: readonly string[];
}

export interface SystemRequest {
  readonly path: string;
  readonly body: string;
}

/**
 * The kind of an insert. It determines the table that receives the row, and thus the row's
 * followers.
 */
export type InsertKind = "insert" | "same" | "own";

const TABLES: Readonly<Record<InsertKind, string>> = {
  insert: "bench.items",
  same: "bench.feed",
  own: "bench.mine",
};

/**
 * The SQL that creates the tables in Tidemark before a measurement. The front ends create their
 * own tables on startup.
 */
export const TIDEMARK_DEFINITIONS: string = [
  "CREATE NAMESPACE bench",
  ...Object.values(TABLES).map((table) => {
    const kind = table === TABLES.own ? "USER" : "SHARED";
    return `CREATE ${kind} TABLE ${table} (id BIGINT PRIMARY KEY, usr TEXT, body TEXT, ts BIGINT)`;
  }),
  "CREATE TABLE bench.rooms (id BIGINT PRIMARY KEY, room_id BIGINT, body TEXT)",
].join("; ");

export function insertRequest(system: MeasuredSystem, kind: InsertKind, item: Item): SystemRequest {
  if (!system.isTidemark) return { path: `/${kind}`, body: JSON.stringify(item) };
  return sqlRequest(`INSERT INTO ${TABLES[kind]} (id, usr, body, ts) VALUES ($1, $2, $3, $4)`, [
    item.id,
    item.usr,
    item.body,
    item.ts,
  ]);
}

export function pointRequest(system: MeasuredSystem, id: number): SystemRequest {
  if (!system.isTidemark) return { path: "/point", body: JSON.stringify({ id }) };
  return sqlRequest("SELECT id, usr, body, ts FROM bench.items WHERE id = $1", [id]);
}

/**
 * Returns the request that runs a bulk statement.
 * @param table The name of the table. The front ends use it without a namespace.
 */
export function bulkRequest(
  system: MeasuredSystem,
  statement: (table: string) => string,
): SystemRequest {
  if (!system.isTidemark)
    return { path: "/bulk", body: JSON.stringify({ sql: statement("items") }) };
  return sqlRequest(statement(TABLES.insert));
}

export function sqlRequest(sql: string, params?: readonly unknown[]): SystemRequest {
  const body = params === undefined ? { sql } : { sql, params };
  return { path: "/v1/api/sql", body: JSON.stringify(body) };
}

/** Returns the message that subscribes a socket to inserted rows. */
export function followMessage(system: MeasuredSystem, kind: "same" | "own"): string {
  if (!system.isTidemark) return kind;
  const sql = `SELECT id, usr, body, ts FROM ${TABLES[kind]}`;
  return JSON.stringify({ type: "subscribe", subscription: { id: "f", sql, options: null } });
}

export function socketUrl(system: MeasuredSystem): string {
  const base = system.url.replace(/^http/, "ws");
  return system.isTidemark ? `${base}/v1/ws?compress=false` : `${base}/ws`;
}
