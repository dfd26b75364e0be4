/**
 * Binds integer parameters in places that accept only INT, as in `left(name, $1)` or `8 << $1`.
 *
 * An integer in a request is BIGINT, however small it is, so that one plan can be used for every
 * value and results always have the same type. If no overload of a function accepts BIGINT, an
 * argument that consists of just a parameter is narrowed to INT, and its range is checked when the
 * statement runs.
 */
import { type DataType, INT } from "../../../types/mod.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { type CastTarget, castTo } from "./casts.ts";

/**
 * Finds the form of a function or operator that accepts arguments of the given types. If there is
 * none, searches again, treating integer parameters as INT.
 *
 * @param find Returns the form for the given types; undefined if no form accepts them.
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

/**
 * Casts an argument to the required type.
 * @throws {DatabaseError} TYPE_MISMATCH
 */
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

/** Whether an argument is an integer parameter, or an array made up only of such parameters. */
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
