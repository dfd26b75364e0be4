/**
 * Manages advisory locks: locks on numbers that have a meaning only to applications.
 *
 *     asked ──free──► held ──unlocked, returned to a savepoint, holder ended──► released
 *       └──not free──► waiting ──its turn──► held
 *                         └──withdrawn──► gone
 *
 * - A holder is a transaction, or a request outside a transaction.
 * - Several holders can share a lock. An exclusive lock has a single holder. A holder can take the
 *   same lock several times and in both modes.
 * - Waiting holders receive a lock in the order in which they asked for it. A holder that already
 *   has the lock in the other mode goes first.
 * - A holder waits for at most one lock. If its wait would complete a cycle of waiting holders,
 *   the holder is refused instead.
 * - A transaction's lock ends with the transaction, or with ROLLBACK TO a savepoint set before the
 *   lock was taken. A session's lock is counted, and can also be unlocked. Savepoints do not
 *   affect it.
 */
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { Transaction } from "../execute/context/transaction.ts";
import type { AdvisoryMode } from "../functions/base/function.ts";

/** The maximum number of different advisory locks per holder. */
const LOCKS_MAX = 1000;

export type AdvisoryHolder = Transaction | RequestLedger;

/** The number or pair of numbers that is locked, and the users who can lock it. */
export interface AdvisoryKey {
  /** The only user who can take this lock; undefined for locks that administrators share. */
  readonly userId: string | undefined;
  /** The numbers that identify the lock, as text, such as "5" or "(5, 6)". */
  readonly text: string;
}

export interface AdvisoryRequest {
  readonly key: AdvisoryKey;
  readonly mode: AdvisoryMode;
  /** Whether the lock belongs to the session. Such a lock is counted and can be unlocked. */
  readonly isOfSession: boolean;
  /** The user for whom the lock is listed. */
  readonly userId: string;
}

/** A holder's place in the queue for a lock. */
export interface AdvisoryTurn {
  /** Resolves once the holder has the lock. */
  readonly granted: Promise<void>;
  /** Gives up the place in the queue. */
  withdraw(): void;
}

/** A lock that a holder has or is waiting for, as it appears in lists. */
export interface ListedAdvisoryLock {
  readonly holder: AdvisoryHolder;
  readonly key: AdvisoryKey;
  readonly mode: AdvisoryMode;
  readonly userId: string;
  readonly isOfSession: boolean;
  readonly isGranted: boolean;
  readonly sinceMs: number;
}

/** The state of a holder's lock in one mode. */
interface Grant {
  readonly userId: string;
  readonly sinceMs: number;
  /** How many times the holder has taken the lock for its session. */
  sessionCount: number;
  isOfTransaction: boolean;
}

interface Waiter {
  readonly holder: AdvisoryHolder;
  readonly request: AdvisoryRequest;
  readonly sinceMs: number;
  readonly grant: () => void;
}

interface Lock {
  readonly id: string;
  readonly key: AdvisoryKey;
  readonly grants: Map<AdvisoryHolder, Map<AdvisoryMode, Grant>>;
  readonly queue: Waiter[];
}

interface HolderState {
  readonly locks: Set<Lock>;
  /** The locks taken for the transaction, oldest first. */
  readonly notes: { readonly lock: Lock; readonly mode: AdvisoryMode }[];
  /** The lock for which the holder is waiting; undefined if it is not waiting. */
  waitsFor: Lock | undefined;
}

export class AdvisoryLocks {
  readonly #clock: Clock;
  readonly #locks = new Map<string, Lock>();
  readonly #holders = new Map<AdvisoryHolder, HolderState>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Takes a lock if it is free. Returns whether the lock was taken.
   *
   * @throws {DatabaseError} TRANSACTION_LIMIT
   */
  take(holder: AdvisoryHolder, request: AdvisoryRequest): boolean {
    const { key, mode } = request;
    const id = idOf(key);
    const known = this.#locks.get(id);
    const held = this.#holders.get(holder)?.locks;
    const isNew = known === undefined || held?.has(known) !== true;
    if (isNew && held !== undefined && held.size >= LOCKS_MAX) throw tooManyLocks(key);
    if (known !== undefined && !isFree(known, { holder, mode }, known.queue)) return false;
    this.#grant(known ?? this.#newLock(id, key), holder, request);
    return true;
  }

  /**
   * Joins the queue for a lock that {@linkcode take} could not take.
   *
   * @throws {DatabaseError} SERIALIZATION_FAILURE if the wait would complete a cycle of waiting
   *   holders.
   */
  waitFor(holder: AdvisoryHolder, request: AdvisoryRequest): AdvisoryTurn {
    const { key } = request;
    const id = idOf(key);
    const lock = this.#locks.get(id) ?? this.#newLock(id, key);
    const state = this.#stateOf(holder);
    const { promise: granted, resolve: grant } = Promise.withResolvers<void>();
    const waiter = { holder, request, grant, sinceMs: this.#clock.nowMs() };
    if (lock.grants.has(holder)) lock.queue.unshift(waiter);
    else lock.queue.push(waiter);
    state.waitsFor = lock;
    const withdraw = (): void => this.#withdraw(lock, waiter);
    if (this.#isBlockedBy(holder, holder, new Set())) {
      withdraw();
      throw new DatabaseError(
        "SERIALIZATION_FAILURE",
        `Cannot take advisory lock ${key.text}: this would cause a deadlock, because the ` +
          "transaction that holds it is waiting for this one",
        {
          hint:
            "run the transaction again; to avoid deadlocks, take locks in the same order in all " +
            "transactions",
        },
      );
    }
    return { granted, withdraw };
  }

  /** Releases one of the session's grants of a lock. Returns whether the session had the lock. */
  unlock(holder: AdvisoryHolder, key: AdvisoryKey, mode: AdvisoryMode): boolean {
    const lock = this.#locks.get(idOf(key));
    const grant = lock?.grants.get(holder)?.get(mode);
    if (lock === undefined || grant === undefined || grant.sessionCount === 0) return false;
    grant.sessionCount -= 1;
    this.#settle(lock, holder);
    return true;
  }

  /** Unlocks all locks of the session. */
  unlockAll(holder: AdvisoryHolder): void {
    for (const lock of this.#holders.get(holder)?.locks ?? []) {
      for (const grant of lock.grants.get(holder)?.values() ?? []) grant.sessionCount = 0;
      this.#settle(lock, holder);
    }
  }

  /**
   * Returns a mark for {@linkcode returnTo}. It represents the locks that a transaction has now.
   */
  markOf(holder: AdvisoryHolder): number {
    return this.#holders.get(holder)?.notes.length ?? 0;
  }

  /** Releases the locks that a transaction has taken since the given mark. */
  returnTo(holder: AdvisoryHolder, mark: number): void {
    for (const { lock, mode } of this.#holders.get(holder)?.notes.splice(mark) ?? []) {
      const grant = lock.grants.get(holder)?.get(mode);
      if (grant !== undefined) grant.isOfTransaction = false;
      this.#settle(lock, holder);
    }
  }

  /** Releases all locks of a holder that has ended. */
  release(holder: AdvisoryHolder): void {
    const state = this.#holders.get(holder);
    if (state === undefined) return;
    this.#holders.delete(holder);
    for (const lock of state.locks) {
      lock.grants.delete(holder);
      this.#advance(lock);
    }
  }

  /** Returns all locks, oldest first, each followed by the holders waiting for it. */
  all(): readonly ListedAdvisoryLock[] {
    return [...this.#locks.values()].flatMap((lock) => grantsOf(lock).concat(waitsOf(lock)));
  }

  #newLock(id: string, key: AdvisoryKey): Lock {
    const lock = { id, key, grants: new Map(), queue: [] };
    this.#locks.set(id, lock);
    return lock;
  }

  #stateOf(holder: AdvisoryHolder): HolderState {
    let state = this.#holders.get(holder);
    if (state === undefined) {
      state = { locks: new Set(), notes: [], waitsFor: undefined };
      this.#holders.set(holder, state);
    }
    return state;
  }

  #grant(lock: Lock, holder: AdvisoryHolder, { isOfSession, mode, userId }: AdvisoryRequest): void {
    const state = this.#stateOf(holder);
    state.locks.add(lock);
    let modes = lock.grants.get(holder);
    if (modes === undefined) {
      modes = new Map();
      lock.grants.set(holder, modes);
    }
    let grant = modes.get(mode);
    if (grant === undefined) {
      const sinceMs = this.#clock.nowMs();
      grant = { userId, sinceMs, sessionCount: 0, isOfTransaction: false };
      modes.set(mode, grant);
    }
    if (isOfSession) {
      grant.sessionCount += 1;
    } else if (!grant.isOfTransaction) {
      grant.isOfTransaction = true;
      state.notes.push({ lock, mode });
    }
  }

  /**
   * Removes a holder's grants that have become empty, and passes the lock on to the next holders.
   */
  #settle(lock: Lock, holder: AdvisoryHolder): void {
    const modes = lock.grants.get(holder);
    for (const [mode, { isOfTransaction, sessionCount }] of modes ?? []) {
      if (!isOfTransaction && sessionCount === 0) modes?.delete(mode);
    }
    if (modes?.size === 0) {
      lock.grants.delete(holder);
      const state = this.#holders.get(holder);
      state?.locks.delete(lock);
      if (state !== undefined) this.#forgetIdle(holder, state);
    }
    this.#advance(lock);
  }

  /** Grants a lock to every waiting holder that can have it now. */
  #advance(lock: Lock): void {
    for (let index = 0; index < lock.queue.length; ) {
      const waiter = lock.queue[index];
      if (waiter === undefined) break;
      const { grant, holder, request } = waiter;
      if (!isFree(lock, { holder, mode: request.mode }, lock.queue.slice(0, index))) {
        index += 1;
        continue;
      }
      lock.queue.splice(index, 1);
      this.#stateOf(holder).waitsFor = undefined;
      this.#grant(lock, holder, request);
      grant();
    }
    if (lock.grants.size === 0 && lock.queue.length === 0) this.#locks.delete(lock.id);
  }

  #withdraw(lock: Lock, waiter: Waiter): void {
    const index = lock.queue.indexOf(waiter);
    if (index === -1) return;
    lock.queue.splice(index, 1);
    const state = this.#stateOf(waiter.holder);
    state.waitsFor = undefined;
    this.#forgetIdle(waiter.holder, state);
    this.#advance(lock);
  }

  #forgetIdle(holder: AdvisoryHolder, { locks, waitsFor }: HolderState): void {
    if (locks.size === 0 && waitsFor === undefined) this.#holders.delete(holder);
  }

  /**
   * Whether a waiting holder has to wait for another holder, directly or through further holders.
   */
  #isBlockedBy(
    holder: AdvisoryHolder,
    other: AdvisoryHolder,
    passed: Set<AdvisoryHolder>,
  ): boolean {
    const lock = this.#holders.get(holder)?.waitsFor;
    const index = lock?.queue.findIndex((each) => each.holder === holder) ?? -1;
    const waiter = lock?.queue[index];
    if (lock === undefined || waiter === undefined) return false;
    const { mode } = waiter.request;
    for (const each of blockersOf(lock, { holder, mode }, lock.queue.slice(0, index))) {
      if (each === other) return true;
      if (passed.has(each)) continue;
      passed.add(each);
      if (this.#isBlockedBy(each, other, passed)) return true;
    }
    return false;
  }
}

/** A holder that requests a lock in a mode. */
interface Asking {
  readonly holder: AdvisoryHolder;
  readonly mode: AdvisoryMode;
}

/**
 * Whether a holder can take a lock, taking into account the holders that asked for the lock
 * earlier.
 */
function isFree(lock: Lock, asking: Asking, before: readonly Waiter[]): boolean {
  return blockersOf(lock, asking, before).next().done === true;
}

/**
 * Yields the holders that block a request for a lock, because they must release the lock or get it
 * first.
 */
function* blockersOf(
  { grants }: Lock,
  { holder, mode }: Asking,
  before: readonly Waiter[],
): Generator<AdvisoryHolder> {
  for (const [other, modes] of grants) {
    if (other !== holder && (mode === "exclusive" || modes.has("exclusive"))) yield other;
  }
  // A holder that already has the lock must not wait for holders that are waiting for it.
  if (grants.has(holder)) return;
  for (const { holder: other, request } of before) {
    if (mode === "exclusive" || request.mode === "exclusive") yield other;
  }
}

function grantsOf({ grants, key }: Lock): readonly ListedAdvisoryLock[] {
  return [...grants].flatMap(([holder, modes]) =>
    [...modes].map(([mode, { sessionCount, sinceMs, userId }]) => ({
      holder,
      key,
      mode,
      userId,
      isOfSession: sessionCount > 0,
      isGranted: true,
      sinceMs,
    })),
  );
}

function waitsOf({ key, queue }: Lock): readonly ListedAdvisoryLock[] {
  return queue.map(({ holder, request, sinceMs }) => ({
    holder,
    key,
    mode: request.mode,
    userId: request.userId,
    isOfSession: request.isOfSession,
    isGranted: false,
    sinceMs,
  }));
}

function idOf({ text, userId }: AdvisoryKey): string {
  return userId === undefined ? text : `${text} of ${userId}`;
}

function tooManyLocks({ text }: AdvisoryKey): DatabaseError {
  return new DatabaseError(
    "TRANSACTION_LIMIT",
    `Cannot take advisory lock ${text}: the transaction already holds ${LOCKS_MAX} advisory ` +
      "locks, which is the maximum",
    { hint: "take fewer locks, for example by using LIMIT, or a single lock for a group of rows" },
  );
}
