/**
 * Estimates how many distinct values a column has, from zone maps and a sample of the table's
 * largest segment. The planner orders joins by these estimates.
 *
 * The sample consists of runs of adjacent rows at equal intervals, because a sorted column has few
 * values in each run and different values in the next:
 *
 *     column          distinct in each of 8 runs of 512 rows      in all runs      estimate
 *     a state                          50                              50          50
 *     a customer, at random            499                          3,340          10,000
 *     an order of 12 rows, sorted      43                             344          a twelfth of the rows
 *
 * The values of each run are treated as random draws from all values of the column. The estimate
 * is the number of values from which that many draws would be expected to yield the number of
 * distinct values that was found.
 */
import { type Value, valueAt } from "../../types/mod.ts";
import type { OpenSegment } from "./open_segment.ts";
import type { StoredTable } from "./table.ts";
import { spanOfColumn } from "./table_stats.ts";

const RUNS = 8;
const RUN_ROWS = 512;

/** The properties of a column that a sample of a segment reveals. */
interface Sample {
  /**
   * The estimated number of distinct values; infinite if no value occurs in two runs of sampled
   * rows.
   */
  readonly distinct: number;
  /** The number of distinct values in a run of sampled rows, divided by its row count. */
  readonly valuesPerRow: number;
  /** Whether all sampled values are whole numbers. */
  readonly areWhole: boolean;
}

const SAMPLES = new WeakMap<OpenSegment, Map<number, Sample | undefined>>();

/**
 * Returns the estimated number of distinct values in a column, including the values of replaced
 * versions. Returns undefined if no segment has the column, or if its values are objects.
 */
export function distinctValues(
  table: StoredTable,
  { columnId, upTo }: { readonly columnId: number; readonly upTo: number },
): number | undefined {
  let largest: OpenSegment | undefined;
  let rowCount = 0;
  for (const segment of table.segments) {
    rowCount += segment.entry.rowCount;
    if (segment.entry.rowCount > (largest?.entry.rowCount ?? 0)) largest = segment;
  }
  const sample = largest === undefined ? undefined : sampleOf(largest, columnId);
  if (sample === undefined) return undefined;
  const estimate = Math.min(sample.distinct, sample.valuesPerRow * rowCount);
  const span = sample.areWhole ? spanOfColumn(table, { columnId, upTo }) : undefined;
  return Math.max(1, Math.round(Math.min(estimate, span ?? estimate)));
}

/** Returns a sample of a column. The sample is taken only once per column and segment. */
function sampleOf(segment: OpenSegment, columnId: number): Sample | undefined {
  const known = SAMPLES.get(segment) ?? new Map<number, Sample | undefined>();
  SAMPLES.set(segment, known);
  if (!known.has(columnId)) known.set(columnId, takeSample(segment, columnId));
  return known.get(columnId);
}

function takeSample(segment: OpenSegment, columnId: number): Sample | undefined {
  const all = new Set<Value>();
  const { rowCount } = segment.entry;
  const runs = Math.min(RUNS, Math.ceil(rowCount / RUN_ROWS));
  let drawn = 0;
  let present = 0;
  let read = 0;
  for (let run = 0; run < runs; run += 1) {
    const start = runs === 1 ? 0 : Math.floor(((rowCount - RUN_ROWS) * run) / (runs - 1));
    const values = segment.guard(() => valuesOfRun(segment, columnId, start));
    if (values === undefined || !values.every(isSimple)) return undefined;
    const given = values.filter((value) => value !== null);
    const own = new Set(given);
    drawn += own.size;
    present += given.length;
    read += values.length;
    for (const value of own) all.add(value);
  }
  const isWhole = read >= rowCount && all.size < present;
  return {
    distinct: isWhole ? all.size : populationOf(drawn, all.size),
    valuesPerRow: drawn / Math.max(1, read),
    areWhole: [...all].every((value) => typeof value === "bigint" || Number.isInteger(value)),
  };
}

/**
 * Returns the values of the rows from `start` on, ending at the end of their row group at the
 * latest.
 */
function valuesOfRun(
  { reader }: OpenSegment,
  columnId: number,
  start: number,
): Value[] | undefined {
  const group = reader.groupOf(start);
  const first = start - reader.groupStart(group);
  const end = Math.min(reader.groupRows(group), first + RUN_ROWS);
  const vector = reader.columnRows(columnId, group, { start: first, end });
  if (vector === undefined) return undefined;
  return Array.from({ length: end - first }, (_, row) => valueAt(vector, row));
}

/** Whether a Set recognises equal values as equal. Objects are compared by identity. */
function isSimple(value: Value): boolean {
  return value === null || typeof value !== "object";
}

/**
 * Returns the number of values from which `drawn` random draws are expected to yield `found`
 * distinct values: the n for which n × (1 − e^(−drawn ÷ n)) = found.
 */
function populationOf(drawn: number, found: number): number {
  if (found >= drawn) return Number.POSITIVE_INFINITY;
  let low = found;
  let high = drawn * drawn;
  while (high > low * 1.01) {
    const middle = Math.sqrt(low * high);
    if (middle * (1 - Math.exp(-drawn / middle)) < found) low = middle;
    else high = middle;
  }
  return high;
}
