/**
 * Deletion vectors against a plain map, in memory and through the file, and damaged at every byte.
 */
import { expect, test } from "bun:test";
import { AssertionError } from "../../src/base/assert.ts";
import { CorruptionError } from "../../src/base/errors.ts";
import { DeletionVector } from "../../src/storage/deletion_vector.ts";
import { SeededRandom, seedOf } from "../support/seeded_random.ts";

const PATH = "1.1.dv";

test("replace, revert and every question agree with a map, before and after the file", () => {
  const seed = seedOf(1);
  const random = new SeededRandom(seed);
  for (const rowCount of [1, 4095, 4096, 4097, 20_000]) {
    for (const density of [0.001, 0.05, 0.5, 1]) {
      const vector = new DeletionVector({ segmentId: 3, rowCount });
      const model = new Map<number, number>();
      const changes = Math.ceil(rowCount * density);
      for (let change = 0; change < changes; change += 1) {
        const row = random.below(rowCount);
        if (!model.has(row)) {
          const replacement = 1 + random.below(2 ** 30) * 2 ** 20;
          vector.replace(row, replacement);
          model.set(row, replacement);
        } else if (random.chance(0.5)) {
          vector.revert(row);
          model.delete(row);
        }
      }
      vector.checkInvariants();
      const decoded = DeletionVector.decode(vector.encode(), PATH);
      decoded.checkInvariants();
      expect(decoded.segmentId).toBe(3);
      expect(decoded.rowCount).toBe(rowCount);
      for (const each of [vector, decoded]) {
        expect(each.count).toBe(model.size);
        const found: [number, number][] = [];
        each.visitAll((row, replacement) => found.push([row, replacement]));
        expect(found).toEqual([...model].toSorted(([left], [right]) => left - right));
        for (let question = 0; question < 50; question += 1) {
          const start = random.below(rowCount);
          const end = random.between(start, Math.min(rowCount, start + 5000));
          const upTo = random.below(2 ** 30) * 2 ** 20;
          const rows = Array.from({ length: end - start }, (_, index) => start + index);
          const isReplaced = rows.map((row) => {
            const replacement = model.get(row);
            return replacement !== undefined && replacement <= upTo;
          });
          expect(each.replacedBy(start)).toBe(model.get(start) ?? 0);
          expect(each.hasReplaced(start, end, upTo), `seed ${seed}`).toBe(
            isReplaced.includes(true),
          );
          const flags = new Uint8Array(end - start);
          const marked = each.markReplaced(start, upTo, flags);
          expect([...flags]).toEqual(isReplaced.map(Number));
          expect(marked).toBe(isReplaced.filter(Boolean).length);
        }
      }
    }
  }
});

test("a row is replaced once, and only what is replaced is taken back", () => {
  const vector = new DeletionVector({ segmentId: 1, rowCount: 10 });
  vector.replace(3, 100);
  expect(() => vector.replace(3, 101)).toThrow(AssertionError);
  expect(() => vector.replace(10, 101)).toThrow(AssertionError);
  expect(() => vector.revert(4)).toThrow(AssertionError);
  vector.revert(3);
  expect(vector.replacedBy(3)).toBe(0);
  expect(vector.count).toBe(0);
  vector.replace(3, 102);
  expect(vector.replacedBy(3)).toBe(102);
});

test("decode throws CorruptionError whichever byte is damaged, and wherever the file is cut", () => {
  const vector = new DeletionVector({ segmentId: 9, rowCount: 5000 });
  for (let row = 0; row < 5000; row += 499) vector.replace(row, 2 ** 40 + row);
  const good = vector.encode();
  expect(good.length % 8).toBe(0);
  for (let offset = 0; offset < good.length; offset += 1) {
    const damaged = good.slice();
    damaged[offset] = (damaged[offset] ?? 0) ^ 0xff;
    expect(() => DeletionVector.decode(damaged, PATH), `byte ${offset}`).toThrow(CorruptionError);
    expect(() => DeletionVector.decode(good.subarray(0, offset), PATH)).toThrow(CorruptionError);
  }
});
