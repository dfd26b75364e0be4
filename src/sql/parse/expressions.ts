/**
 * Parses expressions by operator precedence. From tightest to loosest: `::` and `[ ]`, sign,
 * COLLATE and AT TIME ZONE, `^`, `* / %`, `+ -`, every other operator, BETWEEN IN LIKE,
 * comparison, IS, NOT, AND, OR.
 *
 * All binary operators are left-associative, so `parseAt(cursor, power)` accepts only operators
 * that bind tighter than `power`. Comparisons and BETWEEN IN LIKE cannot be chained.
 */
import type { BinaryOperator, Expr, UnaryOperator } from "./ast/ast.ts";
import type { Cursor } from "./cursor.ts";
import { adviceAt } from "./dialect_advice.ts";
import { parseParenthesised, parsePrimary } from "./primary.ts";
import { listOfLiterals } from "./text/literal_nodes.ts";

const Power = {
  none: 0,
  or: 1,
  and: 2,
  not: 3,
  is: 4,
  comparison: 5,
  predicate: 6,
  other: 7,
  sum: 8,
  product: 9,
  power: 10,
  zone: 11,
} as const;

const POWERS = new Map<string, number>(
  (
    [
      ["or", Power.or],
      ["and", Power.and],
      ["is isnull notnull", Power.is],
      ["= != < <= > >= overlaps", Power.comparison],
      ["between in like ilike similar", Power.predicate],
      [
        "|| -> ->> #> #>> #- @> <@ ? ?| ?& && @@ @? ~ ~* !~ !~* ~~ ~~* !~~ !~~* ^@ & | # << >> &< &> -|- ## ~= <^ >^ ?# ?- ?-| ?|| <<| |>> &<| |&> <<= >>= <=> <-> <#> <% %> <<% %>> <<-> <->> ~<~ ~<=~ ~>=~ ~>~ *= *<> *< *<= *>= *>",
        Power.other,
      ],
      ["+ -", Power.sum],
      ["* / %", Power.product],
      ["^", Power.power],
      ["collate", Power.zone],
    ] as const
  ).flatMap(([words, power]) => words.split(" ").map((word) => [word, power] as const)),
);

// PostgreSQL's symbolic operators for LIKE and ILIKE. They take no ESCAPE clause, and have the
// same precedence as other symbolic operators.
const LIKE_OPERATORS: ReadonlyMap<string, BinaryOperator> = new Map<string, BinaryOperator>([
  ["~~", "LIKE"],
  ["~~*", "ILIKE"],
  ["!~~", "NOT LIKE"],
  ["!~~*", "NOT ILIKE"],
]);

const NORMAL_FORMS: ReadonlySet<string> = new Set(["nfc", "nfd", "nfkc", "nfkd"]);

// The maximum number of operands for which a chain of AND or OR becomes a left-leaning tree. A
// longer chain becomes a balanced tree, so that its depth stays small.
const LEANING_OPERANDS_MAX = 32;

/** Parses any expression. */
export function parseExpression(cursor: Cursor): Expr {
  return parseAt(cursor, Power.none);
}

/**
 * Parses an operand of BETWEEN, LIKE and similar predicates. The operand ends at the first
 * operator that does not bind more tightly than these predicates.
 */
export function parseOperand(cursor: Cursor): Expr {
  return parseAt(cursor, Power.predicate);
}

function parseAt(cursor: Cursor, min: number): Expr {
  const start = cursor.token;
  let left = parsePrefix(cursor);
  for (;;) {
    const power = powerHere(cursor);
    if (power <= min) break;
    left = parseInfix(cursor, start, left, power);
  }
  if (cursor.isExplaining) {
    cursor.couldBe("and", "or", "is", "not", "between", "in", "like", "ilike", "similar");
    cursor.couldBe("collate", "overlaps", "isnull", "notnull");
  }
  return left;
}

function powerHere(cursor: Cursor): number {
  const { word } = cursor;
  if (word === "") return Power.none;
  if (word === "not") return isPredicateWord(cursor.wordAhead(1)) ? Power.predicate : Power.none;
  if (word === "at") return cursor.isAhead(1, "time") ? Power.zone : Power.none;
  return POWERS.get(word) ?? Power.none;
}

function isPredicateWord(word: string): boolean {
  return POWERS.get(word) === Power.predicate;
}

function parseInfix(cursor: Cursor, start: number, left: Expr, power: number): Expr {
  switch (power) {
    case Power.or:
    case Power.and:
      return parseLogic(cursor, start, left, power);
    case Power.is:
      return parseIs(cursor, start, left);
    case Power.comparison:
      return parseComparison(cursor, start, left);
    case Power.predicate:
      return parsePredicate(cursor, start, left);
    case Power.zone:
      return parseZone(cursor, start, left);
    default: {
      const op = LIKE_OPERATORS.get(cursor.word) ?? (cursor.word as BinaryOperator);
      const depth = cursor.depth;
      cursor.token += 1;
      const right = isQuantifier(cursor) ? parseQuantified(cursor) : parseAt(cursor, power);
      cursor.setDepth(Math.max(depth, cursor.depth) + 1);
      return { type: "binary", op, left, right, _location: cursor.since(start) };
    }
  }
}

function isQuantifier(cursor: Cursor): boolean {
  return cursor.is("any") || cursor.is("some") || cursor.is("all");
}

// Parses a chain such as `a AND b AND c` in a single loop.
function parseLogic(cursor: Cursor, start: number, left: Expr, power: number): Expr {
  const word = power === Power.or ? "or" : "and";
  const op = power === Power.or ? "OR" : "AND";
  const operands = [left];
  const starts = [cursor.since(start).start];
  const ends = [cursor.end];
  let depth = cursor.depth;
  while (cursor.accept(word)) {
    const token = cursor.token;
    operands.push(parseAt(cursor, power));
    starts.push(cursor.since(token).start);
    ends.push(cursor.end);
    depth = Math.max(depth, cursor.depth);
  }
  const leans = operands.length <= LEANING_OPERANDS_MAX;
  cursor.setDepth(depth + (leans ? operands.length - 1 : Math.ceil(Math.log2(operands.length))));
  const join = (from: number, to: number): Expr => {
    if (to - from === 1) return operands[from] ?? left;
    const middle = leans ? to - 1 : (from + to) >>> 1;
    return {
      type: "binary",
      op,
      left: join(from, middle),
      right: join(middle, to),
      _location: { start: starts[from] ?? 0, end: ends[to - 1] ?? 0 },
    };
  };
  return join(0, operands.length);
}

function parseIs(cursor: Cursor, start: number, operand: Expr): Expr {
  const depth = cursor.depth;
  if (cursor.accept("isnull")) return unary(cursor, start, "IS NULL", operand);
  if (cursor.accept("notnull")) return unary(cursor, start, "IS NOT NULL", operand);
  cursor.expect("is");
  const isNot = cursor.accept("not");
  if (cursor.accept("distinct")) {
    cursor.expect("from");
    const right = parseAt(cursor, Power.is);
    cursor.setDepth(Math.max(depth, cursor.depth) + 1);
    const op = isNot ? "IS NOT DISTINCT FROM" : "IS DISTINCT FROM";
    return { type: "binary", op, left: operand, right, _location: cursor.since(start) };
  }
  const hasForm = NORMAL_FORMS.has(cursor.word);
  if (cursor.isAhead(hasForm ? 1 : 0, "normalized")) {
    return parseNormalized(cursor, start, { operand, isNot, hasForm });
  }
  if (cursor.accept("document")) return parseIsDocument(cursor, start, { operand, isNot });
  switch (cursor.expectOneOf("null", "true", "false", "unknown")) {
    case "null":
      return unary(cursor, start, isNot ? "IS NOT NULL" : "IS NULL", operand);
    case "true":
      return unary(cursor, start, isNot ? "IS NOT TRUE" : "IS TRUE", operand);
    case "false":
      return unary(cursor, start, isNot ? "IS NOT FALSE" : "IS FALSE", operand);
    case "unknown":
      return unary(cursor, start, isNot ? "IS NOT UNKNOWN" : "IS UNKNOWN", operand);
  }
}

// Creates the node of `x IS [NOT] DOCUMENT`, which is represented as a call of an XML form.
function parseIsDocument(
  cursor: Cursor,
  start: number,
  { isNot, operand }: { isNot: boolean; operand: Expr },
): Expr {
  const _location = cursor.since(start);
  const name = { name: "is_document", _location };
  const xml = { kind: "is document" } as const;
  cursor.setDepth(cursor.depth + 1);
  const test: Expr = { type: "call", function: name, args: [operand], xml, _location };
  return isNot ? unary(cursor, start, "NOT", test) : test;
}

// Parses `x IS [NOT] [form] NORMALIZED`, which is represented as a call of is_normalized.
function parseNormalized(
  cursor: Cursor,
  start: number,
  { hasForm, isNot, operand }: { operand: Expr; isNot: boolean; hasForm: boolean },
): Expr {
  const token = cursor.token;
  const value = hasForm ? cursor.word.toUpperCase() : "NFC";
  cursor.token += hasForm ? 2 : 1;
  const form: Expr = { type: "string", value, _location: cursor.since(token) };
  const _location = cursor.since(start);
  const name = { name: "is_normalized", _location };
  const call: Expr = { type: "call", function: name, args: [operand, form], _location };
  cursor.setDepth(cursor.depth + 1);
  return isNot ? unary(cursor, start, "NOT", call) : call;
}

function unary(cursor: Cursor, start: number, op: UnaryOperator, operand: Expr): Expr {
  cursor.setDepth(cursor.depth + 1);
  return { type: "unary", op, operand, _location: cursor.since(start) };
}

function parseComparison(cursor: Cursor, start: number, left: Expr): Expr {
  const op = cursor.word === "overlaps" ? "OVERLAPS" : (cursor.word as BinaryOperator);
  const depth = cursor.depth;
  cursor.token += 1;
  const isQuantified = isQuantifier(cursor);
  const right = isQuantified ? parseQuantified(cursor) : parseAt(cursor, Power.comparison);
  cursor.setDepth(Math.max(depth, cursor.depth) + 1);
  if (powerHere(cursor) === Power.comparison) {
    // The author usually meant a chain of comparisons such as `a < b < c`. Sometimes, a preceding
    // && or || was meant as AND or OR.
    const advice = adviceAt(cursor.tokens, cursor.token);
    cursor.fail(
      "comparisons cannot be chained; use parentheses, or combine them with AND",
      cursor.tokens.starts[advice?.token ?? cursor.token] ?? cursor.start,
      advice?.hint ?? "write a < b AND b < c",
    );
  }
  return { type: "binary", op, left, right, _location: cursor.since(start) };
}

// Parses ANY (…), SOME (…) or ALL (…) as a call whose argument is a query or an array.
function parseQuantified(cursor: Cursor): Expr {
  const start = cursor.token;
  const name = cursor.takeName();
  const content = parseParenthesised(cursor);
  const [only] = content.expressions;
  if (only === undefined || content.expressions.length > 1) {
    cursor.fail(
      `${name.name.toUpperCase()} accepts a single query or array, not a list`,
      cursor.since(start).start,
      "write = ANY (ARRAY[…]), or IN (…)",
    );
  }
  return { type: "call", function: name, args: [only], _location: cursor.since(start) };
}

function parsePredicate(cursor: Cursor, start: number, left: Expr): Expr {
  const isNot = cursor.accept("not");
  const depth = cursor.depth;
  const made = parsePredicateBody(cursor, { start, left, isNot });
  cursor.setDepth(Math.max(depth, cursor.depth) + 1);
  if (powerHere(cursor) === Power.predicate) {
    cursor.fail("BETWEEN, IN and LIKE cannot be chained; use parentheses", cursor.start);
  }
  return made;
}

interface PredicateHead {
  readonly start: number;
  readonly left: Expr;
  readonly isNot: boolean;
}

function parsePredicateBody(cursor: Cursor, { start, left, isNot }: PredicateHead): Expr {
  if (cursor.accept("between")) {
    const symmetric = cursor.accept("symmetric") ? true : undefined;
    if (symmetric === undefined) cursor.accept("asymmetric");
    const lo = parseOperand(cursor);
    const depth = cursor.depth;
    cursor.expect("and");
    const hi = parseOperand(cursor);
    cursor.depth = Math.max(depth, cursor.depth);
    const op = isNot ? "NOT BETWEEN" : "BETWEEN";
    return { type: "ternary", op, value: left, lo, hi, symmetric, _location: cursor.since(start) };
  }
  const items = cursor.takeLiteralList("in");
  if (items !== undefined) {
    // A compact list of literals has the same depth as an ordinary list: its elements have depth
    // 1, and the list itself has depth 2.
    cursor.setDepth(2);
    const right = listOfLiterals(items, { _location: cursor.since(cursor.token - 1) });
    const op = isNot ? "NOT IN" : "IN";
    return { type: "binary", op, left, right, _location: cursor.since(start) };
  }
  if (cursor.accept("in")) {
    const token = cursor.token;
    const content = parseParenthesised(cursor);
    const [first] = content.expressions;
    const right: Expr =
      content.isQuery && first !== undefined
        ? first
        : { type: "list", expressions: content.expressions, _location: cursor.since(token) };
    const op = isNot ? "NOT IN" : "IN";
    return { type: "binary", op, left, right, _location: cursor.since(start) };
  }
  const word = cursor.expectOneOf("like", "ilike", "similar");
  if (word === "similar") cursor.expect("to");
  const isQuantified = isQuantifier(cursor);
  if (isQuantified && word === "similar") {
    cursor.refuse(
      "SIMILAR TO with ANY, SOME or ALL",
      "write SIMILAR TO once for each pattern, and combine the conditions with OR or AND",
    );
  }
  const name = word === "similar" ? "SIMILAR TO" : word === "like" ? "LIKE" : "ILIKE";
  const right = isQuantified ? parseQuantified(cursor) : parseOperand(cursor);
  const depth = cursor.depth;
  const escape = !isQuantified && cursor.accept("escape") ? parseOperand(cursor) : undefined;
  cursor.depth = Math.max(depth, cursor.depth);
  const op = isNot ? (`NOT ${name}` as const) : name;
  return { type: "binary", op, left, right, escape, _location: cursor.since(start) };
}

function parseZone(cursor: Cursor, start: number, operand: Expr): Expr {
  const depth = cursor.depth;
  if (cursor.accept("collate")) {
    const collation = cursor.qname("a collation");
    cursor.setDepth(depth + 1);
    return { type: "collate", operand, collation, _location: cursor.since(start) };
  }
  cursor.expectAll("at", "time", "zone");
  const right = parseAt(cursor, Power.zone);
  cursor.setDepth(Math.max(depth, cursor.depth) + 1);
  return {
    type: "binary",
    op: "AT TIME ZONE",
    left: operand,
    right,
    _location: cursor.since(start),
  };
}

function parsePrefix(cursor: Cursor): Expr {
  switch (cursor.word) {
    case "-":
    case "+":
      return parseSign(cursor);
    case "not":
      return parsePrefixOperator(cursor, "NOT", Power.not);
    case "~":
    case "@":
    case "!!":
    case "|/":
    case "||/":
    case "@@":
    case "@-@":
    case "#":
    case "?-":
    case "?|":
      return parsePrefixOperator(cursor, cursor.word, Power.other);
    default:
      return parsePrimary(cursor);
  }
}

function parsePrefixOperator(cursor: Cursor, op: UnaryOperator, power: number): Expr {
  const start = cursor.token;
  const outer = cursor.enter();
  cursor.token += 1;
  const operand = parseAt(cursor, power);
  cursor.leave(outer);
  return { type: "unary", op, operand, _location: cursor.since(start) };
}

// Parses a sign. As in PostgreSQL, a minus sign before a number belongs to the number; otherwise,
// the smallest INT could not be written as an INT.
function parseSign(cursor: Cursor): Expr {
  const start = cursor.token;
  const op = cursor.word === "-" ? "-" : "+";
  const outer = cursor.enter();
  cursor.token += 1;
  const operand = parsePrefix(cursor);
  cursor.leave(outer);
  const _location = cursor.since(start);
  if (op === "-" && (operand.type === "integer" || operand.type === "numeric")) {
    const { text, value } = operand;
    const negated = text.startsWith("-") ? text.slice(1) : `-${text}`;
    return { ...operand, value: -value, text: negated, _location };
  }
  return { type: "unary", op, operand, _location };
}
