/**
 * Rewrites a table's existing rows for an ALTER TABLE that gives columns new values: for a type to
 * which storage cannot convert the old values on reading, a generated column, or a DEFAULT that
 * differs from row to row.
 *
 * Such a column gets a new column id. Each row is written once more, with the values of the new
 * columns after the values of the current columns. The catalog does not contain the new columns
 * yet, so no statement reads them, and a crash leaves only values that are never read.
 *
 * A batch is read and written in the same tick, so that no change by another statement is
 * overwritten.
 */
import { defined } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import type { Seq } from "../../base/seq.ts";
import {
  type ColumnEntry,
  type SequenceEntry,
  type SequenceMark,
  SequenceNumbers,
  type TableEntry,
} from "../../catalog/mod.ts";
import { type Commit, type ScanBatch, SEQ_COLUMN_ID, type Store } from "../../storage/mod.ts";
import {
  type Batch,
  constVector,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
  type Whole,
} from "../../types/mod.ts";
import { runtimeOf, type TableRuntime } from "../execute/build/table_runtime.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { RowPace } from "../execute/context/pace.ts";
import type { Evaluator } from "../execute/evaluate/expression.ts";
import { rowsFromBatch } from "../execute/operators/filter.ts";
import { asType, unquoted } from "./row_inspection.ts";

/** How an ALTER TABLE computes the new values of a column. */
export interface ColumnRewrite {
  /** The id of the rewritten column in the definition after the ALTER TABLE. */
  readonly columnId: number;
  /**
   * Computes the new values from the columns that the table had before the ALTER TABLE, in their
   * original order. Absent if the column's definition determines the values, as a DEFAULT or a
   * generated expression does.
   */
  readonly compute: Evaluator | undefined;
  readonly position: number;
  /** The new sequence that numbers the existing rows. It is not in the catalog yet. */
  readonly sequence?: SequenceEntry | undefined;
}

export interface RewriteOptions {
  /** The definition of the table before the ALTER TABLE, under which its rows are stored. */
  readonly table: TableEntry;
  /** The definition of the table after the ALTER TABLE. */
  readonly next: TableEntry;
  readonly rewrites: readonly ColumnRewrite[];
  readonly context: ExecutionContext;
  readonly clock: Clock;
  readonly store: Pick<Store, "appliedSeq" | "apply" | "durable" | "owners" | "scan">;
}

/** Selects the row versions with a seq above `after` and up to `upTo`. */
interface RewrittenRange {
  readonly after: Seq;
  readonly upTo: Seq;
}

/** The maximum number of rows rewritten in a single commit. */
const ROWS_PER_COMMIT = 2000;

/**
 * The fraction of a commit's duration that is used to determine the size of the next commit. A
 * commit waits for the disk, so it may take longer than a query batch, which takes about 20 ms.
 */
const PACED_SHARE = 1 / 10;

export class RowRewrite {
  readonly #options: RewriteOptions;
  readonly #runtime: TableRuntime;
  /** The seqs of the commits made by this rewrite, in ascending order. */
  readonly #commits: Commit[] = [];
  /**
   * Determines how many rows the next commit contains. The number varies, because USING may take a
   * long time for each row.
   */
  readonly #pace = new RowPace(ROWS_PER_COMMIT);
  #numbers: SequenceNumbers;
  /** The last number taken from each new sequence, keyed by sequence id. */
  readonly #lastNumbers = new Map<number, Whole>();

  constructor(options: RewriteOptions) {
    this.#options = options;
    this.#runtime = runtimeOf(options.next);
    this.#numbers = freshNumbers(options);
  }

  /** The numbers that the new sequences have reached after numbering the existing rows. */
  get marks(): readonly SequenceMark[] {
    return [...this.#lastNumbers].map(([sequenceId, value]) => ({
      sequenceId,
      value: String(value),
      isCalled: true,
    }));
  }

  /**
   * The definition under which rewritten rows are stored: the current columns followed by the new
   * columns.
   */
  get written(): TableEntry {
    const { next, table } = this.#options;
    const columns = [...table.columns, ...this.#newColumns];
    return { ...table, columns, nextColumnId: next.nextColumnId };
  }

  get #newColumns(): readonly ColumnEntry[] {
    const { next, rewrites } = this.#options;
    return next.columns.filter(({ columnId }) =>
      rewrites.some((rewrite) => rewrite.columnId === columnId),
    );
  }

  /**
   * Computes the new values of all rows in a range without writing them.
   *
   * @throws {DatabaseError} The errors raised when the values are computed and checked.
   */
  async inspect(range: RewrittenRange, pause: () => Promise<void>): Promise<void> {
    for (const owner of this.#owners()) {
      let after: Seq | undefined = range.after;
      while (after !== undefined) {
        after = this.#step({ owner, range: { ...range, after }, writes: false }).nextAfter;
        await pause();
      }
    }
    // The sequence numbers of this trial run are discarded: when the rows are written, they are
    // numbered from the start.
    this.#numbers = freshNumbers(this.#options);
  }

  /**
   * Rewrites the rows in a range that this rewrite has not written yet. Returns whether there were
   * any such rows.
   *
   * @throws {DatabaseError}
   */
  async write(range: RewrittenRange, pause: () => Promise<void>): Promise<boolean> {
    let isWritten = false;
    for (const owner of this.#owners()) {
      let after: Seq | undefined = range.after;
      while (after !== undefined) {
        const step = this.#step({ owner, range: { ...range, after }, writes: true });
        after = step.nextAfter;
        if (step.commit !== undefined) {
          isWritten = true;
          await this.#options.store.durable(step.commit.lastSeq);
        }
        await pause();
      }
    }
    return isWritten;
  }

  /**
   * Returns whether this rewrite has written all rows that the range contains in the current tick.
   */
  isDone(range: RewrittenRange): boolean {
    const { store, table } = this.#options;
    for (const owner of this.#owners()) {
      const scan = store.scan(table.tableId, { ...range, owner, columnIds: [SEQ_COLUMN_ID] });
      try {
        for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
          if (this.#others(batch.columns[0], batch.rowCount).length > 0) return false;
        }
      } finally {
        scan.close();
      }
    }
    return true;
  }

  #owners(): readonly number[] {
    return this.#options.store.owners(this.#options.table.tableId);
  }

  /** Reads a batch of rows and, if `writes` is set, writes the rows again. */
  #step({ owner, range, writes }: { owner: number; range: RewrittenRange; writes: boolean }): {
    readonly nextAfter: Seq | undefined;
    readonly commit?: Commit;
  } {
    const { context, store, table } = this.#options;
    const { tableId } = table;
    const startMs = context.monotonicMs();
    const scan = store.scan(tableId, {
      owner,
      after: range.after,
      upTo: store.appliedSeq,
      seqMax: range.upTo,
      columnIds: [...table.columns.map(({ columnId }) => columnId), SEQ_COLUMN_ID],
      batchRows: this.#pace.rowsMax,
    });
    try {
      const batch = scan.next();
      if (batch === undefined) return { nextAfter: undefined };
      const seqs = batch.columns.at(-1);
      const nextAfter = Number(
        defined(
          seqs && valueAt(seqs, batch.rowCount - 1),
          "table rewrite: scanned batch contains no rows",
        ),
      ) as Seq;
      const others = this.#others(seqs, batch.rowCount);
      if (others.length === 0) return { nextAfter };
      const rows = this.#rewritten(batch);
      const tookMs = (context.monotonicMs() - startMs) * PACED_SHARE;
      this.#pace.note({ rowCount: batch.rowCount, tookMs, madeBytes: 0 });
      if (!writes) return { nextAfter };
      const write = {
        tableId,
        owner,
        operation: "update",
        rows: others.map((row) => rows[row] ?? []),
      } as const;
      const commit = store.apply({ writes: [write] });
      this.#commits.push(commit);
      return { nextAfter, commit };
    } finally {
      scan.close();
    }
  }

  /** Returns the indexes of the rows in a batch that this rewrite did not write. */
  #others(seqs: Vector | undefined, rowCount: number): readonly number[] {
    const rows: number[] = [];
    for (let row = 0; row < rowCount; row += 1) {
      const seq = Number(seqs === undefined ? 0 : valueAt(seqs, row));
      if (!this.#isOwn(seq)) rows.push(row);
    }
    return rows;
  }

  #isOwn(seq: number): boolean {
    let low = 0;
    let high = this.#commits.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const commit = this.#commits[middle];
      if (commit === undefined) return false;
      if (seq < commit.firstSeq) high = middle - 1;
      else if (seq > commit.lastSeq) low = middle + 1;
      else return true;
    }
    return false;
  }

  /**
   * Returns the rows of a batch with the values of the new columns.
   * @throws {DatabaseError}
   */
  #rewritten(batch: ScanBatch): readonly Value[][] {
    const { context, next, rewrites, table } = this.#options;
    const position = rewrites[0]?.position ?? 0;
    const current: Batch = { rowCount: batch.rowCount, columns: batch.columns.slice(0, -1) };
    return unquoted(next, position, () => {
      const columns = next.columns.map((column, at) => this.#valuesOf(column, at, current));
      const rows = this.#runtime.completed(
        rowsFromBatch({ rowCount: batch.rowCount, columns }),
        context,
      );
      this.#runtime.check(rows, context);
      const positions = this.#newColumns.map((column) => next.columns.indexOf(column));
      return rowsFromBatch(current).map((row, i): Value[] =>
        row.slice(0, table.columns.length).concat(positions.map((at) => rows[i]?.[at] ?? null)),
      );
    });
  }

  /**
   * Returns the values of one column of the altered table. Generated columns are computed later.
   */
  #valuesOf(column: ColumnEntry, at: number, current: Batch): Vector {
    const { context, rewrites, table } = this.#options;
    const { rowCount } = current;
    const rewrite = rewrites.find(({ columnId }) => columnId === column.columnId);
    if (rewrite?.compute !== undefined) return rewrite.compute(current, context);
    if (rewrite !== undefined) {
      const { sequence } = rewrite;
      const values = Array.from({ length: rowCount }, () =>
        sequence === undefined ? this.#runtime.defaultAt(at, context) : this.#nextNumber(sequence),
      );
      return vectorFromValues(column.type, values);
    }
    const from = table.columns.findIndex(({ columnId }) => columnId === column.columnId);
    const stored = table.columns[from];
    const values = current.columns[from];
    if (stored === undefined || values === undefined) return constVector(column.missing, rowCount);
    return asType(values, stored, column);
  }

  #nextNumber(sequence: SequenceEntry): Whole {
    const number = this.#numbers.next(sequence);
    this.#lastNumbers.set(sequence.sequenceId, number);
    return number;
  }
}

/**
 * Returns sequence counters that start at the beginning of each sequence and leave the stored
 * sequences unchanged.
 */
function freshNumbers({ clock }: RewriteOptions): SequenceNumbers {
  return new SequenceNumbers({ clock, known: [], marks: { store: () => undefined } });
}
