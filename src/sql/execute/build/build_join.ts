/**
 * Builds joins. All joins are hash joins, except that if one side may have few rows, the other
 * side is read by their keys:
 *
 *     in a step of a recursion      row by row (`lookup_join.ts`), because most steps have few rows
 *     elsewhere                     all keys at once (`runtime_filter.ts`)
 */
import { defined } from "../../../base/assert.ts";
import type { Row } from "../../../types/mod.ts";
import type { BoundExpression } from "../../bind/bound_expressions.ts";
import { columnIdsIn } from "../../bind/walk.ts";
import { areFewKeys } from "../../plan/access.ts";
import type { JoinNode, PlanNode } from "../../plan/plan.ts";
import { nodesOf } from "../../plan/plan_walk.ts";
import { type RuntimeFilter, runtimeFilterOf } from "../../plan/runtime_filter.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { Operator, OperatorFactory } from "../context/operator.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { layoutOf } from "../evaluate/layout.ts";
import { compileScalar } from "../evaluate/scalar.ts";
import { HashJoin, type JoinOptions } from "../join/hash_join.ts";
import { LeftBuildSemiJoin } from "../join/left_build_semi_join.ts";
import { LookupJoin, type LookupPart } from "../join/lookup_join.ts";
import { RuntimeFilteredSide, RuntimeFilterKeys } from "../join/runtime_filter.ts";
import { typesOf } from "./build_index_scan.ts";
import { buildOverScan, buildPassing, mayMakeMuch, paced } from "./build_passing.ts";
import { buildKeyedScan } from "./build_scan.ts";
import { runtimeOf } from "./table_runtime.ts";

type BuildPlan = (node: PlanNode) => OperatorFactory;

/**
 * Compiles a join.
 * @param buildPlan Compiles the plans of the two sides.
 */
export function buildJoin(node: JoinNode, buildPlan: BuildPlan): OperatorFactory {
  if (node.join === "inner" && node.residual !== undefined && mayMakeMuch(node.residual)) {
    return buildFilteredJoin(node, node.residual, buildPlan);
  }
  const left = paced(node.leftKeys, buildPlan(node.left));
  const right = paced(node.rightKeys, buildPlan(node.right));
  const shape = shapeOf(node);
  const hashed = (context: ExecutionContext, sides: JoinSides): Operator => {
    const options = { ...shape, context, ...sides };
    return node.holdsLeft === true ? new LeftBuildSemiJoin(options) : new HashJoin(options);
  };
  const keyed = buildKeyedSide(node);
  if (keyed === undefined) {
    const isRightFixed = !nodesOf(node.right).some(({ kind }) => kind === "working");
    return (context) =>
      hashed(context, { left: left(context), right: right(context), isRightFixed });
  }
  const { side } = keyed.filter;
  const [whole, other] = side === "right" ? [right, left] : [left, right];
  const sidesOf = buildFilteredSides(node, { keyed, shape, whole });
  const lookingUp = buildLookupJoin(node, {
    keyed,
    shape,
    hashJoin: (context, driving) => hashed(context, sidesOf(context, driving)),
  });
  return (context) => {
    const driving = other(context);
    const isStep = context.working.size > 0;
    const lookup = isStep ? lookingUp?.(context, driving) : undefined;
    return lookup ?? hashed(context, sidesOf(context, driving));
  };
}

type JoinSides = Pick<JoinOptions, "isRightFixed" | "left" | "right">;
type Shape = Omit<JoinOptions, "context" | keyof JoinSides>;

/** Compiles the parts of a join that all of its runs share. */
function shapeOf(node: JoinNode): Shape {
  const leftLayout = layoutOf(node.left.columns);
  const rightLayout = layoutOf(node.right.columns);
  const pairLayout = layoutOf([...node.left.columns, ...node.right.columns]);
  return {
    node,
    join: node.join,
    isGuarded: node.isGuarded === true,
    leftTypes: node.left.columns.map(({ type }) => type),
    rightTypes: node.right.columns.map(({ type }) => type),
    leftKeys: node.leftKeys.map((key) => compileExpression(key, leftLayout)),
    rightKeys: node.rightKeys.map((key) => compileExpression(key, rightLayout)),
    keyTypes: node.leftKeys.map(({ type }) => type),
    residual:
      node.residual === undefined ? undefined : compileExpression(node.residual, pairLayout),
    kept: node.columns.map(({ id }) =>
      defined(pairLayout.get(id), "join operator: output column belongs to neither side"),
    ),
  };
}

/**
 * Builds an inner join as a join with a filter above it. This is done if evaluating the join
 * condition on pairs of rows may produce long values.
 */
function buildFilteredJoin(
  node: JoinNode,
  residual: BoundExpression,
  buildPlan: BuildPlan,
): OperatorFactory {
  const read = columnIdsIn(residual);
  for (const { id } of node.columns) read.add(id);
  const columns = [...node.left.columns, ...node.right.columns].filter(({ id }) => read.has(id));
  const input: JoinNode = { ...node, residual: undefined, columns };
  const pass = buildPassing({ kind: "filter", input, condition: residual, columns: node.columns });
  const joined = buildJoin(input, buildPlan);
  return (context) => pass(joined(context), context);
}

/** Reads rows by keys. Returns undefined if reading all rows would be faster. */
type LookUp = (context: ExecutionContext, keys: readonly Row[]) => Operator | undefined;

/** A side of a join whose rows can be read by the keys of the other side. */
interface KeyedSide {
  readonly filter: RuntimeFilter;
  readonly parts: readonly LookupPart[];
  readonly lookUp: LookUp;
}

function buildKeyedSide(node: JoinNode): KeyedSide | undefined {
  const filter = runtimeFilterOf(node);
  if (filter === undefined) return undefined;
  const parts = filter.parts.map((part) => (typeof part === "number" ? part : compileScalar(part)));
  // The lookup is compiled on demand, because most runs never use it.
  let lookUpBy: LookUp | undefined;
  const lookUp: LookUp = (context, keys) => {
    lookUpBy ??= buildLookUp(filter.side === "right" ? node.right : node.left, filter.by);
    return lookUpBy(context, keys);
  };
  return { filter, parts, lookUp };
}

/** Builds a side of a join so that it reads only rows with the given keys. */
function buildLookUp(side: PlanNode, by: RuntimeFilter["by"]): LookUp {
  const { isFiltered, pass, scan } = buildOverScan(side);
  const read = buildKeyedScan(scan, { isFiltered, by });
  return (context, keys) => {
    const rows = read(context, keys);
    return rows === undefined ? undefined : pass(rows, context);
  };
}

/** Builds both sides of a hash join so that one side is read by the keys of the other. */
function buildFilteredSides(
  node: JoinNode,
  { keyed, shape, whole }: { keyed: KeyedSide; shape: Shape; whole: OperatorFactory },
): (context: ExecutionContext, other: Operator) => JoinSides {
  const { filter, lookUp, parts } = keyed;
  const { by, scan } = filter;
  const isRight = filter.side === "right";
  const isFirst = isRight && node.holdsLeft !== true;
  const noting = isRight
    ? { types: shape.leftTypes, keys: shape.leftKeys }
    : { types: shape.rightTypes, keys: shape.rightKeys };
  const partTypes =
    typeof by === "object" ? typesOf(scan.table, by) : runtimeOf(scan.table).keyTypes;
  const areFew = (keyCount: number): boolean => areFewKeys(scan, keyCount);
  return (context, other) => {
    const noted = new RuntimeFilterKeys({
      ...noting,
      context,
      parts,
      partTypes,
      areFew,
      input: other,
    });
    const read = new RuntimeFilteredSide({
      noted,
      isFirst,
      scan: () => whole(context),
      lookUp: (keys) => lookUp(context, keys),
    });
    return isRight ? { left: noted, right: read } : { left: read, right: noted };
  };
}

interface LookupJoinParts {
  readonly keyed: KeyedSide;
  readonly shape: Shape;
  readonly hashJoin: (context: ExecutionContext, driving: Operator) => Operator;
}

/**
 * Builds a join by lookups. Returns undefined if each row of the keyed side must appear at most
 * once, or even without a matching row, which lookups cannot guarantee.
 */
function buildLookupJoin(
  node: JoinNode,
  { hashJoin, keyed, shape }: LookupJoinParts,
): ((context: ExecutionContext, driving: Operator) => Operator) | undefined {
  const { filter, lookUp, parts } = keyed;
  const { by, scan, side } = filter;
  if (side === "left" && node.join !== "inner") return undefined;
  const hasAllKeys = by !== "first column" && shape.keyTypes.every((_, at) => parts.includes(at));
  return (context, driving) => {
    // An index yields the staged rows of a transaction even if their keys do not match.
    const hasStaged = context.staged?.hasStaged(scan.table.tableId) === true;
    return new LookupJoin({
      ...shape,
      context,
      driving,
      parts,
      foundSide: side,
      isExact: hasAllKeys && (by === "key" || !hasStaged),
      isSingle: by === "key",
      lookUp: (key) => lookUp(context, [key]),
      hashJoin: (rest) => hashJoin(context, rest),
    });
  };
}
