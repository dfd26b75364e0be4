/**
 * Plans how the result of a query is kept up to date from the changes of its tables, so that the
 * cost of a change does not depend on the size of the tables.
 *
 *     tables ──changes──► joins ──tuples ±──► groups ──rows ±──► window ──rows ±──► result
 *                         join_changes.ts     groups.ts          row_window.ts
 *                         once for all        for each subscriber: maintained_result.ts
 *
 * Groups and window are left out if the query has none. Subscribers whose values differ only in the
 * terms of the partition share the plan, and the changes of the joins.
 */
import type { Principal } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import type { Seq } from "../../base/seq.ts";
import type { ReadStore } from "../../storage/mod.ts";
import type { Row } from "../../types/mod.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundAggregate, BoundExpression } from "../bind/bound_expressions.ts";
import { conjunctsOf, hasSubquery, someChild } from "../bind/walk.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { compileScalar } from "../execute/evaluate/scalar.ts";
import { ownerOf } from "../execute/operators/scan.ts";
import type { Expr, ExprCall, SelectFromStatement } from "../parse/ast/ast.ts";
import type { JoinChanges } from "../ports/engine.ts";
import { Groups, type GroupsOptions, type RowChanges } from "./groups.ts";
import { ChangesOfJoin } from "./join_changes.ts";
import { type GroupAccess, JoinRoutes } from "./join_routes.ts";
import { type JoinShape, joinShapeOf } from "./join_shape.ts";
import { isKeyType } from "./key_types.ts";
import { MaintainedResult, type MaintainedResultOptions } from "./maintained_result.ts";
import { NotMaintained } from "./not_maintained.ts";
import { textOfRow } from "./row_text.ts";
import { keptRowsOf, RowWindow, type RowWindowOptions, type WindowTerm } from "./row_window.ts";
import { aggregateCallsIn, limitedTo, seedOfGroups, withItemsBehind } from "./seed_statement.ts";
import { tallyFor } from "./tallies.ts";
import { TuplePlaces, tupleSpaceOf } from "./tuple_space.ts";

export interface MaintainedQueryOptions {
  /** The block that determines the rows, as it was written. */
  readonly core: SelectFromStatement;
  /** Binds another form of the block in place of the original. @throws {DatabaseError} */
  readonly bind: (core: SelectFromStatement) => BoundSelect;
  /**
   * The fields by which rows are sorted, enough to distinguish all rows; undefined if some sort
   * keys have no field.
   */
  readonly terms: readonly WindowTerm[] | undefined;
  readonly principal: Principal;
  readonly store: ReadStore;
  readonly context: ExecutionContext;
  /** Returns whether a call depends on the caller. */
  readonly isOfCaller: (name: string) => boolean;
}

/** The maximum number of rows that a window keeps for ORDER BY with LIMIT. */
const WINDOW_ROWS_MAX = 10_000;

/** The values of a subscriber on which a plan depends. */
export interface PlanValues {
  /** The slots whose values the plan contains. */
  readonly slots: ReadonlySet<number>;
  readonly usesCaller: boolean;
}

/** The stages of a query after its joins. */
interface Stages {
  readonly groups: GroupsOptions | undefined;
  /** Computes the rows of a query without groups. */
  readonly rowsOf: (changes: JoinChanges) => RowChanges;
  readonly seed: SelectFromStatement;
}

export class MaintainedQuery {
  /** The statement whose rows begin a result. */
  readonly seed: SelectFromStatement;
  /** The changes of the joins, for all subscribers. */
  readonly changes: ChangesOfJoin;
  readonly values: PlanValues;
  readonly #partition: readonly ((context: ExecutionContext) => Row[number])[];
  readonly #stages: Stages;
  readonly #window: RowWindowOptions | undefined;
  /** The parts of results without groups and windows, which keep nothing of their own. */
  #plain: MaintainedResultOptions | undefined;
  /** The access by which the rows of a group are found, to compute a minimum again. */
  readonly #groupAccess: GroupAccess | undefined;

  /** @throws {NotMaintained} */
  constructor(options: MaintainedQueryOptions) {
    const { bind, context, core, isOfCaller, principal, store } = options;
    const model = modelOf(core, bind);
    requireKnownClauses(model.select);
    const ownership = new Ownership(isOfCaller);
    const { routes, shape } = routedShape(model.select, ownership);
    const expressions = [...expressionsOf(model.select, shape)];
    const space = tupleSpaceOf(
      shape.sources,
      [...expressions, ...shape.partition.map(({ value }) => value)],
      context,
    );
    const owners = shape.sources.map(({ table }) => ownerOf(principal, table));
    this.#stages = stagesOf(model, { shape, tuples: space.places, context });
    // The stages are compiled once here, to find out whether the query can be maintained.
    if (this.#stages.groups !== undefined) void new Groups(this.#stages.groups);
    this.changes = new ChangesOfJoin({ shape, routes, space, store, owners });
    this.#window = windowOf(model.select, options);
    this.#groupAccess =
      this.#stages.groups && routes.groupAccess(this.#stages.groups.keys, shape.coreCount);
    this.#partition = shape.partition.map(({ own }) => compileScalar(own));
    const isLimited = this.#window !== undefined && this.#stages.groups === undefined;
    this.seed = isLimited
      ? limitedTo(core, windowRowsOf(model.select, context))
      : this.#stages.seed;
    const { having, limit, offset, outputs } = model.select;
    const others = [having, limit, offset, ...outputs.map(({ expression }) => expression)];
    const used = [...expressions, ...others.flatMap((each) => each ?? [])];
    this.values = {
      slots: slotsIn(used),
      usesCaller:
        used.some((each) => ownership.readsCaller(each)) ||
        shape.sources.some(({ table }) => table.kind !== "shared"),
    };
  }

  /** Returns the partition that concerns a subscriber. */
  partitionOf(context: ExecutionContext): string {
    return textOfRow(this.#partition.map((own) => own(context)));
  }

  /** Returns lines that say how a change of each table is followed. */
  describe(): string[] {
    return this.changes.describe();
  }

  #tuplesOfGroup(
    { access, source }: GroupAccess,
    { keys, partition, upTo }: { keys: Row; partition: string; upTo: Seq },
  ): readonly Row[] | undefined {
    const key = access.keys.map((index) => keys[index] ?? null);
    // No index finds NULL by equality.
    if (key.includes(null)) return undefined;
    const isWanted = (other: string): boolean => other === partition;
    return this.changes.tuplesOf({ access, source }, { isWanted, key, upTo });
  }

  /** @param partition The partition that concerns the subscriber. */
  newResult(partition: string): MaintainedResult {
    const { groups, rowsOf } = this.#stages;
    const access = this.#groupAccess;
    if (groups === undefined && this.#window === undefined) {
      this.#plain ??= { groups, rowsOf, window: undefined, readGroup: undefined };
      return new MaintainedResult(this.#plain);
    }
    return new MaintainedResult({
      groups: groups === undefined ? undefined : new Groups(groups),
      rowsOf,
      window: this.#window === undefined ? undefined : new RowWindow(this.#window),
      readGroup:
        access && ((upTo) => (keys) => this.#tuplesOfGroup(access, { keys, partition, upTo })),
    });
  }
}

/** Finds the subscriber's own values in expressions. */
class Ownership {
  readonly #isOfCaller: (name: string) => boolean;

  constructor(isOfCaller: (name: string) => boolean) {
    this.#isOfCaller = isOfCaller;
  }

  /** Returns whether an expression reads a parameter, or depends on the caller. */
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

interface RoutedShape {
  readonly shape: JoinShape;
  readonly routes: JoinRoutes;
}

/**
 * Reads the joins with a partition, if changes can be followed without the values of a subscriber,
 * and without one otherwise: then a table may be read by these values.
 *
 * @throws {NotMaintained}
 */
function routedShape(select: BoundSelect, ownership: Ownership): RoutedShape {
  const shared = joinShapeOf(select, ownership.isOwn);
  const routes = new JoinRoutes(shared);
  if (shared.partition.length === 0) return { shape: shared, routes };
  try {
    for (const source of shared.sources.keys()) routes.toCore(source, shared);
    return { shape: shared, routes };
  } catch (error) {
    if (!(error instanceof NotMaintained)) throw error;
    const shape = joinShapeOf(select);
    return { shape, routes: new JoinRoutes(shape) };
  }
}

/** A query with the aggregates of its groups bound again, so that their calls are known. */
interface Model {
  readonly core: SelectFromStatement;
  readonly select: BoundSelect;
  /** The number of outputs that belong to the query itself. */
  readonly outputCount: number;
  readonly calls: readonly ExprCall[];
}

function modelOf(core: SelectFromStatement, bind: MaintainedQueryOptions["bind"]): Model {
  const calls = aggregateCallsIn(core);
  const select = bind(withItemsBehind(core, calls));
  return { core, select, outputCount: select.outputs.length - calls.length, calls };
}

function requireKnownClauses({
  distinct,
  expansions,
  groupingSets,
  windows,
  withTies,
}: BoundSelect) {
  if (windows.length > 0) throw new NotMaintained("it has window functions");
  if (expansions.length > 0) throw new NotMaintained("it has a function that returns several rows");
  if (groupingSets !== undefined) throw new NotMaintained("it has grouping sets");
  if (typeof distinct === "object") throw new NotMaintained("it has DISTINCT ON");
  if (withTies) throw new NotMaintained("it has WITH TIES");
}

function* expressionsOf(select: BoundSelect, shape: JoinShape): Generator<BoundExpression> {
  yield* shape.coreConditions;
  yield* shape.lastConditions;
  for (const { conditions } of shape.parts) yield* conditions;
  for (const { expression } of select.groupBy) yield shape.resolve(expression);
  for (const { argument, filter } of select.aggregates) {
    if (argument !== undefined) yield shape.resolve(argument);
    if (filter !== undefined) yield shape.resolve(filter);
  }
  if (select.isAggregated) return;
  for (const { expression } of select.outputs) yield shape.resolve(expression);
}

interface StageParts {
  readonly shape: JoinShape;
  readonly tuples: TuplePlaces;
  readonly context: ExecutionContext;
}

function stagesOf(model: Model, options: StageParts): Stages {
  const { isAggregated, distinct } = model.select;
  if (isAggregated) {
    if (distinct !== "none") throw new NotMaintained("it has DISTINCT over groups");
    return groupStages(model, options);
  }
  if (distinct !== "none") return distinctStages(model, options);
  const { shape, tuples } = options;
  const valuesOf = tuples.values(
    model.select.outputs.map(({ expression }) => shape.resolve(expression)),
  );
  const rowsOf = ({ tuples: all, weights }: JoinChanges): RowChanges => {
    const columns = valuesOf(all);
    const rows = all.map((_, index) => columns.map((column) => column[index] ?? null));
    return netChanges(rows, weights);
  };
  return { groups: undefined, rowsOf, seed: model.core };
}

/** Removes rows that are added as often as they are removed. */
function netChanges(rows: readonly Row[], weights: readonly number[]): RowChanges {
  const found = new Map<string, { readonly row: Row; weight: number }>();
  for (const [index, row] of rows.entries()) {
    const weight = weights[index] ?? 0;
    const text = textOfRow(row);
    const known = found.get(text);
    if (known === undefined) found.set(text, { row, weight });
    else known.weight += weight;
  }
  const removed: Row[] = [];
  const added: Row[] = [];
  for (const { row, weight } of found.values()) {
    const into = weight < 0 ? removed : added;
    for (let count = Math.abs(weight); count > 0; count -= 1) into.push(row);
  }
  return { removed, added };
}

function groupStages(model: Model, { context, shape, tuples }: StageParts): Stages {
  const { calls, core, outputCount, select } = model;
  const { aggregates, groupBy, having } = select;
  const outputs = select.outputs.slice(0, outputCount).map(({ expression }) => expression);
  requireNoSubquery([...outputs, ...conjunctsOf(having)]);
  requireKeys(groupBy.map(({ expression }) => expression));
  const columns = [...groupBy, ...aggregates].map(({ column }) => column);
  const layout = new Map(columns.map(({ id }, position) => [id, position]));
  const types = columns.map(({ type }) => type);
  const groups: GroupsOptions = {
    keys: groupBy.map(({ expression }) => shape.resolve(expression)),
    aggregates: aggregates.map((each): BoundAggregate => {
      const { argument, filter } = each;
      return {
        ...each,
        argument: argument === undefined ? undefined : shape.resolve(argument),
        filter: filter === undefined ? undefined : shape.resolve(filter),
      };
    }),
    having,
    outputs,
    tuples,
    grouped: new TuplePlaces(layout, types, context),
  };
  const seed = seedOfGroups(core, {
    keys: groupBy.map((_, index) => writtenKey(model, index)),
    calls: aggregates.map((aggregate) => {
      const at = calls.findIndex((_, index) => {
        const output = select.outputs[outputCount + index]?.expression;
        return output?.kind === "column" && output.column.id === aggregate.column.id;
      });
      const call = calls[at];
      if (call === undefined) throw new NotMaintained(`it has ${aggregate.form.name}`);
      return call;
    }),
    tallies: aggregates.map(tallyFor),
  });
  return { groups, rowsOf: noRows, seed };
}

/** Returns a key of GROUP BY as it was written in the select list or, failing that, in GROUP BY. */
function writtenKey({ core, outputCount, select }: Model, index: number): Expr {
  const key = defined(select.groupBy[index], "a key has an index").column;
  const { columns = [] } = core;
  const at = select.outputs.findIndex(({ expression }) => {
    return expression.kind === "column" && expression.column.id === key.id;
  });
  const item = columns.length === outputCount ? columns[at] : undefined;
  if (item !== undefined) return item.expr;
  const written = core.groupBy?.[index];
  if (written !== undefined && "type" in written && written.type === "ref") return written;
  throw new NotMaintained("a key of GROUP BY is not in the select list");
}

function distinctStages(model: Model, { context, shape, tuples }: StageParts): Stages {
  const { core, select } = model;
  const { columns = [] } = core;
  const outputs = select.outputs.map(({ expression }) => expression);
  requireKeys(outputs);
  if (columns.length !== outputs.length) throw new NotMaintained("it has DISTINCT with *");
  const keys = outputs.map((expression) => shape.resolve(expression));
  const places = keys.map(({ type }, index): BoundExpression => {
    return { kind: "column", type, column: { id: index, name: "", type } };
  });
  const layout = new Map(keys.map((_, index) => [index, index]));
  const grouped = new TuplePlaces(
    layout,
    keys.map(({ type }) => type),
    context,
  );
  const groups: GroupsOptions = {
    keys,
    aggregates: [],
    having: undefined,
    outputs: places,
    tuples,
    grouped,
  };
  const seed = seedOfGroups(core, {
    keys: columns.map(({ expr }) => expr),
    calls: [],
    tallies: [],
  });
  return { groups, rowsOf: noRows, seed };
}

/** The rows of a query with groups come from its groups. */
function noRows(): RowChanges {
  return { removed: [], added: [] };
}

function requireNoSubquery(expressions: readonly BoundExpression[]): void {
  if (expressions.some(hasSubquery)) throw new NotMaintained("an expression has a subquery");
}

/** Requires that equal keys are identical values, so that the key of a group never changes. */
function requireKeys(keys: readonly BoundExpression[]): void {
  for (const { type } of keys) {
    if (!isKeyType(type))
      throw new NotMaintained("it groups by values that may be equal in two forms");
  }
}

function windowOf(
  select: BoundSelect,
  { context, terms }: MaintainedQueryOptions,
): RowWindowOptions | undefined {
  const { limit, offset } = select;
  if (limit === undefined && offset === undefined) return undefined;
  if (limit === undefined) throw new NotMaintained("it has OFFSET without LIMIT");
  if (terms === undefined) {
    throw new NotMaintained("its LIMIT has no order that distinguishes all rows");
  }
  windowRowsOf(select, context);
  return { terms, ...boundsOf(select, context) };
}

function windowRowsOf(select: BoundSelect, context: ExecutionContext): number {
  const rows = keptRowsOf(boundsOf(select, context));
  if (rows > WINDOW_ROWS_MAX) throw new NotMaintained("its LIMIT and OFFSET are too large");
  return rows;
}

function boundsOf(
  { limit, offset }: BoundSelect,
  context: ExecutionContext,
): { limit: number; offset: number } {
  return { limit: countOf(limit, context), offset: countOf(offset, context) };
}

function countOf(expression: BoundExpression | undefined, context: ExecutionContext): number {
  if (expression === undefined) return 0;
  requireNoSubquery([expression]);
  const count = compileScalar(expression)(context);
  if (typeof count !== "number" || count < 0) throw new NotMaintained("its LIMIT is not a number");
  return count;
}
