/**
 * Replays the versions of one table from the log into its memtable. Text is copied as UTF-8
 * without creating row objects, which halved the time in measurements.
 *
 * - Versions arrive in ascending seq order.
 * - Once a memtable is large, the next commit begins another one. The text of a column is a single
 *   array of at most 4 GiB, and the log may contain more text than that if nothing could be
 *   flushed.
 * - Each version is converted to the current types and order of the table's columns.
 */
import { defined } from "../base/assert.ts";
import type { ByteReader } from "../base/byte_reader.ts";
import { readValue, skipValue, type Value } from "../types/mod.ts";
import { keyOfValues } from "./contract/key.ts";
import type { LoggedColumns, LoggedHead, RowTaker } from "./local_wal/logged_writes.ts";
import { readValueInto } from "./local_wal/value_codec.ts";
import { converted, formOf } from "./memtable/convert.ts";
import type { MemColumn } from "./memtable/mem_column.ts";
import type { MemPartition } from "./memtable/mem_partition.ts";
import { type StoredTable, unlessDamaged } from "./table/table.ts";

/** The destination of a logged column's values. */
interface Destination {
  /** The memtable column that receives the values; undefined if the column has been dropped. */
  readonly column: MemColumn | undefined;
  /**
   * The form in which the values were written; undefined unless the column's type has changed
   * since.
   */
  readonly formThen: number | undefined;
}

/** The commit whose rows are being replayed. */
export interface ReplayedCommit {
  readonly commitSeq: number;
  /** The log file in which the replayed commit begins. */
  readonly firstLogFile: number | undefined;
}

/** Once a memtable exceeds this size in bytes, the next commit goes into another one. */
const MEMTABLE_BYTES_MAX: number = 1024 * 1024 * 1024;

export class TableReplay implements RowTaker {
  readonly skipsUpTo: number;
  readonly #table: StoredTable;
  readonly #memtableBytesMax: number;
  /** The columns of the previous write. Consecutive writes usually have the same columns. */
  #columns: LoggedColumns | undefined;
  #destinations: readonly Destination[] = [];
  #missing: readonly { readonly column: MemColumn; readonly value: Value }[] = [];
  #write: LoggedHead | undefined;
  /** The owner's partition; undefined until a write has a row that is not skipped. */
  #partition: MemPartition | undefined;
  #commit: ReplayedCommit = { commitSeq: 0, firstLogFile: undefined };
  readonly #keyValues: Value[] = [];

  /**
   * Prepares to replay the logged rows of one table.
   * @param memtableBytesMax The size in bytes above which another memtable begins. Tests use a
   *   smaller value.
   */
  constructor(table: StoredTable, memtableBytesMax: number = MEMTABLE_BYTES_MAX) {
    this.#table = table;
    this.#memtableBytesMax = memtableBytesMax;
    this.skipsUpTo = table.progress.flushedSeq;
  }

  /** Begins a logged write. The rows that are replayed next belong to it. */
  begin(write: LoggedHead, commit: ReplayedCommit): void {
    this.#write = write;
    this.#partition = undefined;
    if (commit.commitSeq !== this.#commit.commitSeq) this.#beginCommit();
    this.#commit = commit;
  }

  takeRow(from: ByteReader, seq: number, prev: number): void {
    const table = this.#table;
    const memtable = table.active;
    const write = defined(this.#write, "log replay: row belongs to no table write");
    this.#partition ??= this.#enter(write);
    const partition = this.#partition;
    // The replaced version may be gone, because merges discard versions that can no longer be
    // read.
    if (prev !== 0 && !unlessDamaged(() => table.findSeq(partition.owner, prev)?.replace(seq))) {
      table.noteMissed({ owner: partition.owner, seq: prev, replacedBy: seq });
    }
    const isDeleted = write.operation === "delete";
    const row = memtable.push(partition, { seq, prev, isDeleted });
    memtable.setCommitSeq(row, this.#commit.commitSeq);
    this.#takeValues(from);
    if (table.keyPositions.length > 0) partition.setRow(this.#keyOf(row), row);
  }

  /**
   * Begins another memtable if the current one is large. This happens only between commits,
   * because a flushed memtable must not end in the middle of a commit.
   */
  #beginCommit(): void {
    if (this.#table.active.bytes <= this.#memtableBytesMax) return;
    this.#table.beginMemtable();
    this.#columns = undefined;
  }

  /** Reserves room for a write's rows. Returns the owner's partition. */
  #enter({ columns, owner, rowCount }: LoggedHead): MemPartition {
    const { active } = this.#table;
    if (columns !== this.#columns) this.#arrange(columns);
    active.firstLogFile ??= this.#commit.firstLogFile;
    active.reserve(rowCount);
    return active.partition(owner);
  }

  #takeValues(from: ByteReader): void {
    for (const { column, formThen } of this.#destinations) {
      if (column === undefined) skipValue(from);
      else if (formThen === undefined) readValueInto(from, column);
      else column.append(converted(readValue(from), formThen, column.type));
    }
    for (const { column, value } of this.#missing) column.append(value);
  }

  #keyOf(row: number): string | number {
    const values = this.#keyValues;
    const { keyPositions } = this.#table;
    const { columns } = this.#table.active;
    values.length = 0;
    for (const position of keyPositions) values.push(columns[position]?.valueAt(row) ?? null);
    return keyOfValues(values);
  }

  #arrange(logged: LoggedColumns): void {
    const { active, definition } = this.#table;
    const { columnIds, forms } = logged;
    this.#columns = logged;
    this.#destinations = columnIds.map((columnId, index) => {
      const column = active.column(columnId);
      const formThen = forms[index] ?? 0;
      const isSameForm = column === undefined || formOf(column.type) === formThen;
      return { column, formThen: isSameForm ? undefined : formThen };
    });
    this.#missing = definition.columns.flatMap(({ columnId, missing }) => {
      const column = active.column(columnId);
      return column === undefined || columnIds.includes(columnId)
        ? []
        : [{ column, value: missing }];
    });
  }
}
