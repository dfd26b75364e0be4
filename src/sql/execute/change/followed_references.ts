/**
 * Carries out foreign key actions. A parent row's key disappears when the row is deleted, or when
 * columns of its primary key or unique index change. ON DELETE and ON UPDATE decide whether the
 * referencing rows are deleted, get new values, or prevent the change. A statement that causes
 * such actions runs in a transaction, so that all of its changes are a single commit.
 *
 *     stage own changes ─► parents of new rows ─► rows that refer to removed keys, level by level
 *                                                 ─► NO ACTION: nothing refers any more
 *
 * - A statement changes each reference at most once, so that cycles of ON UPDATE CASCADE end.
 */
import { assert } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { WaitingSteps } from "../../../base/waiting_steps.ts";
import type { ForeignKeyEntry, OnDeleteAction, TableEntry } from "../../../catalog/mod.ts";
import { SHARED_OWNER } from "../../../storage/mod.ts";
import { castValue, type Row, type Value } from "../../../types/mod.ts";
import { nameOf } from "../../bind/change/dml_target.ts";
import { runtimeOf, type TableRuntime } from "../build/table_runtime.ts";
import type {
  ExecutionContext,
  IncomingReference,
  References,
} from "../context/execution_context.ts";
import type { StagedRow, Transaction } from "../context/transaction.ts";
import { keyTextOf } from "../keys/key_text.ts";
import { ownerOf } from "../operators/scan.ts";
import { Cascades } from "./cascades.ts";
import {
  isHeld,
  placeOf,
  type ReferencedKey,
  referencedKeyOf,
  shownIn,
  valuesIn,
} from "./referenced_key.ts";
import {
  broken,
  isDeferredIn,
  mayName,
  refersAnew,
  requireParents,
  requireParentsOf,
  shownName,
  writtenIn,
} from "./references.ts";
import { referringRows } from "./referring_rows.ts";
import type { RowChange } from "./row_changes.ts";
import { duplicateKey, requireFreeKeys } from "./unique_index.ts";

/**
 * Carries out the ON DELETE and ON UPDATE actions for the changes staged by a transaction. Returns
 * the steps that fire the AFTER triggers of the rows changed by these actions.
 *
 * @throws {DatabaseError} FOREIGN_KEY_VIOLATION, and errors of the rows that change
 */
export function* followReferences(
  { table }: TableRuntime,
  changes: readonly RowChange[],
  context: ExecutionContext,
): WaitingSteps<readonly WaitingSteps<void>[]> {
  const { references, transaction } = context;
  if (references === undefined || transaction === undefined) return [];
  const owner = ownerOf(context.principal, table);
  const { claims } = transaction;
  requireParents(table, writtenIn(changes), { claims, context, owner });
  if (references.to(table.tableId).length === 0) return [];
  const rows = changes.map(({ before, operation, row }): ChangedRow => {
    return operation === "delete" ? { before: row, row: undefined } : { before, row };
  });
  const cascades = new Cascades(context);
  const followed = new Followed(context, references, { cascades, transaction });
  yield* followed.follow({ table, owner, rows });
  return cascades.after();
}

/** Carries out foreign key actions, and fires the triggers of the rows that change. */
export function* followAll(
  runtime: TableRuntime,
  changes: readonly RowChange[],
  context: ExecutionContext,
): WaitingSteps<void> {
  const later = yield* followReferences(runtime, changes, context);
  for (const each of later) yield* each;
}

/** A row before and after a change. `row` is undefined if the change deleted the row. */
interface ChangedRow {
  readonly before: Row | undefined;
  readonly row: Row | undefined;
}

/** The rows of one owner that the statement has changed in a table. */
interface ChangedRows {
  readonly table: TableEntry;
  readonly owner: number;
  readonly rows: readonly ChangedRow[];
}

interface Referring {
  readonly owner: number;
  readonly row: Row;
  /** The changed row as stored in the snapshot; undefined if the snapshot does not contain it. */
  readonly stored: Row | undefined;
}

/**
 * A removed key: no row has it any longer, because its row was deleted or now has a different key.
 */
interface GoneKey {
  readonly key: Row;
  /** The current key of the row that had the removed key; undefined if the row was deleted. */
  readonly next: Row | undefined;
}

/** The removed keys of a parent table, and a foreign key through which rows may reference them. */
interface HeldKeys {
  readonly reference: IncomingReference;
  readonly parent: TableEntry;
  readonly referenced: ReferencedKey;
  readonly owner: number;
  /**
   * The removed keys, keyed by their text. Either all of their rows were deleted, or all of their
   * rows now have different keys.
   */
  readonly keys: ReadonlyMap<string, GoneKey>;
  readonly isUpdate: boolean;
}

/**
 * Returns the keys that rows no longer have: first the keys of deleted rows, then the previous
 * keys of changed rows.
 */
function heldBy(
  { owner, rows, table }: ChangedRows,
  reference: IncomingReference,
): readonly [HeldKeys, HeldKeys] {
  const referenced = referencedKeyOf(reference.key, table);
  const { types } = referenced;
  const deleted = new Map<string, GoneKey>();
  const updated = new Map<string, GoneKey>();
  for (const { before, row } of rows) {
    if (before === undefined) continue;
    const key = valuesIn(referenced, before);
    if (key.includes(null)) continue;
    const text = keyTextOf(types, key);
    const next = row && valuesIn(referenced, row);
    if (next === undefined) deleted.set(text, { key, next });
    else if (next.includes(null) || keyTextOf(types, next) !== text) {
      updated.set(text, { key, next });
    }
  }
  const held = { reference, parent: table, referenced, owner };
  return [
    { ...held, keys: deleted, isUpdate: false },
    { ...held, keys: updated, isUpdate: true },
  ];
}

function actionOf({ isUpdate, reference: { key } }: HeldKeys): OnDeleteAction {
  return isUpdate ? key.onUpdate : key.onDelete;
}

function claimGone({ keys, owner, parent, referenced }: HeldKeys, transaction: Transaction): void {
  const place = { tableId: parent.tableId, columnIds: referenced.columnIds, owner };
  for (const text of keys.keys()) transaction.claims.remove(place, text);
}

class Followed {
  readonly #context: ExecutionContext;
  readonly #references: References;
  readonly #transaction: Transaction;
  /** Removed keys that no row may reference once all actions have been carried out. */
  readonly #held: HeldKeys[] = [];
  /**
   * The references that the statement has already changed. Each is identified by {@linkcode
   * nameOfReference}.
   */
  readonly #settled = new Set<string>();

  readonly #cascades: Cascades;

  constructor(
    context: ExecutionContext,
    references: References,
    { cascades, transaction }: { cascades: Cascades; transaction: Transaction },
  ) {
    this.#context = context;
    this.#references = references;
    this.#transaction = transaction;
    this.#cascades = cascades;
  }

  *follow(first: ChangedRows): WaitingSteps<void> {
    const pending = [first];
    for (let changed = pending.shift(); changed !== undefined; changed = pending.shift()) {
      this.#settle(changed);
      pending.push(...(yield* this.#followLevel(changed)));
    }
    for (const held of this.#held) this.requireNone(held);
  }

  #settle({ owner, rows, table }: ChangedRows): void {
    for (const key of table.foreignKeys ?? []) {
      for (const { before, row } of rows) {
        if (row === undefined || !refersAnew(table, key, { before, row })) continue;
        this.#settled.add(nameOfReference(table, key, { owner, row }));
      }
    }
  }

  /**
   * Carries out the actions for removed keys. Returns the rows changed by these actions, so that
   * the rows referencing them can be processed next.
   */
  *#followLevel(changed: ChangedRows): WaitingSteps<ChangedRows[]> {
    const more: ChangedRows[] = [];
    for (const reference of this.#references.to(changed.table.tableId)) {
      for (const held of heldBy(changed, reference)) {
        if (held.keys.size === 0) continue;
        claimGone(held, this.#transaction);
        more.push(...(yield* this.#carriedOut(held)));
      }
    }
    return more;
  }

  *#carriedOut(held: HeldKeys): WaitingSteps<ChangedRows[]> {
    const action = actionOf(held);
    switch (action) {
      case "restrict":
        this.requireNone(held);
        return [];
      case "no action":
        if (!isDeferredIn(held.reference.key, this.#transaction)) this.#held.push(held);
        return [];
      case "cascade":
        return yield* held.isUpdate ? this.#setAll(held, action) : this.#deleteAll(held);
      case "set null":
      case "set default":
        return yield* this.#setAll(held, action);
    }
  }

  /**
   * Requires that no row references a removed key any longer.
   * @throws {DatabaseError} FOREIGN_KEY_VIOLATION if a row does.
   */
  requireNone(held: HeldKeys): void {
    const { keys, owner, parent, reference, referenced } = held;
    const { child, key } = reference;
    const place = placeOf(key, child, referenced);
    for (const { row } of this.#referring(held)) {
      const values = place.keyOf(row);
      const text = Array.isArray(values) ? keyTextOf(referenced.types, values) : "";
      const gone = keys.get(text);
      if (gone === undefined) continue;
      // The statement may have given the removed key to another row.
      if (isHeld(parent, { referenced, key: gone.key, owner }, this.#context)) continue;
      throw isReferenced(held, gone.key, this.#context);
    }
  }

  *#deleteAll(held: HeldKeys): WaitingSteps<ChangedRows[]> {
    const { child } = held.reference;
    const changes = new ChangesByOwner(child);
    const cascade = this.#cascades.of(child, { event: "delete" });
    const found = this.#referring(held);
    yield* cascade?.begin(found) ?? [];
    for (const referring of found) {
      const { owner, row } = referring;
      const change: RowChange = { operation: "delete", row, before: row };
      if (cascade !== undefined && (yield* cascade.changed(change)) === undefined) {
        // A trigger has skipped the change of the referencing row. At the end of the statement,
        // this row must not reference a missing row.
        this.#held.push(held);
        continue;
      }
      this.#stage(child, referring, { row, isDeleted: true });
      changes.add(owner, { before: row, row: undefined });
      cascade?.note(change);
    }
    return changes.all();
  }

  /** Sets the referencing columns to the new key, to NULL or to their defaults. */
  *#setAll(
    held: HeldKeys,
    action: "cascade" | "set default" | "set null",
  ): WaitingSteps<ChangedRows[]> {
    const { child, key } = held.reference;
    const cascade = this.#cascades.of(child, { event: "update", setIds: new Set(key.columnIds) });
    const found = this.#referring(held);
    yield* cascade?.begin(found) ?? [];
    const changes = new ChangesByOwner(child);
    const staged: { readonly referring: Referring; readonly row: Row }[] = [];
    const refers = refersTo(held);
    let isHeldToEnd = false;
    for (const referring of found) {
      const { owner, row: before } = referring;
      if (this.#settled.has(nameOfReference(child, key, referring))) {
        // The statement itself has set this reference, and by the end of the statement another row
        // may have the removed key.
        isHeldToEnd = true;
        continue;
      }
      const set: RowChange = {
        operation: "update",
        row: this.#changedRow(before, held, action),
        before,
      };
      const changed = cascade === undefined ? set : yield* cascade.changed(set);
      if (changed === undefined) {
        isHeldToEnd = true;
        continue;
      }
      const rows = this.#checked(changed.row, held);
      for (const row of rows) {
        // The DEFAULT may be the removed key itself, which another row may have by the end of the
        // statement.
        isHeldToEnd ||= refers(row);
        staged.push({ referring, row });
        changes.add(owner, { before, row });
        cascade?.note({ ...changed, row });
      }
    }
    this.#stageAll(child, staged);
    if (isHeldToEnd) this.#held.push(held);
    const all = changes.all();
    for (const each of all) this.#requireSound(each);
    return all;
  }

  /**
   * Computes a changed row's generated columns, and checks the row against its constraints.
   * @throws {DatabaseError}
   */
  #checked(changed: Row, { parent, reference: { child } }: HeldKeys): readonly Row[] {
    const runtime = runtimeOf(child);
    try {
      const rows = runtime.completed([changed], this.#context);
      runtime.check(rows, this.#context);
      return rows;
    } catch (error) {
      if (!(error instanceof DatabaseError) || mayName(child, this.#context.references))
        throw error;
      // The original message would name a table that is hidden from the caller.
      const what = `Cannot change ${nameOf(parent)}: a row in a different table references the changed row`;
      throw new DatabaseError(
        error.code,
        `${what}, and would then violate a constraint of that table`,
      );
    }
  }

  #changedRow(
    before: Row,
    { keys, reference: { child, key }, referenced }: HeldKeys,
    action: "cascade" | "set default" | "set null",
  ): Row {
    const { keyOf, positions } = placeOf(key, child, referenced);
    const runtime = runtimeOf(child);
    const values = keyOf(before);
    const text = Array.isArray(values) ? keyTextOf(referenced.types, values) : "";
    const next = keys.get(text)?.next;
    const changed: Value[] = [...before];
    for (const [i, position] of positions.entries()) {
      const from = referenced.types[i];
      const to = runtime.types[position];
      if (action === "set null") changed[position] = null;
      else if (action === "set default") {
        changed[position] = runtime.defaultAt(position, this.#context);
      } else if (from !== undefined && to !== undefined) {
        const value = next?.[i] ?? null;
        const options = { from, to, mode: "assignment", nowMicros: 0 } as const;
        changed[position] = value === null ? null : castValue(value, options);
      }
    }
    return changed;
  }

  /**
   * Requires that the parents of staged rows exist, and that no other row has the same unique keys
   * as a staged row.
   *
   * @throws {DatabaseError}
   */
  #requireSound({ owner, rows, table }: ChangedRows): void {
    const context = this.#context;
    const runtime = runtimeOf(table);
    const { claims } = this.#transaction;
    const written = rows.flatMap(({ before, row }) => (row === undefined ? [] : { before, row }));
    requireParents(table, written, { claims, context, owner });
    for (const { row } of written) requireFreeKeys(runtime, { row, owner, isNew: false }, context);
  }

  /**
   * Stages the new values of referencing rows. Rows whose primary keys change give up their keys
   * first, so that other changed rows can take these keys.
   *
   * @throws {DatabaseError} DUPLICATE_KEY
   */
  #stageAll(
    table: TableEntry,
    changed: readonly { readonly referring: Referring; readonly row: Row }[],
  ): void {
    const runtime = runtimeOf(table);
    const textOf = (row: Row): string => keyTextOf(runtime.keyTypes, runtime.keyOf(row));
    const moved = new Set(
      changed.filter((each) => textOf(each.row) !== textOf(each.referring.row)),
    );
    for (const { referring } of moved) {
      this.#stage(table, referring, { row: referring.row, isDeleted: true });
    }
    for (const each of changed) {
      const { owner } = each.referring;
      let { stored } = each.referring;
      if (moved.has(each)) {
        const key = runtime.keyOf(each.row);
        if (isHeld(table, { referenced: { index: undefined }, key, owner }, this.#context)) {
          throw duplicateKey(runtime, key, "update");
        }
        const rows = this.#transaction.stagedOf(table.tableId, owner);
        stored = rows?.get(textOf(each.row))?.stored;
      }
      this.#stage(table, { owner, stored }, { row: each.row, isDeleted: false });
    }
  }

  #stage(
    table: TableEntry,
    { owner, stored }: Pick<Referring, "owner" | "stored">,
    { isDeleted, row }: Pick<StagedRow, "isDeleted" | "row">,
  ): void {
    this.#context.requireUnaltered(table);
    const { keyTypes, keyOf } = keyed(table);
    const text = keyTextOf(keyTypes, keyOf(row));
    this.#transaction.stage({ table, owner }, text, { row, isDeleted, stored });
  }

  /**
   * Returns all live rows that reference removed keys. It must be called before any of these rows
   * changes.
   */
  #referring(held: HeldKeys): Referring[] {
    const { child } = held.reference;
    const owners = this.#ownersOf(held);
    const found = owners.flatMap((owner) => this.#referringOf(owner, held));
    this.#context.noteRead(found.length);
    assert(
      found.every(({ row }) => row.length === child.columns.length),
      "foreign key check: referencing row lacks columns of its table",
    );
    return found;
  }

  #ownersOf({ owner, parent, reference: { child } }: HeldKeys): readonly number[] {
    if (child.kind === "shared") return [SHARED_OWNER];
    if (parent.kind !== "shared") return [owner];
    const staged = this.#transaction.ownersOf(child.tableId);
    return [...new Set([...this.#references.owners(child.tableId), ...staged])];
  }

  #referringOf(owner: number, held: HeldKeys): Referring[] {
    const { keys, reference, referenced } = held;
    const { child } = reference;
    const refers = refersTo(held);
    const staged = this.#transaction.stagedOf(child.tableId, owner);
    const own = keyed(child);
    const found: Referring[] = [];
    const wanted = [...keys.values()].map((each) => each.key);
    for (const row of referringRows(reference, { owner, referenced, wanted }, this.#context)) {
      if (!refers(row)) continue;
      const mine = staged?.get(keyTextOf(own.keyTypes, own.keyOf(row)));
      if (mine === undefined) found.push({ owner, row, stored: row });
    }
    for (const { isDeleted, row, stored } of staged?.values() ?? []) {
      if (!isDeleted && refers(row)) found.push({ owner, row, stored });
    }
    return found;
  }
}

/**
 * Returns a function that tests whether a row of the referencing table references one of the
 * removed keys.
 */
function refersTo({
  keys,
  reference: { child, key },
  referenced,
}: HeldKeys): (row: Row) => boolean {
  const { keyOf } = placeOf(key, child, referenced);
  return (row) => {
    const values = keyOf(row);
    return Array.isArray(values) && keys.has(keyTextOf(referenced.types, values));
  };
}

/** The rows of a table that change in the same step, grouped by owner. */
class ChangesByOwner {
  readonly #table: TableEntry;
  readonly #byOwner = new Map<number, ChangedRow[]>();

  constructor(table: TableEntry) {
    this.#table = table;
  }

  add(owner: number, row: ChangedRow): void {
    const rows = this.#byOwner.get(owner) ?? [];
    this.#byOwner.set(owner, rows);
    rows.push(row);
  }

  all(): ChangedRows[] {
    return [...this.#byOwner].map(([owner, rows]) => ({ table: this.#table, owner, rows }));
  }
}

/** Returns a string that identifies a reference by its foreign key and its referencing row. */
function nameOfReference(
  table: TableEntry,
  { name }: ForeignKeyEntry,
  { owner, row }: { owner: number; row: Row },
): string {
  const { keyOf, keyTypes } = keyed(table);
  return `${table.tableId}/${owner}/${name}/${keyTextOf(keyTypes, keyOf(row))}`;
}

function keyed(table: TableEntry): Pick<TableRuntime, "keyTypes"> & { keyOf: (row: Row) => Row } {
  const runtime = runtimeOf(table);
  return { keyTypes: runtime.keyTypes, keyOf: (row) => runtime.keyOf(row) };
}

/**
 * Checks deferred constraints, in the tick of the commit or before it.
 *
 * @param isChosen Selects the constraints to check.
 * @throws {DatabaseError} FOREIGN_KEY_VIOLATION
 */
export function checkDeferred(
  context: ExecutionContext,
  isChosen: (key: ForeignKeyEntry) => boolean = () => true,
): void {
  const { references, transaction } = context;
  if (references === undefined || transaction === undefined) return;
  const { claims } = transaction;
  for (const { owner, rows, table } of stagedIn(transaction, references)) {
    const live = rows.flatMap(({ row }) => (row === undefined ? [] : [row]));
    for (const key of table.foreignKeys ?? []) {
      if (isDeferredIn(key, transaction) && isChosen(key)) {
        requireParentsOf(key, live, { claims, context, owner, table });
      }
    }
    for (const reference of references.to(table.tableId)) {
      for (const held of heldBy({ table, owner, rows }, reference)) {
        if (held.keys.size === 0) continue;
        // Keys that were removed before the foreign key was created have not been checked against
        // it.
        if (reference.key.sinceSeq > context.snapshotSeq) throw broken("a foreign key was added");
        if (actionOf(held) !== "no action" || !isDeferredIn(reference.key, transaction)) continue;
        if (!isChosen(reference.key)) continue;
        claimGone(held, transaction);
        const cascades = new Cascades(context);
        new Followed(context, references, { cascades, transaction }).requireNone(held);
      }
    }
  }
}

/** Yields the rows that a transaction has changed, with the corresponding rows of the snapshot. */
function* stagedIn(transaction: Transaction, references: References): Generator<ChangedRows> {
  for (const tableId of transaction.tableIds) {
    const table = references.tableById(tableId);
    if (table === undefined) continue;
    for (const owner of transaction.ownersOf(tableId)) {
      const staged = transaction.stagedOf(tableId, owner)?.values() ?? [];
      const rows = Array.from(staged, ({ isDeleted, row, stored }): ChangedRow => {
        return { before: stored, row: isDeleted ? undefined : row };
      });
      yield { table, owner, rows };
    }
  }
}

function isReferenced(
  { isUpdate, parent, reference: { child, key }, referenced }: HeldKeys,
  values: Row,
  { references }: Pick<ExecutionContext, "references">,
): DatabaseError {
  const [action, hint] = isUpdate
    ? [
        `update ${nameOf(parent)}`,
        "change those rows first, or define the foreign key with ON UPDATE CASCADE",
      ]
    : [
        `delete from ${nameOf(parent)}`,
        "delete those rows first, or define the foreign key with ON DELETE CASCADE",
      ];
  const rows = `rows of ${shownName(child, references)} refer to ${shownIn(parent, referenced, values)}`;
  const by = mayName(child, references) ? ` through foreign key "${key.name}"` : "";
  return new DatabaseError("FOREIGN_KEY_VIOLATION", `Cannot ${action}: ${rows}${by}`, { hint });
}
