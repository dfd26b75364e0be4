/**
 * Creates the messages of syntax errors: the token found, the tokens expected, and the keyword that
 * was probably intended.
 *
 * The contents of strings never enter a message, because a string may be a password.
 */
import { DatabaseError, type ErrorDetails, withDetails } from "../../base/errors.ts";
import { adviceAt } from "./dialect_advice.ts";
import { type LexedTokens, Token } from "./text/lexer.ts";

const SHOWN_CHARACTERS_MAX = 40;
const SHOWN_WORDS_MAX = 6;

/**
 * The tokens that the parser expected at the furthest position it reached. They are recorded only
 * while an error is being explained.
 */
export class Expectations {
  #token = -1;
  readonly #asked = new Set<string>();
  readonly #possible = new Set<string>();

  /** Records that the parser tested whether a token is `word`. */
  note(token: number, word: string): void {
    if (this.#reaches(token)) this.#asked.add(word);
  }

  /**
   * Records that `word` would also be valid at a token. Hints may suggest such words, but there
   * are too many of them to list in the message.
   */
  notePossible(token: number, word: string): void {
    if (this.#reaches(token)) this.#possible.add(word);
  }

  #reaches(token: number): boolean {
    if (token > this.#token) {
      this.#token = token;
      this.#asked.clear();
      this.#possible.clear();
    }
    return token === this.#token;
  }

  /** Returns the words for which the parser tested at the position of a token. */
  askedAt(token: number): readonly string[] {
    return token === this.#token ? [...this.#asked] : [];
  }

  /** Returns all words that would be valid at the position of a token. */
  possibleAt(token: number): readonly string[] {
    return token === this.#token ? [...this.#asked, ...this.#possible] : [];
  }
}

/**
 * Parses a query that a subscription is to follow. An unsupported construct in the query is
 * reported as an error in the query.
 */
export function parseFollowed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.code !== "UNSUPPORTED_FEATURE") throw error;
    throw withDetails(error, { code: "INVALID_SQL" });
  }
}

/** The state of a parser that has stopped at an error. */
export interface SyntaxStop {
  readonly tokens: LexedTokens;
  readonly token: number;
  /** The index of the last word that was read as an alias without AS, or -1 if there is none. */
  readonly aliasToken: number;
  readonly statementIndex: number;
  readonly expectations: Expectations | undefined;
}

/**
 * The token that the grammar requires: a construct such as "a table", or the only possible word,
 * which may be "".
 */
export type Expected = { readonly thing: string } | { readonly word: string };

/** Returns the error for a token that is not allowed at its position. */
export function unexpectedToken(stop: SyntaxStop, expected: Expected): DatabaseError {
  const words = stop.expectations?.possibleAt(stop.token) ?? [];
  const asked = stop.expectations?.askedAt(stop.token) ?? [];
  const alias = stop.aliasToken === stop.token - 1 ? stop.aliasToken : -1;
  // In `SELECT id FORM t`, the parser stops at t, but the mistake is FORM.
  const misspelt = alias === -1 ? undefined : nearWord(tokenText(stop.tokens, alias), words);
  // Expectations are recorded only when the SQL is parsed a second time to explain an error.
  const advice = stop.expectations && adviceAt(stop.tokens, stop.token);
  // A keyword of another database system may resemble one of Tidemark's keywords, so advice on
  // that system takes precedence over a spelling suggestion.
  if (misspelt !== undefined && advice?.token !== alias) {
    const fault = `expected ${shown(misspelt)}`;
    return faultAt(stop, { token: alias, fault, hint: meaning(misspelt) });
  }
  const token = advice?.token ?? stop.token;
  const isThere = token === stop.token;
  const fault = isThere ? `expected ${describe(expected, asked)}` : "which is not allowed here";
  const hint = advice?.hint ?? meaning(nearWord(wordText(stop.tokens, token), words));
  // A password must stay hidden even if it was written in the wrong kind of quotes.
  const isText = "thing" in expected && expected.thing.startsWith("a string");
  if (!isText || stop.tokens.kinds[token] !== Token.quoted) {
    return faultAt(stop, { token, fault, hint });
  }
  const found = "a name in double quotes";
  return faultAt(stop, { token, fault, hint: "write strings in single quotes: 'text'", found });
}

function meaning(word: string | undefined): string | undefined {
  return word === undefined ? undefined : `did you mean ${shown(word)}?`;
}

function faultAt(
  { statementIndex, tokens }: SyntaxStop,
  {
    fault,
    found,
    hint,
    token,
  }: { token: number; fault: string; hint: string | undefined; found?: string },
): DatabaseError {
  return syntaxError(statementIndex, `found ${found ?? tokenShown(tokens, token)}, ${fault}`, {
    position: tokens.starts[token] ?? 0,
    ...(hint === undefined ? {} : { hint }),
  });
}

/** Returns a syntax error that does not concern a single token. */
export function syntaxError(
  statementIndex: number,
  what: string,
  details: ErrorDetails,
): DatabaseError {
  return new DatabaseError("INVALID_SQL", `Cannot parse the statement: ${what}`, {
    ...details,
    statementIndex,
  });
}

/** Returns the error for a known construct that this version does not support. */
export function unsupported(
  construct: string,
  statementIndex: number,
  details: ErrorDetails,
): DatabaseError {
  return new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot use ${construct}: it is not available yet`,
    { ...details, statementIndex },
  );
}

function describe(expected: Expected, words: readonly string[]): string {
  // The name of a construct covers all words with which the construct can begin, so listing these
  // words as well would be redundant.
  if ("thing" in expected) return expected.thing;
  const parts = [...new Set([expected.word, ...words])].filter((word) => word !== "").map(shown);
  const listed = parts.slice(0, SHOWN_WORDS_MAX);
  if (parts.length > listed.length) return `${listed.join(", ")} …`;
  const last = listed.pop() ?? "something else";
  return listed.length === 0 ? last : `${listed.join(", ")} or ${last}`;
}

function shown(word: string): string {
  if (word.startsWith("end of ")) return `the ${word}`;
  return /^[a-z_]/.test(word) ? word.toUpperCase() : `"${word}"`;
}

function tokenShown(tokens: LexedTokens, token: number): string {
  switch (tokens.kinds[token]) {
    case Token.end:
      return "the end of the SQL";
    case Token.string:
    case Token.encodedString:
      return "a string";
    default: {
      const text = tokenText(tokens, token);
      const cut = text.length > SHOWN_CHARACTERS_MAX;
      return `"${cut ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text}"`;
    }
  }
}

function tokenText(tokens: LexedTokens, token: number): string {
  return tokens.text.slice(tokens.starts[token], tokens.ends[token]);
}

function wordText(tokens: LexedTokens, token: number): string {
  return tokens.kinds[token] === Token.word ? tokenText(tokens, token) : "";
}

// Returns the word that is most similar to a text, if it is similar enough to suggest a typo.
function nearWord(text: string, words: readonly string[]): string | undefined {
  const found = text.toLowerCase();
  if (found.length < 2 || found.length > 20) return undefined;
  let best: string | undefined;
  let bestDistance = found.length <= 4 ? 1.5 : 2.5;
  for (const word of words) {
    if (word.length < 2 || !/^[a-z]/.test(word)) continue;
    const distance = editDistance(found, word);
    if (distance > 0 && distance < bestDistance) {
      best = word;
      bestDistance = distance;
    }
  }
  return best;
}

// Returns the edit distance of two words: the number of insertions, deletions, replacements and
// swaps of neighbouring characters that turn one into the other. Exact only for small distances.
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return 3;
  let before: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let least = Math.min(
        (previous[j] ?? 0) + 1,
        (current[j - 1] ?? 0) + 1,
        (previous[j - 1] ?? 0) + cost,
      );
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, (before[j - 2] ?? 0) + 1);
      }
      current.push(least);
    }
    before = previous;
    previous = current;
  }
  return previous[b.length] ?? 0;
}
