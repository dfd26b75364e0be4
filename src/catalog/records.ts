/**
 * How one thing of the catalog lies in a SQLite row: its JSON, and a checksum over table name and
 * JSON.
 *
 * SQLite has no checksum over its pages. `quick_check` finds broken structure; a flipped byte
 * inside a row is found here, when the row is read at start.
 */
import { CorruptionError } from "../base/errors.ts";
import type { Value } from "../types/mod.ts";
import type { SqliteFile } from "./sqlite_file.ts";

/** Tables whose rows are sealed, with their key column. */
export type SealedTable =
  | "counters"
  | "settings"
  | "namespaces"
  | "table_definitions"
  | "accounts"
  | "owners"
  | "files"
  | "segments"
  | "table_states";

export interface SealedRow {
  readonly body: string;
  readonly checksum: number;
}

/** Makes the two columns of a row. `value` must survive JSON. */
export function seal(table: SealedTable, value: unknown): SealedRow {
  const body = JSON.stringify(value);
  return { body, checksum: checksumOf(table, body) };
}

/** Reads what {@linkcode seal} made. @throws {CorruptionError} If the row is damaged. */
export function unseal(table: SealedTable, row: SealedRow, path: string): unknown {
  if (checksumOf(table, row.body) !== row.checksum) {
    throw new CorruptionError(path, 0, `a row of ${table} does not match its checksum`);
  }
  return JSON.parse(row.body);
}

/** Inserts or replaces one sealed row by its key. */
export function putSealed(
  file: SqliteFile,
  table: Exclude<SealedTable, "table_definitions">,
  entry: { key: string | number; value: unknown },
): void {
  const { body, checksum } = seal(table, entry.value);
  file.run(
    `INSERT OR REPLACE INTO ${table} (${KEY_COLUMNS[table]}, body, checksum) VALUES (?1, ?2, ?3)`,
    entry.key,
    body,
    checksum,
  );
}

/** Removes one sealed row by its key. */
export function removeSealed(
  file: SqliteFile,
  table: "namespaces" | "files" | "segments" | "table_states",
  key: string | number,
): void {
  file.run(`DELETE FROM ${table} WHERE ${KEY_COLUMNS[table]} = ?1`, key);
}

/** Every row of a sealed table, in key order. @throws {CorruptionError} */
export function allSealed<T>(
  file: SqliteFile,
  table: Exclude<SealedTable, "table_definitions">,
): T[] {
  const rows = file.rows<SealedRow>(
    `SELECT body, checksum FROM ${table} ORDER BY ${KEY_COLUMNS[table]}`,
  );
  // Where the checksum held, the value is what `seal` was given.
  return rows.map((row) => unseal(table, row, file.path) as T);
}

/** A SQL value as JSON: one tagged object for each form that JSON lacks. */
export type ValueJson =
  | null
  | boolean
  | number
  | string
  | { readonly bigint: string }
  | { readonly bytes: string }
  | { readonly floats: readonly number[] }
  | { readonly interval: readonly [months: number, days: number, micros: number] }
  | { readonly array: readonly ValueJson[] };

export function jsonFromValue(value: Value): ValueJson {
  if (typeof value === "bigint") return { bigint: value.toString() };
  if (value === null || typeof value !== "object") return value;
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString("base64") };
  if (value instanceof Float32Array) return { floats: [...value] };
  if ("months" in value) return { interval: [value.months, value.days, value.micros] };
  return { array: value.map(jsonFromValue) };
}

export function valueFromJson(json: ValueJson): Value {
  if (json === null || typeof json !== "object") return json;
  if ("bigint" in json) return BigInt(json.bigint);
  if ("bytes" in json) return new Uint8Array(Buffer.from(json.bytes, "base64"));
  if ("floats" in json) return Float32Array.from(json.floats);
  if ("array" in json) return json.array.map(valueFromJson);
  const [months, days, micros] = json.interval;
  return { months, days, micros };
}

const KEY_COLUMNS: Readonly<Record<Exclude<SealedTable, "table_definitions">, string>> = {
  counters: "name",
  settings: "name",
  namespaces: "name",
  accounts: "account_id",
  owners: "owner",
  files: "file_id",
  segments: "segment_id",
  table_states: "table_id",
};

function checksumOf(table: SealedTable, body: string): number {
  return Bun.hash.crc32(`${table} ${body}`);
}
