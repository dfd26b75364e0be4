/**
 * Computes the key for the plan cache: a statement without the literals that do not affect its
 * plan.
 *
 * It makes a single pass over the characters and creates no tokens. Sharing a scanner with the
 * lexer would be slower.
 *
 * A literal is lifted out only where values typically vary and every value has the same plan: in
 * WHERE, ON, SET, VALUES, LIMIT, OFFSET. Literals stay in the select list (where they determine
 * the type of the result), in GROUP BY, HAVING and ORDER BY (where `f('day', x)` must equal
 * `f('day', x)`), in FROM, in type sizes and in typed literals. In case of doubt, a literal stays:
 * the key is then longer, but never wrong.
 *
 * In the key, a lifted literal becomes a control character that no statement may contain outside
 * quotes: U+0001 INT, U+0002 BIGINT, U+0003 string, U+0004 and "p,s;" DECIMAL(p,s).
 *
 * The statement is parsed from its own text with the literals as slots (`parseNormalized`), so
 * that errors have correct positions.
 */
import type { LiteralKind } from "../ast/ast.ts";
import { closingQuote, isDigit, isUnicodeSpace } from "./characters.ts";
import { IS_WORD_PART } from "./token_starts.ts";
import { foldIntoHash, WordTable } from "./word_table.ts";

/**
 * The maximum number of literals that are lifted out of a statement. If a statement has more, none
 * are lifted, because each number of literals would need a separate key.
 */
export const LIFTED_LITERALS_MAX = 64;

/**
 * The maximum number of literals that may stay in a key. A statement with more of them contains a
 * list, which is cheaper to parse than to keep in a key.
 */
const KEPT_LITERALS_MAX = 500;

/** A literal that was lifted out of a statement. */
export interface SlotLiteral {
  readonly kind: LiteralKind;
  /** The digits of a number or the value of a string. */
  readonly text: string;
  /** The offset of the literal in the SQL of the request. */
  readonly start: number;
  /** The precision of a DECIMAL(precision, scale). Present only if the kind is numeric. */
  readonly precision?: number | undefined;
  readonly scale?: number | undefined;
}

/** A statement without its lifted literals, and these literals. */
export interface NormalizedStatement {
  /** The text of the statement, with each lifted literal replaced by its type. */
  readonly key: string;
  readonly literals: readonly SlotLiteral[];
  /** The range of the statement in the request's text. */
  readonly start: number;
  readonly end: number;
  /** The offset after the `;` that ends the statement, or the end of the text. */
  readonly next: number;
}

const INTEGER_KEY = "\u0001";
const BIGINT_KEY = "\u0002";
const STRING_KEY = "\u0003";
const NUMERIC_KEY = "\u0004";

/** Matches the characters that replace lifted literals in a key. */
export const LITERAL_MARKS: RegExp = new RegExp(
  `[${INTEGER_KEY}${BIGINT_KEY}${STRING_KEY}]|${NUMERIC_KEY}[\\d,]*;`,
  "g",
);

const INT_DIGITS_MAX = "2147483647";
const BIGINT_DIGITS_MAX = "9223372036854775807";
const DECIMAL_DIGITS_MAX = 38;

/** How a word affects the literals that follow it at the same depth of parentheses. */
const Effect = {
  none: 0,
  /** Literals after this word are replaced by slots. */
  lift: 1,
  /** Literals after this word stay. */
  keep: 2,
  /** The word is an operator or a separator, so a string after it is not a typed literal. */
  operator: 3,
  /**
   * The word is a type or a function. Literals in the parentheses after it stay, because they
   * determine the size, precision or scale of a result.
   */
  type: 4,
  /** The word begins a statement whose literals may be replaced by slots. */
  begin: 5,
  /**
   * Literals up to the DO of ON CONFLICT stay, because they determine which index is the conflict
   * target.
   */
  target: 6,
  /** The word ends the target of ON CONFLICT. */
  action: 7,
} as const;

const WORDS_BY_EFFECT: readonly (readonly [string, number])[] = [
  ["where set values limit offset on", Effect.lift],
  [
    "select from group order having window returning with over fetch as using distinct",
    Effect.keep,
  ],
  ["and or not like ilike between in when then else case to is symmetric", Effect.operator],
  ["any some all array", Effect.operator],
  [
    "varchar nvarchar char character varying nchar decimal numeric dec float timestamp time " +
      "timestamptz interval embedding vector bit current_timestamp current_time localtime " +
      "localtimestamp binary varbinary file extract round trunc " +
      "trim_scale to_number",
    Effect.type,
  ],
  ["insert update delete execute", Effect.begin],
  ["filter", Effect.none],
  ["conflict", Effect.target],
  ["do", Effect.action],
];

const EFFECT_OF = new Map<string, number>(
  WORDS_BY_EFFECT.flatMap(([words, effect]) =>
    words.split(" ").map((word) => [word, effect] as const),
  ),
);

const WORDS = new WordTable([...EFFECT_OF.keys()]);

/** The effect of each word on the literals after it, indexed as in `WORDS`. */
const EFFECTS: Uint8Array = Uint8Array.from(EFFECT_OF.values());

/** Words that may begin a statement with a plan, in addition to those with `Effect.begin`. */
const QUERY_STARTS: ReadonlySet<number> = indexesOf("select with values");

/** Words after which ON or WHERE does not begin a condition whose literals are lifted. */
const PLAIN_BEFORE: ReadonlySet<number> = indexesOf("distinct filter");

function indexesOf(words: string): ReadonlySet<number> {
  return new Set(words.split(" ").map((word) => WORDS.words.indexOf(word)));
}

// The kinds of tokens before a literal.
const Before = { nothing: 0, operator: 1, word: 2, typeWord: 3, value: 4 } as const;

/**
 * Reads the first statement of `text`. Returns undefined if caching a plan would not pay off (for
 * definitions, administration, an empty statement or too many literals), or if only the parser can
 * read the statement.
 */
export function normalizeStatement(text: string): NormalizedStatement | undefined {
  return new Normalizer(text).run();
}

class Normalizer {
  readonly #text: string;
  #position = 0;
  readonly #literals: SlotLiteral[] = [];
  #keptCount = 0;
  #key = "";
  // The offset of the first character not yet copied to the key, or -1 before the first token.
  #copied = -1;
  #start = 0;
  #end = 0;
  #before: number = Before.nothing;
  #lifts = false;
  // Whether the token is between ON CONFLICT and DO.
  #isInTarget = false;
  readonly #outerLifts: boolean[] = [];
  // The index in `WORDS` of the preceding word, or -1. It shows whether ON follows DISTINCT, where
  // it does not begin a condition.
  #wordBefore = -1;

  constructor(text: string) {
    this.#text = text;
  }

  run(): NormalizedStatement | undefined {
    const text = this.#text;
    const limit = text.length;
    while (this.#position < limit) {
      const at = this.#position;
      const code = text.charCodeAt(at);
      if (code === 59) break;
      if (code <= 32) {
        if (code < 9) return undefined;
        this.#position += 1;
        continue;
      }
      if (this.#copied === -1) this.#start = at;
      if (!this.#token(code)) return undefined;
      if (this.#position > limit) return undefined;
    }
    // A parenthesis left open at the end is an error, which the parser explains.
    if (this.#copied === -1 || this.#outerLifts.length > 0) return undefined;
    this.#key += text.slice(this.#copied, this.#end);
    return {
      key: this.#key,
      literals: this.#literals,
      start: this.#start,
      end: this.#end,
      next: Math.min(this.#position + 1, limit),
    };
  }

  // Reads one token. Returns false if only the parser can read it.
  #token(code: number): boolean {
    let isFine: boolean;
    if (isWordStart(code)) isFine = this.#word();
    else if (isDigit(code)) isFine = this.#number();
    else if (code === 39) isFine = this.#string();
    else if (code === 34) isFine = this.#quotedName();
    else if (code === 36) isFine = this.#parameter();
    else if (code === 47 || code === 45) isFine = this.#dashOrSlash(code);
    else isFine = this.#symbol(code);
    return isFine;
  }

  #take(end: number, before: number): true {
    if (this.#copied === -1) this.#copied = this.#start;
    this.#position = end;
    this.#end = end;
    this.#before = before;
    return true;
  }

  #word(): boolean {
    const text = this.#text;
    const position = this.#position;
    let end = position;
    let hash = 0;
    let code = text.charCodeAt(position);
    do {
      hash = foldIntoHash(hash, code);
      end += 1;
      code = end < text.length ? text.charCodeAt(end) : 0;
    } while (code < 128 && IS_WORD_PART[code] === 1);
    // Strings of the forms E'…', X'…' and B'…' stay in the key.
    if (end - position === 1) {
      if (code === 39) return this.#prefixedString(end);
      // Tokens of the forms U&'…' and U&"…" are left to the parser.
      if (code === 38 && isQuote(text.charCodeAt(end + 1))) return false;
    }
    const word = WORDS.indexAt(text, position, end, hash);
    const effect = word === -1 ? Effect.none : EFFECTS[word];
    if (this.#copied === -1 && effect !== Effect.begin && !QUERY_STARTS.has(word)) return false;
    const wordBefore = this.#wordBefore;
    this.#wordBefore = word;
    switch (effect) {
      case Effect.lift:
        // The condition of a FILTER is part of a call, whose text may have to match that of
        // another call.
        this.#lifts = !(this.#isInTarget || PLAIN_BEFORE.has(wordBefore));
        return this.#take(end, Before.operator);
      case Effect.keep:
        this.#lifts = false;
        return this.#take(end, Before.operator);
      case Effect.operator:
        return this.#take(end, Before.operator);
      case Effect.target:
        this.#lifts = false;
        this.#isInTarget = true;
        return this.#take(end, Before.word);
      case Effect.action:
        this.#isInTarget = false;
        return this.#take(end, Before.word);
      case Effect.type:
        return this.#take(end, Before.typeWord);
      default:
        return this.#take(end, Before.word);
    }
  }

  #prefixedString(quote: number): boolean {
    const prefix = this.#text.charCodeAt(this.#position) | 32;
    if (prefix !== 98 && prefix !== 101 && prefix !== 120) return false;
    const end = closingQuote(this.#text, quote + 1, prefix === 101);
    return end !== -1 && this.#take(end + 1, Before.value);
  }

  #lift(end: number, key: string, literal: SlotLiteral): boolean {
    if (this.#literals.length === LIFTED_LITERALS_MAX) return false;
    this.#key += this.#text.slice(this.#copied, this.#position) + key;
    this.#literals.push(literal);
    this.#copied = end;
    this.#position = end;
    this.#end = end;
    this.#before = Before.value;
    return true;
  }

  // Keeps a literal in the key, because it affects the plan or might do so.
  #keep(end: number): boolean {
    this.#keptCount += 1;
    return this.#keptCount <= KEPT_LITERALS_MAX && this.#take(end, Before.value);
  }

  #number(): boolean {
    const text = this.#text;
    const start = this.#position;
    let end = start + 1;
    while (isDigit(text.charCodeAt(end))) end += 1;
    let point = -1;
    if (text.charCodeAt(end) === 46) {
      point = end;
      end += 1;
      while (isDigit(text.charCodeAt(end))) end += 1;
    }
    // Numbers such as 1e3, 0xff and 1_000 are too rare to be lifted.
    if (isWordPart(text.charCodeAt(end))) {
      while (isWordPart(text.charCodeAt(end)) || isExponentSign(text, end)) end += 1;
      return this.#take(end, Before.value);
    }
    if (!this.#lifts) return this.#keep(end);
    const digits = text.slice(start, end);
    if (point === -1) return this.#integer(end, digits);
    const scale = end - point - 1;
    const precision = decimalPrecision(digits, scale);
    if (precision > DECIMAL_DIGITS_MAX) return this.#take(end, Before.value);
    return this.#lift(end, `${NUMERIC_KEY}${precision},${scale};`, {
      kind: "numeric",
      text: digits,
      start,
      precision,
      scale,
    });
  }

  #integer(end: number, digits: string): boolean {
    const kind = integerKind(digits);
    if (kind === undefined) return this.#take(end, Before.value);
    const start = this.#position;
    const key = kind === "integer" ? INTEGER_KEY : BIGINT_KEY;
    return this.#lift(end, key, {
      kind,
      text: digits,
      start,
      precision: undefined,
      scale: undefined,
    });
  }

  #string(): boolean {
    const text = this.#text;
    const start = this.#position;
    let end = text.indexOf("'", start + 1);
    let isEscaped = false;
    while (end !== -1 && text.charCodeAt(end + 1) === 39) {
      isEscaped = true;
      end = text.indexOf("'", end + 2);
    }
    if (end === -1) return false;
    // A string after a name is a typed literal, and a string after a string continues it.
    if (!this.#lifts || this.#before !== Before.operator) {
      return this.#before !== Before.value && this.#keep(end + 1);
    }
    if (continuesBehind(text, end + 1)) return false;
    const body = text.slice(start + 1, end);
    // NUL is not allowed in any string; the parser reports it.
    if (body.includes("\u0000")) return false;
    return this.#lift(end + 1, STRING_KEY, {
      kind: "string",
      text: isEscaped ? body.replaceAll("''", "'") : body,
      start,
      precision: undefined,
      scale: undefined,
    });
  }

  #quotedName(): boolean {
    let end = this.#text.indexOf('"', this.#position + 1);
    while (end !== -1 && this.#text.charCodeAt(end + 1) === 34) {
      end = this.#text.indexOf('"', end + 2);
    }
    return end !== -1 && this.#take(end + 1, Before.word);
  }

  // Reads a parameter such as $1. Dollar-quoted strings are left to the parser.
  #parameter(): boolean {
    let end = this.#position + 1;
    while (isDigit(this.#text.charCodeAt(end))) end += 1;
    return end > this.#position + 1 && this.#take(end, Before.value);
  }

  // A comment counts as whitespace but stays in the key.
  #dashOrSlash(code: number): boolean {
    const next = this.#text.charCodeAt(this.#position + 1);
    if (code === 47 && next === 42) return false;
    if (code === 45 && next === 45) return false;
    return this.#take(this.#position + 1, Before.operator);
  }

  #symbol(code: number): boolean {
    const end = this.#position + 1;
    switch (code) {
      case 40: {
        const isSize = this.#before === Before.typeWord;
        this.#outerLifts.push(this.#lifts);
        if (isSize) this.#lifts = false;
        return this.#take(end, Before.operator);
      }
      case 41: {
        const outer = this.#outerLifts.pop();
        if (outer === undefined) return false;
        this.#lifts = outer;
        return this.#take(end, Before.value);
      }
      case 46:
        // A number such as .5 stays in the key.
        if (!isDigit(this.#text.charCodeAt(end))) return this.#take(end, Before.operator);
        return this.#take(skipNumber(this.#text, end), Before.value);
      case 93:
        return this.#take(end, Before.value);
      default:
        if (code < 33 || code === 127) return false;
        if (code < 128) return this.#take(end, Before.operator);
        if (!isUnicodeSpace(code)) return false;
        this.#position = end;
        return true;
    }
  }
}

function isQuote(code: number): boolean {
  return code === 39 || code === 34;
}

function isWordStart(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95;
}

function isWordPart(code: number): boolean {
  return isWordStart(code) || isDigit(code) || code === 36;
}

function isExponentSign(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return (code === 43 || code === 45) && (text.charCodeAt(at - 1) | 32) === 101;
}

function skipNumber(text: string, from: number): number {
  let at = from;
  while (isWordPart(text.charCodeAt(at)) || isExponentSign(text, at)) at += 1;
  return at;
}

// Returns the type of an integer literal. Returns undefined for 2147483648, which is a BIGINT but,
// after a minus sign, an INT, and likewise for 9223372036854775808; these literals stay. Larger
// integers are DECIMAL.
function integerKind(digits: string): "integer" | "bigint" | undefined {
  const leading = digits.startsWith("0") ? (/^0*/.exec(digits)?.[0].length ?? 0) : 0;
  const length = digits.length - leading;
  if (length < INT_DIGITS_MAX.length) return "integer";
  const significant = digits.slice(leading);
  if (length === INT_DIGITS_MAX.length) {
    if (significant <= INT_DIGITS_MAX) return "integer";
    return significant === "2147483648" ? undefined : "bigint";
  }
  if (length < BIGINT_DIGITS_MAX.length) return "bigint";
  return length === BIGINT_DIGITS_MAX.length && significant <= BIGINT_DIGITS_MAX
    ? "bigint"
    : undefined;
}

// Returns the precision of a DECIMAL literal with a decimal point.
//
// @param scale The number of digits after the point.
function decimalPrecision(digits: string, scale: number): number {
  const whole = digits.slice(0, digits.indexOf(".")).replace(/^0+/, "");
  return Math.max(whole.length + scale, 1);
}

// Whether a string continues after whitespace, or might continue after a comment.
function continuesBehind(text: string, from: number): boolean {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > 32) return code === 39;
  }
  return false;
}
