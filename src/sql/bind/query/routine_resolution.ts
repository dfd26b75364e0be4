/**
 * Resolves calls to user-defined functions: which function a call refers to, the arguments in the
 * order of its parameters, and the columns of its result. `routine_calls.ts` binds the query.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { Routine, RoutineParameter, RoutineType } from "../../../catalog/mod.ts";
import { commonType, type DataType, type DomainType, TEXT, typeName } from "../../../types/mod.ts";
import { bestFit } from "../../functions/registry.ts";
import type { AstNode, Expr, ExprCall } from "../../parse/ast/ast.ts";
import { type Bind, type CallableRoutine, type ExpressionContext, isBuiltIn } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { arrayOfValues } from "../expression/array_values.ts";
import { castTo } from "../expression/casts.ts";
import { checkedParts } from "../expression/domains.ts";
import { castArgument, fittingOf } from "../expression/integer_parameters.ts";
import { Scope } from "../scope.ts";
import {
  type ActualTypes,
  actualType,
  actualTypesOf,
  elementOfType,
  isPolymorphic,
} from "./polymorphic_types.ts";

/** A column in the result of a call. */
export interface RoutineColumn {
  /**
   * The name of the column; undefined for a single value, which takes the name of the function.
   */
  readonly name: string | undefined;
  readonly type: DataType;
  readonly domain?: DomainType;
}

/** A call that has been resolved to a function. */
export interface RoutineCall {
  readonly callable: CallableRoutine;
  /** The arguments in the order of the parameters, cast to their types. */
  readonly args: readonly BoundExpression[];
  /** The columns of the result; undefined for a record, whose columns the query determines. */
  readonly columns: readonly RoutineColumn[] | undefined;
  /** The type of the result as a single value; undefined for a row without a declared type. */
  readonly type: DataType | undefined;
  /** The types that polymorphic types denote. */
  readonly actual: ActualTypes;
  readonly node: ExprCall;
}

/** Whether the parameter is an input, for which a call passes an argument. */
export function isInput({ mode }: Pick<RoutineParameter, "mode">): boolean {
  return mode !== "out" && mode !== "table";
}

/** Whether the parameter becomes a column of the result. */
export function isOutput({ mode }: Pick<RoutineParameter, "mode">): boolean {
  return mode !== "in" && mode !== "variadic";
}

/**
 * Returns the functions to which a call may refer; undefined if it calls no user-defined function.
 * A built-in function hides user-defined functions of the same name, unless the call names their
 * namespace.
 */
export function routinesOf(
  { function: name }: Pick<ExprCall, "function">,
  { routinesNamed }: ExpressionContext,
): readonly CallableRoutine[] | undefined {
  if (name.schema === undefined && isBuiltIn(name.name)) return undefined;
  const found = routinesNamed?.(name) ?? [];
  const [first] = found;
  if (first === undefined) return undefined;
  const functions = found.filter(({ routine }) => routine.isProcedure !== true);
  if (functions.length > 0) return functions;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot call ${first.name} in a query: it is a procedure; use CALL`,
    { position: name._location.start, hint: `write CALL ${first.name}(…)`, sqlstate: "42809" },
  );
}

/**
 * Returns the aggregates to which a call may refer; undefined if it calls no user-defined
 * aggregate. If functions have the same name, the number of the arguments and the clauses of the
 * call decide.
 */
export function aggregatesOf(
  call: ExprCall,
  context: ExpressionContext,
): readonly CallableRoutine[] | undefined {
  const routines = routinesOf(call, context);
  if (routines === undefined) return undefined;
  const aggregates = routines.filter(isAggregateRoutine);
  if (aggregates.length === 0) return undefined;
  if (aggregates.length === routines.length || isOverStar(call)) return aggregates;
  const { distinct, filter, orderBy, over } = call;
  if ([distinct, filter, orderBy, over].some((clause) => clause !== undefined)) return aggregates;
  const fits = ({ defaults, routine }: CallableRoutine): boolean => {
    const placed = placedArguments(call, routine.parameters.filter(isInput));
    const isGiven = (argument: Expr | undefined, i: number): boolean =>
      argument !== undefined || defaults[i] !== undefined;
    return placed?.every(isGiven) === true;
  };
  const fitting = routines.filter(fits);
  const isAggregate = fitting.length > 0 && fitting.every(isAggregateRoutine);
  return isAggregate ? aggregates : undefined;
}

function isAggregateRoutine({ routine }: CallableRoutine): boolean {
  return routine.aggregate !== undefined;
}

/** Whether the only argument of a call is a star, as in `count(*)`. */
export function isOverStar({ args: [only, ...others] }: Pick<ExprCall, "args">): boolean {
  if (only?.type !== "ref" || others.length > 0) return false;
  return only.star === true && only.table === undefined;
}

/**
 * Returns the procedures to which CALL may refer.
 *
 * @throws {DatabaseError} FUNCTION_NOT_FOUND, INVALID_OPERATION
 */
export function proceduresOf(
  { function: name }: Pick<ExprCall, "function">,
  { routinesNamed }: ExpressionContext,
): readonly CallableRoutine[] {
  const found = routinesNamed?.(name) ?? [];
  const procedures = found.filter(({ routine }) => routine.isProcedure === true);
  if (procedures.length > 0) return procedures;
  const position = name._location.start;
  const shown = name.schema === undefined ? name.name : `${name.schema}.${name.name}`;
  if (found.length === 0) {
    throw new DatabaseError("FUNCTION_NOT_FOUND", `Cannot find procedure ${shown}`, { position });
  }
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot call ${shown} with CALL: it is a function; use SELECT`,
    {
      position,
      hint: `write SELECT ${shown}(…)`,
      sqlstate: "42809",
    },
  );
}

/** Returns a CALL without the arguments for output parameters, which are not evaluated. */
export function withoutOutputs<Call extends ExprCall>(
  call: Call,
  callables: readonly CallableRoutine[],
): Call {
  const fitting = callables.find(({ routine }) => routine.parameters.length >= call.args.length);
  if (fitting === undefined) return call;
  const { parameters } = fitting.routine;
  const { argNames = [] } = call;
  const isKept = call.args.map((_, i) => {
    const name = argNames[i];
    const parameter =
      name === undefined ? parameters[i] : parameters.find((each) => each.name === name);
    return parameter?.mode !== "out";
  });
  if (isKept.every(Boolean)) return call;
  return {
    ...call,
    args: call.args.filter((_, i) => isKept[i] === true),
    ...(call.argNames === undefined
      ? {}
      : { argNames: argNames.filter((_, i) => isKept[i] === true) }),
  };
}

/**
 * Finds the function to which a call refers, and binds the arguments.
 *
 * @param callables The functions that have the name used in the call.
 * @throws {DatabaseError} FUNCTION_NOT_FOUND
 */
export function resolveRoutine(
  call: ExprCall,
  callables: readonly CallableRoutine[],
  { bind, context }: { readonly bind: Bind; readonly context: ExpressionContext },
): RoutineCall {
  refuseClauses(call);
  const functions = callables.filter((each) => !isAggregateRoutine(each));
  const [other] = callables;
  if (functions.length === 0 && other !== undefined) throw misplacedAggregate(call, other);
  return resolved(call, functions, { bind, context });
}

/**
 * Finds the aggregate to which a call refers, and binds the arguments.
 *
 * @throws {DatabaseError} FUNCTION_NOT_FOUND
 */
export function resolveAggregateRoutine(
  call: ExprCall,
  callables: readonly CallableRoutine[],
  place: { readonly bind: Bind; readonly context: ExpressionContext },
): RoutineCall {
  const isStar = isOverStar(call);
  const withoutParameters = callables.filter(({ routine }) => routine.parameters.length === 0);
  if (!isStar && call.args.length === 0) {
    if (withoutParameters.length === 0) throw noneFits(call, callables, []);
    const { name } = call.function;
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call aggregate ${name} with empty parentheses: it has no parameters`,
      { position: call._location.start, hint: `write ${name}(*)`, sqlstate: "42809" },
    );
  }
  const fitting = isStar ? withoutParameters : callables;
  return resolved(isStar ? { ...call, args: [] } : call, fitting, place);
}

function misplacedAggregate(
  { _location, function: { name } }: ExprCall,
  callable: CallableRoutine,
): DatabaseError {
  return new DatabaseError(
    "INVALID_QUERY",
    `Cannot use the aggregate function ${name} here: ${signatureOf(callable)} is computed from ` +
      "the rows of a query",
    { position: _location.start, hint: `write SELECT ${name}(…) FROM …` },
  );
}

function resolved(
  call: ExprCall,
  callables: readonly CallableRoutine[],
  { bind, context }: { readonly bind: Bind; readonly context: ExpressionContext },
): RoutineCall {
  const known = new Map<Expr, BoundExpression>();
  const bound = (node: Expr): BoundExpression => {
    const value = known.get(node) ?? bind(node, context);
    known.set(node, value);
    return value;
  };
  const fitting = callables.flatMap(
    (callable) => candidateOf(callable, { call, bound, bind, context }) ?? [],
  );
  const [best, second] = fitting.toSorted(compareFits);
  if (best === undefined) throw noneFits(call, callables, call.args.map(bound));
  if (second !== undefined && compareFits(best, second) === 0) throw severalFit(call, best, second);
  return called(best, call);
}

/** Compares how well two functions fit the same call. The better fit sorts first. */
function compareFits(left: Candidate, right: Candidate): number {
  const [cost, open, count] = misfitOf(left);
  const [otherCost, otherOpen, otherCount] = misfitOf(right);
  return cost - otherCost || open - otherOpen || count - otherCount;
}

/**
 * Returns the measures by which a function fits a call less well: the cost of casts, polymorphic
 * types, and parameters with defaults.
 */
function misfitOf({ callable, cost }: Candidate): readonly [number, number, number] {
  const inputs = callable.routine.parameters.filter(isInput);
  const open = inputs.filter(({ mode, type }) => mode === "variadic" || typeof type === "string");
  return [cost, open.length, inputs.length];
}

function severalFit(call: ExprCall, ...fitting: readonly Candidate[]): DatabaseError {
  const forms = fitting.map(({ callable }) => signatureOf(callable));
  return new DatabaseError(
    "INVALID_OPERATION",
    `Cannot choose between functions: ${forms.join(" and ")} match the arguments equally well`,
    {
      position: call._location.start,
      hint: "cast the arguments to the parameter types of the function that you want to call",
    },
  );
}

function refuseClauses(call: ExprCall): void {
  const { distinct, filter, orderBy, over, withinGroup } = call;
  if ([distinct, filter, orderBy, over, withinGroup].every((clause) => clause === undefined))
    return;
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot call ${call.function.name} with DISTINCT, ORDER BY, FILTER or OVER: it is not an ` +
      "aggregate function",
    { position: call._location.start },
  );
}

function noneFits(
  call: ExprCall,
  [first, ...others]: readonly CallableRoutine[],
  args: readonly BoundExpression[],
): DatabaseError {
  const { name, schema } = call.function;
  const shown = schema === undefined ? name : `${schema}.${name}`;
  const types = args.map(({ type }) => typeName(type)).join(", ");
  const forms = [first, ...others].flatMap((each) => each ?? []).map(signatureOf);
  return new DatabaseError(
    "FUNCTION_NOT_FOUND",
    `Cannot find function ${shown}(${types}): no function of this name accepts these arguments`,
    { position: call._location.start, hint: `available: ${forms.join(" and ")}` },
  );
}

function signatureOf({ name, routine }: CallableRoutine): string {
  const shown = routine.parameters
    .filter(isInput)
    .map((each) => (each.name === undefined ? each.typeName : `${each.name} ${each.typeName}`));
  return `${name}(${shown.join(", ")})`;
}

interface Candidate {
  readonly callable: CallableRoutine;
  readonly args: readonly BoundExpression[];
  /** The types to which the arguments of a call are cast. */
  readonly types: readonly DataType[];
  readonly cost: number;
}

interface CallPlace {
  readonly call: ExprCall;
  readonly bound: (node: Expr) => BoundExpression;
  readonly bind: Bind;
  readonly context: ExpressionContext;
}

/**
 * Returns the arguments of a call as the given function would receive them; undefined if the
 * function does not accept them.
 */
function candidateOf(
  callable: CallableRoutine,
  { bind, bound, call, context }: CallPlace,
): Candidate | undefined {
  const { defaults, routine } = callable;
  const inputs = routine.parameters.filter(isInput);
  const placed = placedArguments(call, inputs);
  if (placed === undefined) return undefined;
  const args: BoundExpression[] = [];
  for (const [i, argument] of placed.entries()) {
    if (argument !== undefined) {
      args.push(bound(argument));
      continue;
    }
    const omitted = defaults[i];
    if (omitted === undefined) return undefined;
    const value = context.statement.within(callable.name, () =>
      bind(omitted, defaultContext(context, callable)),
    );
    const to = inputs[i]?.type;
    const isKnown = typeof to === "object";
    args.push(isKnown ? castTo(value, { to, mode: "assignment", node: call }) : value);
  }
  const isListed = call.isVariadic !== true;
  const parameters = inputs.map(({ mode, type }) =>
    isListed && mode === "variadic" ? elementOfType(type) : type,
  );
  const last = parameters.at(-1);
  const more = Array.from({ length: args.length - parameters.length }, () => last ?? "any");
  const fit = fittingOf(args, (types) => fitOf([...parameters, ...more], types));
  if (fit === undefined) return undefined;
  return { callable, args, types: fit.types, cost: fit.cost };
}

/**
 * Returns the context of a default expression. The only names in it are the names of functions
 * that the default may call.
 */
function defaultContext(
  { statement }: ExpressionContext,
  { routinesNamed }: CallableRoutine,
): ExpressionContext {
  return { statement, scope: new Scope([]), clause: "DEFAULT", sink: undefined, routinesNamed };
}

/**
 * Returns the argument for each parameter, followed by the extra arguments of a variadic
 * parameter. An omitted argument is undefined. Returns undefined if the call does not fit the
 * parameters.
 */
export function placedArguments(
  { argNames = [], args, isVariadic }: ExprCall,
  inputs: readonly RoutineParameter[],
): (Expr | undefined)[] | undefined {
  const isOpen = inputs.at(-1)?.mode === "variadic";
  if (isVariadic === true && !isOpen) return undefined;
  if (args.length > inputs.length && !isOpen) return undefined;
  const placed: (Expr | undefined)[] = inputs.map(() => undefined);
  for (const [i, argument] of args.entries()) {
    const name = argNames[i];
    const at = name === undefined ? i : inputs.findIndex((each) => each.name === name);
    if (at === -1 || placed[at] !== undefined) return undefined;
    placed[at] = argument;
  }
  return placed;
}

/** The cost of passing an untyped literal as an array or a range. */
const UNTYPED_COST = 1;

/** The cost of passing a row as a row of another type. */
const OTHER_ROW_COST = 1;

/**
 * Returns the types to which arguments are cast, and the cost of the casts; undefined if the
 * parameters do not accept the arguments.
 */
function fitOf(
  parameters: readonly RoutineType[],
  given: readonly DataType[],
): Pick<Candidate, "cost" | "types"> | undefined {
  const actual = actualTypesOf(parameters, given);
  if (actual === undefined) return undefined;
  const types: DataType[] = [];
  let cost = 0;
  for (const [i, parameter] of parameters.entries()) {
    const argument = given[i] ?? TEXT;
    if (isPolymorphic(parameter)) {
      const type = actualType(parameter, actual);
      if (type === undefined) return undefined;
      types.push(type);
      const isElement = parameter === "anyelement" || parameter === "anycompatible";
      if (argument.kind === "unknown" && !isElement) cost += UNTYPED_COST;
      continue;
    }
    const family = typeof parameter === "string" ? "any" : parameter;
    const fit = bestFit([{ parameters: [family] }], [argument]);
    if (fit === undefined) return undefined;
    types.push(fit.types[0] ?? argument);
    cost += fit.cost + (isOtherRow(family, argument) ? OTHER_ROW_COST : 0);
  }
  return { types, cost };
}

/** Whether a parameter has a named row type, and the argument any other row type. */
function isOtherRow(parameter: DataType | "any", argument: DataType): boolean {
  if (parameter === "any" || parameter.kind !== "row" || argument.kind !== "row") return false;
  return parameter.named !== undefined && parameter.named.typeId !== argument.named?.typeId;
}

function called({ args, callable, types }: Candidate, node: ExprCall): RoutineCall {
  const { routine } = callable;
  const inputs = routine.parameters.filter(isInput);
  const given = args.map((argument, i) => {
    const { type } = inputs[Math.min(i, inputs.length - 1)] ?? {};
    const isRow = typeof type === "object" && type.kind === "row";
    const to = isRow ? type : (types[i] ?? argument.type);
    return checkedParts(castArgument(argument, { to, node }), to);
  });
  const packed = packedArguments(given, { inputs, node });
  const actual =
    actualTypesOf(
      inputs.map((each) => each.type),
      packed.map((argument) => argument.type),
    ) ?? {};
  const outputs = routine.parameters.filter(isOutput);
  const columns = columnsOf(routine, outputs, { actual, node });
  const type = valueType(routine, columns, outputs);
  return { callable, args: packed, columns, type, actual, node };
}

/** Packs the last arguments of a variadic function into an array. */
function packedArguments(
  args: readonly BoundExpression[],
  { inputs, node }: { inputs: readonly RoutineParameter[]; node: ExprCall },
): readonly BoundExpression[] {
  if (inputs.at(-1)?.mode !== "variadic" || node.isVariadic === true) return args;
  const fixed = args.slice(0, inputs.length - 1);
  const listed = args.slice(inputs.length - 1);
  const type = commonType(listed.map((each) => each.type)) ?? TEXT;
  const elements = listed.map((each) => castTo(each, { to: type, mode: "implicit", node }));
  return [...fixed, arrayOfValues(elements, type)];
}

/**
 * Replaces a polymorphic type with the type that it denotes in a call.
 * @throws {DatabaseError}
 */
export function typeIn(
  type: RoutineType,
  { actual, node }: { actual: ActualTypes; node: AstNode },
): DataType {
  const known = actualType(type, actual);
  if (known !== undefined) return known;
  const name = typeof type === "string" ? type : typeName(type);
  throw new DatabaseError(
    "TYPE_MISMATCH",
    `Cannot determine ${name}: none of the arguments has a type from which it could be derived`,
    { position: node._location.start },
  );
}

export function columnsOf(
  routine: Routine,
  outputs: readonly RoutineParameter[],
  place: { actual: ActualTypes; node: AstNode },
): readonly RoutineColumn[] | undefined {
  const { isProcedure, returns } = routine;
  if (outputs.length === 0 && (returns === "void" || isProcedure === true)) {
    return [{ name: undefined, type: TEXT }];
  }
  if (returns === "trigger") {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot call function ${routine.name}: it is a trigger function, which only triggers can ` +
        "call",
      { position: place.node._location.start, sqlstate: "0A000" },
    );
  }
  if (outputs.length > 0) {
    return outputs.map(({ name, type }, i) => ({
      name: name ?? (outputs.length === 1 ? undefined : `column${i + 1}`),
      type: typeIn(type, place),
    }));
  }
  if (returns === undefined || returns === "record") return undefined;
  const type = typeIn(returns, place);
  return type.kind === "row" ? type.fields : [{ name: undefined, type }];
}

/** Returns the declared type of a function's result as a single value. */
export function valueType(
  { returns }: Routine,
  columns: readonly RoutineColumn[] | undefined,
  outputs: readonly RoutineParameter[],
): DataType | undefined {
  if (outputs.length === 0 && typeof returns === "object" && returns.kind === "row") return returns;
  const [only] = columns ?? [];
  return only !== undefined && columns?.length === 1 ? only.type : undefined;
}

/** Whether the result of a call is a row, even if the row has a single column. */
export function returnsRow({ columns, type }: RoutineCall): boolean {
  return type?.kind === "row"
    ? columns !== undefined && isFieldsOf(type, columns)
    : columns?.length !== 1;
}

function isFieldsOf(type: DataType, columns: readonly RoutineColumn[]): boolean {
  return type.kind === "row" && type.fields === columns;
}
