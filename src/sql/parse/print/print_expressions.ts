/**
 * Prints expressions as SQL with as few parentheses as precedence allows, for plans, messages and
 * stored definitions. Parsing the output gives the same tree.
 *
 * The query printer is passed as an argument, because it imports this file.
 */
import { unreachable } from "../../../base/assert.ts";
import type {
  BasicDataTypeDef,
  BinaryOperator,
  CallOver,
  DataTypeDef,
  Expr,
  ExprBinary,
  ExprCall,
  ExprUnary,
  FrameBound,
  OrderByStatement,
  QName,
  SelectStatement,
  UnaryOperator,
} from "../ast/ast.ts";
import { isFunctionWord, isNameWord, keywordOf } from "../text/keywords.ts";
import { xmlText } from "./print_xml.ts";

/** Prints a query without parentheses. */
export type QueryPrinter = (query: SelectStatement) => string;

// The precedence levels are those of `sql/parse/expressions.ts`, plus 12 for a sign and 13 for
// forms that never need parentheses.
const POWER_SIGN = 12;
const POWER_PRIMARY = 13;
const POWER_OTHER = 7;
const POWER_PREDICATE = 6;
const POWER_COMPARISON = 5;
const POWER_IS = 4;

/** Prints an identifier, quoted if necessary. */
export function nameText(name: string): string {
  const isPlain = /^[a-z_][a-z0-9_$]*$/.test(name) && isNameWord(keywordOf(name));
  return isPlain ? name : `"${name.replaceAll('"', '""')}"`;
}

/** Prints `schema.name`, or only `name` if the schema is undefined. */
export function qnameText({ schema, name }: QName): string {
  return schema === undefined ? nameText(name) : `${nameText(schema)}.${nameText(name)}`;
}

/** Prints the name of a table whose rows a statement reads or changes: `[ONLY] ns.t`. */
export function rowsNameText(name: QName): string {
  return name.only === true ? `ONLY ${qnameText(name)}` : qnameText(name);
}

export function stringText(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

export function dataTypeText(type: DataTypeDef): string {
  const { collation } = type;
  const text = uncollatedText(type);
  return collation === undefined ? text : `${text} COLLATE ${qnameText(collation)}`;
}

function uncollatedText(type: DataTypeDef): string {
  if (type.kind === "array") return `${dataTypeText(type.arrayOf)}[]`;
  const config = type.config === undefined ? "" : `(${type.config.join(", ")})`;
  if (type.schema !== undefined) return `${qnameText(type)}${config}`;
  if (type.doubleQuoted === true) return `"${type.name.replaceAll('"', '""')}"${config}`;
  const zone = / with(?:out)? time zone$/.exec(type.name)?.[0] ?? "";
  const base = type.name.slice(0, type.name.length - zone.length);
  if (type.intervalFields !== undefined) return `INTERVAL${intervalFieldsText(type)}`;
  return `${base.toUpperCase()}${config}${zone.toUpperCase()}`;
}

function intervalFieldsText({ config, intervalFields = [] }: BasicDataTypeDef): string {
  const digits = config === undefined ? "" : `(${config.join(", ")})`;
  return ` ${intervalFields.join(" to ").toUpperCase()}${digits}`;
}

export function expressionText(expr: Expr, query: QueryPrinter): string {
  switch (expr.type) {
    case "binary":
      return binaryText(expr, query);
    case "unary":
      return unaryText(expr, query);
    case "ternary": {
      const operands = [expr.value, expr.lo, expr.hi];
      const [value, lo, hi] = operands.map((one) => operand(one, POWER_PREDICATE + 1, query));
      return `${value} ${expr.op}${expr.symmetric === true ? " SYMMETRIC" : ""} ${lo} AND ${hi}`;
    }
    case "call":
      return callText(expr, query);
    case "case":
    case "list":
    case "array":
    case "array select":
    case "arrayIndex":
    case "arraySlice":
    case "field":
    case "cast":
    case "collate":
    case "extract":
    case "substring":
    case "overlay":
    case "trim":
      return formText(expr, query);
    default:
      return leafText(expr) ?? `(${query(expr as SelectStatement)})`;
  }
}

// Prints an expression without subexpressions. Returns undefined for a query.
function leafText(expr: Expr): string | undefined {
  switch (expr.type) {
    case "ref": {
      const name = expr.star === true ? "*" : nameText(expr.name);
      return expr.table === undefined ? name : `${qnameText(expr.table)}.${name}`;
    }
    case "integer":
    case "numeric":
      return expr.text;
    case "string":
      return stringText(expr.value);
    case "bits":
      return `B'${expr.bits}'`;
    case "bytes":
      return `X'${expr.hex}'`;
    case "boolean":
      return expr.value ? "TRUE" : "FALSE";
    case "null":
    case "default":
      return expr.type.toUpperCase();
    case "literal slot":
      return "?";
    case "parameter":
      return expr.name;
    case "keyword":
      return expr.keyword.toUpperCase();
    default:
      return undefined;
  }
}

type SpecialForm = Extract<
  Expr,
  {
    type:
      | "case"
      | "list"
      | "array"
      | "array select"
      | "arrayIndex"
      | "arraySlice"
      | "field"
      | "cast"
      | "collate"
      | "extract"
      | "substring"
      | "overlay"
      | "trim";
  }
>;

function formText(expr: SpecialForm, query: QueryPrinter): string {
  const text = (inner: Expr): string => expressionText(inner, query);
  const clause = (word: string, inner: Expr | undefined): string =>
    inner === undefined ? "" : `${word}${text(inner)}`;
  switch (expr.type) {
    case "case": {
      const whens = expr.whens.map(({ when, value }) => ` WHEN ${text(when)} THEN ${text(value)}`);
      return `CASE${clause(" ", expr.value)}${whens.join("")}${clause(" ELSE ", expr.else)} END`;
    }
    case "list": {
      const parts = expr.expressions.map(text).join(", ");
      return expr.expressions.length < 2 ? `ROW(${parts})` : `(${parts})`;
    }
    case "array":
      return `ARRAY[${expr.expressions.map(text).join(", ")}]`;
    case "array select":
      return `ARRAY(${query(expr.select)})`;
    case "arrayIndex":
      return `${subscripted(expr, query)}[${text(expr.index)}]`;
    case "arraySlice":
      return `${subscripted(expr, query)}[${clause("", expr.from)}:${clause("", expr.to)}]`;
    case "field":
      return `${rowText(expr.row, query)}.${expr.star === true ? "*" : nameText(expr.name)}`;
    case "cast":
      return castText(expr, query);
    case "collate":
      return `${operand(expr.operand, 11, query)} COLLATE ${qnameText(expr.collation)}`;
    case "extract":
      return `EXTRACT(${nameText(expr.field.name)} FROM ${text(expr.from)})`;
    case "substring": {
      const value = operand(expr.value, POWER_PREDICATE + 1, query);
      return `SUBSTRING(${value}${clause(" FROM ", expr.from)}${clause(" FOR ", expr.for)})`;
    }
    case "overlay": {
      const from = `${clause(" FROM ", expr.from)}${clause(" FOR ", expr.for)}`;
      return `OVERLAY(${text(expr.value)} PLACING ${text(expr.placing)}${from})`;
    }
    case "trim":
      return `TRIM(${expr.side.toUpperCase()}${clause(" ", expr.characters)} FROM ${text(expr.value)})`;
    default:
      return unreachable(expr, "SQL printer: unknown expression form");
  }
}

function castText(
  { to, operand: inner }: Extract<Expr, { type: "cast" }>,
  query: QueryPrinter,
): string {
  if (to.kind !== "array" && to.intervalFields !== undefined && inner.type === "string") {
    return `INTERVAL ${stringText(inner.value)}${intervalFieldsText(to)}`;
  }
  return `CAST(${expressionText(inner, query)} AS ${dataTypeText(to)})`;
}

// Prints an expression in front of a subscript. Only names need no parentheses: `a[1]`, but
// `(ARRAY[1])[1]`.
function subscripted(
  { array, ofWhole }: { readonly array: Expr; readonly ofWhole?: boolean | undefined },
  query: QueryPrinter,
): string {
  const isBare = array.type === "ref" || isQuery(array) || (isPart(array) && ofWhole !== true);
  return isBare ? expressionText(array, query) : `(${expressionText(array, query)})`;
}

// Prints an expression in front of a field. A name before a dot would be read as a table name, so
// it is put in parentheses: `(t).c`, but `a[1].c`.
function rowText(row: Expr, query: QueryPrinter): string {
  const text = expressionText(row, query);
  return isQuery(row) || isPart(row) ? text : `(${text})`;
}

function isPart({ type }: Expr): boolean {
  return type === "arrayIndex" || type === "arraySlice" || type === "field";
}

function operand(expr: Expr, power: number, query: QueryPrinter): string {
  const text = expressionText(expr, query);
  return powerOf(expr) < power ? `(${text})` : text;
}

function binaryText({ op, left, right, escape }: ExprBinary, query: QueryPrinter): string {
  const power = powerOfBinary(op);
  // Comparisons and LIKE cannot be chained, and in PostgreSQL neither can IS. All other operators
  // are left-associative.
  const doesChain = power < POWER_IS || power > POWER_PREDICATE;
  const first = operand(left, doesChain ? power : power + 1, query);
  if ((op === "IN" || op === "NOT IN") && right.type === "list") {
    const list = right.expressions.map((expr) => expressionText(expr, query));
    return `${first} ${op} (${list.join(", ")})`;
  }
  const second = operand(right, power + 1, query);
  const escaped =
    escape === undefined ? "" : ` ESCAPE ${operand(escape, POWER_PREDICATE + 1, query)}`;
  return `${first} ${op} ${second}${escaped}`;
}

function unaryText({ op, operand: inner }: ExprUnary, query: QueryPrinter): string {
  switch (op) {
    case "NOT":
      return `NOT ${operand(inner, 3, query)}`;
    case "+":
    case "-": {
      const text = operand(inner, POWER_SIGN, query);
      // Parentheses are needed, because a sign before digits would become part of the number, and
      // two minus signs would begin a comment.
      return /^[\d.+-]/.test(text) ? `${op}(${text})` : `${op}${text}`;
    }
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
      return `${op} ${operand(inner, POWER_OTHER + 1, query)}`;
    default:
      return `${operand(inner, POWER_COMPARISON, query)} ${op}`;
  }
}

const BINARY_POWERS = new Map<string, number>([
  ["OR", 1],
  ["AND", 2],
  ["IS DISTINCT FROM", POWER_IS],
  ["IS NOT DISTINCT FROM", POWER_IS],
  ["OVERLAPS", POWER_COMPARISON],
  ["=", POWER_COMPARISON],
  ["!=", POWER_COMPARISON],
  ["<", POWER_COMPARISON],
  ["<=", POWER_COMPARISON],
  [">", POWER_COMPARISON],
  [">=", POWER_COMPARISON],
  ["IN", POWER_PREDICATE],
  ["NOT IN", POWER_PREDICATE],
  ["LIKE", POWER_PREDICATE],
  ["NOT LIKE", POWER_PREDICATE],
  ["ILIKE", POWER_PREDICATE],
  ["NOT ILIKE", POWER_PREDICATE],
  ["SIMILAR TO", POWER_PREDICATE],
  ["NOT SIMILAR TO", POWER_PREDICATE],
  ["+", 8],
  ["-", 8],
  ["*", 9],
  ["/", 9],
  ["%", 9],
  ["^", 10],
  ["AT TIME ZONE", 11],
]);

function powerOfBinary(op: BinaryOperator): number {
  return BINARY_POWERS.get(op) ?? POWER_OTHER;
}

function powerOfUnary(op: UnaryOperator): number {
  switch (op) {
    case "NOT":
      return 3;
    case "+":
    case "-":
      return POWER_SIGN;
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
      return POWER_OTHER;
    default:
      return POWER_IS;
  }
}

function powerOf(expr: Expr): number {
  switch (expr.type) {
    case "binary":
      return powerOfBinary(expr.op);
    case "unary":
      return powerOfUnary(expr.op);
    case "ternary":
      return POWER_PREDICATE;
    case "collate":
      return 11;
    case "integer":
    case "numeric":
      return expr.text.startsWith("-") ? POWER_SIGN : POWER_PRIMARY;
    default:
      return POWER_PRIMARY;
  }
}

function isQuery(expr: Expr): boolean {
  return expr.type === "select" || expr.type === "values";
}

// Calls whose names are keywords and must therefore not be quoted.
const BARE_CALLS = new Set(["current_timestamp", "current_time", "localtime", "localtimestamp"]);
// Type names that digits in parentheses may follow. A function with such a name must be quoted.
const TYPES_WITH_DIGITS = new Set(["interval", "time", "timestamp"]);
const QUANTIFIERS = new Set(["any", "some", "all", "exists"]);

/** Prints a call with all its clauses. */
export function callText(call: ExprCall, query: QueryPrinter): string {
  const text = (inner: Expr): string => expressionText(inner, query);
  const { name, schema } = call.function;
  const [first, second] = call.args;
  if (call.xml !== undefined) {
    return xmlText(call.xml, call.args, {
      name: nameText,
      type: dataTypeText,
      expression: text,
      operand: (inner) => operand(inner, POWER_PREDICATE + 1, query),
    });
  }
  if (schema === undefined && first !== undefined) {
    if (QUANTIFIERS.has(name)) {
      return `${name.toUpperCase()} ${powerOf(first) < POWER_PRIMARY || !isAnyQuery(first) ? `(${text(first)})` : text(first)}`;
    }
    if (name === "position" && second !== undefined) {
      return `POSITION(${operand(first, POWER_PREDICATE + 1, query)} IN ${text(second)})`;
    }
    if (name === "normalize" && second?.type === "string" && /^NFK?[CD]$/.test(second.value)) {
      return `normalize(${text(first)}, ${second.value})`;
    }
  }
  const named = call.args.map((arg, index) => {
    const argName = call.argNames?.[index];
    const isVariadic = call.isVariadic === true && index === call.args.length - 1;
    const before = isVariadic
      ? "VARIADIC "
      : argName === undefined
        ? ""
        : `${nameText(argName)} => `;
    return before + text(arg);
  });
  const distinct = call.distinct === undefined ? "" : `${call.distinct.toUpperCase()} `;
  const order = call.orderBy === undefined ? "" : ` ${orderByText(call.orderBy, query)}`;
  const { withinGroup: within, withinGroupThen = [] } = call;
  return [
    `${functionText(call.function)}(${distinct}${named.join(", ")}${order})`,
    within === undefined
      ? ""
      : ` WITHIN GROUP (${orderByText([within, ...withinGroupThen], query)})`,
    call.filter === undefined ? "" : ` FILTER (WHERE ${text(call.filter)})`,
    call.over === undefined ? "" : ` OVER ${overText(call.over, query)}`,
  ].join("");
}

function isAnyQuery(expr: Expr): boolean {
  return isQuery(expr) || "bind" in expr || ("left" in expr && expr.type !== "binary");
}

function functionText(name: QName): string {
  if (name.schema !== undefined) return qnameText(name);
  if (BARE_CALLS.has(name.name)) return name.name.toUpperCase();
  if (TYPES_WITH_DIGITS.has(name.name)) return `"${name.name}"`;
  const isPlain = /^[a-z_][a-z0-9_$]*$/.test(name.name) && isFunctionWord(keywordOf(name.name));
  return isPlain ? name.name : nameText(name.name);
}

function overText(over: CallOver, query: QueryPrinter): string {
  return over.name === undefined ? windowText(over, query) : nameText(over.name.name);
}

/** Prints `(base PARTITION BY … ORDER BY … frame)`. */
export function windowText(over: CallOver, query: QueryPrinter): string {
  const parts: string[] = [];
  if (over.base !== undefined) parts.push(nameText(over.base.name));
  if (over.partitionBy !== undefined) {
    const list = over.partitionBy.map((expr) => expressionText(expr, query));
    parts.push(`PARTITION BY ${list.join(", ")}`);
  }
  if (over.orderBy !== undefined) parts.push(orderByText(over.orderBy, query));
  if (over.frame !== undefined) {
    const { mode, start, end, exclude } = over.frame;
    const bounds = `BETWEEN ${boundText(start, query)} AND ${boundText(end, query)}`;
    parts.push(`${mode.toUpperCase()} ${bounds}`);
    if (exclude !== undefined) parts.push(`EXCLUDE ${exclude.toUpperCase()}`);
  }
  return `(${parts.join(" ")})`;
}

function boundText({ type, offset }: FrameBound, query: QueryPrinter): string {
  const text = offset === undefined ? "" : `${operand(offset, POWER_PREDICATE + 1, query)} `;
  return `${text}${type.toUpperCase()}`;
}

/** Prints `ORDER BY …`. */
export function orderByText(sorts: readonly OrderByStatement[], query: QueryPrinter): string {
  const list = sorts.map(({ by, order, nulls }) => {
    const direction = order === undefined ? "" : ` ${order}`;
    return `${expressionText(by, query)}${direction}${nulls === undefined ? "" : ` NULLS ${nulls}`}`;
  });
  return `ORDER BY ${list.join(", ")}`;
}
