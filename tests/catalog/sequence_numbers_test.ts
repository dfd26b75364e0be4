/**
 * Tests sequence numbers: no number is issued twice, even after a crash or a restore, and a bulk
 * load reserves numbers only a few times.
 */
import { expect, test } from "bun:test";
import { type CountedSequence, type SequenceMark, SequenceNumbers } from "../../src/catalog/mod.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { SeededRandom, seedOf } from "../support/seeded_random.ts";
import { freshPath, killedCopy, openCatalog } from "./catalog_fixture.ts";

const SEQUENCE: CountedSequence = {
  sequenceId: 1,
  namespace: "app",
  name: "s",
  start: "1",
  increment: "1",
  minimum: "1",
  maximum: "9223372036854775807",
  cycles: false,
  cache: 1,
};

/** Stores the marks of sequences, and counts how many times they are written. */
class Disk {
  marks = new Map<number, SequenceMark>();
  writeCount = 0;

  open(clock = new ManualClock()): SequenceNumbers {
    return new SequenceNumbers({
      clock,
      known: [...this.marks.values()],
      marks: {
        store: (marks) => {
          this.writeCount += 1;
          for (const mark of marks) this.marks.set(mark.sequenceId, mark);
        },
      },
    });
  }
}

test("SequenceNumbers.next never repeats a number across crashes and orderly shutdowns", () => {
  const random = new SeededRandom(seedOf(1));
  const disk = new Disk();
  let last = 0;
  for (let life = 0; life < 200; life += 1) {
    const numbers = disk.open();
    for (let taken = random.between(1, 100); taken > 0; taken -= 1) {
      const next = Number(numbers.next(SEQUENCE));
      expect(next).toBeGreaterThan(last);
      last = next;
    }
    if (!random.chance(0.5)) continue;
    numbers.giveBack([SEQUENCE]);
    expect(Number(disk.open().next(SEQUENCE))).toBe(last + 1);
    last += 1;
  }
});

test("SequenceNumbers reserves longer blocks while numbers are taken quickly", () => {
  const disk = new Disk();
  const clock = new ManualClock();
  const numbers = disk.open(clock);
  for (let taken = 0; taken < 100_000; taken += 1) numbers.next(SEQUENCE);
  expect(disk.writeCount).toBeLessThan(15);
  const { value = "0" } = disk.marks.get(1) ?? {};
  clock.advance(60_000);
  for (let rest = Number(value) - 100_000 + 1; rest > 0; rest -= 1) numbers.next(SEQUENCE);
  expect(Number(disk.marks.get(1)?.value) - Number(value)).toBe(32);
});

test("SequenceNumbers counts down, cycles, and stops at its limit", () => {
  const disk = new Disk();
  const down = { ...SEQUENCE, increment: "-3", minimum: "-5", maximum: "4", start: "4" };
  const numbers = disk.open();
  expect([1, 2, 3, 4].map(() => numbers.next(down))).toEqual([4, 1, -2, -5]);
  expect(() => numbers.next(down)).toThrow("the sequence has reached its minimum, -5");
  expect(numbers.next({ ...down, cycles: true })).toBe(4);
});

test("SequenceNumbers issues exact numbers up to the maximum of BIGINT", () => {
  const numbers = new Disk().open();
  numbers.set(SEQUENCE, 9_223_372_036_854_775_805n, true);
  expect([numbers.next(SEQUENCE), numbers.next(SEQUENCE)]).toEqual([
    9_223_372_036_854_775_806n,
    9_223_372_036_854_775_807n,
  ]);
  expect(() => numbers.next(SEQUENCE)).toThrow("maximum");
});

test("SequenceNumbers.takeBack issues numbers again unless others have taken numbers", () => {
  const disk = new Disk();
  const numbers = disk.open();
  numbers.next(SEQUENCE);
  const before = numbers.mark(SEQUENCE);
  for (let count = 0; count < 100; count += 1) numbers.next(SEQUENCE);
  const now = numbers.mark(SEQUENCE);
  numbers.takeBack(SEQUENCE, now, before);
  expect([2, 3]).toEqual([numbers.next(SEQUENCE), numbers.next(SEQUENCE)].map(Number));
  numbers.takeBack(SEQUENCE, now, before);
  expect(Number(numbers.next(SEQUENCE))).toBe(4);
  expect(Number(disk.open().next(SEQUENCE))).toBeGreaterThan(4);
  numbers.takeBack(SEQUENCE, numbers.mark(SEQUENCE), {
    sequenceId: 1,
    value: "1",
    isCalled: false,
  });
  expect(Number(numbers.next(SEQUENCE))).toBe(1);
});

const ENTRY = {
  ...SEQUENCE,
  namespace: "default",
  type: "bigint",
  createdBy: "root",
  createdAtMs: 5,
  updatedAtMs: 5,
} as const;

test("a killed server continues after the numbers that it issued", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  catalog.createSequence(ENTRY);
  for (const expected of [1, 2, 3]) expect(catalog.nextNumber(ENTRY)).toBe(expected);
  const copy = openCatalog(killedCopy(path));
  expect(Number(copy.nextNumber(ENTRY))).toBeGreaterThan(3);
  copy.close();
  catalog.close();
  const again = openCatalog(path);
  expect(again.nextNumber(ENTRY)).toBe(4);
  again.close();
});

test.each([
  ["the same sequence", 5, 71],
  ["another sequence of its id", 6, 11],
])(
  "a catalog whose former file contained %s continues with the right number",
  (_, createdAtMs, next) => {
    const path = freshPath();
    const catalog = openCatalog(path);
    catalog.createSequence(ENTRY);
    catalog.setNumber(ENTRY, 10, true);
    const mark = { sequenceId: 1, value: "70", isCalled: true };
    catalog.continueFrom({
      numbers: [],
      storages: [],
      serviceTokens: [],
      invitations: [],
      sequences: [{ createdAtMs, mark }],
    });
    catalog.close();
    const again = openCatalog(path);
    expect(again.nextNumber(ENTRY)).toBe(next);
    again.close();
  },
);

test("a catalog that replaces an unreadable one skips some numbers, but not the whole sequence", () => {
  const path = freshPath();
  const catalog = openCatalog(path);
  catalog.createSequence(ENTRY);
  const short = { ...ENTRY, sequenceId: 2, name: "short", maximum: "101" };
  catalog.createSequence(short);
  catalog.continueFrom(undefined);
  catalog.close();
  const again = openCatalog(path);
  expect(again.nextNumber(ENTRY)).toBe(1_000_002);
  expect(again.nextNumber(short)).toBe(27);
  again.close();
});
