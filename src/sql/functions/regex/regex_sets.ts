/**
 * Implements the character sets of regular expressions as sorted, disjoint ranges of code points.
 */

/**
 * Ranges `[first, last, first, last, …]` with inclusive bounds, in ascending order. No two ranges
 * are adjacent.
 */
export type CharacterSet = readonly number[];

const CODE_POINT_MAX = 0x10ffff;
const NEWLINE = 0x0a;

/**
 * The last code point whose case variants are considered. No script beyond it that is likely to
 * occur in SQL text has case.
 */
const CASED_MAX = 0x1ffff;

export function setOfRanges(ranges: readonly (readonly [number, number])[]): CharacterSet {
  const sorted = ranges.toSorted((left, right) => left[0] - right[0]);
  const set: number[] = [];
  for (const [first, last] of sorted) {
    const end = set.at(-1);
    if (end !== undefined && first <= end + 1) set[set.length - 1] = Math.max(end, last);
    else set.push(first, last);
  }
  return set;
}

/**
 * Returns the union of character sets. A set that is listed several times, as character classes
 * often are, is processed only once.
 */
export function unionOfSets(sets: readonly CharacterSet[]): CharacterSet {
  return setOfRanges(Array.from(new Set(sets)).flatMap(rangesOf));
}

function rangesOf(set: CharacterSet): [number, number][] {
  const ranges: [number, number][] = [];
  for (let i = 0; i < set.length; i += 2) ranges.push([set[i] ?? 0, set[i + 1] ?? 0]);
  return ranges;
}

export function invertedSet(set: CharacterSet): CharacterSet {
  const ranges: [number, number][] = [];
  let next = 0;
  for (const [first, last] of rangesOf(set)) {
    if (first > next) ranges.push([next, first - 1]);
    next = last + 1;
  }
  if (next <= CODE_POINT_MAX) ranges.push([next, CODE_POINT_MAX]);
  return setOfRanges(ranges);
}

export function hasCharacter(set: CharacterSet, code: number): boolean {
  let low = 0;
  let high = set.length / 2 - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (code < (set[2 * middle] ?? 0)) high = middle - 1;
    else if (code > (set[2 * middle + 1] ?? 0)) low = middle + 1;
    else return true;
  }
  return false;
}

export function setOfCharacter(code: number): CharacterSet {
  return [code, code];
}

/**
 * The maximum size of a character set for which case variants are computed character by character.
 */
const ASKED_MAX = 64;

/** Adds the case variants of every character to a set. */
export function withBothCases(set: CharacterSet): CharacterSet {
  const ranges = rangesOf(set);
  const others: number[] = [];
  if (sizeOfSet(set) <= ASKED_MAX) {
    for (const [first, last] of ranges) {
      for (let code = first; code <= Math.min(last, CASED_MAX); code += 1) {
        others.push(...otherCasesOf(code));
      }
    }
  } else {
    for (const [code, cases] of casedCharacters())
      if (hasCharacter(set, code)) others.push(...cases);
  }
  for (const other of others) ranges.push([other, other]);
  return setOfRanges(ranges);
}

/** Returns the number of characters in a character set. */
export function sizeOfSet(set: CharacterSet): number {
  return rangesOf(set).reduce((size, [first, last]) => size + last - first + 1, 0);
}

function otherCasesOf(code: number): number[] {
  const character = String.fromCodePoint(code);
  return [character.toLowerCase(), character.toUpperCase()].flatMap((variant) => {
    const other = variant.codePointAt(0) ?? code;
    // A case variant that consists of several characters does not count.
    const isOne = other !== code && variant.length === String.fromCodePoint(other).length;
    return isOne ? [other] : [];
  });
}

let cased: ReadonlyMap<number, readonly number[]> | undefined;

/**
 * Returns the roughly three thousand characters that have a case variant. They are computed once.
 */
function casedCharacters(): ReadonlyMap<number, readonly number[]> {
  if (cased !== undefined) return cased;
  const found = new Map<number, readonly number[]>();
  for (const character of charactersLike(/[\p{CWL}\p{CWU}]/gu)) {
    const code = character.codePointAt(0) ?? 0;
    const cases = otherCasesOf(code);
    if (cases.length > 0) found.set(code, cases);
  }
  cased = found;
  return found;
}

const known = new Map<string, CharacterSet>();

/**
 * Returns the characters that have a Unicode property. The planes that contain letters are scanned
 * once per property.
 */
function setOfProperty(property: string): CharacterSet {
  const found = known.get(property);
  if (found !== undefined) return found;
  const runs = charactersLike(new RegExp(`[${property}]+`, "gu"));
  const set = setOfRanges(runs.map((run): [number, number] => [codeAt(run, 0), lastCodeOf(run)]));
  known.set(property, set);
  return set;
}

/** The ranges below and above the surrogates, which are not characters. */
const PLANES = [
  [0, 0xd7ff],
  [0xe000, CASED_MAX],
] as const;

/**
 * Returns the characters that match a regular expression. Applying the expression to one string of
 * all characters takes a tenth of the time of testing each character.
 */
function charactersLike(expression: RegExp): string[] {
  return PLANES.flatMap(([first, last]) => {
    let text = "";
    for (let code = first; code <= last; code += 1) text += String.fromCodePoint(code);
    return text.match(expression) ?? [];
  });
}

function codeAt(text: string, index: number): number {
  return text.codePointAt(index) ?? 0;
}

function lastCodeOf(text: string): number {
  const last = codeAt(text, text.length - 1);
  return last >= 0xdc00 && last <= 0xdfff ? codeAt(text, text.length - 2) : last;
}

const PROPERTIES: Readonly<Record<string, string>> = {
  alpha: String.raw`\p{L}`,
  digit: "0-9",
  alnum: String.raw`\p{L}\p{Nd}`,
  upper: String.raw`\p{Lu}`,
  lower: String.raw`\p{Ll}`,
  space: String.raw`\t-\r\u0020\u0085\u2028\u2029\u3000`,
  blank: String.raw`\t `,
  punct: String.raw`!-\/:-@\[-\x60\{-~`,
  cntrl: String.raw`\x00-\x1f\x7f`,
  print: String.raw`\p{L}\p{M}\p{N}\p{P}\p{S}\p{Zs}`,
  graph: String.raw`\p{L}\p{M}\p{N}\p{P}\p{S}`,
  xdigit: "0-9A-Fa-f",
  word: String.raw`\p{L}\p{Nd}_`,
};

/**
 * Returns the character set for a POSIX class name or for `word`; undefined for any other name.
 */
export function setOfClass(name: string): CharacterSet | undefined {
  const property = PROPERTIES[name];
  return property === undefined ? undefined : setOfProperty(property);
}

export const NEWLINE_SET: CharacterSet = [NEWLINE, NEWLINE];
export const EVERY_CHARACTER: CharacterSet = [0, CODE_POINT_MAX];

export function isWordCharacter(code: number): boolean {
  if (code < 128) {
    const letter = code | 0x20;
    return (letter >= 0x61 && letter <= 0x7a) || (code >= 0x30 && code <= 0x39) || code === 0x5f;
  }
  return hasCharacter(setOfClass("word") ?? [], code);
}
