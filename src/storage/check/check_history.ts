/**
 * Checks that the versions of a table refer to each other correctly, across its segments and
 * history segments:
 *
 *     Each version is in one segment.
 *     A version in history was replaced at or below the flushed seq by a version that names it, or
 *     it is a tombstone, which may name itself.
 *     A version that another version names as its predecessor is recorded as replaced by it.
 *     A version that another version names exists if it is above the low watermark of its owner.
 *
 * The last two rules apply only if every segment can be read, and the last rule only if nothing
 * expires. Owners whose rows are being erased are excluded.
 */
import { assert, defined } from "../../base/assert.ts";
import type { Disk } from "../../base/disk.ts";
import type { SegmentEntry, TableState } from "../contract/manifest.ts";
import { DeletionVector } from "../deletions/deletion_vector.ts";
import { type DataPaths, deletionVectorPath, segmentPath } from "../directory/file_names.ts";
import type { ChunkCache } from "../segment/chunk_cache.ts";
import type { RowSpan, SegmentReader } from "../segment/reader.ts";
import { LowWatermark } from "../table/history.ts";
import { openListedSegment, readListedDeletions } from "../table/listed_files.ts";

export interface HistoryCheckOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  /** All segments of the table. Each segment must be intact. */
  readonly entries: readonly SegmentEntry[];
  readonly state: TableState | undefined;
  readonly mayExpire: boolean;
  readonly erasedOwners: ReadonlySet<number>;
  readonly cache: ChunkCache;
}

/** The first inconsistency found in a segment. */
export interface HistoryFault {
  readonly entry: SegmentEntry;
  readonly what: string;
}

/**
 * Returns the first inconsistency of each segment.
 *
 * @throws {CorruptionError} @throws {DiskError}
 */
export function historyFaults(options: HistoryCheckOptions): HistoryFault[] {
  const places: CheckedPlace[] = [];
  try {
    for (const entry of options.entries) places.push(new CheckedPlace(options, entry));
    const check = new HistoryCheck(places, options);
    return places.flatMap((place) => {
      const what = check.faultIn(place);
      return what === undefined ? [] : [{ entry: place.entry, what }];
    });
  } finally {
    for (const place of places) place.close();
  }
}

interface CheckedVersion {
  readonly owner: number;
  readonly seq: number;
  readonly prev: number;
  /** The seq at which the version became obsolete; 0 while the version is current. */
  readonly obsoleteSince: number;
  readonly isDeleted: boolean;
}

class HistoryCheck {
  readonly #places: readonly CheckedPlace[];
  readonly #flushedSeq: number;
  readonly #lowWatermark: LowWatermark;
  readonly #mayExpire: boolean;
  readonly #erasedOwners: ReadonlySet<number>;

  constructor(
    places: readonly CheckedPlace[],
    { erasedOwners, mayExpire, state }: Omit<HistoryCheckOptions, "cache">,
  ) {
    this.#places = places;
    this.#flushedSeq = state?.flushedSeq ?? 0;
    this.#lowWatermark = new LowWatermark(state?.lowWaterSeq, state?.ownerLowWaters);
    this.#mayExpire = mayExpire;
    this.#erasedOwners = erasedOwners;
  }

  faultIn(place: CheckedPlace): string | undefined {
    for (const version of place.versions()) {
      if (this.#erasedOwners.has(version.owner)) continue;
      const what = this.#fault(place, version);
      if (what !== undefined) return `version ${version.seq} of owner ${version.owner} ${what}`;
    }
    return undefined;
  }

  #fault(place: CheckedPlace, version: CheckedVersion): string | undefined {
    const { owner, prev, seq } = version;
    if (place.isHistory) {
      const what = this.#faultOfPast(place, version);
      if (what !== undefined) return what;
    }
    if (prev === 0) return undefined;
    const before = this.#find(owner, prev);
    if (before === undefined) {
      if (this.#mayBeGone(owner, prev)) return undefined;
      return `replaces version ${prev}, which is missing`;
    }
    const isEnd = before.isHistory && before.isTombstone && before.obsoleteSince === prev;
    if (isEnd || before.obsoleteSince === seq) return undefined;
    const told = before.obsoleteSince === 0 ? "current" : `replaced by ${before.obsoleteSince}`;
    return `replaces version ${prev}, which is recorded as ${told}`;
  }

  #faultOfPast(
    place: CheckedPlace,
    { isDeleted, obsoleteSince, owner, seq }: CheckedVersion,
  ): string | undefined {
    if (obsoleteSince > this.#flushedSeq) {
      return `was replaced by ${obsoleteSince}, which is above the flushed _seq ${this.#flushedSeq}`;
    }
    if (obsoleteSince < seq || (obsoleteSince === seq && !isDeleted))
      return "is both in the history and current";
    for (const other of this.#places) {
      if (other !== place && other.rowOf(owner, seq) !== -1) {
        return `is also in segment ${other.entry.segmentId}`;
      }
    }
    if (obsoleteSince === seq) return undefined;
    const next = this.#find(owner, obsoleteSince);
    if (next === undefined) {
      if (this.#mayBeGone(owner, obsoleteSince)) return undefined;
      return `was replaced by version ${obsoleteSince}, which is missing`;
    }
    if (next.prev === seq) return undefined;
    return (
      `was replaced by version ${obsoleteSince}, which claims to replace ` +
      (next.prev === 0 ? "none" : next.prev)
    );
  }

  #find(owner: number, seq: number): FoundVersion | undefined {
    for (const place of this.#places) {
      const row = place.rowOf(owner, seq);
      if (row !== -1) return place.at(row);
    }
    return undefined;
  }

  /**
   * Whether a version may have been discarded, judged by its owner's low watermark. Discarding a
   * version raises the watermark to at least its seq.
   */
  #mayBeGone(owner: number, seq: number): boolean {
    return this.#mayExpire || seq <= this.#lowWatermark.of(owner);
  }
}

interface FoundVersion {
  readonly prev: number;
  readonly obsoleteSince: number;
  readonly isTombstone: boolean;
  readonly isHistory: boolean;
}

/** An open segment whose versions are looked up by seq. */
class CheckedPlace {
  readonly entry: SegmentEntry;
  readonly #reader: SegmentReader;
  readonly #deletions: DeletionVector;
  /**
   * The owner of the previous lookup, and that owner's rows. They are kept because the next lookup
   * usually concerns the same owner's next version.
   */
  #owner = -1;
  #rows: RowSpan | undefined;
  #lastRow = -1;

  constructor({ cache, disk, paths }: HistoryCheckOptions, entry: SegmentEntry) {
    this.entry = entry;
    const vectorPath = deletionVectorPath(paths, entry);
    this.#deletions =
      entry.deletionGeneration === 0
        ? new DeletionVector(entry)
        : readListedDeletions(disk, vectorPath, entry).deletions;
    this.#reader = openListedSegment(disk, segmentPath(paths, entry), { entry, cache });
  }

  get isHistory(): boolean {
    return this.#reader.isHistory;
  }

  /** Returns the row of a version in this segment; -1 if the version is not in the segment. */
  rowOf(owner: number, seq: number): number {
    if (seq < this.entry.minSeq || seq > this.entry.maxSeq) return -1;
    if (owner !== this.#owner) {
      this.#owner = owner;
      this.#rows = this.#reader.ownerRange(owner);
      this.#lastRow = -1;
    }
    if (this.#rows === undefined) return -1;
    const next = this.#lastRow + 1;
    const isNext =
      next > this.#rows.start && next < this.#rows.end && this.#reader.seqAt(next) === seq;
    const row = isNext ? next : this.#reader.firstRowAtOrAbove(this.#rows, seq);
    this.#lastRow = row;
    return row < this.#rows.end && this.#reader.seqAt(row) === seq ? row : -1;
  }

  at(row: number): FoundVersion {
    return {
      prev: this.#reader.prevAt(row),
      obsoleteSince: this.#obsoleteSince(row),
      isTombstone: this.#reader.isTombstone(row),
      isHistory: this.isHistory,
    };
  }

  /** Yields all versions, ordered by owner and seq. */
  *versions(): Generator<CheckedVersion> {
    const reader = this.#reader;
    let ownerIndex = -1;
    let owned: RowSpan & { owner: number } = { owner: 0, start: 0, end: 0 };
    for (let group = 0; group < reader.groupCount; group += 1) {
      const start = reader.groupStart(group);
      const seqs = reader.seqs(group);
      const prevs = reader.prevs(group);
      const deleted = reader.deleted(group);
      for (const [index, seq] of seqs.entries()) {
        const row = start + index;
        if (row === owned.end) {
          ownerIndex += 1;
          owned = reader.ownerAt(ownerIndex);
        }
        yield {
          owner: owned.owner,
          seq,
          prev: defined(prevs[index], "history check: row has no prev"),
          obsoleteSince: this.#obsoleteSince(row),
          isDeleted: deleted[index] === 1,
        };
      }
    }
    assert(
      ownerIndex + 1 === reader.ownerCount,
      "history check: segment has rows beyond its last owner",
    );
  }

  close(): void {
    this.#reader.close();
  }

  #obsoleteSince(row: number): number {
    return this.isHistory ? this.#reader.replacingSeqAt(row) : this.#deletions.replacedBy(row);
  }
}
