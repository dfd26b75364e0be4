/**
 * Prints bound expressions for EXPLAIN. The output resembles SQL, but leaves out implicit casts.
 */
import { beginningOf } from "../../base/short_text.ts";
import { type DataType, outputText, type Value } from "../../types/mod.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { nameText } from "../parse/print/print_expressions.ts";

/**
 * The values of the caller's parameters and literals, indexed by slot. A parameter without a value
 * is printed as `$n`.
 */
export type Slots = readonly Value[];

/**
 * The maximum length of a printed expression. A longer expression, such as a list of thousands of
 * values, is truncated.
 */
const LENGTH_MAX = 1000;

export function textOfExpression(expression: BoundExpression, slots: Slots): string {
  const text = textOf(expression, slots);
  return text.length <= LENGTH_MAX ? text : `${beginningOf(text, LENGTH_MAX)}…`;
}

function textOf(expression: BoundExpression, slots: Slots): string {
  const inner = (each: BoundExpression): string => nested(each, slots);
  switch (expression.kind) {
    case "constant":
    case "slot":
    case "column":
    case "outer":
      return atomText(expression, slots);
    case "cast":
      return textOf(expression.operand, slots);
    case "call":
      return expression.name.startsWith("cast to ")
        ? textOf(expression.args[0] ?? expression, slots)
        : callText(expression, slots);
    case "compare":
    case "arithmetic":
      return `${inner(expression.left)} ${expression.operator} ${inner(expression.right)}`;
    case "and":
    case "or":
      return expression.operands.map(inner).join(` ${expression.kind.toUpperCase()} `);
    case "not":
      return `NOT ${inner(expression.operand)}`;
    case "is":
      return `${inner(expression.operand)} IS ${not(expression)}${expression.test.toUpperCase()}`;
    case "case":
      return caseText(expression, slots);
    case "coalesce":
      return `coalesce(${expression.operands.map((each) => textOf(each, slots)).join(", ")})`;
    case "subquery":
      return subqueryText(expression, slots);
    case "in":
    case "row in":
      return membershipText(expression, slots);
  }
}

function membershipText(
  expression: Extract<BoundExpression, { kind: "in" | "row in" }>,
  slots: Slots,
): string {
  const listed = (values: readonly BoundExpression[]): string[] =>
    values.map((each) => textOf(each, slots));
  if (expression.kind === "row in") {
    const rows = expression.rows.map((row) => `(${listed(row).join(", ")})`);
    return `(${listed(expression.operands).join(", ")}) IN (${rows.join(", ")})`;
  }
  const { constants, items, list, operand } = expression;
  const left = nested(operand, slots);
  if (list !== undefined) return `${left} = ANY (${textOf(list, slots)})`;
  const all = [...listed(items), ...constants.map((value) => literal(value, operand.type))];
  return `${left} ${not(expression)}IN (${all.join(", ")})`;
}

function not({ negated }: { readonly negated: boolean }): string {
  return negated ? "NOT " : "";
}

/** Prints an expression that has no operands. */
function atomText(
  expression: Extract<BoundExpression, { kind: "constant" | "slot" | "column" | "outer" }>,
  slots: Slots,
): string {
  switch (expression.kind) {
    case "constant":
      return literal(expression.value, expression.type);
    case "slot": {
      const value = slots[expression.slot];
      return value === undefined ? `$${expression.slot + 1}` : literal(value, expression.type);
    }
    case "column":
      return expression.column.name === ""
        ? `#${expression.column.id}`
        : nameText(expression.column.name);
    case "outer":
      return `outer #${expression.id}`;
  }
}

function nested(expression: BoundExpression, slots: Slots): string {
  const text = textOf(expression, slots);
  switch (expression.kind) {
    case "compare":
    case "arithmetic":
    case "and":
    case "or":
    case "not":
    case "is":
    case "in":
    case "row in":
      return `(${text})`;
    default:
      return text;
  }
}

function callText(
  { args, name }: Extract<BoundExpression, { kind: "call" }>,
  slots: Slots,
): string {
  const [left, right] = args;
  if (!/^\w+$/.test(name) && left !== undefined && right !== undefined && args.length === 2) {
    return `${nested(left, slots)} ${name} ${nested(right, slots)}`;
  }
  return `${name}(${args.map((each) => textOf(each, slots)).join(", ")})`;
}

function caseText(
  { branches, otherwise }: Extract<BoundExpression, { kind: "case" }>,
  slots: Slots,
): string {
  const whens = branches.map(
    ({ value, when }) => `WHEN ${textOf(when, slots)} THEN ${textOf(value, slots)} `,
  );
  const rest = otherwise === undefined ? "" : `ELSE ${textOf(otherwise, slots)} `;
  return `CASE ${whens.join("")}${rest}END`;
}

function subqueryText(
  { operands, subquery }: Extract<BoundExpression, { kind: "subquery" }>,
  slots: Slots,
): string {
  const { form } = subquery;
  if (form.kind !== "any" && form.kind !== "all") return `${form.kind.toUpperCase()} (subquery)`;
  const left = operands.map((each) => textOf(each, slots)).join(", ");
  return `(${left}) ${form.operator} ${form.kind.toUpperCase()} (subquery)`;
}

function literal(value: Value, type: DataType): string {
  if (value === null) return "NULL";
  if (typeof value === "boolean") return String(value);
  const text =
    type.kind === "unknown" && typeof value === "string" ? value : outputText(type, value);
  const isNumber = ["smallint", "int", "bigint", "decimal", "float", "double"].includes(type.kind);
  return isNumber ? text : `'${text.replaceAll("'", "''")}'`;
}
