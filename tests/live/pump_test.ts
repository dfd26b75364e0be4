/**
 * Goal: between two looks at the sockets the pump does a bounded amount, however many clients ask.
 * Method: tasks that each cost a batch, and turns that the test gives.
 */
import { expect, test } from "bun:test";
import type { Budget } from "../../src/live/budget.ts";
import { Pump, type PumpedFeed } from "../../src/live/pump.ts";
import { noBugs } from "../support/no_bugs.ts";

const PACE = { turnUnits: 2000, sliceUnits: 2000, requestUnits: 16_000 };
const BATCH_UNITS = 1000;
const REVIEW_UNITS = 100;

/** Done in one step of a batch. */
class BatchTask {
  isDone = false;

  advance(budget: Budget): boolean {
    budget.spend(BATCH_UNITS);
    this.isDone = true;
    return true;
  }
}

function pumpWithTurns(): {
  pump: Pump<BatchTask>;
  /** Gives the turns that come before the next look at the sockets. */
  giveSoon: () => void;
  /** Looks at the sockets, and gives the turns that come after. Returns how many. */
  giveLater: () => number;
} {
  let soon: (() => void)[] = [];
  let later: (() => void)[] = [];
  const turns = {
    soon: (turn: () => void) => void soon.push(turn),
    later: (turn: () => void) => void later.push(turn),
  };
  const giveSoon = (): void => {
    while (soon.length > 0) {
      const due = soon;
      soon = [];
      for (const turn of due) turn();
    }
  };
  const giveLater = (): number => {
    const due = later;
    later = [];
    for (const turn of due) turn();
    giveSoon();
    return due.length;
  };
  return { pump: new Pump<BatchTask>(turns, PACE, noBugs), giveSoon, giveLater };
}

function doneCount(tasks: readonly BatchTask[]): number {
  return tasks.filter(({ isDone }) => isDone).length;
}

test("a request alone is served in its own turn", () => {
  const { pump } = pumpWithTurns();
  const task = new BatchTask();
  pump.run(task);
  expect(task.isDone).toBe(true);
});

test("requests of one look at the sockets share a turn, and all are served in the end", () => {
  const { giveLater, giveSoon, pump } = pumpWithTurns();
  const tasks = Array.from({ length: 100 }, () => new BatchTask());
  for (const task of tasks) {
    pump.run(task);
    // Each frame is an event of its own, after which the soonest turns come.
    giveSoon();
  }
  expect(doneCount(tasks)).toBe(2);

  for (let before = doneCount(tasks); before < tasks.length; before = doneCount(tasks)) {
    expect(giveLater()).toBeGreaterThan(0);
    expect(doneCount(tasks)).toBeGreaterThan(before);
    expect(doneCount(tasks)).toBeLessThanOrEqual(before + 2);
  }
});

test("a long turn is followed by a look at the sockets, a short one is not", () => {
  const { giveLater, giveSoon, pump } = pumpWithTurns();
  let costs = 0;
  let advanced = 0;
  const feed: PumpedFeed<BatchTask> = {
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
      pump.mark(feed);
      giveSoon();
    }
    expect(advanced, `turns of ${cost} units`).toBe(expected);
    giveLater();
  }
  expect(advanced).toBe(2);
});

interface CountingOptions {
  readonly isSlow?: boolean;
  readonly reviews?: number;
  readonly readUnits?: number;
}

/** A feed that counts what it is asked for. */
class CountingFeed implements PumpedFeed<BatchTask> {
  readCount = 0;
  failCount = 0;
  reviewCount = 0;
  /** Turns that its review takes. */
  reviewsLeft: number;
  readonly isSlow: boolean;
  readonly #readUnits: number;

  constructor({ isSlow = false, reviews = 0, readUnits = 1 }: CountingOptions) {
    this.isSlow = isSlow;
    this.reviewsLeft = reviews;
    this.#readUnits = readUnits;
  }

  advance(budget: Budget): boolean {
    expect(this.reviewsLeft, "reviews before it is read").toBe(0);
    budget.spend(this.#readUnits);
    this.readCount += 1;
    return true;
  }

  review(budget: Budget): boolean {
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

test("a feed that has changed is read beside the reviews of others, however many those are", () => {
  const { giveLater, giveSoon, pump } = pumpWithTurns();
  const reviewed = Array.from({ length: 1000 }, () => new CountingFeed({ reviews: 3 }));
  for (const feed of reviewed) pump.review(feed);
  giveSoon();
  // Those under review change, too, and stay where they are.
  for (const feed of reviewed) pump.mark(feed);
  const quick = new CountingFeed({});
  for (let turn = 1; turn <= 5; turn += 1) {
    pump.mark(quick);
    giveLater();
    expect(quick.readCount).toBe(turn);
  }
  while (giveLater() > 0);
  for (const feed of reviewed) expect(feed).toMatchObject({ reviewCount: 3, readCount: 1 });
});

test("reviews go on while feeds use up all that they may, and share it among themselves", () => {
  const { giveLater, pump } = pumpWithTurns();
  const busy = Array.from({ length: 10 }, () => new CountingFeed({ readUnits: PACE.turnUnits }));
  const reviewed = [200, 100].map((reviews) => new CountingFeed({ reviews }));
  for (const feed of reviewed) pump.review(feed);
  let turns = 0;
  for (; reviewed.some(({ readCount }) => readCount === 0); turns += 1) {
    for (const feed of busy) pump.mark(feed);
    giveLater();
  }
  expect(turns).toBeLessThan((300 * REVIEW_UNITS) / (PACE.turnUnits / 2) + 15);
  expect(busy.reduce((sum, { readCount }) => sum + readCount, 0)).toBeGreaterThan(turns - 5);
});

test("slow feeds have their turns behind the others, and have some in each", () => {
  const { giveLater, giveSoon, pump } = pumpWithTurns();
  const slow = Array.from({ length: 100 }, () => {
    return new CountingFeed({ isSlow: true, readUnits: PACE.turnUnits });
  });
  const quick = new CountingFeed({});
  const busy = new CountingFeed({ readUnits: PACE.turnUnits });
  for (const feed of [...slow, quick]) pump.mark(feed);
  giveSoon();
  expect(quick.readCount).toBe(1);
  let turns = 1;
  for (; slow.some(({ readCount }) => readCount === 0); turns += 1) {
    for (const feed of [quick, busy]) pump.mark(feed);
    giveLater();
    expect(quick.readCount).toBe(turns + 1);
  }
  expect(turns).toBe(slow.length);
});
