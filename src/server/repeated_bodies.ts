/**
 * Bodies of `POST /v1/api/sql` that differ in nothing but their parameters.
 *
 * A program sends the same statements again and again, with other values each time. What stands in
 * its bodies before and behind the values is compared with what came before, instead of being
 * parsed, and only the values are read:
 *
 *     {"sql":"INSERT INTO t VALUES ($1, $2)","params":[1,"a"],"namespace_id":"n"}
 *     └──────────────────── head ────────────────────┘   └───────── tail ────────┘
 *
 * Invariant: a body that is read here means what JSON.parse and the checks of `sql_request.ts` make
 * of it. Whatever is not plain is left to them: numbers that a double may round, values that are no
 * parameters, anything malformed.
 */
import type { Parameter, SqlRequest } from "../sql/mod.ts";
import type { ParameterLimits } from "./parameters.ts";
import { parseJson } from "./request_body.ts";

/** Heads and tails that are kept; the ones that come most are looked at first. */
const FORMS_MAX = 32;

/** Longer bodies are not looked at: what is compared would be worth less than what is copied. */
const BODY_CHARS_MAX = 8192;

/** One in so many bodies of no known form is kept, as texts that never come again are not worth it. */
const UNKNOWN_PER_KEPT = 8;

/** Digits of which every number is exact. */
const DIGITS_MAX = 15;

/** Up to the first value. The text of the statements has no escape, so its end is found. */
const HEAD =
  // oxlint-disable-next-line no-control-regex -- JSON names these characters
  /^[ \t\r\n]*\{[ \t\r\n]*"sql"[ \t\r\n]*:[ \t\r\n]*"[^"\\\u0000-\u001f]*"[ \t\r\n]*,[ \t\r\n]*"params"[ \t\r\n]*:[ \t\r\n]*\[/;

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DIGIT_0 = 0x30;
const BACKSLASH = 0x5c;
const LIST_END = 0x5d;

interface Form {
  readonly head: string;
  readonly tail: string;
  /** What such a body asks for, with other parameters. */
  readonly request: SqlRequest;
}

/** A body whose form is known. */
export interface RepeatedBody {
  /** What it asks for, with the parameters of another. */
  readonly request: SqlRequest;
  readonly params: readonly Parameter[];
}

/** Makes the request of a body, with every check. */
export type ReadWhole = (text: string) => SqlRequest;

export class RepeatedBodies {
  readonly #limits: ParameterLimits;
  readonly #forms: Form[] = [];
  #unknownCount = 0;

  constructor(limits: ParameterLimits) {
    this.#limits = limits;
  }

  /** Undefined when a body is of no known form, or has a value that is not plain. */
  read(text: string): RepeatedBody | undefined {
    if (text.length > BODY_CHARS_MAX) return undefined;
    const forms = this.#forms;
    for (let index = 0; index < forms.length; index += 1) {
      const form = forms[index];
      if (form === undefined || !text.startsWith(form.head) || !text.endsWith(form.tail)) continue;
      const end = text.length - form.tail.length;
      const params = new ValueList(text, form.head.length, this.#limits).readUpTo(end);
      if (params === undefined) continue;
      const before = forms[index - 1];
      if (before !== undefined) {
        forms[index - 1] = form;
        forms[index] = before;
      }
      return { request: form.request, params };
    }
    return undefined;
  }

  /**
   * Keeps the form of a body, now and then, and if it has one.
   *
   * @param request What `text` asked for.
   * @param readWhole How that was found out.
   */
  note(text: string, request: SqlRequest, readWhole: ReadWhole): void {
    if (request.params.length === 0 || text.length > BODY_CHARS_MAX) return;
    // A key is another one each time.
    if (request.idempotency !== undefined) return;
    this.#unknownCount += 1;
    if (this.#unknownCount % UNKNOWN_PER_KEPT !== 1) return;
    const head = HEAD.exec(text)?.[0];
    if (head === undefined) return;
    const end = new ValueList(text, head.length, this.#limits).end();
    if (end === -1) return;
    const tail = text.slice(end);
    // Of two members with one name the last counts: only if that is this list, its values do.
    const made = readWhole(`${head}0${tail}`);
    if (made.params.length !== 1 || made.params[0] !== 0) return;
    this.#forms.splice(FORMS_MAX - 1);
    this.#forms.push({ head, tail, request: made });
  }
}

/** The values of a list, read from where it begins. */
class ValueList {
  readonly #text: string;
  readonly #limits: ParameterLimits;
  #at: number;

  constructor(text: string, at: number, limits: ParameterLimits) {
    this.#text = text;
    this.#at = at;
    this.#limits = limits;
  }

  /** All of them, if the list ends at `end` with them. */
  readUpTo(end: number): Parameter[] | undefined {
    const values = this.#values();
    return this.#at === end ? values : undefined;
  }

  /** Where the list ends; -1 when it has a value that is not plain, or no end. */
  end(): number {
    return this.#values() === undefined ? -1 : this.#at;
  }

  /** Stops at the end of the list. */
  #values(): Parameter[] | undefined {
    const text = this.#text;
    const values: Parameter[] = [];
    for (;;) {
      this.#skipSpaces();
      const value = this.#value();
      if (value === undefined || values.length === this.#limits.max_parameters) return undefined;
      values.push(value);
      this.#skipSpaces();
      const code = text.charCodeAt(this.#at);
      if (code === LIST_END) return values;
      if (code !== COMMA) return undefined;
      this.#at += 1;
    }
  }

  #skipSpaces(): void {
    while (this.#text.charCodeAt(this.#at) === SPACE) this.#at += 1;
  }

  #value(): Parameter | undefined {
    const code = this.#text.charCodeAt(this.#at);
    if (code === QUOTE) return this.#string();
    if (code === MINUS || isDigit(code)) return this.#number();
    if (this.#takes("null")) return null;
    if (this.#takes("true")) return true;
    return this.#takes("false") ? false : undefined;
  }

  #takes(word: string): boolean {
    if (!this.#text.startsWith(word, this.#at)) return false;
    this.#at += word.length;
    return true;
  }

  #number(): number | undefined {
    const text = this.#text;
    const isNegative = text.charCodeAt(this.#at) === MINUS;
    const start = isNegative ? this.#at + 1 : this.#at;
    let at = start;
    let value = 0;
    for (let code = text.charCodeAt(at); isDigit(code); code = text.charCodeAt(at)) {
      value = value * 10 + code - DIGIT_0;
      at += 1;
    }
    const count = at - start;
    if (count === 0 || count > DIGITS_MAX) return undefined;
    if (count > 1 && text.charCodeAt(start) === DIGIT_0) return undefined;
    this.#at = at;
    return isNegative ? -value : value;
  }

  #string(): string | undefined {
    const text = this.#text;
    const start = this.#at;
    let isEscaped = false;
    let at = start + 1;
    for (let code = text.charCodeAt(at); code !== QUOTE; code = text.charCodeAt(at)) {
      // Not so for NaN, behind the end of the text, either.
      if (!(code >= SPACE)) return undefined;
      if (code === BACKSLASH) isEscaped = true;
      at += code === BACKSLASH ? 2 : 1;
    }
    this.#at = at + 1;
    // UTF-8 has at most three bytes for each UTF-16 unit.
    if ((at - start) * 3 > this.#limits.max_parameter_bytes) return undefined;
    if (!isEscaped) return text.slice(start + 1, at);
    const value = parseJson(text.slice(start, at + 1));
    return typeof value === "string" && value.isWellFormed() ? value : undefined;
  }
}

function isDigit(code: number): boolean {
  return code >= DIGIT_0 && code <= DIGIT_0 + 9;
}
