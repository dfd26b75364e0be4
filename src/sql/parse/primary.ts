/**
 * Parses the operands of expressions: literals, names, parentheses, and forms that begin with a
 * keyword of their own, each with any `::`, `[ ]` or `.name` that follows. Calls are in
 * `calls.ts`.
 */
import type {
  BasicDataTypeDef,
  Expr,
  ExprCase,
  ExprRef,
  ExprWhen,
  QName,
  Subscript,
} from "./ast/ast.ts";
import { isSelectNode } from "./ast/query_nodes.ts";
import { requireListed } from "./bounds.ts";
import { parseCall, parseKeywordForm } from "./calls.ts";
import type { Cursor, Mutable } from "./cursor.ts";
import { isTypedLiteral, parseBasicType, parseIntervalFields } from "./data_types.ts";
import { Token } from "./text/lexer.ts";
import { listOfLiterals } from "./text/literal_nodes.ts";
import { bitDigits, bytesHex, type Fail, integerText, numericText } from "./text/literals.ts";
import { parseXmlForm } from "./xml.ts";

/** Parses an operand with its casts and subscripts. */
export function parsePrimary(cursor: Cursor): Expr {
  const start = cursor.token;
  const isEnclosed = cursor.is("(");
  const operand = parseBare(cursor);
  switch (cursor.word) {
    case "::":
    case "[":
    case ".":
      return parsePostfix(cursor, operand, { start, isEnclosed });
    default:
      return operand;
  }
}

function parsePostfix(
  cursor: Cursor,
  first: Expr,
  { isEnclosed, start }: { start: number; isEnclosed: boolean },
): Expr {
  let operand = first;
  // Whether a field access, `.name`, may follow the operand. It may follow a parenthesis, a
  // subscript or a parameter.
  let isClosed = isEnclosed || first.type === "parameter";
  for (;;) {
    const depth = cursor.depth;
    if (cursor.accept("::")) {
      const to = cursor.grammar.dataType(cursor);
      cursor.setDepth(depth + 1);
      operand = { type: "cast", operand, to, _location: cursor.since(start) };
      isClosed = false;
    } else if (cursor.is("[")) {
      operand = parseSubscriptOf(cursor, operand, {
        start,
        ofWhole: isEnclosed && operand === first,
      });
      cursor.setDepth(Math.max(depth, cursor.depth) + 1);
      isClosed = true;
    } else if (isClosed && cursor.accept(".")) {
      operand = parseField(cursor, start, operand);
      cursor.setDepth(depth + 1);
    } else {
      if (cursor.is(".") && operand.type === "call") {
        const { name } = operand.function;
        cursor.fail(
          `a function call before a dot must be in parentheses: (${name}(…)).column`,
          cursor.start,
        );
      }
      return operand;
    }
  }
}

/** Parses the field access `.c` or `.*` after an expression. */
function parseField(cursor: Cursor, start: number, row: Expr): Expr {
  const isStar = cursor.accept("*");
  const name = isStar ? "*" : cursor.label("a name").name;
  const star = isStar ? ({ star: true } as const) : {};
  const _location = cursor.since(start);
  return { type: "field", row, name, ...star, _location };
}

function parseSubscriptOf(
  cursor: Cursor,
  array: Expr,
  { ofWhole, start }: { start: number; ofWhole: boolean },
): Expr {
  const { from, to, type } = parseSubscript(cursor);
  const isPart = array.type === "arrayIndex" || array.type === "arraySlice";
  const common = {
    array,
    ...(ofWhole && isPart ? { ofWhole } : {}),
    _location: cursor.since(start),
  };
  return type === "slice" || to === undefined
    ? { type: "arraySlice", from, to, ...common }
    : { type: "arrayIndex", index: to, ...common };
}

/** Parses a subscript `[i]` or a slice `[i:j]`. Both bounds of a slice may be missing. */
export function parseSubscript(cursor: Cursor): Subscript {
  const start = cursor.token;
  const outer = cursor.enter();
  cursor.expect("[");
  const first = cursor.is(":") ? undefined : cursor.grammar.expression(cursor);
  const isSlice = cursor.accept(":");
  const to = isSlice && !cursor.is("]") ? cursor.grammar.expression(cursor) : undefined;
  cursor.expect("]");
  cursor.leave(outer);
  const _location = cursor.since(start);
  return isSlice
    ? { type: "slice", from: first, to, _location }
    : { type: "index", to: first, _location };
}

function parseBare(cursor: Cursor): Expr {
  switch (cursor.kind) {
    case Token.word:
      return parseWord(cursor);
    case Token.quoted:
      return parseNameOrCall(cursor);
    case Token.symbol:
      if (cursor.is("(")) return parseParentheses(cursor);
      return cursor.unexpected("an expression");
    case Token.end:
      return cursor.unexpected("an expression");
    default:
      cursor.setDepth(1);
      return parseLiteral(cursor);
  }
}

/** Parses a number, a string, bytes or a parameter. */
function parseLiteral(cursor: Cursor): Expr {
  const slot = cursor.slotHere();
  const { kind, start, token } = cursor;
  if (slot !== undefined) {
    cursor.token += 1;
    const { kind: slotKind, precision, scale } = slot.literal;
    return {
      type: "literal slot",
      index: slot.index,
      kind: slotKind,
      precision,
      scale,
      _location: cursor.since(token),
    };
  }
  if (kind === Token.string || kind === Token.encodedString) {
    const value = cursor.takeString();
    return { type: "string", value, _location: cursor.since(token) };
  }
  const source = cursor.text.slice(start, cursor.tokens.ends[token]);
  cursor.token += 1;
  const _location = cursor.since(token);
  switch (kind) {
    case Token.integer: {
      const text = integerText(source, start, (what, at) => cursor.fail(what, at));
      return { type: "integer", value: Number(text), text, _location };
    }
    case Token.numeric: {
      const text = numericText(source);
      return { type: "numeric", value: Number(text), text, _location };
    }
    case Token.bytes: {
      const fail: Fail = (what, at) => cursor.fail(what, at);
      if (/^b/i.test(source)) {
        return { type: "bits", bits: bitDigits(source, start, fail), _location };
      }
      return {
        type: "bytes",
        hex: bytesHex(source, start, fail),
        _location,
      };
    }
    default: {
      const index = parameterIndex(cursor, start, source);
      return { type: "parameter", name: source, index, _location };
    }
  }
}

function parameterIndex(cursor: Cursor, start: number, source: string): number {
  const index = Number(source.slice(1));
  if (index < 1 || index > cursor.limits.parametersMax) cursor.badParameter(start, source);
  cursor.parameterCount = Math.max(cursor.parameterCount, index);
  return index;
}

// Parses an operand that begins with a word: a value, a special form, a typed literal, a name, or
// a call.
function parseWord(cursor: Cursor): Expr {
  if (cursor.word !== "") {
    const value =
      parseValueWord(cursor) ??
      parseForm(cursor) ??
      parseXmlForm(cursor) ??
      parseKeywordForm(cursor);
    if (value !== undefined) return value;
  }
  if (cursor.isFunctionName() && isTypedLiteral(cursor)) return parseTypedLiteral(cursor);
  return parseNameOrCall(cursor);
}

function parseValueWord(cursor: Cursor): Expr | undefined {
  const start = cursor.token;
  const { word } = cursor;
  switch (word) {
    case "null":
    case "default":
      // Before a dot, DEFAULT is the name of a namespace.
      if (word === "default" && cursor.isAhead(1, ".")) return undefined;
      cursor.token += 1;
      cursor.setDepth(1);
      return { type: word, _location: cursor.since(start) };
    case "true":
    case "false":
      cursor.token += 1;
      cursor.setDepth(1);
      return { type: "boolean", value: word === "true", _location: cursor.since(start) };
    default:
      return undefined;
  }
}

function parseForm(cursor: Cursor): Expr | undefined {
  switch (cursor.word) {
    case "case":
      return parseCase(cursor);
    case "cast":
      return parseCast(cursor);
    case "collation":
      return cursor.isAhead(1, "for") ? parseCollationFor(cursor) : parseNameOrCall(cursor);
    case "array":
      return parseArray(cursor);
    case "row":
      return cursor.isAhead(1, "(") ? parseRow(cursor) : undefined;
    case "exists":
      return cursor.isAhead(1, "(") ? parseExists(cursor) : undefined;
    case "next":
      // NEXT without VALUE FOR after it is the name of a column.
      if (!cursor.isAhead(1, "value") || !cursor.isAhead(2, "for")) return undefined;
      return cursor.refuse("NEXT VALUE FOR (a sequence)", "write nextval('orders_id_seq')");
    case "any":
    case "some":
    case "all":
      if (!cursor.isAhead(1, "(")) return undefined;
      return cursor.refuse(
        `${cursor.word.toUpperCase()} without an operator before it`,
        "write it after an operator, as in id = ANY (…)",
      );
    default:
      return undefined;
  }
}

function parseNameOrCall(cursor: Cursor): Expr {
  const start = cursor.token;
  if (cursor.isAhead(1, "(") && cursor.isFunctionName()) {
    return parseCall(cursor, start, cursor.takeName());
  }
  const isDefault = cursor.word === "default" && cursor.isAhead(1, ".");
  if (!isDefault && !cursor.isName()) cursor.unexpected("an expression");
  const first = cursor.takeName();
  cursor.setDepth(1);
  if (!cursor.accept(".")) return { type: "ref", name: first.name, _location: first._location };
  if (cursor.is("*")) return parseStar(cursor, start, first);
  const second = cursor.label("a name");
  if (cursor.is("(")) {
    const name: QName = { name: second.name, schema: first.name, _location: cursor.since(start) };
    return parseCall(cursor, start, name);
  }
  if (!cursor.accept(".")) {
    return { type: "ref", table: first, name: second.name, _location: cursor.since(start) };
  }
  const table: QName = {
    name: second.name,
    schema: first.name,
    _location: { start: first._location.start, end: second._location.end },
  };
  if (cursor.is("*")) return parseStar(cursor, start, table);
  const third = cursor.label("a name");
  return { type: "ref", table, name: third.name, _location: cursor.since(start) };
}

function parseStar(cursor: Cursor, start: number, table: QName): ExprRef {
  cursor.expect("*");
  return { type: "ref", table, name: "*", star: true, _location: cursor.since(start) };
}

function parseTypedLiteral(cursor: Cursor): Expr {
  const start = cursor.token;
  const isInterval = cursor.word === "interval";
  const to: Mutable<BasicDataTypeDef> = { ...parseBasicType(cursor) };
  const token = cursor.token;
  const value = cursor.takeString();
  const operand: Expr = { type: "string", value, _location: cursor.since(token) };
  if (isInterval) parseIntervalFields(cursor, to);
  cursor.setDepth(2);
  return { type: "cast", operand, to, _location: cursor.since(start) };
}

/** The contents of a pair of parentheses: expressions or a single query. */
export interface Parenthesised {
  readonly expressions: readonly Expr[];
  /** Whether the parentheses contain nothing but a query. */
  readonly isQuery: boolean;
}

/** Parses `( query )` or `( expr, … )`. */
export function parseParenthesised(cursor: Cursor): Parenthesised {
  const outer = cursor.enter();
  cursor.expect("(");
  const start = cursor.token;
  let first = startsQuery(cursor)
    ? cursor.grammar.query(cursor)
    : cursor.grammar.expression(cursor);
  // In `((SELECT …) UNION SELECT …)`, the first operand has already been parsed as an expression.
  if (isSelectNode(first) && !cursor.is(")") && !cursor.is(",")) {
    first = cursor.grammar.queryRest(cursor, first, start);
  }
  const expressions = [first];
  while (cursor.accept(",")) expressions.push(cursor.grammar.expression(cursor));
  cursor.expect(")");
  cursor.leave(outer);
  return { expressions, isQuery: expressions.length === 1 && isSelectNode(first) };
}

/** Whether the next token begins an unparenthesised query. */
export function startsQuery(cursor: Cursor): boolean {
  switch (cursor.word) {
    case "select":
    case "with":
    case "table":
      return true;
    case "values":
      return cursor.isAhead(1, "(") || cursor.kindAhead(1) === Token.literalList;
    default:
      return false;
  }
}

function parseParentheses(cursor: Cursor): Expr {
  const start = cursor.token;
  const { expressions } = parseParenthesised(cursor);
  const [first] = expressions;
  return expressions.length === 1 && first !== undefined
    ? first
    : { type: "list", expressions, _location: cursor.since(start) };
}

function parseRow(cursor: Cursor): Expr {
  const start = cursor.token;
  cursor.expect("row");
  if (cursor.acceptAll("(", ")")) {
    return { type: "list", expressions: [], _location: cursor.since(start) };
  }
  const { expressions } = parseParenthesised(cursor);
  return { type: "list", expressions, _location: cursor.since(start) };
}

function parseExists(cursor: Cursor): Expr {
  const start = cursor.token;
  const outer = cursor.enter();
  const name = cursor.takeName();
  cursor.expect("(");
  const query = cursor.grammar.query(cursor);
  cursor.expect(")");
  cursor.leave(outer);
  return { type: "call", function: name, args: [query], _location: cursor.since(start) };
}

function parseArray(cursor: Cursor): Expr {
  const start = cursor.token;
  const outer = cursor.enter();
  const literals = cursor.takeLiteralList("array");
  if (literals !== undefined) {
    // The whole list was read as one token. The depth is set as the last element of an ordinary
    // array would set it.
    cursor.setDepth(1);
    cursor.leave(outer);
    return listOfLiterals(literals, { type: "array", _location: cursor.since(start) });
  }
  cursor.expect("array");
  if (cursor.accept("(")) {
    const select = cursor.grammar.query(cursor);
    cursor.expect(")");
    cursor.leave(outer);
    return { type: "array select", select, _location: cursor.since(start) };
  }
  const expressions = parseItems(cursor);
  cursor.leave(outer);
  return { type: "array", expressions, _location: cursor.since(start) };
}

/**
 * Parses the elements of an array, `[1, 2]`. In `[[1, 2], [3, 4]]`, the inner arrays have no ARRAY
 * keyword.
 */
function parseItems(cursor: Cursor): Expr[] {
  const expressions: Expr[] = [];
  cursor.expect("[");
  if (!cursor.is("]")) {
    const isDeep = cursor.is("[");
    do expressions.push(isDeep ? parseInnerArray(cursor) : cursor.grammar.expression(cursor));
    while (cursor.accept(","));
  }
  cursor.expect("]");
  return expressions;
}

function parseInnerArray(cursor: Cursor): Expr {
  const start = cursor.token;
  const outer = cursor.enter();
  const expressions = parseItems(cursor);
  cursor.leave(outer);
  return { type: "array", expressions, _location: cursor.since(start) };
}

function parseCase(cursor: Cursor): ExprCase {
  const start = cursor.token;
  const outer = cursor.enter();
  cursor.expect("case");
  const value = cursor.is("when") ? undefined : cursor.grammar.expression(cursor);
  const whens: ExprWhen[] = [];
  do {
    const token = cursor.token;
    cursor.expect("when");
    const when = cursor.grammar.expression(cursor);
    cursor.expect("then");
    const result = cursor.grammar.expression(cursor);
    whens.push({ when, value: result, _location: cursor.since(token) });
    requireListed(cursor, whens.length, "WHEN clauses in a single CASE");
  } while (cursor.is("when"));
  const otherwise = cursor.accept("else") ? cursor.grammar.expression(cursor) : undefined;
  cursor.expect("end");
  cursor.leave(outer);
  return { type: "case", value, whens, else: otherwise, _location: cursor.since(start) };
}

/**
 * Parses `COLLATION FOR (x)`, which becomes a call to the PostgreSQL function that implements it.
 */
function parseCollationFor(cursor: Cursor): Expr {
  const start = cursor.token;
  const outer = cursor.enter();
  cursor.expectAll("collation", "for", "(");
  const argument = cursor.grammar.expression(cursor);
  cursor.expect(")");
  cursor.leave(outer);
  const _location = cursor.since(start);
  const name = { name: "pg_collation_for", _location };
  return { type: "call", function: name, args: [argument], _location };
}

function parseCast(cursor: Cursor): Expr {
  const start = cursor.token;
  const outer = cursor.enter();
  cursor.expectAll("cast", "(");
  const operand = cursor.grammar.expression(cursor);
  cursor.expect("as");
  const to = cursor.grammar.dataType(cursor);
  cursor.expect(")");
  cursor.leave(outer);
  return { type: "cast", operand, to, _location: cursor.since(start) };
}
