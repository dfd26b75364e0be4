/**
 * Decides when feeds and subscriptions go on: soon after the visible seq moves, within a budget for
 * each turn of the event loop, the rest in later turns. Nothing is done in the writer's own call.
 *
 * Feeds whose definition has changed are reviewed before they are read, beside the others and not
 * before them: behind one table with thousands of followers, changes of other tables would wait for
 * all of its reviews. Invariant: a feed under review is not among those that are read.
 *
 * A bug in one feed or subscription ends only that one; the turn continues with the others.
 *
 * Feeds of queries that take long have a share of each turn behind the others: who follows with a
 * quick filter waits for none of them.
 *
 * A long turn is followed by a look at the sockets: while a thousand clients come back at once and
 * share what requests may do in a turn, a writer waits 40 ms on a quiet machine, not 1.4 s.
 */
import type { OnBug } from "../base/bugs.ts";
import type { Clock } from "../base/clock.ts";
import { Budget } from "./budget.ts";

/** How much is done at once, in units of {@linkcode Budget}. */
export interface Pace {
  /**
   * What one turn may do for feeds, those that are read and those under review in halves, and again
   * for subscriptions that read by themselves.
   */
  readonly turnUnits: number;
  /** What one subscription may do before the next has its turn: a usual batch has to fit. */
  readonly sliceUnits: number;
  /**
   * What a subscription may do in the very turn of its request: the first batch has to fit. Of a
   * thousand clients that come back at once, those that find `turnUnits` of it used up wait.
   */
  readonly requestUnits: number;
}

/** Schedules the turns. */
export interface Turns {
  /** Before anything else that waits for the event loop. */
  soon(turn: () => void): void;
  /** After what waits for the event loop now. */
  later(turn: () => void): void;
}

/** The turns of the event loop itself. */
export function turnsOf(clock: Clock): Turns {
  return {
    soon: (turn) => queueMicrotask(turn),
    later: (turn) => void clock.yield().then(turn),
  };
}

/** A few milliseconds a turn. */
export const PACE: Pace = { turnUnits: 2048, sliceUnits: 2048, requestUnits: 16_384 };

/** A turn that did more is followed by a rest, in which the event loop looks at its sockets. */
const REST_UNITS = 256;

interface Advancing {
  /** Returns whether there is nothing left to do. */
  advance(budget: Budget): boolean;
}

export interface PumpedFeed<Task> extends Advancing {
  /** It reads for a query that takes long, and nobody else waits for it. */
  readonly isSlow: boolean;
  /** Returns whether nothing is left to review; otherwise the budget was used up first. */
  review(budget: Budget): boolean;
  takeWaiting(): Iterable<Task>;
  /** Called after a bug in the feed: ends all subscriptions of the feed. */
  fail(error: unknown): void;
}

export class Pump<Task extends Advancing> {
  readonly #turns: Turns;
  readonly #pace: Pace;
  readonly #onBug: OnBug;
  readonly #feeds = new Set<PumpedFeed<Task>>();
  readonly #slowFeeds = new Set<PumpedFeed<Task>>();
  /** Of these a review is to come or under way. */
  readonly #reviewed = new Set<PumpedFeed<Task>>();
  readonly #tasks = new Set<Task>();
  #isScheduled = false;
  /** What is left of this turn for requests; undefined before the first of them. */
  #requests: Budget | undefined;
  readonly #turn = (): void => {
    this.#isScheduled = false;
    const { turnUnits } = this.#pace;
    const isShared = this.#feeds.size > 0 && this.#reviewed.size > 0;
    const units = isShared ? turnUnits / 2 : turnUnits;
    const spent =
      this.#advanceFeeds(this.#feeds, units) +
      this.#advanceFeeds(this.#slowFeeds, units / 2) +
      this.#advanceReviews(units) +
      this.#advanceTasks();
    // Events of one look at the sockets may each ask for a turn: together they get this one.
    const isLong = spent > REST_UNITS;
    const hasFeeds = this.#feeds.size > 0 || this.#slowFeeds.size > 0;
    const hasMore = hasFeeds || this.#reviewed.size > 0 || this.#tasks.size > 0;
    if (isLong || hasMore) this.#scheduleLater();
  };

  constructor(turns: Turns, pace: Pace, onBug: OnBug) {
    this.#turns = turns;
    this.#pace = pace;
    this.#onBug = onBug;
  }

  /** A feed has something new. */
  mark(feed: PumpedFeed<Task>): void {
    if (this.#reviewed.has(feed)) return;
    this.#due(feed).add(feed);
    this.#scheduleSoon();
  }

  /** A feed is to be reviewed, and then read. */
  review(feed: PumpedFeed<Task>): void {
    this.#due(feed).delete(feed);
    this.#reviewed.add(feed);
    this.#scheduleSoon();
  }

  /** A task may go on. */
  enqueue(task: Task): void {
    this.#tasks.add(task);
    this.#scheduleSoon();
  }

  /** Advances a task now, and later as long as it has more to do. */
  run(task: Task): void {
    if (this.#tasks.has(task)) return;
    const requests = this.#requestsOfTurn();
    const mayAdvance = this.#pace.requestUnits - requests.left < this.#pace.turnUnits;
    if (mayAdvance && task.advance(requests)) return;
    this.#tasks.add(task);
    this.#scheduleLater();
  }

  forget(task: Task): void {
    this.#tasks.delete(task);
  }

  #requestsOfTurn(): Budget {
    if (this.#requests === undefined) {
      this.#requests = new Budget(this.#pace.requestUnits);
      this.#turns.later(() => {
        this.#requests = undefined;
      });
    }
    return this.#requests;
  }

  /** Where a feed stands that has something to read. */
  #due(feed: PumpedFeed<Task>): Set<PumpedFeed<Task>> {
    return feed.isSlow ? this.#slowFeeds : this.#feeds;
  }

  /** @returns How many units it took. */
  #advanceFeeds(due: Set<PumpedFeed<Task>>, units: number): number {
    const budget = new Budget(units);
    for (const feed of due) {
      // Deleted first, so that a feed with more to do goes behind the others.
      due.delete(feed);
      const isDone = this.#ofFeed(feed, () => feed.advance(budget));
      if (isDone === true) for (const task of feed.takeWaiting()) this.#tasks.add(task);
      else if (isDone === false) due.add(feed);
      if (budget.isSpent) break;
    }
    return units - budget.left;
  }

  /** @returns How many units it took. */
  #advanceReviews(units: number): number {
    const budget = new Budget(units);
    for (const feed of this.#reviewed) {
      this.#reviewed.delete(feed);
      const isDone = this.#ofFeed(feed, () => feed.review(budget));
      if (isDone === true) this.#due(feed).add(feed);
      else if (isDone === false) this.#reviewed.add(feed);
      if (budget.isSpent) break;
    }
    return units - budget.left;
  }

  /** Runs the work of a feed and returns its result; undefined if it met a bug. */
  #ofFeed(feed: PumpedFeed<Task>, work: () => boolean): boolean | undefined {
    try {
      return work();
    } catch (error) {
      this.#onBug(error, "a turn of live queries");
      feed.fail(error);
      return undefined;
    }
  }

  /** @returns How many units it took. */
  #advanceTasks(): number {
    const { turnUnits, sliceUnits } = this.#pace;
    let left = turnUnits;
    for (const task of this.#tasks) {
      this.#tasks.delete(task);
      const budget = new Budget(sliceUnits);
      try {
        if (!task.advance(budget)) this.#tasks.add(task);
      } catch (error) {
        this.#onBug(error, "a turn of a subscription");
      }
      left -= sliceUnits - budget.left;
      if (left <= 0) break;
    }
    return turnUnits - left;
  }

  #scheduleSoon(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#turns.soon(this.#turn);
  }

  #scheduleLater(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#turns.later(this.#turn);
  }
}
