/** Binds ORDER BY and LIMIT, for query blocks and set operations. */
import { counted } from "../../../base/counted.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { BIGINT, isInteger } from "../../../types/mod.ts";
import type { Expr, LimitStatement } from "../../parse/ast/ast.ts";
import type { ExpressionContext } from "../binding.ts";
import type { BoundOutput, BoundSelect } from "../bound.ts";
import type { BoundExpression, BoundSort } from "../bound_expressions.ts";
import { castTo } from "../expression/casts.ts";
import { bindExpression } from "../expression/expression_binder.ts";
import { Scope } from "../scope.ts";
import { sameExpression } from "../walk.ts";
import { queriesAround, type SelectDeps } from "./select_deps.ts";

/**
 * Returns the output to which a position refers, as in `ORDER BY 2` and `GROUP BY 2`; undefined if
 * the expression is not a position.
 *
 * @throws {DatabaseError} INVALID_QUERY if the position is out of range.
 */
export function outputByOrdinal(
  expression: Expr,
  outputs: readonly BoundOutput[],
  clause: string,
): BoundExpression | undefined {
  if (expression.type !== "integer") {
    if (!isOtherConstant(expression)) return undefined;
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot use a constant in ${clause}, except for the position of a column`,
      {
        position: expression._location.start,
        hint:
          "write the position of a column in the select list, or the name of a column without " +
          "single quotes",
      },
    );
  }
  const { value: ordinal } = expression;
  const output = outputs[ordinal - 1];
  if (output !== undefined) return output.expression;
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot find position ${ordinal} in ${clause}: the select list has ` +
      counted(outputs.length, "column"),
    { position: expression._location.start, hint: "positions start at 1" },
  );
}

/**
 * Whether a sort expression is a constant other than the position of an output. Such a constant is
 * the same for all rows, so it cannot sort them and is probably a mistake.
 */
function isOtherConstant(expression: Expr): boolean {
  switch (expression.type) {
    case "numeric":
    case "string":
    case "boolean":
    case "null":
      return true;
    case "unary":
      return expression.op === "-" && isOtherConstant(expression.operand);
    default:
      return false;
  }
}

/**
 * Returns the output to which ORDER BY or DISTINCT ON refers by name or position.
 * @throws {DatabaseError} AMBIGUOUS_COLUMN
 */
export function orderedOutput(
  target: Expr,
  outputs: readonly BoundOutput[],
  clause: string,
): BoundExpression | undefined {
  const byOrdinal = outputByOrdinal(target, outputs, clause);
  if (byOrdinal !== undefined) return byOrdinal;
  if (target.type !== "ref" || target.table !== undefined) return undefined;
  const named = outputsOf(outputs).get(target.name);
  if (named !== "several") return named;
  throw new DatabaseError(
    "AMBIGUOUS_COLUMN",
    `Cannot order by "${target.name}": several columns in the select list have this name`,
    {
      position: target._location.start,
      hint: "give the columns different aliases, or order by the position of one of them",
    },
  );
}

type NamedOutputs = ReadonlyMap<string, BoundExpression | "several">;

const namedOutputs = new WeakMap<readonly BoundOutput[], NamedOutputs>();

/**
 * Returns the expressions of the outputs, keyed by output name. Outputs with the same name may
 * share an expression.
 */
function outputsOf(outputs: readonly BoundOutput[]): NamedOutputs {
  const known = namedOutputs.get(outputs);
  if (known !== undefined) return known;
  const named = new Map<string, BoundExpression | "several">();
  for (const { expression, name } of outputs) {
    const other = named.get(name);
    if (other === undefined) named.set(name, expression);
    else if (other !== "several" && !sameExpression(other, expression)) named.set(name, "several");
  }
  namedOutputs.set(outputs, named);
  return named;
}

/**
 * Binds LIMIT and OFFSET.
 *
 * @param orderBy The query's ORDER BY, which WITH TIES requires.
 */
export function bindLimit(
  limit: LimitStatement | undefined,
  orderBy: readonly BoundSort[],
  deps: SelectDeps,
): Pick<BoundSelect, "limit" | "offset" | "withTies"> {
  if (limit?.withTies === true && orderBy.length === 0) {
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot use WITH TIES without ORDER BY: there are no ties without an order",
      {
        position: limit._location.start,
        hint: "add ORDER BY, or write ONLY instead of WITH TIES",
      },
    );
  }
  if (limit === undefined) return { limit: undefined, offset: undefined, withTies: false };
  const context: ExpressionContext = {
    statement: deps.statement,
    scope: new Scope([]),
    clause: "LIMIT",
    sink: undefined,
    ...queriesAround(deps),
  };
  return {
    limit: countOf(limit.limit, context),
    offset: countOf(limit.offset, context),
    withTies: limit.withTies === true,
  };
}

function countOf(
  expression: Expr | undefined,
  context: ExpressionContext,
): BoundExpression | undefined {
  if (expression === undefined) return undefined;
  const bound = bindExpression(expression, context);
  const mode = isInteger(bound.type) ? "implicit" : "assignment";
  return castTo(bound, { to: BIGINT, mode, node: expression });
}
