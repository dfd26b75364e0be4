/**
 * Checks a table's existing rows against a foreign key that is already in force. New rows already
 * have to satisfy the key, and referenced rows can no longer disappear. Therefore, all rows can be
 * read as of a single earlier seq, over many ticks.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { ForeignKeyEntry, TableEntry } from "../../catalog/mod.ts";
import { SHARED_OWNER, type Store } from "../../storage/mod.ts";
import { type Batch, type Row, valueAt } from "../../types/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { referencedKeyOf } from "../execute/change/referenced_key.ts";
import { keyTextOf } from "../execute/keys/key_text.ts";

/** The number of rows that a foreign key check reads between two pauses. */
const BATCH_ROWS = 512;

/**
 * Checks the existing rows of a table against a foreign key.
 *
 * @param reference.shownParent The name of the parent table, for messages.
 *
 * @throws {DatabaseError} FOREIGN_KEY_VIOLATION, SERIALIZATION_FAILURE; STATEMENT_TIMEOUT and any
 *   other errors thrown by `pause`
 */
export async function validateReference(
  {
    key,
    parent,
    shownParent,
    table,
  }: { table: TableEntry; parent: TableEntry; shownParent: string; key: ForeignKeyEntry },
  store: Pick<Store, "appliedSeq" | "lookup" | "lookupIndex" | "owners" | "scan">,
  pause: () => Promise<void>,
): Promise<void> {
  const upTo = store.appliedSeq;
  const { index, types, ...referenced } = referencedKeyOf(key, parent);
  const columnIds = referenced.columnIds.map(
    (columnId) => key.columnIds[key.referencedIds.indexOf(columnId)] ?? 0,
  );
  const owners = table.kind === "shared" ? [SHARED_OWNER] : store.owners(table.tableId);
  for (const owner of owners) {
    const parentOwner = parent.kind === "shared" ? SHARED_OWNER : owner;
    const found = new Set<string>();
    const isThere = (values: Row): boolean => {
      const text = keyTextOf(types, values);
      if (found.has(text)) return true;
      const options = { owner: parentOwner, key: values, upTo, columnIds: [] };
      if (index === undefined) {
        if (store.lookup(parent.tableId, options) === undefined) return false;
      } else {
        const { indexId } = index.entry;
        const rows = store.lookupIndex(parent.tableId, { ...options, indexId });
        if (rows === undefined) throw tooOld(key);
        if (rows.length === 0) return false;
      }
      found.add(text);
      return true;
    };
    const scan = store.scan(table.tableId, {
      owner,
      upTo,
      columnIds,
      batchRows: BATCH_ROWS,
      mayBeEmpty: true,
    });
    try {
      for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
        if (!areSound(batch, key, isThere)) throw violated(key, table, shownParent);
        await pause();
      }
    } finally {
      scan.close();
    }
  }
}

/** Returns whether each row either references an existing row or has NULL in its foreign key. */
function areSound(
  { columns, rowCount }: Batch,
  { isFull }: ForeignKeyEntry,
  isThere: (values: Row) => boolean,
): boolean {
  for (let row = 0; row < rowCount; row += 1) {
    const values = columns.map((column) => valueAt(column, row));
    const nullCount = values.filter((value) => value === null).length;
    if (isFull && nullCount > 0 && nullCount < values.length) return false;
    if (nullCount === 0 && !isThere(values)) return false;
  }
  return true;
}

function tooOld({ name }: ForeignKeyEntry): DatabaseError {
  return new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot check foreign key "${name}": the referenced rows kept changing during the check`,
    { hint: "run the statement again" },
  );
}

/**
 * Returns the error for a row that violates a foreign key. The message contains no value, because
 * the row may belong to another user.
 */
function violated(
  { name }: ForeignKeyEntry,
  table: TableEntry,
  shownParent: string,
): DatabaseError {
  return new DatabaseError(
    "FOREIGN_KEY_VIOLATION",
    `Cannot add foreign key "${name}": a row in ${nameOf(table)} references a row in ` +
      `${shownParent} that does not exist`,
    { hint: "correct the rows, or add the foreign key as NOT VALID and validate it later" },
  );
}
