/**
 * Compares the map from keys to rows with a Map, for numbers in every form, other keys, and
 * removed keys.
 */
import { expect, test } from "bun:test";

import { KeyRows } from "../../../src/storage/memtable/key_rows.ts";
import { cpuMs } from "../../support/cpu_time.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { amountOf } from "../../support/thoroughness.ts";

type Key = Parameters<KeyRows["set"]>[0];

function entriesOf(rows: KeyRows): [Key, number][] {
  const entries: [Key, number][] = [];
  rows.visit((key, row) => entries.push([key, row]));
  return entries;
}

function sortedEntries(entries: Iterable<[Key, number]>): [Key, number][] {
  return [...entries].toSorted(([, left], [, right]) => left - right);
}

const KEYS: readonly (readonly [string, (n: number) => Key])[] = [
  ["small whole numbers", (n) => n - 500],
  ["whole numbers with equal low bits", (n) => n * 2 ** 40],
  ["whole numbers near 2^53", (n) => Number.MAX_SAFE_INTEGER - n],
  ["fractions", (n) => n / 1024 - 0.3],
  ["texts", (n) => `k${n}`],
  ["both", (n) => (n % 2 === 0 ? n : `k${n}`)],
];

test.each(KEYS)("KeyRows keeps the newest row of %s", (_, keyOf) => {
  const random = new SeededRandom(7);
  const rows = new KeyRows();
  const model = new Map<Key, number>();
  for (let row = 0; row < 5000; row += 1) {
    const key = keyOf(Math.floor(random.unit() * 1000));
    const chance = random.unit();
    if (chance < 0.2) {
      rows.forget(key);
      model.delete(key);
    } else if (chance < 0.8) {
      rows.set(key, row);
      model.set(key, row);
    }
    expect(rows.get(key)).toBe(model.get(key));
  }
  for (let n = 0; n < 1100; n += 1) expect(rows.get(keyOf(n))).toBe(model.get(keyOf(n)));
  expect(sortedEntries(entriesOf(rows))).toEqual(sortedEntries(model));
});

const KEY_COUNT = amountOf({ usual: 20_000, thorough: 60_000 });

test.each(KEYS)("KeyRows keeps many rows of %s, and forgets some", (_, keyOf) => {
  const random = new SeededRandom(11);
  const rows = new KeyRows();
  const model = new Map<Key, number>();
  for (let row = 0; row < 1.5 * KEY_COUNT; row += 1) {
    const key = keyOf(Math.floor(random.unit() * KEY_COUNT));
    if (random.unit() < 0.1) {
      rows.forget(key);
      model.delete(key);
    } else {
      rows.set(key, row);
      model.set(key, row);
    }
  }
  for (let n = 0; n < KEY_COUNT + 100; n += 1) {
    if (rows.get(keyOf(n)) !== model.get(keyOf(n))) expect(n).toBe(-1);
  }
  expect(sortedEntries(entriesOf(rows))).toEqual(sortedEntries(model));
});

test("KeyRows keeps ascending keys, and those in between", () => {
  const rows = new KeyRows();
  for (let n = 0; n < 1000; n += 1) rows.set(2 * n, n);
  for (let n = 999; n >= 0; n -= 1) rows.set(2 * n + 1, 1000 + n);
  for (let n = 0; n < 1000; n += 3) rows.set(2 * n, 2000 + n);
  rows.forget(1998);
  rows.set(1998, 3000);
  rows.set(2001, 3001);
  const expected = (key: number): number => {
    if (key === 1998) return 3000;
    if (key % 2 === 1) return 1000 + (key - 1) / 2;
    return key % 6 === 0 ? 2000 + key / 2 : key / 2;
  };
  for (let key = 0; key < 2000; key += 1) expect(rows.get(key)).toBe(expected(key));
  expect([rows.get(2000), rows.get(2001), rows.get(0.5), rows.get(-1)]).toEqual([
    undefined,
    3001,
    undefined,
    undefined,
  ]);
  expect(entriesOf(rows)).toHaveLength(2001);
});

test("KeyRows treats equal numbers of different forms as one key", () => {
  const rows = new KeyRows();
  rows.set(0, 1);
  rows.set(-0, 2);
  rows.set(Number.NaN, 3);
  rows.set(Number.NaN, 4);
  rows.set(Number.POSITIVE_INFINITY, 5);
  expect([0, Number.NaN, Number.POSITIVE_INFINITY].map((key) => rows.get(key))).toEqual([2, 4, 5]);
  expect(entriesOf(rows)).toHaveLength(3);
});

test("KeyRows has no key at first, and none again once the only one is forgotten", () => {
  const rows = new KeyRows();
  expect(rows.get(1)).toBeUndefined();
  rows.forget(1);
  rows.set(1, 0);
  rows.forget(1);
  expect(rows.get(1)).toBeUndefined();
  expect(entriesOf(rows)).toEqual([]);
});

test("KeyRows finds keys that were crafted to share a hash as fast as others", () => {
  // Without a random seed for the hash, this test would take a second or more.
  const keyCount = 40_000;
  const view = new DataView(new ArrayBuffer(8));
  const keys = Array.from({ length: keyCount }, (_, i) => {
    const high = 0x43300000 + keyCount - i;
    view.setInt32(4, high, true);
    view.setInt32(0, 0x777 ^ Math.imul(high, 0x85ebca6b), true);
    return view.getFloat64(0, true);
  });
  expect(keys.every(Number.isSafeInteger)).toBe(true);
  const rows = new KeyRows();
  const took = cpuMs(() => {
    for (const [row, key] of keys.entries()) rows.set(key, row);
  });
  expect(rows.get(keys[keyCount - 1] ?? 0)).toBe(keyCount - 1);
  expect(took).toBeLessThan(400);
});
