/**
 * Judges the followers after a burst of commits. Each of their states must equal the result of the
 * query, and each follower must have received everything, or have a reason for having ended.
 */
import type { WireRow } from "../../../src/protocol/mod.ts";
import type { FollowedState } from "../../support/result_follower.ts";
import { until } from "../../support/until.ts";
import { type Commit, CommitLedger } from "./commit_ledger.ts";
import type { Follower } from "./follower.ts";
import { Judge, type Judged } from "./judge.ts";
import type { Asked, Selects } from "./selects.ts";
import { readsClock } from "./tables.ts";

/** Codes with which a query may end after a definition or a right has changed. */
const DEFINITION_CODES: ReadonlySet<string> = new Set([
  "SCHEMA_CHANGED",
  "NOT_FOUND",
  "UNAUTHORIZED",
  "RESUME_EXPIRED",
]);

/**
 * The maximum time, in milliseconds, until a row that the passage of time adds or removes arrives.
 */
const CLOCK_MS_MAX = 10_000;

/** A burst of commits, after which the followers have caught up. */
export interface Burst {
  /** The seq that each follower must have reached. */
  readonly seq: number;
  /** The acknowledged commits. */
  readonly commits: readonly Commit[];
  /** Whether there may be further commits, because the server was killed. */
  readonly isKilled: boolean;
  /** Whether a definition or a right has changed. */
  readonly isRedefined: boolean;
  /** The queries from which a follower has unsubscribed. */
  readonly left: ReadonlySet<string>;
  /**
   * The times at which the followers had caught up before and after the burst, in milliseconds
   * since 1970.
   */
  readonly startMs: number;
  readonly endMs: number;
}

const NO_BURST: Burst = {
  seq: 0,
  commits: [],
  isKilled: false,
  isRedefined: false,
  left: new Set(),
  startMs: 0,
  endMs: 0,
};

/** The seqs of commits, and whether each commit changed a table of a query. */
type ComparedCommits = ReadonlyMap<number, boolean>;

/** The states that the follower of a query has had. */
interface HeldStates {
  readonly asked: Asked;
  /** The last state before the follower began without its rows. */
  readonly forgotten: FollowedState | undefined;
  readonly states: readonly FollowedState[];
}

/** Whether the server keeps one result for two queries that return the same rows for all users. */
function isSameResult(left: Asked, right: Asked): boolean {
  const { params, sql, way } = left;
  return sql === right.sql && way === right.way && Bun.deepEquals(params, right.params, true);
}

export interface VerdictsOptions {
  readonly selects: Selects;
  /** Reports a fault. The followers of the query are no longer judged afterwards. */
  readonly blame: (follower: Follower, what: string) => void;
  /** Subscribes a follower again, without the rows received earlier. */
  readonly begin: (follower: Follower) => void;
  /** The followers of results that have a state after every single commit. */
  readonly byCommit: ReadonlySet<Follower>;
}

export class Verdicts {
  readonly #options: VerdictsOptions;
  readonly #selects: Selects;
  readonly #judge: Judge;
  readonly #ledger = new CommitLedger();
  #burst: Burst = NO_BURST;
  /** The seq that each follower had reached before the burst. */
  #lastEndSeq = 0;
  /** The followers that ended because their SELECT fails. They start again once it succeeds. */
  readonly #waiting = new Set<Follower>();
  /**
   * The seq at the end of the last burst, for each follower whose state at that seq was compared.
   */
  readonly #comparedSeqs = new WeakMap<Follower, number>();
  /** The states that the followers had during the burst. */
  #held: readonly HeldStates[] = [];
  #stateCount = 0;
  #pairCount = 0;
  #changedPairCount = 0;

  constructor(options: VerdictsOptions) {
    this.#options = options;
    this.#selects = options.selects;
    this.#judge = new Judge(options.selects, () => ({
      ...this.#burst,
      lastChange: (asked, seq) => this.#ledger.lastChange(asked.tables, seq),
      hasRow: (asked, row) => this.#hasRow(asked, row),
    }));
  }

  /** The number of states judged so far. */
  get stateCount(): number {
    return this.#stateCount;
  }

  /**
   * The number of pairs of a commit and a query for which a follower's state at the commit was
   * compared.
   */
  get pairCount(): number {
    return this.#pairCount;
  }

  /** The number of compared pairs whose commit changed a table that the query reads. */
  get changedPairCount(): number {
    return this.#changedPairCount;
  }

  /** Begins judging with the tables as they are at a seq. */
  begin(seq: number): void {
    this.#ledger.begin(seq);
  }

  /** Judges all states that have arrived during a burst. */
  async judge(followers: Iterable<Follower>, burst: Burst): Promise<void> {
    const { commits, isKilled, isRedefined, seq } = burst;
    this.#lastEndSeq = this.#burst.seq;
    this.#burst = burst;
    if (isKilled || isRedefined) this.#ledger.lose();
    else this.#ledger.add(commits);
    const all = [...followers];
    this.#held = all.map(({ asked, forgotten, last, states }) => {
      const others = [forgotten, last, ...states.map(({ before }) => before)];
      return {
        asked,
        forgotten,
        states: [...states, ...others.filter((each) => each !== undefined)],
      };
    });
    const pairs = new Map<string, boolean>();
    await Promise.all(
      all.map(async (follower) => {
        for (const [commit, hasChanged] of await this.#judgeFollower(follower)) {
          const pair = `${follower.query} at ${commit}`;
          pairs.set(pair, hasChanged || pairs.get(pair) === true);
        }
      }),
    );
    this.#pairCount += pairs.size;
    this.#changedPairCount += pairs
      .values()
      .reduce((sum, hasChanged) => sum + Number(hasChanged), 0);
    const isComplete = this.#ledger.isComplete;
    if (!isComplete) this.#ledger.begin(seq);
    this.#selects.forgetUnless((asked, when) => {
      const isOfCommit = isComplete && when.timeMs === undefined;
      return isOfCommit && when.seq === this.#ledger.lastChange(asked.tables, seq);
    });
  }

  /**
   * Returns the commits at which a state of the follower was compared, and whether each of them
   * changed a table of the query.
   */
  async #judgeFollower(follower: Follower): Promise<ComparedCommits> {
    const { fault, states } = follower;
    const { isRedefined, seq } = this.#burst;
    const none: ComparedCommits = new Map();
    const blame = (what: string): ComparedCommits => {
      this.#options.blame(follower, what);
      return none;
    };
    const comparedSeq = this.#comparedSeqs.get(follower);
    this.#comparedSeqs.delete(follower);
    if (fault !== undefined) return blame(fault);
    const judged = this.#toJudge(follower);
    const differences = await this.#differencesIn(follower, judged);
    states.splice(0);
    const difference = differences.find((each) => !this.#isForgiven(each));
    if (difference !== undefined) return blame(difference);
    if (!follower.isRunning) {
      await this.#judgeEnding(follower);
      return none;
    }
    if (!follower.hasReached(seq)) return blame(`does not reach ${seq}`);
    if (isRedefined) await this.#judgeRight(follower);
    if (readsClock(follower.asked.sql)) await this.#judgeClock(follower);
    if (differences.length > 0) return none;
    if (this.#judge.canCompare(follower.asked, { isNewest: true })) {
      this.#comparedSeqs.set(follower, seq);
    }
    return this.#comparedCommits(follower, { comparedSeq, judged });
  }

  /** Returns the states that a follower has had since the last burst. */
  #toJudge(follower: Follower): readonly Judged[] {
    const { ack, asked, last, states } = follower;
    const { isRedefined, left, seq } = this.#burst;
    if (ack === undefined) return [];
    const isSteady = !isRedefined && !left.has(asked.sql);
    const isByCommit = isSteady && this.#options.byCommit.has(follower);
    const hasReached = follower.isRunning && follower.hasReached(seq);
    const judged = states.flatMap((state, index): Judged[] => {
      // A follower that began after the last burst has first rows from before the change. The
      // types of these rows may differ from the types of the changed columns.
      if (isRedefined && state.seq <= this.#lastEndSeq) return [];
      const isNewest = hasReached && index === states.length - 1;
      return [{ ack, state, isNewest, isByCommit }];
    });
    // A state is also the result at every later seq until the next state arrives.
    const hasChanged =
      last !== undefined && this.#lastChange(asked, last.seq) < this.#lastChange(asked, seq);
    if (hasReached && hasChanged) {
      const state = { ...last, seq, before: last, isResumed: false };
      judged.push({ ack, state, isNewest: true, isByCommit });
    }
    this.#stateCount += judged.length;
    return judged;
  }

  /** Returns the differences between the states of a follower and the SELECT. */
  async #differencesIn({ asked }: Follower, judged: readonly Judged[]): Promise<string[]> {
    const differences = await Promise.all(
      judged.map((each) => this.#judge.differenceOf(asked, each)),
    );
    return differences.filter((each) => each !== undefined);
  }

  /**
   * Returns the commits of the burst at which the follower had a state that was compared.
   *
   * @param comparedSeq The end of the last burst, if the state at that time was compared.
   */
  #comparedCommits(
    { asked }: Follower,
    { comparedSeq, judged }: { comparedSeq: number | undefined; judged: readonly Judged[] },
  ): ComparedCommits {
    const compared = judged.filter((each) => this.#judge.canCompare(asked, each));
    const hasPast = this.#selects.hasPast(asked);
    const seqs = compared.map(({ state }) => (hasPast ? state.seq : this.#burst.seq));
    if (comparedSeq !== undefined) seqs.push(comparedSeq);
    const changes = new Set(seqs.map((seq) => this.#lastChange(asked, seq)));
    const commits = this.#burst.commits.map(
      ({ seq }) => [seq, this.#lastChange(asked, seq)] as const,
    );
    return new Map(
      commits.flatMap(([seq, change]) => (changes.has(change) ? [[seq, change === seq]] : [])),
    );
  }

  #lastChange({ tables }: Asked, seq: number): number {
    return this.#ledger.lastChange(tables, seq);
  }

  /**
   * Whether a follower of the same result has had a row. The first rows of the follower that asks
   * do not count.
   */
  #hasRow(asked: Asked, row: WireRow): boolean {
    const { _key: key, _seq: seq } = row;
    return this.#held.some((held) => {
      if (!isSameResult(held.asked, asked)) return false;
      const { forgotten } = held;
      const states =
        held.asked !== asked ? held.states : forgotten === undefined ? [] : [forgotten];
      return states.some(({ rows }) =>
        rows.some((each) => each["_key"] === key && each["_seq"] === seq),
      );
    });
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

  /**
   * Requires that the follower has lost the rows that the passage of time removes, and received
   * the rows that it adds.
   */
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
    for (const { seq } of this.#burst.commits) {
      const { error } = await this.#selects.select(asked, { seq });
      if (error !== undefined) return true;
    }
    return false;
  }

  async #now(asked: Asked): ReturnType<Selects["select"]> {
    return await this.#selects.select(asked, { seq: undefined });
  }
}
