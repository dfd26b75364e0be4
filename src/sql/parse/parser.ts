/**
 * Implements the entry point of the parser, which turns the text of a request into statements.
 *
 * A text that does not parse is parsed a second time, solely to determine which tokens were
 * expected. The first pass therefore need not record them.
 */
import { DatabaseError } from "../../base/errors.ts";
import { NESTING_MAX } from "../../base/limits.ts";
import type { DataTypeDef, Expr, Statement } from "./ast/ast.ts";
import { newCounts, requireStatements } from "./bounds.ts";
import { Cursor, type Grammar, type ParseLimits } from "./cursor.ts";
import { parseDataType } from "./data_types.ts";
import { Expectations } from "./errors.ts";
import { parseExpression as parseAnyExpression, parseOperand } from "./expressions.ts";
import { parseQuery, parseQueryRest } from "./select.ts";
import { parseStatement } from "./statements.ts";
import { type LexedTokens, Token, tokenize, tokenizeWithLists } from "./text/lexer.ts";
import type { NormalizedStatement, SlotLiteral } from "./text/normalize.ts";

export type { ParseLimits } from "./cursor.ts";

/** The default values of the keys `limits.*`. */
export const PARSE_LIMITS: ParseLimits = {
  sqlBytesMax: 1024 * 1024,
  parametersMax: 32_767,
  nestingMax: NESTING_MAX,
};

/** The statements of a text, after parsing. */
export interface ParsedRequest {
  readonly statements: readonly Statement[];
  /** The highest parameter number in the text: n in `$n`. */
  readonly parameterCount: number;
}

const GRAMMAR: Grammar = {
  expression: parseAnyExpression,
  operand: parseOperand,
  query: parseQuery,
  queryRest: parseQueryRest,
  dataType: parseDataType,
  statement: parseStatement,
};

/**
 * Parses the statements of a text.
 * @throws {DatabaseError} EMPTY_SQL, INVALID_SQL, BATCH_PARSE_ERROR, UNSUPPORTED_FEATURE,
 *   INVALID_INPUT, INVALID_PARAMETER.
 */
export function parseStatements(text: string, limits: ParseLimits = PARSE_LIMITS): Statement[] {
  return [...parseRequest(text, limits).statements];
}

/**
 * Parses statements as {@linkcode parseStatements} does, and also returns the number of parameters.
 *
 * @param utf8 The UTF-8 form of `text`, if the caller has it. The statements may keep references to
 *   it.
 */
export function parseRequest(
  text: string,
  limits: ParseLimits = PARSE_LIMITS,
  utf8?: Uint8Array,
): ParsedRequest {
  checkSize(text, limits);
  const listed = tokenizeWithLists(text, utf8);
  const hasLists = listed.literalLists.length > 0;
  const read = hasLists ? parsedWithLists(listed, limits) : "unread";
  if (typeof read === "object") return read;
  const tokens = hasLists ? tokenize(text) : listed;
  const parse = (expectations: Expectations | undefined): ParsedRequest => {
    const cursor = newCursor(tokens, limits, undefined, expectations);
    const statements = parseAll(cursor);
    if (statements.length === 0) {
      throw new DatabaseError("EMPTY_SQL", "Cannot run the text: it contains no statement", {
        position: 0,
      });
    }
    return { statements, parameterCount: cursor.parameterCount };
  };
  // If the text has already failed to parse, another pass that records nothing would be useless.
  return read === "wrong" ? parse(new Expectations()) : explained(parse);
}

/**
 * Parses a text in which each long list of literals is one token. Returns "unread" if a token turns
 * out not to be a list, and "wrong" if the text does not parse for this or another reason.
 */
function parsedWithLists(
  tokens: LexedTokens,
  limits: ParseLimits,
): ParsedRequest | "unread" | "wrong" {
  const cursor = newCursor(tokens, limits, undefined, undefined);
  try {
    const statements = parseAll(cursor);
    if (cursor.literalListCount !== tokens.literalLists.length) return "unread";
    return { statements, parameterCount: cursor.parameterCount };
  } catch (error) {
    // Safe to ignore: the text is read again token by token, and the same error is then raised.
    if (error instanceof DatabaseError) return "wrong";
    throw error;
  }
}

/**
 * Parses the one statement that `normalizeStatement` found, with its literals as slots. Returns
 * undefined if the grammar itself needs a lifted literal, because no plan of such a statement is
 * cached.
 */
export function parseNormalized(
  text: string,
  normalized: NormalizedStatement,
  limits: ParseLimits = PARSE_LIMITS,
): { readonly statement: Statement; readonly parameterCount: number } | undefined {
  checkSize(text, limits);
  const tokens = tokenize(text, normalized.start, normalized.end);
  return explained((expectations) => {
    const cursor = newCursor(tokens, limits, normalized.literals, expectations);
    const statement = parseStatement(cursor);
    if (cursor.kind !== Token.end) cursor.unexpectedEnd("statement");
    if (cursor.slotCount !== normalized.literals.length) return undefined;
    return { statement, parameterCount: cursor.parameterCount };
  });
}

/**
 * Parses a stored expression, such as a default or a check. Positions refer to the text of the
 * expression.
 */
export function parseExpression(text: string, limits: ParseLimits = PARSE_LIMITS): Expr {
  checkSize(text, limits);
  const tokens = tokenize(text);
  return explained((expectations) => {
    const cursor = newCursor(tokens, limits, undefined, expectations);
    const expression = parseAnyExpression(cursor);
    if (cursor.kind !== Token.end) cursor.unexpectedEnd("expression");
    return expression;
  });
}

/** Parses the name of a data type. */
export function parseTypeName(text: string): DataTypeDef {
  const tokens = tokenize(text);
  return explained((expectations) => {
    const cursor = newCursor(tokens, PARSE_LIMITS, undefined, expectations);
    const type = parseDataType(cursor);
    if (cursor.kind !== Token.end) cursor.unexpectedEnd("type");
    return type;
  });
}

function checkSize(text: string, limits: ParseLimits): void {
  // A UTF-16 code unit never takes more than three bytes of UTF-8.
  if (text.length * 3 <= limits.sqlBytesMax) return;
  const bytes = Buffer.byteLength(text);
  if (bytes <= limits.sqlBytesMax) return;
  throw new DatabaseError(
    "INVALID_SQL",
    `Cannot parse the text: it has ${bytes} bytes, but must have at most ${limits.sqlBytesMax}`,
    { position: 0 },
  );
}

function newCursor(
  tokens: LexedTokens,
  limits: ParseLimits,
  slots: readonly SlotLiteral[] | undefined,
  expectations: Expectations | undefined,
): Cursor {
  return new Cursor({ tokens, grammar: GRAMMAR, limits, slots, expectations });
}

// Runs a parse. If it fails, runs it again while recording the expected tokens.
function explained<T>(parse: (expectations: Expectations | undefined) => T): T {
  try {
    return parse(undefined);
  } catch (error) {
    if (error instanceof DatabaseError && error.code === "INVALID_SQL") {
      return parse(new Expectations());
    }
    throw error;
  }
}

function parseAll(cursor: Cursor): Statement[] {
  const statements: Statement[] = [];
  for (;;) {
    while (cursor.isAhead(0, ";")) cursor.token += 1;
    if (cursor.kind === Token.end) return statements;
    cursor.statementIndex = statements.length;
    cursor.counts = newCounts();
    requireStatements(cursor, statements.length + 1);
    statements.push(parseStatement(cursor));
    if (cursor.kind !== Token.end && !cursor.is(";")) {
      cursor.unexpectedEnd("statement");
    }
  }
}
