/**
 * Opens transactions that span requests, returns their state, and lets requests continue them.
 * `activity/open_transactions.ts` decides how long such a transaction may live.
 */
import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import { wallMsAt } from "../../base/clock.ts";
import type { OpenTransaction } from "../activity/open_transactions.ts";
import { newLedger, type RequestLedger } from "../execute/context/request_ledger.ts";
import type { TransactionInfo, TransactionRequest } from "../ports/engine.ts";
import { newTransaction } from "./request.ts";
import type { RequestDeps } from "./request_deps.ts";
import { RequestTransaction } from "./request_transaction.ts";

/** An open transaction that a request continues. */
export interface ContinuedTransaction {
  readonly held: RequestTransaction;
  /** The namespace for requests of the transaction that do not specify a namespace. */
  readonly namespace: string | undefined;
}

export class InteractiveTransactions {
  readonly #deps: RequestDeps;

  constructor(deps: RequestDeps) {
    this.#deps = deps;
  }

  /**
   * Opens a transaction that spans requests. @throws {DatabaseError} LIMIT_EXCEEDED, SHUTTING_DOWN
   */
  open(principal: Principal, request: TransactionRequest): TransactionInfo {
    const { activity, clock, limits } = this.#deps;
    const { isReadOnly, namespace } = request;
    const timeoutMs = Math.min(
      request.timeoutMs ?? limits.transactionTimeoutMs,
      limits.transactionTimeoutMs,
    );
    const entry = activity.transactions.open(
      principal,
      { isReadOnly, namespace, timeoutMs },
      (onGrow) => {
        const held = newTransaction(this.#deps, ledgerAt(clock.monotonicMs()));
        held.hold({ isReadOnly, timeoutMs, onGrow });
        return held;
      },
    );
    return this.#infoOf(entry);
  }

  /** Returns the state of a transaction. @throws {DatabaseError} TRANSACTION_NOT_FOUND */
  info(principal: Principal, id: string): TransactionInfo {
    return this.ended(principal, id) ?? this.#infoOf(this.#transactions.find(principal, id));
  }

  /** Returns an open transaction for a request to continue. @throws {DatabaseError} */
  find(principal: Principal, id: string): ContinuedTransaction {
    const { held, namespace } = this.#transactions.find(principal, id);
    assert(
      held instanceof RequestTransaction,
      "interactive transactions: handle belongs to another transaction kind",
    );
    return { held, namespace };
  }

  /**
   * Returns the outcome of a transaction that has ended; undefined if the transaction is open or
   * unknown.
   */
  ended(principal: Principal, id: string): TransactionInfo | undefined {
    const ended = this.#transactions.endedOf(principal, id);
    if (ended === undefined) return undefined;
    const { outcome, why } = ended;
    const lastSeq = outcome.kind === "committed" ? { lastSeq: outcome.lastSeq } : {};
    return { id, state: outcome.kind, why, ...lastSeq };
  }

  #infoOf({ held, id, startMs, timeoutMs }: OpenTransaction): TransactionInfo {
    const { clock, limits } = this.#deps;
    return {
      id,
      state: held.isFailed ? "failed" : "open",
      expiresAtMs: wallMsAt(clock, startMs + timeoutMs),
      idleMs: limits.transactionIdleMs,
    };
  }

  get #transactions(): RequestDeps["activity"]["transactions"] {
    return this.#deps.activity.transactions;
  }
}

/** Returns the ledger of a transaction before its first request. It has no deadline. */
function ledgerAt(startMs: number): RequestLedger {
  return newLedger(startMs, { timeoutMs: 0, timeoutMsDefault: 0, timeoutMsMax: 0 });
}
