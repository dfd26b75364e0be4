/**
 * Deletes the rows of shared STREAM tables that are older than TTL_SECONDS.
 *
 * The deletions are ordinary commits, so live queries, resumed subscriptions and topics report
 * them like any other deletion. In a STREAM table without an access level, a row expires without a
 * commit: reads omit it (`storage/table/table.ts`).
 *
 * Invariants: a row is deleted only if its newest version is old enough in the tick of the commit.
 * Only one sweep runs at a time. A sweep also deletes rows that the previous sweep failed to
 * delete.
 */
import { isExpected } from "../../base/errors.ts";
import type { Seq } from "../../base/seq.ts";
import { deletedAfterMs } from "../../catalog/mod.ts";
import { SEQ_COLUMN_ID, SHARED_OWNER } from "../../storage/mod.ts";
import { type Row, valueAt } from "../../types/mod.ts";
import type { SqlEnvironment } from "../ports/environment.ts";

export type ExpiryDeps = Pick<SqlEnvironment, "catalog" | "clock" | "store">;

/**
 * The maximum number of rows that one commit deletes. The number is small to keep the commit's
 * tick short.
 */
const ROWS_PER_COMMIT = 500;

/**
 * The time for which a table is skipped after a failure, since the cause, such as damage, tends to
 * persist.
 */
const FAILED_MS = 60_000;

/** Some expired rows of a table, and the seq of the last row. */
interface ExpiredRows {
  readonly rows: readonly Row[];
  readonly lastSeq: Seq;
}

export class ExpirySweep {
  readonly #deps: ExpiryDeps;
  /** The ids of the tables to check, as of `#catalogVersion`. */
  #tableIds: readonly number[] = [];
  #catalogVersion = -1;
  /** For each table, the seq up to which all expired rows have been deleted. */
  readonly #sweptSeqs = new Map<number, number>();
  /** For each table that has failed, the time of the next attempt. */
  readonly #pausedUntilMs = new Map<number, number>();
  #isUnderWay = false;
  /** Whether another sweep of expired rows was requested while one was running. */
  #isDue = false;
  #isEnded = false;

  constructor(deps: ExpiryDeps) {
    this.#deps = deps;
  }

  /**
   * Deletes all expired rows. If a sweep is already running, it checks all tables once more at its
   * end, and no second sweep starts.
   *
   * @throws The first error of any table, once the other tables have been swept.
   */
  async run(): Promise<void> {
    this.#isDue = true;
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    const failures: Error[] = [];
    try {
      while (this.#isDue && !this.#isEnded) {
        this.#isDue = false;
        for (const tableId of this.#tables()) failures.push(...(await this.#failureIn(tableId)));
      }
    } finally {
      this.#isUnderWay = false;
    }
    const [failure] = failures;
    if (failure !== undefined) throw failure;
  }

  /**
   * Deletes a table's expired rows, and returns the errors. A failure in one table, such as
   * damage, must not delay the expiry of rows in other tables.
   */
  async #failureIn(tableId: number): Promise<readonly Error[]> {
    try {
      await this.#sweep(tableId);
      return [];
    } catch (error) {
      if (!isExpected(error)) throw error;
      this.#pausedUntilMs.set(tableId, this.#deps.clock.monotonicMs() + FAILED_MS);
      return [error];
    }
  }

  /** Prevents the sweep from making any further commits. */
  end(): void {
    this.#isEnded = true;
  }

  #tables(): readonly number[] {
    const { catalog } = this.#deps;
    if (catalog.version === this.#catalogVersion) return this.#tableIds;
    const tables = catalog.tables().filter((table) => deletedAfterMs(table) !== undefined);
    this.#tableIds = tables.map(({ tableId }) => tableId);
    this.#catalogVersion = catalog.version;
    for (const known of [this.#sweptSeqs, this.#pausedUntilMs]) {
      for (const tableId of known.keys())
        if (!this.#tableIds.includes(tableId)) known.delete(tableId);
    }
    return this.#tableIds;
  }

  async #sweep(tableId: number): Promise<void> {
    const { clock, store } = this.#deps;
    if (clock.monotonicMs() < (this.#pausedUntilMs.get(tableId) ?? 0)) return;
    while (!this.#isEnded) {
      const found = this.#expiredRows(tableId);
      if (found === undefined) return;
      const { lastSeq, rows } = found;
      const write = { tableId, owner: SHARED_OWNER, operation: "delete", rows } as const;
      await store.durable(store.apply({ writes: [write] }).lastSeq);
      this.#sweptSeqs.set(tableId, lastSeq);
    }
  }

  /** Returns the oldest expired rows of a table; undefined if there are none. */
  #expiredRows(tableId: number): ExpiredRows | undefined {
    const { catalog, store } = this.#deps;
    const table = catalog.tableById(tableId);
    const ttlMs = table && deletedAfterMs(table);
    if (table === undefined || ttlMs === undefined) return undefined;
    const after = (this.#sweptSeqs.get(tableId) ?? 0) as Seq;
    const seqMax = Math.min(store.agedSeq(ttlMs), store.appliedSeq) as Seq;
    if (seqMax <= after) return undefined;
    const scan = store.scan(tableId, {
      owner: SHARED_OWNER,
      upTo: store.appliedSeq,
      after,
      seqMax,
      columnIds: [...table.columns.map(({ columnId }) => columnId), SEQ_COLUMN_ID],
      batchRows: ROWS_PER_COMMIT,
    });
    try {
      const batch = scan.next();
      if (batch === undefined) {
        this.#sweptSeqs.set(tableId, seqMax);
        return undefined;
      }
      const rows = Array.from({ length: batch.rowCount }, (_, index) =>
        batch.columns.map((column) => valueAt(column, index)),
      );
      const lastSeq = Number(rows.at(-1)?.pop()) as Seq;
      for (const row of rows.slice(0, -1)) row.pop();
      return { rows, lastSeq };
    } finally {
      scan.close();
    }
  }
}
