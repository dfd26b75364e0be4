/**
 * Queries in expressions: scalar and row subqueries, EXISTS, IN, ANY and ALL, ARRAY(query).
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { BOOLEAN, type DataType } from "../../../types/mod.ts";
import type { Expr, ExprArraySelect, ExprCall, SelectStatement } from "../../parse/ast/ast.ts";
import type { Place } from "../binding.ts";
import type { BoundSelect } from "../bound.ts";
import type {
  BoundColumn,
  BoundExpression,
  BoundSubquery,
  RowFunction,
  SubqueryForm,
} from "../bound_expressions.ts";
import { columnValue, selectFromQuery } from "../bound_nodes.ts";
import { Captures } from "../query/correlation.ts";
import { keyedForm } from "../query/decorrelate.ts";
import { isVolatileQuery } from "../query/query_walk.ts";
import { mapChildren } from "../walk.ts";
import { binaryOf } from "./binary_forms.ts";
import { arrayTypeOf } from "./types.ts";

const ROW_OPERATORS: ReadonlySet<string> = new Set(["=", "<>", "<", "<=", ">", ">="]);

/** A query that is bound, before it is known what is asked of it. */
interface InnerQuery {
  readonly query: BoundSelect;
  readonly captures: Captures;
  readonly place: Place;
  readonly node: SelectStatement;
  /** Which of its columns is asked for, where each is a value of its own. */
  readonly column?: number;
}

function bindInner(node: SelectStatement, place: Place): InnerQuery {
  if (place.bindInner === undefined) {
    throw new DatabaseError("INVALID_DEFINITION", `Cannot use a subquery in ${place.clause}`, {
      position: node._location.start,
      hint: "compute the value in the statement that writes the row",
    });
  }
  const captures = new Captures(place);
  return { query: place.bindInner(node, captures), captures, place, node };
}

/** `(SELECT …)` as a value: NULL without a row. */
export function bindScalar(node: SelectStatement, place: Place): BoundExpression {
  const inner = bindInner(node, place);
  requireWidth(inner, 1);
  return valueOf(inner, { type: typeOfColumn(inner.query), form: { kind: "scalar" } });
}

/** The columns of a query of at most one row, each as a value; NULLs without a row. */
export function bindRowQuery(
  node: SelectStatement,
  { place, width }: { place: Place; width: number },
): BoundExpression[] {
  const inner = bindInner(node, place);
  requireWidth(inner, width);
  const whole =
    inner.query.distinct === "none" ? inner.query : selectFromQuery(inner.query, place.statement);
  return whole.outputs.map((output, column) => {
    const query = { ...whole, outputs: [output] };
    const form: SubqueryForm = { kind: "scalar" };
    return valueOf({ ...inner, query, column }, { type: output.expression.type, form });
  });
}

/** `ARRAY(SELECT …)`, in the order of the query. */
export function bindArrayQuery({ select }: ExprArraySelect, place: Place): BoundExpression {
  const inner = bindInner(select, place);
  requireWidth(inner, 1);
  const type = arrayTypeOf(typeOfColumn(inner.query), select);
  return valueOf(inner, { type, form: { kind: "array" } });
}

export function bindExists(call: ExprCall, place: Place): BoundExpression {
  const [node] = call.args;
  const inner = bindInner(node as SelectStatement, place);
  const { query } = inner;
  // Whether there is a row does not hang on what it holds, unless equal ones are skipped as one.
  const isPlain = query.distinct === "none" && !query.withTies;
  const bare: BoundSelect = isPlain ? { ...query, outputs: [], orderBy: [] } : query;
  return valueOf({ ...inner, query: bare }, { type: BOOLEAN, form: { kind: "exists" } });
}

/** What is compared with the rows of a query. */
export interface Quantified {
  /** One value, or those of a row. */
  readonly operands: readonly BoundExpression[];
  readonly operator: string;
  readonly quantifier: "any" | "all";
  readonly query: SelectStatement;
  /** The whole comparison. */
  readonly node: Expr;
}

/** `operands operator ANY (query)`, or ALL. @throws {DatabaseError} TYPE_MISMATCH, INVALID_QUERY */
export function bindQuantifiedQuery(
  { node, operands, operator, quantifier, query: queryNode }: Quantified,
  place: Place,
): BoundExpression {
  if (operands.length === 0) {
    throw new DatabaseError("INVALID_QUERY", "Cannot compare rows without values", {
      position: node._location.start,
    });
  }
  const inner = bindInner(queryNode, place);
  requireWidth(inner, operands.length);
  if (operands.length > 1 && !ROW_OPERATORS.has(operator)) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot compare rows by ${operator}: it has no order`,
      {
        position: node._location.start,
        hint: "=, <>, <, <=, > and >= compare rows",
      },
    );
  }
  const tests = operands.map((left, i) => {
    const { expression } = defined(inner.query.outputs[i], "a query has its columns");
    const column = place.statement.newColumn({ name: "", type: expression.type });
    const right: BoundExpression = columnValue(column);
    const test = binaryOf({ op: operator, left, right }, node);
    if (test.type.kind !== "boolean") throw noTruth(operator, node);
    return { column, ...sidesOf(test) };
  });
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

/** ANY and ALL ask whether an operator is true. */
export function noTruth(operator: string, node: Expr): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    `Cannot ask ANY or ALL by ${operator}: an operator that is true or false is needed`,
    { position: node._location.start },
  );
}

/** The operands of a comparison with the casts that it needs, and what compares them. */
function sidesOf(test: BoundExpression): {
  left: BoundExpression;
  right: BoundExpression;
  evaluate: RowFunction;
} {
  if (test.kind === "compare") return test;
  const [left, right] = test.kind === "call" ? test.args : [];
  return {
    left: defined(left, "a comparison has a left side"),
    right: defined(right, "a comparison has a right side"),
    evaluate: test.kind === "call" ? test.evaluate : () => null,
  };
}

/** The query with its columns cast as the comparison wants them. */
function withConverted(
  inner: InnerQuery,
  tests: readonly { readonly column: BoundColumn; readonly right: BoundExpression }[],
): BoundSelect {
  const { query } = inner;
  // A cast below DISTINCT could make rows equal that differ.
  const isCast = tests.some(({ right }) => right.kind !== "column");
  const source =
    isCast && query.distinct !== "none" ? selectFromQuery(query, inner.place.statement) : query;
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

function valueOf(
  { captures, column = 0, node, place, query }: InnerQuery,
  {
    form,
    operands = [],
    type,
  }: { type: DataType; form: SubqueryForm; operands?: readonly BoundExpression[] },
): BoundExpression {
  const isVolatile = isVolatileQuery(query);
  const isCorrelated = captures.list.length > 0;
  const subquery: BoundSubquery = {
    form,
    query,
    captureIds: captures.list.map(({ id }) => id),
    captureTypes: captures.list.map(({ value }) => value.type),
    keyed: isCorrelated && !isVolatile ? keyedForm(query, place.statement) : undefined,
    // Without captures it is asked once, as the row around it gives it no reason to differ.
    isVolatile: isVolatile && isCorrelated,
    position: node._location.start,
    written: isVolatile ? undefined : { node, scope: place.scope, column },
  };
  return {
    kind: "subquery",
    type,
    subquery,
    operands,
    captures: captures.list.map(({ value }) => value),
  };
}

function requireWidth({ node, query }: InnerQuery, width: number): void {
  const { length } = query.outputs;
  if (length === width) return;
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot use a query of ${length} column(s) here: it must have ${width}`,
    { position: node._location.start },
  );
}

function typeOfColumn({ outputs }: BoundSelect): DataType {
  return defined(outputs[0], "the width was checked").expression.type;
}
