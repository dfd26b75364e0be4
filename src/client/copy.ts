/**
 * Copies large numbers of rows into and out of the server. Data of any size is streamed, and never
 * held in memory.
 */
import { type Call, type FieldRules, kindOf, requireOptions, SIGNAL, TEXT } from "./checks.ts";
import type { BodyData, BodyStream } from "./environment.ts";
import { entriesIn } from "./errors.ts";
import { RequestData } from "./requests.ts";
import type { Session } from "./session.ts";
import { requireText } from "./statements.ts";

export interface CopyCallOptions {
  /** The namespace in which unqualified names are looked up. */
  readonly namespace?: string;
  readonly signal?: AbortSignal;
}

/** The result of a COPY FROM. */
export interface CopyResult {
  readonly rowCount: number;
  /** Messages about the copy, for example about skipped rows. */
  readonly notices: readonly string[];
}

/** The client methods that copy rows. */
export interface Copies {
  /**
   * Runs `COPY … FROM STDIN` with the given rows. A copy is a single commit: if it fails, no rows
   * are stored. Not every runtime can send a stream while it is being produced; Firefox and
   * Safari, for example, can send only files.
   *
   *     await db.copyFrom("COPY shop.items FROM STDIN (FORMAT csv, HEADER)", file);
   *
   * @throws {ServerError} Its message names the line and the column.
   */
  copyFrom(sql: string, data: BodyData, options?: CopyCallOptions): Promise<CopyResult>;
  /**
   * Runs `COPY … TO STDOUT` and returns its rows as they are produced. A stream that is not read to
   * the end must be cancelled. If the statement fails after its first rows, reading the stream
   * fails.
   *
   *     const stream = await db.copyTo("COPY shop.items TO STDOUT (FORMAT csv)");
   *
   * @throws {ServerError}
   */
  copyTo(sql: string, options?: CopyCallOptions): Promise<BodyStream>;
}

const FROM: Call = { doing: "copy rows", example: 'copyFrom("COPY … FROM STDIN", data)' };
const TO: Call = { doing: "copy rows", example: 'copyTo("COPY … TO STDOUT")' };

const RULES: FieldRules = { namespace: TEXT, signal: SIGNAL };

export function copiesBy(session: Session): Copies {
  return {
    async copyFrom(sql, data, given = {}) {
      requireText(sql);
      requireData(data);
      requireOptions(FROM, given, RULES);
      const answer = await session.call(pathOf(sql, given), new RequestData(data), {
        signal: given.signal,
      });
      const [entry] = entriesIn(answer.fields["results"]) ?? [];
      if (entry === undefined) throw session.foreign(answer);
      return { rowCount: entry.row_count, notices: entry.notices ?? [] };
    },
    async copyTo(sql, given = {}) {
      requireText(sql);
      requireOptions(TO, given, RULES);
      const options = { signal: given.signal, isStreamed: true };
      const answer = await session.call(pathOf(sql, given), new RequestData(""), options);
      if (answer.body === undefined) throw session.foreign(answer);
      return answer.body;
    },
  };
}

function pathOf(sql: string, { namespace }: CopyCallOptions): string {
  const query = new URLSearchParams({ sql });
  if (namespace !== undefined) query.set("namespace_id", namespace);
  return `/v1/api/copy?${query.toString()}`;
}

/** Requires that `data` can be sent in a request. @throws {TypeError} */
function requireData(data: unknown): void {
  const isObject = typeof data === "object" && data !== null;
  const isBody = isObject && (ArrayBuffer.isView(data) || "stream" in data || "getReader" in data);
  if (typeof data === "string" || isBody) return;
  throw new TypeError(
    `Cannot copy rows: the data is ${kindOf(data)}, but must be a string, bytes, a Blob or a ` +
      "stream",
  );
}
