/**
 * Verifies that the scheduler does a bounded amount of work between two socket checks, however
 * many clients make requests. The tests use tasks of one batch each, and control the ticks.
 */
import { expect, test } from "bun:test";
import { type ScheduledFeed, Scheduler } from "../../../src/live/scheduler/scheduler.ts";
import type { TickBudget } from "../../../src/live/scheduler/tick_budget.ts";
import { noBugs } from "../../support/no_bugs.ts";

const PACE = { tickUnits: 2000, sliceUnits: 2000, requestUnits: 16_000 };
const BATCH_UNITS = 1000;
const REVIEW_UNITS = 100;

/** A task that consists of a single batch. */
class BatchTask {
  isDone = false;

  advance(budget: TickBudget): boolean {
    budget.spend(BATCH_UNITS);
    this.isDone = true;
    return true;
  }
}

function pumpWithTurns(): {
  scheduler: Scheduler;
  /** Runs the work due before the next socket check. */
  giveSoon: () => void;
  /** Checks the sockets, and runs the remaining tasks. Returns how many tasks ran. */
  giveLater: () => number;
} {
  let soon: (() => void)[] = [];
  let later: (() => void)[] = [];
  const ticks = {
    soon: (tick: () => void) => void soon.push(tick),
    later: (tick: () => void) => void later.push(tick),
  };
  const giveSoon = (): void => {
    while (soon.length > 0) {
      const due = soon;
      soon = [];
      for (const tick of due) tick();
    }
  };
  const giveLater = (): number => {
    const due = later;
    later = [];
    for (const tick of due) tick();
    giveSoon();
    return due.length;
  };
  return { scheduler: new Scheduler(ticks, PACE, noBugs), giveSoon, giveLater };
}

function doneCount(tasks: readonly BatchTask[]): number {
  return tasks.filter(({ isDone }) => isDone).length;
}

test("a single request is served in its own tick", () => {
  const { scheduler } = pumpWithTurns();
  const task = new BatchTask();
  scheduler.run(task);
  expect(task.isDone).toBe(true);
});

test("requests between two checks of the sockets share a tick, and all of them are served in the end", () => {
  const { giveLater, giveSoon, scheduler } = pumpWithTurns();
  const tasks = Array.from({ length: 100 }, () => new BatchTask());
  for (const task of tasks) {
    scheduler.run(task);
    // Each frame is a separate event, after which the ticks of the highest priority run.
    giveSoon();
  }
  expect(doneCount(tasks)).toBe(2);

  for (let before = doneCount(tasks); before < tasks.length; before = doneCount(tasks)) {
    expect(giveLater()).toBeGreaterThan(0);
    expect(doneCount(tasks)).toBeGreaterThan(before);
    expect(doneCount(tasks)).toBeLessThanOrEqual(before + 2);
  }
});

test("a long tick is followed by a check of the sockets, and a short one is not", () => {
  const { giveLater, giveSoon, scheduler } = pumpWithTurns();
  let costs = 0;
  let advanced = 0;
  const feed: ScheduledFeed = {
    isSlow: false,
    advance(budget) {
      budget.spend(costs);
      advanced += 1;
      return true;
    },
    review: () => true,
    takeWaiting: () => [],
    fail() {},
  };
  for (const [cost, expected] of [
    [10, 3],
    [1000, 1],
  ] as const) {
    costs = cost;
    advanced = 0;
    for (let mark = 0; mark < 3; mark += 1) {
      scheduler.mark(feed);
      giveSoon();
    }
    expect(advanced, `ticks of ${cost} units`).toBe(expected);
    giveLater();
  }
  expect(advanced).toBe(2);
});

interface CountingOptions {
  readonly isSlow?: boolean;
  readonly reviews?: number;
  readonly readUnits?: number;
}

/** A feed that counts how often the scheduler asks it to read. */
class CountingFeed implements ScheduledFeed {
  readCount = 0;
  failCount = 0;
  reviewCount = 0;
  /** The number of ticks until the feed's review is complete. */
  reviewsLeft: number;
  readonly isSlow: boolean;
  readonly #readUnits: number;

  constructor({ isSlow = false, reviews = 0, readUnits = 1 }: CountingOptions) {
    this.isSlow = isSlow;
    this.reviewsLeft = reviews;
    this.#readUnits = readUnits;
  }

  advance(budget: TickBudget): boolean {
    expect(this.reviewsLeft, "reviews before it is read").toBe(0);
    budget.spend(this.#readUnits);
    this.readCount += 1;
    return true;
  }

  review(budget: TickBudget): boolean {
    while (this.reviewsLeft > 0) {
      if (budget.isSpent) return false;
      budget.spend(REVIEW_UNITS);
      this.reviewsLeft -= 1;
      this.reviewCount += 1;
    }
    return true;
  }

  fail(): void {
    this.failCount += 1;
  }

  takeWaiting(): [] {
    return [];
  }
}

test("a feed with changes is read alongside any number of reviews", () => {
  const { giveLater, giveSoon, scheduler } = pumpWithTurns();
  const reviewed = Array.from({ length: 1000 }, () => new CountingFeed({ reviews: 3 }));
  for (const feed of reviewed) scheduler.review(feed);
  giveSoon();
  // Feeds under review also receive changes, and keep their place in the queue.
  for (const feed of reviewed) scheduler.mark(feed);
  const quick = new CountingFeed({});
  for (let tick = 1; tick <= 5; tick += 1) {
    scheduler.mark(quick);
    giveLater();
    expect(quick.readCount).toBe(tick);
  }
  while (giveLater() > 0);
  for (const feed of reviewed) expect(feed).toMatchObject({ reviewCount: 3, readCount: 1 });
});

test("reviews continue while feeds use up their budget, and share the remaining time", () => {
  const { giveLater, scheduler } = pumpWithTurns();
  const busy = Array.from({ length: 10 }, () => new CountingFeed({ readUnits: PACE.tickUnits }));
  const reviewed = [200, 100].map((reviews) => new CountingFeed({ reviews }));
  for (const feed of reviewed) scheduler.review(feed);
  let ticks = 0;
  for (; reviewed.some(({ readCount }) => readCount === 0); ticks += 1) {
    for (const feed of busy) scheduler.mark(feed);
    giveLater();
  }
  expect(ticks).toBeLessThan((300 * REVIEW_UNITS) / (PACE.tickUnits / 2) + 15);
  expect(busy.reduce((sum, { readCount }) => sum + readCount, 0)).toBeGreaterThan(ticks - 5);
});

test("slow feeds run after the others, but get some time in each tick", () => {
  const { giveLater, giveSoon, scheduler } = pumpWithTurns();
  const slow = Array.from({ length: 100 }, () => {
    return new CountingFeed({ isSlow: true, readUnits: PACE.tickUnits });
  });
  const quick = new CountingFeed({});
  const busy = new CountingFeed({ readUnits: PACE.tickUnits });
  for (const feed of [...slow, quick]) scheduler.mark(feed);
  giveSoon();
  expect(quick.readCount).toBe(1);
  let ticks = 1;
  for (; slow.some(({ readCount }) => readCount === 0); ticks += 1) {
    for (const feed of [quick, busy]) scheduler.mark(feed);
    giveLater();
    expect(quick.readCount).toBe(ticks + 1);
  }
  expect(ticks).toBe(slow.length);
});
