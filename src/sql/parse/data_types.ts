/**
 * Parses type names, including words that belong to the name, as in `TIMESTAMP(3) WITH TIME ZONE`.
 * The binder checks whether the types exist.
 */
import type { BasicDataTypeDef, DataTypeDef, IntervalFieldWord } from "./ast/ast.ts";
import type { Cursor, Mutable } from "./cursor.ts";
import { Token } from "./text/lexer.ts";

/** Parses a type name: `name [( n [, m] )] [ [] ]`. */
export function parseDataType(cursor: Cursor): DataTypeDef {
  const start = cursor.token;
  let type: DataTypeDef = parseBasicType(cursor);
  while (cursor.accept("[")) {
    // As in PostgreSQL, an array length is accepted but has no effect.
    if (!cursor.is("]")) cursor.integer("a length");
    cursor.expect("]");
    type = { kind: "array", arrayOf: type, _location: cursor.since(start) };
  }
  // ARRAY, the SQL standard's notation, declares a single dimension.
  if (type.kind !== "array" && cursor.accept("array")) {
    if (cursor.accept("[")) {
      cursor.integer("a length");
      cursor.expect("]");
    }
    type = { kind: "array", arrayOf: type, _location: cursor.since(start) };
  }
  return type;
}

/** Parses a type without array brackets. */
export function parseBasicType(cursor: Cursor): BasicDataTypeDef {
  const start = cursor.token;
  const isQuoted = cursor.kind === Token.quoted;
  if (!cursor.isFunctionName()) cursor.unexpected("a type");
  const first = cursor.word;
  const isQualified = cursor.isAhead(1, ".");
  const base = cursor.takeName();
  const type: Mutable<BasicDataTypeDef> = { name: base.name, _location: base._location };
  if (isQualified) {
    cursor.expect(".");
    type.schema = base.name;
    type.name = cursor.label("a type").name;
  } else if (isQuoted) {
    type.doubleQuoted = true;
  } else {
    type.name += secondWord(cursor, first);
  }
  if (cursor.is("(")) type.config = parseConfig(cursor);
  if (first === "timestamp" || first === "time") type.name += zoneWords(cursor);
  if (first === "interval" && !isQualified && !isQuoted) parseIntervalFields(cursor, type);
  type._location = cursor.since(start);
  return type;
}

function secondWord(cursor: Cursor, first: string): string {
  switch (first) {
    case "double":
      return cursor.accept("precision") ? " precision" : "";
    case "national": {
      const word = cursor.expectOneOf("character", "char");
      return ` ${word}${cursor.accept("varying") ? " varying" : ""}`;
    }
    case "char":
    case "character":
    case "nchar":
    case "bit":
      return cursor.accept("varying") ? " varying" : "";
    default:
      return "";
  }
}

// The interval fields that may follow each field after TO.
const INTERVAL_ENDS: Readonly<Record<IntervalFieldWord, readonly IntervalFieldWord[]>> = {
  year: ["month"],
  month: [],
  day: ["hour", "minute", "second"],
  hour: ["minute", "second"],
  minute: ["second"],
  second: [],
};
const INTERVAL_FIELDS = ["year", "month", "day", "hour", "minute", "second"] as const;

/**
 * Parses the fields after INTERVAL or its string: `DAY [TO SECOND [(3)]]`. A precision directly
 * after INTERVAL rules out fields.
 */
export function parseIntervalFields(cursor: Cursor, type: Mutable<BasicDataTypeDef>): void {
  if (type.config !== undefined) return;
  const first = cursor.acceptOneOf(...INTERVAL_FIELDS);
  if (first === undefined) return;
  const ends = INTERVAL_ENDS[first];
  const isRange = ends.length > 0 && cursor.accept("to");
  const last = isRange ? cursor.expectOneOf(...ends) : first;
  type.intervalFields = isRange ? [first, last] : [first];
  if (last === "second" && cursor.is("(")) type.config = parseConfig(cursor);
}

function zoneWords(cursor: Cursor): string {
  if (cursor.acceptAll("with", "time", "zone")) return " with time zone";
  return cursor.acceptAll("without", "time", "zone") ? " without time zone" : "";
}

function parseConfig(cursor: Cursor): number[] {
  cursor.expect("(");
  const config = [cursor.integer("a size for the type")];
  while (cursor.accept(",")) {
    const sign = cursor.accept("-") ? -1 : 1;
    config.push(sign * cursor.integer("a size for the type"));
  }
  cursor.expect(")");
  return config;
}

/** Whether a type name and a string come next, as in `DATE '2025-01-01'`. */
export function isTypedLiteral(cursor: Cursor): boolean {
  let at = 1;
  switch (cursor.wordAhead(1)) {
    case "precision":
    case "varying":
      at = 2;
      break;
    case "(":
    case "with":
    case "without":
      break;
    default:
      return isStringAhead(cursor, 1);
  }
  if (cursor.isAhead(at, "(")) {
    at += 1;
    while (cursor.kindAhead(at) === Token.integer && cursor.isAhead(at + 1, ",")) at += 2;
    if (cursor.kindAhead(at) !== Token.integer || !cursor.isAhead(at + 1, ")")) return false;
    at += 2;
  }
  const hasZone = cursor.isAhead(at, "with") || cursor.isAhead(at, "without");
  if (hasZone && cursor.isAhead(at + 1, "time") && cursor.isAhead(at + 2, "zone")) at += 3;
  return isStringAhead(cursor, at);
}

function isStringAhead(cursor: Cursor, count: number): boolean {
  const kind = cursor.kindAhead(count);
  return kind === Token.string || kind === Token.encodedString;
}
