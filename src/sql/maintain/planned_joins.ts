/**
 * Plans how changes to the joins of a block are followed: the shape of the joins, the routes from
 * a changed row to the other rows, and the positions of columns in tuples.
 */
import type { Principal } from "../../auth/mod.ts";
import type { ReadStore } from "../../storage/mod.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { argumentsOf, expressionsIn } from "../bind/query/query_walk.ts";
import { expressionsOfCall } from "../bind/query/window_walk.ts";
import { someChild } from "../bind/walk.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { ownerOf } from "../execute/operators/scan.ts";
import type { JoinChanges } from "../ports/engine.ts";
import { netChanges, type RowChanges } from "./groups.ts";
import { ChangesOfJoin } from "./join_changes.ts";
import { JoinRoutes, type JoinRoutesOptions } from "./join_routes.ts";
import { type JoinShape, joinShapeOf, type Source } from "./join_shape.ts";
import type { KeptIndexes } from "./kept_index.ts";
import { groupKeysOf } from "./keyed_block.ts";
import type { StepContexts } from "./query_at.ts";
import { SCANNED_ROWS_MAX } from "./source_rows.ts";
import { rowsInStep, type TupleSpace, tupleSpaceOf } from "./tuple_space.ts";

export interface JoinPlanOptions {
  readonly principal: Principal;
  readonly store: ReadStore;
  /** The in-memory indexes, which all live queries share. */
  readonly indexes: KeptIndexes;
  readonly context: ExecutionContext;
  /** Creates the execution contexts for one maintenance step. */
  readonly newContexts: () => StepContexts;
  /** Whether the result of the named function depends on the user who calls it. */
  readonly isOfCaller: (name: string) => boolean;
}

/** The subscriber's values on which a plan depends. */
export interface PlanValues {
  /** The parameter slots whose values the plan contains. */
  readonly slots: ReadonlySet<number>;
  readonly usesCaller: boolean;
}

export class PlannedJoins {
  readonly shape: JoinShape;
  readonly routes: JoinRoutes;
  readonly space: TupleSpace;
  readonly changes: ChangesOfJoin;
  readonly #expressions: readonly BoundExpression[];
  readonly #ownership: Ownership;

  /**
   * Plans the joins of a query.
   * @param mayDivide Whether conditions on a subscriber's values may partition the changes.
   * @throws {NotMaintained}
   */
  constructor(select: BoundSelect, options: JoinPlanOptions, mayDivide: boolean) {
    const { context, indexes, isOfCaller, newContexts, principal, store } = options;
    this.#ownership = new Ownership(isOfCaller);
    const isOwn = mayDivide ? this.#ownership.isOwn : undefined;
    const mayScan = ({ table }: Source): boolean =>
      store.liveRowCount(table.tableId, ownerOf(principal, table)) <= SCANNED_ROWS_MAX;
    const { routes, shape } = routedShape(select, { isOwn, mayScan });
    this.shape = shape;
    this.routes = routes;
    this.#expressions = [...expressionsOf(select, shape)];
    const divided = shape.partition.map(({ value }) => value);
    this.space = tupleSpaceOf(shape, [...this.#expressions, ...divided], context);
    const owners = shape.sources.map(({ table }) => ownerOf(principal, table));
    const { space } = this;
    this.changes = new ChangesOfJoin({
      shape,
      routes,
      space,
      store,
      owners,
      indexes,
      newContexts,
    });
  }

  /**
   * Returns the subscriber's values that the joins of the block and its expressions `others` depend
   * on.
   */
  valuesWith(others: readonly BoundExpression[]): PlanValues {
    const { parts, sources } = this.shape;
    const queries = parts.flatMap((part) => ("query" in part ? expressionsIn(part.query) : []));
    const used = [...this.#expressions, ...queries, ...others];
    return {
      slots: slotsIn(used),
      usesCaller:
        used.some((each) => this.#ownership.readsCaller(each)) ||
        sources.some(({ table }) => table.kind !== "shared"),
    };
  }

  /** Returns a function that computes changed result rows from changes to the joins. */
  rowsOf(outputs: readonly BoundExpression[]): (changes: JoinChanges) => RowChanges {
    const { shape, space } = this;
    const program = space.places.rows(outputs.map((output) => shape.resolve(output)));
    return (changes) => {
      return netChanges(rowsInStep(changes, program), changes.weights);
    };
  }
}

/** Recognises expressions that contain values of the subscriber. */
class Ownership {
  readonly #isOfCaller: (name: string) => boolean;

  constructor(isOfCaller: (name: string) => boolean) {
    this.#isOfCaller = isOfCaller;
  }

  /** Whether an expression reads a parameter, or depends on the caller. */
  readonly isOwn = (expression: BoundExpression): boolean =>
    expression.kind === "slot" || this.#isCall(expression) || someChild(expression, this.isOwn);

  readonly readsCaller = (expression: BoundExpression): boolean =>
    this.#isCall(expression) || someChild(expression, this.readsCaller);

  #isCall(expression: BoundExpression): boolean {
    return expression.kind === "call" && this.#isOfCaller(expression.name);
  }
}

function slotsIn(expressions: readonly BoundExpression[]): ReadonlySet<number> {
  const slots = new Set<number>();
  const visit = (expression: BoundExpression): boolean => {
    if (expression.kind === "slot") slots.add(expression.slot);
    return someChild(expression, visit);
  };
  for (const expression of expressions) visit(expression);
  return slots;
}

const WAYS: readonly JoinRoutesOptions["ways"][] = [
  ["stored"],
  ["stored", "kept"],
  ["stored", "kept", "scan"],
];

interface RoutedShapeOptions extends Pick<JoinRoutesOptions, "mayScan"> {
  /** Whether an expression is a value of the subscriber; absent if changes are not partitioned. */
  readonly isOwn: ((expression: BoundExpression) => boolean) | undefined;
}

interface RoutedShape {
  readonly shape: JoinShape;
  readonly routes: JoinRoutes;
}

/**
 * Analyses the joins and finds routes for them. It uses the first of these combinations for which
 * all routes are complete:
 *
 * | | partition | indexes in memory | small tables are scanned |
 * |---|---|---|---|
 * | all subscribers share the changes | yes | no | no |
 * | a table is read by the values of a subscriber | no | no | no |
 * | all subscribers share the changes | yes | yes | no |
 * | | no | yes | no |
 * | | yes | yes | yes |
 * | | no | yes | yes |
 *
 * @throws {NotMaintained}
 */
function routedShape(select: BoundSelect, { isOwn, mayScan }: RoutedShapeOptions): RoutedShape {
  const shared = joinShapeOf(select, isOwn);
  const shapes = shared.partition.length === 0 ? [shared] : [shared, joinShapeOf(select)];
  for (const ways of WAYS) {
    for (const shape of shapes) {
      const routes = new JoinRoutes(shape, { ways, mayScan });
      if (routes.isComplete(shape)) return { shape, routes };
    }
  }
  // If these routes are incomplete as well, compiling them throws an error that names the rows
  // they cannot find.
  const shape = joinShapeOf(select);
  return { shape, routes: new JoinRoutes(shape, { ways: ["stored", "kept", "scan"], mayScan }) };
}

/**
 * Returns the expressions over the joins that only a re-evaluated block uses, such as those of
 * window functions.
 */
function expressionsOfUpperPart({
  aggregates,
  distinct,
  expansions,
  orderBy,
  windows,
}: BoundSelect): BoundExpression[] {
  const sorts = aggregates.flatMap((each) => each.orderBy);
  return [
    ...aggregates.flatMap(({ extra }) => extra),
    ...[...sorts, ...(typeof distinct === "object" ? orderBy : [])].map((each) => each.expression),
    ...windows.flatMap(expressionsOfCall),
    ...argumentsOf(expansions),
    ...(typeof distinct === "object" ? distinct.on : []),
  ];
}

function* expressionsOf(select: BoundSelect, shape: JoinShape): Generator<BoundExpression> {
  yield* shape.coreConditions;
  yield* shape.lastConditions;
  for (const part of shape.parts) {
    yield* part.conditions;
    if (part.kind === "value") yield part.value;
    if (part.kind !== "lateral") continue;
    yield* part.on;
    for (const { value } of part.outer) yield value;
  }
  for (const key of groupKeysOf(select)) yield shape.resolve(key);
  for (const each of expressionsOfUpperPart(select)) yield shape.resolve(each);
  for (const { expression } of select.groupBy) yield shape.resolve(expression);
  for (const { argument, filter } of select.aggregates) {
    if (argument !== undefined) yield shape.resolve(argument);
    if (filter !== undefined) yield shape.resolve(filter);
  }
  if (select.isAggregated) return;
  for (const { expression } of select.outputs) yield shape.resolve(expression);
}
