/**
 * Assigns group ids: equal keys get the same dense id, in order of first appearance. NULLs count
 * as equal here.
 *
 * There are three ways to assign the ids of a batch, all of which enter new keys into the same
 * `KeyHashTable`: a key that is a single integer is looked up in a table indexed by value
 * (`direct_group_ids.ts`), a batch with few keys gets its own table (`dense_positions.ts`), and
 * all other keys are hashed.
 */
import { assert, defined } from "../../../base/assert.ts";
import {
  type DataType,
  isTextType,
  isWholeType,
  type Selection,
  take,
  type Value,
  type Vector,
  valueAt,
  vectorFromValues,
} from "../../../types/mod.ts";
import type { BatchGroups } from "../../functions/aggregate/aggregates.ts";
import { bytesOf, type MemoryBudget } from "../materialised/memory_budget.ts";
import {
  countPositions,
  type DensePositions,
  densePositionsOf,
  firstRowsOf,
  lookUp,
} from "./dense_positions.ts";
import { DirectGroupIds } from "./direct_group_ids.ts";
import { KeyHashTable } from "./key_hash_table.ts";

/**
 * The memory, in bytes, that a group takes up in addition to its key values: for its entry in the
 * index and its aggregate states.
 */
const GROUP_BYTES = 64;

/**
 * The minimum number of rows for which dense positions are tried. A batch with fewer rows is
 * hashed.
 */
const TABLE_ROWS_MIN = 64;

/**
 * The maximum number of groups, as a share of the number of rows, for which counting the rows of
 * each group pays off.
 */
const COUNTED_GROUPS_SHARE = 0.25;

/** The groups of the rows in a batch. The rows of each group are counted on demand. */
class CountedGroups implements BatchGroups {
  readonly ids: Uint32Array;
  readonly groupCount: number;
  #rowCounts: Uint32Array | undefined;

  constructor(ids: Uint32Array, groupCount: number) {
    this.ids = ids;
    this.groupCount = groupCount;
  }

  get isCounted(): boolean {
    return this.#rowCounts !== undefined;
  }

  get rowCounts(): Uint32Array | undefined {
    if (this.groupCount > this.ids.length * COUNTED_GROUPS_SHARE) return undefined;
    this.#rowCounts ??= countsOf(this.ids, this.groupCount);
    return this.#rowCounts;
  }
}

function countsOf(ids: Uint32Array, groupCount: number): Uint32Array {
  const counts = new Uint32Array(groupCount);
  for (let row = 0; row < ids.length; row += 1) {
    const group = ids[row] ?? 0;
    counts[group] = (counts[group] ?? 0) + 1;
  }
  return counts;
}

export interface GroupingOptions {
  /** Whether `keysOf` will be called; defaults to true. */
  readonly keepsKeys?: boolean;
}

export class Grouping {
  readonly #index: KeyHashTable;
  readonly #memory: MemoryBudget;
  readonly #areWhole: readonly boolean[];
  /** The table that assigns ids by value; used if the key is a single integer column. */
  readonly #direct: DirectGroupIds | undefined;
  readonly #types: readonly DataType[];
  /** The key values of each group, for key columns whose values are not stored in the index. */
  readonly #keys: (Value[] | undefined)[];
  readonly #keepsKeys: boolean;
  /** A buffer for group ids that each call reuses. */
  #ids = new Uint32Array(0);

  constructor(
    types: readonly DataType[],
    memory: MemoryBudget,
    { keepsKeys = true }: GroupingOptions = {},
  ) {
    this.#memory = memory;
    this.#index = new KeyHashTable(types);
    this.#areWhole = types.map(isWholeType);
    this.#direct =
      types.length === 1 && this.#areWhole[0] === true ? new DirectGroupIds() : undefined;
    this.#types = types;
    this.#keys = types.map((type) => (isWholeType(type) || isTextType(type) ? undefined : []));
    this.#keepsKeys = keepsKeys && this.#keys.some((values) => values !== undefined);
  }

  get groupCount(): number {
    return this.#index.count;
  }

  /** Returns a key column for the groups from `start` (inclusive) to `end` (exclusive). */
  keysOf(position: number, start: number, end: number): Vector {
    const values = this.#keys[position];
    if (values === undefined) return this.#index.vectorOf(position, start, end);
    const type = defined(this.#types[position], "grouping: key column has no type");
    return vectorFromValues(type, values.slice(start, end));
  }

  /**
   * Returns the group id of each row. The array is valid until the next call.
   *
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  groupIdsOf(vectors: readonly Vector[], rowCount: number): Uint32Array {
    return this.groupsOf(vectors, rowCount).ids;
  }

  /**
   * Returns the group id of each row. Also returns the number of rows in each group if it is cheap
   * to compute.
   */
  groupsOf(vectors: readonly Vector[], rowCount: number): BatchGroups {
    if (rowCount < TABLE_ROWS_MIN) return this.#hashed(vectors, rowCount);
    return (
      this.#byValue(vectors, rowCount) ??
      this.#dense(vectors, rowCount) ??
      this.#hashed(vectors, rowCount)
    );
  }

  /** Returns the group id of each row; NO_KEY if no earlier row had the same key. */
  knownGroupIdsOf(vectors: readonly Vector[], rowCount: number): Int32Array {
    return this.#index.find(vectors, rowCount);
  }

  /** Returns the rows that are the first row of their group across all calls so far. */
  newRowsOf(vectors: readonly Vector[], rowCount: number): Selection {
    let knownCount = this.groupCount;
    const ids = this.groupIdsOf(vectors, rowCount);
    const rows = new Uint32Array(rowCount);
    let count = 0;
    if (knownCount === this.groupCount) return { rows, count };
    for (let row = 0; row < rowCount; row += 1) {
      // Ids are dense and assigned in order of first appearance, so a new key has the next id.
      if (ids[row] !== knownCount) continue;
      rows[count] = row;
      count += 1;
      knownCount += 1;
    }
    return { rows, count };
  }

  #hashed(vectors: readonly Vector[], rowCount: number): BatchGroups {
    const ids = this.#hash(vectors, rowCount);
    return { ids, groupCount: this.groupCount, rowCounts: undefined };
  }

  #byValue(vectors: readonly Vector[], rowCount: number): BatchGroups | undefined {
    const [vector] = vectors;
    if (this.#direct === undefined) return undefined;
    if (vector?.kind !== "i32" && vector?.kind !== "f64") return undefined;
    if (vector.nulls !== undefined) return undefined;
    const ids = this.#scratch(rowCount);
    const next = this.groupCount;
    const before = this.#direct.bytes;
    const rows = this.#direct.assign(vector.values, {
      into: ids,
      next,
      rowCount,
    });
    if (rows === undefined) return undefined;
    this.#memory.take(this.#direct.bytes - before);
    if (rows.length > 0 && !this.#isNew(vectors, rows, ids)) {
      return this.#byValue(vectors, rowCount);
    }
    return new CountedGroups(ids, this.groupCount);
  }

  /**
   * Adds the keys of rows to the index. Returns whether the index assigns the expected ids. The
   * index may already contain some of the keys, because they occurred in a batch that was hashed
   * directly. In that case, the ids of these keys are copied to the table.
   */
  #isNew(vectors: readonly Vector[], rows: Uint32Array, ids: Uint32Array): boolean {
    const selection = { rows, count: rows.length };
    const taken = vectors.map((vector) => take(vector, selection));
    const found = this.#hash(taken, rows.length);
    if (rows.every((row, i) => ids[row] === found[i])) return true;
    const [vector] = taken;
    assert(
      vector?.kind === "i32" || vector?.kind === "f64",
      "grouping: integer key is not a numeric vector",
    );
    this.#direct?.learn(vector.values, found);
    return false;
  }

  #dense(vectors: readonly Vector[], rowCount: number): BatchGroups | undefined {
    const keys = vectors.map((vector, i) => ({
      vector,
      isWhole: this.#areWhole[i] === true,
    }));
    const positions = densePositionsOf(keys, rowCount);
    return positions === undefined ? undefined : this.#lookUp(vectors, positions);
  }

  #lookUp(vectors: readonly Vector[], positions: DensePositions): BatchGroups {
    const positionCounts = countPositions(positions);
    const rows = firstRowsOf(positions, positionCounts);
    const selection = { rows, count: rows.length };
    const found = this.#hash(
      vectors.map((vector) => take(vector, selection)),
      rows.length,
    );
    const { groupCount } = this;
    const isCounted = groupCount <= positions.at.length * COUNTED_GROUPS_SHARE;
    const rowCounts = isCounted ? new Uint32Array(groupCount) : undefined;
    const table = new Uint32Array(positions.span);
    for (let i = 0; i < rows.length; i += 1) {
      const position = positions.at[rows[i] ?? 0] ?? 0;
      const group = found[i] ?? 0;
      table[position] = group;
      if (rowCounts !== undefined) {
        rowCounts[group] = (rowCounts[group] ?? 0) + (positionCounts[position] ?? 0);
      }
    }
    const ids = this.#scratch(positions.at.length);
    lookUp(positions, table, ids);
    return { ids, groupCount, rowCounts, isCounted };
  }

  #scratch(rowCount: number): Uint32Array {
    if (this.#ids.length < rowCount) this.#ids = new Uint32Array(rowCount);
    return this.#ids.length === rowCount ? this.#ids : this.#ids.subarray(0, rowCount);
  }

  /** Returns the group id of each row from the index. New keys are added to the index. */
  #hash(vectors: readonly Vector[], rowCount: number): Uint32Array {
    const known = this.#index.count;
    const bytesBefore = this.#index.bytes;
    const ids = this.#index.add(vectors, rowCount);
    const newCount = this.#index.count - known;
    if (newCount > 0) {
      const bytes = this.#keepsKeys ? this.#keep(vectors, ids, known) : 0;
      this.#memory.take(newCount * GROUP_BYTES + bytes + this.#index.bytes - bytesBefore);
    }
    return new Uint32Array(ids.buffer, 0, rowCount);
  }

  /**
   * Stores the values of the keys whose ids are `next` or higher. Returns the number of bytes that
   * the values take up.
   */
  #keep(vectors: readonly Vector[], ids: Int32Array, next: number): number {
    let known = next;
    let bytes = 0;
    for (let row = 0; row < ids.length; row += 1) {
      // Ids are dense and assigned in order of first appearance, so a new key has the next id.
      if (ids[row] !== known) continue;
      known += 1;
      for (let i = 0; i < this.#keys.length; i += 1) {
        const kept = this.#keys[i];
        if (kept === undefined) continue;
        const vector = vectors[i];
        const value = vector === undefined ? null : valueAt(vector, row);
        bytes += bytesOf(value);
        kept.push(value);
      }
    }
    return bytes;
  }
}
