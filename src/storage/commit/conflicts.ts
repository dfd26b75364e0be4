/**
 * Detects conflicts between a write and the current version of its key, and creates the errors for
 * them.
 */
import { assert } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import { type DataType, type Row, textFromValue } from "../../types/mod.ts";
import { rowCountOf, type TableWrite } from "../contract/writes.ts";
import { hasVersion } from "../table/past_versions.ts";
import type { StoredTable } from "../table/table.ts";
import type { VersionCursor } from "../table/version_cursor.ts";

/** The maximum length of a value shown in an error message, in characters. */
const VALUE_CHARS_MAX = 80;

/** The state against which a written row is checked. */
export interface ConflictCheck {
  readonly table: StoredTable;
  readonly write: TableWrite;
  /** The transaction's snapshot; undefined for a statement whose reads took place in this tick. */
  readonly snapshotSeq: Seq | undefined;
  /** The first seq of the current commit; SEQ_ZERO before its first row. */
  readonly firstSeq: Seq;
}

/**
 * Checks that a write to a table without a primary key does not refer to rows by key.
 * @throws {DatabaseError} UNSUPPORTED_FEATURE if the write refers to rows by key.
 */
export function requireKeyless(write: TableWrite, tableName: string): void {
  const { replacedSeqs, operation } = write;
  if (operation === "insert") return;
  if (operation === "delete" && replacedSeqs?.length === rowCountOf(write)) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot ${operation} rows of ${tableName}: a table without a primary key allows only ` +
      "inserts, and deletes of specific rows",
  );
}

/**
 * Checks that no other row or transaction prevents the insertion of a row.
 *
 * @throws {DatabaseError} DUPLICATE_KEY, SERIALIZATION_FAILURE
 */
export function requireInsertable(
  check: ConflictCheck,
  newest: VersionCursor | undefined,
  row: Row,
): void {
  if (newest === undefined) {
    if (mayBeBuried(check) && wasWritten(check, row)) throw changedByAnother(check, row);
    return;
  }
  requireUnchanged(check, newest, row);
  if (newest.isDeleted) return;
  throw duplicateKey(check.table, row);
}

/** Whether history may contain versions of a key written since the snapshot. */
export function mayBeBuried({ snapshotSeq, table }: ConflictCheck): boolean {
  return snapshotSeq !== undefined && table.history.some(({ entry }) => entry.maxSeq > snapshotSeq);
}

/** Whether the row's key has been inserted and deleted again since the snapshot. */
function wasWritten({ snapshotSeq = SEQ_ZERO, table, write }: ConflictCheck, row: Row): boolean {
  const key = table.keyPositions.map((position) => row[position] ?? null);
  const range = { after: snapshotSeq, upTo: Infinity };
  return hasVersion(table, { owner: write.owner, key }, range);
}

export function duplicateKey(table: StoredTable, row: Row): DatabaseError {
  return new DatabaseError(
    "DUPLICATE_KEY",
    `Cannot insert into ${table.definition.name}: ${describeKey(table, row)} already exists`,
  );
}

/**
 * Returns the error for a large commit that conflicts with another commit made while it was being
 * prepared.
 */
export function changedMeanwhile(tableName: string): DatabaseError {
  return new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot change rows of ${tableName}: a concurrent statement has changed some of them`,
    { hint: "run the statement again" },
  );
}

/** Checks that a row can be replaced or deleted. @throws {DatabaseError} SERIALIZATION_FAILURE */
export function requireReplaceable(
  check: ConflictCheck,
  newest: VersionCursor | undefined,
  row: Row,
): void {
  if (newest === undefined) {
    assert(
      check.snapshotSeq !== undefined,
      "conflict check: updated or deleted key has no row version",
    );
    // The row was deleted after the snapshot, and its tombstone is already in history.
    throw changedByAnother(check, row);
  }
  requireUnchanged(check, newest, row);
  assert(!newest.isDeleted, "conflict check: updated or deleted key has no live row");
}

function requireUnchanged(check: ConflictCheck, newest: VersionCursor, row: Row): void {
  const { snapshotSeq, firstSeq } = check;
  if (snapshotSeq === undefined) return;
  const { seq } = newest;
  if (seq <= snapshotSeq || (firstSeq !== SEQ_ZERO && seq >= firstSeq)) return;
  throw changedByAnother(check, row);
}

function changedByAnother({ table, write }: ConflictCheck, row: Row): DatabaseError {
  return new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot ${write.operation} ${describeKey(table, row)} of ${table.definition.name}: a ` +
      "concurrent transaction has changed it",
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

/** Formats a key for an error message, for instance as: key (room, id) = ('a', 7). */
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
