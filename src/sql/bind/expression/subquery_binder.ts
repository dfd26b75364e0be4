/**
 * Binds queries in expressions: scalar and row subqueries, EXISTS, IN, ANY and ALL, ARRAY(query).
 */

import { defined } from "../../../base/assert.ts";
import { counted } from "../../../base/counted.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { BOOLEAN, type DataType, hasOrder, typeName } from "../../../types/mod.ts";
import type {
  AstNode,
  Expr,
  ExprArraySelect,
  ExprCall,
  SelectStatement,
} from "../../parse/ast/ast.ts";
import type { ExpressionContext } from "../binding.ts";
import type { BoundSelect } from "../bound.ts";
import type {
  BoundColumn,
  BoundExpression,
  BoundSubquery,
  RowFunction,
  SubqueryForm,
} from "../bound_expressions.ts";
import { columnValue, selectFromQuery } from "../bound_nodes.ts";
import { OuterReferences } from "../query/correlation.ts";
import { keyedForm } from "../query/decorrelate.ts";
import { isVolatileQuery } from "../query/query_walk.ts";
import { mapChildren } from "../walk.ts";
import { binaryOf } from "./binary_forms.ts";
import { arrayTypeOf } from "./types.ts";

const ROW_OPERATORS: ReadonlySet<string> = new Set(["=", "<>", "<", "<=", ">", ">="]);

/**
 * A bound query whose use in the expression is not known yet: as a value, as a row, or in EXISTS,
 * IN, ANY or ALL.
 */
export interface InnerQuery {
  readonly query: BoundSelect;
  readonly outerReferences: OuterReferences;
  readonly context: ExpressionContext;
  /** The syntax node of the query; for the query of a function, the node of the call. */
  readonly node: AstNode;
  /**
   * The index of the query column that provides this value, if each column of the query becomes a
   * separate value.
   */
  readonly column?: number;
  /** The syntax tree of the query; absent for the query of a function. */
  readonly select?: SelectStatement;
}

function bindInner(node: SelectStatement, context: ExpressionContext): InnerQuery {
  if (context.bindInner === undefined) {
    throw new DatabaseError("INVALID_DEFINITION", `Cannot use a subquery in ${context.clause}`, {
      position: node._location.start,
      hint: "compute the value in the statement that writes the row",
    });
  }
  const outerReferences = new OuterReferences(context);
  const query = context.bindInner(node, outerReferences);
  return { query, outerReferences, context, node, select: node };
}

/** Binds `(SELECT …)` as a value. It is NULL if the query returns no row. */
export function bindScalar(node: SelectStatement, context: ExpressionContext): BoundExpression {
  const inner = bindInner(node, context);
  requireWidth(inner, 1);
  return valueOf(inner, { type: typeOfColumn(inner.query), form: { kind: "scalar" } });
}

/**
 * Returns the columns of a query that yields at most one row as separate values, which are NULL if
 * the query returns no row.
 */
export function bindRowQuery(
  node: SelectStatement,
  { context, width }: { context: ExpressionContext; width: number },
): BoundExpression[] {
  const inner = bindInner(node, context);
  requireWidth(inner, width);
  const whole =
    inner.query.distinct === "none" ? inner.query : selectFromQuery(inner.query, context.statement);
  return whole.outputs.map((output, column) => {
    const query = { ...whole, outputs: [output] };
    const form: SubqueryForm = { kind: "scalar" };
    return valueOf({ ...inner, query, column }, { type: output.expression.type, form });
  });
}

/** Binds `ARRAY(SELECT …)`; the elements are in the order of the query. */
export function bindArrayQuery(
  { select }: ExprArraySelect,
  context: ExpressionContext,
): BoundExpression {
  const inner = bindInner(select, context);
  requireWidth(inner, 1);
  const read = typeOfColumn(inner.query);
  const form: SubqueryForm = { kind: "array", ofArrays: read.kind === "array" };
  return valueOf(inner, { type: arrayTypeOf(read), form });
}

export function bindExists(call: ExprCall, context: ExpressionContext): BoundExpression {
  const [node] = call.args;
  const inner = bindInner(node as SelectStatement, context);
  const { query } = inner;
  // EXISTS does not depend on the values in the rows, unless the query removes duplicates or keeps
  // ties.
  const isPlain = query.distinct === "none" && !query.withTies;
  const bare: BoundSelect = isPlain ? { ...query, outputs: [], orderBy: [] } : query;
  return valueOf({ ...inner, query: bare }, { type: BOOLEAN, form: { kind: "exists" } });
}

/** The parts of a comparison with the rows of a query, as in `a = ANY (query)`. */
export interface Quantified {
  /** The left side of the comparison: a single value, or the values of a row. */
  readonly operands: readonly BoundExpression[];
  readonly operator: string;
  readonly quantifier: "any" | "all";
  readonly query: SelectStatement;
  /** The syntax node of the whole comparison. */
  readonly node: Expr;
}

/**
 * Binds `operands operator ANY (query)`, or ALL.
 *
 * @throws {DatabaseError} TYPE_MISMATCH, INVALID_QUERY
 */
export function bindQuantifiedQuery(
  { node, operands, operator, quantifier, query: queryNode }: Quantified,
  context: ExpressionContext,
): BoundExpression {
  if (operands.length === 0) {
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot compare empty rows: a row must have at least one value",
      {
        position: node._location.start,
      },
    );
  }
  const inner = bindInner(queryNode, context);
  requireWidth(inner, operands.length);
  if (operands.length > 1 && !ROW_OPERATORS.has(operator)) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot compare rows with ${operator}: it is not a comparison operator`,
      {
        position: node._location.start,
        hint: "compare rows with =, <>, <, <=, > or >=",
      },
    );
  }
  const tests = operands.map((left, i) => {
    const { expression } = defined(
      inner.query.outputs[i],
      "subquery binder: the query has no column for an operand",
    );
    const column = context.statement.newColumn({ name: "", type: expression.type });
    const right: BoundExpression = columnValue(column);
    const test = binaryOf({ op: operator, left, right }, node);
    if (test.type.kind !== "boolean") throw noTruth(operator, node);
    return { column, ...sidesOf(test) };
  });
  if (operator === "=" || operator === "<>" || operands.length > 1) {
    for (const { left } of tests) requireMembers(left.type, node);
  }
  const evaluates = tests.map(({ evaluate }) => evaluate);
  const types = tests.map(({ left }) => left.type);
  return valueOf(
    { ...inner, query: withConverted(inner, tests) },
    {
      type: BOOLEAN,
      form: { kind: quantifier, operator, evaluates, types },
      operands: tests.map(({ left }) => left),
    },
  );
}

/**
 * Requires that the rows of a query can be stored in a set for lookups.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
function requireMembers(type: DataType, node: Expr): void {
  if (hasOrder(type)) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot compare a value of type ${typeName(type)} with the rows of a query in IN, ANY or ALL`,
    {
      position: node._location.start,
      hint: "write EXISTS (SELECT 1 FROM t WHERE t.shape = shape)",
    },
  );
}

/** Returns the error for ANY or ALL with an operator that does not return a boolean. */
export function noTruth(operator: string, node: Expr): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    `Cannot use ${operator} with ANY or ALL: its result is not a boolean`,
    { position: node._location.start, hint: "use a comparison operator, such as = or <" },
  );
}

/** Returns the operands of a comparison with the required casts, and the comparison function. */
function sidesOf(test: BoundExpression): {
  left: BoundExpression;
  right: BoundExpression;
  evaluate: RowFunction;
} {
  if (test.kind === "compare") return test;
  const [left, right] = test.kind === "call" ? test.args : [];
  return {
    left: defined(left, "subquery binder: comparison has no left operand"),
    right: defined(right, "subquery binder: comparison has no right operand"),
    evaluate: test.kind === "call" ? test.evaluate : () => null,
  };
}

/** Returns the query with its columns cast to the types required by the comparison. */
function withConverted(
  inner: InnerQuery,
  tests: readonly { readonly column: BoundColumn; readonly right: BoundExpression }[],
): BoundSelect {
  const { query } = inner;
  // A cast inside DISTINCT could make different rows equal, so it is applied outside DISTINCT.
  const isCast = tests.some(({ right }) => right.kind !== "column");
  const source =
    isCast && query.distinct !== "none" ? selectFromQuery(query, inner.context.statement) : query;
  const isOrdered = query.limit !== undefined || query.offset !== undefined;
  const outputs = source.outputs.map(({ expression, name }, i) => {
    const test = tests[i];
    if (test === undefined) return { name, expression };
    return { name, expression: replaceColumn(test.right, test.column, expression) };
  });
  return { ...source, outputs, orderBy: isOrdered ? source.orderBy : [] };
}

function replaceColumn(
  expression: BoundExpression,
  column: BoundColumn,
  value: BoundExpression,
): BoundExpression {
  if (expression.kind === "column" && expression.column.id === column.id) return value;
  return mapChildren(expression, (child) => replaceColumn(child, column, value));
}

/** Returns the value of a bound query in the form in which the expression uses it. */
export function valueOf(
  { outerReferences, column = 0, node, context, query, select }: InnerQuery,
  {
    form,
    operands = [],
    type,
  }: { type: DataType; form: SubqueryForm; operands?: readonly BoundExpression[] },
): BoundExpression {
  const isVolatile = isVolatileQuery(query);
  const isCorrelated = outerReferences.list.length > 0;
  const subquery: BoundSubquery = {
    form,
    query,
    outerIds: outerReferences.list.map(({ id }) => id),
    outerTypes: outerReferences.list.map(({ value }) => value.type),
    keyed: isCorrelated && !isVolatile ? keyedForm(query, context.statement) : undefined,
    // An uncorrelated query is evaluated only once, because its result does not depend on the row.
    // By contrast, a function is evaluated once per row.
    isVolatile: isVolatile && (isCorrelated || select === undefined),
    position: node._location.start,
    written:
      isVolatile || select === undefined
        ? undefined
        : { node: select, scope: context.scope, column },
  };
  return {
    kind: "subquery",
    type,
    subquery,
    operands,
    outerReferences: outerReferences.list.map(({ value }) => value),
  };
}

function requireWidth({ node, query }: InnerQuery, width: number): void {
  const { length } = query.outputs;
  if (length === width) return;
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot use a query that returns ${counted(length, "column")} here: it must return ${width}`,
    { position: node._location.start, hint: `select ${counted(width, "column")}` },
  );
}

function typeOfColumn({ outputs }: BoundSelect): DataType {
  return defined(outputs[0], "subquery binder: scalar subquery returns no column").expression.type;
}
