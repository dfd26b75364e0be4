/**
 * Verifies that a join returns the rows that it reads ahead once and in order, with only a few of
 * them in memory at a time. The tests use an operator that records when its batches are read.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../../src/base/errors.ts";
import { type ExecutionContext } from "../../../../src/sql/execute/context/execution_context.ts";
import type { Operator } from "../../../../src/sql/execute/context/operator.ts";
import { SLICE_OVER } from "../../../../src/sql/execute/context/time_slice.ts";
import { RuntimeFilterKeys } from "../../../../src/sql/execute/join/runtime_filter.ts";
import { MemoryBudget } from "../../../../src/sql/execute/materialised/memory_budget.ts";
import { type Batch, BIGINT, valueAt, vectorFromValues } from "../../../../src/types/mod.ts";

function batchOf(from: number, rowCount: number): Batch {
  const values = Array.from({ length: rowCount }, (_, i) => from + i);
  return { rowCount, columns: [vectorFromValues(BIGINT, values)] };
}

function inputOf(batches: readonly (Batch | Error)[]): Operator {
  let index = 0;
  return {
    next() {
      const batch = batches[index];
      index += 1;
      if (batch instanceof Error) throw batch;
      return batch;
    },
    close() {
      index = batches.length;
    },
  };
}

function notedOf(batches: readonly (Batch | Error)[]): {
  noted: RuntimeFilterKeys;
  memory: MemoryBudget;
} {
  const memory = new MemoryBudget(1_000_000);
  const noted = new RuntimeFilterKeys({
    context: {
      memory,
      checkTime: () => undefined,
    } as Partial<ExecutionContext> as ExecutionContext,
    input: inputOf(batches),
    types: [BIGINT],
    keys: [({ columns: [column] }) => column ?? vectorFromValues(BIGINT, [])],
    parts: [0],
    partTypes: [BIGINT],
    areFew: (keyCount) => keyCount < 100,
  });
  return { noted, memory };
}

function valuesOf(batch: Batch | undefined): unknown[] {
  const [column] = batch?.columns ?? [];
  return Array.from({ length: batch?.rowCount ?? 0 }, (_, row) =>
    column === undefined ? null : valueAt(column, row),
  );
}

test("a few rows that were read ahead are returned once and in order, and then release their memory", () => {
  const { memory, noted } = notedOf([batchOf(1, 2), batchOf(3, 1), batchOf(3, 2)]);
  let takenCount = 0;
  while (noted.takeAhead()) takenCount += 1;
  expect(takenCount).toBe(4);
  expect(noted.keys).toEqual([[1], [2], [3], [4]]);
  expect(memory.bytes).toBeGreaterThan(0);
  const found: unknown[] = [];
  for (let batch = noted.next(); batch !== undefined; batch = noted.next()) {
    found.push(...valuesOf(batch));
  }
  expect(found).toEqual([1, 2, 3, 3, 4]);
  expect(memory.bytes).toBe(0);
});

test("a batch with many keys is passed on unchanged, and no other is read ahead", () => {
  const many = batchOf(0, 4096);
  const { memory, noted } = notedOf([many, batchOf(9000, 1)]);
  expect(noted.takeAhead()).toBe(true);
  expect(noted.takeAhead()).toBe(false);
  expect(memory.bytes).toBe(0);
  expect(noted.next()).toBe(many);
  expect(valuesOf(noted.next())).toEqual([9000]);
  expect(noted.next()).toBeUndefined();
  expect(noted.keys).toBeUndefined();
});

test("a failure is raised only when its side is read", () => {
  const broken = new DatabaseError("DIVISION_BY_ZERO", "broken");
  const { noted } = notedOf([batchOf(1, 1), broken]);
  while (noted.takeAhead()) expect(noted.keys).toBeUndefined();
  expect(noted.keys).toBeUndefined();
  expect(valuesOf(noted.next())).toEqual([1]);
  expect(() => noted.next()).toThrow(broken);
});

test.each([SLICE_OVER, new DatabaseError("CANCELLED", "killed"), new TypeError("a bug")])(
  "an end of the statement waits for nobody: %s",
  (end) => {
    const { noted } = notedOf([batchOf(1, 1), end]);
    expect(noted.takeAhead()).toBe(true);
    expect(() => noted.takeAhead()).toThrow(end);
  },
);

test("keys are also recorded as rows pass", () => {
  const { noted } = notedOf([batchOf(5, 2)]);
  expect(valuesOf(noted.next())).toEqual([5, 6]);
  expect(noted.keys).toBeUndefined();
  expect(noted.next()).toBeUndefined();
  expect(noted.keys).toEqual([[5], [6]]);
});
