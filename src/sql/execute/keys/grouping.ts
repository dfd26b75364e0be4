/**
 * Numbers groups: equal keys get the same dense number, in order of first appearance. NULLs are
 * equal here.
 *
 * There are three ways to the numbers of a batch, and one table of keys (`KeyIndex`), which every
 * new key reaches: a key of one whole number through a table by its value (`direct_numbers.ts`),
 * keys that are few through a table of the batch (`dense_positions.ts`), all others by hashing.
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
import { bytesOf, type MemoryBudget } from "../held/memory_budget.ts";
import {
  countPositions,
  type DensePositions,
  densePositionsOf,
  firstRowsOf,
  lookUp,
} from "./dense_positions.ts";
import { DirectNumbers } from "./direct_numbers.ts";
import { KeyIndex } from "./key_index.ts";

/** What a group costs beside its key values: the entry of the index and the states. */
const GROUP_BYTES = 64;

/** Smaller batches are hashed at once. */
const TABLE_ROWS_MIN = 64;

/** Counting the rows of each group is worth it up to this share of the rows. */
const COUNTED_GROUPS_SHARE = 0.25;

/** Groups whose rows are counted once somebody asks. */
class CountedGroups implements BatchGroups {
  readonly numbers: Uint32Array;
  readonly groupCount: number;
  #rowCounts: Uint32Array | undefined;

  constructor(numbers: Uint32Array, groupCount: number) {
    this.numbers = numbers;
    this.groupCount = groupCount;
  }

  get isCounted(): boolean {
    return this.#rowCounts !== undefined;
  }

  get rowCounts(): Uint32Array | undefined {
    if (this.groupCount > this.numbers.length * COUNTED_GROUPS_SHARE) return undefined;
    this.#rowCounts ??= countsOf(this.numbers, this.groupCount);
    return this.#rowCounts;
  }
}

function countsOf(numbers: Uint32Array, groupCount: number): Uint32Array {
  const counts = new Uint32Array(groupCount);
  for (let row = 0; row < numbers.length; row += 1) {
    const group = numbers[row] ?? 0;
    counts[group] = (counts[group] ?? 0) + 1;
  }
  return counts;
}

export interface GroupingOptions {
  /** Whether `keysOf` will be asked; default true. */
  readonly keepsKeys?: boolean;
}

export class Grouping {
  readonly #index: KeyIndex;
  readonly #memory: MemoryBudget;
  readonly #areWhole: readonly boolean[];
  /** Of a key of one column of whole numbers. */
  readonly #direct: DirectNumbers | undefined;
  readonly #types: readonly DataType[];
  /** Values of key columns of each group, of those whose values the index does not know. */
  readonly #keys: (Value[] | undefined)[];
  readonly #keepsKeys: boolean;
  /** Used again by each call. */
  #numbers = new Uint32Array(0);

  constructor(
    types: readonly DataType[],
    memory: MemoryBudget,
    { keepsKeys = true }: GroupingOptions = {},
  ) {
    this.#memory = memory;
    this.#index = new KeyIndex(types);
    this.#areWhole = types.map(isWholeType);
    this.#direct =
      types.length === 1 && this.#areWhole[0] === true ? new DirectNumbers() : undefined;
    this.#types = types;
    this.#keys = types.map((type) => (isWholeType(type) || isTextType(type) ? undefined : []));
    this.#keepsKeys = keepsKeys && this.#keys.some((values) => values !== undefined);
  }

  get groupCount(): number {
    return this.#index.count;
  }

  /** A column of the keys of groups from `start` (inclusive) to `end` (exclusive). */
  keysOf(position: number, start: number, end: number): Vector {
    const values = this.#keys[position];
    if (values === undefined) return this.#index.vectorOf(position, start, end);
    const type = defined(this.#types[position], "a key has its columns");
    return vectorFromValues(type, values.slice(start, end));
  }

  /**
   * The group number of each row; valid until the next call.
   *
   * @throws {DatabaseError} MEMORY_EXCEEDED
   */
  numbersOf(vectors: readonly Vector[], rowCount: number): Uint32Array {
    return this.groupsOf(vectors, rowCount).numbers;
  }

  /** The same, with how many rows each group has where that is cheap to know. */
  groupsOf(vectors: readonly Vector[], rowCount: number): BatchGroups {
    if (rowCount < TABLE_ROWS_MIN) return this.#hashed(vectors, rowCount);
    return (
      this.#byValue(vectors, rowCount) ??
      this.#dense(vectors, rowCount) ??
      this.#hashed(vectors, rowCount)
    );
  }

  /** The group number of each row, or NO_KEY where no row before had its key. */
  knownNumbersOf(vectors: readonly Vector[], rowCount: number): Int32Array {
    return this.#index.find(vectors, rowCount);
  }

  /** The rows whose group no earlier row has, here or in a call before. */
  newRowsOf(vectors: readonly Vector[], rowCount: number): Selection {
    let knownCount = this.groupCount;
    const numbers = this.numbersOf(vectors, rowCount);
    const rows = new Uint32Array(rowCount);
    let count = 0;
    if (knownCount === this.groupCount) return { rows, count };
    for (let row = 0; row < rowCount; row += 1) {
      // Numbers are dense and ascend with first appearance: a new one is the next one.
      if (numbers[row] !== knownCount) continue;
      rows[count] = row;
      count += 1;
      knownCount += 1;
    }
    return { rows, count };
  }

  #hashed(vectors: readonly Vector[], rowCount: number): BatchGroups {
    const numbers = this.#hash(vectors, rowCount);
    return { numbers, groupCount: this.groupCount, rowCounts: undefined };
  }

  #byValue(vectors: readonly Vector[], rowCount: number): BatchGroups | undefined {
    const [vector] = vectors;
    if (this.#direct === undefined) return undefined;
    if (vector?.kind !== "i32" && vector?.kind !== "f64") return undefined;
    if (vector.nulls !== undefined) return undefined;
    const numbers = this.#scratch(rowCount);
    const next = this.groupCount;
    const before = this.#direct.bytes;
    const rows = this.#direct.number(vector.values, {
      into: numbers,
      next,
      rowCount,
    });
    if (rows === undefined) return undefined;
    this.#memory.take(this.#direct.bytes - before);
    if (rows.length > 0 && !this.#isNew(vectors, rows, numbers)) {
      return this.#byValue(vectors, rowCount);
    }
    return new CountedGroups(numbers, this.groupCount);
  }

  /**
   * Whether the index gives the rows the numbers that they have. It may know some of them already,
   * from a batch that was hashed at once: the table then learns their numbers.
   */
  #isNew(vectors: readonly Vector[], rows: Uint32Array, numbers: Uint32Array): boolean {
    const selection = { rows, count: rows.length };
    const taken = vectors.map((vector) => take(vector, selection));
    const found = this.#hash(taken, rows.length);
    if (rows.every((row, i) => numbers[row] === found[i])) return true;
    const [vector] = taken;
    assert(vector?.kind === "i32" || vector?.kind === "f64", "a whole number is a number");
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
    const numbers = this.#scratch(positions.at.length);
    lookUp(positions, table, numbers);
    return { numbers, groupCount, rowCounts, isCounted };
  }

  #scratch(rowCount: number): Uint32Array {
    if (this.#numbers.length < rowCount) this.#numbers = new Uint32Array(rowCount);
    return this.#numbers.length === rowCount ? this.#numbers : this.#numbers.subarray(0, rowCount);
  }

  /** The group number of each row, by the index; new keys are noted. */
  #hash(vectors: readonly Vector[], rowCount: number): Uint32Array {
    const known = this.#index.count;
    const bytesBefore = this.#index.bytes;
    const numbers = this.#index.add(vectors, rowCount);
    const newCount = this.#index.count - known;
    if (newCount > 0) {
      const bytes = this.#keepsKeys ? this.#keep(vectors, numbers, known) : 0;
      this.#memory.take(newCount * GROUP_BYTES + bytes + this.#index.bytes - bytesBefore);
    }
    return new Uint32Array(numbers.buffer, 0, rowCount);
  }

  /** Keeps the values of the keys from number `next` on. Returns the bytes that they take. */
  #keep(vectors: readonly Vector[], numbers: Int32Array, next: number): number {
    let known = next;
    let bytes = 0;
    for (let row = 0; row < numbers.length; row += 1) {
      // Numbers are dense and ascend with first appearance: a new one is the next one.
      if (numbers[row] !== known) continue;
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
