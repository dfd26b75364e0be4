/**
 * Finds states of a partition that contain each commit either completely or not at all.
 *
 * A seq in the middle of a commit is not a state that any reader has seen. The rows of a commit
 * have consecutive seqs, and each version records the last seq of its commit. The newest version
 * up to a seq therefore tells whether that seq lies within a commit.
 */
import type { Memtable } from "../memtable/memtable.ts";
import type { OpenSegment } from "../table/open_segment.ts";
import type { StoredTable } from "../table/table.ts";
import { ownerSpan } from "./segment_scan.ts";

interface PartitionBound {
  readonly owner: number;
  readonly upTo: number;
}

/** One owner's versions in a memtable or segment, up to a seq, in ascending order. */
interface OwnVersions {
  readonly count: number;
  seqAt(index: number): number;
  commitSeqAt(index: number): number;
}

/**
 * Returns the highest seq, up to a bound, at which a partition contains only complete commits.
 * Discarded versions are ignored.
 */
export function wholeCommitsUpTo(table: StoredTable, bound: PartitionBound): number {
  const places = versionsUpTo(table, bound);
  let newestSeq = 0;
  let commitSeq = 0;
  for (const place of places) {
    const seq = place.seqAt(place.count - 1);
    if (seq <= newestSeq) continue;
    newestSeq = seq;
    commitSeq = place.commitSeqAt(place.count - 1);
  }
  if (commitSeq <= bound.upTo) return bound.upTo;
  let firstSeq = newestSeq;
  for (const place of places) {
    const index = firstOfCommit(place, commitSeq);
    if (index < place.count) firstSeq = Math.min(firstSeq, place.seqAt(index));
  }
  return firstSeq - 1;
}

/**
 * Returns the seq of the newest commit, up to a bound, that changed a partition; 0 if there is
 * none. Discarded versions are ignored.
 */
export function lastCommitUpTo(table: StoredTable, bound: PartitionBound): number {
  let commitSeq = 0;
  for (const place of versionsUpTo(table, bound)) {
    commitSeq = Math.max(commitSeq, place.commitSeqAt(place.count - 1));
  }
  return Math.min(commitSeq, bound.upTo);
}

/** Returns the index of a commit's first version; the number of versions if there is none. */
function firstOfCommit(versions: OwnVersions, commitSeq: number): number {
  let low = 0;
  let high = versions.count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (versions.commitSeqAt(middle) < commitSeq) low = middle + 1;
    else high = middle;
  }
  return low;
}

function versionsUpTo(table: StoredTable, bound: PartitionBound): OwnVersions[] {
  const inMemory = table.memtables().map((memtable) => inMemtable(memtable, bound));
  const stored = table.allSegments
    .filter(({ entry }) => entry.minSeq <= bound.upTo)
    .map((segment) => inSegment(segment, bound));
  return [...inMemory, ...stored].filter(({ count }) => count > 0);
}

function inMemtable(memtable: Memtable, { owner, upTo }: PartitionBound): OwnVersions {
  const partition = memtable.partitions.get(owner);
  const { commitSeqs, seqs } = memtable;
  const rowOf = (index: number): number => partition?.rows[index] ?? 0;
  return {
    count: partition === undefined ? 0 : memtable.indexAfter(partition, upTo),
    seqAt: (index) => seqs[rowOf(index)] ?? 0,
    commitSeqAt: (index) => commitSeqs[rowOf(index)] ?? 0,
  };
}

function inSegment(segment: OpenSegment, { owner, upTo }: PartitionBound): OwnVersions {
  const span = segment.guard(() => ownerSpan(segment.reader, { owner, after: 0, seqMax: upTo }));
  return {
    count: span.end - span.start,
    seqAt: (index) => segment.guard(() => segment.reader.seqAt(span.start + index)),
    commitSeqAt: (index) => segment.guard(() => segment.reader.commitSeqAt(span.start + index)),
  };
}
