/**
 * Assigns measurements taken in another thread to the nodes of a plan. Nodes are identified by
 * position, because both threads have the same plan but different objects.
 *
 * A reader of a divided query runs copies of some nodes. The measurement of a copy counts towards
 * the original node. The time that the readers take counts towards all nodes above the point of
 * division.
 */
import type { Measured, Profile } from "../execute/context/profile.ts";
import { plansOfSubquery } from "../execute/subquery/subquery_program.ts";
import { type DividedPlan, shapeOfNodes } from "../plan/divided.ts";
import type { PlanNode } from "../plan/plan.ts";
import { inputsOf, nodesOf, ownSubqueries } from "../plan/plan_walk.ts";
import { planOfCte } from "../plan/planner.ts";

/** The measurements of one plan node, and its position `at` in the list from `measuredNodes`. */
export interface PlacedMeasures extends Partial<Measured> {
  readonly at: number;
}

/**
 * Returns the nodes of a plan and of its subqueries, in an order that depends only on the shape of
 * the plan.
 */
export function measuredNodes(root: PlanNode): PlanNode[] {
  const found: PlanNode[] = [];
  const seen = new Set<object>();
  const isNew = (query: object): boolean => !seen.has(query) && seen.add(query).size > 0;
  const add = (node: PlanNode): void => {
    found.push(node);
    if (node.kind === "cte" && isNew(node.cte)) add(planOfCte(node.cte));
    for (const input of inputsOf(node)) add(input);
    const subqueries = ownSubqueries(node).filter(isNew);
    for (const plan of subqueries.flatMap(plansOfSubquery)) add(plan);
  };
  add(root);
  return found;
}

/** Returns a string that differs between plans of different shape for the same SQL. */
export function measuredShape(root: PlanNode): string {
  return shapeOfNodes(measuredNodes(root));
}

/**
 * Returns the measurements of the nodes of a plan, with the position of each node.
 *
 * @param divided The plans that ran instead of the whole plan, and the node at which it was
 *   divided.
 */
export function measuresOf(
  profile: Profile,
  root: PlanNode,
  divided?: DividedPlan & { readonly at: number },
): readonly PlacedMeasures[] {
  const places = new Map(measuredNodes(root).map((node, at) => [node, at]));
  const node = divided === undefined ? undefined : nodesOf(root)[divided.at];
  if (divided !== undefined && node !== undefined) {
    addCopies(places, divided.part, node);
    addCopies(places, divided.whole, root);
  }
  const found: PlacedMeasures[] = [];
  for (const [measuredNode, measured] of profile.all()) {
    const at = places.get(measuredNode);
    if (at === undefined) continue;
    if (measuredNode !== divided?.part || node === undefined) {
      found.push({ ...measured, at });
      continue;
    }
    const { bytes, ms, rows: partialRows, spilledBytes } = measured;
    found.push({ at, ms, bytes, spilledBytes, partialRows });
    for (const above of pathTo(root, node).slice(0, -1)) {
      found.push({ at: places.get(above) ?? 0, ms });
    }
  }
  return found;
}

/** Maps the nodes of a copy to the positions of the original nodes. */
function addCopies(places: Map<PlanNode, number>, copy: PlanNode, original: PlanNode): void {
  if (copy.kind === "gathered") return;
  const at = places.get(original);
  if (at !== undefined) places.set(copy, at);
  const inputs = inputsOf(original);
  for (const [index, input] of inputsOf(copy).entries()) {
    const copied = inputs[index];
    if (copied !== undefined) addCopies(places, input, copied);
  }
}

/** Returns the nodes on the path from the root to a node. */
function pathTo(from: PlanNode, node: PlanNode): readonly PlanNode[] {
  if (from === node) return [from];
  for (const input of inputsOf(from)) {
    const path = pathTo(input, node);
    if (path.length > 0) return [from, ...path];
  }
  return [];
}
