/** Defines functions on strings: case, padding, joining, quoting. Characters are code points. */
import { DatabaseError } from "../../../base/errors.ts";
import {
  BOOLEAN,
  BYTES,
  codePointLength,
  type DataType,
  INT,
  type NormalForm,
  normalized,
  outputText,
  sliceCodePoints,
  TEXT,
  type Value,
} from "../../../types/mod.ts";
import { trimBytes } from "../base/byte_edits.ts";
import { functionsNamed, overload } from "../base/define.ts";
import type { Overload, ScalarFunction, VectorFunction } from "../base/function.ts";
import { checkMadeLength } from "../base/made_length.ts";
import { formatText } from "./text_format.ts";
import { casesOf } from "./text_loops.ts";

/** Creates a function that converts one string to another. */
function onText(compute: (text: string) => string, evaluateVector?: VectorFunction): Overload {
  const options = evaluateVector === undefined ? {} : { evaluateVector };
  return overload([TEXT], TEXT, ([text = null]) => compute(text as string), options);
}

/**
 * Changes the case of each character separately. A character stays unchanged if its other case
 * consists of several characters.
 */
function mapCase(text: string, change: (text: string) => string): string {
  const mapped = change(text);
  // If the length is unchanged and there is no sigma, no character was expanded and none depended
  // on its neighbours.
  if (mapped.length === text.length && !/[\u03a3\u03c3\u03c2]/.test(text)) return mapped;
  return mapCharacters(text, (character) => {
    const other = change(character);
    return codePointLength(other) === 1 ? other : character;
  });
}

/**
 * The number of characters split off at a time. A string of one character takes fifty times as
 * much memory as a character within a longer string.
 */
const APART_MAX = 4096;

/** Divides a string into parts without splitting a surrogate pair. */
function partsOf(text: string): string[] {
  const parts: string[] = [];
  for (let start = 0; start < text.length; ) {
    let end = start + APART_MAX;
    if (end < text.length && isLeading(text.charCodeAt(end - 1))) end += 1;
    parts.push(text.slice(start, end));
    start = end;
  }
  return parts;
}

function isLeading(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function mapCharacters(text: string, change: (character: string) => string): string {
  return partsOf(text)
    .map((part) => Array.from(part, change).join(""))
    .join("");
}

function lower(text: string): string {
  return mapCase(text, (each) => each.toLowerCase());
}

function upper(text: string): string {
  return mapCase(text, (each) => each.toUpperCase());
}

const WORDS = /[\p{L}\p{N}]+/gu;

/** Capitalises the first letter of each word, and converts all other letters to lower case. */
function initcap(text: string): string {
  return text.replaceAll(WORDS, (word) => {
    const first = Array.from(word)[0] ?? "";
    return upper(first) + lower(word.slice(first.length));
  });
}

/**
 * Returns the function that changes case by the rules of a language; undefined if `name` is not a
 * function that changes case or there is no language.
 *
 * @param locale The BCP 47 tag of the language.
 */
export function caseFunctionFor(
  name: string,
  locale: string | undefined,
): ((values: readonly Value[]) => Value) | undefined {
  const change = locale === undefined ? undefined : CASES.get(name);
  if (change === undefined || locale === undefined) return undefined;
  return ([text = null]) => change(text as string, locale);
}

const CASES: ReadonlyMap<string, (text: string, locale: string) => string> = new Map([
  ["lower", (text: string, locale: string) => text.toLocaleLowerCase(locale)],
  ["upper", (text: string, locale: string) => text.toLocaleUpperCase(locale)],
  [
    "initcap",
    (text: string, locale: string) =>
      text.replaceAll(WORDS, (word) => {
        const first = Array.from(word)[0] ?? "";
        const rest = word.slice(first.length).toLocaleLowerCase(locale);
        return first.toLocaleUpperCase(locale) + rest;
      }),
  ],
]);

function concat(values: readonly Value[], types: readonly DataType[], separator: string): string {
  const texts: string[] = [];
  let length = 0;
  for (const [index, value] of values.entries()) {
    if (value === null) continue;
    const text = outputText(types[index] ?? TEXT, value);
    texts.push(text);
    length += text.length + separator.length;
  }
  checkMadeLength(length);
  return texts.join(separator);
}

/**
 * Returns the first `count` characters of a string. If `count` is negative, returns all but the
 * last -count characters.
 */
function left(text: string, count: number): string {
  return sliceCodePoints(text, 0, count < 0 ? codePointLength(text) + count : count);
}

function right(text: string, count: number): string {
  const length = codePointLength(text);
  return sliceCodePoints(text, count < 0 ? -count : length - count, length);
}

function pad(
  [text = null, wanted = null, fill = " "]: readonly Value[],
  side: "left" | "right",
): string {
  const source = text as string;
  const length = wanted as number;
  const filling = fill as string;
  checkMadeLength(length);
  const missing = length - codePointLength(source);
  if (missing <= 0) return sliceCodePoints(source, 0, length);
  if (filling === "") return source;
  const times = Math.ceil(missing / codePointLength(filling));
  const padding = sliceCodePoints(filling.repeat(times), 0, missing);
  return side === "left" ? padding + source : source + padding;
}

type TrimSide = "both" | "left" | "right";

function trim(text: string, characters: string, side: TrimSide): string {
  const removed = new CharacterPlaces(characters);
  const start = side === "right" ? 0 : startWithout(text, removed);
  return text.slice(start, side === "left" ? text.length : endWithout(text, start, removed));
}

/**
 * Returns the index of the first character to keep when the characters in `removed` are trimmed.
 */
function startWithout(text: string, removed: CharacterPlaces): number {
  let start = 0;
  while (start < text.length) {
    const code = text.codePointAt(start) ?? 0;
    if (removed.of(code) === -1) break;
    start += unitsOf(code);
  }
  return start;
}

/**
 * Returns the index after the last character to keep when the characters in `removed` are trimmed.
 */
function endWithout(text: string, start: number, removed: CharacterPlaces): number {
  let end = text.length;
  while (end > start) {
    const isPair = end - start > 1 && isLeading(text.charCodeAt(end - 2));
    const code = text.codePointAt(isPair ? end - 2 : end - 1) ?? 0;
    if (removed.of(code) === -1) break;
    end -= unitsOf(code);
  }
  return end;
}

function unitsOf(code: number): number {
  return code > 0xffff ? 2 : 1;
}

function trimming(side: TrimSide): readonly Overload[] {
  return [
    overload(
      [TEXT, TEXT],
      TEXT,
      ([text = null, characters = " "]) => trim(text as string, characters as string, side),
      { optionalCount: 1 },
    ),
    overload([BYTES, BYTES], BYTES, ([bytes = null, removed = null]) =>
      trimBytes(bytes as Uint8Array, removed as Uint8Array, side),
    ),
  ];
}

function translate([text = null, from = null, to = null]: readonly Value[]): string {
  const places = new CharacterPlaces(from as string);
  const targets = codePointsOf(to as string);
  const source = text as string;
  const written = new CharacterWriter(source.length);
  for (let at = 0; at < source.length; ) {
    const code = source.codePointAt(at) ?? 0;
    at += unitsOf(code);
    const place = places.of(code);
    const target = place === -1 ? code : targets[place];
    if (target !== undefined) written.add(target);
  }
  return written.toString();
}

function repeat([text = null, count = null]: readonly Value[]): string {
  const times = Math.max(0, count as number);
  checkMadeLength((text as string).length * times);
  return (text as string).repeat(times);
}

function replace([text = null, from = null, to = null]: readonly Value[]): string {
  const source = text as string;
  if (from === "") return source;
  checkMadeLength(replacedLength(source, from as string, to as string));
  return source.replaceAll(from as string, () => to as string);
}

/**
 * Returns the length of the result of a replacement before it is made. If the result is too long,
 * the runtime throws only after it has built most of it.
 */
function replacedLength(source: string, from: string, to: string): number {
  const growth = to.length - from.length;
  if (growth <= 0) return source.length;
  let count = 0;
  let at = source.indexOf(from);
  while (at !== -1) {
    count += 1;
    at = source.indexOf(from, at + from.length);
  }
  return source.length + count * growth;
}

function splitPart([text = null, separator = null, place = null]: readonly Value[]): string {
  const position = place as number;
  if (position === 0) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      "Cannot split the text: parts are numbered from 1, or from -1 at the end, so there is no " +
        "part 0",
    );
  }
  const parts = separator === "" ? [text as string] : (text as string).split(separator as string);
  return parts.at(position < 0 ? position : position - 1) ?? "";
}

function chr([value = null]: readonly Value[]): string {
  const code = value as number;
  const isCharacter = code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  if (isCharacter) return String.fromCodePoint(code);
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot create a character from the code ${code}: the code must be a Unicode code point ` +
      "other than 0",
  );
}

const FORMS: readonly NormalForm[] = ["NFC", "NFD", "NFKC", "NFKD"];

function isNormalized([text = null, form = "NFC"]: readonly Value[]): boolean {
  return normalizeText([text, form]) === text;
}

function normalizeText([text = null, form = "NFC"]: readonly Value[]): string {
  const name = (form as string).toUpperCase();
  const known = FORMS.find((each) => each === name);
  if (known !== undefined) return normalized(text as string, known);
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot normalize text to the form "${name}": the forms are NFC, NFD, NFKC and NFKD`,
  );
}

function reverse(text: string): string {
  const parts = partsOf(text).map((part) => Array.from(part).toReversed().join(""));
  return parts.toReversed().join("");
}

function inRadix(value: Value, bits: number): string {
  return BigInt.asUintN(bits, BigInt(value as number)).toString(16);
}

export const TEXT_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["lower"],
    onText(lower, (vector) => casesOf(vector, "lower")),
  ),
  ...functionsNamed(
    ["upper"],
    onText(upper, (vector) => casesOf(vector, "upper")),
  ),
  ...functionsNamed(["initcap"], onText(initcap)),
  ...functionsNamed(
    ["concat"],
    overload(["any"], TEXT, (values, _, types) => concat(values, types, ""), {
      variadic: "any",
      seesNull: true,
    }),
  ),
  ...functionsNamed(
    ["concat_ws"],
    overload(
      [TEXT, "any"],
      TEXT,
      ([separator = null, ...values], _, types) =>
        separator === null ? null : concat(values, types.slice(1), separator as string),
      { optionalCount: 1, variadic: "any", seesNull: true },
    ),
  ),
  ...functionsNamed(
    ["left"],
    overload([TEXT, INT], TEXT, ([text = null, count = null]) =>
      left(text as string, count as number),
    ),
  ),
  ...functionsNamed(
    ["right"],
    overload([TEXT, INT], TEXT, ([text = null, count = null]) =>
      right(text as string, count as number),
    ),
  ),
  ...functionsNamed(
    ["lpad"],
    overload([TEXT, INT, TEXT], TEXT, (values) => pad(values, "left"), { optionalCount: 1 }),
  ),
  ...functionsNamed(
    ["rpad"],
    overload([TEXT, INT, TEXT], TEXT, (values) => pad(values, "right"), { optionalCount: 1 }),
  ),
  ...functionsNamed(["btrim", "trim"], ...trimming("both")),
  ...functionsNamed(["ltrim"], ...trimming("left")),
  ...functionsNamed(["rtrim"], ...trimming("right")),
  ...functionsNamed(["replace"], overload([TEXT, TEXT, TEXT], TEXT, replace)),
  ...functionsNamed(["translate"], overload([TEXT, TEXT, TEXT], TEXT, translate)),
  ...functionsNamed(["repeat"], overload([TEXT, INT], TEXT, repeat)),
  ...functionsNamed(["reverse"], onText(reverse)),
  ...functionsNamed(["split_part"], overload([TEXT, TEXT, INT], TEXT, splitPart)),
  ...functionsNamed(
    ["starts_with"],
    overload([TEXT, TEXT], BOOLEAN, ([text = null, start = null]) =>
      (text as string).startsWith(start as string),
    ),
  ),
  ...functionsNamed(
    ["ends_with"],
    overload([TEXT, TEXT], BOOLEAN, ([text = null, end = null]) =>
      (text as string).endsWith(end as string),
    ),
  ),
  ...functionsNamed(
    ["ascii"],
    overload([TEXT], INT, ([text = null]) => (text as string).codePointAt(0) ?? 0),
  ),
  ...functionsNamed(["chr"], overload([INT], TEXT, chr)),
  ...functionsNamed(
    ["to_hex"],
    overload([INT], TEXT, ([value = null]) => inRadix(value, 32)),
    overload([{ kind: "bigint" }], TEXT, ([value = null]) => inRadix(value, 64)),
  ),
  ...functionsNamed(
    ["format"],
    overload([TEXT], TEXT, (values, _, types) => formatText(values, types), {
      variadic: "any",
      seesNull: true,
    }),
  ),
  ...functionsNamed(
    ["normalize"],
    overload([TEXT, TEXT], TEXT, normalizeText, { optionalCount: 1 }),
  ),
  ...functionsNamed(
    ["is_normalized"],
    overload([TEXT, TEXT], BOOLEAN, isNormalized, { optionalCount: 1 }),
  ),
];

/**
 * The maximum length of a string, in UTF-16 code units, for which a Map is smaller and faster than
 * a table of all code points.
 */
const MAPPED_MAX = 256;

const CODE_POINTS = 0x110000;

/**
 * Finds the first position of a character in a string, for functions that look up every character
 * of another string. Filling a Map with a million entries takes a fifth of a second. A table of
 * all code points is filled in milliseconds, but is too large for a short string.
 */
class CharacterPlaces {
  /**
   * The position of each code point, counted from 1; 0 for code points that the string does not
   * contain.
   */
  readonly #table: Int32Array | undefined;
  readonly #map: Map<number, number> | undefined;

  constructor(characters: string) {
    if (characters.length > MAPPED_MAX) this.#table = new Int32Array(CODE_POINTS);
    else this.#map = new Map();
    let place = 0;
    for (let at = 0; at < characters.length; at += 1) {
      const code = characters.codePointAt(at) ?? 0;
      if (code > 0xffff) at += 1;
      place += 1;
      this.#add(code, place);
    }
  }

  /**
   * Returns the position of a code point, counted from 0, or -1 if the string does not contain it.
   */
  of(code: number): number {
    return (this.#table?.[code] ?? this.#map?.get(code) ?? 0) - 1;
  }

  #add(code: number, place: number): void {
    if (this.of(code) !== -1) return;
    if (this.#table !== undefined) this.#table[code] = place;
    else this.#map?.set(code, place);
  }
}

/** Returns the code points of a string. */
function codePointsOf(text: string): Uint32Array {
  const codes = new Uint32Array(text.length);
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.codePointAt(at) ?? 0;
    if (code > 0xffff) at += 1;
    codes[count] = code;
    count += 1;
  }
  return codes.subarray(0, count);
}

/** Appends code points to a string without allocating an object for each. */
class CharacterWriter {
  readonly #units: Uint16Array;
  #length = 0;

  /** @param charactersMax The maximum number of code points to be added. */
  constructor(charactersMax: number) {
    this.#units = new Uint16Array(2 * charactersMax);
  }

  add(code: number): void {
    if (code <= 0xffff) {
      this.#units[this.#length] = code;
      this.#length += 1;
      return;
    }
    this.#units[this.#length] = 0xd800 + ((code - 0x10000) >> 10);
    this.#units[this.#length + 1] = 0xdc00 + ((code - 0x10000) & 0x3ff);
    this.#length += 2;
  }

  toString(): string {
    return Buffer.from(this.#units.buffer, 0, 2 * this.#length).toString("utf16le");
  }
}
