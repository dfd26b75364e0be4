/**
 * Checks foreign keys while rows change: looks up the parents of written rows, and repeats the
 * checks at the commit. `followed_references.ts` carries out foreign key actions.
 *
 * - The parent of a referencing row must exist in the tick in which the row is written. A
 *   transaction also sees the rows that it has written itself. A deferred foreign key is checked
 *   only at the commit.
 * - A commit prepared at an earlier seq fails with a conflict if a key that it needs has
 *   disappeared in the meantime, or if a row has been written that references a key removed by the
 *   commit.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { Seq } from "../../../base/seq.ts";
import type { ForeignKeyEntry, TableEntry } from "../../../catalog/mod.ts";
import { DELETED_COLUMN_ID, type ReadStore, SHARED_OWNER } from "../../../storage/mod.ts";
import type { DataType, Row } from "../../../types/mod.ts";
import { valueAt } from "../../../types/mod.ts";
import { nameOf } from "../../bind/change/dml_target.ts";
import { runtimeOf } from "../build/table_runtime.ts";
import type {
  ExecutionContext,
  IncomingReference,
  References,
} from "../context/execution_context.ts";
import type { Claim, ReferenceClaims } from "../context/reference_claims.ts";
import type { Transaction } from "../context/transaction.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { hasTriggers } from "./fired_triggers.ts";
import {
  isHeld,
  placeOf,
  type ReferencedKey,
  referencedKeyOf,
  refersToPrimaryKey,
  shownIn,
} from "./referenced_key.ts";
import type { RowChange } from "./row_changes.ts";

/** A planned change that has not run yet. */
export interface PlannedChange {
  readonly target: TableEntry;
  /** Whether the change may delete rows. */
  readonly deletes: boolean;
  /** The positions of the columns to which the change assigns values in existing rows. */
  readonly setPositions: readonly number[];
}

/**
 * Whether a change needs a transaction, because it may fire triggers, change primary keys or cause
 * changes to referencing rows.
 */
export function needsTransaction(
  { deletes, setPositions, target }: PlannedChange,
  references: Pick<References, "to">,
): boolean {
  if (hasTriggers(target)) return true;
  const refersToItself = target.foreignKeys?.some(({ tableId }) => tableId === target.tableId);
  if (refersToItself === true) return true;
  if (deletes && references.to(target.tableId).length > 0) return true;
  if (setPositions.length === 0) return false;
  const changing = new Set<number>();
  for (const [position, { columnId, generatedSql }] of target.columns.entries()) {
    if (setPositions.includes(position) || generatedSql !== undefined) changing.add(columnId);
  }
  if (target.primaryKey.some((id) => changing.has(id))) return true;
  return references
    .to(target.tableId)
    .some(({ key }) => key.referencedIds.some((id) => changing.has(id)));
}

/**
 * Requires that the parents of the given rows exist. The parents are recorded, because they may be
 * deleted before the commit.
 *
 * @throws {DatabaseError} FOREIGN_KEY_VIOLATION
 */
export function requireParents(
  table: TableEntry,
  changes: readonly WrittenRow[],
  { claims, context, owner }: { context: ExecutionContext; owner: number; claims: ReferenceClaims },
): void {
  for (const key of table.foreignKeys ?? []) {
    if (isDeferredIn(key, context.transaction)) continue;
    const rows = changes.flatMap((change) => (refersAnew(table, key, change) ? [change.row] : []));
    requireParentsOf(key, rows, { claims, context, owner, table });
  }
}

/** A row that a change writes, and the row that it replaces. */
export interface WrittenRow {
  readonly row: Row;
  readonly before?: Row | undefined;
}

/** Whether a row references a key that its previous version did not reference. */
export function refersAnew(
  table: TableEntry,
  { columnIds }: ForeignKeyEntry,
  { before, row }: WrittenRow,
): boolean {
  if (before === undefined) return true;
  return columnIds.some((columnId) => {
    const at = table.columns.findIndex((column) => column.columnId === columnId);
    return before[at] !== row[at];
  });
}

/**
 * Requires that the rows referenced by written rows exist.
 * @throws {DatabaseError} FOREIGN_KEY_VIOLATION
 */
export function requireParentsOf(
  key: ForeignKeyEntry,
  rows: readonly Row[],
  {
    claims,
    context,
    owner,
    table,
  }: { context: ExecutionContext; owner: number; claims: ReferenceClaims; table: TableEntry },
): void {
  if (rows.length === 0) return;
  const parent = tableOf(key.tableId, context);
  const parentOwner = parent.kind === "shared" ? SHARED_OWNER : owner;
  const found = new Set<string>();
  const referenced = referencedKeyOf(key, parent);
  const { columnIds, types } = referenced;
  const place = placeOf(key, table, referenced);
  for (const row of rows) {
    const values = place.keyOf(row);
    if (values === undefined) continue;
    if (values === "mixed") throw notFull(key, table);
    const text = keyTextOf(types, values);
    if (found.has(text)) continue;
    if (!isHeld(parent, { referenced, key: values, owner: parentOwner }, context)) {
      throw noParent(key, { parent, referenced, table, values, context });
    }
    found.add(text);
    claims.need({ tableId: parent.tableId, columnIds, owner: parentOwner }, text);
  }
}

function tableOf(tableId: number, { references }: ExecutionContext): TableEntry {
  const table = references?.tableById(tableId);
  if (table !== undefined) return table;
  throw new DatabaseError(
    "SERIALIZATION_FAILURE",
    "Cannot check a foreign key: the table that it references was dropped in the meantime",
    { hint: "run the statement again" },
  );
}

/** Returns the changes that write a row: all except deletions. */
export function writtenIn(changes: readonly RowChange[]): readonly RowChange[] {
  return changes.filter(({ operation }) => operation !== "delete");
}

/** Whether a foreign key is checked only at the commit. */
export function isDeferredIn(key: ForeignKeyEntry, transaction: Transaction | undefined): boolean {
  return transaction?.isDeferred(key) ?? false;
}

/**
 * Checks, in the tick of a commit, that the parents found at an earlier seq still exist, and that
 * no new row references a removed key.
 *
 * @throws {DatabaseError} SERIALIZATION_FAILURE
 */
export function requireUnbroken(
  claims: ReferenceClaims,
  { references, snapshotSeq, store }: ClaimCheck,
): void {
  if (references === undefined) return;
  const { appliedSeq } = references;
  if (claims.isEmpty || appliedSeq <= snapshotSeq) return;
  const range = { after: snapshotSeq, upTo: appliedSeq };
  for (const claim of claims.needed()) {
    const table = references.tableById(claim.tableId);
    if (table === undefined) throw broken("a table was dropped");
    requireNeeded(table, claim, { range, references, store });
  }
  for (const claim of claims.removed()) {
    for (const reference of references.to(claim.tableId)) {
      if (reference.key.sinceSeq > snapshotSeq) throw broken("a foreign key was added");
      requireNoneSince(reference, claim, { range, references, store });
    }
  }
}

/** The references to check, and the store in which to check them. */
type ClaimCheck = Pick<ExecutionContext, "references" | "snapshotSeq"> & {
  readonly store: Pick<ReadStore, "lookup" | "scan">;
};

/** The commits that other transactions have made since the snapshot was taken. */
interface Since extends Pick<ClaimCheck, "store"> {
  readonly references: References;
  readonly range: { readonly after: Seq; readonly upTo: Seq };
}

/**
 * Requires that no needed key has disappeared since the snapshot, either because its row was
 * deleted or because the key changed.
 */
function requireNeeded(table: TableEntry, claim: Claim, { range, references, store }: Since): void {
  const { columnIds, keyTexts, owner, tableId } = claim;
  const { keyTypes, keyPositions } = runtimeOf(table);
  const isPrimary = columnIds.join() === table.primaryKey.join();
  const types = typesOf(table, columnIds);
  const read = [...table.primaryKey, ...columnIds, DELETED_COLUMN_ID];
  const options = { owner, columnIds: read, withTombstones: true, ...range };
  for (const row of rowsSince(store, tableId, options)) {
    const primary = row.slice(0, keyPositions.length);
    const isGone = row.at(-1) === true;
    if (isPrimary) {
      if (!isGone || !keyTexts.has(keyTextOf(keyTypes, primary))) continue;
      throw broken(`a referenced row in ${shownName(table, references)} was deleted`);
    }
    const before = store.lookup(tableId, { owner, key: primary, upTo: range.after, columnIds });
    if (before === undefined || before.includes(null)) continue;
    const text = keyTextOf(types, before);
    if (!keyTexts.has(text)) continue;
    const now = row.slice(keyPositions.length, -1);
    if (!isGone && !now.includes(null) && keyTextOf(types, now) === text) continue;
    throw broken(`a referenced row in ${shownName(table, references)} was changed or deleted`);
  }
}

function typesOf(table: TableEntry, columnIds: readonly number[]): readonly DataType[] {
  return columnIds.flatMap(
    (columnId) => table.columns.find((column) => column.columnId === columnId)?.type ?? [],
  );
}

function requireNoneSince(
  { child, key }: IncomingReference,
  { columnIds, keyTexts, owner, tableId }: Claim,
  { range, references, store }: Since,
): void {
  const parent = references.tableById(tableId);
  if (parent === undefined) return;
  const referenced = referencedKeyOf(key, parent);
  if (referenced.columnIds.join() !== columnIds.join()) return;
  const place = placeOf(key, child, referenced);
  const read = place.positions.map((position) => child.columns[position]?.columnId ?? 0);
  const owners =
    child.kind === "shared"
      ? [SHARED_OWNER]
      : parent.kind === "shared"
        ? references.owners(child.tableId)
        : [owner];
  for (const each of owners) {
    const options = { owner: each, columnIds: read, withTombstones: false, ...range };
    for (const values of rowsSince(store, child.tableId, options)) {
      if (values.includes(null)) continue;
      if (!keyTexts.has(keyTextOf(referenced.types, values))) continue;
      throw broken(
        `a row that references a removed key was written to ${shownName(child, references)}`,
      );
    }
  }
}

function* rowsSince(
  store: Pick<ReadStore, "scan">,
  tableId: number,
  options: Parameters<ReadStore["scan"]>[1],
): Generator<Row> {
  const scan = store.scan(tableId, options);
  try {
    for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
      for (let row = 0; row < batch.rowCount; row += 1) {
        yield batch.columns.map((column) => valueAt(column, row));
      }
    }
  } finally {
    scan.close();
  }
}

/**
 * Requires that the changes of a statement without a transaction trigger no foreign key actions,
 * which need a transaction. A foreign key with such an action may have been added after the
 * statement began.
 *
 * @throws {DatabaseError} SERIALIZATION_FAILURE
 */
export function requireUnreferenced(
  table: TableEntry,
  operations: ReadonlySet<RowChange["operation"]>,
  { references, snapshotSeq }: Pick<ExecutionContext, "references" | "snapshotSeq">,
): void {
  const isAdded = references?.to(table.tableId).some(({ key }) => {
    if (operations.has("delete")) return true;
    return (
      operations.has("update") && !refersToPrimaryKey(key, table) && key.sinceSeq > snapshotSeq
    );
  });
  if (isAdded === true) throw broken("a foreign key was added");
}

export function broken(why: string): DatabaseError {
  return new DatabaseError("SERIALIZATION_FAILURE", `Cannot commit: ${why} in the meantime`, {
    hint: "repeat the transaction",
  });
}

/**
 * Returns the name of a table for a message, or "another table" if the table is hidden from the
 * caller.
 */
export function shownName(table: TableEntry, references: References | undefined): string {
  return mayName(table, references) ? nameOf(table) : "a different table";
}

export function mayName(table: TableEntry, references: References | undefined): boolean {
  return references?.mayName(table) !== false;
}

/** Returns the error for a row whose parent does not exist or is hidden from the caller. */
export function noParent(
  { name }: ForeignKeyEntry,
  {
    context: { references },
    parent,
    referenced,
    table,
    values,
  }: {
    context: Pick<ExecutionContext, "references">;
    parent: TableEntry;
    referenced: ReferencedKey;
    table: TableEntry;
    values: Row;
  },
): DatabaseError {
  const key = mayName(table, references) ? `foreign key "${name}"` : "a foreign key";
  const row = mayName(parent, references)
    ? `${shownIn(parent, referenced, values)} of ${nameOf(parent)}`
    : "a row in a different table";
  return new DatabaseError(
    "FOREIGN_KEY_VIOLATION",
    `Cannot write a row to ${shownName(table, references)}: ${key} references ${row}, which ` +
      "does not exist",
  );
}

function notFull({ name }: ForeignKeyEntry, table: TableEntry): DatabaseError {
  return new DatabaseError(
    "FOREIGN_KEY_VIOLATION",
    `Cannot write a row to ${nameOf(table)}: with MATCH FULL, the columns of foreign key ` +
      `"${name}" must be either all NULL or all not NULL`,
  );
}
