/**
 * Binds calls: scalar functions, aggregates, and constructs that look like calls.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  caseLocaleOf,
  casterFor,
  type DataType,
  isInteger,
  NUMERIC,
  type Value,
} from "../../../types/mod.ts";
import { isAdvisoryFunction } from "../../functions/advisory.ts";
import { isAggregate } from "../../functions/aggregate/aggregates.ts";
import type { Overload } from "../../functions/base/function.ts";
import { SNOWFLAKE_ID } from "../../functions/ids.ts";
import { constructorsOf } from "../../functions/ranges.ts";
import {
  functionExists,
  namedForm,
  overloadsNamed,
  resolveAmong,
  takesMany,
} from "../../functions/registry.ts";
import {
  NEXTVAL,
  NUMBERING_FUNCTIONS,
  nextOfDefault,
  SEQUENCE_FUNCTIONS_BY_NAME,
} from "../../functions/sequences.ts";
import { SETTING_FUNCTIONS, SLEEP } from "../../functions/session.ts";
import { isTableFunction, namedTableForm } from "../../functions/table/table_functions.ts";
import { caseFunctionFor } from "../../functions/text/text.ts";
import { isWindowName } from "../../functions/window_functions.ts";
import type { AstNode, Expr, ExprCall } from "../../parse/ast/ast.ts";
import { type Bind, type ExpressionContext, unknownFunction } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { insteadOfFunction } from "../other_names.ts";
import { bindAggregate, bindGrouping } from "../query/aggregate_binder.ts";
import { withoutExpansions } from "../query/expansions.ts";
import { bindHypothetical } from "../query/hypothetical_sets.ts";
import { routineValue } from "../query/routine_calls.ts";
import { aggregatesOf, resolveRoutine, routinesOf } from "../query/routine_resolution.ts";
import { bindExpansion, bindRoutineExpansion } from "../query/table_function_binder.ts";
import { bindWindowCall } from "../query/window_binder.ts";
import { operandsOf } from "./binary_forms.ts";
import { castToCommonType } from "./casts.ts";
import { checkPattern, collationFor, typeWithDerived } from "./collations.ts";
import { bindFunctionalCast } from "./functional_casts.ts";
import { castArgument, fittingOf } from "./integer_parameters.ts";
import { boundInOrder, checkNames } from "./named_arguments.ts";
import { operatorOfCall } from "./operator_calls.ts";
import { bindRow, fieldsOfValue, isColumn } from "./row_values.ts";
import { bindExists } from "./subquery_binder.ts";
import { arrayTypeOf } from "./types.ts";
import { bindVariadic } from "./variadic_calls.ts";
import { bindXmlForm } from "./xml_forms.ts";

export function bindCall(call: ExprCall, context: ExpressionContext, bind: Bind): BoundExpression {
  const { name, schema } = call.function;
  const own = bindOutsideLibrary(call, context, bind);
  if (own !== undefined) return own;
  if (schema !== undefined && schema !== SYSTEM_SCHEMA)
    throw unknownFunction(`${schema}.${name}`, [], call);
  if (call.argNames !== undefined) checkNames(call, namedForm(name) ?? namedTableForm(name));
  if (call.over !== undefined) return bindWindowCall(call, context, bind);
  switch (name) {
    case "coalesce": {
      if (call.args.length === 0) throw unknownFunction(name, [], call);
      const inner = withoutExpansions(context, "COALESCE");
      const operands = call.args.map((argument) => bind(argument, inner));
      const { type, expressions } = castToCommonType(operands, call.args, "COALESCE");
      return { kind: "coalesce", type, operands: expressions };
    }
    case "exists":
      return bindExists(call, context);
    case "any":
    case "some":
    case "all":
      throw new DatabaseError(
        "INVALID_QUERY",
        `Cannot use ${name.toUpperCase()} here: it is allowed only on the right-hand side of a ` +
          "comparison",
        { position: call._location.start },
      );
    case "grouping":
      return bindGrouping(call, context, bind);
    case "file":
      return bindFile(call, context);
    case "merge_action":
      return bindMergeAction(call, context);
    default:
      break;
  }
  refuseVariadic(call);
  if (isTableFunction(name)) return bindExpansion(call, context, bind);
  if (isAggregate(name)) return bindAggregate(call, context, bind);
  const position = bindHypothetical(call, context, bind);
  if (position !== undefined) return position;
  if (isWindowName(name)) {
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call ${name} without OVER: it is a window function`,
      {
        position: call._location.start,
        hint: `write ${name}(…) OVER (ORDER BY …)`,
      },
    );
  }
  return bindScalar(call, context, bind);
}

/**
 * Binds an SQL/XML construct or a call to a user-defined function; undefined for any other call.
 */
function bindOutsideLibrary(
  call: ExprCall,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression | undefined {
  return (
    bindXmlForm(call, { bind, context }) ??
    bindRoutineCall(call, context, bind) ??
    bindConstructor(call, context, bind)
  );
}

/** Binds the constructor of a range type defined with CREATE TYPE; undefined for any other call. */
function bindConstructor(
  call: ExprCall,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression | undefined {
  const { rangeType } = call;
  if (rangeType === undefined) return undefined;
  const { name } = call.function;
  const { distinct, filter, isVariadic, orderBy, over } = call;
  if (call.argNames !== undefined) checkNames(call, undefined);
  if ([distinct, filter, orderBy, over].some((clause) => clause !== undefined)) {
    throw unknownFunction(name, [], call);
  }
  const args = call.args.map((argument) => bind(argument, context));
  const overloads = constructorsOf(rangeType);
  if (isVariadic === true) return bindVariadic(call, args, overloads);
  return bindFunction({ name, overloads, args, node: call });
}

/** Binds a call to a user-defined function or aggregate; undefined for any other call. */
function bindRoutineCall(
  call: ExprCall,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression | undefined {
  const routines = routinesOf(call, context);
  if (routines === undefined) return undefined;
  if (aggregatesOf(call, context) !== undefined) {
    return call.over === undefined
      ? bindAggregate(call, context, bind)
      : bindWindowCall(call, context, bind);
  }
  const routine = resolveRoutine(call, routines, { bind, context });
  if (routine.callable.routine.isSet) return bindRoutineExpansion(routine, context);
  return routineValue(routine, context);
}

/**
 * Refuses VARIADIC in a call to a function that does not accept it.
 *
 * @throws {DatabaseError} FUNCTION_NOT_FOUND
 */
function refuseVariadic(call: ExprCall): void {
  const { name } = call.function;
  if (call.isVariadic !== true || takesMany(overloadsNamed(name))) return;
  throw unknownFunction(name, [], call);
}

function bindCollationFor(call: ExprCall, context: ExpressionContext, bind: Bind): BoundExpression {
  const [argument] = call.args;
  if (argument === undefined || call.args.length !== 1) {
    throw unknownFunction(call.function.name, [], call);
  }
  return collationFor(bind(argument, context), call._location.start);
}

function bindMergeAction(call: ExprCall, { mergeAction }: ExpressionContext): BoundExpression {
  if (call.args.length > 0) throw unknownFunction(call.function.name, [], call);
  if (mergeAction !== undefined) return columnValue(mergeAction);
  throw new DatabaseError(
    "INVALID_QUERY",
    "Cannot call merge_action here: it is allowed only in the RETURNING clause of MERGE",
    { position: call._location.start },
  );
}

function bindScalar(call: ExprCall, context: ExpressionContext, bind: Bind): BoundExpression {
  const { name } = call.function;
  const position = call._location.start;
  if (call.distinct !== undefined || call.orderBy !== undefined || call.filter !== undefined) {
    if (!functionExists(name)) throw unknownFunction(name, [], call);
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call ${name} with DISTINCT, ORDER BY or FILTER: it is not an aggregate function`,
      { position },
    );
  }
  if (name === "pg_collation_for") return bindCollationFor(call, context, bind);
  const operator = operatorOfCall(call);
  if (operator !== undefined) return bind(operator, context);
  const other = bindFunctionalCast(call, context, bind) ?? bindFieldCall(call, context, bind);
  if (other !== undefined) return other;
  // The arguments are not bound: a function known only from another database system may have
  // arguments with keywords that exist only there.
  if (!functionExists(name) && insteadOfFunction(name) !== undefined) {
    throw unknownFunction(name, [], call);
  }
  noteRequirements(call, context);
  const bindArgument: Bind = SEQUENCE_FUNCTIONS_BY_NAME.has(name)
    ? (node, at) => bind(withoutRegclass(node), at)
    : bind;
  const args = boundInOrder(call, namedForm(name), (argument) => bindArgument(argument, context));
  if (call.isVariadic === true) return bindVariadic(call, args);
  const [value, unwanted] = args;
  if (name === "nullif" && value !== undefined && unwanted !== undefined && args.length === 2) {
    return bindNullif(value, unwanted, call);
  }
  const bound = bindFunction({ name, args, node: call });
  const isOfDefault = name === NEXTVAL && context.clause === "DEFAULT";
  return isOfDefault && bound.kind === "call" ? { ...bound, evaluate: nextOfDefault } : bound;
}

/** Binds `f(r)` as the field `f` of a row; undefined unless the row has such a field. */
function bindFieldCall(
  { args: [row, ...others], function: { name, schema } }: ExprCall,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression | undefined {
  if (row === undefined || schema !== undefined || others.length > 0) return undefined;
  if (functionExists(name)) return undefined;
  const isRow =
    row.type === "ref"
      ? bindRow(row, context, bind) !== undefined || (row.star !== true && isColumn(row, context))
      : row.type === "cast";
  if (!isRow) return undefined;
  const fields = fieldsOfValue(bind(row, context)) ?? [];
  return fields.find((each) => each.name === name)?.expression;
}

function noteRequirements(
  { function: { name }, _location }: ExprCall,
  { statement: { requirements } }: ExpressionContext,
): void {
  const position = _location.start;
  if (name === SLEEP) requirements.push({ action: "sleep", position });
  if (isAdvisoryFunction(name)) requirements.push({ action: "advisory-lock", name, position });
  const asks =
    name === SNOWFLAKE_ID || NUMBERING_FUNCTIONS.has(name) || SETTING_FUNCTIONS.has(name);
  if (asks) requirements.push({ action: "take-id" });
}

/** The schema that may qualify a call to a PostgreSQL function. pg_dump writes it. */
const SYSTEM_SCHEMA = "pg_catalog";

/**
 * Returns the name inside `'name'::regclass`, which pg_dump writes for a sequence. Any other node
 * is returned unchanged.
 */
function withoutRegclass(node: Expr): Expr {
  if (node.type !== "cast" || node.to.kind === "array" || node.to.name !== "regclass") return node;
  return node.operand;
}

export interface FunctionCall {
  readonly name: string;
  /** The forms of the function; absent for those of the built-in function with the name. */
  readonly overloads?: readonly Overload[] | undefined;
  readonly args: readonly BoundExpression[];
  readonly node: AstNode;
}

/**
 * Applies a scalar function to bound arguments.
 * @throws {DatabaseError} FUNCTION_NOT_FOUND
 */
export function bindFunction({ name, args, node, overloads }: FunctionCall): BoundExpression {
  const types = args.map((argument) => argument.type);
  // The digits argument of round(x, 2) determines the scale of the result.
  const constants = args.map((argument) =>
    argument.kind === "constant" ? argument.value : undefined,
  );
  const forms = overloads ?? overloadsNamed(name);
  const resolved = fittingOf(args, (given) => resolveAmong(forms, given, constants));
  if (resolved === undefined) throw unknownFunction(name, types, node);
  const { argumentTypes, overload, result } = resolved;
  checkPattern(name, args, node._location.start);
  const type = typeWithDerived(
    result.kind === "array" ? arrayTypeOf(result.element) : result,
    args,
  );
  const changeCase = caseFunctionFor(name, caseLocaleOf(type));
  return {
    kind: "call",
    type,
    name,
    args: args.map((argument, i) =>
      castArgument(argument, { to: argumentTypes[i] ?? argument.type, node }),
    ),
    evaluate: changeCase ?? ((values, deps) => overload.evaluate(values, deps, argumentTypes)),
    seesNull: overload.seesNull === true,
    volatility: overload.volatility,
    evaluateVector: changeCase === undefined ? overload.evaluateVector : undefined,
  };
}

/**
 * Binds FILE('part') to a named slot. The executor fills the slot with a reference to the uploaded
 * file.
 */
function bindFile(call: ExprCall, context: ExpressionContext): BoundExpression {
  const [argument] = call.args;
  const position = call._location.start;
  if (argument?.type !== "string" || call.args.length !== 1) {
    throw new DatabaseError(
      "INVALID_INPUT",
      "Cannot use FILE with these arguments: it takes a single argument, the quoted name of a " +
        "part of the request",
      {
        position,
      },
    );
  }
  if (context.allowsFiles !== true) {
    throw new DatabaseError(
      "INVALID_INPUT",
      "Cannot use FILE here: it is allowed only as a whole value in INSERT … VALUES or UPDATE " +
        "… SET",
      { position, hint: "upload the file with INSERT or UPDATE, then read the column" },
    );
  }
  return context.statement.file(argument.value);
}

/**
 * Binds NULLIF(value, other): NULL if `value = other` holds, and `value` otherwise.
 *
 *     NULLIF(int, bigint)   → integer     the two can be compared as they are
 *     NULLIF(int, decimal)  → numeric     only decimals can be compared, so the value becomes one
 *
 * This is PostgreSQL's rule for the type of the result.
 *
 * @throws {DatabaseError} TYPE_MISMATCH
 */
function bindNullif(
  value: BoundExpression,
  other: BoundExpression,
  node: ExprCall,
): BoundExpression {
  // In a comparison with a DECIMAL, a NUMERIC or a literal may be replaced by another value that
  // gives the same comparison result. NULLIF also returns the compared value, so it compares both
  // sides as NUMERIC.
  const isUnsized = value.type.kind === "numeric" || value.type.kind === "unknown";
  const isReplaced = isUnsized && other.type.kind === "decimal";
  const asCompared = (operand: BoundExpression): BoundExpression =>
    isReplaced ? castArgument(operand, { to: NUMERIC, node }) : operand;
  const given = asCompared(value);
  const { form, left, right } = operandsOf(
    { op: "=", left: given, right: asCompared(other) },
    node,
  );
  const isKept = keepsType(given.type, left.type);
  const returned = isKept ? given : left;
  const convert = isKept ? casterFor(given.type, left.type, "implicit") : undefined;
  return {
    kind: "call",
    type: typeWithDerived(returned.type, [value, other]),
    name: "nullif",
    args: [returned, right],
    evaluate: ([first = null, second = null]: readonly Value[]): Value => {
      if (first === null || second === null) return first;
      const compared = convert === undefined ? first : convert(first);
      return form.evaluate([compared, second]) === true ? null : first;
    },
    seesNull: true,
    volatility: "immutable",
  };
}

/**
 * Whether NULLIF returns the value in its own type although it compares it in a different type.
 */
function keepsType(own: DataType, compared: DataType): boolean {
  if (own.kind === compared.kind) return true;
  if (isInteger(own)) return isInteger(compared);
  if (own.kind === "float") return compared.kind === "double";
  return isMoment(own) && isMoment(compared);
}

function isMoment({ kind }: DataType): boolean {
  return kind === "date" || kind === "timestamp" || kind === "datetime";
}
