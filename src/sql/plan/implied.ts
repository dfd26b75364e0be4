/**
 * Conditions that others imply, so that they can be tested lower.
 *
 *     (k AND a1 AND b1) OR (k AND a2 AND b2)    =   k AND ((a1 AND b1) OR (a2 AND b2))
 *     (a1 AND b1) OR (a2 AND b2)                ⟹   (a1 OR a2)      when a1, a2 are over one relation
 *
 * An implied condition is tested besides and changes nothing but how many rows come up, so only
 * what cannot raise an error is derived.
 */
import { ExpressionPlaces } from "../bind/alike.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { conjunctionOf, conjunctsOf, isVolatile, mayFail } from "../bind/walk.ts";
import { type ColumnIds, isOver } from "./join_keys.ts";

/** The same conditions, with what all branches of an OR share in front of it. */
export function factored(condition: BoundExpression): readonly BoundExpression[] {
  if (condition.kind !== "or" || isVolatile(condition)) return [condition];
  const branches = condition.operands.map((operand) => [...conjunctsOf(operand)]);
  const [first = [], ...others] = branches;
  // Branches are indexed lazily: most share nothing, which the first two already show.
  const places = new Map<readonly BoundExpression[], ExpressionPlaces>();
  const isIn = (branch: readonly BoundExpression[], candidate: BoundExpression): boolean => {
    const known = places.get(branch) ?? new ExpressionPlaces(branch);
    places.set(branch, known);
    return known.find(candidate) !== undefined;
  };
  const shared = first.filter((each) => others.every((branch) => isIn(branch, each)));
  if (shared.length === 0) return [condition];
  const isShared = (each: BoundExpression): boolean => isIn(shared, each);
  const rests = branches.map((branch) => conjunctionOf(branch.filter((each) => !isShared(each))));
  const operands = rests.flatMap((rest) => rest ?? []);
  // A branch that asks nothing more than what is shared makes the others idle.
  if (operands.length < rests.length) return shared;
  return [...shared, { kind: "or", type: condition.type, operands }];
}

/** What an OR says of the columns of one relation alone; undefined when a branch says nothing. */
export function impliedOver(
  condition: BoundExpression,
  ids: ColumnIds,
): BoundExpression | undefined {
  if (condition.kind !== "or" || isOver(condition, ids)) return undefined;
  const operands: BoundExpression[] = [];
  for (const branch of condition.operands) {
    const own = conjunctionOf(
      conjunctsOf(branch).filter((each) => isOver(each, ids) && !mayFail(each)),
    );
    if (own === undefined) return undefined;
    operands.push(own);
  }
  return { kind: "or", type: condition.type, operands };
}
