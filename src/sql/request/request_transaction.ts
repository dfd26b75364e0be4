/**
 * The transaction of a request: whether one is open, and what its beginning and its end come with.
 *
 *     idle ──begin──► open ──commit──► idle
 *                      ├──rollback──► idle
 *                      └──fail──────► idle, what was to happen since `beginIndex` has not
 *
 * A commit that fails leaves it open, so that `fail` still finds the uploads that are to be taken
 * back. A request that ends while it is open has failed. What SET changed is kept or taken back
 * with the rows.
 */
import { DatabaseError } from "../../base/errors.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import { pauser } from "../../base/pauser.ts";
import type { Commit, TableWrite } from "../../storage/mod.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { checkDeadline, type RequestLedger } from "../execute/run/request_ledger.ts";
import { Transaction } from "../execute/run/transaction.ts";
import type { BeginStatement } from "../parse/ast/ast.ts";
import type { RequestSettings } from "./request_settings.ts";

export interface RequestTransactionOptions {
  readonly world: Pick<
    SqlEnvironment,
    "catalog" | "clock" | "limits" | "storageQuota" | "store" | "writeGates"
  >;
  readonly ledger: RequestLedger;
  readonly settings: RequestSettings;
}

/** The writes that a commit takes along, by whether it changes rows. */
export type RecordedWrites = (changesRows: boolean) => readonly TableWrite[];

/** The end of a transaction. */
interface Written {
  readonly changesRows: boolean;
  /** Undefined if there was nothing to write. */
  readonly commit: Commit | undefined;
}

export class RequestTransaction {
  readonly #world: RequestTransactionOptions["world"];
  readonly #ledger: RequestLedger;
  readonly #settings: RequestSettings;
  #current: Transaction | undefined;
  #beginIndex: number | undefined;

  constructor({ ledger, settings, world }: RequestTransactionOptions) {
    this.#world = world;
    this.#ledger = ledger;
    this.#settings = settings;
  }

  /** The open one. */
  get current(): Transaction | undefined {
    return this.#current;
  }

  /** The entry of the BEGIN whose changes are not in effect yet. */
  get beginIndex(): number | undefined {
    return this.#beginIndex;
  }

  /**
   * @param entryIndex Which entry of the answer the BEGIN has.
   * @throws {DatabaseError} INVALID_TRANSACTION_STATE
   */
  begin(node: BeginStatement, entryIndex: number): void {
    if (this.#current !== undefined) {
      throw new DatabaseError("INVALID_TRANSACTION_STATE", "Cannot BEGIN: a transaction is open", {
        position: node._location.start,
      });
    }
    this.open({ isReadOnly: node.writeable === "read only", entryIndex });
  }

  /** The same for a request that is one transaction without a BEGIN of its own. */
  open({ entryIndex, isReadOnly }: { entryIndex: number; isReadOnly: boolean }): void {
    this.#beginIndex = entryIndex;
    const { clock, limits, storageQuota, store } = this.#world;
    this.#settings.begin();
    this.#current = new Transaction({
      snapshotSeq: store.visibleSeq,
      nowMicros: clock.nowMs() * 1000,
      isReadOnly,
      startedAtMs: clock.monotonicMs(),
      bytesMax: limits.transactionBytesMax,
      isMetered: storageQuota !== undefined,
    });
  }

  /** Before a statement that may run inside: an open one is in time, and of tables as they are. */
  requireUsable(): void {
    if (this.#current !== undefined) this.#requireUsable(this.#current);
  }

  /** @returns The last seq, null when nothing was to be written. */
  async commit(record: RecordedWrites): Promise<number | null> {
    const transaction = this.#required("COMMIT");
    this.#requireUsable(transaction);
    const { storageQuota, writeGates } = this.#world;
    if (storageQuota !== undefined) {
      await storageQuota.prepare(transaction.growths, this.#ledger);
      transaction.requireUnaltered(this.#world.catalog);
    }
    const { tableIds } = transaction;
    while (writeGates.areClosed(tableIds)) {
      await writeGates.opened(tableIds, this.#ledger);
      transaction.requireUnaltered(this.#world.catalog);
    }
    const lastSeq = await this.#write(transaction, record);
    this.#current = undefined;
    this.#settings.commit();
    transaction.uploads?.keep();
    this.#beginIndex = undefined;
    return lastSeq;
  }

  rollback(): void {
    const { uploads } = this.#required("ROLLBACK");
    uploads?.fail(undefined);
    this.#current = undefined;
    this.#beginIndex = undefined;
    this.#settings.rollback();
  }

  /** Ends the open one, if there is one. @returns What is to be told of it. */
  fail(error: unknown): unknown {
    const uploads = this.#current?.uploads;
    this.#current = undefined;
    try {
      uploads?.fail(error);
      return error;
    } catch (worse) {
      // It is told instead of the other: a disk or a catalog that refuses has to be looked after.
      return worse;
    }
  }

  /** At the end of the request. @throws {DatabaseError} TRANSACTION_OPEN */
  requireClosed(): void {
    if (this.#current === undefined) return;
    throw new DatabaseError(
      "TRANSACTION_OPEN",
      "Cannot end the request inside a transaction: it was rolled back",
      { hint: "end it with COMMIT or ROLLBACK" },
    );
  }

  /** Commits once nobody keeps it waiting: only the disk does, or a conflict ends it. */
  async #write(transaction: Transaction, record: RecordedWrites): Promise<number | null> {
    const { store } = this.#world;
    const isLong = transaction.keyCount > BATCH_ROWS_MAX;
    const { changesRows, commit } = isLong
      ? await this.#writtenInTurns(transaction, record)
      : this.#written(transaction, record);
    if (commit !== undefined) await store.durable(commit.lastSeq);
    return commit !== undefined && changesRows ? commit.lastSeq : null;
  }

  /** Commits in this turn. */
  #written(transaction: Transaction, record: RecordedWrites): Written {
    const { snapshotSeq } = transaction;
    const writes = [...transaction.writes()];
    const changesRows = writes.length > 0;
    writes.push(...record(changesRows));
    if (writes.length === 0) return { changesRows, commit: undefined };
    const make = (): Commit => this.#world.store.apply({ writes, snapshotSeq });
    return { changesRows, commit: this.#made(transaction, make) };
  }

  async #writtenInTurns(transaction: Transaction, record: RecordedWrites): Promise<Written> {
    const { catalog, clock, store } = this.#world;
    const pause = pauser(clock, { check: () => checkDeadline(this.#ledger, clock) });
    const staged = store.stage({ snapshotSeq: transaction.snapshotSeq });
    for (const write of transaction.writes()) {
      await pause();
      staged.add(write);
    }
    const changesRows = staged.rowCount > 0;
    for (const write of record(changesRows)) staged.add(write);
    if (staged.rowCount === 0) return { changesRows, commit: undefined };
    while (!staged.settle()) await pause();
    transaction.requireUnaltered(catalog);
    return { changesRows, commit: this.#made(transaction, () => staged.commit()) };
  }

  /** Makes the commit, and lists the uploads with it. */
  #made(transaction: Transaction, make: () => Commit): Commit {
    const { clock, storageQuota } = this.#world;
    const makeAll = (): Commit => {
      transaction.uploads?.list(clock.nowMs());
      return make();
    };
    if (storageQuota === undefined) return makeAll();
    return storageQuota.charge(transaction.growths, makeAll);
  }

  #required(what: string): Transaction {
    if (this.#current !== undefined) return this.#current;
    throw new DatabaseError("TRANSACTION_REQUIRED", `Cannot ${what}: no transaction is open`);
  }

  #requireUsable(transaction: Transaction): void {
    const { catalog, clock, limits } = this.#world;
    const elapsedMs = clock.monotonicMs() - transaction.startedAtMs;
    if (elapsedMs > limits.transactionTimeoutMs) {
      throw new DatabaseError(
        "TRANSACTION_LIMIT",
        `Cannot go on with the transaction: it is open for more than ${limits.transactionTimeoutMs / 1000} s`,
      );
    }
    transaction.requireUnaltered(catalog);
  }
}
