/**
 * Between which values of a column the rows lie that a scan is asked for, as a run knows them.
 */
import type { ColumnSpan } from "../../../storage/mod.ts";
import { compareValues, type DataType, type Value } from "../../../types/mod.ts";
import { spanOfLike } from "../../functions/regex/like.ts";
import type { PlannedRange } from "../../plan/plan.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import type { Run } from "../run/run.ts";

export interface CompiledRange {
  readonly columnId: number;
  readonly min: ((run: Run) => Value) | undefined;
  readonly max: ((run: Run) => Value) | undefined;
  readonly like: ((run: Run) => Value) | undefined;
}

export function compileRange({ columnId, like, max, min }: PlannedRange): CompiledRange {
  const compiled = (side: typeof min): ((run: Run) => Value) | undefined =>
    side === undefined ? undefined : compileScalar(side);
  return { columnId, min: compiled(min), max: compiled(max), like: compiled(like) };
}

/**
 * The values that all ranges of a column let through, perhaps among more; undefined where one of
 * them is NULL, which no value satisfies.
 */
export function spanOfRanges(
  ranges: readonly CompiledRange[],
  { columnId, run, type }: { columnId: number; type: DataType; run: Run },
): ColumnSpan | undefined {
  let least: Value | undefined;
  let most: Value | undefined;
  for (const range of ranges) {
    if (range.columnId !== columnId) continue;
    const min = range.min?.(run);
    const max = range.max?.(run);
    const pattern = range.like?.(run);
    if (min === null || max === null || pattern === null) return undefined;
    const spans = [{ min, max }, typeof pattern === "string" ? spanOfLike(pattern) : {}];
    for (const span of spans) {
      if (isAbove(type, span.min, least)) least = span.min;
      if (span.max !== undefined && (most === undefined || isAbove(type, most, span.max))) {
        most = span.max;
      }
    }
  }
  return { min: least, max: most };
}

/** Whether a bound is there, and narrower from below than another one that may be. */
function isAbove(type: DataType, bound: Value | undefined, other: Value | undefined): boolean {
  if (bound === undefined) return false;
  return other === undefined || compareValues(type, bound, other) > 0;
}
