/**
 * Binds assignments to part of a column: `SET a[2] = 5`, `SET a[1:2] = '{1,2}'`.
 *
 * Several assignments to parts of the same column are applied one after another, and produce a
 * single new value for the column.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { type DataType, INT, JSONB, TEXT, typeName } from "../../../types/mod.ts";
import { type SliceBounds, withElement, withSlice } from "../../functions/array_assign.ts";
import { withJsonPart } from "../../functions/json/json_assign.ts";
import type { Expr, SetColumn, Subscript } from "../../parse/ast/ast.ts";
import type { ExpressionContext } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { castTo } from "../expression/casts.ts";
import { bindExpression } from "../expression/expression_binder.ts";

/**
 * Returns the value of a column after one of its parts has been assigned.
 *
 * @param before The value of the column after the preceding assignments.
 * @param subscripts The subscripts of the part, at least one.
 */
export function withAssignedPart(
  before: BoundExpression,
  { value: node, column, subscripts = [] }: SetColumn,
  context: ExpressionContext,
): BoundExpression {
  const { type } = before;
  if (type.kind === "json" && type.binary)
    return assignedMember(before, { node, subscripts }, context);
  if (type.kind !== "array") {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot assign to part of column "${column.name}": its type is ${typeName(type)}, but ` +
        "must be an array type or JSONB",
      { position: column._location.start },
    );
  }
  const isSlice = subscripts.some((each) => each.type === "slice");
  const value = bindExpression(node, context);
  const to = isSlice ? type : type.element;
  const given = castTo(value, { to, mode: "assignment", node });
  return isSlice
    ? assignedSlice(before, { subscripts, given }, context)
    : assignedElement(before, { subscripts, given }, context);
}

interface AssignedPart {
  readonly subscripts: readonly Subscript[];
  readonly given: BoundExpression;
}

function assignedElement(
  before: BoundExpression,
  { given, subscripts }: AssignedPart,
  context: ExpressionContext,
): BoundExpression {
  const positions = subscripts.flatMap(({ to }) => (to === undefined ? [] : position(to, context)));
  return assignment(before.type, "assign element", {
    args: [before, given, ...positions],
    evaluate: ([array = null, value = null, ...at]) => withElement(array, at, value),
  });
}

function assignedSlice(
  before: BoundExpression,
  { given, subscripts }: AssignedPart,
  context: ExpressionContext,
): BoundExpression {
  const args = [before, given];
  // Appends a bound of the slice to the arguments, and returns its index among them.
  const placeOf = (node: Expr | undefined): number | undefined =>
    node === undefined ? undefined : args.push(position(node, context)) - 1;
  const places = subscripts.map(({ from, to, type }) =>
    type === "index"
      ? { from: "one" as const, to: placeOf(to) }
      : { from: placeOf(from), to: placeOf(to) },
  );
  return assignment(before.type, "assign slice", {
    args,
    evaluate: (values) => {
      const [array = null, value = null] = values;
      const valueOf = (place: number | undefined) =>
        place === undefined ? undefined : defined(values[place], "a bound must have an argument");
      const bounds = places.map(
        ({ from, to }): SliceBounds => ({
          from: from === "one" ? 1 : valueOf(from),
          to: valueOf(to),
        }),
      );
      return withSlice(array, bounds, value);
    },
  });
}

/**
 * Binds an assignment to a part of a JSONB value. The path consists of strings and integers, and
 * the assigned value is JSONB.
 */
function assignedMember(
  before: BoundExpression,
  { node, subscripts }: { readonly node: Expr; readonly subscripts: readonly Subscript[] },
  context: ExpressionContext,
): BoundExpression {
  const steps = subscripts.map(({ to: step, type, _location }) => {
    if (type === "slice" || step === undefined) {
      throw new DatabaseError(
        "TYPE_MISMATCH",
        "Cannot assign to a slice of a JSONB value: only SQL arrays can be sliced",
        {
          position: _location.start,
          hint: "assign one element at a time",
        },
      );
    }
    const bound = bindExpression(step, context);
    const isText = bound.type.kind === "text" || bound.type.kind === "unknown";
    return castTo(bound, { to: isText ? TEXT : INT, mode: "implicit", node: step });
  });
  const value = castTo(bindExpression(node, context), { to: JSONB, mode: "assignment", node });
  return assignment(before.type, "assign member", {
    args: [before, value, ...steps],
    evaluate: ([json = null, given = null, ...path]) => withJsonPart(json, path, given),
  });
}

function position(node: Expr, context: ExpressionContext): BoundExpression {
  const index = bindExpression(node, context);
  const mode = index.type.kind === "unknown" ? "implicit" : "assignment";
  return castTo(index, { to: INT, mode, node });
}

type CallParts = Pick<Extract<BoundExpression, { kind: "call" }>, "args" | "evaluate">;

function assignment(type: DataType, name: string, parts: CallParts): BoundExpression {
  return { kind: "call", type, name, seesNull: true, volatility: "immutable", ...parts };
}
