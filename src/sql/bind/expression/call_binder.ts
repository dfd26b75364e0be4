/**
 * Calls: scalar functions, aggregates, and the forms that look like calls.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { isAggregate } from "../../functions/aggregate/aggregates.ts";
import { SNOWFLAKE_ID } from "../../functions/ids.ts";
import { functionExists, resolveFunction } from "../../functions/registry.ts";
import { SLEEP } from "../../functions/session.ts";
import { isTableFunction } from "../../functions/table/table_functions.ts";
import { isWindowName } from "../../functions/window_functions.ts";
import type { AstNode, ExprCall } from "../../parse/ast/ast.ts";
import { type Bind, type Place, unknownFunction } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { insteadOfFunction } from "../other_names.ts";
import { bindAggregate, bindGrouping } from "../query/aggregate_binder.ts";
import { withoutExpansions } from "../query/expansions.ts";
import { bindExpansion } from "../query/table_function_binder.ts";
import { bindWindowCall } from "../query/window_binder.ts";
import { castAlike } from "./casts.ts";
import { castArgument, fittingOf } from "./integer_parameters.ts";
import { bindArguments, checkNames } from "./named_arguments.ts";
import { bindNullif } from "./nullif.ts";
import { bindRowToJson, bindWithRows, takesRows } from "./row_values.ts";
import { bindExists } from "./subquery_binder.ts";
import { arrayTypeOf } from "./types.ts";

export function bindCall(call: ExprCall, place: Place, bind: Bind): BoundExpression {
  const { name, schema } = call.function;
  if (schema !== undefined) throw unknownFunction(`${schema}.${name}`, [], call);
  if (call.argNames !== undefined) checkNames(call);
  if (call.over !== undefined) return bindWindowCall(call, place, bind);
  switch (name) {
    case "coalesce": {
      if (call.args.length === 0) throw unknownFunction(name, [], call);
      const inner = withoutExpansions(place, "COALESCE");
      const operands = call.args.map((argument) => bind(argument, inner));
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
      return bindGrouping(call, place, bind);
    case "file":
      return bindFile(call, place);
    case "row_to_json":
      return bindRowToJson(call, place, bind);
    default:
      break;
  }
  if (isTableFunction(name)) return bindExpansion(call, place, bind);
  if (isAggregate(name)) return bindAggregate(call, place, bind);
  if (isWindowName(name)) {
    throw new DatabaseError("INVALID_QUERY", `Cannot call ${name} without OVER`, {
      position: call._location.start,
      hint: `write ${name}(…) OVER (ORDER BY …)`,
    });
  }
  return bindScalar(call, place, bind);
}

function bindScalar(call: ExprCall, place: Place, bind: Bind): BoundExpression {
  const { name } = call.function;
  const position = call._location.start;
  if (call.distinct !== undefined || call.orderBy !== undefined || call.filter !== undefined) {
    if (!functionExists(name)) throw unknownFunction(name, [], call);
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot call ${name} with DISTINCT, ORDER BY or FILTER: it is not an aggregate`,
      { position },
    );
  }
  // The arguments may be keywords that only the other system knows, so they are not bound.
  if (!functionExists(name) && insteadOfFunction(name) !== undefined) {
    throw unknownFunction(name, [], call);
  }
  if (name === SLEEP) place.statement.requirements.push({ action: "sleep", position });
  if (name === SNOWFLAKE_ID) place.statement.requirements.push({ action: "take-id" });
  const bindArgument: Bind = takesRows(name) ? (node, at) => bindWithRows(node, at, bind) : bind;
  const args = bindArguments(call, place, bindArgument);
  const [value, other] = args;
  if (name === "nullif" && value !== undefined && other !== undefined && args.length === 2) {
    return bindNullif(value, other, call);
  }
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
  const resolved = fittingOf(args, (given) => resolveFunction(name, given, constants));
  if (resolved === undefined) throw unknownFunction(name, types, node);
  const { argumentTypes, overload, result } = resolved;
  if (result.kind === "array") arrayTypeOf(result.element, node);
  return {
    kind: "call",
    type: result,
    name,
    args: args.map((argument, i) =>
      castArgument(argument, { to: argumentTypes[i] ?? argument.type, node }),
    ),
    evaluate: (values, world) => overload.evaluate(values, world, argumentTypes),
    seesNull: overload.seesNull === true,
    volatility: overload.volatility,
    evaluateVector: overload.evaluateVector,
  };
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
