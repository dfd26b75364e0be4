/**
 * Decides where a merge puts each version, how long replaced versions are kept, and the earliest
 * position from which every change can still be replayed: the low watermark of each owner.
 *
 *     A version becomes obsolete at the seq that replaced it. A tombstone that was never replaced is
 *     obsolete from its own seq.
 *     While that seq is above the retention floor, the seq from which history is kept, the version
 *     is kept. Otherwise, it is discarded.
 *     Once that seq is at or below the flushed seq, neither a crash nor a rollback can make the
 *     version current again. It moves to history, and nothing in history ever changes.
 *     All versions of an erased owner are discarded.
 *
 * - A version replaced less than an hour ago is kept unless it has expired or its owner was
 *   erased, so a client does not lose rows while it is loading a snapshot. This hour is real time,
 *   even if the clock jumps forward while the server is running.
 * - An expired version is always discarded, and does not raise the low watermark. A client that
 *   resumes from an older position misses only rows that are no longer visible.
 * - An erased owner no longer reads anything, so discarding that owner's versions does not raise
 *   the low watermark either.
 * - Discarding any other version raises its owner's low watermark to the seq of the replacement
 *   or, for a tombstone that was never replaced, to its own seq. A client that resumed from a
 *   lower position would miss that change.
 */
import { HOUR_MS } from "../../base/clock.ts";
import type { Seq, SeqGenerator } from "../../base/seq.ts";

/** Marks a source row that is not in the merged segment of current versions. */
export const NOT_CURRENT = 0xffff_ffff;

/**
 * The fate of a version in a merge: it is discarded, or goes to the current segment or the history
 * segment.
 */
export type Fate = "discarded" | "current" | "past";

const KEPT_MS_MIN = HOUR_MS;

/**
 * The maximum number of owners with separate low watermarks. If there are more, all owners share
 * the highest low watermark.
 */
const OWNERS_MAX = 1000;

/** The bounds by which a merge discards versions or moves them to history, as plain data. */
export interface HistoryLimits {
  /**
   * The highest seq of a replacement for which the replaced version is discarded; 0 keeps all
   * versions.
   */
  readonly retentionFloorSeq: number;
  /** The seq up to which versions have expired; 0 if none has. */
  readonly expiredSeq: number;
  /** The owner whose versions are all discarded; undefined if there is none. */
  readonly erasedOwner?: number | undefined;
  /**
   * The seq up to which versions must have become obsolete to move to history; 0 keeps all
   * versions in the current segment.
   */
  readonly settledSeq: number;
  /**
   * For each source segment with current versions, its replaced rows in ascending order, with the
   * seqs of their replacements.
   */
  readonly replaced: readonly { readonly rows: Uint32Array; readonly seqs: Float64Array }[];
}

/** Returns the newest seq up to which replaced versions may be discarded. */
export function retentionFloorSeqOf(ids: Ages, historyMs: number): Seq {
  // After the clock has jumped forward, versions look older than they are, although a client may
  // still be loading them.
  return ids.agedSeq(Math.max(historyMs, KEPT_MS_MIN + ids.jumpedMs(KEPT_MS_MIN))) as Seq;
}

/** Provides the age of seqs. */
export type Ages = Pick<SeqGenerator, "agedSeq" | "jumpedMs">;

/**
 * Decides whether a merge discards each version, keeps it as current or moves it to history.
 * Records how much history each owner loses.
 */
export class History {
  /** For each owner, the seq below which the owner's history is incomplete. */
  readonly lowWatermarks: Map<number, number> = new Map();
  discardedCount = 0;
  /** The number of versions that move from current segments to history. */
  pastCount = 0;
  readonly #limits: HistoryLimits;
  /**
   * For each source, the seq that replaced each row, or 0; undefined if none of its rows was
   * replaced.
   */
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

  /** Whether every row in a row group of a current source is certain to stay current. */
  staysCurrent(source: number, hasTombstones: boolean): boolean {
    const { erasedOwner, expiredSeq, retentionFloorSeq, settledSeq } = this.#limits;
    if (expiredSeq > 0 || erasedOwner !== undefined) return false;
    if (retentionFloorSeq === 0 && settledSeq === 0) return true;
    return this.#replacedBy[source] === undefined && !hasTombstones;
  }

  /** Whether none of the rows in a row group of a history segment is discarded. */
  keepsPast(lowestReplacingSeq: number): boolean {
    const { erasedOwner, expiredSeq, retentionFloorSeq } = this.#limits;
    return expiredSeq === 0 && erasedOwner === undefined && lowestReplacingSeq > retentionFloorSeq;
  }

  /**
   * Returns the seq at which a version in a current source became obsolete; 0 if it is still
   * current.
   */
  obsoleteSince({ isDeleted, row, seq, source }: Omit<Version, "isPast" | "owner">): number {
    const replacement = this.#replacedBy[source]?.[row] ?? 0;
    return replacement === 0 && isDeleted ? seq : replacement;
  }

  /**
   * Decides whether a version is discarded, stays current or moves to history.
   * @param obsoleteSince The seq at which the version became obsolete: the result of {@linkcode
   *   obsoleteSince} or, for a version from history, the seq recorded there.
   */
  fateOf({ isPast, owner, seq }: Version, obsoleteSince: number): Fate {
    const { erasedOwner, expiredSeq, retentionFloorSeq, settledSeq } = this.#limits;
    if (seq <= expiredSeq || owner === erasedOwner) return "discarded";
    if (obsoleteSince === 0) return "current";
    if (obsoleteSince <= retentionFloorSeq) return "discarded";
    return isPast || obsoleteSince <= settledSeq ? "past" : "current";
  }

  /** Records where the merge has put a version. Must be called once per version. */
  note(
    { owner, seq }: Version,
    { fate, obsoleteSince }: { fate: Fate; obsoleteSince: number },
  ): void {
    const { erasedOwner, expiredSeq } = this.#limits;
    if (fate === "past") this.pastCount += 1;
    if (fate !== "discarded") return;
    this.discardedCount += 1;
    if (seq <= expiredSeq || owner === erasedOwner) return;
    if (obsoleteSince > (this.lowWatermarks.get(owner) ?? 0))
      this.lowWatermarks.set(owner, obsoleteSince);
  }
}

interface Version {
  readonly owner: number;
  readonly source: number;
  /** The position of the row in its segment. */
  readonly row: number;
  readonly seq: number;
  readonly isDeleted: boolean;
  /** Whether the version comes from a history segment. */
  readonly isPast: boolean;
}

/** Keeps, for each owner of a table, the seq from which all changes can be replayed. */
export class LowWatermark {
  /** A lower bound on the low watermarks of all owners. */
  readonly floor: number;
  /** The low watermarks of the owners whose low watermark is above the floor. */
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

  /** Returns the low watermarks after a merge has discarded versions. */
  raisedBy(lowWatermarks: ReadonlyMap<number, number>): LowWatermark {
    const owners = new Map(this.#owners);
    for (const [owner, seq] of lowWatermarks) {
      if (seq > this.of(owner)) owners.set(owner, seq);
    }
    if (owners.size <= OWNERS_MAX) return new LowWatermark(this.floor, owners);
    let highest = this.floor;
    for (const seq of owners.values()) highest = Math.max(highest, seq);
    return new LowWatermark(highest);
  }
}
