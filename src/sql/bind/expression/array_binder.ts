/**
 * `a[i]` and `a[i:j]`: elements count from 1, and what lies outside of the array is nothing.
 * `j['key']` and `j[i]` of JSON are a step of a path: there elements count from 0.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { INT, isInteger, JSONB, TEXT, typeName, type Value } from "../../../types/mod.ts";
import type { Expr } from "../../parse/ast/ast.ts";
import type { Bind, Place } from "../binding.ts";
import type { BoundExpression } from "../bound_expressions.ts";
import { bindFunction } from "./call_binder.ts";
import { castTo } from "./casts.ts";

export function bindElement(
  node: Extract<Expr, { type: "arrayIndex" }>,
  place: Place,
  bind: Bind,
): BoundExpression {
  const { array: arrayNode, index: indexNode } = node;
  const array = bind(arrayNode, place);
  if (array.type.kind === "json") return bindMember(array, bind(indexNode, place), node);
  const element = elementType(array, arrayNode);
  const index = asPosition(bind(indexNode, place), indexNode);
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
  const array = bind(arrayNode, place);
  elementType(array, arrayNode);
  const bounds = [from, to].map((node) =>
    node === undefined ? undefined : asPosition(bind(node, place), node),
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

/** A member or an element of JSON, as JSONB: a number is a key where there is an object. */
function bindMember(
  json: BoundExpression,
  index: BoundExpression,
  node: Extract<Expr, { type: "arrayIndex" }>,
): BoundExpression {
  const { kind } = index.type;
  if (kind !== "text" && kind !== "unknown" && !isInteger(index.type)) {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      `Cannot take a part of JSON by a value of type ${typeName(index.type)}: a text or an integer is needed`,
      { position: node.index._location.start },
    );
  }
  const args = [
    castTo(json, { to: JSONB, mode: "explicit", node }),
    castTo(index, { to: TEXT, mode: "explicit", node: node.index }),
  ];
  return bindFunction({ name: "jsonb_extract_path", args, node });
}

/**
 * A position is assigned, as in PostgreSQL: a fraction is rounded, and a larger number must fit.
 */
function asPosition(index: BoundExpression, node: Expr): BoundExpression {
  // A literal is read before its statement runs, and not with its row.
  const mode = index.type.kind === "unknown" ? "implicit" : "assignment";
  return castTo(index, { to: INT, mode, node });
}

function elementType({ type }: BoundExpression, node: Expr): BoundExpression["type"] {
  if (type.kind === "array") return type.element;
  throw new DatabaseError("TYPE_MISMATCH", "Cannot take an element: an array is needed", {
    position: node._location.start,
  });
}
