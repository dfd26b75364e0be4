/**
 * Manages the staged writes between BEGIN and COMMIT: the net effect on each key, which the
 * transaction's own statements see, and which COMMIT applies as a single batch.
 *
 * - For each key, the most recently staged row is kept together with the row that the snapshot
 *   contains.
 * - INSERT followed by DELETE writes nothing. Changes that restore the stored row do not write
 *   anything either.
 * - The uploads of the statements also stay staged: they are listed in the tick of the commit, or
 *   removed if the transaction fails.
 * - While there are marks, each change to a staged row is recorded with the row that it replaced,
 *   so that `undoTo` can return to any mark.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { Seq } from "../../../base/seq.ts";
import type { Catalog, ForeignKeyEntry, TableEntry } from "../../../catalog/mod.ts";
import type { TableWrite } from "../../../storage/mod.ts";
import { isArrayValue, isInterval, type Row, type Value } from "../../../types/mod.ts";
import type { LockStrength } from "../../parse/ast/ast.ts";
import { bytesOf } from "../materialised/memory_budget.ts";
import { rowBytes } from "../materialised/row_bytes.ts";
import { type ClaimsMark, ReferenceClaims } from "./reference_claims.ts";
import { type StagedIndex, StagedKeys } from "./staged_keys.ts";
import type { StorageGrowth } from "./storage_meter.ts";
import { TakenNumbers } from "./taken_numbers.ts";
import type { DeferredCall } from "./trigger_calls.ts";

/** The maximum number of rows that are encoded in a single write. */
const WRITE_ROWS_MAX = 512;

/**
 * The memory, in bytes, that a change recorded for a savepoint takes up in addition to the
 * replaced row.
 */
const NOTE_BYTES = 96;

export interface StagedRow {
  /** The values of the row, in the order of the table's columns. */
  readonly row: Row;
  readonly isDeleted: boolean;
  /** The snapshot's row with the same key; undefined if the snapshot has no such row. */
  readonly stored: Row | undefined;
}

/** A transaction's staged rows, in the form in which its statements read them. */
export interface StagedRows {
  hasStaged(tableId: number): boolean;
  /**
   * Returns one owner's staged rows, keyed by key text, in the order in which they were first
   * staged. The map belongs to the transaction and changes with it.
   */
  stagedOf(tableId: number, owner: number): ReadonlyMap<string, StagedRow> | undefined;
}

/** The strength of a transaction's lock on a row; undefined if it has no lock. */
export type HeldStrength = LockStrength | undefined;

/** A row that SELECT … FOR UPDATE has read. */
export interface LockedRow {
  readonly tableId: number;
  readonly owner: number;
  readonly key: Row;
  /** The seq of the row version that was read. */
  readonly seq: number;
}

/** The uploads of a statement that has staged rows in a transaction. */
export interface HeldUploads {
  /**
   * Lists the uploaded files. Called in the tick in which their rows are committed.
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE
   */
  list(nowMs: number): void;
  /** Called once the rows with the uploaded files are durable. */
  keep(): void;
  /**
   * Called when the rows with the uploaded files are not written, or when it is unknown whether
   * they are.
   * @param error The reason.
   */
  fail(error: unknown): void;
}

/** A state of the staged rows and uploads to which a transaction can return. */
export interface TransactionMark {
  readonly noteCount: number;
  readonly uploadCount: number;
  readonly bytes: number;
  readonly growths: ReadonlyMap<number, StorageGrowth> | undefined;
  readonly lockCount: number;
  readonly claims: ClaimsMark;
  readonly deferral: Deferral;
  readonly deferred: readonly DeferredCall[];
}

/** A constraint that can be deferred to the commit. */
export type Deferrable = Pick<ForeignKeyEntry, "isDeferrable" | "isDeferred" | "name">;

/** The choices made by SET CONSTRAINTS. */
interface Deferral {
  /** The choice for individual constraints, keyed by name. True means deferred. */
  readonly byName: ReadonlyMap<string, boolean>;
  /**
   * The choice for all other deferrable constraints; undefined if each constraint keeps its
   * default.
   */
  readonly areAll: boolean | undefined;
}

/**
 * A lock that a transaction has taken on a row, and the strength of its previous lock on that row.
 */
interface LockNote {
  readonly row: LockedRow;
  readonly before: HeldStrength;
}

/** Restores the previous lock of a transaction on a row. */
export type RestoreLock = (row: LockedRow, before: HeldStrength) => void;

/** The staged rows of a table, keyed by owner and then by key text. */
type StagedOwners = Map<number, Map<string, StagedRow>>;

/** Describes how a table's staged rows are converted to its new definition. */
export interface RedefinedRows {
  readonly schemaVersion: number;
  readonly convert: (row: Row) => Row;
  readonly keyTextOf: (row: Row) => string;
}

/** Records that all staged rows of a table were replaced because its definition has changed. */
interface RedefinitionNote {
  readonly tableId: number;
  readonly owners: StagedOwners;
  readonly schemaVersion: number;
}

/** Records a change to a staged row, with the row that was replaced. */
interface StagingNote {
  readonly tableId: number;
  readonly owner: number;
  readonly keyText: string;
  readonly before: StagedRow | undefined;
}

export interface TransactionOptions {
  readonly snapshotSeq: Seq;
  readonly nowMicros: number;
  readonly isReadOnly: boolean;
  readonly startedAtMs: number;
  /** The time for which the transaction may stay open, in milliseconds. */
  readonly timeoutMs: number;
  readonly bytesMax: number;
  /** Whether owners have a storage limit. */
  readonly isMetered: boolean;
  /**
   * Called with the increase in the transaction's memory, which may be negative.
   *
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  readonly onGrow?: ((bytes: number) => void) | undefined;
  /** The tables whose write gates the request has closed for this transaction. */
  readonly gatedIds?: readonly number[] | undefined;
}

export class Transaction implements StagedRows {
  #snapshotSeq: Seq;
  #isSnapshotFixed = false;
  readonly nowMicros: number;
  readonly isReadOnly: boolean;
  readonly startedAtMs: number;
  readonly timeoutMs: number;
  /** The tables whose write gates the request has closed for this transaction. */
  readonly gatedIds: readonly number[];
  /** The numbers that the transaction's statements have taken from sequences. */
  readonly numbers: TakenNumbers = new TakenNumbers();
  /** The parent keys that the transaction's rows reference, and that the commit checks. */
  readonly claims: ReferenceClaims = new ReferenceClaims();
  #deferral: Deferral = { byName: new Map(), areAll: undefined };
  /** The calls to constraint triggers that are deferred to the commit, oldest first. */
  #deferred: DeferredCall[] = [];
  readonly #bytesMax: number;
  readonly #onGrow: TransactionOptions["onGrow"];
  readonly #staged = new Map<number, StagedOwners>();
  /** The schema version of each table for which rows were staged. */
  readonly #versions = new Map<number, number>();
  /** The unique index keys of staged rows, keyed by table and owner. */
  readonly #keys = new Map<string, StagedKeys>();
  #uploads: HeldUploads[] = [];
  #bytes = 0;
  /** The rows that the transaction has locked, keyed by the seq of the version that was read. */
  readonly #locked = new Map<number, LockedRow>();
  /** The number of bytes added for each owner; undefined if there is no storage limit. */
  #growths: Map<number, StorageGrowth> | undefined;
  /**
   * The changes made since the first mark, oldest first, to be undone if necessary; undefined if
   * there is no mark.
   */
  #notes: (RedefinitionNote | StagingNote)[] | undefined;
  /** The locks taken since the first mark, oldest first, to be undone if necessary. */
  #lockNotes: LockNote[] = [];

  constructor(options: TransactionOptions) {
    this.#snapshotSeq = options.snapshotSeq;
    this.nowMicros = options.nowMicros;
    this.isReadOnly = options.isReadOnly;
    this.startedAtMs = options.startedAtMs;
    this.timeoutMs = options.timeoutMs;
    this.gatedIds = options.gatedIds ?? [];
    this.#bytesMax = options.bytesMax;
    this.#onGrow = options.onGrow;
    this.#growths = options.isMetered ? new Map() : undefined;
  }

  /** The newest seq that the transaction's statements see. */
  get snapshotSeq(): Seq {
    return this.#snapshotSeq;
  }

  /** Fixes the snapshot. Called before the transaction reads or changes any data. */
  fixSnapshot(): void {
    this.#isSnapshotFixed = true;
  }

  /** Moves the snapshot to a newer seq, unless the transaction depends on the current snapshot. */
  renewSnapshot(seq: Seq): void {
    if (!this.#isSnapshotFixed) this.#snapshotSeq = seq;
  }

  /**
   * Adds the uploads of a statement. From now on, they are kept or removed together with the
   * transaction.
   */
  holdUploads(uploads: HeldUploads): void {
    this.#uploads.push(uploads);
  }

  /** The uploads of the transaction's statements, oldest first. */
  get uploads(): readonly HeldUploads[] {
    return this.#uploads;
  }

  /** The estimated size of the staged rows, in bytes. Only `undoTo` and `release` reduce it. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Locks a row until the end of the transaction.
   *
   * @param before The transaction's previous lock on the row.
   * @throws {DatabaseError} TRANSACTION_LIMIT
   */
  lock(row: LockedRow, before: HeldStrength): void {
    if (this.#notes !== undefined) this.#lockNotes.push({ row, before });
    if (this.#locked.has(row.seq)) return;
    this.#locked.set(row.seq, row);
    let bytes = NOTE_BYTES;
    for (const value of row.key) bytes += bytesOf(value);
    this.#growBy(bytes);
    this.#requireRoom();
  }

  /** The locked rows. They must still be unchanged at the commit. */
  get locked(): Iterable<LockedRow> {
    return this.#locked.values();
  }

  /** Starts recording changes, so that `undoTo` can return to this state. */
  mark(): TransactionMark {
    this.#notes ??= [];
    return {
      noteCount: this.#notes.length,
      uploadCount: this.#uploads.length,
      bytes: this.#bytes,
      growths: this.#growths === undefined ? undefined : new Map(this.#growths),
      lockCount: this.#lockNotes.length,
      claims: this.claims.mark(),
      deferral: this.#deferral,
      deferred: [...this.#deferred],
    };
  }

  /**
   * Undoes all changes and locks made since a mark, and calls `fail` for each upload added since
   * that mark.
   */
  undoTo(mark: TransactionMark, restoreLock: RestoreLock): void {
    const { bytes, growths, noteCount, uploadCount } = mark;
    for (const { before, row } of this.#lockNotes.splice(mark.lockCount).toReversed()) {
      if (before === undefined) this.#locked.delete(row.seq);
      restoreLock(row, before);
    }
    this.claims.returnTo(mark.claims);
    this.#deferral = mark.deferral;
    this.#deferred = [...mark.deferred];
    const notes = this.#notes ?? [];
    for (const note of notes.splice(noteCount).toReversed()) this.#undo(note);
    this.#growBy(bytes - this.#bytes);
    this.#growths = growths === undefined ? undefined : new Map(growths);
    const undone = this.#uploads.splice(uploadCount);
    for (const uploads of undone) uploads.fail(undefined);
  }

  #undo(note: RedefinitionNote | StagingNote): void {
    if ("owners" in note) {
      this.#putOwners(note.tableId, note);
      return;
    }
    const { before, keyText, owner, tableId } = note;
    this.#keys.delete(`${tableId}/${owner}`);
    const owners = this.#staged.get(tableId);
    const rows = owners?.get(owner);
    if (before !== undefined) {
      rows?.set(keyText, before);
      return;
    }
    rows?.delete(keyText);
    if (rows?.size === 0) owners?.delete(owner);
    if (owners?.size !== 0) return;
    this.#staged.delete(tableId);
    this.#versions.delete(tableId);
  }

  /**
   * Converts the staged rows of a table to the table's new definition, which this transaction has
   * changed.
   *
   * @param next.schemaVersion The version of the new definition.
   * @param next.convert Returns a row in the column order of the new definition.
   * @param next.keyTextOf Returns the primary key of a converted row, as text.
   * @throws {DatabaseError} TRANSACTION_LIMIT, and the errors of `convert`.
   */
  redefine(tableId: number, { convert, keyTextOf, schemaVersion }: RedefinedRows): void {
    const owners = this.#staged.get(tableId);
    if (owners === undefined) return;
    const converted: StagedOwners = new Map();
    let bytes = this.#notes === undefined ? 0 : NOTE_BYTES;
    for (const [owner, rows] of owners) {
      const next = new Map<string, StagedRow>();
      for (const staged of rows.values()) {
        const row = convert(staged.row);
        const stored = staged.stored === undefined ? undefined : convert(staged.stored);
        bytes += rowBytes(row) - (this.#notes === undefined ? rowBytes(staged.row) : 0);
        next.set(keyTextOf(row), { ...staged, row, stored });
      }
      converted.set(owner, next);
    }
    this.#replaceOwners(tableId, { owners: converted, schemaVersion });
    this.#growBy(bytes);
    this.#requireRoom();
  }

  /**
   * Discards the staged rows of a table that this transaction has dropped, and the claims on the
   * table.
   */
  dropTable(tableId: number): void {
    this.claims.dropTable(tableId);
    if (this.#staged.has(tableId)) {
      this.#replaceOwners(tableId, { owners: new Map(), schemaVersion: 0 });
    }
  }

  #replaceOwners(tableId: number, next: Omit<RedefinitionNote, "tableId">): void {
    const owners = this.#staged.get(tableId) ?? new Map<number, Map<string, StagedRow>>();
    const schemaVersion = this.#versions.get(tableId) ?? 0;
    this.#notes?.push({ tableId, owners, schemaVersion });
    this.#putOwners(tableId, next);
  }

  #putOwners(tableId: number, { owners, schemaVersion }: Omit<RedefinitionNote, "tableId">): void {
    for (const place of this.#keys.keys()) {
      if (place.startsWith(`${tableId}/`)) this.#keys.delete(place);
    }
    if (owners.size === 0) {
      this.#staged.delete(tableId);
      this.#versions.delete(tableId);
      return;
    }
    this.#staged.set(tableId, owners);
    this.#versions.set(tableId, schemaVersion);
  }

  /** Stops recording changes, because no mark is left. */
  forgetMarks(): void {
    this.#notes = undefined;
    this.#lockNotes = [];
    this.claims.forgetMarks();
  }

  /** Releases the staged rows of a transaction that has ended. */
  release(): void {
    this.#staged.clear();
    this.#locked.clear();
    this.#versions.clear();
    this.#keys.clear();
    this.#notes = undefined;
    this.#lockNotes = [];
    this.#growBy(-this.#bytes);
  }

  #growBy(bytes: number): void {
    this.#bytes += bytes;
    if (bytes !== 0) this.#onGrow?.(bytes);
  }

  hasStaged(tableId: number): boolean {
    return this.#staged.has(tableId);
  }

  /** Returns the ids of the tables that have staged rows. */
  get tableIds(): readonly number[] {
    return [...this.#staged.keys()];
  }

  stagedOf(tableId: number, owner: number): ReadonlyMap<string, StagedRow> | undefined {
    return this.#staged.get(tableId)?.get(owner);
  }

  /** Returns the owners that have staged rows in a table. */
  ownersOf(tableId: number): readonly number[] {
    return [...(this.#staged.get(tableId)?.keys() ?? [])];
  }

  /**
   * Sets when constraints are checked.
   * @param names Undefined for all deferrable constraints.
   */
  setConstraints(names: readonly string[] | undefined, isDeferred: boolean): void {
    const { areAll, byName } = this.#deferral;
    this.#deferral =
      names === undefined
        ? { byName: new Map(), areAll: isDeferred }
        : {
            byName: new Map([...byName, ...names.map((name) => [name, isDeferred] as const)]),
            areAll,
          };
  }

  /**
   * Whether the check of a foreign key, or the call of a constraint trigger, is deferred to the
   * commit.
   */
  isDeferred({ isDeferrable, isDeferred, name }: Deferrable): boolean {
    if (!isDeferrable) return false;
    const { areAll, byName } = this.#deferral;
    return byName.get(name) ?? areAll ?? isDeferred;
  }

  /**
   * Defers a call to a constraint trigger to the commit.
   * @throws {DatabaseError}
   */
  deferCall(call: DeferredCall): void {
    this.#deferred.push(call);
    this.#growBy(NOTE_BYTES);
    this.#requireRoom();
  }

  get hasDeferred(): boolean {
    return this.#deferred.length > 0;
  }

  /**
   * Removes and returns the oldest deferred call for which `isChosen` returns true; undefined if
   * there is none.
   */
  nextDeferred(isChosen: (call: DeferredCall) => boolean = () => true): DeferredCall | undefined {
    const index = this.#deferred.findIndex(isChosen);
    return index === -1 ? undefined : this.#deferred.splice(index, 1)[0];
  }

  /**
   * Requires that every table still has the definition for which rows were staged, because staged
   * rows are valid only for their definition.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE if a table was altered or dropped in the
   *   meantime.
   */
  requireUnaltered(catalog: Catalog): void {
    for (const [tableId, version] of this.#versions) {
      if (catalog.tableById(tableId)?.schemaVersion === version) continue;
      throw new DatabaseError(
        "SERIALIZATION_FAILURE",
        "Cannot continue the transaction: a table that it wrote to was altered or dropped in the meantime",
        { hint: "repeat the transaction" },
      );
    }
  }

  /**
   * Stages the new state of the row with a key.
   *
   * @param to.isRewrite Whether a definition rewrites the row. A rewrite does not count towards
   *   the storage limit, because the owner has added nothing.
   * @throws {DatabaseError} TRANSACTION_LIMIT if the transaction would exceed its limits.
   */
  stage(
    { isRewrite = false, owner, table }: { isRewrite?: boolean; table: TableEntry; owner: number },
    keyText: string,
    staged: StagedRow,
  ): void {
    const { schemaVersion, tableId } = table;
    let owners = this.#staged.get(tableId);
    if (owners === undefined) {
      owners = new Map();
      this.#versions.set(tableId, schemaVersion);
      this.#staged.set(tableId, owners);
    }
    let rows = owners.get(owner);
    if (rows === undefined) {
      rows = new Map();
      owners.set(owner, rows);
    }
    let bytes = this.#notes === undefined ? 0 : NOTE_BYTES;
    for (const value of staged.row) bytes += bytesOf(value);
    this.#growBy(bytes);
    this.#requireRoom();
    const before = rows.get(keyText);
    this.#notes?.push({ tableId, owner, keyText, before });
    if (this.#growths !== undefined && table.kind !== "shared" && !isRewrite) {
      const had = before === undefined ? staged.stored : rowLeftBy(before);
      this.grow({ owner, table }, bytesOrNone(rowLeftBy(staged)) - bytesOrNone(had));
    }
    rows.set(keyText, staged);
    this.#keys.get(`${tableId}/${owner}`)?.note(keyText, before, staged);
  }

  /**
   * Returns the primary keys, as text, of the staged rows that have the given key in a unique
   * index.
   */
  holdersOf(
    { index, owner, tableId }: { tableId: number; owner: number; index: StagedIndex },
    keyText: string,
  ): readonly string[] {
    const rows = this.stagedOf(tableId, owner);
    if (rows === undefined) return [];
    const place = `${tableId}/${owner}`;
    let keys = this.#keys.get(place);
    if (keys === undefined) {
      keys = new StagedKeys();
      this.#keys.set(place, keys);
    }
    return keys.holdersOf(index, keyText, rows);
  }

  #requireRoom(): void {
    if (this.#bytes <= this.#bytesMax) return;
    throw new DatabaseError(
      "TRANSACTION_LIMIT",
      `Cannot continue the transaction: its changes take more than ${this.#bytesMax} bytes`,
      { hint: "split the transaction, or raise limits.transaction_max_bytes" },
    );
  }

  /** Records the number of bytes by which the commit increases an owner's usage. */
  grow(
    { owner, table }: { owner: number; table: TableEntry },
    bytes: number,
    hasFiles = false,
  ): void {
    if (this.#growths === undefined) return;
    const known = this.#growths.get(owner);
    const tables = known?.tables ?? [];
    this.#growths.set(owner, {
      owner,
      bytes: bytes + (known?.bytes ?? 0),
      tables: tables.includes(table) ? tables : [...tables, table],
      hasFiles: hasFiles || known?.hasFiles === true,
    });
  }

  /** Returns the number of bytes added for each owner; empty if there is no storage limit. */
  get growths(): readonly StorageGrowth[] {
    return [...(this.#growths?.values() ?? [])];
  }

  /** The number of keys for which a row is staged. */
  get keyCount(): number {
    let count = 0;
    for (const owners of this.#staged.values()) {
      for (const rows of owners.values()) count += rows.size;
    }
    return count;
  }

  /**
   * Yields the net effect of the transaction in the order in which rows were first staged. Each
   * write contains a few hundred rows at most.
   */
  *writes(): Generator<TableWrite> {
    for (const [tableId, owners] of this.#staged) {
      for (const [owner, rows] of owners) {
        let operation: TableWrite["operation"] = "insert";
        let alike: Row[] = [];
        for (const { row, isDeleted, stored } of rows.values()) {
          if (stored === undefined && isDeleted) continue;
          if (stored !== undefined && !isDeleted && sameRow(stored, row)) continue;
          const next = stored === undefined ? "insert" : isDeleted ? "delete" : "update";
          if (alike.length === WRITE_ROWS_MAX || (next !== operation && alike.length > 0)) {
            yield { tableId, owner, operation, rows: alike };
            alike = [];
          }
          operation = next;
          alike.push(isDeleted ? (stored ?? row) : row);
        }
        if (alike.length > 0) yield { tableId, owner, operation, rows: alike };
      }
    }
  }
}

function rowLeftBy({ isDeleted, row }: StagedRow): Row | undefined {
  return isDeleted ? undefined : row;
}

function bytesOrNone(row: Row | undefined): number {
  return row === undefined ? 0 : rowBytes(row);
}

/** Whether two rows have the same values, bit for bit. */
export function sameRow(left: Row, right: Row): boolean {
  return left.every((value, index) => sameValue(value, right[index] ?? null));
}

/** Whether two values have the same bits. */
export function sameValue(left: Value, right: Value): boolean {
  // NaN counts as equal to NaN, whereas the floats 0 and -0 count as different.
  if (Object.is(left, right)) return true;
  if (left instanceof Uint8Array && right instanceof Uint8Array) {
    return Buffer.compare(left, right) === 0;
  }
  if (left instanceof Float32Array && right instanceof Float32Array) {
    return left.length === right.length && left.every((number, i) => Object.is(number, right[i]));
  }
  if (left === null || right === null) return false;
  if (isArrayValue(left) && isArrayValue(right)) {
    return (
      left.length === right.length && left.every((item, i) => sameValue(item, right[i] ?? null))
    );
  }
  if (isInterval(left) && isInterval(right)) {
    return left.months === right.months && left.days === right.days && left.micros === right.micros;
  }
  return false;
}
