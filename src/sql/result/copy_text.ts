/**
 * Writes the rows of COPY TO in each of its formats, as PostgreSQL does. `sql/execute/copy` reads
 * the same formats.
 *
 *     text     tabs between cells, \N for NULL, a backslash before characters with a meaning
 *     csv      commas between cells, nothing for NULL, quotes around cells with such characters
 *     ndjson   an object per line, whose members are the cells of responses in JSON; a date or
 *              timestamp outside the years 1 to 9999 is a string
 *     binary   see `binary_cells.ts`
 */
import {
  type Batch,
  type DataType,
  outputText,
  readableCellMakerFor,
  type Value,
  valueAt,
} from "../../types/mod.ts";
import { BINARY_HEAD_BYTES, BINARY_SIGNATURE } from "../execute/copy/binary_scanner.ts";
import type { CopySettings } from "../parse/ast/ast.ts";
import { binaryRows } from "./binary_cells.ts";
import type { RowText } from "./row_text.ts";

/** A column written by COPY TO. */
export interface CopyField {
  readonly name: string;
  readonly type: DataType;
}

/** Formats a cell that is not NULL. */
type WriteCell = (value: Value) => string;

const ENCODER = new TextEncoder();

/** The settings of the ndjson format, which a statement cannot change. */
const NDJSON: CopySettings = {
  format: "ndjson",
  delimiter: "",
  nullText: "",
  header: "none",
  quote: "",
  escape: "",
  forceQuote: [],
  forceNotNull: [],
  forceNull: [],
  onConflict: "error",
  skipsFaulty: false,
};

export class CopyText {
  /** Returns a writer for the ndjson format. */
  static ndjson(fields: readonly CopyField[]): CopyText {
    return new CopyText(fields, NDJSON);
  }

  readonly #fields: readonly CopyField[];
  readonly #options: CopySettings;
  readonly #writers: readonly WriteCell[];

  constructor(fields: readonly CopyField[], options: CopySettings) {
    this.#fields = fields;
    this.#options = options;
    this.#writers = fields.map((field) => this.#writerOf(field));
  }

  /** Returns the bytes that precede the rows. */
  head(): Uint8Array<ArrayBuffer> {
    const { delimiter, format, header } = this.#options;
    if (format === "binary") {
      const head = new Uint8Array(BINARY_HEAD_BYTES);
      head.set(BINARY_SIGNATURE);
      return head;
    }
    if (format === "ndjson" || header === "none") return new Uint8Array(0);
    const names = this.#fields.map(({ name }) =>
      format === "csv" ? this.#csvCell(name, false) : this.#textCell(name),
    );
    return ENCODER.encode(`${names.join(delimiter)}\n`);
  }

  /** Returns the bytes that follow the rows. */
  tail(): Uint8Array<ArrayBuffer> {
    return this.#options.format === "binary" ? new Uint8Array([255, 255]) : new Uint8Array(0);
  }

  rows(batch: Batch): RowText {
    const { rowCount } = batch;
    if (this.#options.format === "binary") {
      const types = this.#fields.map(({ type }) => type);
      return { text: new Uint8Array(binaryRows(batch, types)), rowCount };
    }
    let text = "";
    for (let row = 0; row < rowCount; row += 1) text += this.#line(batch, row);
    return { text: ENCODER.encode(text), rowCount };
  }

  #line({ columns }: Batch, row: number): string {
    const { delimiter, format, nullText } = this.#options;
    const isJson = format === "ndjson";
    let line = isJson ? "{" : "";
    for (const [at, write] of this.#writers.entries()) {
      const column = columns[at];
      const value = column === undefined ? null : valueAt(column, row);
      if (at > 0) line += isJson ? "," : delimiter;
      if (isJson) line += `${JSON.stringify(this.#fields[at]?.name)}:`;
      if (value === null) line += isJson ? "null" : nullText;
      else line += write(value);
    }
    return isJson ? `${line}}\n` : `${line}\n`;
  }

  #writerOf({ name, type }: CopyField): WriteCell {
    const { forceQuote, format } = this.#options;
    if (format === "ndjson") {
      const cell = readableCellMakerFor(type);
      return (value) => JSON.stringify(cell(value));
    }
    if (format === "text") return (value) => this.#textCell(outputText(type, value));
    const isForced = forceQuote === "all" || forceQuote.some((column) => column.name === name);
    return (value) => this.#csvCell(outputText(type, value), isForced);
  }

  #textCell(text: string): string {
    const { delimiter } = this.#options;
    if (!TEXT_ENCODED.test(text) && !text.includes(delimiter)) return text;
    let cell = "";
    for (const character of text) {
      const letter = TEXT_LETTERS.get(character);
      if (letter !== undefined) cell += `\\${letter}`;
      else cell += character === delimiter ? `\\${character}` : character;
    }
    return cell;
  }

  #csvCell(text: string, isForced: boolean): string {
    const { delimiter, escape, nullText, quote } = this.#options;
    const isPlain =
      !isForced &&
      text !== nullText &&
      text !== String.raw`\.` &&
      !text.includes(delimiter) &&
      !text.includes(quote) &&
      !text.includes("\n") &&
      !text.includes("\r");
    if (isPlain) return text;
    const escaped = escape === quote ? text : text.replaceAll(escape, escape + escape);
    return quote + escaped.replaceAll(quote, escape + quote) + quote;
  }
}

const TEXT_ENCODED = /[\\\b\f\n\r\t\v]/;

const TEXT_LETTERS: ReadonlyMap<string, string> = new Map([
  ["\\", "\\"],
  ["\b", "b"],
  ["\f", "f"],
  ["\n", "n"],
  ["\r", "r"],
  ["\t", "t"],
  ["\v", "v"],
]);
