/**
 * Parses the response to an SQL request as it arrives. Returns each row as soon as it is complete,
 * and each entry when it ends. Rows already returned are not kept.
 *
 *     {"results":[ {"schema":[…],"rows":[ [row],[row] ],"row_count":2,…}, … ],"status":…}
 *     depth 1     2 3                   4 5
 */
import type { SchemaField, StatementEntry } from "../protocol/mod.ts";

export type ScannedPart =
  | {
      readonly kind: "rows";
      readonly schema: readonly SchemaField[];
      readonly rows: readonly (readonly unknown[])[];
    }
  /** An entry has ended. Its rows have already been returned. */
  | { readonly kind: "entry"; readonly entry: StatementEntry }
  /** The part of a response after its results. */
  | { readonly kind: "end"; readonly fields: Readonly<Record<string, unknown>> };

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [
  0x22, 0x5c, 0x5b, 0x5d, 0x7b, 0x7d,
];

const START = '{"results":[';
const RESULTS_DEPTH = 2;
const ROWS_DEPTH = 4;

export class AnswerScanner {
  /** The text that has arrived, starting with the first unfinished part. */
  #text = "";
  #at = 0;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  #isInRows = false;
  #isBehindResults = false;
  #isOver = false;
  /**
   * The offset at which the current part begins. A part is an entry, the remainder of an entry
   * after its rows, a row, or the end of the response.
   */
  #start = 0;
  /** The range of text that contains complete rows not yet returned. */
  #rowsStart = -1;
  #rowsEnd = -1;
  /** The part of a result entry before its rows. */
  #head = "";
  #schema: readonly SchemaField[] = [];
  #parts: ScannedPart[] = [];

  /**
   * Scans another piece of a response. Returns the parts that are now complete.
   * @throws {SyntaxError} If the text is not a response to statements.
   */
  push(text: string): ScannedPart[] {
    if (this.#isOver) return [];
    this.#text += text;
    this.#parts = [];
    if (this.#depth === 0 && !this.#begins()) return [];
    for (; this.#at < this.#text.length; this.#at += 1) this.#read(this.#text.charCodeAt(this.#at));
    this.#giveRows();
    this.#forget();
    return this.#parts;
  }

  /** Reads the beginning of the response. @returns Whether the entire beginning has arrived. */
  #begins(): boolean {
    const { length } = this.#text;
    if (!START.startsWith(this.#text.slice(0, START.length))) {
      throw new SyntaxError('The response does not begin with the field "results"');
    }
    if (length < START.length) return false;
    this.#at = START.length;
    this.#depth = RESULTS_DEPTH;
    return true;
  }

  #read(code: number): void {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (code === BACKSLASH) this.#isEscaped = true;
      else if (code === QUOTE) this.#isInString = false;
    } else if (code === QUOTE) this.#isInString = true;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) this.#open();
    else if (code === CLOSE_LIST || code === CLOSE_OBJECT) this.#close();
  }

  #open(): void {
    this.#depth += 1;
    if (this.#isBehindResults) return;
    if (this.#depth === RESULTS_DEPTH + 1) this.#start = this.#at;
    else if (this.#depth === ROWS_DEPTH && this.#isKeyBefore('"rows":')) {
      this.#head = this.#text.slice(this.#start, this.#at + 1);
      const { schema } = JSON.parse(`${this.#head}]}`) as { schema?: readonly SchemaField[] };
      this.#schema = schema ?? [];
      this.#isInRows = true;
    } else if (this.#isInRows && this.#depth === ROWS_DEPTH + 1 && this.#rowsStart < 0) {
      this.#rowsStart = this.#at;
    }
  }

  #close(): void {
    this.#depth -= 1;
    if (this.#isBehindResults) {
      if (this.#depth > 0) return;
      const rest = this.#text.slice(this.#start + 1, this.#at + 1).replace(/^,/, "");
      const fields = JSON.parse(`{${rest}`) as Readonly<Record<string, unknown>>;
      this.#parts.push({ kind: "end", fields });
      this.#isOver = true;
    } else if (this.#isInRows && this.#depth === ROWS_DEPTH) this.#rowsEnd = this.#at + 1;
    else if (this.#isInRows && this.#depth === ROWS_DEPTH - 1) {
      this.#giveRows();
      this.#isInRows = false;
      this.#start = this.#at;
    } else if (this.#depth === RESULTS_DEPTH) {
      const text = this.#head + this.#text.slice(this.#start, this.#at + 1);
      this.#head = "";
      this.#parts.push({ kind: "entry", entry: JSON.parse(text) as StatementEntry });
    } else if (this.#depth < RESULTS_DEPTH) {
      this.#isBehindResults = true;
      this.#start = this.#at;
    }
  }

  #isKeyBefore(key: string): boolean {
    return this.#text.startsWith(key, this.#at - key.length);
  }

  #giveRows(): void {
    if (this.#rowsEnd < 0) return;
    const text = this.#text.slice(this.#rowsStart, this.#rowsEnd);
    const rows = JSON.parse(`[${text}]`) as readonly (readonly unknown[])[];
    this.#parts.push({ kind: "rows", schema: this.#schema, rows });
    // A partially received row stays in the text buffer until the rest of it arrives.
    const isInRow = this.#depth > ROWS_DEPTH;
    this.#rowsStart = isInRow ? this.#rowStartBehind(this.#rowsEnd) : -1;
    this.#rowsEnd = -1;
  }

  #rowStartBehind(end: number): number {
    return this.#text.indexOf("[", end);
  }

  /** Discards the text of the parts already returned. */
  #forget(): void {
    const isBetween = this.#isInRows || (this.#depth === RESULTS_DEPTH && !this.#isBehindResults);
    const kept = this.#isInRows && this.#rowsStart >= 0 ? this.#rowsStart : this.#start;
    const from = isBetween && this.#rowsStart < 0 ? this.#at : kept;
    this.#text = this.#text.slice(from);
    this.#at -= from;
    this.#start = Math.max(0, this.#start - from);
    if (this.#rowsStart >= 0) this.#rowsStart -= from;
  }
}
