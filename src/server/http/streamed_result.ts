/**
 * Writes responses while their statements are still running. The bytes are the same as those that
 * `result_format.ts` produces for a complete response, except for values that are not known yet
 * when the first rows are sent.
 *
 * If a statement fails after the first bytes, the end of the document depends on its format: JSON
 * closes the entry with the rows sent so far and adds "error"; NDJSON has the error as its last
 * line; CSV has no place for an error, so the connection is closed abruptly.
 */
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import type { ErrorBody } from "../../protocol/mod.ts";
import {
  type AnswerPart,
  type AnswerStream,
  csvRows,
  jsonRows,
  ndjsonRows,
  type StatementResult,
} from "../../sql/mod.ts";
import { type Exchange, tookMs } from "./exchange.ts";
import { bugBody, errorBodyOfFailure } from "./http_error.ts";
import {
  bodyTail,
  csvHead,
  type Ending,
  entryHead,
  entryTail,
  ndjsonHead,
  ndjsonTail,
} from "./result_format.ts";

/** The error that closes a streamed body abruptly, so that the client notices the failure. */
export class BrokenAnswer extends Error {}

export interface StreamedAnswer {
  /** The entries of the statements that had finished before the stream began. */
  readonly results: readonly StatementResult[];
  readonly stream: AnswerStream;
  /** Converts an error to the form in which it is sent. */
  readonly errorBodyOf: (error: unknown) => ErrorBody;
  readonly tookMs: () => number;
}

/**
 * Returns the streamed response to a request. If a bug occurs, it is reported, and the response
 * ends with INTERNAL_ERROR.
 */
export function streamedAnswer(
  exchange: Exchange,
  { isAdmin, results, stream }: Pick<StreamedAnswer, "results" | "stream"> & { isAdmin: boolean },
  { clock, onBug }: { clock: Clock; onBug: OnBug },
): StreamedAnswer {
  return {
    results,
    stream,
    tookMs: () => tookMs(exchange, clock),
    errorBodyOf: (error) => {
      const body = errorBodyOfFailure(error, { isAdmin });
      if (body !== undefined) return body;
      onBug(error, "a streamed answer", { request: exchange.requestId });
      return bugBody();
    },
  };
}

type LastPart = { readonly kind: "end"; readonly error: ErrorBody | undefined };

/** Yields the parts of a stream. If the stream fails, the last part reports the failure. */
async function* partsOf({
  errorBodyOf,
  stream,
}: StreamedAnswer): AsyncGenerator<Exclude<AnswerPart, { kind: "end" }> | LastPart, void> {
  for (;;) {
    let part: AnswerPart | LastPart;
    try {
      part = await stream.next();
    } catch (error) {
      part = { kind: "end", error: errorBodyOf(error) };
    }
    if (part.kind !== "end") {
      yield part;
      continue;
    }
    const { error } = part;
    yield { kind: "end", error: error instanceof Error ? errorBodyOf(error) : error };
    return;
  }
}

/** The pieces of a body: text, or bytes that a reader thread has already encoded. */
type ResultPieces = AsyncGenerator<string | Uint8Array<ArrayBuffer>, void>;

/** Writes a response to SQL (shape B). */
export async function* streamedJson(answer: StreamedAnswer): ResultPieces {
  yield '{"results":[';
  let separator = "";
  for (const result of answer.results) {
    yield* wholeEntry(result, separator);
    separator = ",";
  }
  /** The number of rows of the current entry that have been written; undefined between entries. */
  let rowCount: number | undefined;
  let asUser = "";
  for await (const part of partsOf(answer)) {
    if (part.kind === "rows") {
      if (rowCount === undefined) yield `${separator}${entryHead(part.schema)}[`;
      yield* jsonRows(part.rows, { isFirst: rowCount === undefined });
      separator = ",";
      rowCount = (rowCount ?? 0) + part.rows.length;
      asUser = part.asUser;
    } else if (part.kind === "text") {
      yield rowCount === undefined ? `${separator}${entryHead(part.schema)}[` : ",";
      yield part.text;
      separator = ",";
      rowCount = (rowCount ?? 0) + part.rowCount;
      asUser = part.asUser;
    } else if (part.kind === "entry") {
      if (rowCount === undefined) yield* wholeEntry(part.result, separator);
      else yield `],${entryTail(part.result)}`;
      separator = ",";
      rowCount = undefined;
    } else {
      if (rowCount !== undefined) yield `],${entryTail({ rowCount, asUser })}`;
      const ending: Ending = { tookMs: answer.tookMs(), error: part.error };
      yield bodyTail(ending);
    }
  }
}

function* wholeEntry(result: StatementResult, separator: string): Generator<string, void> {
  if (result.rows === undefined) {
    yield `${separator}{${entryTail(result)}`;
    return;
  }
  yield `${separator}${entryHead(result.schema)}[`;
  yield* jsonRows(result.rows, { isFirst: true });
  yield `],${entryTail(result)}`;
}

/** Writes an NDJSON response, in which only one entry has rows. */
export async function* streamedNdjson(answer: StreamedAnswer): ResultPieces {
  let rowCount = 0;
  let isBegun = false;
  for await (const part of partsOf(answer)) {
    if (part.kind === "rows") {
      if (!isBegun) yield ndjsonHead(part);
      isBegun = true;
      yield* ndjsonRows(part.rows);
      rowCount += part.rows.length;
    } else if (part.kind === "text") {
      if (!isBegun) yield ndjsonHead(part);
      isBegun = true;
      yield part.text;
      rowCount += part.rowCount;
    } else if (part.kind === "end") {
      const { error } = part;
      yield error === undefined
        ? ndjsonTail({ rowCount, tookMs: answer.tookMs() })
        : `${JSON.stringify({ status: "error", error })}\n`;
    }
  }
}

/**
 * Writes the bytes of a COPY TO.
 * @throws {BrokenAnswer} If the statement fails after the first bytes.
 */
export async function* streamedBytes(answer: StreamedAnswer): ResultPieces {
  for await (const part of partsOf(answer)) {
    if (part.kind === "text") yield part.text;
    else if (part.kind === "end" && part.error !== undefined) {
      throw new BrokenAnswer(
        `The statement failed after some of its rows had been sent: ${part.error.message}`,
      );
    }
  }
}

/**
 * Writes a CSV response, in which only one entry has rows.
 * @throws {BrokenAnswer} If the statement fails after the first bytes.
 */
export async function* streamedCsv(answer: StreamedAnswer): ResultPieces {
  let isBegun = false;
  for await (const part of partsOf(answer)) {
    if (part.kind === "rows") {
      if (!isBegun) yield csvHead(part.schema);
      isBegun = true;
      yield* csvRows(part.rows, part.schema);
    } else if (part.kind === "text") {
      if (!isBegun) yield csvHead(part.schema);
      isBegun = true;
      yield part.text;
    } else if (part.kind === "end" && part.error !== undefined) {
      throw new BrokenAnswer(
        `The statement failed after some of its rows had been sent: ${part.error.message}`,
      );
    }
  }
}
