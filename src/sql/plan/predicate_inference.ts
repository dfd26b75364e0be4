/**
 * Derives conditions from other conditions, so that they can be tested lower in the plan.
 *
 *     (k AND a1 AND b1) OR (k AND a2 AND b2)    =   k AND ((a1 AND b1) OR (a2 AND b2))
 *     (a1 AND b1) OR (a2 AND b2)                ⟹   (a1 OR a2)      when a1, a2 are over one relation
 *
 * A condition derived by implication (⟹) is tested in addition to the original condition, only to
 * drop rows earlier. A condition that may raise an error is therefore never derived.
 */

import type { BoundExpression } from "../bind/bound_expressions.ts";
import { ExpressionPlaces } from "../bind/equivalence.ts";
import { conjunctionOf, conjunctsOf, isVolatile, mayFail } from "../bind/walk.ts";
import { type ColumnIds, isOver } from "./join_keys.ts";

/** Factors out the conjuncts that all branches of an OR have in common. */
export function factored(condition: BoundExpression): readonly BoundExpression[] {
  if (condition.kind !== "or" || isVolatile(condition)) return [condition];
  const branches = condition.operands.map((operand) => [...conjunctsOf(operand)]);
  const [first = [], ...others] = branches;
  // The branches of an OR are indexed on demand. Most ORs have no common conjunct, and comparing
  // the first two branches is enough to find that out.
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
  // If a branch consists only of the shared conjuncts, they imply the OR, and the other branches
  // are redundant.
  if (operands.length < rests.length) return shared;
  return [...shared, { kind: "or", type: condition.type, operands }];
}

/**
 * Returns a condition on a single relation that an OR implies, or undefined if some branch of the
 * OR has no conjunct on this relation alone.
 */
export function inferredOver(
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
