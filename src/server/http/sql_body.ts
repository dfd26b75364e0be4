/**
 * Reads the JSON body of `POST /v1/api/sql` without copying long SQL text.
 *
 * JSON.parse copies each string. A bulk load is a single string of hundreds of kilobytes, and
 * using new memory for the first time costs several times as much as the copying itself.
 * Therefore, if the statements are in the body as ASCII without escapes, their text is a slice of
 * the decoded body, and their UTF-8 is a slice of its bytes. Only the rest of the body is passed
 * to JSON.parse. In all other cases, the whole body is passed to it.
 */
import { parseJson } from "./request_body.ts";

export interface SqlBody {
  /**
   * The value that JSON.parse would return for the whole body; undefined if the text is malformed.
   */
  readonly value: unknown;
  /**
   * The UTF-8 of the member "sql"; absent unless it can be provided without copying. It aliases
   * the body.
   */
  readonly sqlUtf8?: Uint8Array;
}

/**
 * The minimum length of SQL text that is sliced instead of copied. For shorter text, a second pass
 * costs as much as it saves.
 */
const LONG_CHARS_MIN = 16_384;

const SQL_FIRST = /^[ \t\r\n]*\{[ \t\r\n]*"sql"[ \t\r\n]*:[ \t\r\n]*"/;

/**
 * Matches characters that end a JSON string or must not appear in one. A pattern for all other
 * characters would take ten times as long.
 */
// oxlint-disable-next-line no-control-regex -- JSON names these characters
const NOT_PLAIN = /["\\\u0000-\u001f]/g;

const END = /^[ \t\r\n]*\}[ \t\r\n]*$/;
const MORE = /^[ \t\r\n]*,/;

/**
 * Parses the JSON body of an SQL request.
 * @param text The decoded `body`.
 */
export function parseSqlBody(text: string, body: Uint8Array): SqlBody {
  // If the text has as many UTF-16 code units as the body has bytes, it is ASCII, and offsets in
  // the text and in the body are the same.
  const isLong = text.length >= LONG_CHARS_MIN && body.length === text.length;
  const start = isLong ? (SQL_FIRST.exec(text)?.[0].length ?? 0) : 0;
  const end = start === 0 ? -1 : endOfPlain(text, start);
  const others = end === -1 ? undefined : othersBehind(text.slice(end + 1));
  if (others === undefined) return { value: parseJson(text) };
  const sqlUtf8 = body.subarray(start, end);
  return { value: { sql: text.slice(start, end), ...others }, sqlUtf8 };
}

/**
 * Frees the memory of a body that is no longer used; the body is empty afterwards. Without this
 * call, the runtime would keep the memory until the next garbage collection, and a bulk load would
 * allocate new memory for each statement.
 *
 * @param view The body, or a slice of it.
 */
export function releaseBody({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/**
 * Returns the offset at which the string that begins at `start` ends; -1 if the string contains
 * escapes or is malformed.
 */
function endOfPlain(text: string, start: number): number {
  NOT_PLAIN.lastIndex = start;
  const end = NOT_PLAIN.test(text) ? NOT_PLAIN.lastIndex - 1 : -1;
  return text[end] === '"' ? end : -1;
}

/**
 * Returns the members that follow "sql", the first member of the body; undefined if JSON.parse has
 * to read the whole body.
 */
function othersBehind(rest: string): object | undefined {
  if (END.test(rest)) return {};
  const comma = MORE.exec(rest)?.[0];
  const others = comma === undefined ? undefined : parseJson(`{${rest.slice(comma.length)}`);
  if (typeof others !== "object" || others === null) return undefined;
  // JSON.parse has to read a body with a trailing comma, which is malformed, and a body with a
  // second member "sql", which takes precedence.
  return Object.keys(others).length === 0 || Object.hasOwn(others, "sql") ? undefined : others;
}
