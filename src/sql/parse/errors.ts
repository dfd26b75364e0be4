/**
 * What a syntax error says: the token found, what was expected there, and the keyword that was
 * probably meant.
 *
 * Contents of strings never enter a message: a string may be a password.
 */
import { DatabaseError, type ErrorDetails, withDetails } from "../../base/errors.ts";
import { adviceAt } from "./dialect_advice.ts";
import { Token, type Tokens } from "./text/lexer.ts";

const SHOWN_CHARACTERS_MAX = 40;
const SHOWN_WORDS_MAX = 6;

/** What the parser looked for at the furthest token; kept only while an error is explained. */
export class Expectations {
  #token = -1;
  readonly #asked = new Set<string>();
  readonly #possible = new Set<string>();

  /** The parser asked whether `word` stands at a token. */
  note(token: number, word: string): void {
    if (this.#reaches(token)) this.#asked.add(word);
  }

  /** `word` could stand at a token too: good for a hint, too much for the message. */
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

  /** The words asked for at a token. */
  askedAt(token: number): readonly string[] {
    return token === this.#token ? [...this.#asked] : [];
  }

  /** All words that could stand at a token. */
  possibleAt(token: number): readonly string[] {
    return token === this.#token ? [...this.#asked, ...this.#possible] : [];
  }
}

/** Parses a query that is to be followed: a construct that is not available is a fault of it. */
export function parseFollowed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.condition !== "UNSUPPORTED_FEATURE") throw error;
    throw withDetails(error, { condition: "INVALID_SQL" });
  }
}

/** Where and in what a parser stopped. */
export interface SyntaxStop {
  readonly tokens: Tokens;
  readonly token: number;
  /** Index of a word that was taken as an alias without AS, or -1. */
  readonly aliasToken: number;
  readonly statementIndex: number;
  readonly expectations: Expectations | undefined;
}

/** A thing ("a table"), or a word without which nothing goes on; "" for neither. */
export type Expected = { readonly thing: string } | { readonly word: string };

/** The error for a token that cannot stand where it does. */
export function unexpectedToken(stop: SyntaxStop, expected: Expected): DatabaseError {
  const words = stop.expectations?.possibleAt(stop.token) ?? [];
  const asked = stop.expectations?.askedAt(stop.token) ?? [];
  const alias = stop.aliasToken === stop.token - 1 ? stop.aliasToken : -1;
  // `SELECT id FORM t` fails at t, but FORM is the fault.
  const misspelt = alias === -1 ? undefined : nearWord(tokenText(stop.tokens, alias), words);
  // A text that does not parse is parsed a second time with notes, so that the error can be
  // explained.
  const advice = stop.expectations && adviceAt(stop.tokens, stop.token);
  // A keyword of another system may resemble one of ours, so advice takes precedence.
  if (misspelt !== undefined && advice?.token !== alias) {
    const fault = `expected ${shown(misspelt)}`;
    return faultAt(stop, { token: alias, fault, hint: meaning(misspelt) });
  }
  const token = advice?.token ?? stop.token;
  const isThere = token === stop.token;
  const fault = isThere ? `expected ${describe(expected, asked)}` : "which is not allowed here";
  const hint = advice?.hint ?? meaning(nearWord(wordText(stop.tokens, token), words));
  // A password in the wrong quotes must stay hidden, too.
  const isText = "thing" in expected && expected.thing.startsWith("a string");
  if (!isText || stop.tokens.kinds[token] !== Token.quoted) {
    return faultAt(stop, { token, fault, hint });
  }
  const found = "a name in double quotes";
  return faultAt(stop, { token, fault, hint: "write text in single quotes: 'text'", found });
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

/** A syntax error that is not about one token. */
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

/** A construct that is known and outside of this version. */
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
  // A thing says it all: its first words would only repeat it.
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

function tokenShown(tokens: Tokens, token: number): string {
  switch (tokens.kinds[token]) {
    case Token.end:
      return "the end of the text";
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

function tokenText(tokens: Tokens, token: number): string {
  return tokens.text.slice(tokens.starts[token], tokens.ends[token]);
}

function wordText(tokens: Tokens, token: number): string {
  return tokens.kinds[token] === Token.word ? tokenText(tokens, token) : "";
}

// The nearest of some words, when it is near enough to be a slip of the hand.
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

// Insertions, deletions, replacements and swaps of neighbours that lead from one word to another.
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
