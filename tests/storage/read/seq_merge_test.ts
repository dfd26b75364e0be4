/**
 * Verifies that the rows of overlapping sources arrive exactly once and in ascending seq order,
 * whatever the size of their batches, and that a source is not read before it may have the next
 * row.
 */
import { expect, test } from "bun:test";
import { SeqMerge, type SeqSource } from "../../../src/storage/read/seq_merge.ts";
import { BIGINT, TEXT, type Vector, valuesOf, vectorFromValues } from "../../../src/types/mod.ts";
import { SeededRandom, seedOf } from "../../support/seeded_random.ts";

interface Rows {
  readonly rowCount: number;
  readonly seqs: Float64Array;
  readonly flags: Uint8Array;
  readonly texts: Vector;
}

/** A source that returns its seqs in batches, some of which are empty. */
class ListedSource implements SeqSource<Rows> {
  readonly minSeq: number;
  isRead = false;
  readonly #seqs: readonly number[];
  readonly #random: SeededRandom;
  #next = 0;

  constructor(seqs: readonly number[], random: SeededRandom) {
    this.#seqs = seqs;
    this.#random = random;
    this.minSeq = (seqs[0] ?? 1) - random.below(2);
  }

  next(limit: number): Rows | undefined {
    this.isRead = true;
    if (this.#next === this.#seqs.length) return undefined;
    const count = this.#random.chance(0.1) ? 0 : this.#random.between(1, limit);
    const seqs = this.#seqs.slice(this.#next, this.#next + count);
    this.#next += seqs.length;
    return {
      rowCount: seqs.length,
      seqs: Float64Array.from(seqs),
      flags: Uint8Array.from(seqs, (seq) => seq % 2),
      texts: vectorFromValues(
        TEXT,
        seqs.map((seq) => (seq % 3 === 0 ? null : `text ${seq}`)),
      ),
    };
  }
}

/** Returns sources among which the seqs from 1 to `count` are distributed. */
function randomSources(random: SeededRandom, count: number): ListedSource[] {
  const lists = Array.from({ length: random.between(1, 5) }, (): number[] => []);
  let last = 0;
  for (let seq = 1; seq <= count; seq += 1) {
    // Consecutive seqs come from the same source in some places, and from alternating sources in
    // others.
    if (random.chance(0.4)) last = random.below(lists.length);
    lists[last]?.push(seq);
  }
  return lists.map((seqs) => new ListedSource(seqs, random));
}

test("SeqMerge returns each row once, in ascending seq order and with its own values", () => {
  const first = seedOf(1);
  for (let seed = first; seed < first + 100; seed += 1) {
    const random = new SeededRandom(seed);
    const count = random.below(200);
    const merge = new SeqMerge(randomSources(random, count), ({ seqs }: Rows) => seqs);
    const found: unknown[] = [];
    const limit = random.pick([1, 2, 7, 64]);
    for (let merged = merge.next(limit); merged !== undefined; merged = merge.next(limit)) {
      expect(merged.rowCount).toBeLessThanOrEqual(limit);
      if (merged.rowCount === 0) continue;
      const texts = valuesOf(merged.column(TEXT, (rows) => rows.texts));
      const seqs = merged.floats((rows) => rows.seqs);
      const flags = merged.flags((rows) => rows.flags);
      for (const [row, seq] of seqs.entries()) found.push([seq, flags[row], texts[row] ?? null]);
    }
    const expected = Array.from({ length: count }, (_, index) => index + 1).map((seq) => [
      seq,
      seq % 2,
      seq % 3 === 0 ? null : `text ${seq}`,
    ]);
    expect(found, `seed ${seed}`).toEqual(expected);
  }
});

test("SeqMerge does not read a source before its first row may be the next one", () => {
  const random = new SeededRandom(1);
  const early = new ListedSource([1, 2, 3], random);
  const late = new ListedSource([10, 11], random);
  const merge = new SeqMerge([late, early], ({ seqs }: Rows) => seqs);
  let rowCount = 0;
  while (rowCount < 3) rowCount += merge.next(1)?.rowCount ?? 0;
  expect([early.isRead, late.isRead]).toEqual([true, false]);
  while (rowCount < 5) rowCount += merge.next(1)?.rowCount ?? 0;
  expect(merge.next(1)).toBeUndefined();
});

test("SeqMerge returns the rows of a single batch unchanged", () => {
  const rows: Rows = {
    rowCount: 2,
    seqs: Float64Array.of(4, 5),
    flags: Uint8Array.of(0, 1),
    texts: vectorFromValues(BIGINT, [4, 5]),
  };
  const batches = [rows];
  const source = { minSeq: 4, next: () => batches.pop() };
  const merged = new SeqMerge([source], ({ seqs }: Rows) => seqs).next(9);
  expect(merged?.floats(({ seqs }) => seqs).buffer).toBe(rows.seqs.buffer);
});
