/**
 * Finds numbers that a statement stores as timestamps. A number for a TIMESTAMP counts
 * microseconds, but the clocks of many languages count milliseconds, so their numbers end up in
 * January 1970. The answer then contains a notice with the stored timestamp.
 */
import { type DataType, TIMESTAMP, textFromValue, type Value } from "../../types/mod.ts";
import type { BoundExpression } from "./bound_expressions.ts";

/** A number, in the text or in a parameter, that a timestamp column takes unchanged. */
export interface StoredNumber {
  readonly column: string;
  /** The slot that holds the value when the statement runs; undefined for a constant. */
  readonly slot: number | undefined;
  readonly isParameter: boolean;
  readonly value: Value;
}

/** The years 1973 to 5138 in milliseconds; read as microseconds, the first 1157 days from 1970. */
const LIKE_MILLISECONDS_MIN = 1e11;
const LIKE_MILLISECONDS_MAX = 1e14;

/** The most notices in one answer: a long list of values has the same fault in each row. */
const NOTICES_MAX = 3;

/** Describes a value if it is a number for a timestamp column. */
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

/** The notices for a statement that ran with these values; undefined if there are none. */
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
