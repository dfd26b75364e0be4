/**
 * Finds numbers that a statement stores in timestamp columns. A number stored as a TIMESTAMP
 * counts microseconds, but the clocks of many languages count milliseconds or seconds. Their
 * numbers become timestamps shortly after 1970. If a statement stores such a number, its response
 * contains a notice with the resulting timestamp.
 */
import { type DataType, isInteger, TIMESTAMP, textFromValue, type Value } from "../../types/mod.ts";
import type { BoundExpression } from "./bound_expressions.ts";

/** A number, in the SQL or in a parameter, that is stored unconverted in a timestamp column. */
export interface StoredNumber {
  readonly column: string;
  /** The slot that contains the value when the statement runs; undefined for a constant. */
  readonly slot: number | undefined;
  readonly isParameter: boolean;
  readonly value: Value;
}

/** A unit in which clocks count, and the range of numbers that are probably in this unit. */
interface ClockUnit {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly micros: number;
}

const CLOCK_UNITS: readonly ClockUnit[] = [
  // Milliseconds of the years 1973 to 5138. Read as microseconds, they are the first 28 hours to
  // 1157 days after 1970.
  { name: "milliseconds", min: 1e11, max: 1e14, micros: 1000 },
  // Seconds of the years 2000 to 2100. Read as microseconds, they are the first 15 to 69 minutes
  // after 1970.
  { name: "seconds", min: 946_684_800, max: 4_102_444_800, micros: 1_000_000 },
];

/**
 * The maximum number of notices in a response. In a long list of values, usually every row has the
 * same problem.
 */
const NOTICES_MAX = 3;

/** Describes a number that is stored in a timestamp column; undefined for any other value. */
export function storedNumber(
  value: BoundExpression,
  { name, type }: { readonly name: string; readonly type: DataType },
): StoredNumber | undefined {
  if (type.kind !== "timestamp" && type.kind !== "datetime") return undefined;
  if (!isInteger(value.type)) return undefined;
  if (value.kind === "slot") {
    const { isParameter = false, slot } = value;
    return { column: name, slot, isParameter, value: null };
  }
  if (value.kind !== "constant" || typeof value.value !== "number") return undefined;
  if (likelyUnit(value.value) === undefined) return undefined;
  return { column: name, slot: undefined, isParameter: false, value: value.value };
}

/**
 * Returns the notices for a statement that ran with the given values; undefined if there are none.
 */
export function noticesOf(
  numbers: readonly StoredNumber[],
  slots: readonly Value[],
): readonly string[] | undefined {
  const notices: string[] = [];
  for (const { column, isParameter, slot, value } of numbers) {
    const number = slot === undefined ? value : (slots[slot] ?? null);
    if (typeof number !== "number") continue;
    const unit = likelyUnit(number);
    if (unit === undefined) continue;
    if (notices.length === NOTICES_MAX) break;
    const shown = isParameter ? `$${(slot ?? 0) + 1}, which is ${number},` : String(number);
    notices.push(
      `Column "${column}" contains ${textFromValue(TIMESTAMP, number)}: a number in this column counts microseconds, but ${shown} looks like ${unit.name}; multiply it by ${unit.micros}, or send a string such as '2026-01-31T14:30:00Z'`,
    );
  }
  return notices.length === 0 ? undefined : notices;
}

/**
 * Returns the unit in which a number was probably given; undefined if the number is a plausible
 * count of microseconds.
 */
function likelyUnit(value: number): ClockUnit | undefined {
  const size = Math.abs(value);
  return CLOCK_UNITS.find(({ max, min }) => size >= min && size < max);
}
