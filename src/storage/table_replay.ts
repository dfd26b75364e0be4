/**
 * Puts versions of one table from the log back into its memtable, as they are read: text goes over
 * as the bytes that it is, and no row is made. Half a million rows take half of the time so.
 *
 * - Versions come in ascending seq.
 * - A memtable that holds much is followed by another, at the next commit: the text of a column is
 *   one array, which can have 4 GiB, and the log may hold more where nothing could be flushed.
 * - Each is given the form and the order of the columns that the definition has now.
 */
import { defined } from "../base/assert.ts";
import type { ByteReader } from "../base/byte_reader.ts";
import type { Value } from "../types/mod.ts";
import { keyOfValues } from "./contract/key.ts";
import type { LoggedColumns, LoggedHead, RowTaker } from "./local_wal/logged_writes.ts";
import { readValue, readValueInto, skipValue } from "./local_wal/value_codec.ts";
import { converted, formOf } from "./memtable/convert.ts";
import type { MemColumn } from "./memtable/mem_column.ts";
import type { MemPartition } from "./memtable/memtable.ts";
import { type StoredTable, unlessDamaged } from "./table/table.ts";

/** Where the values of a logged column go. */
interface Destination {
  /** Undefined for a column that was dropped. */
  readonly column: MemColumn | undefined;
  /** The form they were written in, where it is another one now. */
  readonly formThen: number | undefined;
}

/** The commit of which rows are put back. */
export interface ReplayedCommit {
  readonly commitSeq: number;
  /** The file in which it begins. */
  readonly firstLogFile: number | undefined;
}

/** Beyond this the next commit goes into another memtable. */
const MEMTABLE_BYTES_MAX: number = 1024 * 1024 * 1024;

export class TableReplay implements RowTaker {
  readonly skipsUpTo: number;
  readonly #table: StoredTable;
  readonly #memtableBytesMax: number;
  /** Of the writes so far, and what they mean: most writes have the columns of the one before. */
  #columns: LoggedColumns | undefined;
  #destinations: readonly Destination[] = [];
  #missing: readonly { readonly column: MemColumn; readonly value: Value }[] = [];
  #write: LoggedHead | undefined;
  /** Undefined before the first row of a write that is not passed over. */
  #partition: MemPartition | undefined;
  #commit: ReplayedCommit = { commitSeq: 0, firstLogFile: undefined };
  readonly #keyValues: Value[] = [];

  /** @param memtableBytesMax Smaller in a test. */
  constructor(table: StoredTable, memtableBytesMax: number = MEMTABLE_BYTES_MAX) {
    this.#table = table;
    this.#memtableBytesMax = memtableBytesMax;
    this.skipsUpTo = table.progress.flushedSeq;
  }

  /** The rows that follow are of this write. */
  begin(write: LoggedHead, commit: ReplayedCommit): void {
    this.#write = write;
    this.#partition = undefined;
    if (commit.commitSeq !== this.#commit.commitSeq) this.#beginCommit();
    this.#commit = commit;
  }

  takeRow(from: ByteReader, seq: number, prev: number): void {
    const table = this.#table;
    const memtable = table.active;
    const write = defined(this.#write, "a row belongs to a write");
    this.#partition ??= this.#enter(write);
    const partition = this.#partition;
    // A replaced version may be gone: a merge drops what nobody can read any more.
    if (prev !== 0 && !unlessDamaged(() => table.findSeq(partition.owner, prev)?.replace(seq))) {
      table.noteMissed({ owner: partition.owner, seq: prev, replacedBy: seq });
    }
    const isDeleted = write.operation === "delete";
    const row = memtable.push(partition, { seq, prev, isDeleted });
    memtable.setCommitSeq(row, this.#commit.commitSeq);
    this.#takeValues(from);
    if (table.keyPositions.length > 0) partition.setRow(this.#keyOf(row), row);
  }

  /** A commit is whole in one memtable, as one that is flushed must not end within it. */
  #beginCommit(): void {
    if (this.#table.active.bytes <= this.#memtableBytesMax) return;
    this.#table.beginMemtable();
    this.#columns = undefined;
  }

  /** Makes room for the rows of a write. */
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
