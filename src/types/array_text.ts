/**
 * Reads and writes the text form of arrays: `{1,NULL,"a b"}`, or `{{1,2},{3,4}}` for two
 * dimensions. Boxes are separated by semicolons.
 *
 * Subscripts start at 1. A string with explicit bounds, such as `[1:2]={a,b}`, is accepted only if
 * all lower bounds are 1.
 */
import { DatabaseError } from "../base/errors.ts";
import { PARTS_OF_TEXT_MAX } from "../base/limits.ts";
import {
  type ArrayValue,
  DIMENSIONS_MAX,
  dimensionsOf,
  isArrayValue,
  isSameShape,
  tooDeep,
} from "./array_shape.ts";
import type { DataType } from "./data_type.ts";
import { excerpt } from "./excerpt.ts";
import type { Value } from "./value.ts";

export type ArraySeparator = "," | ";";

/**
 * Returns the separator between the elements of an array's text form. It is a semicolon for boxes,
 * because these contain commas.
 */
export function arraySeparator(element: DataType): ArraySeparator {
  return element.kind === "box" ? ";" : ",";
}

export function textFromArray(
  array: ArrayValue,
  textOf: (element: Value) => string,
  separator: ArraySeparator = ",",
): string {
  const items = array.map((item) => {
    if (item === null) return "NULL";
    return isArrayValue(item)
      ? textFromArray(item, textOf, separator)
      : quoted(textOf(item), separator);
  });
  return `{${items.join(separator)}}`;
}

function quoted(text: string, separator: ArraySeparator): string {
  if (text !== "" && !SPECIAL[separator].test(text) && text.toUpperCase() !== "NULL") return text;
  return `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}

/**
 * Reads an array. `read` converts each element.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_TOO_LONG, and the errors of `read`.
 */
export function arrayFromText(
  text: string,
  read: (element: string) => Value,
  separator: ArraySeparator = ",",
): ArrayValue {
  return new ArrayReader(text, read, separator).array();
}

/** Matches the bounds in front of an array, such as `[1:2][1:3]=`, including whitespace. */
const BOUNDS = /^\s*((?:\[\s*[+-]?\d+\s*(?::\s*[+-]?\d+\s*)?\]\s*)+)=\s*/;

const BOUND = /\[\s*([+-]?\d+)\s*(?::\s*([+-]?\d+)\s*)?\]/g;

/**
 * For each separator, matches an element together with the character that ends it. Each space can
 * match only one part of the pattern, so matching never backtracks.
 */
const ELEMENTS: Readonly<Record<ArraySeparator, RegExp>> = {
  ",": /\s*(?:"((?:[^"\\]|\\[\s\S])*)"\s*|((?:[^\s{}",\\]|\\[\s\S])(?:[^{}",\\]|\\[\s\S])*))(?=[,}])/y,
  ";": /\s*(?:"((?:[^"\\]|\\[\s\S])*)"\s*|((?:[^\s{}";\\]|\\[\s\S])(?:[^{}";\\]|\\[\s\S])*))(?=[;}])/y,
};

/** For each separator, matches the characters that require an element to be quoted. */
const SPECIAL: Readonly<Record<ArraySeparator, RegExp>> = {
  ",": /[{}",\\\s]/,
  ";": /[{}";\\\s]/,
};

const BLANK = /\s*/y;

class ArrayReader {
  readonly #text: string;
  readonly #read: (element: string) => Value;
  readonly #separator: ArraySeparator;
  #at = 0;
  #count = 0;

  constructor(text: string, read: (element: string) => Value, separator: ArraySeparator) {
    this.#text = text;
    this.#read = read;
    this.#separator = separator;
  }

  array(): ArrayValue {
    const bounds = this.#bounds();
    this.#skipBlank();
    const items = this.#items(1);
    this.#skipBlank();
    if (this.#at < this.#text.length) throw this.#malformed();
    const dimensions = dimensionsOf(items);
    if (items.length > 0 && !isRegular(items, dimensions)) {
      throw new DatabaseError(
        "INVALID_VALUE",
        `Cannot read ${excerpt(this.#text)} as an array: its subarrays must all have the same ` +
          "dimensions",
      );
    }
    if (bounds !== undefined && !isSameShape(bounds.lengths, dimensions)) {
      throw new DatabaseError(
        "INVALID_VALUE",
        `Cannot read ${excerpt(this.#text)} as an array: its bounds do not match the number of ` +
          "elements",
      );
    }
    if (bounds?.areFromOne === false) {
      throw new DatabaseError(
        "UNSUPPORTED_FEATURE",
        `Cannot read ${excerpt(this.#text)} as an array: it has a lower bound other than 1, ` +
          "but all arrays start at position 1",
        { hint: "omit the bounds" },
      );
    }
    return items;
  }

  /**
   * Reads the bounds in front of an array. Returns the lengths that the bounds declare, and
   * whether all lower bounds are 1.
   */
  #bounds(): { lengths: number[]; areFromOne: boolean } | undefined {
    const found = BOUNDS.exec(this.#text);
    if (found === null) return undefined;
    this.#at = found[0].length;
    const pairs = [...(found[1] ?? "").matchAll(BOUND)].map(([, low = "", high]) =>
      high === undefined ? [1, Number(low)] : [Number(low), Number(high)],
    );
    return {
      lengths: pairs.map(([low = 1, high = 0]) => high - low + 1),
      areFromOne: pairs.every(([low]) => low === 1),
    };
  }

  #items(depth: number): Value[] {
    if (this.#text[this.#at] !== "{") throw this.#malformed();
    if (depth > DIMENSIONS_MAX) throw tooDeep(depth);
    this.#at += 1;
    const items: Value[] = [];
    this.#skipBlank();
    if (this.#text[this.#at] === "}" && depth === 1) {
      this.#at += 1;
      return items;
    }
    for (;;) {
      this.#skipBlank();
      items.push(this.#text[this.#at] === "{" ? this.#items(depth + 1) : this.#element());
      this.#skipBlank();
      const next = this.#text[this.#at];
      this.#at += 1;
      if (next === "}") return items;
      if (next !== this.#separator) throw this.#malformed();
    }
  }

  #element(): Value {
    const element = ELEMENTS[this.#separator];
    element.lastIndex = this.#at;
    const match = element.exec(this.#text);
    if (match === null) throw this.#malformed();
    this.#at = element.lastIndex;
    this.#count += 1;
    if (this.#count > PARTS_OF_TEXT_MAX) {
      throw new DatabaseError(
        "VALUE_TOO_LONG",
        `Cannot read the text as an array: it has more than ${PARTS_OF_TEXT_MAX} elements`,
      );
    }
    const [, inQuotes] = match;
    if (inQuotes !== undefined) return this.#read(unescaped(inQuotes));
    const bare = (match[2] ?? "").trimEnd();
    return bare.toUpperCase() === "NULL" ? null : this.#read(unescaped(bare));
  }

  #skipBlank(): void {
    BLANK.lastIndex = this.#at;
    BLANK.test(this.#text);
    this.#at = BLANK.lastIndex;
  }

  #malformed(): DatabaseError {
    return new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(this.#text)} as an array: the elements must be in braces, as in ` +
        "'{1,2,NULL}'",
    );
  }
}

/** Whether all sub-arrays have the given dimensions. */
function isRegular(items: ArrayValue, [length, ...rest]: readonly number[]): boolean {
  if (items.length !== length) return false;
  if (rest.length === 0) return !items.some(isArrayValue);
  return items.every((item) => isArrayValue(item) && isRegular(item, rest));
}

function unescaped(text: string): string {
  return text.includes("\\") ? text.replaceAll(/\\([\s\S])/g, "$1") : text;
}
