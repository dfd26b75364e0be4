/**
 * Rows of wire cells as text, in each format of an answer. Pieces hold a bounded number of rows, so
 * that writing one never holds the event loop for longer than a slice of rows takes.
 */
import type { SchemaField } from "../../protocol/mod.ts";
import { csvWriters } from "./csv_cells.ts";

/** Rows in a format, as UTF-8. */
export interface RowText {
  readonly text: Uint8Array;
  readonly rowCount: number;
}

export type ResultFormat = "json" | "ndjson" | "csv";

/** Rows in one piece: about half a millisecond of JSON.stringify. */
const ROWS_PER_PIECE = 2048;

/** A piece ends after so many characters, too: rows may be long. */
const PIECE_LENGTH = 256 * 1024;

/**
 * Rows given to JSON.stringify at once, while they are short: that takes two thirds of the time.
 */
const ROWS_TOGETHER = 32;
const GROUP_LENGTH = 16 * 1024;

type Rows = readonly (readonly unknown[])[];

/**
 * Rows in a format, as one text. Rows of JSON are elements of an array, without a comma before the
 * first or behind the last.
 */
export function rowText(rows: Rows, format: ResultFormat, schema: readonly SchemaField[]): string {
  if (format === "json") return [...jsonRows(rows, { isFirst: true })].join("");
  return [...(format === "csv" ? csvRows(rows, schema) : ndjsonRows(rows))].join("");
}

/** Rows as elements of a JSON array. @param isFirst No row of the array was written before. */
export function* jsonRows(rows: Rows, { isFirst }: { isFirst: boolean }): Generator<string> {
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

export function ndjsonRows(rows: Rows): Generator<string> {
  return rowPieces(rows, { separator: "", write: (row) => `${jsonRow(row)}\n` });
}

export function csvRows(rows: Rows, schema: readonly SchemaField[]): Generator<string> {
  const writers = csvWriters(schema);
  const write = (row: readonly unknown[]): string =>
    `${writers.map((cell, column) => cell(row[column])).join(",")}\r\n`;
  return rowPieces(rows, { separator: "", write });
}

function* rowPieces(
  rows: Rows,
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
