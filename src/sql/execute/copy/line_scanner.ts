/**
 * Scans data in PostgreSQL's text and csv formats for COPY FROM. Each byte is scanned only once,
 * and nothing is decoded.
 *
 *     text   a⇥\N⇥c\td↵        cells end at delimiters; a backslash encodes the character after it
 *     csv    a,"b ""c""",↵     cells may be quoted, in whole or in part; quotes may hold line ends
 *
 * A line ends with a line feed, or with a carriage return and a line feed.
 */
import { isUtf8 } from "node:buffer";
import { DatabaseError } from "../../../base/errors.ts";
import type { CopySettings } from "../../parse/ast/ast.ts";
import { type CellRange, CopyCell, type CopyCells, type CopyScanner } from "./copy_cells.ts";
import { type CopyPlace, copyFault } from "./copy_fault.ts";

const LINE_FEED = 10;
const RETURN = 13;
const BACKSLASH = 92;
const DOT = 46;

/** The result of scanning a row that does not end within the buffer. */
const UNFINISHED = -1;

export interface LineScannerOptions {
  readonly options: CopySettings;
  /** The names of the columns to which the cells belong, in order. */
  readonly columns: readonly string[];
  /** Indicates for each column whether the NULL string is read as an ordinary string. */
  readonly neverNull: readonly boolean[];
  /** Indicates for each column whether the NULL string means NULL even in quotes. */
  readonly alwaysNull: readonly boolean[];
}

export class LineScanner implements CopyScanner {
  isEnded = false;
  readonly isJson = false;
  readonly #isCsv: boolean;
  readonly #delimiter: number;
  readonly #quote: number;
  readonly #escape: number;
  readonly #nullText: Buffer;
  readonly #defaultText: Buffer | undefined;
  readonly #options: LineScannerOptions;
  #line = 1;
  #isBeforeHeader: boolean;
  #fault: Error | undefined;
  /** Whether the most recently scanned cell or quoted part has to be decoded. */
  #hasEscapes = false;

  constructor(options: LineScannerOptions) {
    const { defaultText, delimiter, escape, format, header, nullText, quote } = options.options;
    this.#options = options;
    this.#isCsv = format === "csv";
    this.#delimiter = delimiter.charCodeAt(0);
    this.#quote = quote.charCodeAt(0);
    this.#escape = escape.charCodeAt(0);
    this.#nullText = Buffer.from(nullText);
    this.#defaultText = defaultText === undefined ? undefined : Buffer.from(defaultText);
    this.#isBeforeHeader = header !== "none";
  }

  scan(cells: CopyCells, from: number, isLast: boolean): number {
    if (this.#fault !== undefined) throw this.#fault;
    cells.rowCount = 0;
    let at = from;
    while (!this.isEnded && cells.rowCount < cells.rowsMax && at < cells.bytes.length) {
      const line = this.#line;
      let end: number;
      try {
        if (this.#isBeforeHeader) {
          end = this.#header(cells, at, isLast);
        } else {
          cells.lines[cells.rowCount] = line;
          end = this.#isCsv ? this.#csvRow(cells, at, isLast) : this.#textRow(cells, at, isLast);
          if (end !== UNFINISHED && !this.isEnded) cells.rowCount += 1;
        }
      } catch (error) {
        this.#fault = error as Error;
        if (cells.rowCount === 0) throw error;
        return at;
      }
      if (end === UNFINISHED) {
        this.#line = line;
        return at;
      }
      at = end;
    }
    return at;
  }

  /** Reads the header line. Returns the offset after the line. */
  #header(cells: CopyCells, from: number, isLast: boolean): number {
    const { columns, options } = this.#options;
    cells.lines[0] = 1;
    if (options.header === "line") {
      // The header may have any number of cells. A line break inside quotes does not end the
      // header.
      const end = this.#isCsv
        ? this.#endOfCsvLine(cells.bytes, from, isLast)
        : endOfLine(cells.bytes, from, isLast);
      if (end === UNFINISHED) return UNFINISHED;
      this.#line += this.#isCsv ? 0 : 1;
      this.#isBeforeHeader = false;
      return end;
    }
    const end = this.#isCsv
      ? this.#csvRow(cells, from, isLast)
      : this.#textRow(cells, from, isLast);
    if (end === UNFINISHED) return UNFINISHED;
    for (const [column, name] of columns.entries()) {
      const isNull = cells.kinds[column] === CopyCell.null;
      const found = isNull ? "" : this.#textOf(cells, column);
      if (found === name) continue;
      throw copyFault(`found "${found}" where the name of column "${name}" was expected`, {
        line: 1,
      });
    }
    this.#isBeforeHeader = false;
    return end;
  }

  #textOf(cells: CopyCells, cell: number): string {
    if (cells.kinds[cell] === CopyCell.plain) return cells.plainText(cell);
    const range = { start: cells.starts[cell] ?? 0, end: cells.ends[cell] ?? 0 };
    return this.decode(cells.bytes, range);
  }

  /** Scans a line of the text format into the next row. */
  #textRow(cells: CopyCells, from: number, isLast: boolean): number {
    const { bytes, columnCount } = cells;
    const delimiter = this.#delimiter;
    const first = cells.rowCount * columnCount;
    const length = bytes.length;
    let column = 0;
    let start = from;
    let isEncoded = false;
    let at = from;
    for (; at < length; at += 1) {
      const code = bytes[at] ?? 0;
      if (code === BACKSLASH) {
        isEncoded = true;
        at += 1;
      } else if (code === delimiter) {
        if (column < columnCount) this.#cell(cells, first + column, { start, end: at }, isEncoded);
        column += 1;
        start = at + 1;
        isEncoded = false;
      } else if (code === LINE_FEED || code === RETURN) {
        break;
      }
    }
    // A backslash may be the last byte in the buffer, without the character that it escapes.
    if (at >= length && !isLast) return UNFINISHED;
    const end = Math.min(at, length);
    const next = this.#afterLine(bytes, end, isLast);
    if (next === UNFINISHED) return UNFINISHED;
    if (isEncoded && column === 0 && isEndMark(bytes, start, end)) {
      this.isEnded = true;
      return next;
    }
    if (isEncoded && at > length) throw this.#faultHere('found "\\" at the end of the data');
    if (column < columnCount) this.#cell(cells, first + column, { start, end }, isEncoded);
    this.#requireWidth(column + 1);
    this.#line += 1;
    return next;
  }

  /** Scans a line of CSV into the next row. */
  #csvRow(cells: CopyCells, from: number, isLast: boolean): number {
    const { bytes, columnCount } = cells;
    const first = cells.rowCount * columnCount;
    let column = 0;
    let at = from;
    for (;;) {
      const start = at;
      const isQuoted = bytes[at] === this.#quote;
      // In most cases, a cell is either unquoted or enclosed in one pair of quotes.
      const after = isQuoted ? this.#afterQuotes(bytes, at, isLast) : at;
      if (after === UNFINISHED) return UNFINISHED;
      const hasEscapes = this.#hasEscapes;
      at = this.#endOfCell(bytes, after, isLast);
      if (at === UNFINISHED) return UNFINISHED;
      if (column < columnCount) {
        const range = { start, end: at };
        const isPlain = isQuoted ? at === after && !hasEscapes : !this.#hasEscapes;
        if (isQuoted || !isPlain) this.#quotedCell(cells, first + column, range, !isPlain);
        else this.#cell(cells, first + column, range, false);
      }
      column += 1;
      if (at === bytes.length || bytes[at] !== this.#delimiter) break;
      at += 1;
    }
    const next = this.#afterLine(bytes, at, isLast);
    if (next === UNFINISHED) return UNFINISHED;
    this.#requireWidth(column);
    this.#line += 1;
    return next;
  }

  /** Returns the offset of the delimiter or line end after a cell, skipping quoted parts. */
  #endOfCell(bytes: Buffer, from: number, isLast: boolean): number {
    const delimiter = this.#delimiter;
    const quote = this.#quote;
    this.#hasEscapes = false;
    let at = from;
    while (at < bytes.length) {
      const code = bytes[at] ?? 0;
      if (code === delimiter || code === LINE_FEED || code === RETURN) return at;
      if (code === quote) {
        at = this.#afterQuotes(bytes, at, isLast);
        if (at === UNFINISHED) return UNFINISHED;
        this.#hasEscapes = true;
      } else {
        at += 1;
      }
    }
    return isLast ? at : UNFINISHED;
  }

  /** Returns the offset after a quoted part, and records whether it contains escapes. */
  #afterQuotes(bytes: Buffer, from: number, isLast: boolean): number {
    const close = this.#closing(bytes, from + 1);
    this.#hasEscapes = close < 0;
    const end = close < 0 ? ~close : close;
    if (end < bytes.length) return end + 1;
    if (!isLast) return UNFINISHED;
    throw this.#faultHere("a quoted cell is not closed");
  }

  /**
   * Returns the offset of the quote that closes a quoted part, or the end of the bytes if there is
   * none. Counts the line ends within the part. If the part contains escapes, returns the bitwise
   * complement of the offset.
   */
  #closing(bytes: Buffer, from: number): number {
    const quote = this.#quote;
    const escape = this.#escape;
    let isEncoded = false;
    let at = from;
    for (; at < bytes.length; at += 1) {
      const code = bytes[at] ?? 0;
      if (code === escape) {
        const next = bytes[at + 1];
        if (next === quote || next === escape) {
          isEncoded = true;
          at += 1;
          continue;
        }
      }
      if (code === quote) break;
      if (code === LINE_FEED) this.#line += 1;
    }
    const end = Math.min(at, bytes.length);
    return isEncoded ? ~end : end;
  }

  /** Returns the offset after the line end at `at`. */
  #afterLine(bytes: Buffer, at: number, isLast: boolean): number {
    if (at >= bytes.length) return isLast ? bytes.length : UNFINISHED;
    if (bytes[at] === LINE_FEED) return at + 1;
    if (at + 1 === bytes.length && !isLast) return UNFINISHED;
    if (bytes[at + 1] === LINE_FEED) return at + 2;
    throw this.#faultHere("found a carriage return without a line feed after it");
  }

  /** Returns the offset after a CSV line, which may have any number of cells. */
  #endOfCsvLine(bytes: Buffer, from: number, isLast: boolean): number {
    for (let at = from; at < bytes.length; at += 1) {
      const code = bytes[at] ?? 0;
      if (code === LINE_FEED) {
        this.#line += 1;
        return at + 1;
      }
      if (code !== this.#quote) continue;
      const close = this.#closing(bytes, at + 1);
      at = close < 0 ? ~close : close;
    }
    return isLast ? bytes.length : UNFINISHED;
  }

  #cell(cells: CopyCells, cell: number, { end, start }: CellRange, isEncoded: boolean): void {
    cells.starts[cell] = start;
    cells.ends[cell] = end;
    cells.kinds[cell] = isEncoded ? CopyCell.encoded : CopyCell.plain;
    if (isSame(cells.bytes, start, end, this.#nullText)) {
      const isText = this.#options.neverNull[cell % cells.columnCount] === true;
      if (!isText) cells.kinds[cell] = CopyCell.null;
    } else if (
      this.#defaultText !== undefined &&
      isSame(cells.bytes, start, end, this.#defaultText)
    ) {
      cells.kinds[cell] = CopyCell.default;
    }
  }

  #quotedCell(cells: CopyCells, cell: number, { end, start }: CellRange, isEncoded: boolean): void {
    cells.starts[cell] = isEncoded ? start : start + 1;
    cells.ends[cell] = isEncoded ? end : end - 1;
    cells.kinds[cell] = isEncoded ? CopyCell.encoded : CopyCell.plain;
    if (this.#options.alwaysNull[cell % cells.columnCount] !== true || isEncoded) return;
    if (isSame(cells.bytes, start + 1, end - 1, this.#nullText)) cells.kinds[cell] = CopyCell.null;
  }

  #requireWidth(found: number): void {
    const { columns } = this.#options;
    if (found === columns.length) return;
    if (found > columns.length) {
      throw this.#faultHere(`found ${found} cells instead of ${columns.length}`);
    }
    throw this.#faultHere(`found no cell for column "${columns[found]}"`);
  }

  #faultHere(what: string): unknown {
    const place: CopyPlace = { line: this.#line };
    return copyFault(what, place);
  }

  decode(bytes: Buffer, range: CellRange): string {
    return this.#isCsv ? this.#decodeCsv(bytes, range) : decodeText(bytes, range);
  }

  #decodeCsv(bytes: Buffer, { end, start }: CellRange): string {
    const into = Buffer.allocUnsafe(end - start);
    let length = 0;
    let isInside = false;
    for (let at = start; at < end; at += 1) {
      const code = bytes[at] ?? 0;
      if (isInside && code === this.#escape && at + 1 < end) {
        const next = bytes[at + 1] ?? 0;
        if (next === this.#quote || next === this.#escape) {
          into[length] = next;
          length += 1;
          at += 1;
          continue;
        }
      }
      if (code === this.#quote) {
        isInside = !isInside;
        continue;
      }
      into[length] = code;
      length += 1;
    }
    return into.toString("utf8", 0, length);
  }
}

function endOfLine(bytes: Buffer, from: number, isLast: boolean): number {
  const end = bytes.indexOf(LINE_FEED, from);
  if (end !== -1) return end + 1;
  return isLast ? bytes.length : UNFINISHED;
}

function isEndMark(bytes: Buffer, start: number, end: number): boolean {
  return end - start === 2 && bytes[start] === BACKSLASH && bytes[start + 1] === DOT;
}

function isSame(bytes: Buffer, start: number, end: number, text: Buffer): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i += 1) if (bytes[start + i] !== text[i]) return false;
  return true;
}

/** The characters that the text format writes as a backslash and a letter, keyed by the letter. */
const LETTERS: ReadonlyMap<number, number> = new Map(
  Array.from("bfnrtv").map((letter, i) => [letter.charCodeAt(0), [8, 12, 10, 13, 9, 11][i] ?? 0]),
);

/**
 * Decodes a cell of the text format. The cell may contain `\t`, `\101`, `\x41`, and a backslash
 * before any other character.
 */
function decodeText(bytes: Buffer, { end, start }: CellRange): string {
  const into = Buffer.allocUnsafe(end - start);
  let length = 0;
  for (let at = start; at < end; at += 1) {
    let code = bytes[at] ?? 0;
    if (code === BACKSLASH && at + 1 < end) {
      at += 1;
      code = bytes[at] ?? 0;
      const digits = /^(?:[0-7]{1,3}|x[0-9a-fA-F]{1,2})/.exec(
        bytes.toString("latin1", at, Math.min(at + 3, end)),
      );
      const isHex = code === 120;
      if (digits !== null) {
        code = Number.parseInt(isHex ? digits[0].slice(1) : digits[0], isHex ? 16 : 8) & 255;
        at += digits[0].length - 1;
      } else {
        code = LETTERS.get(code) ?? code;
      }
    }
    into[length] = code;
    length += 1;
  }
  const decoded = into.subarray(0, length);
  if (isUtf8(decoded)) return decoded.toString();
  throw new DatabaseError("INVALID_VALUE", "Cannot read the text: its escapes are not valid UTF-8");
}
