/**
 * Represents the key that a foreign key references: the other table's primary key, or a unique
 * index.
 *
 * - The columns of the key are in the order of that primary key or index, whatever their order in
 *   the foreign key.
 * - Both kinds of key may change, so a key may disappear although its row still exists.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { ForeignKeyEntry, TableEntry } from "../../../catalog/mod.ts";
import { shownKey } from "../../../storage/mod.ts";
import type { DataType, Row } from "../../../types/mod.ts";
import { runtimeOf } from "../build/table_runtime.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { rowHolding, type UniqueIndex, uniqueIndexesOf } from "./unique_index.ts";

export interface ReferencedKey {
  readonly columnIds: readonly number[];
  /** The positions of the referenced key's columns in a row of the table. */
  readonly positions: readonly number[];
  readonly types: readonly DataType[];
  /** The referenced unique index; undefined for the primary key. */
  readonly index: UniqueIndex | undefined;
}

/**
 * Returns the key that a foreign key references.
 * @throws {DatabaseError} SERIALIZATION_FAILURE if the index was dropped.
 */
export function referencedKeyOf(
  { referencedIds }: ForeignKeyEntry,
  table: TableEntry,
): ReferencedKey {
  const runtime = runtimeOf(table);
  if (isSameSet(referencedIds, table.primaryKey)) {
    const { keyPositions: positions, keyTypes: types } = runtime;
    return { columnIds: table.primaryKey, positions, types, index: undefined };
  }
  const index = uniqueIndexesOf(runtime).find(
    ({ entry }) => entry.where === undefined && isSameSet(referencedIds, entry.columnIds),
  );
  if (index !== undefined) {
    const { entry, types } = index;
    const { columnIds } = entry;
    const positions = columnIds.map((id) =>
      table.columns.findIndex(({ columnId }) => columnId === id),
    );
    return { columnIds, positions, types, index };
  }
  throw new DatabaseError(
    "SERIALIZATION_FAILURE",
    "Cannot check a foreign key: the unique index that it relies on was dropped in the meantime",
    { hint: "run the statement again" },
  );
}

/** Whether a foreign key references a table's primary key. */
export function refersToPrimaryKey(
  { referencedIds }: Pick<ForeignKeyEntry, "referencedIds">,
  { primaryKey }: Pick<TableEntry, "primaryKey">,
): boolean {
  return isSameSet(referencedIds, primaryKey);
}

function isSameSet(ids: readonly number[], others: readonly number[]): boolean {
  return ids.length === others.length && others.every((id) => ids.includes(id));
}

/** Returns the values of the referenced key in a row of its table. */
export function valuesIn({ positions }: Pick<ReferencedKey, "positions">, row: Row): Row {
  return positions.map((position) => row[position] ?? null);
}

/**
 * Whether any row that is visible to the transaction has the key. Outside transactions, visibility
 * to the statement counts.
 */
export function isHeld(
  table: TableEntry,
  {
    referenced: { index },
    key,
    owner,
  }: { referenced: Pick<ReferencedKey, "index">; key: Row; owner: number },
  context: ExecutionContext,
): boolean {
  const runtime = runtimeOf(table);
  if (index !== undefined) {
    return rowHolding(runtime, { index, key, owner }, context) !== undefined;
  }
  const { snapshotSeq, store, transaction } = context;
  const staged = transaction?.stagedOf(table.tableId, owner);
  if (staged !== undefined && staged.size > 0) {
    const mine = staged.get(keyTextOf(runtime.keyTypes, key));
    if (mine !== undefined) return !mine.isDeleted;
  }
  const options = { owner, key, upTo: snapshotSeq, columnIds: table.primaryKey };
  return store.lookup(table.tableId, options) !== undefined;
}

/** Returns a key in the form shown in messages, such as `(id)=(1)`. */
export function shownIn(
  table: TableEntry,
  { positions }: Pick<ReferencedKey, "positions">,
  values: Row,
): string {
  const columns = positions.flatMap((position) => table.columns[position] ?? []);
  return shownKey(columns, values);
}

/** Maps the columns of a foreign key to the columns of the referenced key. */
export interface ReferencePlace {
  /** The positions of the referencing columns, in the order of the referenced key. */
  readonly positions: readonly number[];
  /**
   * Returns the key that a row references. Returns undefined if the row has no parent, and "mixed"
   * if it violates MATCH FULL because only some of its columns are NULL.
   */
  readonly keyOf: (row: Row) => Row | undefined | "mixed";
}

export function placeOf(
  key: ForeignKeyEntry,
  table: TableEntry,
  referenced: Pick<ReferencedKey, "columnIds">,
): ReferencePlace {
  const positions = referenced.columnIds.map((columnId) => {
    const own = key.columnIds[key.referencedIds.indexOf(columnId)];
    return table.columns.findIndex((column) => column.columnId === own);
  });
  const keyOf = (row: Row): Row | undefined | "mixed" => {
    const values = positions.map((position) => row[position] ?? null);
    const nullCount = values.filter((value) => value === null).length;
    if (nullCount === 0) return values;
    return key.isFull && nullCount < values.length ? "mixed" : undefined;
  };
  return { positions, keyOf };
}
