/**
 * Reads a long VALUES list of plain literals directly from the bytes of the SQL. For each cell, it
 * records the kind and the range in the text, without creating tokens or strings.
 *
 * The scanner supports the usual contents of bulk loads, and stops at anything else (a parameter,
 * a call, a cast, a block comment, `0xff`, `1_000`, `$$…$$`, joined strings, a row of a different
 * length). The ordinary parser then reads the list and reports errors. Text that the scanner
 * accepts must therefore mean the same to both.
 *
 * Reading bulk loads this way takes a fraction of the time that tokens would take.
 */
import { assert } from "../../../base/assert.ts";
import { LiteralCell, type LiteralList } from "../ast/ast.ts";
import { isDigit } from "./characters.ts";
import { decodeString } from "./literals.ts";

/** A list of literals, and the offset after it. */
export interface ScannedList {
  readonly list: LiteralList;
  /** The offset in the text after the last parenthesis of the list. */
  readonly end: number;
}

const NONE = -1;
const CELLS_MIN = 128;

/**
 * The maximum number of cells for which the buffers are kept for the next list. At nine bytes per
 * cell, they take about half a megabyte.
 */
const CELLS_KEPT_MAX = 65_536;

/** The number of cells above which the capacity doubles at each step. */
const CELLS_MANY = 65_536;

/**
 * The factor by which the capacity of shorter lists grows. The initial capacity does not depend on
 * the length of the text. If it did, a text with thousands of short lists would allocate capacity
 * for the whole text for each of them.
 */
const GROWTH = 8;

/**
 * The distance in bytes up to which a loop finds a byte faster than a call of a search function.
 */
const NEAR_BYTES_MAX = 16;

const NEWLINE = 10;
const SPACE = 32;
const QUOTE = 39;
const OPEN = 40;
const CLOSE = 41;
const COMMA = 44;
const OPEN_BRACKET = 91;
const CLOSE_BRACKET = 93;
const MINUS = 45;
const DOT = 46;
const BACKSLASH = 92;
const LOWER_E = 101;

interface CellWord {
  readonly letters: Buffer;
  readonly kind: number;
}

/** The words that may be cells, indexed by the code of their first letter. */
const WORDS: readonly (CellWord | undefined)[] = Array.from({ length: 256 }, (_, code) => {
  const letter = String.fromCharCode(code);
  const word = (["null", "true", "false", "default"] as const).find((it) => it[0] === letter);
  return word === undefined ? undefined : { letters: Buffer.from(word), kind: LiteralCell[word] };
});

/**
 * A text as UTF-8, which is either given or encoded on first use. Offsets must be converted in
 * ascending order.
 */
export class Utf8Text {
  readonly text: string;
  #bytes: Buffer | undefined;
  /**
   * The most recently converted position in UTF-16 units. `#byte` is the same position in bytes.
   */
  #unit = 0;
  #byte = 0;

  constructor(text: string, utf8?: Uint8Array) {
    this.text = text;
    if (utf8 === undefined) return;
    assert(utf8.length >= text.length, "literal list: UTF-8 text is shorter than its UTF-16 form");
    this.#bytes = Buffer.from(utf8.buffer, utf8.byteOffset, utf8.byteLength);
  }

  /** The UTF-8 bytes; undefined for a text with an unpaired surrogate, which has no UTF-8 form. */
  get bytes(): Buffer | undefined {
    if (this.#bytes !== undefined) return this.#bytes;
    const bytes = Buffer.from(this.text, "utf8");
    if (bytes.length !== this.text.length && !this.text.isWellFormed()) return undefined;
    this.#bytes = bytes;
    return bytes;
  }

  /**
   * Converts an offset in the text to an offset in bytes. It must not be less than the previous
   * one.
   */
  byteAt(unit: number): number {
    assert(unit >= this.#unit, "literal list: offsets are not in ascending order");
    this.#byte += this.#isAscii
      ? unit - this.#unit
      : Buffer.byteLength(this.text.slice(this.#unit, unit));
    this.#unit = unit;
    return this.#byte;
  }

  /**
   * Converts an offset in bytes to an offset in the text. It must not be less than the previous
   * one.
   */
  unitAt(byte: number): number {
    assert(byte >= this.#byte, "literal list: offsets are not in ascending order");
    this.#unit += this.#isAscii
      ? byte - this.#byte
      : unitCount(this.bytes ?? Buffer.alloc(0), this.#byte, byte);
    this.#byte = byte;
    return this.#unit;
  }

  get #isAscii(): boolean {
    return this.bytes?.length === this.text.length;
  }
}

/** Returns the number of UTF-16 units in a range of UTF-8 bytes. */
function unitCount(bytes: Uint8Array, start: number, end: number): number {
  return textIn(bytes, "utf8", start, end).length;
}

/**
 * Decodes a range of bytes. Bytes transferred to another thread are no longer a Buffer, so any
 * Uint8Array is accepted.
 */
export function textIn(
  bytes: Uint8Array,
  encoding: "latin1" | "utf8",
  start: number,
  end: number,
): string {
  const { buffer, byteLength, byteOffset } = bytes;
  const held = bytes instanceof Buffer ? bytes : Buffer.from(buffer, byteOffset, byteLength);
  return held.toString(encoding, start, end);
}

/**
 * Reads the rows after the word VALUES, which ends at the offset `from`. Returns undefined if the
 * list contains anything that the scanner does not support.
 */
export function scanLiteralList(source: Utf8Text, from: number): ScannedList | undefined {
  const { bytes } = source;
  if (bytes === undefined) return undefined;
  const scanner = new LiteralScanner(bytes);
  const end = scanner.rows(source.byteAt(from));
  return end === NONE ? undefined : { list: scanner.list(), end: source.unitAt(end) };
}

/**
 * Reads `( literal, … )` at the offset `from` as a single column. Returns undefined if the list
 * contains anything that the scanner does not support.
 */
export function scanLiteralItems(source: Utf8Text, from: number): ScannedList | undefined {
  return scanColumn(source, { from, open: OPEN, close: CLOSE });
}

/**
 * Reads `[ literal, … ]` at the offset `from` as a single column. Returns undefined if the list
 * contains anything that the scanner does not support.
 */
export function scanLiteralElements(source: Utf8Text, from: number): ScannedList | undefined {
  return scanColumn(source, { from, open: OPEN_BRACKET, close: CLOSE_BRACKET });
}

function scanColumn(
  source: Utf8Text,
  { close, from, open }: { from: number; open: number; close: number },
): ScannedList | undefined {
  const { bytes } = source;
  if (bytes === undefined) return undefined;
  const start = skipSpace(bytes, source.byteAt(from));
  if (bytes[start] !== open) return undefined;
  const scanner = new LiteralScanner(bytes);
  const end = scanner.row(start, close);
  const list = end === NONE ? undefined : scanner.column();
  return list === undefined ? undefined : { list, end: source.unitAt(end) };
}

/**
 * Asserts that the bytes of a list are still available. The bytes of a request are released after
 * the response; a cell that was read afterwards would appear empty.
 */
export function assertHeld({ bytes }: LiteralList): void {
  assert(bytes.length > 0, "literal list: list read after its text was released");
}

/**
 * Returns the digits of a number with its sign, the value of a string, or "" for any other cell.
 */
export function literalText(list: LiteralList, cell: number): string {
  assertHeld(list);
  const { bytes, ends, kinds, starts } = list;
  const start = starts[cell] ?? 0;
  const end = ends[cell] ?? 0;
  switch (kinds[cell]) {
    case LiteralCell.integer:
    case LiteralCell.numeric:
      return textIn(bytes, "latin1", start, end);
    case LiteralCell.string:
      return textIn(bytes, "utf8", start + 1, end - 1);
    case LiteralCell.encodedString: {
      const text = textIn(bytes, "utf8", start, end);
      return decodeString({ text, start: 0, end: text.length }, unreadable);
    }
    default:
      return "";
  }
}

// Throws for a cell that cannot be decoded. The scanner accepts only valid escapes, so no cell
// should ever get here.
function unreadable(): never {
  throw new TypeError("literal list: cannot decode a scanned string");
}

/** Returns the offset of a cell in the SQL of the request. */
export function literalPosition(list: LiteralList, cell: number): number {
  assertHeld(list);
  const { bytes, starts } = list;
  return unitCount(bytes, 0, starts[cell] ?? 0);
}

/** The properties of all cells in a list, as one array for each property. */
interface CellColumns {
  readonly kinds: Uint8Array;
  readonly starts: Int32Array;
  readonly ends: Int32Array;
}

/**
 * A buffer shared by all lists. A list is scanned into it within one tick, and then copied to its
 * exact size. Allocating memory for each list would cost more than this copy.
 */
let desk: CellColumns = cellColumns(CELLS_MIN);

function cellColumns(capacity: number): CellColumns {
  return {
    kinds: new Uint8Array(capacity),
    starts: new Int32Array(capacity),
    ends: new Int32Array(capacity),
  };
}

class LiteralScanner {
  readonly #bytes: Buffer;
  #kinds = desk.kinds;
  #starts = desk.starts;
  #ends = desk.ends;
  #count = 0;
  #rowCount = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  list(): LiteralList {
    return {
      rowCount: this.#rowCount,
      columnCount: this.#count / this.#rowCount,
      kinds: this.#kinds.slice(0, this.#count),
      bytes: this.#bytes,
      starts: this.#starts.slice(0, this.#count),
      ends: this.#ends.slice(0, this.#count),
    };
  }

  /**
   * Returns the cells as a single column, or undefined if one of them is DEFAULT, which is not an
   * expression.
   */
  column(): LiteralList | undefined {
    const rowCount = this.#count;
    const kinds = this.#kinds.slice(0, rowCount);
    if (kinds.includes(LiteralCell.default)) return undefined;
    const starts = this.#starts.slice(0, rowCount);
    const ends = this.#ends.slice(0, rowCount);
    return { rowCount, columnCount: 1, kinds, bytes: this.#bytes, starts, ends };
  }

  /** Reads all rows. Returns the offset after the last one. */
  rows(from: number): number {
    const bytes = this.#bytes;
    let columnCount = 0;
    let end = NONE;
    let at = from - 1;
    do {
      at = skipSpace(bytes, at + 1);
      if (bytes[at] !== OPEN) return NONE;
      at = this.row(at);
      if (at === NONE) return NONE;
      this.#rowCount += 1;
      if (this.#rowCount === 1) columnCount = this.#count;
      if (this.#count !== this.#rowCount * columnCount) return NONE;
      end = at;
      at = skipSpace(bytes, at);
    } while (bytes[at] === COMMA);
    return end;
  }

  /** Reads the row that begins at `open`. Returns the offset after the row. */
  row(open: number, close: number = CLOSE): number {
    const bytes = this.#bytes;
    let at = open;
    let code: number | undefined;
    do {
      at += 1;
      if (bytes[at] === SPACE) at += 1;
      code = bytes[at] ?? 0;
      // Most lists have no optional whitespace, so this call is rarely needed.
      if (code <= SPACE || code === MINUS) {
        at = skipSpace(bytes, at);
        code = bytes[at] ?? 0;
      }
      const end = this.#cell(at, code);
      if (end === NONE) return NONE;
      this.#starts[this.#count] = at;
      this.#ends[this.#count] = end;
      this.#count += 1;
      at = end;
      code = bytes[at];
      if (code !== COMMA && code !== close) {
        at = skipSpace(bytes, at);
        code = bytes[at];
      }
    } while (code === COMMA);
    return code === close ? at + 1 : NONE;
  }

  /**
   * Stores the kind of the cell that begins at `at`, and returns the offset after the cell. The
   * arrays must have room for it.
   */
  #cell(at: number, code: number): number {
    if (code === QUOTE) return this.#string(at);
    if (isDigit(code) || code === MINUS || code === DOT) return this.#number(at);
    if ((code | SPACE) === LOWER_E) return this.#escapedString(at + 1);
    const word = WORDS[code | SPACE];
    if (word === undefined || !isWordAt(this.#bytes, word.letters, at)) return NONE;
    this.#note(word.kind);
    return at + word.letters.length;
  }

  #string(quote: number): number {
    const bytes = this.#bytes;
    let kind: number = LiteralCell.string;
    let end = nextQuote(bytes, quote + 1);
    while (end !== -1 && bytes[end + 1] === QUOTE) {
      kind = LiteralCell.encodedString;
      end = nextQuote(bytes, end + 2);
    }
    if (end === -1) return NONE;
    this.#note(kind);
    return end + 1;
  }

  /**
   * Reads a string E'…' in which every backslash is followed by a single-character escape. Such
   * escapes are always valid.
   */
  #escapedString(quote: number): number {
    const bytes = this.#bytes;
    if (bytes[quote] !== QUOTE) return NONE;
    let at = quote + 1;
    while (at < bytes.length && (bytes[at] !== QUOTE || bytes[at + 1] === QUOTE)) {
      const code = bytes[at];
      const next = bytes[at + 1] ?? 0;
      if (code === BACKSLASH && (isDigit(next) || next === 85 || next === 117 || next === 120)) {
        return NONE;
      }
      at += code === BACKSLASH || code === QUOTE ? 2 : 1;
    }
    if (at >= bytes.length) return NONE;
    this.#note(LiteralCell.encodedString);
    return at + 1;
  }

  #number(start: number): number {
    const bytes = this.#bytes;
    const first = bytes[start] === MINUS ? start + 1 : start;
    let kind: number = LiteralCell.integer;
    let at = skipDigits(bytes, first);
    let digitCount = at - first;
    if (bytes[at] === DOT) {
      kind = LiteralCell.numeric;
      const point = at;
      at = skipDigits(bytes, point + 1);
      digitCount += at - point - 1;
    }
    if (digitCount === 0) return NONE;
    if (((bytes[at] ?? 0) | SPACE) === LOWER_E) {
      kind = LiteralCell.numeric;
      const sign = bytes[at + 1];
      const exponent = sign === MINUS || sign === 43 ? at + 2 : at + 1;
      at = skipDigits(bytes, exponent);
      if (at === exponent) return NONE;
    }
    this.#note(kind);
    return at;
  }

  #note(kind: number): void {
    if (this.#count === this.#kinds.length) this.#grow();
    this.#kinds[this.#count] = kind;
  }

  #grow(): void {
    const { length } = this.#kinds;
    const capacity = length * (length * GROWTH < CELLS_MANY ? GROWTH : 2);
    const larger = cellColumns(capacity);
    larger.kinds.set(this.#kinds);
    larger.starts.set(this.#starts);
    larger.ends.set(this.#ends);
    this.#kinds = larger.kinds;
    this.#starts = larger.starts;
    this.#ends = larger.ends;
    if (capacity <= CELLS_KEPT_MAX) desk = larger;
  }
}

/** Returns the offset after any whitespace and line comments. */
function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  for (;;) {
    const code = bytes[at] ?? 0;
    if (code === SPACE || (code >= 9 && code <= 13)) at += 1;
    else if (code === MINUS && bytes[at + 1] === MINUS) {
      const end = bytes.indexOf(NEWLINE, at + 2);
      at = end === -1 ? bytes.length : end + 1;
    } else return at;
  }
}

/** Returns the offset of the first quote at or after `from`, or -1 if no quote follows. */
function nextQuote(bytes: Buffer, from: number): number {
  const near = Math.min(from + NEAR_BYTES_MAX, bytes.length);
  for (let at = from; at < near; at += 1) if (bytes[at] === QUOTE) return at;
  return bytes.indexOf(QUOTE, near);
}

function skipDigits(bytes: Buffer, from: number): number {
  let at = from;
  while (isDigit(bytes[at] ?? 0)) at += 1;
  return at;
}

/**
 * Whether a word occurs at an offset, ignoring case. The character after the word is not checked.
 */
function isWordAt(bytes: Buffer, word: Buffer, at: number): boolean {
  for (let index = 0; index < word.length; index += 1) {
    if (((bytes[at + index] ?? 0) | SPACE) !== word[index]) return false;
  }
  return true;
}
