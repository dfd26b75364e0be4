/**
 * Binds arguments that name their parameter, as in `make_interval(days => 3)`, by moving them to
 * the parameter's position.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { INT, UNKNOWN } from "../../../types/mod.ts";
import type { Signature } from "../../functions/base/function.ts";
import type { Expr, ExprCall } from "../../parse/ast/ast.ts";
import type { BoundExpression } from "../bound_expressions.ts";

/**
 * Refuses named arguments in a call to a function without named parameters.
 *
 * @throws {DatabaseError} FUNCTION_NOT_FOUND
 */
export function checkNames(call: ExprCall, form: Signature | undefined): void {
  const name = call.argNames?.find((given) => given !== undefined);
  if (name === undefined || form?.parameterNames !== undefined) return;
  throw unknownParameter(call, name, []);
}

/**
 * Binds a call's arguments in parameter order. A parameter omitted before a named one takes its
 * default value.
 *
 * @throws {DatabaseError} FUNCTION_NOT_FOUND if an argument names no parameter; INVALID_QUERY
 */
export function boundInOrder(
  call: ExprCall,
  form: Signature | undefined,
  bind: (argument: Expr) => BoundExpression,
): BoundExpression[] {
  return inOrder(call, form?.parameterNames ?? []).map((argument, i) => {
    if (argument !== undefined) return bind(argument);
    const text = form?.omittedTexts?.[i];
    if (text !== undefined) return { kind: "constant", type: UNKNOWN, value: text };
    return { kind: "constant", type: INT, value: 0 };
  });
}

function inOrder(call: ExprCall, parameters: readonly string[]): readonly (Expr | undefined)[] {
  const { argNames = [], args } = call;
  if (!argNames.some((name) => name !== undefined)) return args;
  const ordered: (Expr | undefined)[] = [];
  let isNamed = false;
  for (const [i, argument] of args.entries()) {
    const name = argNames[i];
    if (name === undefined && isNamed)
      throw misused(call, "a positional argument follows a named argument");
    isNamed ||= name !== undefined;
    const index = name === undefined ? i : parameters.indexOf(name);
    if (index === -1) throw unknownParameter(call, name ?? "", parameters);
    if (ordered[index] !== undefined)
      throw misused(call, `the argument "${name ?? ""}" is passed twice`);
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
      ? "pass the arguments by position, without names"
      : `the parameters are ${parameters.join(", ")}`;
  return new DatabaseError(
    "FUNCTION_NOT_FOUND",
    `Cannot call ${call.function.name}: it has no parameter named "${name}"`,
    { position: call._location.start, hint },
  );
}
