/**
 * Maintains the groups of a query: GROUP BY with HAVING, and DISTINCT, which groups by all
 * columns.
 *
 *     tuples ± ──► keys and arguments ──► equal tuples cancel out ──► tallies ──► rows ±
 *
 * Invariants: a group exists as long as it has rows. Without GROUP BY, there is always exactly one
 * group. The cost of a change depends only on the number of groups it touches, not on the total
 * number of groups or rows.
 */
import { defined } from "../../base/assert.ts";
import type { Row } from "../../types/mod.ts";
import type { BoundAggregate, BoundExpression } from "../bind/bound_expressions.ts";
import type { JoinChanges } from "../ports/engine.ts";
import type { Pause } from "./maintained_result.ts";
import { CannotFollow } from "./not_maintained.ts";
import { textOfRow } from "./row_text.ts";
import { LastChangeTally, type RowTally, tallyFor } from "./tallies.ts";
import {
  chosen,
  rowsInStep,
  type TupleFilter,
  type TuplePlaces,
  type TupleRows,
} from "./tuple_space.ts";

/** The rows that a change adds to and removes from a result. */
export interface RowChanges {
  readonly removed: readonly Row[];
  readonly added: readonly Row[];
}

/** Cancels out rows that are both added and removed, and returns the remaining changes. */
export function netChanges(rows: readonly Row[], weights: readonly number[]): RowChanges {
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

export interface GroupsOptions {
  readonly keys: readonly BoundExpression[];
  readonly aggregates: readonly BoundAggregate[];
  /** The index of the aggregate that gives the seq of a group's last change. */
  readonly seqAggregate: number | undefined;
  readonly having: BoundExpression | undefined;
  readonly outputs: readonly BoundExpression[];
  /**
   * The layout of the join's tuples, from which grouping keys and aggregate arguments are
   * computed.
   */
  readonly tuples: TuplePlaces;
  /** The layout of the keys and aggregate results, from which result rows are computed. */
  readonly grouped: TuplePlaces;
}

/**
 * Reads all tuples of a group, and possibly further tuples; returns undefined if only a scan could
 * find them.
 */
export type ReadGroup = (keys: Row) => readonly Row[] | undefined;

interface Group {
  readonly number: number;
  readonly keys: Row;
  /** The number of rows that the group contains. */
  count: number;
  /** The group's row in the result; undefined if HAVING excludes it. */
  row: Row | undefined;
}

/** Tuples with the same grouping keys and aggregate arguments. Their weights are added up. */
interface Contribution {
  /**
   * The grouping keys, followed by the argument of each aggregate. If FILTER excludes the tuple,
   * the argument is NULL, which does not affect the aggregate.
   */
  readonly inputs: Row;
  weight: number;
}

/** The approximate memory of a group in bytes, excluding its keys. */
const GROUP_BYTES = 240;
const VALUE_BYTES = 24;

/** The number of groups created before other work may run. */
const SEEDS_PER_PART = 256;

/**
 * The compiled expressions of a maintained query with groups. All of its subscribers share them.
 */
export interface CompiledGroups extends GroupsOptions {
  /** Returns the grouping keys of a tuple, followed by the arguments of the aggregates. */
  readonly inputsOf: TupleRows;
  readonly filter: TupleFilter;
  readonly outputsOf: TupleRows;
}

export function compiledGroups(options: GroupsOptions): CompiledGroups {
  const { aggregates, grouped, having, keys, outputs, tuples } = options;
  return {
    ...options,
    inputsOf: tuples.rows([...keys, ...aggregates.map(contributionOf)]),
    filter: grouped.filter(having === undefined ? [] : [having]),
    outputsOf: grouped.rows(outputs),
  };
}

export class Groups {
  readonly #options: CompiledGroups;
  #tallies: readonly RowTally[] = [];
  #groups = new Map<string, Group>();
  /** The total length, in characters, of the strings that identify the groups. */
  #textLength = 0;
  /** The numbers of removed groups, which are reused for new groups. */
  #free: number[] = [];

  constructor(options: CompiledGroups) {
    this.#options = options;
  }

  get bytes(): number {
    const { aggregates, keys } = this.#options;
    const groupBytes = GROUP_BYTES + VALUE_BYTES * (keys.length + aggregates.length);
    // The keys of a group take about as much memory as the string that identifies it.
    return this.#groups.size * groupBytes + 2 * this.#textLength;
  }

  /**
   * Initialises the groups from the rows of the seed. Each row contains the keys of a group, its
   * number of rows, and the results that each tally needs.
   *
   * @returns The rows of the result.
   */
  async begin(seeds: readonly Row[], pause: Pause): Promise<readonly Row[]> {
    this.#tallies = talliesOf(this.#options);
    this.#groups = new Map();
    this.#textLength = 0;
    this.#free = [];
    const rows: Row[] = [];
    for (let start = 0; start < seeds.length; start += SEEDS_PER_PART) {
      const part = seeds.slice(start, start + SEEDS_PER_PART);
      const { added } = this.#refreshed(part.map((seed) => this.#begun(seed)));
      for (const row of added) rows.push(row);
      await pause();
    }
    return rows;
  }

  /** Creates a group from a row of the seed. */
  #begun(seed: Row): Group {
    const { keys } = this.#options;
    const group = this.#newGroup(seed.slice(0, keys.length));
    group.count = Number(seed[keys.length] ?? 0);
    let at = keys.length + 1;
    for (const tally of this.#tallies) {
      const end = at + tally.seeds.length;
      tally.seed(group.number, seed.slice(at, end));
      at = end;
    }
    return group;
  }

  /** Yields the result rows of all groups. */
  *rows(): Generator<Row> {
    for (const { row } of this.#groups.values()) if (row !== undefined) yield row;
  }

  /**
   * Applies changes of the join, and returns the resulting row changes.
   *
   * @throws {CannotFollow}
   * @throws {DatabaseError}
   */
  apply(changes: JoinChanges, read: ReadGroup | undefined): RowChanges {
    const touched = new Set<Group>();
    for (const tally of this.#tallies) tally.beginStep?.(changes.upTo);
    const contributions = this.#contributions(changes);
    // Removals come first, so that an added value may take the place of a removed one.
    for (const each of contributions) if (each.weight < 0) touched.add(this.#remove(each));
    for (const each of contributions) if (each.weight > 0) touched.add(this.#add(each));
    for (const group of touched) this.#refill(group, read);
    return this.#refreshed([...touched]);
  }

  /**
   * Reads the rows of a group to recompute the aggregates whose results are no longer known from
   * the state of the group, such as a minimum that was removed.
   */
  #refill({ count, keys, number }: Group, read: ReadGroup | undefined): void {
    if (count === 0 || !this.#tallies.some((tally) => tally.isUnknown(number))) return;
    const unknown = [...this.#tallies.entries()].filter(([, tally]) => tally.isUnknown(number));
    const tuples = read?.(keys);
    if (tuples === undefined) throw new CannotFollow();
    const text = textOfRow(keys);
    const own = this.#options.inputsOf(tuples).filter((inputs) => {
      return textOfRow(this.#keysOf(inputs)) === text;
    });
    for (const [index, tally] of unknown) {
      tally.clear(number);
      for (const inputs of own) tally.add(number, inputs[keys.length + index] ?? null);
    }
  }

  #contributions(changes: JoinChanges): readonly Contribution[] {
    const { weights } = changes;
    const rows = rowsInStep(changes, this.#options.inputsOf);
    const all = rows.map((inputs, index): Contribution => {
      return { inputs, weight: weights[index] ?? 0 };
    });
    if (all.length === 1) return all;
    const found = new Map<string, Contribution>();
    for (const each of all) {
      const text = textOfRow(each.inputs);
      const known = found.get(text);
      if (known === undefined) found.set(text, each);
      else known.weight += each.weight;
    }
    return [...found.values()].filter(({ weight }) => weight !== 0);
  }

  #remove({ inputs, weight }: Contribution): Group {
    const keys = this.#keysOf(inputs);
    const group = defined(
      this.#groups.get(textOfRow(keys)),
      "maintained groups: removed row belongs to no group",
    );
    group.count += weight;
    let at = keys.length;
    for (const tally of this.#tallies) {
      for (let count = weight; count < 0; count += 1) {
        tally.remove(group.number, inputs[at] ?? null);
      }
      at += 1;
    }
    return group;
  }

  #add({ inputs, weight }: Contribution): Group {
    const keys = this.#keysOf(inputs);
    const group = this.#groups.get(textOfRow(keys)) ?? this.#newGroup(keys);
    group.count += weight;
    let at = keys.length;
    for (const tally of this.#tallies) {
      for (let count = weight; count > 0; count -= 1) {
        tally.add(group.number, inputs[at] ?? null);
      }
      at += 1;
    }
    return group;
  }

  #keysOf(inputs: Row): Row {
    return inputs.slice(0, this.#options.keys.length);
  }

  #newGroup(keys: Row): Group {
    const number = this.#free.pop() ?? this.#groups.size;
    const group = { number, keys, count: 0, row: undefined };
    const text = textOfRow(keys);
    this.#groups.set(text, group);
    this.#textLength += text.length;
    return group;
  }

  /** Recomputes the result rows of the given groups, and returns the changes. */
  #refreshed(groups: readonly Group[]): RowChanges {
    const { filter, outputsOf } = this.#options;
    const removed: Row[] = [];
    const living: Group[] = [];
    for (const group of groups) {
      if (group.row !== undefined) removed.push(group.row);
      group.row = undefined;
      if (this.#isAlive(group)) living.push(group);
    }
    const tuples = living.map(({ keys, number }) => {
      const tuple = keys.slice();
      for (const tally of this.#tallies) tuple.push(tally.result(number));
      return tuple;
    });
    const kept = filter(tuples);
    const added = outputsOf(chosen(tuples, kept));
    for (let at = 0; at < kept.length; at += 1) {
      defined(living[kept[at] ?? 0], "maintained groups: tuple belongs to no group").row =
        added[at];
    }
    return { removed, added };
  }

  /** Whether a group still exists. As a side effect, a group that has no rows left is removed. */
  #isAlive(group: Group): boolean {
    if (group.count > 0 || this.#options.keys.length === 0) return true;
    const text = textOfRow(group.keys);
    if (this.#groups.delete(text)) {
      this.#textLength -= text.length;
      for (const each of this.#tallies) each.clear(group.number);
      this.#free.push(group.number);
    }
    return false;
  }
}

/** Creates a tally for each aggregate. @throws {NotMaintained} */
export function talliesOf({
  aggregates,
  seqAggregate,
}: Pick<GroupsOptions, "aggregates" | "seqAggregate">): RowTally[] {
  return aggregates.map((each, index) =>
    index === seqAggregate ? new LastChangeTally() : tallyFor(each),
  );
}

/**
 * Returns the expression for the value that a tuple contributes to an aggregate: NULL if FILTER
 * excludes the tuple.
 */
function contributionOf({ argument, filter, form }: BoundAggregate): BoundExpression {
  const value = argument ?? COUNTED;
  if (filter === undefined) return value;
  const branches = [{ when: filter, value }];
  return {
    kind: "case",
    type: form.argumentTypes[0] ?? value.type,
    branches,
    otherwise: undefined,
  };
}

/** The argument of count(*), which is never NULL. */
const COUNTED: BoundExpression = { kind: "constant", type: { kind: "boolean" }, value: true };
