/**
 * Splits the text of a JSON path into tokens.
 *
 * Names and keywords are both words, which the parser tells apart by their position. A string is
 * always in double quotes.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";

export type PathTokenKind = "word" | "string" | "number" | "variable" | "symbol" | "end";

export interface PathToken {
  readonly kind: PathTokenKind;
  /** The text of the token: a symbol as written, or any other token without quotes and escapes. */
  readonly text: string;
}

/** Characters that end a word. */
const SPECIAL = '?%$.[]{}()|&!=<>@#,*:-+/\\" \t\n\r\f';

const SYMBOLS = ["**", "&&", "||", "==", "!=", "<>", "<=", ">="];

const NUMBER = /(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y;

const ESCAPED: ReadonlyMap<string, string> = new Map([
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
  ["v", "\v"],
]);

/** Splits a JSON path into tokens. The last token is `end`. @throws {DatabaseError} INVALID_SQL */
export function pathTokens(text: string): PathToken[] {
  return new PathLexer(text).tokens();
}

/** Returns the error for text that is not a JSON path. As in PostgreSQL, it is a syntax error. */
export function malformedPath(text: string, why: string, hint?: string): DatabaseError {
  return new DatabaseError(
    "INVALID_SQL",
    `Cannot read ${excerpt(text)} as jsonpath: ${why}`,
    hint === undefined ? {} : { hint },
  );
}

class PathLexer {
  readonly #text: string;
  readonly #tokens: PathToken[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  tokens(): PathToken[] {
    for (;;) {
      this.#skipBlanks();
      if (this.#at >= this.#text.length) break;
      this.#tokens.push(this.#token());
    }
    this.#tokens.push({ kind: "end", text: "" });
    return this.#tokens;
  }

  #skipBlanks(): void {
    for (;;) {
      while (/^[ \t\n\r\f]$/.test(this.#text[this.#at] ?? "")) this.#at += 1;
      if (!this.#text.startsWith("/*", this.#at)) return;
      const end = this.#text.indexOf("*/", this.#at + 2);
      if (end < 0) throw malformedPath(this.#text, "a comment is not closed");
      this.#at = end + 2;
    }
  }

  #token(): PathToken {
    const first = this.#text[this.#at] ?? "";
    if (first === '"') return { kind: "string", text: this.#quoted() };
    if (first === "$") return this.#variable();
    if (/^(?:\d|\.\d)/.test(this.#text.slice(this.#at, this.#at + 2))) return this.#number();
    if (!SPECIAL.includes(first) || first === "\\") return { kind: "word", text: this.#word() };
    const symbol = SYMBOLS.find((each) => this.#text.startsWith(each, this.#at)) ?? first;
    this.#at += symbol.length;
    return { kind: "symbol", text: symbol };
  }

  /** Reads a variable: `$`, `$name` or `$"name"`. */
  #variable(): PathToken {
    this.#at += 1;
    const next = this.#text[this.#at] ?? " ";
    if (next === '"') return { kind: "variable", text: this.#quoted() };
    if (SPECIAL.includes(next) && next !== "\\") return { kind: "symbol", text: "$" };
    return { kind: "variable", text: this.#word() };
  }

  #number(): PathToken {
    NUMBER.lastIndex = this.#at;
    const digits = NUMBER.exec(this.#text)?.[0] ?? "";
    this.#at += digits.length;
    const next = this.#text[this.#at] ?? " ";
    if (SPECIAL.includes(next) && next !== "\\") return { kind: "number", text: digits };
    throw malformedPath(
      this.#text,
      `the number ${digits} is followed directly by ${excerpt(next)}`,
      "add a space after the number, or put it in parentheses, as in (1).type()",
    );
  }

  #word(): string {
    let word = "";
    for (;;) {
      const character = this.#text[this.#at] ?? " ";
      if (character === "\\") word += this.#escape();
      else if (SPECIAL.includes(character) || character === "") return word;
      else {
        word += character;
        this.#at += 1;
      }
    }
  }

  #quoted(): string {
    let text = "";
    this.#at += 1;
    for (;;) {
      const character = this.#text[this.#at];
      if (character === undefined) throw malformedPath(this.#text, "a string is not closed");
      if (character === "\\") {
        text += this.#escape();
        continue;
      }
      this.#at += 1;
      if (character === '"') return text;
      text += character;
    }
  }

  /**
   * Reads an escape: `\n`, `\x41`, `\u0041` or `\u{1f600}`. Any other escaped character represents
   * itself.
   */
  #escape(): string {
    const rest = this.#text.slice(this.#at + 1, this.#at + 10);
    const [whole, ...digits] =
      /^(?:x([0-9a-f]{2})|u([0-9a-f]{4})|u\{([0-9a-f]{1,6})\})/i.exec(rest) ?? [];
    if (whole === undefined) return this.#plainEscape(rest);
    this.#at += 1 + whole.length;
    return this.#character(whole, Number.parseInt(digits.find((each) => each) ?? "", 16));
  }

  #plainEscape(rest: string): string {
    if (rest === "") throw malformedPath(this.#text, "the path ends with a backslash");
    const [character = ""] = rest;
    if (character === "u" || character === "x") {
      throw malformedPath(this.#text, `\\${character} must be followed by hexadecimal digits`);
    }
    const own = String.fromCodePoint(this.#text.codePointAt(this.#at + 1) ?? 0);
    this.#at += 1 + own.length;
    return ESCAPED.get(character) ?? own;
  }

  /**
   * Returns the character that an escape represents.
   * @param written The escape as written, for the error message.
   */
  #character(written: string, code: number): string {
    if (code === 0 || code > 0x10ffff) {
      throw malformedPath(this.#text, `\\${written} is not allowed in a string`);
    }
    // A surrogate pair is written as two consecutive escapes.
    const pair = code >= 0xd800 && code <= 0xdbff;
    const [escape = "", low = ""] =
      (pair && /^\\u([0-9a-f]{4})/i.exec(this.#text.slice(this.#at, this.#at + 6))) || [];
    this.#at += escape.length;
    const text = pair
      ? String.fromCharCode(code, Number.parseInt(low, 16) || 0)
      : String.fromCodePoint(code);
    if (text.isWellFormed()) return text;
    throw malformedPath(this.#text, `\\${written} is an unpaired surrogate`);
  }
}
