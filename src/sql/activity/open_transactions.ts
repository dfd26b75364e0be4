/**
 * Manages transactions that span requests: records who opened them, limits how long they stay
 * open, and records how they ended.
 *
 *     open ──statement──► running ──► open
 *      ├──COMMIT, ROLLBACK──────────► ended
 *      └──idle, too old, killed, its session ended──► ended, rolled back
 *
 * - A transaction belongs to the login session that opened it. No other session can see it.
 * - The statements of a transaction run one after another, in the order in which they arrived.
 * - If the transaction is ended while a statement is running, the statement is cancelled, and the
 *   transaction ends once the statement has stopped.
 * - The outcomes of the most recent transactions are kept, so that a client that missed a response
 *   can look them up.
 * - All state is in memory: after a crash, nothing of an open transaction remains.
 */
import { concerns, type Principal, type Revocation } from "../../auth/mod.ts";
import type { CancelTimer, Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Random } from "../../base/random.ts";
import type { Seq } from "../../base/seq.ts";
import { cancelRequest, type RequestLedger } from "../execute/context/request_ledger.ts";
import { withinRequest } from "../execute/context/request_wait.ts";

/** The number of ended transactions whose outcomes are kept. */
const ENDED_MAX = 10_000;

const ID_BYTES = 12;

/** How a transaction ended. */
export type TransactionOutcome =
  | { readonly kind: "committed"; readonly lastSeq: number | null }
  | { readonly kind: "rolled back" }
  /** The transaction was committed, but it is unknown whether the commit is durable. */
  | { readonly kind: "unknown" };

/** A transaction as it is kept between requests. */
export interface HeldTransaction {
  /** Whether a statement of the transaction has failed without its effects being undone. */
  readonly isFailed: boolean;
  /** How the transaction ended; undefined while it is open. */
  readonly outcome: TransactionOutcome | undefined;
  /** The transaction's own state; undefined once the transaction has ended. */
  readonly current: object | undefined;
  readonly snapshotSeq: Seq;
  readonly stagedRowCount: number;
  readonly stagedBytes: number;
  /** Rolls the transaction back outside any request. */
  abandon(): void;
}

export interface TransactionLimits {
  /** The maximum number of open transactions; 0 means no limit. */
  readonly transactionsMax: number;
  readonly transactionsPerUser: number;
  readonly transactionIdleMs: number;
  readonly transactionTimeoutMs: number;
  /**
   * The memory limit for all statements together, in bytes. Open transactions may use up to half
   * of it.
   */
  readonly totalQueryMemoryBytes: number;
}

/** The options that a caller specifies to open a transaction. */
export interface OpeningRequest {
  readonly namespace: string | undefined;
  readonly isReadOnly: boolean;
  /** How long the transaction may stay open. */
  readonly timeoutMs: number;
}

/** A transaction that has neither committed nor been rolled back. */
export interface OpenTransaction extends OpeningRequest {
  readonly id: string;
  readonly userId: string;
  readonly sessionId: string;
  readonly startedAtMs: number;
  readonly startMs: number;
  readonly held: HeldTransaction;
  statementCount: number;
  /** When the transaction's last request ended, on the monotonic clock. */
  lastUsedMs: number;
  /** The ledger of the request that is using the transaction; undefined if none is. */
  ledger: RequestLedger | undefined;
}

/** A transaction that has ended, with the outcome that its session can query. */
export interface EndedTransaction {
  readonly id: string;
  readonly outcome: TransactionOutcome;
  /** The reason why the transaction ended, which completes the sentence "it was …". */
  readonly why: string;
}

interface TransactionEntry extends OpenTransaction {
  readonly cancelTimeout: CancelTimer;
  cancelIdle: CancelTimer | undefined;
  /** The number of requests of the transaction that are running or waiting. */
  requestCount: number;
  /** Settles when all requests that have arrived so far have ended. */
  tail: Promise<void>;
  /**
   * The reason why the transaction must end once its current request has stopped; undefined if it
   * need not end.
   */
  endsBecause: string | undefined;
}

interface TransactionParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly limits: TransactionLimits;
}

export class OpenTransactions {
  readonly #parts: TransactionParts;
  readonly #open = new Map<string, TransactionEntry>();
  readonly #ended = new Map<string, EndedTransaction & { readonly sessionId: string }>();
  #heldBytes = 0;
  #isShutDown = false;

  constructor(parts: TransactionParts) {
    this.#parts = parts;
  }

  /** The total size of the rows staged by all open transactions, in bytes. */
  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Returns the open transactions, oldest first. */
  all(): readonly OpenTransaction[] {
    return [...this.#open.values()];
  }

  /**
   * Opens a transaction.
   *
   * @param begin Begins the transaction. Its argument is a function through which the transaction
   *   reports the memory that it uses.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED, SHUTTING_DOWN
   */
  open(
    { actorId: userId, sessionId }: Principal,
    request: OpeningRequest,
    begin: (onGrow: (bytes: number) => void) => HeldTransaction,
  ): OpenTransaction {
    const { clock, random } = this.#parts;
    this.#requireRoom(userId);
    const id = `tx_${Buffer.from(random.bytes(ID_BYTES)).toString("hex")}`;
    const { timeoutMs } = request;
    const startMs = clock.monotonicMs();
    const entry: TransactionEntry = {
      ...request,
      id,
      userId,
      sessionId,
      startedAtMs: clock.nowMs(),
      startMs,
      held: begin((bytes) => this.#grow(bytes)),
      statementCount: 0,
      lastUsedMs: startMs,
      ledger: undefined,
      cancelTimeout: clock.after(timeoutMs, () =>
        this.#end(entry, `rolled back because it had been open for ${timeoutMs / 1000} s`),
      ),
      cancelIdle: undefined,
      requestCount: 0,
      tail: Promise.resolve(),
      endsBecause: undefined,
    };
    this.#open.set(id, entry);
    this.#awaitUse(entry);
    return entry;
  }

  /**
   * Returns an open transaction of the caller's session.
   *
   * @throws {DatabaseError} TRANSACTION_NOT_FOUND
   */
  find(principal: Principal, id: string): OpenTransaction {
    return this.#entryOf(principal, id);
  }

  /**
   * Returns how a transaction of the caller's session ended; undefined if the outcome is unknown.
   */
  endedOf({ sessionId }: Principal, id: string): EndedTransaction | undefined {
    const ended = this.#ended.get(id);
    return ended?.sessionId === sessionId ? ended : undefined;
  }

  /**
   * Runs a request in a transaction, after the requests that arrived before it.
   *
   * @throws {DatabaseError} TRANSACTION_NOT_FOUND if the transaction has ended in the meantime;
   *   STATEMENT_TIMEOUT or CANCELLED if the request ends while waiting for its turn.
   */
  async run<Result>(
    { principal, id, ledger }: { principal: Principal; id: string; ledger: RequestLedger },
    work: () => Promise<Result>,
  ): Promise<Result> {
    const entry = this.#entryOf(principal, id);
    const { clock } = this.#parts;
    const before = entry.tail;
    const { promise: done, resolve } = Promise.withResolvers<void>();
    entry.tail = before.then(() => done);
    entry.requestCount += 1;
    entry.cancelIdle?.();
    try {
      if (entry.requestCount > 1) await withinRequest(() => before, { clock, ledger });
      if (entry.held.outcome !== undefined) throw this.#notFound(principal, id);
      entry.ledger = ledger;
      entry.statementCount += 1;
      return await work();
    } finally {
      if (entry.ledger === ledger) entry.ledger = undefined;
      entry.requestCount -= 1;
      entry.lastUsedMs = clock.monotonicMs();
      this.#settle(entry);
      resolve();
    }
  }

  /** Ends an open transaction. Returns false if no open transaction has this id. */
  kill(id: string): boolean {
    const entry = this.#open.get(id);
    if (entry === undefined) return false;
    this.#end(entry, "killed and rolled back");
    return true;
  }

  /** Ends the transactions that belong to the revoked sessions. */
  endSession(revocation: Revocation): void {
    for (const entry of this.#open.values()) {
      if (!concerns(revocation, entry)) continue;
      this.#end(entry, "rolled back because its session ended");
    }
  }

  /** Ends all transactions and refuses new ones. */
  shutDown(): void {
    this.#isShutDown = true;
    for (const entry of this.#open.values()) {
      this.#end(entry, "rolled back because the server was shutting down");
    }
  }

  #requireRoom(userId: string): void {
    if (this.#isShutDown) {
      throw new DatabaseError(
        "SHUTTING_DOWN",
        "Cannot open a transaction: the server is shutting down",
        { hint: "retry the request once the server is back up" },
      );
    }
    const { transactionsMax, transactionsPerUser } = this.#parts.limits;
    if (transactionsMax !== 0 && this.#open.size >= transactionsMax) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        `Cannot open a transaction: ${transactionsMax} transactions are already open, which is ` +
          "the maximum",
        { hint: "try again later, or raise limits.max_transactions" },
      );
    }
    if (transactionsPerUser === 0) return;
    let count = 0;
    for (const entry of this.#open.values()) if (entry.userId === userId) count += 1;
    if (count < transactionsPerUser) return;
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot open a transaction: this user already has ${transactionsPerUser} open ` +
        "transactions, which is the maximum",
      {
        hint: "end an open transaction with COMMIT or ROLLBACK, or raise limits.transactions_per_user",
      },
    );
  }

  /**
   * Counts the bytes of staged rows towards the limit.
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  #grow(bytes: number): void {
    this.#heldBytes += bytes;
    const bytesMax = this.#parts.limits.totalQueryMemoryBytes / 2;
    if (bytes <= 0 || this.#heldBytes <= bytesMax) return;
    throw new DatabaseError(
      "MEMORY_EXCEEDED",
      "Cannot continue the transaction: the open transactions together use more than " +
        `${Math.floor(bytesMax)} bytes`,
      { hint: "try again later, or raise performance.total_query_memory_bytes" },
    );
  }

  #entryOf(principal: Principal, id: string): TransactionEntry {
    const entry = this.#open.get(id);
    const isOwn = entry?.userId === principal.actorId && entry.sessionId === principal.sessionId;
    if (entry === undefined || !isOwn || entry.endsBecause !== undefined) {
      throw this.#notFound(principal, id);
    }
    return entry;
  }

  #notFound(principal: Principal, id: string): DatabaseError {
    const ended = this.endedOf(principal, id);
    const what =
      ended === undefined ? "this session has no transaction with this id" : `it was ${ended.why}`;
    return new DatabaseError("TRANSACTION_NOT_FOUND", `Cannot find transaction "${id}": ${what}`, {
      hint: "begin a new transaction, and repeat the statements in it",
    });
  }

  /** Starts the idle timer. It ends the transaction if no request arrives in time. */
  #awaitUse(entry: TransactionEntry): void {
    const { clock, limits } = this.#parts;
    const { transactionIdleMs: idleMs } = limits;
    entry.cancelIdle = clock.after(idleMs, () =>
      this.#end(entry, `rolled back because it received no request for ${idleMs / 1000} s`),
    );
  }

  #end(entry: TransactionEntry, why: string): void {
    if (!this.#open.has(entry.id)) return;
    entry.endsBecause ??= why;
    if (entry.ledger === undefined) this.#settle(entry);
    else cancelRequest(entry.ledger, "transaction");
  }

  /** Called when the last running request of the transaction has ended. */
  #settle(entry: TransactionEntry): void {
    const { held, endsBecause, id, sessionId } = entry;
    if (!this.#open.has(id) || entry.ledger !== undefined) return;
    if (held.outcome === undefined && endsBecause === undefined) {
      if (entry.requestCount === 0) this.#awaitUse(entry);
      return;
    }
    if (held.outcome === undefined) held.abandon();
    const outcome = held.outcome ?? { kind: "rolled back" };
    const isOwnEnd = outcome.kind !== "rolled back" || endsBecause === undefined;
    this.#open.delete(id);
    entry.cancelTimeout();
    entry.cancelIdle?.();
    const why = isOwnEnd ? WHY[outcome.kind] : endsBecause;
    this.#ended.set(id, { id, sessionId, outcome, why });
    if (this.#ended.size <= ENDED_MAX) return;
    const [oldest] = this.#ended.keys();
    if (oldest !== undefined) this.#ended.delete(oldest);
  }
}

const WHY: Readonly<Record<TransactionOutcome["kind"], string>> = {
  committed: "committed",
  "rolled back": "rolled back",
  unknown: "ended by a COMMIT whose outcome is unknown",
};
