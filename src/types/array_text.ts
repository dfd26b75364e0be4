/**
 * The text form of arrays: `{1,NULL,"a b"}`. One dimension only.
 */
import { DatabaseError } from "../base/errors.ts";
import { PARTS_OF_TEXT_MAX } from "../base/limits.ts";
import { excerpt } from "./excerpt.ts";
import type { Value } from "./value.ts";

export function textFromArray(values: readonly Value[], textOf: (value: Value) => string): string {
  const items = values.map((value) => (value === null ? "NULL" : quoted(textOf(value))));
  return `{${items.join(",")}}`;
}

function quoted(text: string): string {
  if (text !== "" && !/[{}",\\\s]/.test(text) && text.toUpperCase() !== "NULL") return text;
  return `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}

/** @throws {DatabaseError} INVALID_VALUE, and what reading an element throws. */
export function arrayFromText(text: string, read: (item: string) => Value): Value[] {
  return itemsFromText(text).map((item) => (item === null ? null : read(item)));
}

/** Blanks around an item have one place each: of two, every way to part them would be tried. */
const ITEM =
  /\s*(?:"((?:[^"\\]|\\[\s\S])*)"\s*|((?:[^\s{}",\\]|\\[\s\S])(?:[^{}",\\]|\\[\s\S])*))([,}])/y;

function itemsFromText(text: string): (string | null)[] {
  const trimmed = text.trim();
  if (/^\{\s*\}$/.test(trimmed)) return [];
  if (!trimmed.startsWith("{")) throw malformed(text);
  const items: (string | null)[] = [];
  let at = 1;
  for (;;) {
    ITEM.lastIndex = at;
    const match = ITEM.exec(trimmed);
    if (match === null) throw malformed(text);
    const quotedItem = match[1];
    const bare = (match[2] ?? "").trim();
    if (quotedItem !== undefined) items.push(unescape(quotedItem));
    else items.push(bare.toUpperCase() === "NULL" ? null : unescape(bare));
    at = ITEM.lastIndex;
    if (match[3] === "}") break;
    if (items.length === PARTS_OF_TEXT_MAX) throw tooLong();
  }
  if (at < trimmed.length) throw malformed(text);
  return items;
}

function tooLong(): DatabaseError {
  return new DatabaseError(
    "VALUE_TOO_LONG",
    `Cannot read an array from a text: it has more than ${PARTS_OF_TEXT_MAX} items`,
  );
}

function unescape(text: string): string {
  return text.includes("\\") ? text.replaceAll(/\\([\s\S])/g, "$1") : text;
}

function malformed(text: string): DatabaseError {
  return new DatabaseError(
    "INVALID_VALUE",
    `Cannot read ${excerpt(text)} as an array: expected one dimension, for example '{1,2,NULL}'`,
  );
}
