/**
 * Goal: whatever the size of flushes, a table has few segments, and large ones are copied few times.
 */
import { expect, test } from "bun:test";
import { segmentsToMerge } from "../../src/storage/merge_segments.ts";
import type { OpenSegment } from "../../src/storage/open_segment.ts";
import type { StoredTable } from "../../src/storage/table.ts";

const ROWS = 50_000_000;
const MERGED_ROWS_MAX = 4 * 1024 * 1024;

/** What the choice looks at, of segments of so many rows. */
function tableOf(rowCounts: readonly number[]): StoredTable {
  const segments = rowCounts.map((rowCount) => ({ entry: { rowCount, quarantined: false } }));
  return { segments } as unknown as StoredTable;
}

function chosen(rowCounts: readonly number[]): readonly number[] | undefined {
  return segmentsToMerge(tableOf(rowCounts))?.map(({ entry }) => entry.rowCount);
}

test("segmentsToMerge leaves few segments of 50 million rows, whatever the size of flushes", () => {
  const sizes = [1000, 10_000, 64_000, 100_000, 250_000, 640_000, 1_500_000, 2_000_000];
  for (const flushRows of sizes) {
    let segments = tableOf([]).segments;
    let copied = 0;
    for (let rows = 0; rows < ROWS; rows += flushRows) {
      segments = segments.concat(tableOf([flushRows]).segments);
      for (;;) {
        const run: readonly OpenSegment[] | undefined = segmentsToMerge({
          segments,
        } as StoredTable);
        if (run === undefined) break;
        const rowCount = run.reduce((sum, { entry }) => sum + entry.rowCount, 0);
        expect(rowCount).toBeLessThanOrEqual(MERGED_ROWS_MAX);
        copied += rowCount;
        const at = segments.indexOf(run[0] as OpenSegment);
        segments = segments.toSpliced(at, run.length, ...tableOf([rowCount]).segments);
      }
    }
    expect(segments.length, `of flushes of ${flushRows} rows`).toBeLessThanOrEqual(32);
    expect(copied / ROWS, `of flushes of ${flushRows} rows`).toBeLessThanOrEqual(6);
  }
});

test("segmentsToMerge takes fewer than eight when they fill a segment and each is at most half", () => {
  expect(chosen(Array.from({ length: 5 }, () => 800_000))).toBeUndefined();
  expect(chosen(Array.from({ length: 6 }, () => 800_000))).toHaveLength(5);
  expect(chosen([2_000_000, 2_000_000, 2_000_000])).toEqual([2_000_000, 2_000_000]);
  expect(chosen([2_000_001, 2_000_000, 2_000_000])).toBeUndefined();
  expect(chosen([4_000_000, 100_000, 4_000_000])).toBeUndefined();
});

test("segmentsToMerge leaves a large segment alone while little has come behind it", () => {
  const large = 1_000_000;
  expect(chosen([large, ...Array.from({ length: 7 }, () => 5000)])).toBeUndefined();
  expect(chosen([large, ...Array.from({ length: 8 }, () => 5000)])).toHaveLength(8);
  expect(chosen([large, ...Array.from({ length: 7 }, () => 150_000)])).toHaveLength(8);
  // Of the smallest, it matters to none what is beside it.
  expect(chosen([4000, 1, 1, 1, 1, 1, 1, 1])).toHaveLength(8);
});
