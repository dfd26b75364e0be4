/**
 * Plans how the result of UNION, INTERSECT or EXCEPT is kept up to date, and that of a full join,
 * which is the UNION ALL of two left joins.
 *
 *     block 0 ──± rows──┐
 *     block 1 ──± rows──┼──► how often each block has a row ──± rows──► window ──► result
 *     block 2 ──± rows──┘    set_rows.ts
 *
 * The seed is a UNION ALL of all blocks, with the block index as its last column. If the query is a
 * UNION ALL itself, nothing is counted.
 *
 * Invariant: every block is a SELECT without an order or limit. A block that does not only join and
 * filter is evaluated again for the groups that a change touches (`keyed_block.ts`).
 */
import type { Seq } from "../../base/seq.ts";
import type { Row } from "../../types/mod.ts";
import type { BoundRelation, BoundSelect } from "../bind/bound.ts";
import { isPlainSelect } from "../bind/query/query_walk.ts";
import type { Expr, SelectFromUnion, SelectStatement } from "../parse/ast/ast.ts";
import { isSelectNode, mapCore } from "../parse/ast/query_nodes.ts";
import type { ChangeRange, JoinChanges, PartitionedChanges } from "../ports/engine.ts";
import { isExactQuery } from "./exactness.ts";
import { blocksOfFullJoin } from "./full_join.ts";
import { netChanges, type RowChanges } from "./groups.ts";
import type { IndexedChanges } from "./join_changes.ts";
import type { KeptIndex } from "./kept_index.ts";
import { isKeyType } from "./key_types.ts";
import { KeyedBlock } from "./keyed_block.ts";
import { MaintainedResult } from "./maintained_result.ts";
import { NotMaintained } from "./not_maintained.ts";
import { type JoinPlanOptions, PlannedJoins, type PlanValues } from "./planned_joins.ts";
import { RowWindow, type RowWindowOptions, type WindowTerm } from "./row_window.ts";
import { limitedTo, withItemsBehind } from "./seed_statement.ts";
import { SetRows, type SetTree } from "./set_rows.ts";
import { windowOf, windowRowsOf } from "./window_bounds.ts";

export interface SetQueryOptions extends JoinPlanOptions {
  readonly node: SelectStatement;
  /** The bound form of the set operation `node`. */
  readonly select: BoundSelect;
  /** Binds another form of the statement. @throws {DatabaseError} */
  readonly bind: (node: SelectStatement) => BoundSelect;
  /** The fields by which rows are sorted, if these distinguish all rows. */
  readonly terms: readonly WindowTerm[] | undefined;
}

interface SetBlock {
  readonly joins: PlannedJoins;
  readonly rowsOf: (changes: JoinChanges) => RowChanges;
  /** Returns lines that say how changes are followed. */
  readonly describe: () => string[];
}

export class SetQuery {
  readonly seed: SelectStatement;
  readonly changes: ChangesOfBlocks;
  readonly values: PlanValues;
  readonly #tree: SetTree;
  readonly #window: RowWindowOptions | undefined;

  /** @throws {NotMaintained} */
  constructor(options: SetQueryOptions) {
    const { bind, context, node, select, terms } = options;
    this.#window = windowOf(select, { context, terms });
    const joined = blocksOfFullJoin(select);
    this.#tree = joined === undefined ? treeOf(select, { next: 0 }) : JOINED;
    const tagged = joined === undefined ? taggedUnion(node, { next: 0 }) : node;
    const isWindow = this.#window !== undefined;
    this.seed = isConcatenation(this.#tree)
      ? mapCore(node, (core) => (isWindow ? limitedTo(core, windowRowsOf(select, context)) : core))
      : tagged;
    const found = joined ?? blocksIn(isConcatenation(this.#tree) ? select : bind(tagged));
    const blocks = found.map((block) => setBlockOf(block, options));
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
   * Returns the key of the only partition. Subscribers share a plan only if all of their values are
   * equal.
   */
  partitionOf(): string {
    return WHOLE;
  }

  describe(): string[] {
    return this.changes.describe();
  }

  newResult(): MaintainedResult {
    return new MaintainedResult({
      groups: isConcatenation(this.#tree) ? undefined : new SetRows(this.#tree),
      rowsOf: ({ tuples, weights }) => netChanges(tuples, weights),
      window: this.#window === undefined ? undefined : new RowWindow(this.#window),
      readGroup: undefined,
    });
  }
}

/** Whether a query has all rows of all blocks. */
function isConcatenation(tree: SetTree): boolean {
  if (typeof tree === "number") return true;
  const { isAll, left, operator, right } = tree;
  return operator === "union" && isAll && isConcatenation(left) && isConcatenation(right);
}

/** The rows of a full join, as a set operation. */
const JOINED: SetTree = { operator: "union", isAll: true, left: 0, right: 1 };

/** @throws {NotMaintained} */
function setBlockOf(block: BoundSelect, options: SetQueryOptions): SetBlock {
  const joins = new PlannedJoins(block, options, false);
  const { shape } = joins;
  const isPlain = isPlainSelect({ ...block, limit: undefined, offset: undefined });
  if (shape.isInexact || !(isPlain || isExactQuery(block))) {
    throw new NotMaintained("a block of its set operation has rows that may differ");
  }
  if (isPlain) {
    const rowsOf = joins.rowsOf(block.outputs.map(({ expression }) => expression));
    return { joins, rowsOf, describe: () => joins.changes.describe() };
  }
  const keyed = new KeyedBlock({ select: block, joins });
  const rowsOf = (joined: JoinChanges): RowChanges => {
    const contexts = options.newContexts();
    try {
      return keyed.changes(joined, { contexts, isWanted: () => true });
    } finally {
      contexts.close();
    }
  };
  return { joins, rowsOf, describe: () => [...joins.changes.describe(), ...keyed.describe()] };
}

/** The key of the only partition, because these changes are not divided into partitions. */
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

  commitsBetween(range: Pick<ChangeRange, "after" | "upTo">): Seq[] | undefined {
    const found = this.#blocks.map(({ joins }) => joins.changes.commitsBetween(range));
    const known = found.filter((seqs) => seqs !== undefined);
    if (known.length < found.length) return undefined;
    return [...new Set(known.flat())].toSorted((left, right) => left - right);
  }

  *between({
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
        const { added, removed } = rowsOf(changes);
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

/** Returns a UNION ALL of all blocks, each with its index after its columns. */
function taggedUnion(node: SelectStatement, tags: { next: number }): SelectStatement {
  if (node.type === "with" || node.type === "with recursive") {
    if (!isSelectNode(node.in)) throw new NotMaintained("it is not a single SELECT");
    return { ...node, in: taggedUnion(node.in, tags) };
  }
  if (node.type === "select") {
    const { _location } = node;
    const value = tags.next;
    tags.next += 1;
    const tag: Expr = { type: "integer", value, text: String(value), _location };
    return withItemsBehind(node, [tag]);
  }
  if (!isSetNode(node)) throw new NotMaintained("a block of its set operation reads no table");
  const left = taggedUnion(node.left, tags);
  const right = taggedUnion(node.right, tags);
  return { type: "union all", _location: node._location, left, right };
}

function isSetNode(node: SelectStatement): node is SelectFromUnion {
  return "left" in node && "right" in node;
}

/** Returns the blocks of a bound UNION ALL. @throws {NotMaintained} */
function blocksIn(select: BoundSelect): readonly BoundSelect[] {
  const set = setIn(select);
  if (set === undefined) {
    const { from, limit, offset } = select;
    if (from === undefined) throw new NotMaintained("a block of its set operation reads no table");
    const isLimited = limit !== undefined || offset !== undefined;
    if (isLimited) throw new NotMaintained("a block of its set operation has LIMIT");
    return [select];
  }
  return [...blocksIn(set.left), ...blocksIn(set.right)];
}

/** @throws {NotMaintained} */
function treeOf(select: BoundSelect, blocks: { next: number }): SetTree {
  const set = setIn(select);
  if (set === undefined) {
    blocks.next += 1;
    return blocks.next - 1;
  }
  const { isAll, operator } = set;
  const isCounted = isAll && operator === "union";
  // Values that are equal in two forms would be counted as two values.
  if (!isCounted && !set.columns.every(({ type }) => isKeyType(type))) {
    throw new NotMaintained("its set operation compares values that may be equal in two forms");
  }
  for (const side of [set.left, set.right]) {
    if (side.limit !== undefined || side.offset !== undefined) {
      throw new NotMaintained("a block of its set operation has LIMIT");
    }
  }
  return { operator, isAll, left: treeOf(set.left, blocks), right: treeOf(set.right, blocks) };
}

/** Returns the set operation of which a select returns all columns in order. */
function setIn({
  from,
  outputs,
  ...select
}: BoundSelect): Extract<BoundRelation, { kind: "set" }> | undefined {
  if (from?.kind !== "relation" || from.relation.kind !== "set") return undefined;
  const { relation } = from;
  const isWhole =
    outputs.length === relation.columns.length &&
    outputs.every(({ expression }, index) => {
      return expression.kind === "column" && expression.column === relation.columns[index];
    });
  if (!isWhole || select.where !== undefined || select.isAggregated) {
    throw new NotMaintained("it has a set operation whose columns are converted or conditions");
  }
  return relation;
}
