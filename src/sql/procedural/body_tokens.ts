/**
 * Reads the tokens of a function body, and extracts the SQL from it.
 *
 * In PL/pgSQL, only the word or symbol that follows an SQL expression shows where the expression
 * ends. SQL is therefore extracted up to that token, ignoring occurrences in parentheses and CASE,
 * and then parsed by the SQL parser. Errors in the SQL are reported with their line in the body.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import type { DataTypeDef, Statement } from "../parse/ast/ast.ts";
import { isSelectNode } from "../parse/ast/query_nodes.ts";
import { PARSE_LIMITS, parseExpression, parseStatements, parseTypeName } from "../parse/parser.ts";
import { type LexedTokens, Token, tokenize } from "../parse/text/lexer.ts";
import type { QueryPiece, StatementPiece, ValuePiece, VisibleName } from "./tree.ts";

/** The limits for SQL in a body. The size of the body as a whole has already been checked. */
const LIMITS = { ...PARSE_LIMITS, sqlBytesMax: Number.POSITIVE_INFINITY };

/** A name as it is written in the body: `a`, `a.b` or `a.b.c`. */
export interface WrittenName {
  readonly parts: readonly string[];
}

export class BodyTokens {
  readonly text: string;
  readonly #tokens: LexedTokens;
  /** The offsets at which the lines of the body start, beginning with the second line. */
  readonly #lineStarts: readonly number[];
  token = 0;

  /** @throws {DatabaseError} INVALID_SQL, BATCH_PARSE_ERROR */
  constructor(text: string) {
    this.text = text;
    this.#lineStarts = [...text.matchAll(/\n/g)].map(({ index }) => index + 1);
    this.#tokens = tokenize(text);
  }

  /** The number of the line that contains the next token, counted from 1. */
  get line(): number {
    return this.lineAt(this.start);
  }

  lineAt(offset: number): number {
    let low = 0;
    let high = this.#lineStarts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (defined(this.#lineStarts[middle], "program body: line index is out of range") <= offset) {
        low = middle + 1;
      } else high = middle;
    }
    return low + 1;
  }

  get start(): number {
    return this.#tokens.starts[this.token] ?? this.text.length;
  }

  get isAtEnd(): boolean {
    return this.#kind(0) === Token.end;
  }

  /**
   * Returns the word or symbol that is `ahead` tokens after the next token; "" for quoted names
   * and literals.
   */
  word(ahead = 0): string {
    const at = this.token + ahead;
    const kind = this.#tokens.kinds[at] ?? Token.end;
    if (kind === Token.symbol) return this.#tokens.words[at] ?? "";
    if (kind !== Token.word) return "";
    return this.#textOf(at).toLowerCase();
  }

  is(word: string): boolean {
    return this.word() === word;
  }

  isAny(...words: readonly string[]): boolean {
    return words.includes(this.word());
  }

  accept(...words: readonly string[]): boolean {
    if (words.some((word, ahead) => this.word(ahead) !== word)) return false;
    this.token += words.length;
    return true;
  }

  expect(...words: readonly string[]): void {
    for (const word of words) {
      if (!this.accept(word)) throw this.unexpected(word.toUpperCase());
    }
  }

  /** Whether the token that is `ahead` tokens after the next token can be a name. */
  isName(ahead = 0): boolean {
    const kind = this.#kind(ahead);
    return kind === Token.word || kind === Token.quoted;
  }

  isString(): boolean {
    const kind = this.#kind(0);
    return kind === Token.string || kind === Token.encodedString;
  }

  /** Reads a name, folding it to lower case unless it is quoted. */
  name(what: string): string {
    const name = this.nameAt(0);
    if (name === undefined) throw this.unexpected(what);
    this.token += 1;
    return name;
  }

  nameAt(ahead: number): string | undefined {
    const at = this.token + ahead;
    const kind = this.#kind(ahead);
    const text = this.#textOf(at);
    if (kind === Token.word) return text.toLowerCase();
    if (kind === Token.parameter) return text;
    if (kind === Token.quoted) return text.slice(1, -1).replaceAll('""', '"');
    return undefined;
  }

  /** Returns the qualified name that begins at a token, without reading it. */
  writtenName(ahead = 0): WrittenName | undefined {
    const first = this.nameAt(ahead);
    if (first === undefined) return undefined;
    const parts = [first];
    for (let at = ahead + 1; this.word(at) === "."; at += 2) {
      const next = this.nameAt(at + 1);
      if (next === undefined) break;
      parts.push(next);
    }
    return { parts };
  }

  /** Reads a string constant. */
  string(what: string): string {
    if (!this.isString()) throw this.unexpected(what);
    const node = parseExpression(this.#textOf(this.token));
    this.token += 1;
    if (node.type === "string") return node.value;
    throw this.unexpected(what);
  }

  integer(what: string): number {
    if (this.#kind(0) !== Token.integer) throw this.unexpected(what);
    const value = Number(this.#textOf(this.token));
    this.token += 1;
    return value;
  }

  /**
   * Returns the number of tokens before the first of the given words, ignoring words in
   * parentheses and CASE; undefined if the statement ends before any of them.
   */
  distanceTo(words: readonly string[]): number | undefined {
    let depth = 0;
    let cases = 0;
    for (let ahead = 0; this.#kind(ahead) !== Token.end; ahead += 1) {
      const word = this.word(ahead);
      if (depth === 0 && cases === 0 && words.includes(word)) return ahead;
      if (depth === 0 && word === ";") return undefined;
      if (word === "(" || word === "[") depth += 1;
      else if (word === ")" || word === "]") depth -= 1;
      else if (word === "case") cases += 1;
      else if (word === "end" && cases > 0) cases -= 1;
      if (depth < 0) return undefined;
    }
    return undefined;
  }

  /**
   * Reads the text up to one of the given words, and stops before that word.
   * @throws {DatabaseError}
   */
  textUntil(words: readonly string[], what: string): string {
    const distance = this.distanceTo(words);
    const stop = words[0]?.toUpperCase() ?? ";";
    if (distance === undefined) throw this.missing(stop, what);
    if (distance === 0) throw this.unexpected(what);
    return this.take(distance);
  }

  /** Reads `count` tokens, and returns their text. */
  take(count: number): string {
    const from = this.start;
    this.token += count;
    return this.text.slice(from, this.#tokens.ends[this.token - 1] ?? from);
  }

  /** Reads an SQL expression that ends before one of the given words. */
  value(words: readonly string[], names: VisibleName | undefined): ValuePiece {
    const { line } = this;
    const text = this.textUntil(words, "an expression");
    return this.within(line, () => valuePiece(text, names));
  }

  /** Parses a part of the body. An error in it names the given line. */
  within<T>(line: number, parse: () => T): T {
    try {
      return parse();
    } catch (error) {
      if (!(error instanceof DatabaseError) || error instanceof BodyError) throw error;
      throw new BodyError(error, line);
    }
  }

  /** Returns the error for a next token that is not the expected one. */
  unexpected(expected: string): DatabaseError {
    const found = this.isAtEnd ? "the end of the body" : this.#found();
    return this.wrong(`found ${found}, expected ${expected}`);
  }

  missing(word: string, what: string): DatabaseError {
    return this.wrong(`expected ${word} after ${what}`);
  }

  wrong(why: string, line: number = this.line): DatabaseError {
    return new BodyError(
      new DatabaseError("INVALID_SQL", `Cannot parse the function body: ${why}`),
      line,
    );
  }

  refused(what: string, hint: string): DatabaseError {
    const { line } = this;
    const message = `Cannot run ${what} in a function: this is not supported`;
    return new BodyError(new DatabaseError("UNSUPPORTED_FEATURE", message, { hint }), line);
  }

  #found(): string {
    const kind = this.#kind(0);
    if (kind === Token.string || kind === Token.encodedString) return "a string";
    return `"${this.#textOf(this.token).slice(0, 40)}"`;
  }

  #kind(ahead: number): number {
    return this.#tokens.kinds[this.token + ahead] ?? Token.end;
  }

  #textOf(token: number): string {
    return this.text.slice(this.#tokens.starts[token] ?? 0, this.#tokens.ends[token] ?? 0);
  }
}

/**
 * An error in a function body. Its position is that of the whole body, so its message names the
 * line.
 */
class BodyError extends DatabaseError {
  constructor(error: DatabaseError, line: number) {
    const { hint } = error;
    super(error.code, `${error.message} (line ${line} of the function body)`, {
      hint,
      cause: error,
    });
  }
}

/** Parses an expression, or a query without its leading SELECT. */
function valuePiece(text: string, names: VisibleName | undefined): ValuePiece {
  try {
    return { kind: "expression", text, names, node: parseExpression(text, LIMITS) };
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.code !== "INVALID_SQL") throw error;
    const node = queryIn(`SELECT ${text}`);
    // If the text is not a query either, the error from parsing it as an expression is more
    // helpful.
    if (node === undefined) throw error;
    return { kind: "query", text, names, node };
  }
}

function queryIn(text: string): QueryPiece["node"] | undefined {
  try {
    const [node, ...others] = parseStatements(text, LIMITS);
    return node !== undefined && others.length === 0 && isSelectNode(node) ? node : undefined;
  } catch (error) {
    // Safe to ignore: the caller reports the error from parsing the text as an expression.
    if (error instanceof DatabaseError) return undefined;
    throw error;
  }
}

export function queryPiece(text: string, names: VisibleName | undefined): QueryPiece {
  const node = statementIn(text);
  if (isSelectNode(node)) return { kind: "query", text, names, node };
  throw new DatabaseError("INVALID_SQL", "Cannot parse the function body: expected a query");
}

/** Reads the query of a cursor, which may lock rows. @throws {DatabaseError} */
export function cursorPiece(
  text: string,
  names: VisibleName | undefined,
): QueryPiece | StatementPiece {
  const piece = statementPiece(text, names);
  return piece.node.type === "select for" ? piece : queryPiece(text, names);
}

export function statementPiece(text: string, names: VisibleName | undefined): StatementPiece {
  return { kind: "statement", text, names, node: statementIn(text) };
}

function statementIn(text: string): Statement {
  return defined(
    parseStatements(text, LIMITS)[0],
    "program body: piece of SQL text contains no statement",
  );
}

export function typeIn(text: string): DataTypeDef {
  return parseTypeName(text);
}
