/**
 * Binds `a[i]`, `a[i][j]` and slices such as `a[i:j][k:l]`: elements count from 1, and there is no
 * element at a position outside the array. For JSON, `j['key']` and `j[i]` are path steps, and
 * elements count from 0. The parts of geometric values, such as `p[0]` of a point, also count from
 * 0.
 *
 * All subscripts that follow an array are bound together, because an element of a two-dimensional
 * array has two subscripts. If any subscript is a slice, all of them are treated as slices, and
 * `[n]` means `[1:n]`.
 */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type ArrayValue,
  DIMENSIONS_MAX,
  INT,
  isArrayValue,
  isGeometric,
  isInteger,
  JSONB,
  TEXT,
  typeName,
} from "../../../types/mod.ts";
import { elementAt } from "../../functions/base/array_shapes.ts";
import { coordinateAt, coordinateType } from "../../functions/geometry/coordinates.ts";
import type { Expr } from "../../parse/ast/ast.ts";
import type { Bind, ExpressionContext } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { bindFunction } from "./call_binder.ts";
import { castTo } from "./casts.ts";

type SubscriptExpr = Extract<Expr, { type: "arrayIndex" | "arraySlice" }>;

export function bindSubscript(
  node: SubscriptExpr,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const { base, subscripts } = subscriptsOf(node);
  const array = bind(base, context);
  if (array.type.kind === "json") return bindMembers(array, subscripts, { context, bind });
  if (isGeometric(array.type)) return bindCoordinate(array, subscripts, { context, bind });
  if (array.type.kind !== "array") {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot subscript a value of type ${typeName(array.type)}: only arrays have elements`,
      { position: base._location.start },
    );
  }
  if (subscripts.length > DIMENSIONS_MAX) {
    throw new DatabaseError(
      "VALUE_OUT_OF_RANGE",
      `Cannot use ${subscripts.length} subscripts: an array has at most ${DIMENSIONS_MAX} ` +
        "dimensions",
      { position: node._location.start, hint: "use fewer subscripts" },
    );
  }
  const isSlice = subscripts.some(({ type }) => type === "arraySlice");
  return isSlice
    ? bindSlice(array, subscripts, { context, bind })
    : bindElement(array, subscripts, { context, bind });
}

function subscriptsOf(node: SubscriptExpr): { base: Expr; subscripts: readonly SubscriptExpr[] } {
  const subscripts: SubscriptExpr[] = [];
  let base: Expr = node;
  while (base.type === "arrayIndex" || base.type === "arraySlice") {
    const { array, ofWhole }: SubscriptExpr = base;
    subscripts.unshift(base);
    base = array;
    if (ofWhole === true) break;
  }
  return { base, subscripts };
}

interface BoundPlace {
  readonly context: ExpressionContext;
  readonly bind: Bind;
}

function bindElement(
  array: BoundExpression,
  subscripts: readonly SubscriptExpr[],
  { context, bind }: BoundPlace,
): BoundExpression {
  return {
    kind: "call",
    type: array.type.kind === "array" ? array.type.element : array.type,
    name: "element",
    args: [array, ...positionsOf(subscripts, { context, bind })],
    evaluate: ([items = null, ...at]) => elementAt(items, at),
    seesNull: false,
    volatility: "immutable",
  };
}

function positionsOf(
  subscripts: readonly SubscriptExpr[],
  { context, bind }: BoundPlace,
): BoundExpression[] {
  return subscripts.flatMap((each) =>
    each.type === "arrayIndex" ? [asPosition(bind(each.index, context), each.index)] : [],
  );
}

/**
 * Binds a subscript of a geometric value, which selects a coordinate, a coefficient or a point.
 * Positions count from 0.
 */
function bindCoordinate(
  shape: BoundExpression,
  subscripts: readonly SubscriptExpr[],
  place: BoundPlace,
): BoundExpression {
  const type = coordinateType(shape.type);
  const slice = subscripts.find((each) => each.type === "arraySlice");
  if (type === undefined || slice !== undefined) {
    const node = slice ?? subscripts[0];
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot take ${type === undefined ? "a part" : "a slice"} of a value of type ` +
        `${typeName(shape.type)}: this type does not support ` +
        (type === undefined ? "subscripts" : "slices"),
      {
        position: node?._location.start,
        hint:
          type === undefined
            ? "cast the value to TEXT, or to POINT for its center"
            : "read one part at a time, such as shape[0]",
      },
    );
  }
  return {
    kind: "call",
    type,
    name: "coordinate",
    args: [shape, ...positionsOf(subscripts, place)],
    evaluate: ([value = null, ...positions]) =>
      positions.length > 1 ? null : coordinateAt(type, value, Number(positions[0])),
    seesNull: false,
    volatility: "immutable",
  };
}

interface BoundRange {
  readonly from: BoundExpression | undefined;
  readonly to: BoundExpression | undefined;
}

/**
 * Binds a slice of an array. An omitted bound means the respective end of the array; a NULL bound
 * makes the slice NULL.
 */
function bindSlice(
  array: BoundExpression,
  subscripts: readonly SubscriptExpr[],
  { context, bind }: BoundPlace,
): BoundExpression {
  const bound = (node: Expr | undefined): BoundExpression | undefined =>
    node === undefined ? undefined : asPosition(bind(node, context), node);
  const bounds = subscripts.map(
    (each): BoundRange =>
      each.type === "arraySlice"
        ? { from: bound(each.from), to: bound(each.to) }
        : { from: undefined, to: bound(each.index) },
  );
  const shape = bounds.map(({ from, to }) => `${from ? "from" : ""}:${to ? "to" : ""}`).join(" ");
  return {
    kind: "call",
    type: array.type,
    name: `slice ${shape}`,
    args: [array, ...bounds.flatMap(({ from, to }) => [from ?? [], to ?? []].flat())],
    evaluate: ([items = null, ...given]) => {
      let next = 0;
      const ranges = bounds.map(({ from, to }): SliceRange => {
        const start = from === undefined ? 1 : Number(given[next++]);
        const end = to === undefined ? undefined : Number(given[next++]);
        return { start: Math.max(start, 1), end };
      });
      return isArrayValue(items) ? slicedBy(items, ranges) : null;
    },
    seesNull: false,
    volatility: "immutable",
  };
}

interface SliceRange {
  /** The first position of the slice, which is at least 1. */
  readonly start: number;
  /**
   * The last position of the slice; undefined if the slice extends to the end of the dimension.
   */
  readonly end: number | undefined;
}

/**
 * Returns a slice of an array. A dimension without a range is kept entirely. If there are too many
 * ranges, or a range is empty, the slice is empty.
 */
function slicedBy(array: ArrayValue, [range, ...inner]: readonly SliceRange[]): ArrayValue {
  if (range === undefined) return array;
  const kept = array.slice(range.start - 1, Math.max(range.end ?? array.length, 0));
  if (inner.length === 0) return kept;
  if (!kept.every(isArrayValue)) return [];
  const parts = kept.map((part) => slicedBy(part, inner));
  return parts.every((part) => part.length === 0) ? [] : parts;
}

/**
 * Returns a member or element of a JSON value, as JSONB. In an object, a number serves as a key.
 */
function bindMembers(
  json: BoundExpression,
  subscripts: readonly SubscriptExpr[],
  { context, bind }: BoundPlace,
): BoundExpression {
  let found = json;
  for (const node of subscripts) {
    if (node.type === "arraySlice") {
      throw new DatabaseError(
        "TYPE_MISMATCH",
        "Cannot take a slice of a JSON value: only arrays have slices",
        {
          position: node._location.start,
          hint: "read a single element with ->, or convert the JSON array to an SQL array",
        },
      );
    }
    found = bindMember(found, bind(node.index, context), node);
  }
  return found;
}

function bindMember(
  json: BoundExpression,
  index: BoundExpression,
  node: Extract<Expr, { type: "arrayIndex" }>,
): BoundExpression {
  const { kind } = index.type;
  if (kind !== "text" && kind !== "unknown" && !isInteger(index.type)) {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot use a subscript of type ${typeName(index.type)} on a JSON value: it must be a ` +
        "string or an integer",
      { position: node.index._location.start, hint: "cast the subscript to TEXT or INTEGER" },
    );
  }
  const args = [
    castTo(json, { to: JSONB, mode: "explicit", node }),
    castTo(index, { to: TEXT, mode: "explicit", node: node.index }),
  ];
  return bindFunction({ name: "jsonb_extract_path", args, node });
}

/**
 * Converts a position as if it were assigned to an INT, as PostgreSQL does: a fraction is rounded,
 * and the result must be in range.
 */
function asPosition(index: BoundExpression, node: Expr): BoundExpression {
  // A literal position is converted before the statement runs, not when a row is evaluated.
  const mode = index.type.kind === "unknown" ? "implicit" : "assignment";
  return castTo(index, { to: INT, mode, node });
}
