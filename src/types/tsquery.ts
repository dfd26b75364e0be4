/**
 * Implements the type TSQUERY: conditions on the lexemes of a document. A value is stored as its
 * text.
 *
 *     'cat':*A & !( 'dog' | 'hat' ) <2> 'rat'
 *
 * `!` has the highest precedence, then `<->` and `<n>`, then `&`, then `|`. A query without
 * lexemes is empty.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";
import { quotedTsWord, tsWeightLetter, tsWeightOf, unescapedTsWord } from "./tsvector.ts";

export interface TsQueryWord {
  readonly kind: "word";
  readonly word: string;
  /** Whether the word is a prefix, matching all lexemes that begin with it. */
  readonly isPrefix: boolean;
  /** The weights that a matching position may have, as a bit set; 0 allows all weights. */
  readonly weights: number;
}

export type TsQuery =
  | TsQueryWord
  | { readonly kind: "not"; readonly operand: TsQuery }
  | { readonly kind: "and"; readonly left: TsQuery; readonly right: TsQuery }
  | { readonly kind: "or"; readonly left: TsQuery; readonly right: TsQuery }
  | {
      readonly kind: "phrase";
      /** The number of positions by which the right operand follows the left operand. */
      readonly distance: number;
      readonly left: TsQuery;
      readonly right: TsQuery;
    };

const DISTANCE_MAX = 16_384;
/** The maximum nesting depth of parentheses and negations. */
const DEPTH_MAX = 200;
const WORDS_MAX = 10_000;

const TOKEN =
  /\s*(?:(<->|<\d+>|[()!&|])|(?:'((?:[^'\\]|''|\\[\s\S])*)'|((?:[^\s:'()!&|<>\\]|\\[\s\S])(?:[^\s:()!&|<>\\]|\\[\s\S])*))(?::([A-Da-d*]+))?)/uy;

/**
 * Converts a word of the text to a part of the query, or to "nothing" for an ignored word such as
 * a stop word.
 */
export type TsOperand = (word: TsQueryWord) => TsQueryPart;

/** A part of a query, which may still contain ignored words. */
export type TsQueryPart = TsQuery | { readonly kind: "nothing" } | TsQueryBranch;

/** A branch of a query whose operands may be empty. */
export type TsQueryBranch =
  | { readonly kind: "not"; readonly operand: TsQueryPart }
  | { readonly kind: "and" | "or"; readonly left: TsQueryPart; readonly right: TsQueryPart }
  | {
      readonly kind: "phrase";
      readonly distance: number;
      readonly left: TsQueryPart;
      readonly right: TsQueryPart;
    };

export const TS_NOTHING: TsQueryPart = { kind: "nothing" };

/** Parses a text search query; undefined if it is empty. @throws {DatabaseError} INVALID_SQL */
export function tsQueryFromText(text: string): TsQuery | undefined {
  return withoutNothing(parsedTsQuery(text, (word) => word));
}

/**
 * Parses a text search query, replacing each word with the result of `operand`. @throws
 * {DatabaseError} INVALID_SQL
 */
export function parsedTsQuery(text: string, operand: TsOperand): TsQueryPart {
  return text.trim() === "" ? TS_NOTHING : new TsQueryParser(text, operand).parse();
}

class TsQueryParser {
  readonly #text: string;
  readonly #operand: TsOperand;
  #at = 0;
  #depth = 0;
  #words = 0;
  #match: RegExpExecArray | null = null;

  constructor(text: string, operand: TsOperand) {
    this.#text = text;
    this.#operand = operand;
    this.#advance();
  }

  parse(): TsQueryPart {
    const query = this.#either();
    if (this.#match !== null || this.#text.slice(this.#at).trim() !== "") throw this.#malformed();
    return query;
  }

  #advance(): void {
    TOKEN.lastIndex = this.#at;
    this.#match = TOKEN.exec(this.#text);
    if (this.#match !== null) this.#at = TOKEN.lastIndex;
  }

  #malformed(): DatabaseError {
    return new DatabaseError(
      "INVALID_SQL",
      `Cannot read ${excerpt(this.#text)} as tsquery: words must be joined by & (and), | (or), ` +
        "! (not) or <-> (followed by)",
      { hint: "to search for what a user has typed, call plainto_tsquery or websearch_to_tsquery" },
    );
  }

  #symbol(): string | undefined {
    return this.#match?.[1];
  }

  #accept(symbol: string): boolean {
    if (this.#symbol() !== symbol) return false;
    this.#advance();
    return true;
  }

  #either(): TsQueryPart {
    let left = this.#both();
    while (this.#accept("|")) left = { kind: "or", left, right: this.#both() };
    return left;
  }

  #both(): TsQueryPart {
    let left = this.#phrase();
    while (this.#accept("&")) left = { kind: "and", left, right: this.#phrase() };
    return left;
  }

  #phrase(): TsQueryPart {
    let left = this.#negation();
    for (;;) {
      const symbol = this.#symbol();
      if (symbol?.startsWith("<") !== true) return left;
      this.#advance();
      const distance = symbol === "<->" ? 1 : Number(symbol.slice(1, -1));
      if (distance > DISTANCE_MAX) {
        throw new DatabaseError(
          "INVALID_VALUE",
          `Cannot read ${excerpt(this.#text)} as tsquery: the distance between two words can ` +
            `be at most ${DISTANCE_MAX}`,
        );
      }
      left = { kind: "phrase", distance, left, right: this.#negation() };
    }
  }

  #negation(): TsQueryPart {
    this.#depth += 1;
    if (this.#depth > DEPTH_MAX) throw this.#malformed();
    const part: TsQueryPart = this.#accept("!")
      ? { kind: "not", operand: this.#negation() }
      : this.#primary();
    this.#depth -= 1;
    return part;
  }

  #primary(): TsQueryPart {
    if (this.#accept("(")) {
      const inner = this.#either();
      if (!this.#accept(")")) throw this.#malformed();
      return inner;
    }
    const match = this.#match;
    if (match === null || match[1] !== undefined) throw this.#malformed();
    const flags = match[4] ?? "";
    const word = unescapedTsWord(match[2] ?? match[3] ?? "", match[2] !== undefined);
    this.#words += 1;
    if (word === "" || this.#words > WORDS_MAX) throw this.#malformed();
    this.#advance();
    return this.#operand({
      kind: "word",
      word,
      isPrefix: flags.includes("*"),
      weights: Array.from(flags).reduce((bits, letter) => {
        const weight = tsWeightOf(letter);
        return weight === undefined ? bits : bits | (1 << weight);
      }, 0),
    });
  }
}

/** The rest of a query after ignored words have been removed. */
interface Cleaned {
  readonly query: TsQuery | undefined;
  /** The distances that the removed words leave before and after the rest of the query. */
  readonly before: number;
  readonly behind: number;
}

/**
 * Removes ignored words from a query. In a phrase, the distance between the remaining words grows
 * by the number of words removed.
 */
export function withoutNothing(part: TsQueryPart): TsQuery | undefined {
  return cleaned(part).query;
}

function cleaned(part: TsQueryPart): Cleaned {
  switch (part.kind) {
    case "nothing":
      return { query: undefined, before: 0, behind: 0 };
    case "word":
      return { query: part, before: 0, behind: 0 };
    case "not": {
      const { query } = cleaned(part.operand);
      const negated: TsQuery | undefined =
        query === undefined ? undefined : { kind: "not", operand: query };
      return { query: negated, before: 0, behind: 0 };
    }
    default:
      return cleanedBranch(part);
  }
}

function cleanedBranch(part: Exclude<TsQueryBranch, { kind: "not" }>): Cleaned {
  const [left, right] = [cleaned(part.left), cleaned(part.right)];
  const distance = part.kind === "phrase" ? part.distance : 0;
  if (left.query === undefined && right.query === undefined) {
    const all =
      part.kind === "phrase"
        ? left.before + distance + right.before
        : Math.max(left.before, right.before);
    return { query: undefined, before: all, behind: all };
  }
  if (left.query === undefined) {
    if (part.kind !== "phrase") return right;
    return { ...right, before: left.before + distance + right.before };
  }
  if (right.query === undefined) {
    if (part.kind !== "phrase") return left;
    return { ...left, behind: left.behind + distance + right.behind };
  }
  if (part.kind !== "phrase") {
    return {
      query: { kind: part.kind, left: left.query, right: right.query },
      before: 0,
      behind: 0,
    };
  }
  const between = distance + left.behind + right.before;
  return {
    query: { kind: "phrase", distance: between, left: left.query, right: right.query },
    before: left.before,
    behind: right.behind,
  };
}

export function textFromTsQuery(query: TsQuery | undefined): string {
  return query === undefined ? "" : written(query, -1, false);
}

const PRIORITIES = { or: 1, and: 2, phrase: 3, not: 4 } as const;

/**
 * Returns the text of a query, with parentheses where necessary.
 * @param isRightOfPhrase Whether a phrase needs parentheses here, because phrases associate to the
 *   left.
 */
function written(query: TsQuery, outer: number, isRightOfPhrase: boolean): string {
  if (query.kind === "word") return wordText(query);
  const priority = PRIORITIES[query.kind];
  const inner =
    query.kind === "not"
      ? `!${written(query.operand, priority, false)}`
      : `${written(query.left, priority, false)} ${symbolOf(query)} ${written(query.right, priority, query.kind === "phrase")}`;
  const needsBrackets = priority < outer || (query.kind === "phrase" && isRightOfPhrase);
  return needsBrackets ? `( ${inner} )` : inner;
}

function symbolOf(query: Exclude<TsQuery, { kind: "word" | "not" }>): string {
  if (query.kind === "and") return "&";
  if (query.kind === "or") return "|";
  return query.distance === 1 ? "<->" : `<${query.distance}>`;
}

function wordText({ isPrefix, weights, word }: TsQueryWord): string {
  const letters = ([3, 2, 1, 0] as const)
    .filter((weight) => (weights & (1 << weight)) !== 0)
    .map(tsWeightLetter);
  const flags = `${isPrefix ? "*" : ""}${letters.join("")}`;
  return quotedTsWord(word) + (flags === "" ? "" : `:${flags}`);
}
