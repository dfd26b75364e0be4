/**
 * Writes results as JSON, NDJSON and CSV, in pieces of text.
 *
 * A small result is a single piece. A large result is divided into pieces with a limited number of
 * rows, so that writing one piece does not block the event loop for long.
 */

import { millisecondsText, seqText } from "../../base/number_text.ts";
import type { ErrorBody, SchemaField } from "../../protocol/mod.ts";
import {
  csvField,
  csvRows,
  jsonRows,
  ndjsonRows,
  type ResultFormat,
  type StatementResult,
} from "../../sql/mod.ts";

/** A response with more rows than this is written piece by piece. */
const ROWS_IN_ONE_PIECE = 2048;

/** Matches a name that needs no escapes in JSON. */
const PLAIN_NAME = /^[\w.@+-]*$/;

/** The values that are written at the end of a JSON body. */
export interface Ending {
  readonly tookMs: number;
  /** The error of a failed request; absent if it succeeded. */
  readonly error?: ErrorBody | undefined;
}

/** Returns whether the results are large enough to be written piece by piece. */
export function isLarge(results: readonly StatementResult[]): boolean {
  let rowCount = 0;
  for (const { rows } of results) rowCount += rows?.length ?? 0;
  return rowCount > ROWS_IN_ONE_PIECE;
}

/** Returns the format that `Accept` prefers, or JSON if it expresses no preference. */
export function formatFromAccept(accept: string | null): ResultFormat {
  if (accept === null || accept === "*/*" || accept === "application/json") return "json";
  let best: ResultFormat = "json";
  let bestQuality = 0;
  for (const part of accept.split(",")) {
    const [type = "", ...parameters] = part.split(";");
    const format = FORMATS.get(type.trim().toLowerCase());
    if (format === undefined) continue;
    const quality = qualityOf(parameters);
    // If several formats have the same quality, the first format wins, because clients list their
    // preferred format first.
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

/** Writes a complete response to SQL (shape B) as one string. */
export function jsonBody(results: readonly StatementResult[], ending: Ending): string {
  let entries = "";
  for (const result of results) {
    if (entries !== "") entries += ",";
    const { rows } = result;
    entries += rows === undefined ? "{" : `${entryHead(result.schema)}${JSON.stringify(rows)},`;
    entries += entryTail(result);
  }
  return `{"results":[${entries}${bodyTail(ending)}`;
}

/**
 * Writes a response to SQL (shape B) piece by piece. The duration is determined when the last
 * piece is written.
 */
export function* jsonPieces(
  results: readonly StatementResult[],
  ending: () => Ending,
): Generator<string> {
  let separator = "";
  yield '{"results":[';
  for (const result of results) {
    const { rows } = result;
    if (rows === undefined) {
      yield `${separator}{${entryTail(result)}`;
    } else {
      yield `${separator}${entryHead(result.schema)}[`;
      yield* jsonRows(rows, { isFirst: true });
      yield `],${entryTail(result)}`;
    }
    separator = ",";
  }
  yield bodyTail(ending());
}

/** Writes a result as NDJSON. It must be the only result of the request that has rows. */
export function* ndjsonPieces(
  { schema, rows = [], asUser, notices, rowCount }: StatementResult,
  tookMs: () => number,
): Generator<string> {
  yield ndjsonHead({ schema, asUser });
  yield* ndjsonRows(rows);
  yield ndjsonTail({ rowCount, tookMs: tookMs(), notices });
}

export function ndjsonHead(head: {
  schema: readonly SchemaField[] | undefined;
  asUser: string;
}): string {
  const { asUser, schema } = head;
  return `${JSON.stringify({ schema, as_user: asUser })}\n`;
}

/** Returns the last line of a successful NDJSON response. */
export function ndjsonTail({
  notices,
  rowCount,
  tookMs,
}: {
  rowCount: number;
  tookMs: number;
  notices?: readonly string[] | undefined;
}): string {
  const took = millisecondsText(tookMs);
  const noticed = notices === undefined ? "" : `"notices":${JSON.stringify(notices)},`;
  return `{"status":"success","row_count":${rowCount},${noticed}"took":${took}}\n`;
}

/** Writes a result as CSV. It must be the only result of the request that has rows. */
export function* csvPieces({ schema = [], rows = [] }: StatementResult): Generator<string> {
  yield csvHead(schema);
  yield* csvRows(rows, schema);
}

export function csvHead(schema: readonly SchemaField[]): string {
  return `${schema.map(({ name }) => csvField(name)).join(",")}\r\n`;
}

/** Returns the part of a result entry that precedes its rows. */
export function entryHead(schema: readonly SchemaField[] | undefined): string {
  return schema === undefined ? '{"rows":' : headText(schema);
}

/** Returns the part of a result entry that follows its rows. */
export function entryTail(result: StatementResult): string {
  const { asUser, lastSeq, message, notices, rowCount } = result;
  if (rowCount !== lastCount.rowCount || message !== lastCount.message) {
    lastCount = { rowCount, message, text: countText(rowCount, message) };
  }
  let text = lastCount.text + jsonName(asUser);
  if (notices !== undefined) text += `,"notices":${JSON.stringify(notices)}`;
  if (lastSeq === undefined) return `${text}}`;
  return `${text},"last_seq":${lastSeq === null ? "null" : seqText(lastSeq)}}`;
}

/**
 * The text most recently written after an entry's rows, from the row count to the key `as_user`.
 * It is cached because similar statements often follow one another.
 */
let lastCount: {
  readonly rowCount: number;
  readonly message: string | undefined;
  readonly text: string;
} = { rowCount: -1, message: undefined, text: "" };

function countText(rowCount: number, message: string | undefined): string {
  const middle = message === undefined ? "" : `,"message":${JSON.stringify(message)}`;
  return `"row_count":${rowCount}${middle},"as_user":`;
}

/**
 * Writes a name as JSON. Nearly all names need no escapes, and testing this is cheaper than
 * JSON.stringify.
 */
function jsonName(name: string): string {
  return PLAIN_NAME.test(name) ? `"${name}"` : JSON.stringify(name);
}

export function bodyTail({ tookMs, error }: Ending): string {
  const took = millisecondsText(tookMs);
  if (error === undefined) return `],"status":"success","took":${took}}`;
  return `],"status":"error","took":${took},"error":${JSON.stringify(error)}}`;
}

/**
 * The JSON text before the rows of an entry, cached for each list of fields. All results of a plan
 * share one list.
 */
const headTexts = new WeakMap<readonly SchemaField[], string>();

function headText(schema: readonly SchemaField[]): string {
  let text = headTexts.get(schema);
  if (text === undefined) {
    text = `{"schema":${JSON.stringify(schema)},"rows":`;
    headTexts.set(schema, text);
  }
  return text;
}
