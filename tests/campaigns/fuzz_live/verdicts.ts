/**
 * Judges the followers after a burst of commits. Each of their states must equal the result of the
 * query, and each follower must have received everything, or have a reason for having ended.
 */
import { until } from "../../support/until.ts";
import type { Follower } from "./follower.ts";
import { Judge } from "./judge.ts";
import type { Asked, Selects } from "./selects.ts";
import { readsClock } from "./tables.ts";

/** Codes with which a query may end after a definition or a right has changed. */
const DEFINITION_CODES: ReadonlySet<string> = new Set([
  "SCHEMA_CHANGED",
  "NOT_FOUND",
  "UNAUTHORIZED",
  "RESUME_EXPIRED",
]);

/** How long a row that the passage of time adds or removes may take to arrive. */
const CLOCK_MS_MAX = 10_000;

/** A burst of commits, after which the followers have caught up. */
export interface Burst {
  /** The seq that each follower must have reached. */
  readonly seq: number;
  /** The seq that each follower had reached before the burst. */
  readonly previousSeq: number;
  /** The seqs of the acknowledged commits. */
  readonly seqs: readonly number[];
  /** Whether there may be further commits, because the server was killed. */
  readonly isKilled: boolean;
  /** Whether a definition or a right has changed. */
  readonly isRedefined: boolean;
  /** The queries that a follower has left. */
  readonly left: ReadonlySet<string>;
  /** When the followers had caught up before and after the burst, in milliseconds since 1970. */
  readonly startMs: number;
  readonly endMs: number;
}

export interface VerdictsOptions {
  readonly selects: Selects;
  /** Reports a fault. The followers of the query are no longer judged afterwards. */
  readonly blame: (follower: Follower, what: string) => void;
  /** Subscribes a follower again, without its rows. */
  readonly begin: (follower: Follower) => void;
  /** The followers of results that have a state after every single commit. */
  readonly byCommit: ReadonlySet<Follower>;
}

export class Verdicts {
  readonly #options: VerdictsOptions;
  readonly #selects: Selects;
  readonly #judge: Judge;
  #burst: Burst;
  /**
   * The seqs of the commits to which states are assigned; undefined if some commits are unknown.
   */
  #commits: readonly number[] | undefined;
  /** The followers that ended because their SELECT fails. They start again once it succeeds. */
  readonly #waiting = new Set<Follower>();
  #stateCount = 0;

  constructor(options: VerdictsOptions, burst: Burst) {
    this.#options = options;
    this.#selects = options.selects;
    this.#burst = burst;
    this.#judge = new Judge(options.selects, () => ({
      ...this.#burst,
      commitUpTo: (seq) => this.#commitUpTo(seq),
    }));
  }

  /** The number of states so far. */
  get stateCount(): number {
    return this.#stateCount;
  }

  /** Judges all states that have arrived during a burst. */
  async judge(followers: Iterable<Follower>, burst: Burst): Promise<void> {
    const { isKilled, isRedefined, previousSeq, seqs } = burst;
    this.#burst = burst;
    // A change to a definition may write rows, too, and the first burst creates the tables.
    const isKnown = !isKilled && !isRedefined && previousSeq > 0;
    this.#commits = isKnown ? [previousSeq, ...seqs.toSorted((a, b) => a - b)] : undefined;
    await Promise.all(Array.from(followers, (follower) => this.#judgeFollower(follower)));
    this.#selects.forget();
  }

  #commitUpTo(seq: number): number {
    return this.#commits?.findLast((commit) => commit <= seq) ?? seq;
  }

  async #judgeFollower(follower: Follower): Promise<void> {
    const { fault, states } = follower;
    const { isRedefined, seq } = this.#burst;
    const blame = (what: string): void => this.#options.blame(follower, what);
    if (fault !== undefined) return blame(fault);
    const difference = await this.#differenceIn(follower);
    states.splice(0);
    if (difference !== undefined) return blame(difference);
    if (!follower.isRunning) return await this.#judgeEnding(follower);
    if (!follower.hasReached(seq)) return blame(`does not reach ${seq}`);
    if (isRedefined) await this.#judgeRight(follower);
    if (readsClock(follower.asked.sql)) await this.#judgeClock(follower);
  }

  /** Returns how a follower's states differ from the SELECT; undefined if they do not. */
  async #differenceIn(follower: Follower): Promise<string | undefined> {
    const { ack, asked, last, states } = follower;
    const { left, seq } = this.#burst;
    if (ack === undefined) return undefined;
    const isSteady = !this.#burst.isRedefined && !left.has(asked.sql);
    const isByCommit = isSteady && this.#options.byCommit.has(follower);
    const hasReached = follower.isRunning && follower.hasReached(seq);
    const judged = states.map((state, index) => {
      const isNewest = hasReached && index === states.length - 1;
      return { ack, state, isNewest, isByCommit };
    });
    // A state is also the result at every later seq until the next state arrives.
    if (hasReached && last !== undefined && this.#commitUpTo(last.seq) < this.#commitUpTo(seq)) {
      const state = { ...last, seq, before: last, isResumed: false };
      judged.push({ ack, state, isNewest: true, isByCommit });
    }
    this.#stateCount += judged.length;
    const differences = await Promise.all(
      judged.map((each) => this.#judge.differenceOf(asked, each)),
    );
    return differences.find((found) => found !== undefined && !this.#isForgiven(found));
  }

  /**
   * A changed definition may change rows by itself, or make the SELECT for earlier states
   * impossible.
   */
  #isForgiven(difference: string): boolean {
    return this.#burst.isRedefined && difference.startsWith("the SELECT");
  }

  /** Requires that a query has ended if its user may no longer read its tables. */
  async #judgeRight(follower: Follower): Promise<void> {
    const { error } = await this.#now(follower.asked);
    const isForbidden = error?.code === "PERMISSION_DENIED" || error?.code === "TABLE_NOT_FOUND";
    if (!isForbidden) return;
    this.#options.blame(follower, `goes on, but the SELECT says ${error.message}`);
  }

  /** Requires that rows removed by the passage of time leave, and that rows added by it arrive. */
  async #judgeClock(follower: Follower): Promise<void> {
    const { asked, last } = follower;
    const deadlineMs = performance.now() + CLOCK_MS_MAX;
    let isRight = false;
    await until(async () => {
      const { ack, last: state = last } = follower;
      if (ack === undefined || state === undefined || !follower.isRunning) return true;
      const judged = { ...state, before: undefined, isResumed: false };
      const now = { ack, state: judged, isNewest: true, isByCommit: false };
      isRight = await this.#judge.isUpToDate(asked, now);
      return isRight || performance.now() > deadlineMs;
    });
    if (!isRight && follower.isRunning) {
      this.#options.blame(follower, "does not have the rows of this time");
    }
  }

  /**
   * Requires a reason for the end of a query: its SELECT fails, or a definition or a right has
   * changed.
   */
  async #judgeEnding(follower: Follower): Promise<void> {
    const { asked, ending } = follower;
    const { error } = await this.#now(asked);
    const isExpected =
      error !== undefined ||
      this.#waiting.has(follower) ||
      (this.#burst.isRedefined && DEFINITION_CODES.has(ending?.code ?? "")) ||
      (readsClock(asked.sql) && ending?.code === "RESUME_EXPIRED");
    if (!isExpected && ending !== undefined) {
      const isOfRow = ending.code === "CONVERSION_ERROR" && (await this.#failsOnRow(asked));
      if (!isOfRow)
        return this.#options.blame(follower, `ends with ${ending.code}: ${ending.message}`);
    }
    if (error !== undefined) {
      this.#waiting.add(follower);
      return;
    }
    this.#waiting.delete(follower);
    this.#options.begin(follower);
  }

  /**
   * Whether the SELECT fails after one of the last commits, or cannot be run for earlier states.
   */
  async #failsOnRow(asked: Asked): Promise<boolean> {
    if (!this.#selects.hasPast(asked)) return true;
    for (const seq of this.#burst.seqs) {
      const { error } = await this.#selects.select(asked, { seq });
      if (error !== undefined) return true;
    }
    return false;
  }

  async #now(asked: Asked): ReturnType<Selects["select"]> {
    return await this.#selects.select(asked, { seq: undefined });
  }
}
