/**
 * Stores each catalog entry in a SQLite row, which consists of the entry's key, its JSON, and a
 * checksum over the table name, the key and the JSON.
 *
 * SQLite's pages have no checksums. `quick_check` detects a broken structure; a flipped byte
 * within a row is detected here, when the row is read at startup.
 */
import { crc32 } from "../base/checksum.ts";
import { CorruptionError } from "../base/errors.ts";
import type { SealedFile, SealedSource } from "./sqlite_file.ts";

/** The catalog tables whose rows carry checksums, with the names of their key columns. */
const KEY_COLUMNS = {
  counters: "name",
  settings: "name",
  namespaces: "name",
  table_definitions: "definition_id",
  accounts: "account_id",
  owners: "owner",
  revocations: "id",
  files: "file_id",
  segments: "segment_id",
  table_states: "table_id",
  views: "view_id",
  storages: "storage_id",
  topics: "topic_id",
  sequences: "sequence_id",
  sequence_marks: "sequence_id",
  types: "type_id",
  service_tokens: "name",
  invitations: "name",
  journal: "id",
} as const;

export type SealedTable = keyof typeof KEY_COLUMNS;

interface SealedEntry {
  readonly key: string | number;
  /** The value to store, which must be representable as JSON. */
  readonly value: unknown;
}

/** Inserts a row with its checksum, or replaces the row with the same key. */
export function putSealed(file: SealedFile, table: SealedTable, entry: SealedEntry): void {
  putUnnoted(file, table, entry);
  file.noteChange([table, entry.key, entry.value]);
}

/**
 * Inserts or replaces a row without recording the change in the journal, for changes that would be
 * useless after a restore.
 */
export function putUnnoted(file: SealedFile, table: SealedTable, entry: SealedEntry): void {
  const body = JSON.stringify(entry.value);
  file.run(
    `INSERT OR REPLACE INTO ${table} (${KEY_COLUMNS[table]}, body, checksum) VALUES (?1, ?2, ?3)`,
    entry.key,
    body,
    checksumOf(table, entry.key, body),
  );
}

/** Removes the row with the given key. */
export function removeSealed(file: SealedFile, table: SealedTable, key: string | number): void {
  file.run(`DELETE FROM ${table} WHERE ${KEY_COLUMNS[table]} = ?1`, key);
  file.noteChange([table, key]);
}

/** Returns every row of a table, in key order. @throws {CorruptionError} If a row is damaged. */
export function allSealed<T>(file: SealedSource, table: SealedTable): T[] {
  const key = KEY_COLUMNS[table];
  const rows = file.rows<SealedRow>(
    `SELECT ${key} AS key, body, checksum FROM ${table} ORDER BY ${key}`,
  );
  // The cast is safe: the checksum matches, so the value is the one that was passed to
  // `putSealed`.
  return rows.map((row) => unsealed(table, row, file.path) as T);
}

/** Selects a portion of the rows of a catalog table. */
export interface RecordRange {
  /** The key after which the portion begins (exclusive). */
  readonly after: string | number;
  /**
   * A condition on an indexed value that SQLite extracts from the JSON of a row: the name of the
   * index column, and the value that it must have.
   */
  readonly match?: readonly [column: string, value: number] | undefined;
  readonly countMax: number;
}

/**
 * Returns a portion of a table's rows, in key order.
 * @throws {CorruptionError} If a row is damaged.
 */
export function sealedPortion(
  file: SealedSource,
  table: SealedTable,
  { after, countMax, match }: RecordRange,
): unknown[] {
  const key = KEY_COLUMNS[table];
  const condition = match === undefined ? "" : `AND ${match[0]} = ?3`;
  const rows = file.rows<SealedRow>(
    `SELECT ${key} AS key, body, checksum FROM ${table} WHERE ${key} > ?1 ${condition} ORDER BY ${key} LIMIT ?2`,
    after,
    countMax,
    ...(match === undefined ? [] : [match[1]]),
  );
  return rows.map((row) => unsealed(table, row, file.path));
}

/**
 * Returns the row with the given key; undefined if there is none.
 * @throws {CorruptionError} If the row is damaged.
 */
export function oneSealed(file: SealedSource, table: SealedTable, key: string | number): unknown {
  const column = KEY_COLUMNS[table];
  const [row] = file.rows<SealedRow>(
    `SELECT ${column} AS key, body, checksum FROM ${table} WHERE ${column} = ?1`,
    key,
  );
  return row === undefined ? undefined : unsealed(table, row, file.path);
}

interface SealedRow {
  readonly key: string | number;
  readonly body: string;
  readonly checksum: number;
}

function unsealed(table: SealedTable, row: SealedRow, path: string): unknown {
  if (checksumOf(table, row.key, row.body) === row.checksum) return JSON.parse(row.body);
  throw new CorruptionError(path, 0, `row ${row.key} of ${table} does not match its checksum`);
}

function checksumOf(table: SealedTable, key: string | number, body: string): number {
  return crc32(new TextEncoder().encode(`${table} ${JSON.stringify(key)} ${body}`));
}
