/**
 * Verifies that a batch of changes may span several ticks: each group of followers then receives
 * exactly the parts that it has not received yet, each of them once.
 */
import { expect, test } from "bun:test";
import type { Seq } from "../../../src/base/seq.ts";
import { BatchReach } from "../../../src/live/change_feed/batch_reach.ts";
import { DueRows } from "../../../src/live/change_feed/predicate_index.ts";
import type { ChangeBatch } from "../../../src/storage/mod.ts";

const SEQS = [10, 20, 30, 40];

test("BatchReach.missingOf returns the batch itself for a group that has no part of it", () => {
  const batch = changeBatch();
  const reach = new BatchReach<string>();
  expect(reach.missingOf("a", batch, undefined)).toBe(batch);
  expect(reach.missingOf("a", batch, due(batch, [0, 1, 2, 3]))).toBe(batch);
  expect(seqsOf(reach.missingOf("a", batch, due(batch, [1, 3])))).toEqual([20, 40]);
});

test("BatchReach.missingOf omits what a group has, and is empty if the group has everything", () => {
  const batch = changeBatch();
  const reach = new BatchReach<string>();
  reach.note("a", seq(20));
  expect(seqsOf(reach.missingOf("a", batch, undefined))).toEqual([30, 40]);
  expect(seqsOf(reach.missingOf("a", batch, due(batch, [1, 3])))).toEqual([40]);
  expect(reach.missingOf("a", batch, due(batch, [0, 1]))).toBeUndefined();
  expect(seqsOf(reach.missingOf("b", batch, due(batch, [0, 1])))).toEqual([10, 20]);

  reach.note("a", seq(40));
  expect(reach.missingOf("a", batch, undefined)).toBeUndefined();
});

test("BatchReach.noteAtLeast never moves a group back", () => {
  const reach = new BatchReach<string>();
  reach.note("a", seq(30));
  reach.noteAtLeast("a", seq(20));
  expect(reach.of("a")).toBe(seq(30));
  reach.noteAtLeast("a", seq(40));
  expect(reach.of("a")).toBe(seq(40));
  reach.noteAtLeast("b", seq(20));
  expect(reach.of("b")).toBe(seq(20));
});

test("BatchReach.passed forgets groups that are not ahead of their feed", () => {
  const reach = new BatchReach<string>();
  reach.note("a", seq(30));
  reach.note("b", seq(31));
  reach.passed(seq(30));
  expect(reach.of("a")).toBeUndefined();
  expect(reach.of("b")).toBe(seq(31));

  reach.forget("b");
  expect(reach.of("b")).toBeUndefined();
});

/**
 * Returns the given rows as changes in which only the new version of the row satisfies a
 * condition.
 */
function due(batch: ChangeBatch, rows: readonly number[]): DueRows {
  const found = new DueRows(batch);
  for (const row of rows) found.add(row, 1);
  return found;
}

function seq(value: number): Seq {
  return value as Seq;
}

function seqsOf(batch: ChangeBatch | undefined): number[] | undefined {
  return batch === undefined ? undefined : [...batch.seqs];
}

function changeBatch(): ChangeBatch {
  const rowCount = SEQS.length;
  return {
    rowCount,
    seqs: Float64Array.from(SEQS),
    commitSeqs: Float64Array.from(SEQS),
    prevs: new Float64Array(rowCount),
    deleted: new Uint8Array(rowCount),
    hasOld: new Uint8Array(rowCount),
    columns: [],
    oldColumns: [],
  };
}
