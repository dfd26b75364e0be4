/**
 * Numbers that a statement stores as moments. A number for a TIMESTAMP counts microseconds, and the
 * clocks of many languages count milliseconds: such a number is stored as a moment of January 1970.
 * The answer then has a notice with the stored moment.
 */
import { type DataType, TIMESTAMP, textFromValue, type Value } from "../../types/mod.ts";
import type { BoundExpression } from "./bound_expressions.ts";

/** A number, of the text or of a parameter, that goes as it is to a column of moments. */
export interface StoredNumber {
  readonly column: string;
  /** Where its value is found when the statement runs; undefined for a constant. */
  readonly slot: number | undefined;
  readonly isParameter: boolean;
  readonly value: Value;
}

/** Milliseconds of the years 1973 to 5138, as microseconds the first 1157 days of 1970. */
const LIKE_MILLISECONDS_MIN = 1e11;
const LIKE_MILLISECONDS_MAX = 1e14;

/** Notices of one answer: a long list of values has the same fault in each row. */
const NOTICES_MAX = 3;

/** What a value is to its column, if it is a number where a moment is kept. */
export function storedNumber(
  value: BoundExpression,
  { name, type }: { readonly name: string; readonly type: DataType },
): StoredNumber | undefined {
  if (type.kind !== "timestamp" && type.kind !== "datetime") return undefined;
  if (value.type.kind !== "bigint") return undefined;
  if (value.kind === "slot") {
    const { isParameter = false, slot } = value;
    return { column: name, slot, isParameter, value: null };
  }
  if (value.kind !== "constant" || !isLikeMilliseconds(value.value)) return undefined;
  return { column: name, slot: undefined, isParameter: false, value: value.value };
}

/** The notices of a statement that ran with these values; undefined when there are none. */
export function noticesOf(
  numbers: readonly StoredNumber[],
  slots: readonly Value[],
): readonly string[] | undefined {
  const notices: string[] = [];
  for (const { column, isParameter, slot, value } of numbers) {
    const number = slot === undefined ? value : (slots[slot] ?? null);
    if (!isLikeMilliseconds(number)) continue;
    if (notices.length === NOTICES_MAX) break;
    const shown = isParameter ? `$${(slot ?? 0) + 1}, which is ${number},` : String(number);
    notices.push(
      `Column "${column}" holds ${textFromValue(TIMESTAMP, number)}: a number for it counts microseconds, and ${shown} looks like milliseconds; multiply by 1000, or send text such as '2026-01-31T14:30:00Z'`,
    );
  }
  return notices.length === 0 ? undefined : notices;
}

function isLikeMilliseconds(value: Value): value is number {
  if (typeof value !== "number") return false;
  const size = Math.abs(value);
  return size >= LIKE_MILLISECONDS_MIN && size < LIKE_MILLISECONDS_MAX;
}
