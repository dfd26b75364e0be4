/**
 * Plans how the result of a query is kept up to date from the changes to its tables, so that the
 * cost of a change does not depend on the size of the tables.
 *
 *     tables ──changes──► joins ──tuples ±──► groups ──rows ±──► window ──rows ±──► result
 *                         join_changes.ts     groups.ts          row_window.ts
 *                         once for all        for each subscriber: maintained_result.ts
 *
 * The stages for groups and for the window are omitted if the query does not need them. A block
 * that cannot be computed from changes alone, such as one with window functions, is evaluated
 * again for the groups that a change touches (`keyed_block.ts`). Subscribers whose values differ
 * only in the partition terms share the plan and the changes of the joins.
 */
import type { Seq } from "../../base/seq.ts";
import type { Row } from "../../types/mod.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { compileScalar } from "../execute/evaluate/scalar.ts";
import type { SelectFromStatement } from "../parse/ast/ast.ts";
import type { JoinChanges } from "../ports/engine.ts";
import { BlockAhead } from "./block_ahead.ts";
import { isExactQuery } from "./exactness.ts";
import {
  groupStages,
  type Model,
  requireKeys,
  requireKnownClauses,
  type StageParts,
} from "./group_stages.ts";
import {
  type CompiledGroups,
  compiledGroups,
  Groups,
  type GroupsOptions,
  type RowChanges,
} from "./groups.ts";
import type { ChangesOfJoin } from "./join_changes.ts";
import type { GroupAccess } from "./join_routes.ts";
import type { JoinShape } from "./join_shape.ts";
import { KeyedBlock } from "./keyed_block.ts";
import { type FollowedPart, MaintainedResult, partWithoutRows } from "./maintained_result.ts";
import { NotMaintained } from "./not_maintained.ts";
import { type JoinPlanOptions, PlannedJoins, type PlanValues } from "./planned_joins.ts";
import type { StepContexts } from "./query_at.ts";
import { textOfRow } from "./row_text.ts";
import { RowWindow, type RowWindowOptions, type WindowTerm } from "./row_window.ts";
import { aggregateCallsIn, limitedTo, seedOfGroups, withItemsBehind } from "./seed_statement.ts";
import { TuplePlaces } from "./tuple_space.ts";
import { windowOf, windowRowsOf } from "./window_bounds.ts";

export interface MaintainedQueryOptions extends JoinPlanOptions {
  /** The syntax tree of the block that determines the rows. */
  readonly core: SelectFromStatement;
  /** Binds a modified form of the block in place of the original. @throws {DatabaseError} */
  readonly bind: (core: SelectFromStatement) => BoundSelect;
  /**
   * The fields by which rows are sorted, which together distinguish all rows; undefined if a sort
   * key is not a field.
   */
  readonly terms: readonly WindowTerm[] | undefined;
  /** Whether the result has fields that identify a row. */
  readonly hasKey: boolean;
  /** Whether the last item of the select list is the seq of the row that changed last. */
  readonly hasRowSeq: boolean;
}

/** The stages that a maintained query applies to joined rows. */
interface Stages {
  readonly groups: CompiledGroups | undefined;
  /**
   * The block that is evaluated again for the groups that a change touches; undefined if changes
   * alone are enough.
   */
  readonly block: KeyedBlock | undefined;
  /** Computes the changed rows of a query without groups. */
  readonly rowsOf: (changes: JoinChanges) => RowChanges;
  readonly seed: SelectFromStatement;
}

export class MaintainedQuery {
  /** The statement that computes the initial rows of a result. */
  readonly seed: SelectFromStatement;
  /** The changes to the joined rows, which all subscribers share. */
  readonly changes: ChangesOfJoin;
  readonly values: PlanValues;
  readonly #partition: readonly ((context: ExecutionContext) => Row[number])[];
  readonly #stages: Stages;
  readonly #window: RowWindowOptions | undefined;
  /** The state shared by all results; set only if the query has neither groups nor a window. */
  #plain: FollowedPart | undefined;
  /**
   * The access path that finds the rows of a group, for example to recompute a minimum that was
   * removed.
   */
  readonly #groupAccess: GroupAccess | undefined;

  /** Plans the maintenance of a query. @throws {NotMaintained} */
  constructor(options: MaintainedQueryOptions) {
    const { bind, context, core } = options;
    const model = modelOf(core, bind);
    const { select } = model;
    const joins = new PlannedJoins(select, options, true);
    const { routes, shape } = joins;
    this.changes = joins.changes;
    this.#stages = stagesOf(model, { joins, context, hasRowSeq: options.hasRowSeq });
    this.#window = windowOf(select, options);
    requireSameRows(shape, { stages: this.#stages, select, options });
    const { coreCount } = shape;
    // An in-memory index of all rows would take more memory than the groups, and removals that
    // need it are rare.
    const mayKeep = false;
    this.#groupAccess =
      this.#stages.groups && routes.groupAccess(this.#stages.groups.keys, { coreCount, mayKeep });
    this.#partition = shape.partition.map(({ own }) => compileScalar(own));
    const isLimited = this.#window !== undefined && this.#stages.groups === undefined;
    this.seed = isLimited ? limitedTo(core, windowRowsOf(select, context)) : this.#stages.seed;
    const { having, limit, offset, outputs } = select;
    const others = [having, limit, offset, ...outputs.map(({ expression }) => expression)];
    this.values = joins.valuesWith(others.flatMap((each) => each ?? []));
  }

  /** Returns the partition that a subscriber follows. */
  partitionOf(context: ExecutionContext): string {
    return textOfRow(this.#partition.map((own) => own(context)));
  }

  /** Returns lines for EXPLAIN that describe how a change to each table is followed. */
  describe(): string[] {
    return [...this.changes.describe(), ...(this.#stages.block?.describe() ?? [])];
  }

  #tuplesOfGroup(
    { access, source }: GroupAccess,
    { keys, partition, upTo }: { keys: Row; partition: string; upTo: Seq },
  ): readonly Row[] | undefined {
    const key = access.keys.map((index) => keys[index] ?? null);
    // A lookup by equality never finds NULL.
    if (key.includes(null)) return undefined;
    const isWanted = (other: string): boolean => other === partition;
    return this.changes.tuplesOf({ access, source }, { isWanted, key, upTo });
  }

  /**
   * Creates the state with which a subscriber follows the query.
   * @param partition The partition that the subscriber follows.
   * @param newContexts Creates contexts with the subscriber's values.
   */
  newResult(partition: string, newContexts: () => StepContexts): FollowedPart {
    const { block, groups, rowsOf } = this.#stages;
    const access = this.#groupAccess;
    if (groups === undefined && this.#window === undefined && block === undefined) {
      this.#plain ??= partWithoutRows(rowsOf);
      return this.#plain;
    }
    const ahead = block && new BlockAhead(block, { newContexts, partition });
    return new MaintainedResult({
      groups: groups === undefined ? undefined : new Groups(groups),
      rowsOf: ahead?.rowsOf ?? rowsOf,
      computeAhead: ahead?.computeAhead,
      window: this.#window === undefined ? undefined : new RowWindow(this.#window),
      readGroup:
        access && ((upTo) => (keys) => this.#tuplesOfGroup(access, { keys, partition, upTo })),
    });
  }
}

function modelOf(core: SelectFromStatement, bind: MaintainedQueryOptions["bind"]): Model {
  const calls = aggregateCallsIn(core);
  const select = bind(withItemsBehind(core, calls));
  return { core, select, outputCount: select.outputs.length - calls.length, calls };
}

/** Returns the stages that process the changes of joined rows. @throws {NotMaintained} */
function stagesOf(model: Model, options: StageParts): Stages {
  try {
    requireKnownClauses(model.select);
    return computedStages(model, options);
  } catch (error) {
    if (!(error instanceof NotMaintained)) throw error;
    return blockStages(model, options, error.message);
  }
}

/**
 * Returns the stages of a block that is evaluated again for the groups that a change touches.
 * @param reason The reason why the rows cannot be computed from changes alone.
 * @throws {NotMaintained}
 */
function blockStages(
  { core, outputCount, select: given }: Model,
  { joins }: StageParts,
  reason: string,
): Stages {
  const select = { ...given, outputs: given.outputs.slice(0, outputCount) };
  if (select.withTies) throw new NotMaintained(reason);
  try {
    const block = new KeyedBlock({ select, joins });
    return { groups: undefined, block, rowsOf: noRows, seed: core };
  } catch (error) {
    if (!(error instanceof NotMaintained)) throw error;
    throw new NotMaintained(`${reason}, and ${error.message}`);
  }
}

/**
 * Requires that all evaluations at a seq return the same rows, so that the kept state contains
 * every row that a change removes.
 */
function requireSameRows(
  { isInexact }: JoinShape,
  {
    options: { hasKey },
    select,
    stages: { block, groups },
  }: { stages: Stages; select: BoundSelect; options: MaintainedQueryOptions },
): void {
  const isKept = groups !== undefined || select.limit !== undefined;
  const mayDiffer = isInexact || (block !== undefined && !isExactBlock(select));
  if (mayDiffer && isKept) {
    throw new NotMaintained(
      "the query has LIMIT or GROUP BY, but repeated evaluations may return different rows",
    );
  }
  if ((mayDiffer || block !== undefined) && !hasKey) {
    throw new NotMaintained(
      "the rows of the query have no key, but repeated evaluations may return different rows",
    );
  }
}

function isExactBlock(select: BoundSelect): boolean {
  return isExactQuery({ ...select, limit: undefined, offset: undefined });
}

function computedStages(model: Model, options: StageParts): Stages {
  const { isAggregated, distinct } = model.select;
  if (isAggregated) {
    if (distinct !== "none") throw new NotMaintained("the query has DISTINCT over groups");
    return { ...groupStages(model, options), block: undefined, rowsOf: noRows };
  }
  if (distinct !== "none") return distinctStages(model, options);
  const rowsOf = options.joins.rowsOf(model.select.outputs.map(({ expression }) => expression));
  return { groups: undefined, block: undefined, rowsOf, seed: model.core };
}

function distinctStages(model: Model, { context, joins }: StageParts): Stages {
  const { shape, space } = joins;
  const tuples = space.places;
  const { core, select } = model;
  const { columns = [] } = core;
  const outputs = select.outputs.map(({ expression }) => expression);
  requireKeys(outputs);
  if (columns.length !== outputs.length) throw new NotMaintained("the query has DISTINCT with *");
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
    seqAggregate: undefined,
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
  return { groups: compiledGroups(groups), block: undefined, rowsOf: noRows, seed };
}

/** Returns no changes, because the rows of a query with groups come from its groups. */
function noRows(): RowChanges {
  return { removed: [], added: [] };
}
