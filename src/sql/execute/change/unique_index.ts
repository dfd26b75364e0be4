/**
 * Reads a table's unique indexes for statements that write to the table. This module computes the
 * key of a row, and finds the row with a given key among the stored rows and the transaction's
 * staged rows.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type IndexEntry,
  type IndexPart,
  indexPartsOf,
  type TableEntry,
} from "../../../catalog/mod.ts";
import { computedKey, indexColumnsOf, SEQ_COLUMN_ID, shownKey } from "../../../storage/mod.ts";
import type { DataType, Row, Value } from "../../../types/mod.ts";
import { nameOf } from "../../bind/change/dml_target.ts";
import { storedIndexOf } from "../build/stored_index.ts";
import type { TableRuntime } from "../build/table_runtime.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { ownerOf } from "../operators/scan.ts";

/** A unique index with the functions that compute its keys. */
export interface UniqueIndex {
  readonly entry: IndexEntry;
  readonly parts: readonly IndexPart[];
  readonly types: readonly DataType[];
  /**
   * Returns the key of a row; undefined if the key contains NULL, and therefore equals no other
   * key, or if a partial index excludes the row.
   */
  readonly keyOf: (row: Row) => Row | undefined;
}

const indexesOf = new WeakMap<TableRuntime, readonly UniqueIndex[]>();

/** Returns the unique indexes of a table that are ready. */
export function uniqueIndexesOf(runtime: TableRuntime): readonly UniqueIndex[] {
  let indexes = indexesOf.get(runtime);
  if (indexes === undefined) {
    const { table } = runtime;
    indexes = (table.indexes ?? []).flatMap((entry): UniqueIndex[] => {
      if (!entry.isUnique || entry.state !== "ready") return [];
      const parts = indexPartsOf(table, entry);
      const keyOf = compileKey(table, entry);
      return [{ entry, parts, types: parts.map(({ type }) => type), keyOf }];
    });
    indexesOf.set(runtime, indexes);
  }
  return indexes;
}

function compileKey(table: TableEntry, entry: IndexEntry): UniqueIndex["keyOf"] {
  const stored = storedIndexOf(table, entry);
  const parts = indexColumnsOf(table.columns, stored).map(
    ({ columnId, expression }): ((row: Row) => Value) => {
      if (expression === undefined) {
        const position = table.columns.findIndex((column) => column.columnId === columnId);
        return (row) => row[position] ?? null;
      }
      const positions = expression.reads.map((read) =>
        table.columns.findIndex((column) => column.columnId === read.columnId),
      );
      return (row) =>
        computedKey(
          expression,
          positions.map((position) => row[position] ?? null),
        );
    },
  );
  return (row) => {
    const key = parts.map((valueIn) => valueIn(row));
    return entry.equalNulls !== true && key.includes(null) ? undefined : key;
  };
}

/** A key to be looked up in a unique index. */
export interface AskedKey {
  readonly index: UniqueIndex;
  readonly key: Row;
  /** The primary key, as text, of a row to be ignored. */
  readonly except?: string;
  /** The owner of the row; absent if the caller is the owner. */
  readonly owner?: number;
}

/**
 * Returns the row that has a key: all declared columns, followed by `_seq`, which is NULL for a
 * staged row.
 *
 * @throws {DatabaseError} SERIALIZATION_FAILURE if the transaction's snapshot is too old.
 */
export function rowHolding(
  runtime: TableRuntime,
  asked: AskedKey,
  context: ExecutionContext,
): Row | undefined {
  const { table } = runtime;
  const { except, index, key, owner = ownerOf(context.principal, table) } = asked;
  const staged = context.transaction?.stagedOf(table.tableId, owner);
  if (staged !== undefined && context.transaction !== undefined) {
    const place = { tableId: table.tableId, owner, index: { ...index, id: index.entry.indexId } };
    const holders = context.transaction.holdersOf(place, keyTextOf(index.types, key));
    const holder = holders.find((primary) => primary !== except);
    const mine = holder === undefined ? undefined : staged.get(holder);
    if (mine !== undefined) return [...mine.row, null];
  }
  const columnIds = [...table.columns.map(({ columnId }) => columnId), SEQ_COLUMN_ID];
  const found = context.store.lookupIndex(table.tableId, {
    indexId: index.entry.indexId,
    owner,
    key,
    upTo: context.snapshotSeq,
    columnIds,
  });
  if (found === undefined) {
    throw new DatabaseError(
      "SERIALIZATION_FAILURE",
      `Cannot look up index "${index.entry.name}" of ${nameOf(table)}: rows in the table have ` +
        "changed since the transaction began",
      { hint: "run the transaction again" },
    );
  }
  const [row] = found;
  if (row === undefined || (staged === undefined && except === undefined)) return row;
  const primary = keyTextOf(runtime.keyTypes, runtime.keyOf(row));
  // If the transaction has staged a row with this primary key, the staged row is deleted or has a
  // different index key.
  return primary === except || staged?.has(primary) === true ? undefined : row;
}

/**
 * Refuses a row of the open transaction if another row has the same key in a unique index.
 *
 * @throws {DatabaseError} DUPLICATE_KEY
 */
export function requireFreeKeys(
  runtime: TableRuntime,
  { isNew, row, owner }: { row: Row; isNew: boolean; owner: number },
  context: ExecutionContext,
): void {
  const own = keyTextOf(runtime.keyTypes, runtime.keyOf(row));
  for (const index of uniqueIndexesOf(runtime)) {
    const key = index.keyOf(row);
    if (key === undefined) continue;
    const asked = { index, key, owner, except: own };
    if (rowHolding(runtime, asked, context) !== undefined) throw duplicateIn(runtime, asked, isNew);
  }
}

/** Returns the error for a primary key that another row of the table already has. */
export function duplicateKey(
  { keyPositions, table }: TableRuntime,
  key: Row,
  operation: "insert" | "update",
): DatabaseError {
  const columns = keyPositions.flatMap((position) => table.columns[position] ?? []);
  const action = operation === "insert" ? "insert into" : "update";
  return new DatabaseError(
    "DUPLICATE_KEY",
    `Cannot ${action} ${nameOf(table)}: ${shownKey(columns, key)} already exists`,
  );
}

/** Returns the error that the store would raise for a duplicate index key. */
export function duplicateIn(
  { table }: TableRuntime,
  { index, key }: AskedKey,
  isNew: boolean,
): DatabaseError {
  return new DatabaseError(
    "DUPLICATE_KEY",
    `Cannot ${isNew ? "insert into" : "update"} ${nameOf(table)}: ${shownKey(index.parts, key)} already exists in unique index "${index.entry.name}"`,
  );
}
