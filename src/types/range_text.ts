/**
 * Reads and writes the text forms of ranges, such as `[1,5)` and `empty`, and of multiranges, such
 * as `{[1,5),[7,9)}`. A bound with special characters is in quotes.
 */
import { DatabaseError } from "../base/errors.ts";
import { PARTS_OF_TEXT_MAX } from "../base/limits.ts";
import { type DataType, typeName } from "./data_type.ts";
import { excerpt } from "./excerpt.ts";
import {
  asRangeType,
  type Range,
  type RangeEnd,
  RangeMath,
  rangesOf,
  unboundedEnd,
  valueOfRanges,
} from "./range.ts";
import { writtenPart } from "./row_text.ts";
import type { Value } from "./value.ts";

export function textFromRange(
  type: DataType,
  value: Value,
  textOf: (bound: Value) => string,
): string {
  const texts = rangesOf(type, value).map(({ lower, upper }) => {
    const first = lower.value === null ? "" : quoted(textOf(lower.value));
    const last = upper.value === null ? "" : quoted(textOf(upper.value));
    return `${lower.isIncluded ? "[" : "("}${first},${last}${upper.isIncluded ? "]" : ")"}`;
  });
  if (type.kind === "multirange") return `{${texts.join(",")}}`;
  return texts[0] ?? "empty";
}

function quoted(text: string): string {
  if (text !== "" && !/["\\()[\],\s]/.test(text)) return text;
  return `"${text.replaceAll(/["\\]/g, "$&$&")}"`;
}

/**
 * Parses a range or a multirange. `read` converts each bound.
 *
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE, VALUE_TOO_LONG, and the errors of
 *   `read`.
 */
export function rangeFromText(
  type: DataType,
  text: string,
  read: (bound: string) => Value,
): string {
  return new RangeReader(type, text, read).value();
}

/** The characters that end a bound outside quotes. */
const BOUND_ENDS = ",)]";

const BLANK = /\s*/y;

class RangeReader {
  readonly #type: DataType;
  readonly #math: RangeMath;
  readonly #text: string;
  readonly #read: (bound: string) => Value;
  #at = 0;

  constructor(type: DataType, text: string, read: (bound: string) => Value) {
    this.#type = type;
    this.#math = new RangeMath(asRangeType(type));
    this.#text = text;
    this.#read = read;
  }

  value(): string {
    this.#skipBlank();
    const ranges = this.#type.kind === "range" ? this.#one() : this.#several();
    this.#skipBlank();
    if (this.#at < this.#text.length) throw this.#malformed();
    return valueOfRanges(this.#type, ranges);
  }

  #one(): Range[] {
    const range = this.#range();
    return range === undefined ? [] : [range];
  }

  #several(): Range[] {
    const ranges: Range[] = [];
    this.#require("{");
    this.#skipBlank();
    if (this.#accept("}")) return ranges;
    do {
      this.#skipBlank();
      const range = this.#range();
      if (range !== undefined) ranges.push(range);
      if (ranges.length > PARTS_OF_TEXT_MAX) {
        throw new DatabaseError(
          "VALUE_TOO_LONG",
          `Cannot read the text as a multirange: it has more than ${PARTS_OF_TEXT_MAX} ranges`,
        );
      }
      this.#skipBlank();
    } while (this.#accept(","));
    this.#require("}");
    return this.#math.union(ranges);
  }

  #range(): Range | undefined {
    if (/^empty(?![a-z])/i.test(this.#text.slice(this.#at, this.#at + "empty".length + 1))) {
      this.#at += "empty".length;
      return undefined;
    }
    const isLowerIncluded = this.#accept("[");
    if (!isLowerIncluded) this.#require("(");
    const first = this.#boundText();
    this.#require(",");
    const last = this.#boundText();
    const isUpperIncluded = this.#accept("]");
    if (!isUpperIncluded) this.#require(")");
    const lower = this.#end(first, isLowerIncluded, true);
    return this.#math.canonical(lower, this.#end(last, isUpperIncluded, false));
  }

  /** Reads the text of a bound; undefined if there is none. */
  #boundText(): string | undefined {
    const part = writtenPart(this.#text, this.#at, BOUND_ENDS);
    if (part === undefined) throw this.#malformed();
    const isEmpty = part.end === this.#at;
    this.#at = part.end;
    return isEmpty ? undefined : part.text;
  }

  #end(text: string | undefined, isIncluded: boolean, isLower: boolean): RangeEnd {
    if (text === undefined) return unboundedEnd(isLower);
    return { value: this.#read(text), isIncluded, isLower };
  }

  #accept(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #require(character: string): void {
    if (!this.#accept(character)) throw this.#malformed();
  }

  #skipBlank(): void {
    BLANK.lastIndex = this.#at;
    BLANK.test(this.#text);
    this.#at = BLANK.lastIndex;
  }

  #malformed(): DatabaseError {
    const example = this.#type.kind === "range" ? "'[1,5)' or 'empty'" : "'{[1,5),[7,9)}'";
    return new DatabaseError(
      "INVALID_VALUE",
      `Cannot read ${excerpt(this.#text)} as ${typeName(this.#type)}: expected a value such as ` +
        example,
    );
  }
}
