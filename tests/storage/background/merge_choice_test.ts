/**
 * Verifies that a table has few segments, whatever the size of its flushes, and that large
 * segments are copied only a few times.
 */
import { expect, test } from "bun:test";
import {
  MERGE_BOUNDS,
  runsWithin,
  segmentsToMerge,
} from "../../../src/storage/background/merge_choice.ts";
import { shareOf } from "../../support/thoroughness.ts";

type StoredTable = Parameters<typeof segmentsToMerge>[0];
type OpenSegment = StoredTable["segments"][number];

const ROWS = 50_000_000;
const MERGED_ROWS_MAX = MERGE_BOUNDS.rowsMax;

/** The size of a narrow row in bytes. */
const ROW_BYTES = 40;

/**
 * Returns a table with segments of the given row counts, as far as the choice of a merge reads it.
 * The segments at the indexes in `damaged` are quarantined.
 */
function tableOf(
  rowCounts: readonly number[],
  { damaged = [], rowBytes = ROW_BYTES }: { damaged?: readonly number[]; rowBytes?: number } = {},
): StoredTable {
  const segments = rowCounts.map((rowCount, index) => ({
    entry: { rowCount, bytes: rowCount * rowBytes, quarantined: damaged.includes(index) },
  }));
  return { segments } as unknown as StoredTable;
}

function chosen(rowCounts: readonly number[], rowBytes?: number): readonly number[] | undefined {
  const table = tableOf(rowCounts, rowBytes === undefined ? {} : { rowBytes });
  return segmentsToMerge(table, MERGE_BOUNDS)?.map(({ entry }) => entry.rowCount);
}

/** Returns a table after flushes of the given sizes, and the cost of its merges. */
function grown(
  flushes: readonly number[],
  { rowBytes, rows: allRows }: { rowBytes: number; rows: number } = {
    rowBytes: ROW_BYTES,
    rows: ROWS,
  },
): {
  segments: readonly OpenSegment[];
  copies: number;
  longestRun: number;
} {
  let { segments } = tableOf([]);
  let copied = 0;
  let longestRun = 0;
  for (let rows = 0, index = 0; rows < allRows; index += 1) {
    const flushRows = flushes[index % flushes.length] ?? 1;
    rows += flushRows;
    segments = segments.concat(tableOf([flushRows], { rowBytes }).segments);
    for (;;) {
      const run: readonly OpenSegment[] | undefined = segmentsToMerge({ segments }, MERGE_BOUNDS);
      if (run === undefined) break;
      const rowCount = run.reduce((sum, { entry }) => sum + entry.rowCount, 0);
      expect(rowCount).toBeLessThanOrEqual(MERGED_ROWS_MAX);
      expect(rowCount * rowBytes).toBeLessThanOrEqual(MERGE_BOUNDS.bytesMax);
      copied += rowCount;
      longestRun = Math.max(longestRun, run.length);
      const at = segments.indexOf(run[0] as OpenSegment);
      segments = segments.toSpliced(at, run.length, ...tableOf([rowCount], { rowBytes }).segments);
    }
  }
  return { segments, copies: copied / allRows, longestRun };
}

function repeated(count: number, flushRows: number): number[] {
  return Array.from({ length: count }, () => flushRows);
}

const SIZES = [
  1000, 4097, 10_000, 32_769, 64_000, 100_000, 250_000, 262_145, 640_000, 1_500_000, 2_000_000,
];

test.each(shareOf(SIZES.toReversed(), { oneOf: 4 }))(
  "segmentsToMerge leaves few segments of 50 million rows after flushes of %d rows",
  (flushRows) => {
    const { copies, segments } = grown([flushRows]);
    expect(segments.length).toBeLessThanOrEqual(32);
    expect(copies).toBeLessThanOrEqual(7);
  },
);

const MIXED: readonly (readonly [what: string, flushes: readonly number[]])[] = [
  ["a load and a trickle", [999_999, ...repeated(24, 3000)]],
  ["a smaller load and a smaller trickle", [500_000, ...repeated(60, 500)]],
  ["a full memtable and the rest after it", [64_000, ...repeated(12, 50)]],
  ["sizes that double", Array.from({ length: 20 }, (_, power) => 2 ** power)],
  ["loads that are never merged, and a trickle", [2_097_153, ...repeated(7, 1)]],
  [
    "sizes that strand segments in between",
    [
      2_090_000, 18_000, 7500, 4000, 500, 500_000, 18_000, 7500, 4000, 500, 500_000, 336_141, 90,
      210_000, 12, 48_000, 3, 130_000, 700, 2600, 61_000, 5, 5, 5, 250_000, 9000, 41, 170_000,
    ],
  ],
];

test.each(shareOf(MIXED, { oneOf: 3 }))(
  "segmentsToMerge leaves few segments after flushes of %s",
  (_what, flushes) => {
    const { copies, longestRun, segments } = grown(flushes);
    expect(segments.length).toBeLessThanOrEqual((4 * ROWS) / MERGED_ROWS_MAX);
    expect(copies).toBeLessThanOrEqual(7);
    expect(longestRun).toBeLessThanOrEqual(32);
  },
);

// Each case writes 100 GB of rows.
test.each([
  [2000, 10_000],
  [30_000, 300],
  [3_000_000, 20],
])(
  "segmentsToMerge creates no file that is too large, with rows of %d bytes and flushes of %d",
  (rowBytes, flushRows) => {
    const rows = 100_000_000_000 / rowBytes;
    const { copies, segments } = grown([flushRows], { rowBytes, rows });
    expect(segments.length).toBeLessThanOrEqual(120);
    expect(copies).toBeLessThanOrEqual(7);
  },
);

test("runsWithin returns runs that each fit into one file", () => {
  const rowBytes = 10_000;
  const { segments } = tableOf(repeated(30, 50_000), { rowBytes });
  const runs = runsWithin(segments, MERGE_BOUNDS);
  const runBytes = runs.map((run) => run.reduce((sum, { entry }) => sum + entry.bytes, 0));
  expect(runs.flat()).toEqual([...segments]);
  expect(runs.length).toBe(8);
  expect(Math.max(...runBytes)).toBeLessThanOrEqual(MERGE_BOUNDS.bytesMax);
});

test("segmentsToMerge selects fewer than eight segments if they fill one and each is at most half", () => {
  expect(chosen(Array.from({ length: 5 }, () => 800_000))).toBeUndefined();
  expect(chosen(Array.from({ length: 6 }, () => 800_000))).toHaveLength(5);
  expect(chosen([2_000_000, 2_000_000, 2_000_000])).toEqual([2_000_000, 2_000_000]);
  expect(chosen([2_000_001, 2_000_000, 2_000_000])).toBeUndefined();
  expect(chosen([4_000_000, 100_000, 4_000_000])).toBeUndefined();
});

test("segmentsToMerge leaves a large segment alone while few rows have followed it", () => {
  const large = 1_000_000;
  expect(chosen([large, ...Array.from({ length: 7 }, () => 5000)])).toBeUndefined();
  expect(chosen([large, ...Array.from({ length: 8 }, () => 5000)])).toHaveLength(8);
  expect(chosen([large, ...Array.from({ length: 7 }, () => 150_000)])).toHaveLength(8);
  // The size of their neighbours makes no difference to the smallest segments.
  const tiny = repeated(7, 1);
  expect(chosen([4000, ...tiny])).toHaveLength(8);
  // With large rows, a segment with few rows does not count as small.
  expect(chosen([4000, ...tiny], 10_000)).toBeUndefined();
  expect(chosen([4000, ...tiny, 1], 10_000)).toEqual([...tiny, 1]);
  expect(chosen([4000, ...repeated(7, 600)], 10_000)).toHaveLength(8);
});

test("segmentsToMerge selects the segments between two unchanged ones once", () => {
  expect(chosen([3_000_000, 5, 900_000, 3_000_000])).toEqual([5, 900_000]);
  expect(chosen([5, 900_000, 3_000_000])).toEqual([5, 900_000]);
  expect(chosen([3_000_000, 5, 900_000])).toBeUndefined();
  expect(chosen([3_000_000, 900_005, 3_000_000])).toBeUndefined();
});

test("segmentsToMerge omits quarantined segments, and merges the segments between two of them", () => {
  const eight = repeated(8, 5000);
  expect(segmentsToMerge(tableOf(eight), MERGE_BOUNDS)).toHaveLength(8);
  const between = tableOf([...eight, 5000], { damaged: [0, 4] });
  expect(segmentsToMerge(between, MERGE_BOUNDS)).toEqual(between.segments.slice(1, 4));
  expect(segmentsToMerge(tableOf(eight, { damaged: [0] }), MERGE_BOUNDS)).toBeUndefined();
});
