/**
 * Defines functions that use regular expressions. Each search takes time linear in the length of
 * the text.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  BOOLEAN,
  type DataType,
  INT,
  sliceCodePoints,
  TEXT,
  type Value,
} from "../../../types/mod.ts";
import { functionsNamed, overload } from "../base/define.ts";
import type { ScalarFunction } from "../base/function.ts";
import { checkMadeItems, checkMadeLength } from "../base/made_length.ts";
import { remembering } from "../base/remembering.ts";
import { compileRegex, type Regex } from "./regex.ts";
import { regexEffort } from "./regex_effort.ts";
import type { RegexMatch } from "./regex_search.ts";

const TEXT_ARRAY: DataType = { kind: "array", element: TEXT };

/**
 * The cost of one match in steps, in addition to the search: allocating the match and its text,
 * and iterating.
 */
const STEPS_PER_MATCH = 8;

/**
 * Compiles regular expressions, and caches them by a key. The key begins with the flags, so that
 * patterns with the same flags share a prefix.
 */
const regexByKey = remembering((key) => {
  const end = key.indexOf("\u0000");
  return compileRegex(key.slice(end + 1), key.slice(0, end));
});

export function regexOf(pattern: Value, flags: Value | undefined): Regex {
  return regexByKey(`${(flags ?? "") as string}\u0000${pattern as string}`);
}

/**
 * Compiles the pattern of a function that does not accept the flag "g".
 *
 * @throws {DatabaseError} INVALID_VALUE
 */
export function regexWithoutGlobal(name: string, pattern: Value, flags: Value | undefined): Regex {
  if (typeof flags !== "string" || !flags.includes("g")) return regexOf(pattern, flags);
  throw new DatabaseError("INVALID_VALUE", `Cannot call ${name} with the flag "g"`, {
    hint: name === "regexp_match" ? "to find all matches, use regexp_matches" : "remove the flag",
  });
}

/**
 * Yields matches that begin at or after `from`, from left to right, without overlap.
 *
 * @throws {DatabaseError} LIMIT_EXCEEDED
 */
export function* matchesOf(regex: Regex, text: string, from: number): Generator<RegexMatch> {
  const effort = regexEffort();
  let at = from;
  while (at <= text.length) {
    const match = regex.exec(text, at, effort);
    if (match === undefined) return;
    effort.spend(STEPS_PER_MATCH);
    yield match;
    const [start = 0, end = 0] = match;
    // After an empty match, the next match begins one character later.
    at = end > start ? end : end + ((text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1);
  }
}

/**
 * Returns the text of a capturing group, or null if the group did not participate in the match.
 */
function groupText(text: string, match: RegexMatch, group: number): string | null {
  const start = match[2 * group] ?? -1;
  return start < 0 ? null : text.slice(start, match[2 * group + 1]);
}

/**
 * Returns the result of regexp_match: the texts of the groups, or the whole match if the pattern
 * has no groups.
 */
export function groupsOf(text: string, match: RegexMatch): Value[] {
  const count = match.length / 2 - 1;
  if (count === 0) return [groupText(text, match, 0)];
  return Array.from({ length: count }, (_, index) => groupText(text, match, index + 1));
}

function checkPositive(value: number, what: string): void {
  if (value >= 1) return;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot search the text: ${what} is ${value}, but must be at least 1`,
  );
}

function checkGroup(group: number): void {
  if (group >= 0) return;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot search the text: the group number is ${group}, but must not be negative`,
  );
}

/**
 * Yields the matches that begin at or after a position, which counts code points from 1. There are
 * no matches beyond the end of the string.
 */
function matchesFrom(regex: Regex, text: string, position: number): Iterable<RegexMatch> {
  checkPositive(position, "the start position");
  const isBeyond = position > 1 && sliceCodePoints(text, 0, position - 2).length === text.length;
  return isBeyond ? [] : matchesOf(regex, text, sliceCodePoints(text, 0, position - 1).length);
}

function countMatches([text = null, pattern = null, start = 1, flags]: readonly Value[]): Value {
  const source = text as string;
  const regex = regexWithoutGlobal("regexp_count", pattern, flags);
  const matches = matchesFrom(regex, source, start as number);
  let count = 0;
  for (const _ of matches) count += 1;
  return count;
}

interface WantedMatch {
  /** The name of the calling SQL function, for error messages. */
  readonly name: string;
  readonly start: number;
  readonly occurrence: number;
  readonly flags: Value | undefined;
}

function find(text: string, pattern: Value, wanted: WantedMatch): RegexMatch | undefined {
  checkPositive(wanted.occurrence, "the occurrence number");
  const regex = regexWithoutGlobal(wanted.name, pattern, wanted.flags);
  let seen = 0;
  for (const match of matchesFrom(regex, text, wanted.start)) {
    seen += 1;
    if (seen === wanted.occurrence) return match;
  }
  return undefined;
}

function instr(values: readonly Value[]): Value {
  const [text = null, pattern = null, start = 1, occurrence = 1, end = 0, flags, group = 0] =
    values;
  const source = text as string;
  if (end !== 0 && end !== 1) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot search the text: the end option is ${end as number}, but must be 0 or 1`,
    );
  }
  checkGroup(group as number);
  const match = find(source, pattern, {
    name: "regexp_instr",
    start: start as number,
    occurrence: occurrence as number,
    flags,
  });
  const slot = 2 * (group as number) + (end === 1 ? 1 : 0);
  const at = match?.[slot] ?? -1;
  return at < 0 ? 0 : Array.from(source.slice(0, at)).length + 1;
}

function substr(values: readonly Value[]): Value {
  const [text = null, pattern = null, start = 1, occurrence = 1, flags, group = 0] = values;
  const source = text as string;
  checkGroup(group as number);
  const match = find(source, pattern, {
    name: "regexp_substr",
    start: start as number,
    occurrence: occurrence as number,
    flags,
  });
  return match === undefined ? null : groupText(source, match, group as number);
}

interface Replacement {
  readonly start: number;
  /** The number of the match to replace, counted from 1, or 0 for all matches. */
  readonly occurrence: number;
  readonly flags: Value | undefined;
}

function replace(
  text: string,
  [pattern = null, by = null]: readonly Value[],
  how: Replacement,
): string {
  const regex = regexOf(pattern, how.flags);
  const parts = replacementParts(by as string);
  let result = "";
  let at = 0;
  let seen = 0;
  for (const match of matchesFrom(regex, text, how.start)) {
    seen += 1;
    if (how.occurrence !== 0 && seen < how.occurrence) continue;
    const [start = 0, end = 0] = match;
    result += text.slice(at, start);
    for (const part of parts) {
      result += typeof part === "string" ? part : (groupText(text, match, part) ?? "");
    }
    checkMadeLength(result.length);
    at = end;
    if (how.occurrence !== 0) break;
  }
  return result + text.slice(at);
}

/**
 * Parses a replacement: `\1` to `\9` are groups, `\&` is the whole match, and `\\` is a backslash.
 */
const replacementParts = remembering((text) => {
  const parts: (string | number)[] = [];
  for (const [part] of text.matchAll(/\\[\s\S]|\\|[^\\]+/g)) {
    const letter = part[1] ?? "";
    if (!part.startsWith("\\")) parts.push(part);
    else if (/[1-9]/.test(letter)) parts.push(Number(letter));
    else if (letter === "&") parts.push(0);
    else parts.push(letter === "\\" ? letter : part);
  }
  return parts;
});

function replaceWithFlags([
  text = null,
  pattern = null,
  by = null,
  flags,
]: readonly Value[]): string {
  const occurrence = typeof flags === "string" && flags.includes("g") ? 0 : 1;
  return replace(text as string, [pattern, by], {
    start: 1,
    occurrence,
    flags,
  });
}

function replaceFrom(values: readonly Value[]): string {
  const [text = null, pattern = null, by = null, start = 1, occurrence, flags] = values;
  const isAll = typeof flags === "string" && flags.includes("g");
  if (typeof occurrence === "number" && occurrence < 0) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot replace in the text: the occurrence number is ${occurrence}, but must not be ` +
        "negative",
    );
  }
  return replace(text as string, [pattern, by], {
    start: start as number,
    occurrence: (occurrence as number | undefined) ?? (isAll ? 0 : 1),
    flags,
  });
}

/**
 * Returns the parts of a text between the matches of a pattern. Empty matches at the start and at
 * the end do not split the text.
 */
export function splitByPattern(text: string, regex: Regex): string[] {
  const parts: string[] = [];
  let at = 0;
  for (const [start = 0, end = 0] of matchesOf(regex, text, 0)) {
    const isEmpty = start === end;
    if (isEmpty && (start === at || start >= text.length)) continue;
    parts.push(text.slice(at, start));
    checkMadeItems(parts.length);
    at = end;
  }
  parts.push(text.slice(at));
  return parts;
}

export const PATTERN_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["regexp_like"],
    overload(
      [TEXT, TEXT, TEXT],
      BOOLEAN,
      ([text = null, pattern = null, flags]) =>
        regexWithoutGlobal("regexp_like", pattern, flags).test(text as string),
      { optionalCount: 1 },
    ),
  ),
  ...functionsNamed(
    ["regexp_count"],
    overload([TEXT, TEXT, INT, TEXT], INT, countMatches, { optionalCount: 2 }),
  ),
  ...functionsNamed(
    ["regexp_instr"],
    overload([TEXT, TEXT, INT, INT, INT, TEXT, INT], INT, instr, {
      optionalCount: 5,
    }),
  ),
  ...functionsNamed(
    ["regexp_substr"],
    overload([TEXT, TEXT, INT, INT, TEXT, INT], TEXT, substr, {
      optionalCount: 4,
    }),
  ),
  ...functionsNamed(
    ["regexp_match"],
    overload(
      [TEXT, TEXT, TEXT],
      TEXT_ARRAY,
      ([text = null, pattern = null, flags]) => {
        const match = regexWithoutGlobal("regexp_match", pattern, flags).exec(text as string, 0);
        return match === undefined ? null : groupsOf(text as string, match);
      },
      { optionalCount: 1 },
    ),
  ),
  ...functionsNamed(
    ["regexp_replace"],
    overload([TEXT, TEXT, TEXT, TEXT], TEXT, replaceWithFlags, {
      optionalCount: 1,
    }),
    overload([TEXT, TEXT, TEXT, INT, INT, TEXT], TEXT, replaceFrom, {
      optionalCount: 2,
    }),
  ),
  ...functionsNamed(
    ["regexp_split_to_array"],
    overload(
      [TEXT, TEXT, TEXT],
      TEXT_ARRAY,
      ([text = null, pattern = null, flags]) =>
        splitByPattern(text as string, regexWithoutGlobal("regexp_split_to_array", pattern, flags)),
      { optionalCount: 1 },
    ),
  ),
];
