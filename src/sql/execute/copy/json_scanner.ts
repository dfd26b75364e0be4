/**
 * Scans the ndjson format of COPY FROM: each line is a JSON object with members named after the
 * columns. A column without a member gets its default; a member without a column is an error.
 *
 * Each byte is scanned only once, and no objects are created. Nested JSON is checked when its cell
 * is converted to a value.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { type CellRange, CopyCell, type CopyCells, type CopyScanner } from "./copy_cells.ts";
import { atPlace, copyFault } from "./copy_fault.ts";

const LINE_FEED = 10;
const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_BRACKET = 91;
const BACKSLASH = 92;
const CLOSE_BRACKET = 93;
const OPEN_BRACE = 123;
const CLOSE_BRACE = 125;

export class JsonScanner implements CopyScanner {
  readonly isEnded = false;
  readonly isJson = true;
  readonly #columns: readonly string[];
  readonly #names: readonly Buffer[];
  readonly #seen: Uint8Array;
  #line = 1;
  #fault: Error | undefined;
  /** The position of the scan and the end of the line, as offsets into the bytes. */
  #at = 0;
  #end = 0;

  constructor(columns: readonly string[]) {
    this.#columns = columns;
    this.#names = columns.map((name) => Buffer.from(JSON.stringify(name).slice(1, -1)));
    this.#seen = new Uint8Array(columns.length);
  }

  scan(cells: CopyCells, from: number, isLast: boolean): number {
    if (this.#fault !== undefined) throw this.#fault;
    const { bytes } = cells;
    cells.rowCount = 0;
    let at = from;
    while (cells.rowCount < cells.rowsMax && at < bytes.length) {
      const found = bytes.indexOf(LINE_FEED, at);
      if (found === -1 && !isLast) break;
      this.#at = at;
      this.#end = found === -1 ? bytes.length : found;
      try {
        this.#space(bytes);
        if (this.#at < this.#end) {
          cells.lines[cells.rowCount] = this.#line;
          this.#row(cells);
          cells.rowCount += 1;
        }
      } catch (error) {
        this.#fault = error as Error;
        if (cells.rowCount === 0) throw error;
        return at;
      }
      at = found === -1 ? bytes.length : found + 1;
      this.#line += 1;
    }
    return at;
  }

  #row(cells: CopyCells): void {
    const { bytes, columnCount } = cells;
    const first = cells.rowCount * columnCount;
    cells.kinds.fill(CopyCell.default, first, first + columnCount);
    this.#seen.fill(0);
    this.#expect(bytes, OPEN_BRACE, "{");
    this.#space(bytes);
    if (bytes[this.#at] === CLOSE_BRACE) {
      this.#at += 1;
    } else {
      for (let member = 0; ; member += 1) {
        const column = this.#column(bytes, member);
        this.#expect(bytes, COLON, ":");
        this.#space(bytes);
        this.#value(cells, first + column);
        this.#space(bytes);
        if (bytes[this.#at] === CLOSE_BRACE) {
          this.#at += 1;
          break;
        }
        this.#expect(bytes, COMMA, ", or }");
      }
    }
    this.#space(bytes);
    if (this.#at < this.#end) throw this.#unexpected(bytes, "the end of the line");
  }

  /**
   * Reads the name of a JSON member, and returns the index of its column.
   * @param guess The index of the column that the member probably names.
   */
  #column(bytes: Buffer, guess: number): number {
    this.#space(bytes);
    const { end, isEncoded, start } = this.#string(bytes, "the name of a column");
    let column = guess;
    if (isEncoded || !this.#isNamed(bytes, start, end, column)) {
      const name = this.#nameAt(bytes, { start, end }, isEncoded);
      column = this.#columns.indexOf(name);
      if (column === -1) {
        throw copyFault(`found the member "${name}", but there is no such column`, {
          line: this.#line,
        });
      }
    }
    if (this.#seen[column] === 1) {
      const name = this.#columns[column] ?? "";
      throw copyFault(`found the member "${name}" twice`, { line: this.#line });
    }
    this.#seen[column] = 1;
    this.#space(bytes);
    return column;
  }

  #nameAt(bytes: Buffer, range: CellRange, isEncoded: boolean): string {
    try {
      return textOf(bytes, range, isEncoded);
    } catch (error) {
      throw atPlace(error, { line: this.#line });
    }
  }

  #isNamed(bytes: Buffer, start: number, end: number, column: number): boolean {
    const name = this.#names[column];
    if (name === undefined || name.length !== end - start) return false;
    for (let i = 0; i < name.length; i += 1) if (name[i] !== bytes[start + i]) return false;
    return true;
  }

  #value(cells: CopyCells, cell: number): void {
    const { bytes } = cells;
    const code = bytes[this.#at];
    if (code === QUOTE) {
      const { end, isEncoded, start } = this.#string(bytes, "a value");
      cells.starts[cell] = start;
      cells.ends[cell] = end;
      cells.kinds[cell] = isEncoded ? CopyCell.encoded : CopyCell.plain;
      return;
    }
    const start = this.#at;
    if (code === OPEN_BRACE || code === OPEN_BRACKET) this.#nested(bytes);
    else this.#word(bytes);
    cells.starts[cell] = start;
    cells.ends[cell] = this.#at;
    const isNull = this.#at - start === 4 && bytes.toString("latin1", start, this.#at) === "null";
    cells.kinds[cell] = isNull ? CopyCell.null : CopyCell.json;
  }

  /** Skips a number or a keyword. */
  #word(bytes: Buffer): void {
    const start = this.#at;
    for (; this.#at < this.#end; this.#at += 1) {
      const code = bytes[this.#at] ?? 0;
      if (code === COMMA || code === CLOSE_BRACE || code <= 32) break;
    }
    if (this.#at === start) throw this.#unexpected(bytes, "a value");
  }

  /** Skips an array or object up to its closing bracket. */
  #nested(bytes: Buffer): void {
    let depth = 0;
    for (; this.#at < this.#end; this.#at += 1) {
      const code = bytes[this.#at];
      if (code === QUOTE) {
        this.#string(bytes, "a value");
        this.#at -= 1;
      } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
        depth += 1;
      } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
        depth -= 1;
        if (depth > 0) continue;
        this.#at += 1;
        return;
      }
    }
    throw this.#unexpected(bytes, "the end of an array or object");
  }

  /** Skips a string. Returns the range between the quotes. */
  #string(bytes: Buffer, what: string): CellRange & { readonly isEncoded: boolean } {
    if (bytes[this.#at] !== QUOTE) throw this.#unexpected(bytes, what);
    const start = this.#at + 1;
    let isEncoded = false;
    let at = start;
    for (; at < this.#end; at += 1) {
      const code = bytes[at];
      if (code === QUOTE) break;
      if (code !== BACKSLASH) continue;
      isEncoded = true;
      at += 1;
    }
    if (at >= this.#end) {
      this.#at = this.#end;
      throw this.#unexpected(bytes, "the end of a string");
    }
    this.#at = at + 1;
    return { start, end: at, isEncoded };
  }

  #space(bytes: Buffer): void {
    while (this.#at < this.#end) {
      const code = bytes[this.#at];
      if (code !== 32 && code !== 9 && code !== 13) return;
      this.#at += 1;
    }
  }

  #expect(bytes: Buffer, code: number, shown: string): void {
    if (this.#at >= this.#end || bytes[this.#at] !== code) throw this.#unexpected(bytes, shown);
    this.#at += 1;
  }

  #unexpected(bytes: Buffer, expected: string): unknown {
    const isOver = this.#at >= this.#end;
    const shown = bytes.toString("utf8", this.#at, Math.min(this.#at + 20, this.#end));
    const found = isOver ? "the end of the line" : `"${shown}"`;
    return copyFault(`found ${found}, expected ${expected}`, { line: this.#line });
  }

  decode(bytes: Buffer, range: CellRange): string {
    return textOf(bytes, range, true);
  }
}

function textOf(bytes: Buffer, { end, start }: CellRange, isEncoded: boolean): string {
  if (!isEncoded) return bytes.toString("utf8", start, end);
  try {
    return String(JSON.parse(bytes.toString("utf8", start - 1, end + 1)));
  } catch (cause) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot read the text: it is not a valid JSON string",
      {
        cause,
      },
    );
  }
}
