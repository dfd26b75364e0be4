/**
 * Calls: scalar functions, aggregates, and the forms that look like calls.
 */
import { DatabaseError } from "../../base/errors.ts";
import { BOOLEAN, type DataType, typeName } from "../../types/mod.ts";
import { isAggregate, resolveAggregate } from "../functions/aggregates.ts";
import { functionExists, resolveFunction } from "../functions/registry.ts";
import { isTableFunction } from "../functions/table_functions.ts";
import type { AstNode, Expr, ExprCall, ExprRef, OrderByStatement } from "../parse/ast.ts";
import { isQueryNode } from "../parse/primary.ts";
import { type Bind, type Correlation, notAvailable, type Place } from "./binding.ts";
import type { BoundExpression, BoundSort } from "./bound.ts";
import { castAlike, castTo } from "./casts.ts";
import { bindExists } from "./subquery_binder.ts";
import { bindExpansion } from "./table_functions.ts";

/** Calls whose rules are not those of a scalar function. */
const WINDOWS: ReadonlySet<string> = new Set([
  "row_number",
  "rank",
  "dense_rank",
  "percent_rank",
  "cume_dist",
  "ntile",
  "lag",
  "lead",
  "first_value",
  "last_value",
  "nth_value",
]);

export function bindCall(call: ExprCall, place: Place, bind: Bind): BoundExpression {
  const { name, schema } = call.function;
  if (schema !== undefined) throw unknownFunction(`${schema}.${name}`, [], call);
  if (call.over !== undefined || WINDOWS.has(name)) throw notAvailable(call, "a window function");
  if (call.argNames?.some((argName) => argName !== undefined) === true) {
    throw notAvailable(call, "named arguments");
  }
  switch (name) {
    case "coalesce": {
      const operands = call.args.map((argument) => bind(argument, place));
      const { type, expressions } = castAlike(operands, call.args, "COALESCE");
      return { kind: "coalesce", type, operands: expressions };
    }
    case "exists":
      return bindExists(call, place);
    case "any":
    case "some":
    case "all":
      throw new DatabaseError(
        "INVALID_QUERY",
        `Cannot use ${name.toUpperCase()} here: it stands on the right of a comparison`,
        { position: call._location.start },
      );
    case "grouping":
      throw notAvailable(call, "GROUPING");
    case "file":
      return bindFile(call, place);
    default:
      break;
  }
  if (isTableFunction(name)) return bindExpansion(call, place, bind);
  if (isAggregate(name)) return bindAggregate(call, place, bind);
  if (call.distinct !== undefined || call.orderBy !== undefined || call.filter !== undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call ${name} with DISTINCT, ORDER BY or FILTER: it is not an aggregate`,
      { position: call._location.start },
    );
  }
  const args = call.args.map((argument) => bind(argument, place));
  return bindFunction({ name, args, node: call });
}

export interface FunctionCall {
  readonly name: string;
  readonly args: readonly BoundExpression[];
  readonly node: AstNode;
}

/** A scalar function over bound arguments. @throws {DatabaseError} FUNCTION_NOT_FOUND */
export function bindFunction({ name, args, node }: FunctionCall): BoundExpression {
  const types = args.map((argument) => argument.type);
  // The digits of round(x, 2) decide the scale of the result.
  const constants = args.map((argument) =>
    argument.kind === "constant" ? argument.value : undefined,
  );
  const resolved = resolveFunction(name, types, constants);
  if (resolved === undefined) throw unknownFunction(name, types, node);
  const { argumentTypes, overload, result } = resolved;
  return {
    kind: "call",
    type: result,
    name,
    args: args.map((argument, i) =>
      castTo(argument, { to: argumentTypes[i] ?? argument.type, mode: "implicit", node }),
    ),
    evaluate: (values, context) => overload.evaluate(values, context, argumentTypes),
    seesNull: overload.seesNull === true,
    volatility: overload.volatility,
  };
}

function unknownFunction(name: string, types: readonly DataType[], node: AstNode): DatabaseError {
  const signature = `${name}(${types.map((type) => typeName(type)).join(", ")})`;
  const what = functionExists(name) ? "it does not take these types" : "there is none";
  return new DatabaseError("FUNCTION_NOT_FOUND", `Cannot find function ${signature}: ${what}`, {
    position: node._location.start,
  });
}

/** FILE('part') reads the reference that the executor made of the part, as a slot by its name. */
function bindFile(call: ExprCall, place: Place): BoundExpression {
  const [argument] = call.args;
  const position = call._location.start;
  if (argument?.type !== "string" || call.args.length !== 1) {
    throw new DatabaseError("INVALID_INPUT", "Cannot read FILE: it takes one quoted part name", {
      position,
    });
  }
  if (place.allowsFiles !== true) {
    throw new DatabaseError(
      "INVALID_INPUT",
      "Cannot use FILE here: it is a value of INSERT VALUES and UPDATE SET only",
      { position },
    );
  }
  return place.statement.file(argument.value);
}

function bindAggregate(call: ExprCall, place: Place, bind: Bind): BoundExpression {
  const { name } = call.function;
  const position = call._location.start;
  const ofOuter = bindOuterAggregate(call, place, bind);
  if (ofOuter !== undefined) return ofOuter;
  if (place.sink === undefined) {
    throw new DatabaseError("INVALID_QUERY", `Cannot use aggregate ${name} in ${place.clause}`, {
      position,
    });
  }
  if (call.withinGroup !== undefined) throw notAvailable(call, "WITHIN GROUP");
  const inner: Place = { ...place, sink: undefined, clause: `the arguments of ${name}` };
  const isStar = call.args.length === 1 && isStarRef(call.args[0]);
  const args = isStar ? [] : call.args.map((argument) => bind(argument, inner));
  if (!isStar && args.length === 0) throw unknownFunction(name, [], call);
  const types = args.map((argument) => argument.type);
  const form = resolveAggregate(name, types);
  if (form === undefined) throw unknownFunction(name, types, call);
  const cast = args.map((argument, i) =>
    castTo(argument, {
      to: form.argumentTypes[i] ?? argument.type,
      mode: "implicit",
      node: call.args[i],
    }),
  );
  const column = place.statement.newColumn({ name, type: form.result });
  const [argument, ...extra] = cast;
  place.sink.aggregates.push({
    column,
    form,
    argument,
    extra,
    isDistinct: call.distinct === "distinct",
    filter: call.filter === undefined ? undefined : bindFilter(call.filter, inner, bind),
    orderBy: (call.orderBy ?? []).map((sort) => bindSort(sort, inner, bind)),
  });
  return { kind: "column", type: form.result, column };
}

/**
 * An aggregate over columns of an outer query alone is one of that query, whose value the inner
 * one reads. Undefined for every other aggregate.
 */
function bindOuterAggregate(call: ExprCall, place: Place, bind: Bind): BoundExpression | undefined {
  const { outer } = place;
  if (outer === undefined) return undefined;
  const refs: ExprRef[] = [];
  if (!call.args.every((argument) => collectRefs(argument, refs)) || refs.length === 0) {
    return undefined;
  }
  const isOfOuter = refs.every(
    (ref) => ref.star !== true && place.scope.lookup(ref) === undefined && isKnown(ref, outer),
  );
  return isOfOuter ? outer.capture(bindAggregate(call, outer.place, bind)) : undefined;
}

/** The columns that an expression names; false if it holds a query, whose names are its own. */
function collectRefs(node: unknown, into: ExprRef[]): boolean {
  if (typeof node !== "object" || node === null) return true;
  const { type } = node as { readonly type?: unknown };
  if (type === "array select" || isQueryNode(node as Expr)) return false;
  if (type === "ref") into.push(node as ExprRef);
  return Object.values(node).every((part) => collectRefs(part, into));
}

function isKnown(ref: ExprRef, outer: Correlation | undefined): boolean {
  if (outer === undefined) return false;
  const { place } = outer;
  return place.scope.lookup(ref) !== undefined || isKnown(ref, place.outer);
}

function bindFilter(condition: Expr, place: Place, bind: Bind): BoundExpression {
  return castTo(bind(condition, place), { to: BOOLEAN, mode: "implicit", node: condition });
}

/** One ORDER BY entry over plain expressions. ASC puts NULL last, DESC first. */
function bindSort(sort: OrderByStatement, place: Place, bind: Bind): BoundSort {
  const isDescending = sort.order === "DESC";
  return {
    expression: bind(sort.by, place),
    isDescending,
    nullsFirst: sort.nulls === undefined ? isDescending : sort.nulls === "FIRST",
  };
}

function isStarRef(expression: Expr | undefined): boolean {
  return expression?.type === "ref" && expression.star === true;
}
