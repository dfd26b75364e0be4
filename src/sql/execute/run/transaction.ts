/**
 * The staged writes of one BEGIN … COMMIT: the net effect of each key, read by the transaction's
 * own statements and applied as one batch at COMMIT.
 *
 * - A key has one staged row, the latest; what the snapshot held of it is kept beside it.
 * - INSERT then DELETE, and a net effect equal to the stored row, write nothing.
 * - Uploads of its statements stay staged, too: they are listed in the turn of the commit, and go
 *   with a transaction that has none.
 */
import { assert } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { Seq } from "../../../base/seq.ts";
import type { Catalog, TableEntry } from "../../../catalog/mod.ts";
import type { TableWrite } from "../../../storage/mod.ts";
import type { Row, Value } from "../../../types/mod.ts";
import { bytesOf } from "../held/memory_budget.ts";
import { rowBytes } from "../held/row_bytes.ts";
import type { StorageGrowth } from "./storage_meter.ts";

/** Rows that are written alike, in one piece of work. */
const WRITE_ROWS_MAX = 512;

export interface StagedRow {
  /** Values in the order of the table's columns. */
  readonly row: Row;
  readonly isDeleted: boolean;
  /** What the snapshot holds under the key; undefined for nothing. */
  readonly stored: Row | undefined;
}

/** The staged rows of a transaction as its statements read them. */
export interface StagedRows {
  hasStaged(tableId: number): boolean;
  /** The staged rows of one owner by key text, in order of first staging; aliased. */
  stagedOf(tableId: number, owner: number): ReadonlyMap<string, StagedRow> | undefined;
}

/** The uploads of a statement whose rows are staged here. */
export interface HeldUploads {
  /**
   * In the turn in which the rows commit.
   * @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE
   */
  list(nowMs: number): void;
  /** The rows are durable. */
  keep(): void;
  /**
   * They are not written, or it is unknown whether they are.
   * @param error What kept them from it.
   */
  fail(error: unknown): void;
}

export interface TransactionOptions {
  readonly snapshotSeq: Seq;
  readonly nowMicros: number;
  readonly isReadOnly: boolean;
  readonly startedAtMs: number;
  readonly bytesMax: number;
  /** Whether owners have a storage limit. */
  readonly isMetered: boolean;
}

export class Transaction implements StagedRows {
  readonly snapshotSeq: Seq;
  readonly nowMicros: number;
  readonly isReadOnly: boolean;
  readonly startedAtMs: number;
  readonly #bytesMax: number;
  readonly #staged = new Map<number, Map<number, Map<string, StagedRow>>>();
  /** The definition that the staged rows of a table were made for. */
  readonly #versions = new Map<number, number>();
  /** Of one statement: a request with files has no other. */
  #uploads: HeldUploads | undefined;
  #bytes = 0;
  /** The bytes added for each owner; undefined without a limit. */
  readonly #growths: Map<number, StorageGrowth> | undefined;

  constructor(options: TransactionOptions) {
    this.snapshotSeq = options.snapshotSeq;
    this.nowMicros = options.nowMicros;
    this.isReadOnly = options.isReadOnly;
    this.startedAtMs = options.startedAtMs;
    this.#bytesMax = options.bytesMax;
    this.#growths = options.isMetered ? new Map() : undefined;
  }

  /** From now on the end of the transaction is theirs. */
  holdUploads(uploads: HeldUploads): void {
    assert(this.#uploads === undefined, "one statement of a request has files");
    this.#uploads = uploads;
  }

  get uploads(): HeldUploads | undefined {
    return this.#uploads;
  }

  hasStaged(tableId: number): boolean {
    return this.#staged.has(tableId);
  }

  /** Of the tables with staged rows. */
  get tableIds(): readonly number[] {
    return [...this.#staged.keys()];
  }

  stagedOf(tableId: number, owner: number): ReadonlyMap<string, StagedRow> | undefined {
    return this.#staged.get(tableId)?.get(owner);
  }

  /**
   * Staged rows have the columns of one definition: another may not read or write them.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE when a table was altered or dropped since.
   */
  requireUnaltered(catalog: Catalog): void {
    for (const [tableId, version] of this.#versions) {
      if (catalog.tableById(tableId)?.schemaVersion === version) continue;
      throw new DatabaseError(
        "SERIALIZATION_FAILURE",
        "Cannot go on with the transaction: a table that it wrote to was altered or dropped meanwhile",
        { hint: "repeat the transaction" },
      );
    }
  }

  /**
   * Stages the new state of a key.
   *
   * @throws {DatabaseError} TRANSACTION_LIMIT when the transaction would hold too much.
   */
  stage(
    { table, owner }: { table: TableEntry; owner: number },
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
    for (const value of staged.row) this.#bytes += bytesOf(value);
    if (this.#bytes > this.#bytesMax) {
      throw new DatabaseError(
        "TRANSACTION_LIMIT",
        `Cannot go on with the transaction: it holds more than ${this.#bytesMax} bytes`,
        { hint: "split it, or raise limits.transaction_max_bytes" },
      );
    }
    if (this.#growths !== undefined && table.kind !== "shared") {
      const before = rows.get(keyText);
      const had = before === undefined ? staged.stored : rowLeftBy(before);
      this.grow({ owner, table }, bytesOrNone(rowLeftBy(staged)) - bytesOrNone(had));
    }
    rows.set(keyText, staged);
  }

  /** Notes bytes that the commit adds for an owner. */
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

  /** The bytes added for each owner; empty without a limit. */
  get growths(): readonly StorageGrowth[] {
    return [...(this.#growths?.values() ?? [])];
  }

  /** Keys that have a staged row. */
  get keyCount(): number {
    let count = 0;
    for (const owners of this.#staged.values()) {
      for (const rows of owners.values()) count += rows.size;
    }
    return count;
  }

  /** The net effect, in order of first staging; some hundred rows in each write at most. */
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

/** Whether two rows hold the same values, bit for bit. */
export function sameRow(left: Row, right: Row): boolean {
  return left.every((value, index) => sameValue(value, right[index] ?? null));
}

/** Whether two values are the same, bit for bit. */
export function sameValue(left: Value, right: Value): boolean {
  if (left === right) return true;
  if (left instanceof Uint8Array && right instanceof Uint8Array) {
    return Buffer.compare(left, right) === 0;
  }
  if (left instanceof Float32Array && right instanceof Float32Array) {
    return left.length === right.length && left.every((number, i) => number === right[i]);
  }
  return false;
}
