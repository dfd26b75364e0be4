/**
 * The JSON body of `POST /v1/api/sql`, without a copy of a long text of statements.
 *
 * JSON.parse copies each string. A bulk load is one string of a hundred kilobytes, and memory that
 * is touched for the first time costs several times what the copy does. So where the text stands in
 * the body as it is, ASCII without an escape, it is a part of the decoded body, and its UTF-8 is a
 * part of the bytes. What is left of the body goes to JSON.parse, as does the whole in any other
 * case.
 */
import { parseJson } from "./request_body.ts";

export interface SqlBody {
  /** As JSON.parse gives it; undefined for malformed text. */
  readonly value: unknown;
  /** Of the member "sql", where no copy is needed: aliases the body. */
  readonly sqlUtf8?: Uint8Array;
}

/** Below this a second look at the text costs what it spares. */
const LONG_CHARS_MIN = 16_384;

const SQL_FIRST = /^[ \t\r\n]*\{[ \t\r\n]*"sql"[ \t\r\n]*:[ \t\r\n]*"/;

/** What ends a string of JSON, or must not stand in one. Its complement takes ten times as long. */
// oxlint-disable-next-line no-control-regex -- JSON names these characters
const NOT_PLAIN = /["\\\u0000-\u001f]/g;

const END = /^[ \t\r\n]*\}[ \t\r\n]*$/;
const MORE = /^[ \t\r\n]*,/;

/** @param text What `body` decodes to. */
export function parseSqlBody(text: string, body: Uint8Array): SqlBody {
  // As many bytes as UTF-16 units: all are ASCII, and an offset is the same in both.
  const isLong = text.length >= LONG_CHARS_MIN && body.length === text.length;
  const start = isLong ? (SQL_FIRST.exec(text)?.[0].length ?? 0) : 0;
  const end = start === 0 ? -1 : endOfPlain(text, start);
  const others = end === -1 ? undefined : othersBehind(text.slice(end + 1));
  if (others === undefined) return { value: parseJson(text) };
  const sqlUtf8 = body.subarray(start, end);
  return { value: { sql: text.slice(start, end), ...others }, sqlUtf8 };
}

/**
 * Gives the memory of a body back that nobody reads any more, which is empty then. The runtime
 * would keep it until it next collects garbage, and a bulk load take memory that is new for each of
 * its statements: for what is given back the next one need not ask the system.
 *
 * @param sqlUtf8 Of the body.
 */
export function releaseBody({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Where the string that begins at `start` ends; -1 when it has an escape, or is malformed. */
function endOfPlain(text: string, start: number): number {
  NOT_PLAIN.lastIndex = start;
  const end = NOT_PLAIN.test(text) ? NOT_PLAIN.lastIndex - 1 : -1;
  return text[end] === '"' ? end : -1;
}

/** The members behind the first; undefined when JSON.parse should see the whole. */
function othersBehind(rest: string): object | undefined {
  if (END.test(rest)) return {};
  const comma = MORE.exec(rest)?.[0];
  const others = comma === undefined ? undefined : parseJson(`{${rest.slice(comma.length)}`);
  if (typeof others !== "object" || others === null) return undefined;
  // Nothing behind a comma is malformed, and of two members of one name the last counts.
  return Object.keys(others).length === 0 || Object.hasOwn(others, "sql") ? undefined : others;
}
