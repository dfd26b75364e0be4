/**
 * Returns the response to an SQL request part by part, on demand. Bytes, too, are read from the
 * connection only on demand, so the server pauses the statements while the caller is not reading.
 */
import type { SchemaField, StatementEntry } from "../protocol/mod.ts";
import { AnswerScanner } from "./answer_scanner.ts";
import type { BodyStream } from "./environment.ts";
import { errorFromBody, type ServerError } from "./errors.ts";
import type { RequestAnswer } from "./requests.ts";
import type { Session } from "./session.ts";
import { readEntries, type Values } from "./values.ts";

/** A part of the response. `statement` is the index of the statement, counted from 0. */
export type ExecutionPart =
  | {
      readonly kind: "rows";
      readonly statement: number;
      readonly schema: readonly SchemaField[];
      readonly rows: readonly (readonly unknown[])[];
    }
  /** A statement has ended. Its rows, if it has any, are in earlier parts. */
  | { readonly kind: "entry"; readonly statement: number; readonly entry: StatementEntry }
  | { readonly kind: "end"; readonly tookMs: number };

export interface PartsOptions {
  readonly values: Values;
  readonly signal: AbortSignal | undefined;
  readonly session: Session;
  readonly answer: RequestAnswer;
}

/**
 * Yields the parts of a streamed response as they arrive.
 * @throws {ServerError | ConnectionError}
 */
export async function* partsOfBody(
  body: BodyStream,
  { answer, session, signal, values }: PartsOptions,
): AsyncGenerator<ExecutionPart, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const scanner = new AnswerScanner();
  let statement = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        throw signal?.aborted === true ? error : session.broken(error);
      });
      if (done) throw session.broken(new Error("the response ended prematurely"));
      const text = decoder.decode(value, { stream: true });
      for (const part of partsIn(scanner, text, () => session.foreign(answer))) {
        if (part.kind === "rows") {
          const [read] = readEntries([{ ...part, row_count: 0, as_user: "" }], values);
          yield { ...part, statement, rows: read?.rows ?? [] };
        } else if (part.kind === "entry") {
          yield { kind: "entry", statement, entry: part.entry };
          statement += 1;
        } else {
          yield endOf(part.fields);
          return;
        }
      }
    }
  } finally {
    // Cancelling ends the request, whereupon the server stops the statements.
    reader.cancel().catch(() => undefined);
  }
}

/** Returns the last part of a response. @throws {ServerError} If any statement failed. */
function endOf(fields: Readonly<Record<string, unknown>>): ExecutionPart {
  if (fields["status"] !== "success") throw errorFromBody(fields, 200);
  return { kind: "end", tookMs: Number(fields["took"]) };
}

function partsIn(
  scanner: AnswerScanner,
  text: string,
  foreign: () => ServerError,
): ReturnType<AnswerScanner["push"]> {
  try {
    return scanner.push(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw foreign();
    throw error;
  }
}

/** Yields the parts of a complete response, for runtimes without streams. */
export function* partsOfWhole({
  results,
  tookMs,
}: {
  readonly results: readonly StatementEntry[];
  readonly tookMs: number;
}): Generator<ExecutionPart> {
  for (const [statement, { rows, ...entry }] of results.entries()) {
    const { schema } = entry;
    if (schema !== undefined && rows !== undefined) yield { kind: "rows", statement, schema, rows };
    const ended = rows === undefined ? entry : { ...entry, rows: [] };
    yield { kind: "entry", statement, entry: ended };
  }
  yield { kind: "end", tookMs };
}
