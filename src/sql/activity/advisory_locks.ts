/**
 * Manages advisory locks: locks on numbers to which only applications give a meaning.
 *
 *     asked ──free──► held ──unlocked, returned to a savepoint, holder ended──► released
 *       └──not free──► waiting ──its turn──► held
 *                         └──withdrawn──► gone
 *
 * - A holder is a transaction, or a request outside a transaction.
 * - Several holders can share a lock. Otherwise, a lock has one holder, which can take it several
 *   times and in both modes.
 * - Waiting holders receive a lock in the order in which they asked for it. A holder that has the
 *   lock already, and asks for another mode of it, goes first.
 * - A holder waits for at most one lock. If its wait would close a circle of waiting holders, the
 *   holder is refused instead.
 * - A lock of a transaction ends with it, or with ROLLBACK TO a savepoint before the lock. A lock
 *   of a session is counted, and can also be unlocked. No savepoint affects it.
 */
import type { Clock } from "../../base/clock.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import type { Transaction } from "../execute/context/transaction.ts";
import type { AdvisoryMode } from "../functions/base/function.ts";

/** The maximum number of different advisory locks of one holder. */
const LOCKS_MAX = 1000;

export type AdvisoryHolder = Transaction | RequestLedger;

/** The number or the pair of numbers that is locked, and the group of users who share it. */
export interface AdvisoryKey {
  /** The only user who can lock the key; undefined for the keys that administrators share. */
  readonly userId: string | undefined;
  /** The numbers that identify the lock, as text, such as "5" or "(5, 6)". */
  readonly text: string;
}

export interface AdvisoryRequest {
  readonly key: AdvisoryKey;
  readonly mode: AdvisoryMode;
  /** Whether the lock is one of the session, which is counted and can be unlocked. */
  readonly isOfSession: boolean;
  /** The user for whom the lock is listed. */
  readonly userId: string;
}

/** The position of a session or transaction in the queue for a lock. */
export interface AdvisoryTurn {
  /** Resolves once the holder has the lock. */
  readonly granted: Promise<void>;
  /** Removes the holder from the queue of the lock. */
  withdraw(): void;
}

/** A lock that is held or for which a holder waits, as it is listed. */
export interface ListedAdvisoryLock {
  readonly holder: AdvisoryHolder;
  readonly key: AdvisoryKey;
  readonly mode: AdvisoryMode;
  readonly userId: string;
  readonly isOfSession: boolean;
  readonly isGranted: boolean;
  readonly sinceMs: number;
}

/** A lock in one mode, as one holder has it. */
interface Grant {
  readonly userId: string;
  readonly sinceMs: number;
  /** The number of times that the holder has locked the lock for its session. */
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
  /** The lock for which the holder waits. */
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
   * Takes a lock if it is free. Returns whether it was.
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
   * @throws {DatabaseError} SERIALIZATION_FAILURE if the holder would wait for itself
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
        `Cannot take advisory lock ${key.text}: another transaction holds it and waits for this one, so the two would wait for each other`,
        { hint: "run the transaction again, and let all transactions take locks in one order" },
      );
    }
    return { granted, withdraw };
  }

  /** Unlocks a lock of the session once. Returns whether the session had it. */
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

  /** Returns the current state of a transaction, for {@linkcode returnTo}. */
  markOf(holder: AdvisoryHolder): number {
    return this.#holders.get(holder)?.notes.length ?? 0;
  }

  /** Releases the locks that a transaction has taken since a mark. */
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

  /** Returns all locks, the oldest first, each with the holders that wait for it. */
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

  /** Discards what a holder no longer has of a lock, and lets the next holders have it. */
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

  /** Grants a lock to all waiting holders that can have it now. */
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

  /** Whether a waiting holder cannot go on before `other` does, directly or through others. */
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

/** Whether a holder can have a lock, if these holders have asked for it before. */
function isFree(lock: Lock, asking: Asking, before: readonly Waiter[]): boolean {
  return blockersOf(lock, asking, before).next().done === true;
}

/** Returns the holders for which a holder has to wait before it can have a lock. */
function* blockersOf(
  { grants }: Lock,
  { holder, mode }: Asking,
  before: readonly Waiter[],
): Generator<AdvisoryHolder> {
  for (const [other, modes] of grants) {
    if (other !== holder && (mode === "exclusive" || modes.has("exclusive"))) yield other;
  }
  // A holder that has the lock already must not wait for holders that wait for it.
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
    `Cannot take advisory lock ${text}: the transaction already has ${LOCKS_MAX} advisory locks, which is the limit`,
    { hint: "take fewer locks, for example with LIMIT, or one lock for a group of rows" },
  );
}
