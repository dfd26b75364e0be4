/**
 * Writes cells of CSV (RFC 4180): NULL is empty, empty text is quoted, and dates and times are ISO
 * 8601, as programs that read CSV expect. In JSON and NDJSON they are numbers.
 */
import type { SchemaField } from "../../protocol/mod.ts";
import { DATE, TIME, TIMESTAMP, textFromValue, wholeFromBigint } from "../../types/mod.ts";

type Write = (cell: unknown) => string;

/** The writers of a row's cells, one per column. */
export function csvWriters(schema: readonly SchemaField[]): readonly Write[] {
  return schema.map(({ data_type: type }) => {
    const text = typeof type === "string" ? TEXTS.get(type) : undefined;
    if (text === undefined) return csvField;
    return (cell) => (cell === null || cell === undefined ? "" : text(momentOf(cell)));
  });
}

/** Writes a cell of any other type. */
export function csvField(cell: unknown): string {
  if (cell === null || cell === undefined) return "";
  if (typeof cell === "number" || typeof cell === "boolean") return String(cell);
  const text = typeof cell === "string" ? cell : JSON.stringify(cell);
  if (text !== "" && !/[",\r\n]/.test(text)) return text;
  return `"${text.replaceAll('"', '""')}"`;
}

type Moment = number | bigint;

/** Keyed by the type names of the wire. */
const TEXTS: ReadonlyMap<string, (value: Moment) => string> = new Map([
  ["Date", (value: Moment) => textFromValue(DATE, value)],
  ["Time", (value: Moment) => textFromValue(TIME, value)],
  ["Timestamp", timestampText],
  ["DateTime", (value: Moment) => `${timestampText(value)}Z`],
]);

function timestampText(value: Moment): string {
  return textFromValue(TIMESTAMP, value).replace(" ", "T");
}

/** Beyond 2^53 microseconds, a cell holds digits as text. */
function momentOf(cell: unknown): Moment {
  return typeof cell === "number" ? cell : wholeFromBigint(BigInt(String(cell)));
}
