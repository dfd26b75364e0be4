/**
 * Plans the blocks of a set operation. Most blocks keep no state: their rows are computed from the
 * changed tuples, or by evaluating the groups that a change touches. Groups that no result column
 * identifies are kept for each result (`block_groups.ts`).
 */
import { defined } from "../../base/assert.ts";
import type { DataType, Row } from "../../types/mod.ts";
import type { BoundSelect } from "../bind/bound.ts";
import { isPlainSelect } from "../bind/query/query_walk.ts";
import type { ExprCall, SelectFromStatement, SelectStatement } from "../parse/ast/ast.ts";
import type { JoinChanges } from "../ports/engine.ts";
import type { KeptBlock } from "./block_groups.ts";
import { isExactQuery } from "./exactness.ts";
import { type GroupStages, groupStages, requireKnownClauses } from "./group_stages.ts";
import { netChanges, type RowChanges } from "./groups.ts";
import { KeyedBlock } from "./keyed_block.ts";
import { NotMaintained } from "./not_maintained.ts";
import { type JoinPlanOptions, PlannedJoins } from "./planned_joins.ts";
import { aggregateCallsIn, withItemsAround, withItemsBehind } from "./seed_statement.ts";
import { alone, blocksIn, nulls, tagOf, unionOf, withTag } from "./set_statement.ts";

export interface SetBlocksOptions extends JoinPlanOptions {
  readonly node: SelectStatement;
  /** The bound form of the set operation `node`. */
  readonly select: BoundSelect;
  /** Binds a modified form of the statement. @throws {DatabaseError} */
  readonly bind: (node: SelectStatement) => BoundSelect;
}

export interface SetBlock {
  readonly joins: PlannedJoins;
  /** Computes, in steps, how the rows of the block change. */
  readonly rowsOf: (changes: JoinChanges) => Generator<undefined, RowChanges>;
  /** Returns lines for EXPLAIN that describe how changes are followed. */
  readonly describe: () => string[];
}

/**
 * Plans a block that keeps no state. Returns undefined if no result column identifies its groups.
 *
 * @throws {NotMaintained}
 */
export function setBlockOf(block: BoundSelect, options: JoinPlanOptions): SetBlock | undefined {
  const joins = new PlannedJoins(block, options, false);
  const { shape } = joins;
  const isPlain = isPlainSelect({ ...block, limit: undefined, offset: undefined });
  if (shape.isInexact || !(isPlain || isExactQuery(block))) {
    throw new NotMaintained(
      "a branch of the set operation may return different rows when it is evaluated again",
    );
  }
  if (isPlain) {
    const rowsOf = joins.rowsOf(block.outputs.map(({ expression }) => expression));
    return { joins, rowsOf: atOnce(rowsOf), describe: () => joins.changes.describe() };
  }
  const keyed = keyedBlockOf(block, joins);
  if (keyed === undefined) return undefined;
  return {
    joins,
    rowsOf: (joined) => keyedRows(keyed, joined, options),
    describe: () => [...joins.changes.describe(), ...keyed.describe()],
  };
}

function* keyedRows(
  keyed: KeyedBlock,
  joined: JoinChanges,
  { newContexts }: JoinPlanOptions,
): Generator<undefined, RowChanges> {
  const contexts = newContexts();
  try {
    return yield* keyed.steps(joined, { contexts, isWanted: () => true });
  } finally {
    contexts.close();
  }
}

function atOnce(rowsOf: (changes: JoinChanges) => RowChanges): SetBlock["rowsOf"] {
  return function* (changes) {
    yield;
    return rowsOf(changes);
  };
}

function keyedBlockOf(select: BoundSelect, joins: PlannedJoins): KeyedBlock | undefined {
  try {
    return new KeyedBlock({ select, joins });
  } catch (error) {
    const hasGroups = select.isAggregated && select.distinct === "none";
    if (hasGroups && error instanceof NotMaintained) return undefined;
    throw error;
  }
}

/** The blocks of a set operation, some of which keep groups. */
export interface GroupedSet {
  readonly blocks: readonly SetBlock[];
  readonly grouped: readonly KeptBlock[];
  readonly seed: SelectStatement;
}

/**
 * Plans a set operation with blocks that `setBlockOf` cannot plan, because they must keep their
 * groups.
 *
 * @throws {NotMaintained}
 */
export function groupedSet(
  planned: readonly (SetBlock | undefined)[],
  options: SetBlocksOptions,
): GroupedSet {
  const { bind, node } = options;
  const own = typesOf(options.select);
  const made = plannedBlocks(planned, options);
  const seedTypes = made.map(({ stages }) => {
    return stages === undefined ? [] : typesOf(bind(alone(node, stages.seed)));
  });
  const seed = unionOf(node, (core, at) => {
    const [left, right] = [seedTypes.slice(0, at).flat(), seedTypes.slice(at + 1).flat()];
    const stages = made[at]?.stages;
    if (stages === undefined) {
      return withItemsBehind(withTag(core, at), nulls([...left, ...right]));
    }
    const before = [...nulls(own), tagOf(core, at), ...nulls(left)];
    return withItemsAround(stages.seed, { before, after: nulls(right) });
  });
  const grouped = made.flatMap(({ stages }, block): KeptBlock[] => {
    const seedStart = own.length + 1 + seedTypes.slice(0, block).flat().length;
    const seedEnd = seedStart + (seedTypes[block]?.length ?? 0);
    return stages === undefined ? [] : [{ block, groups: stages.groups, seedStart, seedEnd }];
  });
  return { blocks: made.map(({ block }) => block), grouped, seed };
}

interface PlannedBlock {
  readonly block: SetBlock;
  /** The stage that computes the groups of the block, if it keeps them. */
  readonly stages?: GroupStages;
}

/**
 * Binds the blocks again, with the aggregate calls of the blocks that keep groups as additional
 * outputs.
 */
function plannedBlocks(
  planned: readonly (SetBlock | undefined)[],
  options: SetBlocksOptions,
): readonly PlannedBlock[] {
  const { bind, node } = options;
  const width = options.select.outputs.length;
  const cores: SelectFromStatement[] = [];
  unionOf(node, (core) => {
    cores.push(core);
    return core;
  });
  const calls = cores.map((core, at) => (planned[at] === undefined ? aggregateCallsIn(core) : []));
  const callTypes = cores.map((core, at) => {
    const count = calls[at]?.length ?? 0;
    if (count === 0) return [];
    return typesOf(bind(alone(node, withItemsBehind(core, calls[at] ?? [])))).slice(-count);
  });
  const union = unionOf(node, (core, at) => {
    const [left, right] = [callTypes.slice(0, at).flat(), callTypes.slice(at + 1).flat()];
    return withItemsBehind(withTag(core, at), [
      ...nulls(left),
      ...(calls[at] ?? []),
      ...nulls(right),
    ]);
  });
  return blocksIn(bind(union)).map((block, at): PlannedBlock => {
    const own = { ...block, outputs: block.outputs.slice(0, width + 1) };
    const known = planned[at] === undefined ? undefined : setBlockOf(own, options);
    if (known !== undefined) return { block: known };
    const callStart = width + 1 + calls.slice(0, at).flat().length;
    const called = block.outputs.slice(callStart, callStart + (calls[at]?.length ?? 0));
    const select = { ...block, outputs: [...block.outputs.slice(0, width), ...called] };
    const core = defined(cores[at], "maintained set operation: block has no core query");
    return withGroups({ select, core, calls: calls[at] ?? [], width, at }, options);
  });
}

interface CalledBlock {
  /** The bound block. Its aggregate calls follow its own outputs. */
  readonly select: BoundSelect;
  readonly core: SelectFromStatement;
  readonly calls: readonly ExprCall[];
  readonly width: number;
  /** The index of the block in the set operation. */
  readonly at: number;
}

/** Plans a block that keeps its groups. @throws {NotMaintained} */
function withGroups(
  { at, calls, core, select, width }: CalledBlock,
  options: JoinPlanOptions,
): PlannedBlock {
  requireKnownClauses(select);
  const joins = new PlannedJoins(select, options, false);
  const { context } = options;
  const model = { core, select, outputCount: width, calls };
  const stages = groupStages(model, { context, hasRowSeq: false, joins });
  const rowsOf = ({ tuples, weights }: JoinChanges): RowChanges => {
    const { added, removed } = netChanges(tuples, weights);
    return { added: tagged(added, at), removed: tagged(removed, at) };
  };
  const describe = (): string[] => joins.changes.describe();
  return { block: { joins, rowsOf: atOnce(rowsOf), describe }, stages };
}

function tagged(rows: readonly Row[], block: number): Row[] {
  return rows.map((row) => [...row, block]);
}

function typesOf({ outputs }: BoundSelect): readonly DataType[] {
  return outputs.map(({ expression }) => expression.type);
}
