/**
 * Maintains a block whose rows cannot be computed from changes alone, such as window functions: the
 * block is evaluated again for the groups that a change touches, before and after it.
 *
 *     tuples ± ──► keys of touched groups ──► block WHERE key = … at both seqs ──► rows ±
 *
 * | block | key of its groups |
 * |---|---|
 * | GROUP BY | the expressions of GROUP BY, in all grouping sets |
 * | window functions | the expressions of PARTITION BY that all of them have |
 * | DISTINCT ON | its expressions |
 *
 * Invariant: the rows of a group depend only on the tuples that have its key. Nothing is kept.
 */
import { BOOLEAN, type Row, type Value } from "../../types/mod.ts";
import type { BoundSelect } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { columnValue } from "../bind/bound_nodes.ts";
import { compared } from "../bind/change/index_terms.ts";
import { conjunctionOf, conjunctsOf, hasSubquery, sameExpression } from "../bind/walk.ts";
import type { JoinChanges } from "../ports/engine.ts";
import { expressionsOfBlock } from "./exactness.ts";
import { netChanges, type RowChanges } from "./groups.ts";
import type { GroupAccess, JoinRoutes } from "./join_routes.ts";
import type { JoinShape } from "./join_shape.ts";
import { isKeyType } from "./key_types.ts";
import { CannotFollow, NotMaintained } from "./not_maintained.ts";
import { QueryAt, type StepContexts } from "./query_at.ts";
import { textOfRow } from "./row_text.ts";
import type { TuplePlaces, TupleValues } from "./tuple_space.ts";

/** The maximum number of groups that a step evaluates again. */
const GROUPS_MAX = 200;

export interface KeyedBlockOptions {
  /** The block, whose FROM and WHERE have the given shape. */
  readonly select: BoundSelect;
  readonly shape: JoinShape;
  readonly routes: JoinRoutes;
  readonly tuples: TuplePlaces;
}

export class KeyedBlock {
  readonly #select: BoundSelect;
  readonly #keys: readonly BoundExpression[];
  readonly #keysOf: TupleValues;
  /** The queries, one for each set of key values that are NULL. */
  readonly #programs = new Map<string, QueryAt>();
  /** The way in which the rows of a group are found. */
  readonly access: GroupAccess;

  /** @throws {NotMaintained} */
  constructor({ routes, select, shape, tuples }: KeyedBlockOptions) {
    if (expressionsOfBlock(select).some(hasSubquery)) {
      throw new NotMaintained("an expression has a subquery");
    }
    this.#select = select;
    this.#keys = groupKeysOf(select);
    const keys = this.#keys.map((key) => shape.resolve(key));
    const access = routes.groupAccess(keys, shape.coreCount);
    if (access === undefined) {
      throw new NotMaintained("no key or index finds the rows of one group or partition");
    }
    this.access = access;
    this.#keysOf = tuples.values(keys);
  }

  /** Returns a line that says how the rows of a group are found. */
  describe(): string[] {
    const { index } = this.access.access;
    const found = index === undefined ? "its key" : `index ${index.name}`;
    return [`the rows of each changed group or partition are computed again: found by ${found}`];
  }

  /**
   * Computes how the rows of the block change when the joined rows change. @throws {CannotFollow}
   * @throws {DatabaseError}
   */
  changes(joined: JoinChanges, contexts: StepContexts): RowChanges {
    const { after, upTo } = joined;
    const rows: Row[] = [];
    const weights: number[] = [];
    for (const key of this.#touched(joined)) {
      const program = this.#programFor(key);
      const outer = new Map(key.map((value, index) => [outerId(index), value]));
      for (const [seq, weight] of [
        [after, -1],
        [upTo, 1],
      ] as const) {
        for (const row of program.rows(contexts.at(seq), outer)) {
          rows.push(row);
          weights.push(weight);
        }
      }
    }
    return netChanges(rows, weights);
  }

  /** Returns the keys of the groups whose tuples have changed. */
  #touched({ tuples, weights }: JoinChanges): readonly Row[] {
    const changed = netChanges(tuples, weights);
    const all = [...changed.removed, ...changed.added];
    const columns = this.#keysOf(all);
    const keys = new Map<string, Row>();
    for (const index of all.keys()) {
      const key = columns.map((column) => column[index] ?? null);
      keys.set(textOfRow(key), key);
    }
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
    const { distinct, orderBy, where } = this.#select;
    const program = new QueryAt({
      ...this.#select,
      where: conjunctionOf([...conjunctsOf(where), ...conditions]),
      orderBy: typeof distinct === "object" ? orderBy : [],
      limit: undefined,
      offset: undefined,
    });
    this.#programs.set(pattern, program);
    return program;
  }
}

/**
 * Returns the id of the reference for a key. It is negative, because the ids of references in a
 * statement are not.
 */
function outerId(index: number): number {
  return -1 - index;
}

/** Returns the expressions over the joins whose values all tuples of a group share. */
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
