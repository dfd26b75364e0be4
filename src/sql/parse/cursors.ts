/** Parses DECLARE, FETCH, MOVE and CLOSE. */
import type {
  CloseCursorStatement,
  DeclareCursorStatement,
  FetchDirection,
  FetchStatement,
} from "./ast/ast.ts";
import { isSelectNode } from "./ast/query_nodes.ts";
import type { Cursor } from "./cursor.ts";
import { Token } from "./text/lexer.ts";

const CURSOR = "a cursor";

/** Parses `DECLARE name [BINARY] [INSENSITIVE] [[NO] SCROLL] CURSOR [WITH HOLD] FOR query`. */
export function parseDeclare(cursor: Cursor, start: number): DeclareCursorStatement {
  cursor.expect("declare");
  const name = cursor.name(CURSOR);
  let isScroll: boolean | undefined;
  let isInsensitive = false;
  for (;;) {
    if (cursor.is("binary")) cursor.refuse("BINARY cursors", "omit BINARY");
    // INSENSITIVE has no effect, because every cursor reads the state as of its declaration.
    if (cursor.accept("insensitive")) isInsensitive = true;
    else if (cursor.accept("asensitive")) continue;
    else if (cursor.acceptAll("no", "scroll")) isScroll = false;
    else if (cursor.accept("scroll")) isScroll = true;
    else break;
  }
  cursor.expect("cursor");
  const isHeld = cursor.acceptAll("with", "hold") ? true : undefined;
  if (isHeld === undefined) cursor.acceptAll("without", "hold");
  cursor.expect("for");
  const at = cursor.start;
  const query = cursor.grammar.statement(cursor);
  if (!isSelectNode(query) && query.type !== "select for") {
    cursor.refuse(
      `DECLARE CURSOR FOR ${query.type.toUpperCase()}`,
      "declare the cursor for a query",
      at,
    );
  }
  if (query.type === "select for") {
    const word =
      isScroll === true
        ? "SCROLL"
        : isHeld === true
          ? "WITH HOLD"
          : isInsensitive
            ? "INSENSITIVE"
            : undefined;
    if (word !== undefined) {
      cursor.refuse(`${word} for a query that locks rows`, `omit ${word}, or FOR UPDATE`, at);
    }
  }
  const _location = cursor.since(start);
  return { type: "declare cursor", name, isScroll, isHeld, query, _location };
}

/** Parses `FETCH [direction] [FROM | IN] name`, or MOVE in the same form. */
export function parseFetch(cursor: Cursor, start: number): FetchStatement {
  const type = cursor.expectOneOf("fetch", "move");
  const direction = parseDirection(cursor);
  if (!cursor.accept("from")) cursor.accept("in");
  const name = cursor.name(CURSOR);
  return { type, direction, name, _location: cursor.since(start) };
}

const NEXT: FetchDirection = { kind: "forward", count: 1 };

function parseDirection(cursor: Cursor): FetchDirection {
  const count = acceptCount(cursor);
  if (count !== undefined) return { kind: "forward", count };
  // If the statement ends after a direction keyword, the keyword is the name of the cursor.
  if (cursor.isAhead(1, ";") || cursor.kindAhead(1) === Token.end) return NEXT;
  switch (
    cursor.acceptOneOf(
      "next",
      "prior",
      "first",
      "last",
      "absolute",
      "relative",
      "forward",
      "backward",
    )
  ) {
    case "next":
      return NEXT;
    case "prior":
      return { kind: "backward", count: 1 };
    case "first":
      return { kind: "absolute", count: 1 };
    case "last":
      return { kind: "absolute", count: -1 };
    case "absolute":
      return { kind: "absolute", count: expectNumber(cursor) };
    case "relative":
      return { kind: "relative", count: expectNumber(cursor) };
    case "forward":
      return { kind: "forward", count: acceptCount(cursor) ?? 1 };
    case "backward":
      return { kind: "backward", count: acceptCount(cursor) ?? 1 };
    default:
      return NEXT;
  }
}

/** Parses a number of rows to fetch, or ALL, which is infinite. */
function acceptCount(cursor: Cursor): number | undefined {
  if (cursor.accept("all")) return Number.POSITIVE_INFINITY;
  return isNumber(cursor) ? expectNumber(cursor) : undefined;
}

function isNumber(cursor: Cursor): boolean {
  const at = cursor.is("-") ? 1 : 0;
  return cursor.kindAhead(at) === Token.integer;
}

function expectNumber(cursor: Cursor): number {
  const isNegative = cursor.accept("-");
  const count = cursor.integer("a number of rows");
  return isNegative ? 0 - count : count;
}

/** Parses `CLOSE name | ALL`. */
export function parseClose(cursor: Cursor, start: number): CloseCursorStatement {
  cursor.expect("close");
  const name = cursor.accept("all") ? undefined : cursor.name(CURSOR);
  return { type: "close cursor", name, _location: cursor.since(start) };
}
