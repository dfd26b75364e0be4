/**
 * Hints for a number in the place of a date or time. No number casts to one, as its unit would be a
 * guess: the hint names the forms that are read.
 */
import { type DataType, isNumeric } from "../../../types/mod.ts";

const FORMS: Readonly<Partial<Record<DataType["kind"], string>>> = {
  timestamp: "send text such as '2026-01-31T14:30:00Z', or to_timestamp of seconds",
  datetime: "send text such as '2026-01-31T14:30:00Z', or to_timestamp of seconds",
  date: "send text such as '2026-01-31'",
  time: "send text such as '14:30:00'",
};

/** A hint for types that have no common type because numbers are among dates or times. */
export function mixedTimesHint(types: readonly DataType[]): string | undefined {
  const number = types.find(isNumeric);
  const time = types.find(({ kind }) => FORMS[kind] !== undefined);
  return number === undefined || time === undefined ? undefined : FORMS[time.kind];
}

/** Undefined unless a number meets a date or time. */
export function numberAsTimeHint(number: DataType, time: DataType): string | undefined {
  return isNumeric(number) ? FORMS[time.kind] : undefined;
}
