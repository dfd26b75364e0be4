/**
 * Tests the parts of a segment that locate rows, each separately: sorted keys, filter, hash, bits,
 * groups, and the cache of decoded chunks.
 */
import { expect, test } from "bun:test";
import { AssertionError } from "../../../src/base/assert.ts";
import { ROW_GROUP_ROWS_MAX } from "../../../src/base/limits.ts";
import { ChunkCache } from "../../../src/storage/segment/chunk_cache.ts";
import { packBits, unpackBits } from "../../../src/storage/segment/encodings.ts";
import { groupEnd } from "../../../src/storage/segment/group_size.ts";
import { hashKeys, hashOfKey } from "../../../src/storage/segment/key_hash.ts";
import {
  buildFilter,
  filterHas,
  findHash,
  sortKeys,
} from "../../../src/storage/segment/key_places.ts";
import { type Row, type Value, type Vector, vectorFromValues } from "../../../src/types/mod.ts";
import { randomValues, randomVector, SCALAR_TYPES } from "../../support/random_segment.ts";
import { SeededRandom } from "../../support/seeded_random.ts";

function finish<T>(steps: Generator<void, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Returns hashes over the whole range, some of which are equal. */
function randomHashes(random: SeededRandom, count: number): Uint32Array {
  return Uint32Array.from({ length: count }, () =>
    random.chance(0.1) ? random.below(3) * 2_147_483_647 : random.u32(),
  );
}

test("sortKeys sorts by hash, and equal hashes by descending row", () => {
  const random = new SeededRandom(1);
  for (const count of [1, 2, 100, 70_000]) {
    const hashes = randomHashes(random, count);
    const expected = [...hashes.entries()].toSorted(
      ([leftRow, left], [rightRow, right]) => left - right || rightRow - leftRow,
    );
    const sorted = finish(sortKeys(hashes));
    expect([...sorted.rows]).toEqual(expected.map(([row]) => row));
    expect([...sorted.hashes]).toEqual(expected.map(([, hash]) => hash));
  }
});

test("findHash finds the first of equal hashes, and reports what it reads", () => {
  const random = new SeededRandom(2);
  for (const count of [1, 2, 5, 300, 5000]) {
    const uniform = randomHashes(random, count);
    // These hashes are far from evenly distributed, so every guess at a position is wrong.
    const crowded = uniform.map((hash) => 4_000_000_000 + (hash % 1000));
    for (const hashes of [uniform.toSorted(), crowded.toSorted()]) {
      const isTouched = new Uint8Array(count);
      const pages = {
        touch: (byteIndex: number) => {
          expect(byteIndex % 4 === 0 && byteIndex / 4 < count).toBe(true);
          isTouched[byteIndex / 4] = 1;
        },
      };
      for (let question = 0; question < 300; question += 1) {
        const wanted = random.chance(0.7) ? random.pick([...hashes]) : random.u32();
        const found = findHash(hashes, wanted, pages);
        expect(found).toBe(hashes.indexOf(wanted));
        if (found !== -1) expect(isTouched[found]).toBe(1);
      }
    }
  }
});

test("the filter contains every key, and reports few others", () => {
  const random = new SeededRandom(3);
  for (const count of [1, 50, 20_000]) {
    const hashes = randomHashes(random, count).toSorted();
    const filter = finish(buildFilter(hashes));
    for (const hash of hashes) expect(filterHas(filter, hash)).toBe(true);
    const isThere = new Set(hashes);
    let wrong = 0;
    for (let question = 0; question < 20_000; question += 1) {
      const hash = random.u32();
      if (!isThere.has(hash) && filterHas(filter, hash)) wrong += 1;
    }
    expect(wrong).toBeLessThan(20_000 * 0.03);
  }
});

test("hashKeys and hashOfKey return the same for every type and kind of vector", () => {
  const random = new SeededRandom(4);
  for (const type of SCALAR_TYPES) {
    if (type.kind === "embedding") continue;
    const values = randomValues(random, type, { shape: "any", nulls: "none", count: 50 });
    const keyVectors = [
      randomVector(random, type, values),
      vectorFromValues(
        { kind: "int" },
        Array.from({ length: 50 }, (_, row) => row),
      ),
    ];
    const owners = Float64Array.from({ length: 50 }, () => random.below(2 ** 40));
    const hashes = finish(hashKeys(owners, keyVectors));
    const keys: Row[] = values.map((value, row) => [value, row]);
    expect([...hashes]).toEqual(keys.map((key, row) => hashOfKey(owners[row] ?? 0, key)));
    expect(new Set(hashes).size).toBeGreaterThan(48);
  }
});

test("hashOfKey is the same for a string in every internal representation of the runtime", () => {
  const narrow = "caf\u00e9";
  const wide = `${narrow}\u{1f30a}`.slice(0, 4);
  expect(hashOfKey(1, [narrow])).toBe(hashOfKey(1, [wide]));
  const keys: Row[] = [[""], ["a", ""], ["", "a"], [0], [1], [true], ["1"]];
  expect(new Set(keys.map((key) => hashOfKey(1, key))).size).toBe(6);
  expect(() => hashOfKey(1, [null])).toThrow(AssertionError);
});

test("unpackBits returns what packBits was given, for every range", () => {
  const random = new SeededRandom(5);
  for (const count of [0, 1, 7, 8, 9, 63, 64, 65]) {
    const flags = Uint8Array.from({ length: count }, () => random.below(2));
    const bits = packBits(flags);
    for (let start = 0; start <= count; start += 1) {
      for (let end = start; end <= count; end += 1) {
        expect(unpackBits(bits, start, end)).toEqual(flags.slice(start, end));
      }
    }
  }
});

test("groupEnd ends at the limit for rows, at the limit for bytes, or after a single row that is too large", () => {
  const numbers: Vector = vectorFromValues({ kind: "int" }, [1, 2, 3]);
  expect(groupEnd([numbers], 0, 3)).toBe(3);
  expect(groupEnd([numbers], 2, 3)).toBe(3);
  const count = ROW_GROUP_ROWS_MAX + 1;
  const many: Vector = { kind: "const", length: count, value: null };
  expect(groupEnd([many], 0, count)).toBe(ROW_GROUP_ROWS_MAX);
  expect(groupEnd([many], ROW_GROUP_ROWS_MAX, count)).toBe(count);
  const blob = new Uint8Array(40 * 1024 * 1024);
  const blobs: Value[] = [blob, blob, blob];
  expect(groupEnd([{ kind: "any", length: 3, values: blobs }], 0, 3)).toBe(1);
  expect(groupEnd([{ kind: "const", length: 9, value: blob }], 0, 9)).toBe(1);
  const codes = new Uint8Array(3);
  const dictionary: Vector = { kind: "dict", length: 3, codes, values: [blob], nulls: undefined };
  expect(groupEnd([dictionary], 1, 3)).toBe(2);
});

test("ChunkCache keeps the most recently used chunks within its limit, and can forget a reader", () => {
  const cache = new ChunkCache(4000);
  const vector: Vector = vectorFromValues(
    { kind: "double" },
    Array.from({ length: 100 }, () => 0.5),
  );
  const one = cache.addReader();
  const two = cache.addReader();
  for (let chunk = 0; chunk < 5; chunk += 1) cache.put(one, chunk, vector);
  expect(cache.byteCount).toBe(3600);
  expect(cache.get(one, 0)).toBeUndefined();
  expect(cache.get(one, 1)).toBe(vector);
  cache.put(two, 1, vector);
  expect(cache.get(one, 2)).toBeUndefined();
  expect(cache.get(one, 1)).toBe(vector);
  cache.removeReader(one, 5);
  expect(cache.get(one, 1)).toBeUndefined();
  expect(cache.get(two, 1)).toBe(vector);
  expect(cache.byteCount).toBe(900);
  const large: Vector = vectorFromValues(
    { kind: "double" },
    Array.from({ length: 400 }, () => 0.5),
  );
  cache.put(two, 2, large);
  expect(cache.get(two, 2)).toBeUndefined();
});
