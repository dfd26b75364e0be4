/**
 * The entry point of the parser, which turns the SQL of a request into statements.
 *
 * If the SQL does not parse, it is parsed a second time, only to determine which tokens were
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

/** The default values of the configuration keys `limits.*`. */
export const PARSE_LIMITS: ParseLimits = {
  sqlBytesMax: 1024 * 1024,
  parametersMax: 32_767,
  nestingMax: NESTING_MAX,
};

/** The result of parsing the SQL of a request. */
export interface ParsedRequest {
  readonly statements: readonly Statement[];
  /** The highest parameter number in the SQL: n in `$n`. */
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
 * Parses all statements in an SQL text.
 * @throws {DatabaseError} EMPTY_SQL, INVALID_SQL, BATCH_PARSE_ERROR, UNSUPPORTED_FEATURE,
 *   INVALID_INPUT, INVALID_PARAMETER.
 */
export function parseStatements(text: string, limits: ParseLimits = PARSE_LIMITS): Statement[] {
  return [...parseRequest(text, limits).statements];
}

/**
 * Parses statements like {@linkcode parseStatements}, and also returns the number of parameters.
 *
 * @param utf8 The bytes of `text` in UTF-8, if the caller has them. The statements may keep
 *   references to these bytes.
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
      throw new DatabaseError(
        "EMPTY_SQL",
        "Cannot run the request: its SQL contains no statement",
        {
          position: 0,
        },
      );
    }
    return { statements, parameterCount: cursor.parameterCount };
  };
  // SQL that has already failed to parse would fail again, so the pass without expectations is
  // skipped.
  return read === "wrong" ? parse(new Expectations()) : explained(parse);
}

/**
 * Parses SQL in which each long list of literals is a single token. Returns "unread" if the
 * grammar does not accept such a token as a list, and "wrong" if the SQL does not parse for this
 * or any other reason.
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
    // Safe to ignore: the SQL is parsed again token by token, which throws the same error.
    if (error instanceof DatabaseError) return "wrong";
    throw error;
  }
}

/**
 * Parses the single statement that `normalizeStatement` found, with its literals as slots. Returns
 * undefined if the grammar needs the value of a literal that has become a slot; the plan of such a
 * statement is not cached.
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
 * Parses a stored expression, such as a default or a check. Positions are relative to the
 * expression's text.
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
    `Cannot parse the SQL: it has ${bytes} bytes, but the maximum is ${limits.sqlBytesMax}`,
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

// Runs a parse. If the parse fails, runs it again while recording the expected tokens.
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
