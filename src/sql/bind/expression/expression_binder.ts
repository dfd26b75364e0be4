/**
 * Binds the expressions of the syntax tree: names, types, casts.
 *
 * The rules for each kind of expression are in `operator_binder.ts`, `predicates.ts` and
 * `call_binder.ts`. This file binds literals and columns, and passes every other node to one of
 * these files.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  BIT,
  BOOLEAN,
  BYTES,
  collationOf,
  type DataType,
  TEXT,
  UNKNOWN,
  UNKNOWN_NULL,
  type Value,
  valueFromNumberText,
} from "../../../types/mod.ts";
import type { Expr, ExprCall, ExprCase, ExprCast, ExprList, ExprRef } from "../../parse/ast/ast.ts";
import type { Bind, ExpressionContext } from "../binding.ts";
import type { BoundConstant, BoundExpression } from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { argumentAt, resolveOuter } from "../query/correlation.ts";
import { withoutExpansions } from "../query/expansions.ts";
import { bindField, callOfField } from "../query/table_function_binder.ts";
import { bindSubscript } from "./array_binder.ts";
import { arrayOfValues } from "./array_values.ts";
import { bindCall, bindFunction } from "./call_binder.ts";
import { castTo, castToCommonType, castToInterval } from "./casts.ts";
import { collated, typeWithDerived } from "./collations.ts";
import { constantArray } from "./constant_columns.ts";
import { checkedByDomain, checkedParts } from "./domains.ts";
import { bindBinary, bindUnary } from "./operator_binder.ts";
import { bindBetween } from "./predicates.ts";
import { bindRowValue, presenceColumn, rowOfList, valueOfRow } from "./row_values.ts";
import { bindArrayQuery, bindScalar } from "./subquery_binder.ts";
import { bareDecimalOf, domainOf, intervalLimitOf, isBareDecimal, resolveType } from "./types.ts";

/**
 * Binds an expression in its context.
 * @throws {DatabaseError}
 */
export const bindExpression: Bind = (expression, context) => {
  context.statement.notePart();
  switch (expression.type) {
    case "ref":
      return bindColumn(expression, context);
    case "integer":
    case "numeric":
      return bindNumber(expression.text, expression);
    case "string":
      return {
        kind: "constant",
        type: UNKNOWN,
        value: expression.value,
        untyped: { position: expression._location.start, reads: context.statement.literals },
      };
    case "bits":
      return constant(BIT, expression.bits);
    case "bytes":
      return constant(BYTES, Uint8Array.from(Buffer.from(expression.hex, "hex")));
    case "boolean":
      return constant(BOOLEAN, expression.value);
    case "null":
      return constant(UNKNOWN_NULL, null);
    case "literal slot":
      return context.statement.literal(expression);
    case "parameter":
      return bindParameter(expression, context);
    case "binary":
      return bindBinary(expression, context, bindExpression);
    case "unary":
      return bindUnary(expression, context, bindExpression);
    case "ternary":
      return bindBetween(expression, context, bindExpression);
    case "cast":
      return bindCast(expression, context);
    case "case":
      return bindCase(expression, context);
    case "call":
      return bindCall(expression, context, bindExpression);
    default:
      return bindRarer(expression, context);
  }
};

function bindCast(expression: ExprCast, context: ExpressionContext): BoundExpression {
  const declared = resolveType(expression.to, context.rowTypeNamed);
  const operand =
    expression.operand.type === "array" && declared.kind === "array"
      ? bindArray(expression.operand, context, declared)
      : bindExpression(expression.operand, context);
  const to = isBareDecimal(expression.to)
    ? bareDecimalFor(operand)
    : collationOf(declared) === undefined
      ? typeWithDerived(declared, [operand])
      : declared;
  const limit = intervalLimitOf(expression.to);
  if (limit !== undefined) return castToInterval(operand, { limit, node: expression });
  const cast = checkedParts(castTo(operand, { to, mode: "explicit", node: expression }), to);
  const domain = domainOf(expression.to);
  if (domain === undefined) return cast;
  return checkedByDomain(cast, { domain, node: expression, bind: bindExpression });
}

function bareDecimalFor(operand: BoundExpression): DataType {
  const value = operand.kind === "constant" ? operand.value : undefined;
  return bareDecimalOf(operand.type, typeof value === "string" ? value : undefined);
}

/**
 * Binds a condition, which must be boolean.
 * @throws {DatabaseError} TYPE_MISMATCH
 */
export function bindCondition(expression: Expr, context: ExpressionContext): BoundExpression {
  const bound = bindExpression(expression, context);
  return castTo(bound, { to: BOOLEAN, mode: "implicit", node: expression });
}

/** Binds an expression that may have any type. An untyped literal becomes text. */
export function bindValue(expression: Expr, context: ExpressionContext): BoundExpression {
  return settled(bindExpression(expression, context));
}

/** Gives an untyped literal its default type. */
export function settled(expression: BoundExpression): BoundExpression {
  if (expression.type.kind !== "unknown") return expression;
  return castTo(expression, { to: TEXT, mode: "implicit", node: undefined });
}

type RarerExpr = Exclude<
  Expr,
  {
    type:
      | "ref"
      | "integer"
      | "numeric"
      | "string"
      | "bits"
      | "bytes"
      | "boolean"
      | "null"
      | "literal slot"
      | "parameter"
      | "binary"
      | "unary"
      | "ternary"
      | "cast"
      | "case"
      | "call";
  }
>;

function bindRarer(expression: RarerExpr, context: ExpressionContext): BoundExpression {
  switch (expression.type) {
    case "keyword":
    case "extract":
    case "substring":
    case "overlay":
    case "trim":
      return bindKeywordCall(expression, context);
    case "collate":
      return bindCollate(expression, context);
    case "array":
      return bindArray(expression, context);
    case "arrayIndex":
    case "arraySlice":
      return bindSubscript(expression, context, bindExpression);
    case "list":
      return valueOfRow(rowOfList(expression, context, bindExpression));
    case "default":
      throw new DatabaseError(
        "INVALID_QUERY",
        "Cannot use DEFAULT here: it is allowed only as a whole value in INSERT or UPDATE",
        { position: expression._location.start },
      );
    case "field":
      return bindField(expression, context, bindExpression);
    case "array select":
      return bindArrayQuery(expression, context);
    default:
      return bindScalar(expression, context);
  }
}

type KeywordCall = Extract<
  Expr,
  { type: "keyword" | "extract" | "substring" | "overlay" | "trim" }
>;

/** Binds functions whose calls have keywords between the arguments, or no parentheses. */
function bindKeywordCall(expression: KeywordCall, context: ExpressionContext): BoundExpression {
  const part = (inner: Expr | undefined): BoundExpression[] =>
    inner === undefined ? [] : [bindExpression(inner, context)];
  const call = (name: string, args: readonly BoundExpression[]): BoundExpression =>
    bindFunction({ name, args, node: expression });

  switch (expression.type) {
    case "keyword":
      return call(expression.keyword, []);
    case "extract": {
      const field = constant(TEXT, expression.field.name.toLowerCase());
      return call("extract", [field, ...part(expression.from)]);
    }
    case "substring":
      return call("substring", [
        ...part(expression.value),
        ...(expression.from === undefined ? [constant({ kind: "int" }, 1)] : part(expression.from)),
        ...part(expression.for),
      ]);
    case "overlay":
      return call("overlay", [
        ...part(expression.value),
        ...part(expression.placing),
        ...part(expression.from),
        ...part(expression.for),
      ]);
    case "trim": {
      const name = { both: "btrim", leading: "ltrim", trailing: "rtrim" }[expression.side];
      return call(name, [...part(expression.value), ...part(expression.characters)]);
    }
  }
}

/** Binds `$n`. In the query of a function, `$n` is the function's n-th argument. */
function bindParameter(
  node: Extract<Expr, { type: "parameter" }>,
  { outer, statement }: ExpressionContext,
): BoundExpression {
  return argumentAt(node.index, node, outer) ?? statement.parameter(node.index, node);
}

function constant(type: DataType, value: Value): BoundConstant {
  return { kind: "constant", type, value };
}

function bindNumber(text: string, node: Expr): BoundExpression {
  const typed = valueFromNumberText(text);
  if (typed !== undefined) return { kind: "constant", ...typed };
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot read the number ${text}: it is out of range`,
    {
      position: node._location.start,
    },
  );
}

function bindColumn(ref: ExprRef, context: ExpressionContext): BoundExpression {
  if (ref.star === true) {
    const row = bindRowValue(ref, context, bindExpression);
    if (row !== undefined) return row;
    throw new DatabaseError("INVALID_QUERY", 'Cannot use "*" here: write the name of a column', {
      position: ref._location.start,
    });
  }
  const variable = preferredVariable(ref, context);
  if (variable !== undefined) return variable;
  const tableOid = context.scope.tableOid(ref, (relation) =>
    columnValue(presenceColumn(relation, context.statement)),
  );
  if (tableOid !== undefined) return tableOid;
  const call = callOnRow(ref, context);
  if (call !== undefined) return bindExpression(call, context);
  const column = context.scope.lookup(ref);
  if (column === undefined) {
    const outer = resolveOuter(ref, context.outer);
    if (outer !== undefined) return outer;
    const row = bindRowValue(ref, context, bindExpression);
    if (row !== undefined) return row;
    const fault = context.statement.variables?.faultOf(ref, context.outer);
    if (fault !== undefined) throw fault;
    return columnValue(context.scope.resolve(ref));
  }
  return columnValue(column);
}

/**
 * Returns `t.f` as the call `f(t)` if `t` is a relation without a column `f`, and `f` is a
 * function; undefined for any other name.
 */
function callOnRow(
  { _location, name, table }: ExprRef,
  context: ExpressionContext,
): ExprCall | undefined {
  if (table === undefined || table.schema !== undefined) return undefined;
  let around: ExpressionContext | undefined = context;
  const ref: ExprRef = { type: "ref", table, name, _location };
  while (around !== undefined && around.scope.relationNamed(table) === undefined) {
    around = around.outer?.context;
  }
  if (around?.scope.lacksColumn(ref) !== true) return undefined;
  const row: ExprRef = { type: "ref", name: table.name, _location };
  return callOfField({ type: "field", row, name, _location }, context);
}

/**
 * Returns the program variable to which a name refers if it takes precedence over a column.
 *
 * @throws {DatabaseError} AMBIGUOUS_COLUMN
 */
function preferredVariable(
  ref: ExprRef,
  { outer, scope, statement }: ExpressionContext,
): BoundExpression | undefined {
  const { variables } = statement;
  if (variables === undefined || variables.conflict === "column") return undefined;
  const variable = variables.named(ref, outer);
  if (variable === undefined || variables.conflict === "variable") return variable;
  if (!isColumnAround(ref, scope, outer)) return variable;
  throw new DatabaseError(
    "AMBIGUOUS_COLUMN",
    `Cannot resolve "${ref.name}": both a variable of the function and a column have this name`,
    {
      position: ref._location.start,
      hint:
        "qualify the column with its table's name, and the variable with the name of the " +
        "function or the label of its block",
    },
  );
}

/** Whether a name refers to a column of this query or of an enclosing query. */
function isColumnAround(
  ref: ExprRef,
  scope: ExpressionContext["scope"],
  outer: ExpressionContext["outer"],
): boolean {
  if (ref.table !== undefined && scope.relationNamed(ref.table) !== undefined) return true;
  if (ref.table === undefined && scope.lookup(ref) !== undefined) return true;
  return outer !== undefined && isColumnAround(ref, outer.context.scope, outer.context.outer);
}

function bindCase(expression: ExprCase, around: ExpressionContext): BoundExpression {
  const context = withoutExpansions(around, "CASE");
  const whens = expression.whens.map(({ when, value }) => {
    const condition: Expr =
      expression.value === undefined
        ? when
        : {
            type: "binary",
            op: "=",
            left: expression.value,
            right: when,
            _location: when._location,
          };
    return { when: bindCondition(condition, context), value };
  });
  const nodes = expression.whens.map(({ value }) => value);
  if (expression.else !== undefined) nodes.push(expression.else);
  const values = nodes.map((node) => bindExpression(node, context));
  const { type, expressions } = castToCommonType(values, nodes, "CASE");
  const branches = whens.map(({ when }, i) => ({
    when,
    value: expressions[i] ?? constant(type, null),
  }));
  const otherwise = expression.else === undefined ? undefined : expressions.at(-1);
  return { kind: "case", type, branches, otherwise };
}

function bindCollate(
  { operand, collation }: Extract<Expr, { type: "collate" }>,
  context: ExpressionContext,
): BoundExpression {
  return collated(bindExpression(operand, context), collation);
}

/**
 * Binds `ARRAY[…]`.
 *
 * @param to The type to which the array is cast. Each element is cast to the element type, so that
 *   an untyped literal is read as a value of that type.
 */
function bindArray(
  list: ExprList,
  context: ExpressionContext,
  to?: DataType & { readonly kind: "array" },
): BoundExpression {
  const known = list.literals === undefined ? undefined : constantArray(list.literals);
  if (known !== undefined) return known;
  const isOfArrays = list.expressions.some(({ type }) => type === "array");
  const items = list.expressions.map((item) => {
    if (to === undefined) return bindExpression(item, context);
    if (item.type === "array") return bindArray(item, context, to);
    const bound = bindExpression(item, context);
    const target = isOfArrays || bound.type.kind === "array" ? to : to.element;
    return castTo(bound, { to: target, mode: "explicit", node: item });
  });
  const { type, expressions } = castToCommonType(items, list.expressions, "ARRAY");
  return arrayOfValues(expressions, type);
}
