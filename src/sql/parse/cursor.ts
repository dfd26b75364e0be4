/**
 * Implements the parser's position in a list of tokens, with the operations that all parts of the
 * parser need: testing for words, reading names and locating nodes.
 *
 * The grammar is mutually recursive (a query contains expressions, and an expression contains
 * queries), but imports must not be. The parts of the parser therefore call each other through
 * {@linkcode Grammar}.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type DataTypeDef,
  EXPRESSION_DEPTH_MAX,
  type Expr,
  type LiteralList,
  type Location,
  type Name,
  type QName,
  type SelectStatement,
  type Statement,
} from "./ast/ast.ts";
import { countPart, newCounts, requireListed, type StatementCounts } from "./bounds.ts";
import {
  type Expectations,
  type SyntaxStop,
  syntaxError,
  unexpectedToken,
  unsupported,
} from "./errors.ts";
import { isFunctionWord, isNameWord, type Keyword } from "./text/keywords.ts";
import { type LexedTokens, Token } from "./text/lexer.ts";
import { decodeString, integerText } from "./text/literals.ts";
import type { SlotLiteral } from "./text/normalize.ts";

/** The limits on the SQL of a request. */
export interface ParseLimits {
  /** The maximum size of the SQL in UTF-8 bytes. */
  readonly sqlBytesMax: number;
  /** The highest n allowed in a parameter `$n`. */
  readonly parametersMax: number;
  /** The maximum nesting depth of parentheses, subqueries and other constructs. */
  readonly nestingMax: number;
}

/** The parse functions that the files of the parser call in one another without importing them. */
export interface Grammar {
  expression(cursor: Cursor): Expr;
  /** Parses an operand up to the next operator that binds no tighter than BETWEEN, IN and LIKE. */
  operand(cursor: Cursor): Expr;
  query(cursor: Cursor): SelectStatement;
  /**
   * Parses everything that can follow the first operand of a query: set operations, ORDER BY and
   * LIMIT.
   */
  queryRest(cursor: Cursor, left: SelectStatement, start: number): SelectStatement;
  dataType(cursor: Cursor): DataTypeDef;
  statement(cursor: Cursor): Statement;
}

type Symbols =
  | "("
  | ")"
  | "["
  | "]"
  | ","
  | ";"
  | "."
  | ":"
  | "::"
  | "="
  | "*"
  | "=>"
  | ":="
  | "<"
  | ">"
  | "-"
  | "+";

/** A keyword or a symbol. */
export type Word = Keyword | Symbols;

/** The first words of statements that change rows. */
const CHANGES: ReadonlySet<string> = new Set<Keyword>(["insert", "update", "delete", "merge"]);

/** A node under construction, whose members can still be assigned. */
export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** The tokens to parse, and the settings of the parse. */
export interface CursorOptions {
  readonly tokens: LexedTokens;
  readonly grammar: Grammar;
  readonly limits: ParseLimits;
  /** The literals to be replaced by slots, in the order in which they occur in the SQL. */
  readonly slots: readonly SlotLiteral[] | undefined;
  readonly expectations: Expectations | undefined;
}

/**
 * A position in the tokens of the SQL, with the operations that every part of the parser needs.
 */
export class Cursor {
  readonly text: string;
  readonly tokens: LexedTokens;
  readonly grammar: Grammar;
  readonly limits: ParseLimits;
  /** The index of the next token. */
  token = 0;
  statementIndex = 0;
  /** The highest parameter number seen so far. */
  parameterCount = 0;
  /** The depth of the most recent expression. `depthMax` is the greatest depth since `enter`. */
  depth = 0;
  depthMax = 0;
  /** The index of the last word read as an alias without AS, for `errors.ts`. */
  aliasToken = -1;
  /** Whether the word OPTIONS ends the current query instead of being read as an alias. */
  optionsEndQuery = false;
  /** The number of literals replaced by slots so far. */
  slotCount = 0;
  /** The number of occurrences of each construct in the current statement so far. */
  counts: StatementCounts = newCounts();
  /** The number of literal lists read so far. */
  literalListCount = 0;
  #nesting = 0;
  readonly #slots: readonly SlotLiteral[] | undefined;
  #slot = 0;
  readonly #expectations: Expectations | undefined;

  constructor(options: CursorOptions) {
    this.text = options.tokens.text;
    this.tokens = options.tokens;
    this.grammar = options.grammar;
    this.limits = options.limits;
    this.#slots = options.slots;
    this.#expectations = options.expectations;
  }

  /** The next token, if it is a keyword or symbol; "" otherwise. */
  get word(): string {
    return this.tokens.words[this.token] ?? "";
  }

  get kind(): number {
    return this.tokens.kinds[this.token] ?? Token.end;
  }

  /** The offset of the next token in the SQL. */
  get start(): number {
    return this.tokens.starts[this.token] ?? this.text.length;
  }

  /** The offset in the SQL after the last token read. */
  get end(): number {
    return this.token === 0 ? this.start : (this.tokens.ends[this.token - 1] ?? 0);
  }

  /**
   * The first token of a query that may end in a locking clause; undefined within that query and
   * after it.
   */
  lockableStart: number | undefined;

  is(word: Word): boolean {
    if (this.tokens.words[this.token] === word) return true;
    this.#expectations?.note(this.token, word);
    return false;
  }

  /** Whether the token `count` positions after the next one is the given word. */
  isAhead(count: number, word: Word): boolean {
    return this.tokens.words[this.token + count] === word;
  }

  wordAhead(count: number): string {
    return this.tokens.words[this.token + count] ?? "";
  }

  kindAhead(count: number): number {
    return this.tokens.kinds[this.token + count] ?? Token.end;
  }

  accept(word: Word): boolean {
    if (this.tokens.words[this.token] === word) {
      this.token += 1;
      return true;
    }
    this.#expectations?.note(this.token, word);
    return false;
  }

  expect(word: Word): void {
    if (!this.accept(word)) throw unexpectedToken(this.#stop(), { word });
  }

  /** Reads the given words if they come next in this order. Otherwise, reads nothing. */
  acceptAll(...words: readonly Word[]): boolean {
    for (const [index, word] of words.entries()) {
      if (index === 0 ? !this.is(word) : !this.isAhead(index, word)) return false;
    }
    this.token += words.length;
    return true;
  }

  expectAll(...words: readonly Word[]): void {
    for (const word of words) this.expect(word);
  }

  /** Reads one of the given words and returns it. */
  expectOneOf<W extends Word>(...words: readonly W[]): W {
    for (const word of words) if (this.accept(word)) return word;
    throw unexpectedToken(this.#stop(), { word: "" });
  }

  acceptOneOf<W extends Word>(...words: readonly W[]): W | undefined {
    return words.find((word) => this.accept(word));
  }

  /** Records words that would be valid at the current position, for hints. */
  couldBe(...words: readonly Word[]): void {
    if (this.#expectations === undefined) return;
    for (const word of words) this.#expectations.notePossible(this.token, word);
  }

  /** Whether the next token can be the name of a column, table or alias. */
  isName(): boolean {
    return this.isNameAhead(0);
  }

  isNameAhead(count: number): boolean {
    const kind = this.kindAhead(count);
    return kind === Token.quoted || (kind === Token.word && isNameWord(this.wordAhead(count)));
  }

  /** Whether the next token can be the name of a function. */
  isFunctionName(): boolean {
    return this.kind === Token.quoted || (this.kind === Token.word && isFunctionWord(this.word));
  }

  name(what: string): Name {
    if (!this.isName()) this.#unexpectedName(what);
    return this.takeName();
  }

  /** Reads a name after AS or a dot, where reserved words are also allowed. */
  label(what: string): Name {
    if (this.kind !== Token.word && this.kind !== Token.quoted) this.unexpected(what);
    return this.takeName();
  }

  /** Reads the next token, which must be a word or a quoted name, as a name. */
  takeName(): Name {
    const name = this.nameText(this.token);
    this.token += 1;
    return { name, _location: this.since(this.token - 1) };
  }

  /**
   * Returns the name at a token in the form used for comparisons: folded to lower case unless
   * quoted.
   */
  nameText(token: number): string {
    const start = this.tokens.starts[token] ?? 0;
    const end = this.tokens.ends[token] ?? 0;
    if (this.tokens.kinds[token] === Token.quoted) {
      if (this.text.charAt(start) !== '"') return this.decode(start, end);
      return this.text.slice(start + 1, end - 1).replaceAll('""', '"');
    }
    const keyword = this.tokens.words[token] ?? "";
    return keyword === "" ? this.text.slice(start, end).toLowerCase() : keyword;
  }

  /**
   * Parses a qualified name: `name` or `namespace.name`. Before a dot, `default` needs no quotes.
   */
  qname(what: string): QName {
    const start = this.token;
    const isDefault = this.isAhead(1, ".") && this.word === "default";
    const first = isDefault ? this.takeName() : this.name(what);
    if (!this.accept(".")) return first;
    const second = this.label(what);
    return { name: second.name, schema: first.name, _location: this.since(start) };
  }

  names(what: string): Name[] {
    const names = [this.name(what)];
    while (this.accept(",")) {
      names.push(this.name(what));
      requireListed(this, names.length, "names in a single list");
    }
    return names;
  }

  /** Parses a list of names: `( a, b )`. */
  nameList(what: string): Name[] {
    this.expect("(");
    const names = this.names(what);
    this.expect(")");
    return names;
  }

  isString(): boolean {
    return this.kind === Token.string || this.kind === Token.encodedString;
  }

  string(what: string): string {
    if (!this.isString()) this.unexpected(what);
    return this.takeString();
  }

  /** Reads the next token, which must be a string, and returns its value. */
  takeString(): string {
    const token = this.token;
    this.token += 1;
    const start = this.tokens.starts[token] ?? 0;
    const end = this.tokens.ends[token] ?? 0;
    return this.tokens.kinds[token] === Token.string
      ? this.text.slice(start + 1, end - 1)
      : this.decode(start, end);
  }

  /** Decodes a string token. */
  decode(start: number, end: number): string {
    return decodeString({ text: this.text, start, end }, (what, at) => this.fail(what, at));
  }

  /**
   * Reads VALUES, IN or ARRAY together with its list, if the lexer has combined the list into a
   * single token.
   */
  takeLiteralList(word: "values" | "in" | "array"): LiteralList | undefined {
    if (!this.is(word) || this.kindAhead(1) !== Token.literalList) return undefined;
    const list = this.tokens.literalLists[this.literalListCount];
    this.token += 2;
    this.literalListCount += 1;
    return defined(list, "parser: literal list token has no list");
  }

  /** Whether the next word begins INSERT, UPDATE, DELETE or MERGE. */
  get beginsChange(): boolean {
    return CHANGES.has(this.word);
  }

  /** Reads the data that follow a COPY statement in the SQL, as UTF-8. */
  takeCopyData(): Uint8Array | undefined {
    if (this.kind !== Token.copyData) return undefined;
    const { start } = this;
    this.token += 1;
    return Buffer.from(this.text.slice(start, this.end));
  }

  /** Reads an integer and returns its exact digits. */
  digits(what: string): string {
    if (this.kind !== Token.integer) this.unexpected(what);
    const { start } = this;
    const text = this.text.slice(start, this.tokens.ends[this.token]);
    this.token += 1;
    return integerText(text, start, (found, at) => this.fail(found, at));
  }

  /** Reads an integer that JavaScript can represent exactly. */
  integer(what: string): number {
    const { start } = this;
    const value = Number(this.digits(what));
    if (!Number.isSafeInteger(value)) {
      this.fail(`${what} is too large: it must be at most ${Number.MAX_SAFE_INTEGER}`, start);
    }
    return value;
  }

  /** Returns the range from a token to the last token read. */
  since(token: number): Location {
    return {
      start: defined(this.tokens.starts[token], "parser: syntax node does not begin at a token"),
      end: this.end,
    };
  }

  /** Returns the slot for the literal at the next token, if that literal has been lifted out. */
  slotHere(): { readonly index: number; readonly literal: SlotLiteral } | undefined {
    if (this.#slots === undefined) return undefined;
    const { start } = this;
    while (this.#slot < this.#slots.length && (this.#slots[this.#slot]?.start ?? 0) < start) {
      this.#slot += 1;
    }
    const literal = this.#slots[this.#slot];
    if (literal?.start !== start) return undefined;
    this.slotCount += 1;
    return { index: this.#slot, literal };
  }

  /** Whether the parser is in its second pass, which only explains a syntax error. */
  get isExplaining(): boolean {
    return this.#expectations !== undefined;
  }

  /**
   * Enters a nesting level. Returns a value to pass to `leave`. If parsing fails, `leave` is not
   * called.
   */
  enter(): number {
    this.#nesting += 1;
    if (this.#nesting > this.limits.nestingMax) {
      this.fail(
        `the statement is nested more than ${this.limits.nestingMax} levels deep`,
        this.start,
      );
    }
    const outer = this.depthMax;
    this.depthMax = 0;
    return outer;
  }

  /**
   * Leaves a nesting level. The node that encloses this level is one level deeper than the deepest
   * expression within it.
   */
  leave(outer: number): void {
    this.#nesting -= 1;
    const inner = this.depthMax + 1;
    this.depthMax = outer;
    this.setDepth(inner);
  }

  /** Records the depth of an expression that has just been created. */
  setDepth(depth: number): void {
    countPart(this);
    this.depth = depth;
    if (depth > this.depthMax) this.depthMax = depth;
    if (depth > EXPRESSION_DEPTH_MAX) {
      this.fail(
        `an expression contains more than ${EXPRESSION_DEPTH_MAX} nested operations`,
        this.start,
      );
    }
  }

  /** Records that the next token is read as an alias without AS, for hints. */
  noteAlias(): void {
    this.aliasToken = this.token;
  }

  /** Reports that the next token is not allowed here. @throws {DatabaseError} INVALID_SQL */
  unexpected(thing: string): never {
    throw unexpectedToken(this.#stop(), { thing });
  }

  /** Reports that something follows the end of `what`. @throws {DatabaseError} INVALID_SQL */
  unexpectedEnd(what: string): never {
    throw unexpectedToken(this.#stop(), { word: `end of the ${what}` });
  }

  #unexpectedName(what: string): never {
    if (this.kind === Token.word) {
      const word = this.nameText(this.token);
      const error = unexpectedToken(this.#stop(), { thing: what });
      throw syntaxError(this.statementIndex, `found the reserved word ${word}, expected ${what}`, {
        position: this.start,
        hint: error.hint ?? `to use it as a name, put it in double quotes: "${word}"`,
      });
    }
    this.unexpected(what);
  }

  #stop(): SyntaxStop {
    return {
      tokens: this.tokens,
      token: this.token,
      aliasToken: this.aliasToken,
      statementIndex: this.statementIndex,
      expectations: this.#expectations,
    };
  }

  /** Reports an error that is not caused by a single token. @throws {DatabaseError} INVALID_SQL */
  fail(what: string, position: number, hint?: string): never {
    throw syntaxError(
      this.statementIndex,
      what,
      hint === undefined ? { position } : { position, hint },
    );
  }

  /**
   * Rejects the parameter `$0` or a parameter number above the limit. @throws {DatabaseError}
   * INVALID_PARAMETER
   */
  badParameter(position: number, found: string): never {
    throw new DatabaseError(
      "INVALID_PARAMETER",
      `Cannot parse the statement: found ${found.slice(0, 20)}, ` +
        `expected $1 to $${this.limits.parametersMax}`,
      { position, statementIndex: this.statementIndex },
    );
  }

  /**
   * Rejects an unsupported construct.
   *
   * @param position The position of the construct; by default, that of the next token.
   * @throws {DatabaseError} UNSUPPORTED_FEATURE
   */
  refuse(construct: string, hint?: string, position: number = this.start): never {
    throw unsupported(
      construct,
      this.statementIndex,
      hint === undefined ? { position } : { position, hint },
    );
  }
}
