/** Verifies that the times and ages of seqs are correct even if the clock jumps. */
import { expect, test } from "bun:test";
import { SEQ_EPOCH_MS, SEQ_ZERO, type Seq, SeqGenerator } from "../../src/base/seq.ts";
import { type SeqEra, SeqTimes } from "../../src/base/seq_times.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { SeededRandom } from "../support/seeded_random.ts";

const HOUR_MS = 3_600_000;
const START_MS = SEQ_EPOCH_MS + 1000 * HOUR_MS;
const TTL_MS = 60_000;

/** A generator of ids whose eras are saved as a catalog saves them. */
class World {
  readonly clock = new ManualClock(START_MS);
  readonly setBack: string[] = [];
  saved: readonly SeqEra[] = [];
  seqs: SeqGenerator = this.opened(SEQ_ZERO);

  opened(last: Seq): SeqGenerator {
    const times = new SeqTimes({
      eras: this.saved,
      save: (eras) => {
        this.saved = JSON.parse(JSON.stringify(eras)) as SeqEra[];
      },
    });
    const onSetBack = ({ fromMs, toMs }: { fromMs: number; toMs: number }): void => {
      this.setBack.push(`${(fromMs - START_MS) / 1000} to ${(toMs - START_MS) / 1000}`);
    };
    return new SeqGenerator({ clock: this.clock, nodeId: 0, nodeBits: 0, last, times, onSetBack });
  }

  /** Ends the simulated process, and starts a new process at the newest id on disk. */
  restart(): void {
    this.seqs = this.opened(this.seqs.last);
  }

  commit(): Seq {
    this.seqs.settle();
    return this.seqs.next();
  }

  isExpired(seq: Seq): boolean {
    return seq <= this.seqs.agedSeq(TTL_MS);
  }
}

test.each([
  ["at once", false],
  ["after a restart", true],
])("commits after a clock was ahead have their own time, %s", (_when, restarts) => {
  const world = new World();
  const before = world.commit();
  world.clock.advance(HOUR_MS);
  const ahead = world.commit();
  world.clock.setWall(START_MS + 1000);
  if (restarts) world.restart();
  const after = world.commit();
  expect(after).toBeGreaterThan(ahead);
  expect([before, ahead, after].map((seq) => world.seqs.msOf(seq) - START_MS)).toEqual([
    0,
    HOUR_MS,
    1000,
  ]);
  expect(world.setBack).toEqual(["3600 to 1"]);
  if (restarts) world.restart();
  // Rows that expired while the clock was ahead stay expired.
  expect([before, ahead, after].map((seq) => world.isExpired(seq))).toEqual([true, false, false]);
  world.clock.advance(TTL_MS - 1);
  const late = world.commit();
  expect([ahead, after, late].map((seq) => world.isExpired(seq))).toEqual([false, false, false]);
  world.clock.advance(1);
  expect([ahead, after, late].map((seq) => world.isExpired(seq))).toEqual([true, true, false]);
  expect(world.seqs.msOf(late)).toBe(world.clock.nowMs() - 1);
  expect(world.setBack).toHaveLength(1);
});

test("no row expires early after the clock was behind", () => {
  const world = new World();
  const before = world.commit();
  world.clock.setWall(START_MS - 1000 * HOUR_MS + 5000);
  world.restart();
  const behind = world.commit();
  world.clock.advance(TTL_MS / 2);
  world.clock.setWall(START_MS + TTL_MS / 2 + 1000);
  world.restart();
  const after = world.commit();
  expect([before, behind, after].map((seq) => world.isExpired(seq))).toEqual([false, false, false]);
  expect(world.seqs.msOf(after)).toBe(world.clock.nowMs());
  world.clock.setWall(START_MS + TTL_MS);
  expect(world.isExpired(before)).toBe(true);
  expect(world.isExpired(after)).toBe(false);
});

test("ids follow the clock again once the clock has passed them, and a correction by one second starts no era", () => {
  const world = new World();
  world.commit();
  world.clock.setWall(START_MS - 1000);
  world.commit();
  expect(world.saved).toEqual([]);
  world.clock.setWall(START_MS - 1001);
  world.commit();
  expect(world.saved).toHaveLength(1);
  world.clock.setWall(START_MS + HOUR_MS);
  expect(world.commit()).toBe((1001 * HOUR_MS * 4096) as Seq);
  expect(world.saved.map(({ aheadMs }) => aheadMs)).toEqual([1002, 0]);
});

test("an era is saved before its first id is issued, and an era without ids keeps its times", () => {
  const world = new World();
  world.clock.advance(HOUR_MS);
  world.commit();
  world.clock.setWall(START_MS);
  world.seqs.nowMs();
  expect(world.saved).toEqual([]);
  // Only a reader has observed this clock time. No id contains it.
  world.clock.setWall(START_MS + 3 * HOUR_MS);
  world.seqs.nowMs();
  world.clock.setWall(START_MS + 5000);
  world.seqs.settle();
  expect(world.saved.at(-1)).toMatchObject({ seenMs: START_MS + 3 * HOUR_MS });
  expect(world.seqs.msOf(world.seqs.next())).toBe(START_MS + 5000);
});

test("a failure to save an era is reported, and the next commit retries", () => {
  const clock = new ManualClock(START_MS);
  let isFull = true;
  let savedCount = 0;
  const times = new SeqTimes({
    eras: [],
    save() {
      if (isFull) throw new Error("full");
      savedCount += 1;
    },
  });
  const seqs = new SeqGenerator({ clock, nodeId: 0, nodeBits: 0, last: SEQ_ZERO, times });
  seqs.settle();
  seqs.next();
  clock.setWall(START_MS - HOUR_MS);
  expect(() => seqs.settle()).toThrow("full");
  isFull = false;
  seqs.settle();
  seqs.settle();
  expect(savedCount).toBe(1);
});

test("lastSeqUpTo finds the state of a moment in the newest era that had begun by then", () => {
  const world = new World();
  const first = world.commit();
  world.clock.advance(HOUR_MS);
  const ahead = world.commit();
  world.clock.setWall(START_MS + 1000);
  const after = world.commit();
  const upTo = (ms: number): number => world.seqs.lastSeqUpTo(START_MS + ms);
  expect(upTo(-1)).toBeLessThan(first);
  expect(upTo(500)).toBeGreaterThanOrEqual(first);
  expect(upTo(500)).toBeLessThan(ahead);
  expect(upTo(1000)).toBeGreaterThanOrEqual(after);
});

test("ids ascend, keep the time of their commit and stay expired, whatever the clock does", () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const random = new SeededRandom(seed);
    const world = new World();
    const issued: { seq: Seq; ms: number }[] = [];
    let bound = 0;
    for (let step = 0; step < 200; step += 1) {
      const kind = Math.floor(random.unit() * 12);
      if (kind === 0) world.clock.setWall(world.clock.nowMs() + random.unit() * 50 * HOUR_MS);
      else if (kind === 1) world.clock.setWall(world.clock.nowMs() - random.unit() * 50 * HOUR_MS);
      else if (kind === 2 && issued.length > 0) world.restart();
      else world.clock.advance(Math.floor(random.unit() * 20_000));
      world.clock.setWall(Math.floor(world.clock.nowMs()));
      if (random.unit() < 0.7) issued.push({ seq: world.commit(), ms: world.clock.nowMs() });
      const aged = world.seqs.agedSeq(TTL_MS);
      // A restart forgets a later time that only a reader has observed.
      if (kind !== 2) expect(aged, `seed ${seed}, step ${step}`).toBeGreaterThanOrEqual(bound);
      // The bound must be an id that has already been issued.
      bound = Math.min(aged, world.seqs.last);
      const newest = issued.at(-1);
      if (newest?.ms === world.clock.nowMs()) expect(aged).toBeLessThan(newest.seq);
    }
    for (const [index, { ms, seq }] of issued.entries()) {
      expect(seq).toBeGreaterThan(issued[index - 1]?.seq ?? 0);
      expect(Math.abs(world.seqs.msOf(seq) - ms), `seed ${seed}`).toBeLessThanOrEqual(1001);
    }
  }
});
