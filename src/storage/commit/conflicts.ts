/**
 * What a write may meet at its key, and what a caller is told when it may not.
 */
import { assert } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import { type DataType, type Row, textFromValue } from "../../types/mod.ts";
import { rowCountOf, type TableWrite } from "../contract/store.ts";
import type { StoredTable } from "../table/table.ts";
import type { VersionCursor } from "../table/version_cursor.ts";

/** Longest value that a message repeats. */
const VALUE_CHARS_MAX = 80;

/** What a row is checked against. */
export interface ConflictCheck {
  readonly table: StoredTable;
  readonly write: TableWrite;
  /** What a transaction read; absent for a statement that read in this turn. */
  readonly snapshotSeq: Seq | undefined;
  /** First seq of the commit itself, SEQ_ZERO before its first row. */
  readonly firstSeq: Seq;
}

/** @throws {DatabaseError} UNSUPPORTED_FEATURE for what needs a key. */
export function requireKeyless(write: TableWrite, tableName: string): void {
  const { replacedSeqs, operation } = write;
  if (operation === "insert") return;
  if (operation === "delete" && replacedSeqs?.length === rowCountOf(write)) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot ${operation} rows of ${tableName}: a table without a primary key takes inserts, and deletes that name their rows`,
  );
}

/** @throws {DatabaseError} DUPLICATE_KEY, SERIALIZATION_FAILURE */
export function requireInsertable(
  check: ConflictCheck,
  newest: VersionCursor | undefined,
  row: Row,
): void {
  if (newest === undefined) return;
  requireUnchanged(check, newest, row);
  if (newest.isDeleted) return;
  throw duplicateKey(check.table, row);
}

export function duplicateKey(table: StoredTable, row: Row): DatabaseError {
  return new DatabaseError(
    "DUPLICATE_KEY",
    `Cannot insert into ${table.definition.name}: ${describeKey(table, row)} already exists`,
  );
}

/** Of a commit that was prepared for longer than a turn. */
export function changedMeanwhile(tableName: string): DatabaseError {
  return new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot change rows of ${tableName}: another statement changed some of them meanwhile`,
    { hint: "run the statement again" },
  );
}

/** @throws {DatabaseError} SERIALIZATION_FAILURE */
export function requireReplaceable(
  check: ConflictCheck,
  newest: VersionCursor | undefined,
  row: Row,
): void {
  assert(newest !== undefined, "an updated or deleted key has a version");
  requireUnchanged(check, newest, row);
  assert(!newest.isDeleted, "an updated or deleted key has a live row");
}

function requireUnchanged(
  { table, write, snapshotSeq, firstSeq }: ConflictCheck,
  newest: VersionCursor,
  row: Row,
): void {
  if (snapshotSeq === undefined) return;
  const { seq } = newest;
  if (seq <= snapshotSeq || (firstSeq !== SEQ_ZERO && seq >= firstSeq)) return;
  throw new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot ${write.operation} ${describeKey(table, row)} of ${table.definition.name}: another transaction changed it`,
    { hint: "run the transaction again" },
  );
}

function describeKey({ definition, keyPositions }: StoredTable, row: Row): string {
  const columns = keyPositions.flatMap((position) => definition.columns[position] ?? []);
  return shownKey(
    columns,
    keyPositions.map((position) => row[position] ?? null),
  );
}

/** A key in a message, for instance: key (room, id) = ('a', 7). */
export function shownKey(
  columns: readonly { readonly name: string; readonly type: DataType }[],
  key: Row,
): string {
  const values = columns.map(({ type }, i) => {
    const value = key[i] ?? null;
    if (value === null) return "NULL";
    const text = textFromValue(type, value);
    const shown = text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text;
    return type.kind === "text" ? `'${shown}'` : shown;
  });
  return `key (${columns.map(({ name }) => name).join(", ")}) = (${values.join(", ")})`;
}
