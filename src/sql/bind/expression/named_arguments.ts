/**
 * Arguments that name their parameter: `make_interval(days => 3)`.
 *
 * They are put where their parameter stands; what is left out between them is 0.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { INT } from "../../../types/mod.ts";
import { parameterNames } from "../../functions/registry.ts";
import type { Expr, ExprCall } from "../../parse/ast/ast.ts";
import type { Bind, Place } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";

/**
 * Refuses names in a call whose function has none for its parameters.
 *
 * @throws {DatabaseError} FUNCTION_NOT_FOUND
 */
export function checkNames(call: ExprCall): void {
  const name = call.argNames?.find((given) => given !== undefined);
  if (name === undefined || parameterNames(call.function.name) !== undefined) return;
  throw unknownParameter(call, name, []);
}

/** The arguments of a call of a scalar function, in the order of its parameters. */
export function bindArguments(call: ExprCall, place: Place, bind: Bind): BoundExpression[] {
  return inOrder(call).map((argument) =>
    argument === undefined ? { kind: "constant", type: INT, value: 0 } : bind(argument, place),
  );
}

/** @throws {DatabaseError} FUNCTION_NOT_FOUND, unless names and parameters agree. */
function inOrder(call: ExprCall): readonly (Expr | undefined)[] {
  const { argNames = [], args } = call;
  if (!argNames.some((name) => name !== undefined)) return args;
  const parameters = parameterNames(call.function.name) ?? [];
  const ordered: (Expr | undefined)[] = [];
  let isNamed = false;
  for (const [i, argument] of args.entries()) {
    const name = argNames[i];
    if (name === undefined && isNamed)
      throw misused(call, "an argument without a name follows one");
    isNamed ||= name !== undefined;
    const index = name === undefined ? i : parameters.indexOf(name);
    if (index === -1) throw unknownParameter(call, name ?? "", parameters);
    if (ordered[index] !== undefined) throw misused(call, `"${name ?? ""}" is given twice`);
    ordered[index] = argument;
  }
  return Array.from(ordered);
}

function misused(call: ExprCall, why: string): DatabaseError {
  return new DatabaseError("INVALID_QUERY", `Cannot call ${call.function.name}: ${why}`, {
    position: call._location.start,
  });
}

function unknownParameter(
  call: ExprCall,
  name: string,
  parameters: readonly string[],
): DatabaseError {
  const hint =
    parameters.length === 0
      ? "give its arguments in their order, without names"
      : `its parameters are ${parameters.join(", ")}`;
  return new DatabaseError(
    "FUNCTION_NOT_FOUND",
    `Cannot call ${call.function.name}: it has no parameter named "${name}"`,
    { position: call._location.start, hint },
  );
}
