/**
 * Keeps the rows of a set operation in which some blocks have groups that no result column
 * identifies, such as `SELECT count(*) FROM a UNION ALL SELECT count(*) FROM b`.
 *
 *     tuples of a block with groups ──► groups.ts ──± rows──┐
 *     rows of any other block ──────────────────────────────┴──► set_rows.ts
 *
 * The last value of each input tuple or row is the index of its block. A row of the seed has the
 * operation's columns, then the index of its block, and then the seed columns of every block with
 * groups. Columns that belong to a different block are NULL.
 */
import { defined } from "../../base/assert.ts";
import type { Row } from "../../types/mod.ts";
import type { JoinChanges } from "../ports/engine.ts";
import { type CompiledGroups, Groups, type RowChanges } from "./groups.ts";
import type { KeptRows, Pause } from "./maintained_result.ts";
import { SetRows, type SetTree } from "./set_rows.ts";

/** A block of a set operation that has groups. */
export interface KeptBlock {
  readonly block: number;
  readonly groups: CompiledGroups;
  /**
   * The range of the block's columns in a row of the seed: the first position (inclusive) and the
   * last (exclusive).
   */
  readonly seedStart: number;
  readonly seedEnd: number;
}

interface OwnTuples {
  readonly tuples: Row[];
  readonly weights: number[];
}

export class BlockGroups implements KeptRows {
  readonly #blocks: readonly KeptBlock[];
  /** The groups of each block, keyed by the index of the block. */
  readonly #groups: ReadonlyMap<number, Groups>;
  readonly #rows: SetRows;
  /** The number of columns in the result of the set operation. */
  readonly #width: number;

  constructor(
    blocks: readonly KeptBlock[],
    { tree, width }: { readonly tree: SetTree; readonly width: number },
  ) {
    this.#blocks = blocks;
    this.#groups = new Map(blocks.map(({ block, groups }) => [block, new Groups(groups)]));
    this.#rows = new SetRows(tree);
    this.#width = width;
  }

  get bytes(): number {
    let { bytes } = this.#rows;
    for (const groups of this.#groups.values()) bytes += groups.bytes;
    return bytes;
  }

  async begin(seeds: readonly Row[], pause: Pause): Promise<readonly Row[]> {
    const blockOf = (seed: Row): number => Number(seed[this.#width]);
    const rows = seeds
      .filter((seed) => !this.#groups.has(blockOf(seed)))
      .map((seed) => seed.slice(0, this.#width + 1));
    for (const { block, seedEnd, seedStart } of this.#blocks) {
      const own = seeds.filter((seed) => blockOf(seed) === block);
      const ownSeeds = own.map((seed) => seed.slice(seedStart, seedEnd));
      const begun = await this.#groupsOf(block).begin(ownSeeds, pause);
      for (const row of begun) rows.push([...row, block]);
    }
    return await this.#rows.begin(rows, pause);
  }

  rows(): Iterable<Row> {
    return this.#rows.rows();
  }

  /**
   * Applies changes of the joined rows to the groups and returns the resulting row changes.
   * @throws {CannotFollow}
   * @throws {DatabaseError}
   */
  apply({ after, tuples, upTo, weights }: JoinChanges): RowChanges {
    const found: OwnTuples = { tuples: [], weights: [] };
    const grouped = new Map<number, OwnTuples>();
    for (const [index, tuple] of tuples.entries()) {
      const block = Number(tuple.at(-1));
      const own = grouped.get(block) ?? { tuples: [], weights: [] };
      const into = this.#groups.has(block) ? own : found;
      if (into === own) grouped.set(block, own);
      into.tuples.push(tuple);
      into.weights.push(weights[index] ?? 0);
    }
    for (const [block, changes] of grouped) {
      const { added, removed } = this.#groupsOf(block).apply(
        { ...changes, after, upTo },
        undefined,
      );
      for (const row of removed) addTo(found, [...row, block], -1);
      for (const row of added) addTo(found, [...row, block], 1);
    }
    return this.#rows.apply({ ...found, after, upTo });
  }

  #groupsOf(block: number): Groups {
    return defined(this.#groups.get(block), "maintained set operation: block has no groups");
  }
}

function addTo({ tuples, weights }: OwnTuples, row: Row, weight: number): void {
  tuples.push(row);
  weights.push(weight);
}
