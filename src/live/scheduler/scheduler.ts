/**
 * Schedules the work of feeds and subscriptions. They run soon after the visible seq moves, within
 * a budget for each tick of the event loop; work that exceeds the budget continues in later ticks.
 * No such work runs inside the writer's call.
 *
 * Feeds whose definition has changed are reviewed before they are read. Reviews run alongside the
 * feeds that can be read, not before them: otherwise, a table with thousands of followers would
 * delay the changes to all other tables. Invariant: a feed being reviewed is not among the feeds
 * to be read.
 *
 * A bug in a feed or subscription ends only that feed or subscription. The tick continues with the
 * others.
 *
 * The feeds of slow queries get a share of each tick after the other feeds, so that clients with
 * fast filters never wait for them.
 *
 * After a long tick, the event loop serves its sockets before the next tick runs. Therefore, if a
 * thousand clients reconnect at once and share the request budget of a tick, a writer waits tens
 * of milliseconds rather than more than a second.
 */
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import { TickBudget } from "./tick_budget.ts";

/** The amounts of work per step, in units of {@linkcode TickBudget}. */
export interface Pace {
  /**
   * The feeds' budget for a tick: half for feeds to be read, and half for feeds to be reviewed. In
   * addition, subscriptions that read their own changes get the same amount.
   */
  readonly tickUnits: number;
  /**
   * How much a subscription may spend before the next subscription is served. This must be enough
   * for a typical batch.
   */
  readonly sliceUnits: number;
  /**
   * How much a subscription may spend in the tick of its own request. This must be enough for the
   * first batch. If a thousand clients reconnect at the same time, those whose requests arrive
   * after `tickUnits` have been spent must wait.
   */
  readonly requestUnits: number;
}

/** Determines when ticks run. */
export interface Ticks {
  /** Runs the tick before any other work waiting for the event loop. */
  soon(tick: () => void): void;
  /** Runs the tick after all work already waiting for the event loop. */
  later(tick: () => void): void;
}

/** Returns the implementation that runs ticks on the event loop. */
export function ticksOf(clock: Clock): Ticks {
  return {
    soon: (tick) => queueMicrotask(tick),
    later: (tick) => void clock.yield().then(tick),
  };
}

/** The default pace: a few milliseconds per tick. */
export const PACE: Pace = { tickUnits: 2048, sliceUnits: 2048, requestUnits: 16_384 };

/**
 * A tick that spends more units than this counts as long. After a long tick, the event loop serves
 * its sockets first.
 */
const REST_UNITS = 256;

/** Work that the scheduler advances step by step. */
export interface Advancing {
  /** Does some of the work. Returns true if nothing is left to do. */
  advance(budget: TickBudget): boolean;
}

export interface ScheduledFeed extends Advancing {
  /** Whether the feed serves a slow query. Other queries do not wait for such a feed. */
  readonly isSlow: boolean;
  /**
   * Reviews groups. Returns true if all have been reviewed; false if the budget was used up first.
   */
  review(budget: TickBudget): boolean;
  takeWaiting(): Iterable<Advancing>;
  /** Ends all subscriptions of the feed after a bug in it. */
  fail(error: unknown): void;
}

export class Scheduler {
  readonly #ticks: Ticks;
  readonly #pace: Pace;
  readonly #onBug: OnBug;
  readonly #feeds = new Set<ScheduledFeed>();
  readonly #slowFeeds = new Set<ScheduledFeed>();
  /** Feeds whose review is pending or in progress. */
  readonly #reviewed = new Set<ScheduledFeed>();
  readonly #tasks = new Set<Advancing>();
  #isScheduled = false;
  /** The unused part of this tick's request budget; undefined before the first request. */
  #requests: TickBudget | undefined;
  readonly #tick = (): void => {
    this.#isScheduled = false;
    const { tickUnits } = this.#pace;
    const isShared = this.#feeds.size > 0 && this.#reviewed.size > 0;
    const units = isShared ? tickUnits / 2 : tickUnits;
    const spent =
      this.#advanceFeeds(this.#feeds, units) +
      this.#advanceFeeds(this.#slowFeeds, units / 2) +
      this.#advanceReviews(units) +
      this.#advanceTasks();
    // After a long tick, requests for another tick are collected until the sockets have been
    // polled, so that they share one tick.
    const isLong = spent > REST_UNITS;
    const hasFeeds = this.#feeds.size > 0 || this.#slowFeeds.size > 0;
    const hasMore = hasFeeds || this.#reviewed.size > 0 || this.#tasks.size > 0;
    if (isLong || hasMore) this.#scheduleLater();
  };

  constructor(ticks: Ticks, pace: Pace, onBug: OnBug) {
    this.#ticks = ticks;
    this.#pace = pace;
    this.#onBug = onBug;
  }

  /** Schedules a feed that has changes to read. */
  mark(feed: ScheduledFeed): void {
    if (this.#reviewed.has(feed)) return;
    this.#due(feed).add(feed);
    this.#scheduleSoon();
  }

  /** Schedules the review of a feed. The feed is read only after its review. */
  review(feed: ScheduledFeed): void {
    this.#due(feed).delete(feed);
    this.#reviewed.add(feed);
    this.#scheduleSoon();
  }

  /** Schedules a task. */
  enqueue(task: Advancing): void {
    this.#tasks.add(task);
    this.#scheduleSoon();
  }

  /** Advances a task now, and again later for as long as it has more to do. */
  run(task: Advancing): void {
    if (this.#tasks.has(task)) return;
    const requests = this.#requestsOfTick();
    const mayAdvance = this.#pace.requestUnits - requests.left < this.#pace.tickUnits;
    if (mayAdvance && task.advance(requests)) return;
    this.#tasks.add(task);
    this.#scheduleLater();
  }

  forget(task: Advancing): void {
    this.#tasks.delete(task);
  }

  #requestsOfTick(): TickBudget {
    if (this.#requests === undefined) {
      this.#requests = new TickBudget(this.#pace.requestUnits);
      this.#ticks.later(() => {
        this.#requests = undefined;
      });
    }
    return this.#requests;
  }

  /** Returns the queue for a feed that has changes to read. */
  #due(feed: ScheduledFeed): Set<ScheduledFeed> {
    return feed.isSlow ? this.#slowFeeds : this.#feeds;
  }

  /**
   * Lets feeds read changes until a tick's budget is spent.
   * @returns The number of units spent.
   */
  #advanceFeeds(due: Set<ScheduledFeed>, units: number): number {
    const budget = new TickBudget(units);
    for (const feed of due) {
      // The feed is removed first, so that it goes to the end of the queue if it has more to do.
      due.delete(feed);
      const isDone = this.#ofFeed(feed, () => feed.advance(budget));
      if (isDone === true) for (const task of feed.takeWaiting()) this.#tasks.add(task);
      else if (isDone === false) due.add(feed);
      if (budget.isSpent) break;
    }
    return units - budget.left;
  }

  /**
   * Lets feeds review their subscriptions until a tick's budget is spent.
   * @returns The number of units spent.
   */
  #advanceReviews(units: number): number {
    const budget = new TickBudget(units);
    for (const feed of this.#reviewed) {
      this.#reviewed.delete(feed);
      const isDone = this.#ofFeed(feed, () => feed.review(budget));
      if (isDone === true) this.#due(feed).add(feed);
      else if (isDone === false) this.#reviewed.add(feed);
      if (budget.isSpent) break;
    }
    return units - budget.left;
  }

  /** Runs part of a feed's work. Returns its result; undefined if a bug has ended the feed. */
  #ofFeed(feed: ScheduledFeed, work: () => boolean): boolean | undefined {
    try {
      return work();
    } catch (error) {
      this.#onBug(error, "a tick of live queries");
      feed.fail(error);
      return undefined;
    }
  }

  /**
   * Runs waiting tasks until a tick's budget is spent.
   * @returns The number of units spent.
   */
  #advanceTasks(): number {
    const { tickUnits, sliceUnits } = this.#pace;
    let left = tickUnits;
    for (const task of this.#tasks) {
      this.#tasks.delete(task);
      const budget = new TickBudget(sliceUnits);
      try {
        if (!task.advance(budget)) this.#tasks.add(task);
      } catch (error) {
        this.#onBug(error, "a tick of a subscription");
      }
      left -= sliceUnits - budget.left;
      if (left <= 0) break;
    }
    return tickUnits - left;
  }

  #scheduleSoon(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#ticks.soon(this.#tick);
  }

  #scheduleLater(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#ticks.later(this.#tick);
  }
}
