/**
 * Compares deletion vectors with a plain map, in memory and through their file, and tests that
 * damage to any byte is detected.
 */
import { expect, test } from "bun:test";
import { AssertionError } from "../../../src/base/assert.ts";
import { CorruptionError } from "../../../src/base/errors.ts";
import type { Seq } from "../../../src/base/seq.ts";
import { DeletionVector } from "../../../src/storage/deletions/deletion_vector.ts";
import { PreparedReplacements } from "../../../src/storage/deletions/prepared_replacements.ts";
import { SeededRandom, seedOf } from "../../support/seeded_random.ts";
import { amountOf } from "../../support/thoroughness.ts";

const PATH = "1.1.dv";

const QUESTIONS = amountOf({ usual: 6, thorough: 50 });

test("replace, revert and every query of a deletion vector agree with a map, before and after the file", () => {
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
        expect(each.highestSeq).toBeGreaterThanOrEqual(Math.max(0, ...model.values()));
        const found: [number, number][] = [];
        each.visitAll((row, replacement) => found.push([row, replacement]));
        expect(found).toEqual([...model].toSorted(([left], [right]) => left - right));
        for (let question = 0; question < QUESTIONS; question += 1) {
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
          expect(each.countReplaced(start, end, upTo)).toBe(marked);
          const reached = each.upTo(upTo).highestSeq;
          expect(reached).toBeWithin(
            Math.max(0, ...[...model.values()].filter((seq) => seq <= upTo)),
            upTo + 1,
          );
        }
      }
    }
  }
});

test("prepared replacements get their seqs and join existing ones, whether few or many", () => {
  const seed = seedOf(2);
  const random = new SeededRandom(seed);
  const rowCount = 20_000;
  for (const known of [0, 0.01, 0.4]) {
    for (const added of [0.001, 0.05, 0.6]) {
      const vector = new DeletionVector({ segmentId: 3, rowCount });
      const prepared = new PreparedReplacements();
      const expected: [number, number][] = [];
      const notes: [number, number][] = [];
      for (let row = 0; row < rowCount; row += 1) {
        const chance = random.unit();
        if (chance < known) vector.replace(row, row + 1);
        else if (chance < known + added) notes.push([row, notes.length * 3]);
        if (chance < known) expected.push([row, row + 1]);
        else if (chance < known + added) expected.push([row, 2 ** 50 + (notes.length - 1) * 3]);
      }
      // The rows are noted in random order, as by a search that follows a merge.
      for (const [row, offset] of notes.toSorted(() => random.unit() - 0.5)) {
        prepared.note(row, offset);
      }
      expect(prepared.some((row) => vector.replacedBy(row) !== 0)).toBe(false);
      prepared.begin((2 ** 50) as Seq);
      const most = 2 ** 50 + (notes.length - 1) * 3;
      expect(prepared.seqs).toEqual({ least: 2 ** 50, most });
      vector.replaceAll(prepared);
      vector.checkInvariants();
      const found: [number, number][] = [];
      vector.visitAll((row, seq) => found.push([row, seq]));
      expect(found, `seed ${seed}`).toEqual(expected);
    }
  }
});

test("prepared replacements do not include rows that another commit has replaced", () => {
  const vector = new DeletionVector({ segmentId: 3, rowCount: 10 });
  const prepared = new PreparedReplacements();
  prepared.note(4, 0);
  expect(() => prepared.note(4, 1)).toThrow(AssertionError);
  expect(() => prepared.seqs).toThrow(AssertionError);
  vector.replace(4, 7);
  expect(prepared.some((row) => vector.replacedBy(row) !== 0)).toBe(true);
  prepared.begin(100 as Seq);
  expect(() => vector.replaceAll(prepared)).toThrow(AssertionError);
});

test("a file contains the replacements up to a seq, whatever changes while it is written", () => {
  const rowCount = 100_000;
  const vector = new DeletionVector({ segmentId: 3, rowCount });
  const expected: [number, number][] = [];
  for (let row = 0; row < rowCount; row += row < 50_000 ? 2 : 700) {
    vector.replace(row, row % 3 === 0 ? 500 : 100);
    if (row % 3 !== 0) expected.push([row, 100]);
  }
  const random = new SeededRandom(seedOf(3));
  const steps = vector.encodeUpTo(499);
  let stepCount = 0;
  let step = steps.next();
  while (step.done !== true) {
    for (let change = 0; change < 2000; change += 1) {
      const row = random.below(rowCount);
      const seq = vector.replacedBy(row);
      if (seq === 0) vector.replace(row, 600 + change);
      else if (seq > 499) vector.revert(row);
    }
    stepCount += 1;
    step = steps.next();
  }
  expect(stepCount).toBeGreaterThan(4);
  const found: [number, number][] = [];
  DeletionVector.decode(step.value, PATH).visitAll((row, seq) => found.push([row, seq]));
  expect(found).toEqual(expected);
});

test("a row can be replaced once, and only a replaced row can be restored", () => {
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

test("decode throws CorruptionError for damage to any byte, and for truncation anywhere", () => {
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

test("visitSteps visits the same rows as visitAll, a bounded number per step", () => {
  const vector = new DeletionVector({ segmentId: 3, rowCount: 200_000 });
  for (let row = 0; row < 200_000; row += 3) vector.replace(row, 10 + row);
  const found: [number, number][] = [];
  const perStep: number[] = [];
  const steps = vector.visitSteps((row, seq) => found.push([row, seq]));
  for (const _ of steps) perStep.push(found.length - perStep.reduce((sum, each) => sum + each, 0));
  expect(perStep.length).toBeGreaterThan(5);
  expect(Math.max(...perStep)).toBeLessThan(20_000);
  const all: [number, number][] = [];
  vector.visitAll((row, seq) => all.push([row, seq]));
  expect(found).toEqual(all);
});
