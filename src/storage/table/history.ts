/**
 * How long replaced versions stay: which of them a merge may leave out, and from which position on
 * every change can still be replayed.
 *
 *     a version is kept while the version that replaced it is above the horizon
 *     a tombstone that nothing replaced is kept while it is itself above the horizon, or while an
 *     older segment, which is not merged with it, may have a version of its key
 *     nothing of an owner who is erased is kept
 *
 * - Nothing that was replaced less than an hour ago is discarded, so that no snapshot that is being
 *   loaded loses its rows.
 * - A version whose time to live is over is left out whatever it is, and moves nothing: who resumes
 *   from below misses only what nobody sees any more.
 * - An erased owner reads no more, so that leaving its versions out moves nothing either.
 * - Leaving any other version out moves the low water of its owner up to the seq of the
 *   replacement, or to the tombstone's own: who resumes from below would miss a change.
 */
import { HOUR_MS } from "../../base/clock.ts";
import type { Seq, SeqGenerator } from "../../base/seq.ts";

/** Where a row of a source is in the merged segment when it is not there. */
export const DISCARDED = 0xffff_ffff;

const KEPT_MS_MIN = HOUR_MS;

/** Owners whose low water is remembered one by one; more of them share the highest. */
const OWNERS_MAX = 1000;

/** What a merge may leave out, as plain data. */
export interface HistoryLimits {
  /** Versions that were replaced at or below this are left out; 0 keeps everything. */
  readonly horizonSeq: number;
  /** Versions up to here are past their time to live; 0 for none. */
  readonly expiredSeq: number;
  /** Of whom every version is left out; absent: of nobody. */
  readonly erasedOwner?: number | undefined;
  /** Whether no segment is older than those that are merged. */
  readonly isOldest: boolean;
  /** For each source: its rows that were replaced, ascending, and by which seq. */
  readonly replaced: readonly { readonly rows: Uint32Array; readonly seqs: Float64Array }[];
}

/** The newest seq of which the versions that it replaced may be discarded. */
export function horizonSeqOf(ids: Pick<SeqGenerator, "agedSeq">, historyMs: number): Seq {
  return ids.agedSeq(Math.max(historyMs, KEPT_MS_MIN)) as Seq;
}

/** Decides about the rows of one merge, and remembers what it took from whom. */
export class History {
  /** For each owner: below which seq its history is no longer whole. */
  readonly lowWaters: Map<number, number> = new Map();
  discardedCount = 0;
  readonly #limits: HistoryLimits;
  /** For each source: the replacement of each row, 0 for none; undefined when no row has one. */
  readonly #replacedBy: readonly (Float64Array | undefined)[];

  constructor(limits: HistoryLimits, rowCounts: readonly number[]) {
    this.#limits = limits;
    this.#replacedBy = rowCounts.map((rowCount, source) => {
      const { rows, seqs } = limits.replaced[source] ?? { rows: [], seqs: [] };
      if (rows.length === 0) return undefined;
      const replacedBy = new Float64Array(rowCount);
      for (let index = 0; index < rows.length; index += 1) {
        replacedBy[rows[index] ?? 0] = seqs[index] ?? 0;
      }
      return replacedBy;
    });
  }

  /**
   * Whether no row of a group can be left out.
   * @param deleted 1 for each tombstone of the group.
   */
  keepsAll(source: number, deleted: Uint8Array): boolean {
    const { erasedOwner, expiredSeq, horizonSeq, isOldest } = this.#limits;
    if (expiredSeq > 0 || erasedOwner !== undefined) return false;
    if (horizonSeq === 0) return true;
    return this.#replacedBy[source] === undefined && !(isOldest && deleted.includes(1));
  }

  /** Whether a version is left out. Asked once for each row. */
  discards({ isDeleted, owner, row, seq, source }: Version): boolean {
    const { erasedOwner, expiredSeq, horizonSeq, isOldest } = this.#limits;
    if (seq <= expiredSeq || owner === erasedOwner) {
      this.discardedCount += 1;
      return true;
    }
    if (horizonSeq === 0) return false;
    const replacement = this.#replacedBy[source]?.[row] ?? 0;
    const isEnd = replacement === 0;
    if (isEnd && !(isDeleted && isOldest)) return false;
    const lostSeq = isEnd ? seq : replacement;
    if (lostSeq > horizonSeq) return false;
    this.discardedCount += 1;
    if (lostSeq > (this.lowWaters.get(owner) ?? 0)) this.lowWaters.set(owner, lostSeq);
    return true;
  }
}

interface Version {
  readonly owner: number;
  readonly source: number;
  /** Within its segment. */
  readonly row: number;
  readonly seq: number;
  readonly isDeleted: boolean;
}

/** From where on the changes of each owner of a table can be replayed. */
export class LowWater {
  /** At least this holds for every owner. */
  readonly floor: number;
  /** Owners above the floor. */
  readonly #owners: ReadonlyMap<number, number>;

  constructor(floor = 0, owners: Iterable<readonly [number, number]> = []) {
    this.floor = floor;
    this.#owners = new Map(owners);
  }

  of(owner: number): number {
    return this.#owners.get(owner) ?? this.floor;
  }

  entries(): readonly (readonly [number, number])[] {
    return [...this.#owners];
  }

  /** With what a merge has discarded. */
  raisedBy(lowWaters: ReadonlyMap<number, number>): LowWater {
    const owners = new Map(this.#owners);
    for (const [owner, seq] of lowWaters) {
      if (seq > this.of(owner)) owners.set(owner, seq);
    }
    if (owners.size <= OWNERS_MAX) return new LowWater(this.floor, owners);
    let highest = this.floor;
    for (const seq of owners.values()) highest = Math.max(highest, seq);
    return new LowWater(highest);
  }
}
