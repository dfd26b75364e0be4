/**
 * Writes rows of wire cells as text, in each response format. The text is produced in pieces with
 * a bounded number of rows, so that no piece blocks the event loop for long.
 */

import type { SchemaField } from "../../protocol/mod.ts";
import { DATE, isoTextOf, TIME, textFromValue, wholeFromBigint } from "../../types/mod.ts";
import type { ResultFormat } from "../ports/engine.ts";
import { isInfinityCell, textOfArrayCell } from "./array_cell.ts";

/** The text of some rows in a response format, encoded as UTF-8. */
export interface RowText {
  readonly text: Uint8Array<ArrayBuffer>;
  readonly rowCount: number;
}

/**
 * The maximum number of rows that are converted to text without a pause. JSON.stringify takes
 * about half a millisecond for this many rows.
 */
const ROWS_PER_PIECE = 2048;

/**
 * The number of characters after which a piece of text ends, even if it could hold more rows. It
 * bounds pieces with long rows.
 */
const PIECE_LENGTH = 256 * 1024;

/**
 * The number of short rows passed to each call to JSON.stringify. One call for this many rows
 * takes two thirds of the time of separate calls.
 */
const ROWS_TOGETHER = 32;
const GROUP_LENGTH = 16 * 1024;

type WireRows = readonly (readonly unknown[])[];

/**
 * Converts rows to one string in the given format. JSON rows become array elements, without a
 * comma before the first or after the last.
 */
export function rowText(
  rows: WireRows,
  format: ResultFormat,
  schema: readonly SchemaField[],
): string {
  if (format === "json") return [...jsonRows(rows, { isFirst: true })].join("");
  return [...(format === "csv" ? csvRows(rows, schema) : ndjsonRows(rows))].join("");
}

/**
 * Yields rows as elements of a JSON array.
 *
 * @param isFirst Whether no row of the array has been written yet.
 */
export function* jsonRows(rows: WireRows, { isFirst }: { isFirst: boolean }): Generator<string> {
  let piece = "";
  let separator = isFirst ? "" : ",";
  let start = 0;
  let together = 1;
  for (let at = 0; at < rows.length; ) {
    const written = JSON.stringify(rows.slice(at, at + together));
    piece += separator + written.slice(1, -1);
    separator = ",";
    at += together;
    together = written.length < GROUP_LENGTH ? ROWS_TOGETHER : 1;
    if (at - start < ROWS_PER_PIECE && piece.length < PIECE_LENGTH) continue;
    yield piece;
    piece = "";
    start = at;
  }
  if (piece !== "") yield piece;
}

export function ndjsonRows(rows: WireRows): Generator<string> {
  return rowPieces(rows, { separator: "", write: (row) => `${jsonRow(row)}\n` });
}

export function csvRows(rows: WireRows, schema: readonly SchemaField[]): Generator<string> {
  const writers = csvWriters(schema);
  const write = (row: readonly unknown[]): string =>
    `${writers.map((cell, column) => cell(row[column])).join(",")}\r\n`;
  return rowPieces(rows, { separator: "", write });
}

function* rowPieces(
  rows: WireRows,
  {
    isFirst = true,
    separator,
    write,
  }: { separator: string; write: (row: readonly unknown[]) => string; isFirst?: boolean },
): Generator<string> {
  let piece = "";
  let count = 0;
  for (const [i, row] of rows.entries()) {
    piece += i === 0 && isFirst ? write(row) : separator + write(row);
    count += 1;
    if (count < ROWS_PER_PIECE && piece.length < PIECE_LENGTH) continue;
    yield piece;
    piece = "";
    count = 0;
  }
  if (count > 0) yield piece;
}

function jsonRow(row: readonly unknown[]): string {
  return JSON.stringify(row);
}

/**
 * Writes a CSV cell (RFC 4180). NULL is an empty field, an empty string is quoted, and dates and
 * times are in ISO 8601 format, as programs that read CSV expect. In JSON and NDJSON, dates and
 * times are numbers.
 */
type Write = (cell: unknown) => string;

/** Returns the writers of a row's cells, one per column. */
function csvWriters(schema: readonly SchemaField[]): readonly Write[] {
  return schema.map(({ data_type: type }) => {
    if (typeof type !== "string" && "Array" in type) {
      return (cell) => csvField(cell === null ? null : textOfArrayCell(cell, type.Array));
    }
    const text = typeof type === "string" ? TEXTS.get(type) : undefined;
    if (text === undefined) return csvField;
    return (cell) => {
      if (cell === null || cell === undefined) return "";
      return isInfinityCell(cell) ? cell : text(momentOf(cell));
    };
  });
}

/** Formats the cell of any type except dates and times as a CSV field. */
export function csvField(cell: unknown): string {
  if (cell === null || cell === undefined) return "";
  if (typeof cell === "number" || typeof cell === "boolean") return String(cell);
  const text = typeof cell === "string" ? cell : JSON.stringify(cell);
  if (text !== "" && !/[",\r\n]/.test(text)) return text;
  return `"${text.replaceAll('"', '""')}"`;
}

type WireMoment = number | bigint;

/** The functions that write dates and times as text, keyed by the type's name on the wire. */
const TEXTS: ReadonlyMap<string, (value: WireMoment) => string> = new Map([
  ["Date", (value: WireMoment) => textFromValue(DATE, value)],
  ["Time", (value: WireMoment) => textFromValue(TIME, value)],
  ["Timestamp", timestampText],
  ["DateTime", (value: WireMoment) => isoTextOf(value, "Z")],
]);

function timestampText(value: WireMoment): string {
  return isoTextOf(value, "");
}

/**
 * Converts the cell of a date or time to a value. A number of microseconds above 2^53 arrives as a
 * string of decimal digits.
 */
function momentOf(cell: unknown): WireMoment {
  return typeof cell === "number" ? cell : wholeFromBigint(BigInt(String(cell)));
}
