/**
 * Maintains a block whose rows cannot be computed from changes alone, for example because it has
 * window functions. The block is evaluated for the groups that a change touches, once before and
 * once after the change.
 *
 *     tuples ± ──► keys of touched groups ──► block WHERE key = … at both seqs ──► rows ±
 *
 * If no key or index of the store finds the rows of a group, an in-memory index lists them, and
 * the block runs over their tuples instead (`tuple_block.ts`).
 *
 * | block | key of its groups |
 * |---|---|
 * | GROUP BY | the expressions of GROUP BY, in all grouping sets |
 * | window functions | the PARTITION BY expressions common to all of them |
 * | DISTINCT ON | the expressions of DISTINCT ON |
 *
 * Invariant: the rows of a group depend only on the tuples that have its key. No rows are kept.
 */
import type { Seq } from "../../base/seq.ts";
import { BOOLEAN, type Row, type Value } from "../../types/mod.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { compared } from "../bind/change/index_terms.ts";
import { conjunctionOf, conjunctsOf, hasSubquery, sameExpression } from "../bind/walk.ts";
import type { ChangeRange, JoinChanges } from "../ports/engine.ts";
import { expressionsOfBlock } from "./exactness.ts";
import { netChanges, type RowChanges } from "./groups.ts";
import type { ChangesOfJoin } from "./join_changes.ts";
import type { GroupAccess } from "./join_routes.ts";
import { isKeyType } from "./key_types.ts";
import { CannotFollow, NotMaintained } from "./not_maintained.ts";
import type { PlannedJoins } from "./planned_joins.ts";
import { QueryAt, type StepContexts } from "./query_at.ts";
import { textOfRow } from "./row_text.ts";
import { TupleBlock } from "./tuple_block.ts";
import type { TupleRows } from "./tuple_space.ts";

/** The maximum number of groups that a maintenance step evaluates. */
const GROUPS_MAX = 200;

/** The maximum number of tuples that a maintenance step reads for its groups. */
const TUPLES_MAX = 20_000;

export interface KeyedBlockOptions {
  /** The bound block. `joins` is the analysis of its FROM and WHERE. */
  readonly select: BoundSelect;
  readonly joins: Pick<PlannedJoins, "changes" | "routes" | "shape" | "space">;
}

/** The contexts and tests with which a step reads the groups of a block. */
export interface BlockReading {
  readonly contexts: StepContexts;
  /** Whether the tuples of a partition belong to the result. */
  readonly isWanted: ChangeRange["isWanted"];
}

export class KeyedBlock {
  readonly #select: BoundSelect;
  readonly #keys: readonly BoundExpression[];
  readonly #keysOf: TupleRows;
  /** The queries that read a group, one for each combination of NULL keys. */
  readonly #programs = new Map<string, QueryAt>();
  /** The block run over tuples, if an in-memory index finds the rows of a group. */
  readonly #overTuples: TupleBlock | undefined;
  /** The access path that finds the rows of a group. */
  readonly #access: GroupAccess;
  readonly #joins: ChangesOfJoin;
  /** The number of tuples that the current step has read. */
  #tuplesRead = 0;

  /** Plans how the groups of a block are read. @throws {NotMaintained} */
  constructor({ joins, select }: KeyedBlockOptions) {
    if (expressionsOfBlock(select).some(hasSubquery)) {
      throw new NotMaintained("an expression has a subquery");
    }
    const { changes, routes, shape, space } = joins;
    this.#select = unsorted(select);
    this.#joins = changes;
    this.#keys = groupKeysOf(select);
    const keys = this.#keys.map((key) => shape.resolve(key));
    const access = routes.groupAccess(keys, { coreCount: shape.coreCount, mayKeep: true });
    if (access === undefined) {
      throw new NotMaintained(
        keys.length === 0
          ? "all rows form a single group or partition"
          : "no key or index can find the rows of a group or partition",
      );
    }
    this.#access = access;
    this.#keysOf = space.places.rows(keys);
    if (access.access.kept === undefined) return;
    this.#overTuples = new TupleBlock(this.#select, joins);
    changes.keepIndexOf(access);
  }

  /** Returns a line for EXPLAIN that describes how the rows of a group are found. */
  describe(): string[] {
    const found = this.#joins.nameOfAccess(this.#access);
    return [
      `each changed group or partition is recomputed from its rows, which are found by ${found}`,
    ];
  }

  /**
   * Computes how the rows of the block change when the joined rows change, one group at a time.
   * @throws {CannotFollow}
   * @throws {DatabaseError}
   */
  *steps(joined: JoinChanges, reading: BlockReading): Generator<undefined, RowChanges> {
    const { after, upTo } = joined;
    const rows: Row[] = [];
    const weights: number[] = [];
    this.#tuplesRead = 0;
    for (const key of this.#touched(joined)) {
      for (const [seq, weight] of [
        [after, -1],
        [upTo, 1],
      ] as const) {
        for (const row of this.#rowsOf(key, seq, reading)) {
          rows.push(row);
          weights.push(weight);
        }
      }
      yield;
    }
    return netChanges(rows, weights);
  }

  /** Returns the result rows of a group as of a seq. */
  #rowsOf(key: Row, upTo: Seq, { contexts, isWanted }: BlockReading): readonly Row[] {
    if (this.#overTuples === undefined) {
      const outer = new Map(key.map((value, index) => [outerId(index), value]));
      return this.#programFor(key).rows(contexts.at(upTo), outer);
    }
    const tuples = this.#tuplesOf(key, { isWanted, upTo });
    return tuples.length === 0 ? [] : this.#overTuples.rows(tuples, contexts.at(upTo));
  }

  #tuplesOf(
    key: Row,
    { isWanted, upTo }: { readonly isWanted: BlockReading["isWanted"]; readonly upTo: Seq },
  ): readonly Row[] {
    const listed = this.#access.access.keys.map((index) => key[index] ?? null);
    const tuples = this.#joins.tuplesOf(this.#access, { isWanted, key: listed, upTo });
    this.#tuplesRead += tuples.length;
    if (this.#tuplesRead > TUPLES_MAX) throw new CannotFollow();
    // The in-memory index may list rows that have the key only at a different seq.
    const keys = this.#keysOf(tuples);
    const text = textOfRow(key);
    return tuples.filter((_, index) => textOfRow(keys[index] ?? []) === text);
  }

  /** Returns the keys of the groups whose tuples have changed. */
  #touched({ tuples, weights }: JoinChanges): readonly Row[] {
    const changed = netChanges(tuples, weights);
    const all = [...changed.removed, ...changed.added];
    const keys = new Map<string, Row>();
    for (const key of this.#keysOf(all)) keys.set(textOfRow(key), key);
    if (keys.size > GROUPS_MAX) throw new CannotFollow();
    return [...keys.values()];
  }

  #programFor(key: readonly Value[]): QueryAt {
    const pattern = key.map((value) => (value === null ? "N" : "V")).join("");
    const known = this.#programs.get(pattern);
    if (known !== undefined) return known;
    const conditions = this.#keys.map((expression, index): BoundExpression => {
      const { type } = expression;
      if (key[index] !== null) {
        return compared("=", expression, { kind: "outer", type, id: outerId(index) });
      }
      return { kind: "is", type: BOOLEAN, test: "null", negated: false, operand: expression };
    });
    const where = conjunctionOf([...conjunctsOf(this.#select.where), ...conditions]);
    const program = new QueryAt({ ...this.#select, where });
    this.#programs.set(pattern, program);
    return program;
  }
}

/**
 * Returns the block without LIMIT. ORDER BY is also omitted, unless it decides which rows DISTINCT
 * ON keeps.
 */
function unsorted(select: BoundSelect): BoundSelect {
  const orderBy = typeof select.distinct === "object" ? select.orderBy : [];
  return { ...select, orderBy, limit: undefined, offset: undefined };
}

/**
 * Returns the id of the outer reference for a key. It is negative, because all ids in a statement
 * are non-negative.
 */
function outerId(index: number): number {
  return -1 - index;
}

/** Returns the expressions over the joins that have the same value in all tuples of a group. */
export function groupKeysOf(select: BoundSelect): readonly BoundExpression[] {
  return sharedKeysOf(select).filter((key) => isKeyType(key.type) && !hasSubquery(key));
}

function sharedKeysOf(select: BoundSelect): readonly BoundExpression[] {
  const { distinct, groupBy, groupingSets, isAggregated, outputs, windows } = select;
  const isShared = (value: BoundExpression): boolean => {
    const has = (list: readonly BoundExpression[]): boolean =>
      list.some((each) => sameExpression(each, value));
    if (!windows.every(({ window }) => has(window.partitionBy))) return false;
    if (distinct === "all") return has(outputs.map(({ expression }) => expression));
    return distinct === "none" || has(distinct.on);
  };
  if (isAggregated) {
    return groupBy.flatMap(({ column, expression }, position) => {
      const isInEach = groupingSets?.sets.every((set) => set.includes(position)) !== false;
      return isInEach && isShared(columnValue(column)) ? [expression] : [];
    });
  }
  const [first] = windows;
  if (first !== undefined) return first.window.partitionBy.filter(isShared);
  return typeof distinct === "object" ? distinct.on : [];
}
