/**
 * `a[i]` and `a[i:j]`: elements count from 1, and what lies outside of the array is nothing.
 */
import { DatabaseError } from "../../base/errors.ts";
import { INT, type Value } from "../../types/mod.ts";
import type { Expr } from "../parse/ast.ts";
import type { Bind, Place } from "./binding.ts";
import type { BoundExpression } from "./bound.ts";
import { castTo } from "./casts.ts";

export function bindElement(
  { array: arrayNode, index: indexNode }: Extract<Expr, { type: "arrayIndex" }>,
  place: Place,
  bind: Bind,
): BoundExpression {
  const { array, element } = boundArray(arrayNode, place, bind);
  const index = castTo(bind(indexNode, place), { to: INT, mode: "implicit", node: indexNode });
  return {
    kind: "call",
    type: element,
    name: "element",
    args: [array, index],
    evaluate: ([items = null, position = null]) => {
      if (!Array.isArray(items)) return null;
      return (items as readonly Value[])[Number(position) - 1] ?? null;
    },
    seesNull: false,
    volatility: "immutable",
  };
}

/** A bound that is left out is the end of the array; one that is NULL makes the slice NULL. */
export function bindSlice(
  { array: arrayNode, from, to }: Extract<Expr, { type: "arraySlice" }>,
  place: Place,
  bind: Bind,
): BoundExpression {
  const { array } = boundArray(arrayNode, place, bind);
  const bounds = [from, to].map((node) =>
    node === undefined ? undefined : castTo(bind(node, place), { to: INT, mode: "implicit", node }),
  );
  const hasStart = bounds[0] !== undefined;
  return {
    kind: "call",
    type: array.type,
    name: `slice ${hasStart ? "from" : ""}:${bounds[1] === undefined ? "" : "to"}`,
    args: [array, ...bounds.flatMap((bound) => bound ?? [])],
    evaluate: ([items = null, ...given]) => {
      if (!Array.isArray(items)) return null;
      const start = hasStart ? Number(given[0]) : 1;
      const end = bounds[1] === undefined ? items.length : Number(given[hasStart ? 1 : 0]);
      return (items as readonly Value[]).slice(Math.max(start, 1) - 1, Math.max(end, 0));
    },
    seesNull: false,
    volatility: "immutable",
  };
}

function boundArray(
  node: Expr,
  place: Place,
  bind: Bind,
): { array: BoundExpression; element: BoundExpression["type"] } {
  const array = bind(node, place);
  if (array.type.kind === "array") return { array, element: array.type.element };
  throw new DatabaseError("TYPE_MISMATCH", "Cannot take an element: an array is needed", {
    position: node._location.start,
  });
}
