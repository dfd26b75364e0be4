/**
 * Takes and releases advisory locks for a statement on the event loop.
 *
 *     on the event loop ──not free──► forgotten ──has the lock──► begun again
 *
 * - A restarted query makes the same calls in the same order, so its earlier calls get the same
 *   answers again. A call that differs, because of RANDOM() for example, is a new call.
 * - Inside a transaction, locks belong to the transaction; otherwise, they belong to the request.
 * - A transaction that has not read or changed any rows yet moves its snapshot to the time at
 *   which it gets the lock. Otherwise, it would not see the changes of the lock's previous holder.
 */
import type { Principal } from "../../auth/mod.ts";
import { type Clock, HOUR_MS } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { Store } from "../../storage/mod.ts";
import type {
  AdvisoryHolder,
  AdvisoryKey,
  AdvisoryLocks,
  AdvisoryRequest,
  AdvisoryTurn,
} from "../activity/advisory_locks.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import { withinRequest } from "../execute/context/request_wait.ts";
import type { Sleeps } from "../execute/context/sleeps.ts";
import type { Transaction } from "../execute/context/transaction.ts";
import type { AdvisoryForm, AdvisoryMode } from "../functions/base/function.ts";
import type { Prepared } from "../prepare/prepared.ts";
import type { AttemptLocks } from "../prepare/statement_context.ts";
import type { RequestSettings } from "./request_settings.ts";

/**
 * The maximum number of lock calls in a query. Their answers are kept as long as the query may
 * have to be restarted.
 */
const CALLS_MAX = 100_000;

/**
 * The longest time that a statement may wait for locks, whatever the timeout of its request,
 * because its snapshot is kept while it waits.
 */
const WAIT_MS_MAX = HOUR_MS;

export interface StatementLocksOptions {
  readonly locks: AdvisoryLocks;
  readonly clock: Clock;
  readonly store: Pick<Store, "visibleSeq">;
  readonly ledger: RequestLedger;
  readonly settings: Pick<RequestSettings, "lockTimeoutMs">;
  readonly principal: Principal;
  readonly transaction: Transaction | undefined;
  /** Lets the statement wait for a lock; absent if it must not wait. */
  readonly sleeps: Sleeps | undefined;
}

/** A call to a lock function, and the answer that it received. */
interface AnsweredCall {
  readonly call: string;
  readonly answer: boolean;
}

/** The time at which a wait for a lock ends, and the error with which the statement then fails. */
interface WaitLimit {
  readonly endMs: number;
  readonly error: DatabaseError;
}

/** Whether a statement takes advisory locks and reads no rows. */
export function locksOnly({ kind, requirements }: Prepared): boolean {
  if (kind !== "query" || requirements.length === 0) return false;
  return requirements.every(({ action }) => action === "advisory-lock");
}

export class StatementLocks implements AttemptLocks {
  readonly #options: StatementLocksOptions;
  readonly #answers: AnsweredCall[] = [];
  /** The number of lock calls since the statement was last started or restarted. */
  #askedCount = 0;
  readonly #startMs: number;

  constructor(options: StatementLocksOptions) {
    this.#options = options;
    this.#startMs = options.clock.monotonicMs();
  }

  get sleeps(): Sleeps | undefined {
    return this.#options.sleeps;
  }

  beginAnew(): void {
    this.#askedCount = 0;
  }

  lock(text: string, form: AdvisoryForm): void {
    const call = callOf("lock", text, form);
    this.#answered(call, () => {
      const request = this.#requestFor(text, form);
      if (!this.#take(request)) this.#waitFor(request, call);
      return true;
    });
  }

  tryLock(text: string, form: AdvisoryForm): boolean {
    return this.#answered(callOf("try", text, form), () =>
      this.#take(this.#requestFor(text, form)),
    );
  }

  unlock(text: string, mode: AdvisoryMode): boolean {
    return this.#answered(callOf("unlock", text, { mode, isOfSession: true }), () =>
      this.#options.locks.unlock(this.#holder, this.#keyOf(text), mode),
    );
  }

  unlockAll(): void {
    this.#answered("unlock all", () => {
      this.#options.locks.unlockAll(this.#holder);
      return true;
    });
  }

  get #holder(): AdvisoryHolder {
    return this.#options.transaction ?? this.#options.ledger;
  }

  /**
   * Returns the answer that a lock call got in an earlier attempt. If there is no such answer,
   * makes the call.
   */
  #answered(call: string, make: () => boolean): boolean {
    const index = this.#askedCount;
    this.#askedCount += 1;
    const known = this.#answers[index];
    if (known?.call === call) return known.answer;
    this.#answers.length = Math.min(this.#answers.length, index);
    const answer = make();
    if (this.#options.sleeps !== undefined) this.#keep({ call, answer });
    return answer;
  }

  #keep(answered: AnsweredCall): void {
    if (this.#answers.length >= CALLS_MAX) {
      throw new DatabaseError(
        "LIMIT_EXCEEDED",
        "Cannot take more advisory locks: a query can call advisory lock functions at most " +
          `${CALLS_MAX} times`,
        { hint: "call them for fewer rows, for example with LIMIT in a subquery" },
      );
    }
    this.#answers.push(answered);
  }

  /**
   * Users with the role user have lock keys of their own, so they cannot block the work of others.
   */
  #keyOf(text: string): AdvisoryKey {
    const { role, userId } = this.#options.principal;
    return { userId: role === "user" ? userId : undefined, text };
  }

  #requestFor(text: string, form: AdvisoryForm): AdvisoryRequest {
    const { principal, transaction } = this.#options;
    if (form.isOfSession && transaction === undefined) throw noSession(text);
    return { key: this.#keyOf(text), ...form, userId: principal.userId };
  }

  #take(request: AdvisoryRequest): boolean {
    const isTaken = this.#options.locks.take(this.#holder, request);
    if (isTaken) this.#renewSnapshot();
    return isTaken;
  }

  #renewSnapshot(): void {
    const { store, transaction } = this.#options;
    transaction?.renewSnapshot(store.visibleSeq);
  }

  /**
   * Suspends the statement until an advisory lock is granted.
   * @throws ASLEEP
   * @throws {DatabaseError} UNSUPPORTED_FEATURE, SERIALIZATION_FAILURE
   */
  #waitFor(request: AdvisoryRequest, call: string): never {
    const { ledger, locks, sleeps } = this.#options;
    if (sleeps === undefined) throw mustNotWait(request);
    const turn = locks.waitFor(this.#holder, request);
    return sleeps.waitFor(async () => {
      ledger.isWaiting = true;
      try {
        await this.#untilGranted(turn, request);
      } finally {
        ledger.isWaiting = false;
        turn.withdraw();
      }
      this.#keep({ call, answer: true });
      this.#renewSnapshot();
    });
  }

  /**
   * Waits until an advisory lock is granted.
   * @throws {DatabaseError} LOCK_NOT_AVAILABLE, LIMIT_EXCEEDED, TRANSACTION_LIMIT,
   *   STATEMENT_TIMEOUT, CANCELLED, SHUTTING_DOWN
   */
  async #untilGranted({ granted }: AdvisoryTurn, request: AdvisoryRequest): Promise<void> {
    const { clock, ledger } = this.#options;
    const limits = this.#limitsOf(request);
    const first = Math.min(...limits.map(({ endMs }) => endMs));
    const { promise: late, reject } = Promise.withResolvers<never>();
    const cancelTimer = clock.after(first - clock.monotonicMs(), () =>
      reject(limits.find(({ endMs }) => endMs === first)?.error),
    );
    try {
      await withinRequest(() => Promise.race([granted, late]), { clock, ledger });
    } finally {
      cancelTimer();
    }
  }

  /**
   * Returns the monotonic times at which a wait for a lock ends without it, and the resulting
   * errors.
   */
  #limitsOf({ key: { text } }: AdvisoryRequest): readonly WaitLimit[] {
    const { clock, settings, transaction } = this.#options;
    const { lockTimeoutMs } = settings;
    const cannot = `Cannot take advisory lock ${text}`;
    const limits: WaitLimit[] = [
      {
        endMs: this.#startMs + WAIT_MS_MAX,
        error: new DatabaseError(
          "LIMIT_EXCEEDED",
          `${cannot}: a statement may wait for at most ${WAIT_MS_MAX / 1000} s`,
        ),
      },
    ];
    if (lockTimeoutMs !== undefined) {
      limits.push({
        endMs: clock.monotonicMs() + lockTimeoutMs,
        error: new DatabaseError(
          "LOCK_NOT_AVAILABLE",
          `${cannot}: lock_timeout (${lockTimeoutMs} ms) has passed`,
        ),
      });
    }
    if (transaction !== undefined) {
      const { startedAtMs, timeoutMs } = transaction;
      limits.push({
        endMs: startedAtMs + timeoutMs,
        error: new DatabaseError(
          "TRANSACTION_LIMIT",
          `${cannot}: the transaction may stay open for at most ${timeoutMs / 1000} s`,
        ),
      });
    }
    return limits;
  }
}

/** Returns a string that identifies a lock call with its arguments. */
function callOf(verb: string, text: string, { isOfSession, mode }: AdvisoryForm): string {
  return `${verb} ${text} ${mode}${isOfSession ? " of the session" : ""}`;
}

function noSession(text: string): DatabaseError {
  return new DatabaseError(
    "TRANSACTION_REQUIRED",
    `Cannot take advisory lock ${text} for the session: no transaction is open, so the lock ` +
      "would be released at the end of this request",
    {
      hint:
        "open a transaction with BEGIN or POST /v1/api/transactions, or take the lock only for " +
        "this request with pg_advisory_xact_lock",
    },
  );
}

/**
 * Creates the error for a lock function that may have to wait, but that a default or another
 * expression of a definition calls while rows are being changed.
 */
function mustNotWait({ key: { text } }: AdvisoryRequest): DatabaseError {
  return new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot wait for advisory lock ${text} here: only queries can wait for locks`,
    { hint: "take the lock with a query before the change, in the same transaction" },
  );
}
