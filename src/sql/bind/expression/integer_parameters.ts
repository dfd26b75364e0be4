/**
 * Integer parameters in places that take INT only: `left(name, $1)`, `8 << $1`.
 *
 * An integer of a request is BIGINT, however small it is: a plan serves every value, and what is
 * computed has the same type each time. So one that is an argument by itself is narrowed where
 * nothing else fits, and its range is checked when the statement runs.
 */
import { type DataType, INT } from "../../../types/mod.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { type CastTarget, castTo } from "./casts.ts";

/**
 * What fits arguments: by their types, or else with integer parameters as INT.
 *
 * @param find Undefined where nothing fits these types.
 */
export function fittingOf<Found>(
  args: readonly BoundExpression[],
  find: (types: readonly DataType[]) => Found | undefined,
): Found | undefined {
  const found = find(args.map(({ type }) => type));
  if (found !== undefined || !args.some(isNarrowable)) return found;
  return find(
    args.map((argument) => (isNarrowable(argument) ? narrowedType(argument) : argument.type)),
  );
}

/** An argument in the type of its place. @throws {DatabaseError} TYPE_MISMATCH */
export function castArgument(
  argument: BoundExpression,
  { to, node }: Pick<CastTarget, "to" | "node">,
): BoundExpression {
  const mode = isNarrowable(argument) && isOfInt(to) ? "assignment" : "implicit";
  return castTo(argument, { to, mode, node });
}

function isOfInt(type: DataType): boolean {
  return type.kind === "int" || (type.kind === "array" && type.element.kind === "int");
}

/** An integer parameter, or an array of nothing else. */
function isNarrowable(argument: BoundExpression): boolean {
  if (argument.kind === "call" && argument.name === "array") {
    return argument.args.length > 0 && argument.args.every(isIntegerParameter);
  }
  return isIntegerParameter(argument);
}

function isIntegerParameter(argument: BoundExpression): boolean {
  return (
    argument.kind === "slot" && argument.isParameter === true && argument.type.kind === "bigint"
  );
}

function narrowedType({ type }: BoundExpression): DataType {
  return type.kind === "array" ? { kind: "array", element: INT } : INT;
}
