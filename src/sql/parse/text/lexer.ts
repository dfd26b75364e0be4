/**
 * Splits SQL into tokens, which are stored in parallel arrays rather than as objects.
 *
 * Nothing is decoded here; `literals.ts` does that for the tokens that the parser uses. Positions
 * are UTF-16 offsets into the whole text, even if only a part of it is read. The last token is
 * always `end`. A list of thousands of literals can be a single token; `literal_list.ts` reads its
 * rows.
 */
import { assert } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import type { LiteralList } from "../ast/ast.ts";
import {
  closingQuote,
  hintOf,
  isDigit,
  isUnicodeSpace,
  skipDigits,
  skipRadixDigits,
  stringContinuation,
} from "./characters.ts";
import { keywordAt } from "./keywords.ts";
import {
  scanLiteralElements,
  scanLiteralItems,
  scanLiteralList,
  Utf8Text,
} from "./literal_list.ts";
import { LIFTED_LITERALS_MAX } from "./normalize.ts";
import { IS_WORD_PART, SINGLE, STARTS, Start } from "./token_starts.ts";
import { escapeClauseEnd } from "./unicode_escapes.ts";
import { foldIntoHash } from "./word_table.ts";

/** The kinds of tokens. */
export const Token = {
  end: 0,
  /** An unquoted word: a keyword, or a name to be folded to lower case. */
  word: 1,
  /** A quoted name, such as `"name"`. */
  quoted: 2,
  /** An integer, including the forms `0xff` and `1_000`. */
  integer: 3,
  /** A number with a point or an exponent. */
  numeric: 4,
  /** A string `'text'` whose value is exactly the text between the quotes. */
  string: 5,
  /** Any other string: one with doubled quotes, `E'…'`, `$$…$$`, or one in several parts. */
  encodedString: 6,
  /** Bytes or bits, such as `X'0aff'` and `B'101'`. */
  bytes: 7,
  /** A parameter, such as `$1`. */
  parameter: 8,
  symbol: 9,
  /**
   * All rows after VALUES or IN as a single token. It occurs only if the lexer was asked for lists
   * and the rows consist of many plain literals.
   */
  literalList: 10,
  /** The lines after `COPY … FROM STDIN;`. This token precedes that of the semicolon. */
  copyData: 11,
} as const;

/**
 * The tokens of a piece of SQL. `words` has one entry per token; the other arrays may be longer.
 */
export interface LexedTokens {
  readonly text: string;
  readonly kinds: Uint8Array;
  /** Each token's keyword in lower case, or its symbol; "" for every other kind of token. */
  readonly words: readonly string[];
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  /** The lists of literals, one for each token of kind `literalList`. */
  readonly literalLists: readonly LiteralList[];
}

/**
 * The minimum length of text that can contain a list. Each literal in a list takes at least two
 * characters.
 */
const LITERAL_LIST_CHARS_MIN: number = 2 * LIFTED_LITERALS_MAX;

/** The psql commands `\restrict key` and `\unrestrict key`. */
const RESTRICT = /\\(?:un)?restrict [A-Za-z0-9]+[ \t\r]*(?=\n|$)/y;

/** The whitespace between a COPY and the first line of its data. */
const DATA_BEGIN = /^[ \t\r]*\n/;
const SPACE_MAX = 256;

/** The line that ends the data of a COPY. */
const END_MARK = "\\.";
const DATA_END = /\n\\\.(?=\r?(?:\n|$))/g;
const ENDLESS_DATA = "the data of a COPY, which ends with a separate line with \\.,";

/**
 * The number of characters per token on which the initial capacity is based. Most statements need
 * fewer tokens than that.
 */
const CHARS_PER_TOKEN = 3;
/**
 * The maximum initial capacity in tokens. A long text usually consists of a list, which is a
 * single token, so more capacity would be wasted.
 */
const CAPACITY_MAX_AT_START = 1024;
const CAPACITY_MIN = 8;

const DOT = 46;
const SEMICOLON = 59;
const BACKSLASH = 92;
const MINUS = 45;
const SLASH = 47;
const STAR = 42;
const QUOTE = 39;
const AMPERSAND = 38;
const DOUBLE_QUOTE = 34;

/**
 * Splits SQL into tokens, turning each long list of plain literals into a single token. A
 * different construct may look like such a list, so a parse that does not use every such token as
 * a list must be repeated without lists.
 *
 * @throws {DatabaseError} BATCH_PARSE_ERROR, INVALID_SQL.
 */
export function tokenizeWithLists(text: string, utf8?: Uint8Array): LexedTokens {
  const lexer = new Lexer(text, 0, text.length);
  lexer.utf8 = new Utf8Text(text, utf8);
  lexer.run();
  return lexer;
}

/**
 * Splits the range [from, to) of some SQL into tokens.
 *
 * @throws {DatabaseError} BATCH_PARSE_ERROR, INVALID_SQL.
 */
export function tokenize(text: string, from = 0, to: number = text.length): LexedTokens {
  assert(from >= 0 && to <= text.length, "lexer: range is outside the SQL text");
  const lexer = new Lexer(text, from, to);
  lexer.run();
  return lexer;
}

class Lexer implements LexedTokens {
  readonly text: string;
  kinds: Uint8Array;
  readonly words: string[] = [];
  starts: Int32Array;
  ends: Int32Array;
  readonly literalLists: LiteralList[] = [];
  /** The text as UTF-8; undefined unless long lists should become single tokens. */
  utf8: Utf8Text | undefined;
  #position: number;
  readonly #limit: number;
  /** The index of the first token of the current statement. */
  #statement = 0;

  constructor(text: string, from: number, to: number) {
    this.text = text;
    this.#position = from;
    this.#limit = to;
    const capacity = Math.min(
      Math.ceil((to - from) / CHARS_PER_TOKEN) + CAPACITY_MIN,
      CAPACITY_MAX_AT_START,
    );
    this.kinds = new Uint8Array(capacity);
    this.starts = new Int32Array(capacity);
    this.ends = new Int32Array(capacity);
  }

  run(): void {
    const nul = this.text.indexOf("\0", this.#position);
    if (nul !== -1 && nul < this.#limit) {
      this.#fail("INVALID_SQL", "the SQL contains a NUL character, which is not allowed", nul);
    }
    while (this.#position < this.#limit) {
      const code = this.text.charCodeAt(this.#position);
      switch (code < 128 ? STARTS[code] : Start.bad) {
        case Start.space:
          this.#position += 1;
          break;
        case Start.word:
          this.#word();
          break;
        case Start.single:
          if (code === SEMICOLON) this.#endOfStatement();
          else this.#push(Token.symbol, SINGLE[code] ?? "", this.#position + 1);
          break;
        case Start.quote:
          this.#string(this.#position, this.#position + 1);
          break;
        case Start.digit:
          this.#number();
          break;
        case Start.dot:
          if (this.text.charCodeAt(this.#position + 1) === DOT) {
            this.#push(Token.symbol, "..", this.#position + 2);
          } else if (isDigit(this.text.charCodeAt(this.#position + 1))) this.#number();
          else this.#push(Token.symbol, ".", this.#position + 1);
          break;
        case Start.doubleQuote:
          this.#quotedName(this.#position);
          break;
        case Start.dollar:
          this.#dollar();
          break;
        case Start.operator:
          this.#operator(code);
          break;
        default:
          this.#otherCharacter(code);
      }
    }
    this.#push(Token.end, "", this.#limit);
  }

  #push(kind: number, word: string, end: number): void {
    const token = this.words.length;
    if (token === this.kinds.length) this.#grow();
    this.kinds[token] = kind;
    this.words.push(word);
    this.starts[token] = this.#position;
    this.ends[token] = end;
    this.#position = end;
  }

  /** Reads a semicolon and, after COPY FROM STDIN, the lines of data that follow it. */
  #endOfStatement(): void {
    const { text } = this;
    const end = this.#position + 1;
    const first = this.#statement;
    const isCopy = this.words[first] === "copy" && this.#readsInput(first);
    const rest = isCopy ? DATA_BEGIN.exec(text.slice(end, end + SPACE_MAX)) : null;
    if (rest === null || end + rest[0].length >= this.#limit) {
      this.#push(Token.symbol, ";", end);
    } else {
      const start = end + rest[0].length;
      DATA_END.lastIndex = start - 1;
      const mark = DATA_END.exec(text);
      if (mark === null && text.slice(start, this.#limit).trim() === "") {
        this.#push(Token.symbol, ";", end);
      } else {
        if (mark === null || mark.index >= this.#limit) this.#unclosed(ENDLESS_DATA);
        const stop = mark.index + 1;
        this.#position = start;
        this.#push(Token.copyData, "", stop);
        this.#push(Token.symbol, ";", Math.min(stop + END_MARK.length, this.#limit));
      }
    }
    this.#statement = this.words.length;
  }

  #readsInput(first: number): boolean {
    const { words } = this;
    const from = words.indexOf("from", first);
    return from !== -1 && words[from + 1] === "stdin";
  }

  #grow(): void {
    const { ends, kinds, starts } = this;
    const capacity = 2 * kinds.length;
    this.kinds = new Uint8Array(capacity);
    this.kinds.set(kinds);
    this.starts = new Int32Array(capacity);
    this.starts.set(starts);
    this.ends = new Int32Array(capacity);
    this.ends.set(ends);
  }

  #word(): void {
    const { text } = this;
    const limit = this.#limit;
    let at = this.#position;
    let hash = 0;
    let code = text.charCodeAt(at);
    do {
      hash = foldIntoHash(hash, code);
      at += 1;
      code = at < limit ? text.charCodeAt(at) : 0;
    } while (code < 128 && IS_WORD_PART[code] === 1);
    if (at - this.#position === 1) {
      if (code === QUOTE && this.#prefixedString(at)) return;
      if (code === AMPERSAND && this.#unicodeEscaped(at + 1)) return;
    }
    const keyword = keywordAt(text, this.#position, at, hash);
    this.#push(Token.word, keyword, at);
    if (this.utf8 === undefined) return;
    if (keyword === "values") this.#takeList(this.utf8, scanLiteralList);
    else if (keyword === "in") this.#takeList(this.utf8, scanLiteralItems);
    else if (keyword === "array") this.#takeList(this.utf8, scanLiteralElements);
  }

  // Reads the list after VALUES, IN or ARRAY as a single token if it is long and plain.
  #takeList(utf8: Utf8Text, scan: typeof scanLiteralList): void {
    if (this.#limit - this.#position < LITERAL_LIST_CHARS_MIN) return;
    const scanned = scan(utf8, this.#position);
    if (scanned === undefined || scanned.list.kinds.length <= LIFTED_LITERALS_MAX) return;
    this.literalLists.push(scanned.list);
    this.#push(Token.literalList, "", scanned.end);
  }

  // Reads E'…', X'…' or B'…'. The opening quote is at the offset `quote`.
  #prefixedString(quote: number): boolean {
    switch (this.text.charCodeAt(this.#position) | 32) {
      case 101: // The letter e
        this.#escapedString(quote + 1);
        return true;
      case 98: // The letter b
      case 120: {
        // The letter x
        const end = this.text.indexOf("'", quote + 1);
        if (end === -1 || end >= this.#limit) this.#unclosed("a string of bytes or bits");
        this.#push(Token.bytes, "", end + 1);
        return true;
      }
      default:
        return false;
    }
  }

  // Reads U&'…' or U&"…" and an optional UESCAPE. The opening quote is at the offset `quote`.
  #unicodeEscaped(quote: number): boolean {
    const { text } = this;
    const limit = this.#limit;
    const start = this.#position;
    const code = text.charCodeAt(quote);
    if ((text.charCodeAt(start) | 32) !== 117 || quote >= limit) return false;
    if (code === QUOTE) this.#string(start, quote + 1);
    else if (code === DOUBLE_QUOTE) this.#quotedName(quote);
    else return false;
    const token = this.words.length - 1;
    const end = escapeClauseEnd(text, this.#position);
    this.#position = end <= limit ? end : this.#position;
    this.ends[token] = this.#position;
    if (code === QUOTE) this.kinds[token] = Token.encodedString;
    return true;
  }

  #string(start: number, body: number): void {
    this.#position = start;
    let kind: number = Token.string;
    let end = this.text.indexOf("'", body);
    while (end !== -1 && this.text.charCodeAt(end + 1) === QUOTE) {
      kind = Token.encodedString;
      end = this.text.indexOf("'", end + 2);
    }
    if (end === -1 || end >= this.#limit) this.#unclosed("a string");
    const next = this.#continuation(end + 1);
    if (next !== -1) {
      end = this.#joined(next);
      kind = Token.encodedString;
    }
    this.#push(kind, "", end + 1);
  }

  // Returns the end of a string with several parts. The opening quote of its next part is at
  // `quote`.
  #joined(quote: number): number {
    let open = quote;
    for (;;) {
      const end = closingQuote(this.text, open + 1, false);
      if (end === -1 || end >= this.#limit) this.#unclosed("a string");
      open = this.#continuation(end + 1);
      if (open === -1) return end;
    }
  }

  #escapedString(body: number): void {
    const end = closingQuote(this.text, body, true);
    if (end === -1 || end >= this.#limit) this.#unclosed("a string");
    this.#push(Token.encodedString, "", end + 1);
  }

  // Returns the offset of the quote with which a string continues after whitespace and a line
  // break, or -1 if it does not continue.
  #continuation(from: number): number {
    const next = stringContinuation(this.text, from);
    return next < this.#limit ? next : -1;
  }

  #quotedName(quote: number): void {
    let end = this.text.indexOf('"', quote + 1);
    while (end !== -1 && this.text.charCodeAt(end + 1) === 34)
      end = this.text.indexOf('"', end + 2);
    if (end === -1 || end >= this.#limit) this.#unclosed("a quoted name");
    if (end === quote + 1) {
      this.#fail(
        "INVALID_SQL",
        'a quoted name is empty (""), but must have at least one character',
        this.#position,
      );
    }
    this.#push(Token.quoted, "", end + 1);
  }

  #number(): void {
    const { text } = this;
    const start = this.#position;
    let at = start;
    let kind: number = Token.integer;
    const radix = text.charCodeAt(at) === 48 ? text.charCodeAt(at + 1) | 32 : 0;
    if (radix === 120 || radix === 111 || radix === 98) {
      at = skipRadixDigits(text, at + 2, radix);
      if (at === start + 2) this.#badNumber(at);
    } else {
      at = skipDigits(text, at);
      // In PL/pgSQL, two dots separate the bounds of a loop.
      if (text.charCodeAt(at) === DOT && text.charCodeAt(at + 1) !== DOT) {
        kind = Token.numeric;
        at = skipDigits(text, at + 1);
      }
      if ((text.charCodeAt(at) | 32) === 101) {
        const sign = text.charCodeAt(at + 1);
        const digits = sign === 43 || sign === MINUS ? at + 2 : at + 1;
        if (!isDigit(text.charCodeAt(digits))) this.#badNumber(at + 1);
        kind = Token.numeric;
        at = skipDigits(text, digits);
      }
    }
    if (at > this.#limit) at = this.#limit;
    const after = at < this.#limit ? text.charCodeAt(at) : 0;
    if (after >= 128 ? !isUnicodeSpace(after) : IS_WORD_PART[after] === 1) this.#badNumber(at + 1);
    this.#push(kind, "", at);
  }

  #badNumber(end: number): never {
    let stop = end;
    while (stop < this.#limit && IS_WORD_PART[this.text.charCodeAt(stop)] === 1) stop += 1;
    const found = this.text.slice(this.#position, Math.min(stop, this.#position + 40));
    this.#fail("INVALID_SQL", `"${found}" is not a number`, this.#position);
  }

  // Reads a parameter such as $1, or a string such as $tag$…$tag$.
  #dollar(): void {
    const { text } = this;
    let at = this.#position + 1;
    if (isDigit(text.charCodeAt(at))) {
      while (isDigit(text.charCodeAt(at))) at += 1;
      if (IS_WORD_PART[text.charCodeAt(at)] === 1) this.#badNumber(at);
      this.#push(Token.parameter, "", at);
      return;
    }
    while (IS_WORD_PART[text.charCodeAt(at)] === 1 && text.charCodeAt(at) !== 36) at += 1;
    if (text.charCodeAt(at) !== 36 || at >= this.#limit) {
      this.#fail("INVALID_SQL", 'found "$", which is not allowed here', this.#position);
    }
    const tag = text.slice(this.#position, at + 1);
    const close = text.indexOf(tag, at + 1);
    if (close === -1 || close + tag.length > this.#limit) this.#unclosed(`a ${tag} string`);
    this.#push(Token.encodedString, "", close + tag.length);
  }

  #operator(code: number): void {
    const { text } = this;
    const at = this.#position;
    const next = text.charCodeAt(at + 1);
    if (code === MINUS && next === MINUS) {
      const end = text.indexOf("\n", at + 2);
      this.#position = end === -1 || end >= this.#limit ? this.#limit : end + 1;
      return;
    }
    if (code === SLASH && next === STAR) {
      this.#position = this.#comment(at);
      return;
    }
    if (next < 128 && STARTS[next] === Start.operator) {
      const symbol = longSymbolAt(text, at);
      if (symbol !== undefined) {
        this.#push(Token.symbol, symbol === "<>" ? "!=" : symbol, at + symbol.length);
        return;
      }
    }
    if (code === 33) this.#fail("INVALID_SQL", 'found "!", which is not allowed here', at);
    this.#push(Token.symbol, SINGLE[code] ?? "", at + 1);
  }

  // Returns the offset after a comment, which may contain nested comments.
  #comment(start: number): number {
    let depth = 0;
    let at = start;
    do {
      const code = this.text.charCodeAt(at);
      const next = this.text.charCodeAt(at + 1);
      if (code === SLASH && next === STAR) {
        depth += 1;
        at += 2;
      } else if (code === STAR && next === SLASH) {
        depth -= 1;
        at += 2;
      } else {
        at += 1;
      }
      if (depth > 0 && at >= this.#limit) {
        this.#position = start;
        this.#unclosed("a comment");
      }
    } while (depth > 0);
    return at;
  }

  #otherCharacter(code: number): void {
    if (isUnicodeSpace(code)) {
      this.#position += 1;
      return;
    }
    if (code === BACKSLASH && this.#skipsCommand()) return;
    const found = String.fromCodePoint(this.text.codePointAt(this.#position) ?? code);
    const printable = code < 32 || code === 127 ? `character ${code}` : `"${found}"`;
    const what = `found ${printable}, which is not allowed here`;
    this.#fail("INVALID_SQL", what, this.#position, hintOf(found));
  }

  /**
   * Skips a line with a psql command. pg_dump writes one at the start and at the end of a dump.
   */
  #skipsCommand(): boolean {
    const at = this.#position;
    if (at > 0 && this.text.charAt(at - 1) !== "\n") return false;
    RESTRICT.lastIndex = at;
    const line = RESTRICT.exec(this.text);
    if (line === null) return false;
    this.#position = Math.min(at + line[0].length, this.#limit);
    return true;
  }

  #unclosed(what: string): never {
    const hint =
      what === "a string"
        ? { hint: "to include a quote in a string, write it twice: 'it''s'" }
        : {};
    const fault = `${what} that starts here is not closed`;
    this.#fail("BATCH_PARSE_ERROR", fault, this.#position, hint);
  }

  #fail(
    condition: "INVALID_SQL" | "BATCH_PARSE_ERROR",
    what: string,
    at: number,
    hint: { readonly hint?: string } = hintOf(this.text.charAt(at)),
  ): never {
    throw new DatabaseError(condition, `Cannot parse the SQL: ${what}`, {
      position: at,
      statementIndex: this.#statementIndex(),
      ...hint,
    });
  }

  // Returns the index of the current statement: the number of statements that end before it.
  #statementIndex(): number {
    let index = 0;
    let isEmpty = true;
    for (const word of this.words) {
      if (word === ";" && !isEmpty) index += 1;
      isEmpty = word === ";";
    }
    return index;
  }
}

// Multi-character symbols, keyed by their first character, longest first. A symbol ends where a
// comment begins inside it.
const SYMBOLS = new Map<number, readonly string[]>();
for (const symbol of [
  "!~~* <<-> <->> ~<=~ ~>=~",
  "||/ #>> ->> !~* ~~* !~~ <=> <-> <#> <<% %>> <<= >>= -|- ?-| ?|| <<| |>> &<| |&> @-@ ~<~ ~>~ *<> *<= *>=",
  ":: <> != <= >= || -> #> #- @> <@ ?| ?& && @@ @? ~* !~ ~~ ^@ << >> &< &> |/ !! <% %> => := ## ~= <^ >^ ?# ?- *= *< *>",
].flatMap((line) => line.split(" "))) {
  const code = symbol.charCodeAt(0);
  SYMBOLS.set(code, [...(SYMBOLS.get(code) ?? []), symbol]);
}

/** Returns the longest multi-character symbol at an offset; undefined if there is none. */
function longSymbolAt(text: string, at: number): string | undefined {
  for (const symbol of SYMBOLS.get(text.charCodeAt(at)) ?? []) {
    if (text.startsWith(symbol, at) && !startsComment(text, at + symbol.length - 1)) return symbol;
  }
  return undefined;
}

// Whether a comment ("/*" or "--") starts at `at`. An operator must end before it.
function startsComment(text: string, at: number): boolean {
  return text.startsWith("/*", at) || text.startsWith("--", at);
}
