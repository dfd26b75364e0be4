/**
 * Compares live rows by page with a plain list of rows: no row is missing or extra, and pages
 * without live rows are skipped.
 */
import { expect, test } from "bun:test";
import { LivePages } from "../../../src/storage/table/live_pages.ts";
import { SeededRandom, seedOf } from "../../support/seeded_random.ts";
import { noDeletions, PAGE_ROWS } from "../../support/segment_files.ts";
import { amountOf } from "../../support/thoroughness.ts";

const ROWS: number = 2 * PAGE_ROWS + 100;

/**
 * The first rows of row groups, as in a segment with large rows. These groups end in the middle of
 * pages.
 */
const GROUP_STARTS = [0, 3000, PAGE_ROWS + 5, ROWS];

const CHANGES = amountOf({ usual: 40, thorough: 400 });

/** Returns the rows of a segment, some of which are tombstones. */
function segmentOf(isTombstone: Uint8Array): {
  deletions: ReturnType<typeof noDeletions>;
  livePages: LivePages;
} {
  const deletions = noDeletions({ segmentId: 1, rowCount: ROWS });
  const groupStart = (group: number): number => GROUP_STARTS[group] ?? ROWS;
  const groupRows = (group: number): number => groupStart(group + 1) - groupStart(group);
  const deleted = (group: number): Uint8Array =>
    isTombstone.subarray(groupStart(group), groupStart(group + 1));
  const reader = {
    rowCount: ROWS,
    groupStart,
    groupRows,
    groupOf: (row: number) => GROUP_STARTS.findLastIndex((start) => start <= row),
    deleted,
    hasTombstones: (group: number) => deleted(group).includes(1),
  };
  return { deletions, livePages: new LivePages({ deletions, reader }) };
}

test("LivePages finds the current rows at any seq, and the pages without one", () => {
  const seed = seedOf(1);
  const random = new SeededRandom(seed);
  for (const tombstoneShare of [0, 0.3, 1]) {
    const isTombstone = Uint8Array.from({ length: ROWS }, () =>
      random.chance(tombstoneShare) ? 1 : 0,
    );
    const { livePages, deletions } = segmentOf(isTombstone);
    const replacedBy = new Float64Array(ROWS);
    for (let change = 0; change < CHANGES; change += 1) {
      const from = random.below(ROWS);
      // Half of the changes replace the rest of a page, because a single live row keeps its whole
      // page alive.
      const to = random.chance(0.5) ? from + 1 : Math.min(ROWS, (from | (PAGE_ROWS - 1)) + 1);
      for (let row = random.chance(0.5) ? from : from & ~(PAGE_ROWS - 1); row < to; row += 1) {
        if (replacedBy[row] !== 0) continue;
        replacedBy[row] = 1 + random.below(1000);
        deletions.replace(row, replacedBy[row] ?? 0);
      }
      if (random.chance(0.3) && replacedBy[from] !== 0) {
        replacedBy[from] = 0;
        deletions.revert(from);
      }
      const upTo = random.chance(0.3) ? 1000 : random.below(1000);
      const isCurrent = (row: number): boolean =>
        isTombstone[row] === 0 && (replacedBy[row] === 0 || (replacedBy[row] ?? 0) > upTo);
      const isAlive = (page: number): boolean => {
        const end = Math.min(ROWS, (page + 1) * PAGE_ROWS);
        for (let row = page * PAGE_ROWS; row < end; row += 1) if (isCurrent(row)) return true;
        return false;
      };
      const start = random.below(ROWS);
      let expected = start;
      while (expected < ROWS && !isAlive(Math.floor(expected / PAGE_ROWS))) {
        expected = (Math.floor(expected / PAGE_ROWS) + 1) * PAGE_ROWS;
      }
      const first = livePages.firstAlive({ start, end: ROWS }, upTo);
      const what = `seed ${seed}, change ${change}`;
      const asked = { start, end: random.between(start, ROWS) };
      const current = [...new Uint8Array(asked.end - start).keys()].filter((at) =>
        isCurrent(start + at),
      );
      const found = livePages.aliveRows(asked, upTo) ?? [
        ...new Uint8Array(asked.end - start).keys(),
      ];
      expect([...found], what).toEqual(current);
      expect(livePages.countAlive(asked, upTo), what).toBe(current.length);
      // A read at a seq below a later replacement examines the rows themselves.
      expect(first, what).toBeLessThanOrEqual(Math.min(expected, ROWS));
      if (upTo < 1000) continue;
      expect(first, what).toBe(Math.min(expected, ROWS));
    }
  }
});

test("LivePages examines a page again only after it has changed", () => {
  const { deletions, livePages } = segmentOf(new Uint8Array(ROWS));
  const first = { start: 0, end: PAGE_ROWS };
  expect(livePages.firstAlive(first, 9)).toBe(0);
  expect(livePages.lookCount, "a page that nothing has replaced").toBe(0);
  for (let row = 0; row < PAGE_ROWS - 2; row += 1) deletions.replace(row, 5);
  expect(livePages.aliveRows(first, 9)).toEqual(Uint32Array.of(PAGE_ROWS - 2, PAGE_ROWS - 1));
  deletions.replace(PAGE_ROWS - 2, 5);
  expect(livePages.aliveRows(first, 9)).toEqual(Uint32Array.of(PAGE_ROWS - 1));
  deletions.replace(PAGE_ROWS - 1, 8);
  // A reader below the last replacement still sees the replaced row.
  expect(livePages.firstAlive(first, 7)).toBe(0);
  expect(livePages.aliveRows(first, 7)).toEqual(Uint32Array.of(PAGE_ROWS - 1));
  expect(livePages.firstAlive(first, 8)).toBe(PAGE_ROWS);
  const { lookCount } = livePages;
  expect(livePages.firstAlive(first, 9)).toBe(PAGE_ROWS);
  expect(livePages.countAlive(first, 8)).toBe(0);
  expect(livePages.lookCount).toBe(lookCount);
});
