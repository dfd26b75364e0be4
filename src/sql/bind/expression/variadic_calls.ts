/**
 * Binds calls with VARIADIC before the last argument, which is an array. Its elements become the
 * last arguments of the function. Their number is known only at run time, so the function is
 * resolved separately for each number of elements that occurs.
 */
import {
  type ArrayValue,
  casterFor,
  type DataType,
  elementsOf,
  sameType,
  TEXT,
  type Value,
} from "../../../types/mod.ts";
import type { CallDeps, Overload } from "../../functions/base/function.ts";
import {
  overloadsNamed,
  type ResolvedFunction,
  resolveAmong,
  takesMany,
} from "../../functions/registry.ts";
import type { ExprCall } from "../../parse/ast/ast.ts";
import { unknownFunction } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castTo } from "./casts.ts";
import { castArgument } from "./integer_parameters.ts";
import { arrayTypeOf } from "./types.ts";

type EvaluateCall = (values: readonly Value[], call: CallDeps) => Value;

/** The maximum number of elements for which the resolved function is cached. */
const COUNT_KEPT_MAX = 64;

/**
 * Binds a call with VARIADIC before its last argument.
 * @param overloads The forms of the function.
 * @throws {DatabaseError} FUNCTION_NOT_FOUND
 */
export function bindVariadic(
  call: ExprCall,
  args: readonly BoundExpression[],
  overloads = overloadsNamed(call.function.name),
): BoundExpression {
  const { name } = call.function;
  const fixed = args.slice(0, -1);
  const array = variadicArray(args.at(-1), call);
  const given = [...fixed.map(({ type }) => type), array.type.element];
  const single = takesMany(overloads) ? resolveAmong(overloads, given) : undefined;
  if (single === undefined || fixed.length !== fixedCountOf(single)) {
    throw unknownFunction(name, given, call);
  }
  const { argumentTypes, overload, result } = single;
  const evaluators = new Map<number, EvaluateCall>();
  const evaluatorOf = (count: number): EvaluateCall => {
    const known = evaluators.get(count);
    if (known !== undefined) return known;
    const types = [...argumentTypes.slice(0, fixed.length), ...repeated(array.type.element, count)];
    const made = evaluatorFor(call, types, { fixedCount: fixed.length, overloads, single });
    if (count <= COUNT_KEPT_MAX) evaluators.set(count, made);
    return made;
  };
  return {
    kind: "call",
    type: result.kind === "array" ? arrayTypeOf(result.element) : result,
    name,
    args: [
      ...fixed.map((argument, i) =>
        castArgument(argument, { to: argumentTypes[i] ?? argument.type, node: call }),
      ),
      array.value,
    ],
    evaluate: (values, deps) => {
      const list = values.at(-1) ?? null;
      if (list === null && name !== NULL_IS_EMPTY) return null;
      const elements = list === null ? [] : elementsOf(list as ArrayValue);
      return evaluatorOf(elements.length)([...values.slice(0, -1), ...elements], deps);
    },
    seesNull: overload.seesNull === true,
    volatility: overload.volatility,
  };
}

/** Returns the number of arguments that precede the VARIADIC array. */
function fixedCountOf({ overload: { parameters, variadic } }: ResolvedFunction): number {
  let count = parameters.length;
  while (count > 0 && parameters[count - 1] === variadic) count -= 1;
  return count;
}

/**
 * The only function that treats a NULL array as an empty list. All other functions return NULL.
 */
const NULL_IS_EMPTY = "format";

/**
 * Returns the argument after VARIADIC as an array. An untyped literal is read as an array of text.
 */
function variadicArray(
  value: BoundExpression | undefined,
  call: ExprCall,
): { readonly value: BoundExpression; readonly type: DataType & { kind: "array" } } {
  const type: DataType = { kind: "array", element: TEXT };
  if (value?.type.kind === "array") return { value, type: value.type };
  if (value?.type.kind === "unknown") {
    return { value: castTo(value, { to: type, mode: "implicit", node: call }), type };
  }
  throw unknownFunction(call.function.name, value === undefined ? [] : [value.type], call);
}

function evaluatorFor(
  call: ExprCall,
  types: readonly DataType[],
  {
    fixedCount,
    overloads,
    single,
  }: {
    readonly fixedCount: number;
    readonly overloads: readonly Overload[];
    readonly single: ResolvedFunction;
  },
): EvaluateCall {
  // The VARIADIC array may be empty, so the function is resolved without elements, even if a
  // direct call would require at least one.
  const found = resolveAmong(overloads, types);
  const resolved = found ?? (types.length === fixedCount ? single : undefined);
  if (resolved === undefined) throw unknownFunction(call.function.name, types, call);
  const { argumentTypes, overload } = resolved;
  const casts = types.map((type, i) => {
    const to = argumentTypes[i] ?? type;
    if (i < fixedCount || sameType(type, to)) return undefined;
    return casterFor(type, to, "implicit");
  });
  return (values, deps) => {
    const read = values.map((value, i) => (value === null ? null : (casts[i]?.(value) ?? value)));
    if (overload.seesNull !== true && read.includes(null)) return null;
    return overload.evaluate(read, deps, argumentTypes);
  };
}

function repeated(type: DataType, count: number): DataType[] {
  return Array.from({ length: count }, () => type);
}
