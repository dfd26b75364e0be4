/**
 * Results as bodies: JSON, NDJSON and CSV, as pieces of text.
 *
 * A small result is one piece. Of a large one each piece holds a bounded number of rows, so that
 * writing it never holds the event loop for longer than a slice of rows takes.
 */
import type { ErrorBody } from "../protocol/mod.ts";
import type { StatementResult } from "../sql/mod.ts";

export type ResultFormat = "json" | "ndjson" | "csv";

/** Rows in one piece: about half a millisecond of JSON.stringify. */
const ROWS_PER_PIECE = 2048;

type Rows = readonly (readonly unknown[])[];

/** The end of a JSON body. */
export interface Ending {
  readonly tookMs: number;
  /** Absent for success. */
  readonly error?: ErrorBody;
}

/** Whether a result is large enough to be written piece by piece. */
export function isLarge(results: readonly StatementResult[]): boolean {
  let rowCount = 0;
  for (const { rows } of results) rowCount += rows?.length ?? 0;
  return rowCount > ROWS_PER_PIECE;
}

/** What `Accept` asks for; JSON when nothing else is preferred. */
export function formatFromAccept(accept: string | null): ResultFormat {
  if (accept === null || accept === "*/*" || accept === "application/json") return "json";
  let best: ResultFormat = "json";
  let bestQuality = 0;
  for (const part of accept.split(",")) {
    const [type = "", ...parameters] = part.split(";");
    const format = FORMATS.get(type.trim().toLowerCase());
    if (format === undefined) continue;
    const quality = qualityOf(parameters);
    // Between equals the one named first wins, as clients list what they like best first.
    if (quality > bestQuality) {
      best = format;
      bestQuality = quality;
    }
  }
  return best;
}

const FORMATS: ReadonlyMap<string, ResultFormat> = new Map([
  ["application/json", "json"],
  ["application/*", "json"],
  ["*/*", "json"],
  ["application/x-ndjson", "ndjson"],
  ["text/csv", "csv"],
]);

function qualityOf(parameters: readonly string[]): number {
  for (const parameter of parameters) {
    const match = /^\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*$/i.exec(parameter);
    if (match !== null) return Number(match[1]);
  }
  return 1;
}

/** The whole of shape B in one text. */
export function jsonBody(results: readonly StatementResult[], { tookMs, error }: Ending): string {
  const entries: object[] = [];
  for (const result of results) entries.push(entryOf(result));
  const status = error === undefined ? "success" : "error";
  return JSON.stringify({ results: entries, status, took: tookMs, error });
}

/** The same piece by piece; the time it took is asked for at the end. */
export function* jsonPieces(
  results: readonly StatementResult[],
  ending: () => Ending,
): Generator<string> {
  let separator = "";
  yield '{"results":[';
  for (const result of results) {
    const { rows, ...rest } = entryOf(result);
    if (rows === undefined) {
      yield separator + JSON.stringify(rest);
    } else {
      const { schema, ...others } = rest;
      yield `${separator}{"schema":${JSON.stringify(schema)},"rows":[`;
      yield* rowPieces(rows, ",", jsonRow);
      yield `],${JSON.stringify(others).slice(1)}`;
    }
    separator = ",";
  }
  const { tookMs, error } = ending();
  const status = error === undefined ? "success" : "error";
  yield `],${JSON.stringify({ status, took: tookMs, error }).slice(1)}`;
}

/** One row-returning result as NDJSON. */
export function* ndjsonPieces(
  { schema, rows = [], asUser, rowCount }: StatementResult,
  tookMs: () => number,
): Generator<string> {
  yield `${JSON.stringify({ schema, as_user: asUser })}\n`;
  yield* rowPieces(rows, "", (row) => `${jsonRow(row)}\n`);
  yield `${JSON.stringify({ status: "success", row_count: rowCount, took: tookMs() })}\n`;
}

/** One row-returning result as CSV (RFC 4180): NULL is empty, empty text is quoted. */
export function* csvPieces({ schema = [], rows = [] }: StatementResult): Generator<string> {
  yield `${schema.map(({ name }) => csvField(name)).join(",")}\r\n`;
  yield* rowPieces(rows, "", (row) => `${row.map(csvField).join(",")}\r\n`);
}

interface Entry {
  schema?: unknown;
  rows?: Rows;
  row_count: number;
  message?: string | undefined;
  as_user: string;
  last_seq?: number | null | undefined;
}

/** Members in the order of the wire; JSON.stringify leaves out what is undefined. */
function entryOf({ schema, rows, rowCount, message, asUser, lastSeq }: StatementResult): Entry {
  if (rows !== undefined) {
    return { schema, rows, row_count: rowCount, message, as_user: asUser, last_seq: lastSeq };
  }
  return { row_count: rowCount, message, as_user: asUser, last_seq: lastSeq };
}

function* rowPieces(
  rows: Rows,
  separator: string,
  write: (row: readonly unknown[]) => string,
): Generator<string> {
  for (let start = 0; start < rows.length; start += ROWS_PER_PIECE) {
    const piece = rows
      .slice(start, start + ROWS_PER_PIECE)
      .map(write)
      .join(separator);
    yield start === 0 ? piece : separator + piece;
  }
}

function jsonRow(row: readonly unknown[]): string {
  return JSON.stringify(row);
}

function csvField(cell: unknown): string {
  if (cell === null || cell === undefined) return "";
  if (typeof cell === "number" || typeof cell === "boolean") return String(cell);
  const text = typeof cell === "string" ? cell : JSON.stringify(cell);
  if (text !== "" && !/[",\r\n]/.test(text)) return text;
  return `"${text.replaceAll('"', '""')}"`;
}
