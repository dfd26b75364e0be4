/**
 * Plans how the result of UNION, INTERSECT or EXCEPT is kept up to date. A full join is planned as
 * the UNION ALL of two left joins.
 *
 *     block 0 ──± rows──┐
 *     block 1 ──± rows──┼──► count of each row per block ──± rows──► window ──► result
 *     block 2 ──± rows──┘    set_rows.ts
 *
 * The seed is a UNION ALL of all blocks, with the block index after their columns. If the query
 * itself is a UNION ALL, its rows are not counted unless a block keeps groups (`block_groups.ts`).
 *
 * Invariant: every block is a SELECT without an order or limit. A block that does more than join
 * and filter is evaluated again for the groups that a change touches (`keyed_block.ts`).
 */
import type { Row } from "../../types/mod.ts";
import type { SelectFromStatement, SelectStatement } from "../parse/ast/ast.ts";
import { mapCore } from "../parse/ast/query_nodes.ts";
import type { ChangeRange, Commits, PartitionedChanges } from "../ports/engine.ts";
import { BlockGroups, type KeptBlock } from "./block_groups.ts";
import { blocksOfFullJoin } from "./full_join.ts";
import { netChanges } from "./groups.ts";
import type { IndexedChanges } from "./join_changes.ts";
import type { KeptIndex } from "./kept_index.ts";
import { type KeptRows, MaintainedResult } from "./maintained_result.ts";
import { isRefusal } from "./not_maintained.ts";
import type { PlanValues } from "./planned_joins.ts";
import { RowWindow, type RowWindowOptions, type WindowTerm } from "./row_window.ts";
import { limitedTo } from "./seed_statement.ts";
import { groupedSet, type SetBlock, type SetBlocksOptions, setBlockOf } from "./set_blocks.ts";
import { SetRows, type SetTree } from "./set_rows.ts";
import { blocksIn, treeOf, unionOf, withTag } from "./set_statement.ts";
import { windowOf, windowRowsOf } from "./window_bounds.ts";

export interface SetQueryOptions extends SetBlocksOptions {
  /**
   * The fields by which rows are sorted; undefined if these fields do not distinguish all rows.
   */
  readonly terms: readonly WindowTerm[] | undefined;
}

export class SetQuery {
  readonly seed: SelectStatement;
  readonly changes: ChangesOfBlocks;
  readonly values: PlanValues;
  readonly #tree: SetTree;
  /** The blocks that keep groups; undefined if no block does. */
  readonly #grouped: readonly KeptBlock[] | undefined;
  readonly #width: number;
  readonly #window: RowWindowOptions | undefined;

  /** Plans the maintenance of a set operation. @throws {NotMaintained} */
  constructor(options: SetQueryOptions) {
    const { bind, context, node, select, terms } = options;
    this.#window = windowOf(select, { context, terms });
    const joined = blocksOfFullJoin(select);
    this.#tree = joined === undefined ? treeOf(select, { next: 0 }) : JOINED;
    const tagged = joined === undefined ? unionOf(node, withTag) : node;
    const isWindow = this.#window !== undefined;
    const isWhole = isConcatenation(this.#tree);
    const found = joined ?? blocksIn(isWhole ? select : bind(tagged));
    const planned = found.map((block) => setBlockOf(block, options));
    const alone = planned.flatMap((block) => block ?? []);
    const grouped = alone.length < planned.length ? groupedSet(planned, options) : undefined;
    const whole = (core: SelectFromStatement): SelectFromStatement =>
      isWindow ? limitedTo(core, windowRowsOf(select, context)) : core;
    this.seed = grouped?.seed ?? (isWhole ? mapCore(node, whole) : tagged);
    const blocks = grouped?.blocks ?? alone;
    this.#grouped = grouped?.grouped;
    this.#width = select.outputs.length;
    this.changes = new ChangesOfBlocks(blocks);
    const { limit, offset } = select;
    const others = [limit, offset].flatMap((each) => each ?? []);
    const values = blocks.map(({ joins }) => joins.valuesWith(others));
    this.values = {
      slots: new Set(values.flatMap(({ slots }) => [...slots])),
      usesCaller: values.some(({ usesCaller }) => usesCaller),
    };
  }

  /**
   * Returns the key of the only partition. Subscribers share the plan of a set operation only if
   * all of their values are equal.
   */
  partitionOf(): string {
    return WHOLE;
  }

  describe(): string[] {
    return this.changes.describe();
  }

  newResult(): MaintainedResult {
    return new MaintainedResult({
      groups: this.#keptRows(),
      rowsOf: ({ tuples, weights }) => netChanges(tuples, weights),
      window: this.#window === undefined ? undefined : new RowWindow(this.#window),
      readGroup: undefined,
    });
  }

  #keptRows(): KeptRows | undefined {
    const tree = this.#tree;
    if (this.#grouped !== undefined) {
      return new BlockGroups(this.#grouped, { tree, width: this.#width });
    }
    return isConcatenation(tree) ? undefined : new SetRows(tree);
  }
}

/** Whether a set operation is a plain UNION ALL, which returns all rows of all blocks. */
function isConcatenation(tree: SetTree): boolean {
  if (typeof tree === "number") return true;
  const { isAll, left, operator, right } = tree;
  return operator === "union" && isAll && isConcatenation(left) && isConcatenation(right);
}

/** A full join as a set operation: the UNION ALL of two blocks. */
const JOINED: SetTree = { operator: "union", isAll: true, left: 0, right: 1 };

/** The key of the only partition, because the changes of a set operation are not partitioned. */
const WHOLE = "";

class ChangesOfBlocks implements IndexedChanges {
  readonly #blocks: readonly SetBlock[];

  constructor(blocks: readonly SetBlock[]) {
    this.#blocks = blocks;
  }

  get kept(): readonly KeptIndex[] {
    return [...new Set(this.#blocks.flatMap(({ joins }) => joins.changes.kept))];
  }

  describe(): string[] {
    return [...new Set(this.#blocks.flatMap(({ describe }) => describe()))];
  }

  commitsBetween(range: Pick<ChangeRange, "after" | "upTo">): Commits | undefined {
    const found = this.#blocks.map(({ joins }) => joins.changes.commitsBetween(range));
    const known = found.filter((commits) => commits !== undefined);
    if (known.length < found.length) return undefined;
    const seqs = new Set(known.flatMap((commits) => commits.seqs));
    return {
      seqs: [...seqs].toSorted((left, right) => left - right),
      changeConditions: known.some(({ changeConditions }) => changeConditions),
    };
  }

  *between(range: ChangeRange): Generator<undefined, PartitionedChanges | undefined> {
    try {
      return yield* this.#between(range);
    } catch (error) {
      if (isRefusal(error)) return undefined;
      throw error;
    }
  }

  /** Computes the changes of all blocks. @throws {CannotFollow} @throws {DatabaseError} */
  *#between({
    after,
    isWanted,
    upTo,
  }: ChangeRange): Generator<undefined, PartitionedChanges | undefined> {
    const tuples: Row[] = [];
    const weights: number[] = [];
    if (!isWanted(WHOLE)) return new Map();
    for (const { joins, rowsOf } of this.#blocks) {
      const found = yield* joins.changes.between({ after, upTo, isWanted: () => true });
      if (found === undefined) return undefined;
      for (const changes of found.values()) {
        if (changes === undefined) return undefined;
        const { added, removed } = yield* rowsOf(changes);
        for (const [rows, weight] of [
          [removed, -1],
          [added, 1],
        ] as const) {
          for (const row of rows) {
            tuples.push(row);
            weights.push(weight);
          }
        }
      }
    }
    return new Map([[WHOLE, { tuples, weights, after, upTo }]]);
  }
}
