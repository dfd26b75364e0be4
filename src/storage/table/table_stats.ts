/**
 * Counts and sizes of a table, from what is in memory anyway, so that planning a statement or
 * looking at a table costs no reading of rows; only a count of live rows may read, and is kept.
 */
import type { FlushedStats, ListedSegment, TableStats } from "../contract/store.ts";
import type { Memtable } from "../memtable/memtable.ts";
import type { OpenSegment } from "./open_segment.ts";
import { type StoredTable, unlessDamaged } from "./table.ts";

/**
 * Live rows at a seq; of one owner, or of all when `owner` is undefined. The count of all is taken
 * once and then kept by the commits, so `upTo` must be the visible seq.
 */
export function countLiveRows(table: StoredTable, bounds: Bounds): number {
  const { after, owner } = bounds;
  // Rows that expire are in no commit.
  const isKept = owner === undefined && after === 0;
  if (isKept && table.liveRows !== undefined) return table.liveRows;
  let count = 0;
  for (const segment of table.segments) count += liveInSegment(segment, bounds);
  for (const memtable of table.memtables()) count += liveInMemtable(memtable, bounds);
  if (isKept) table.liveRows = count;
  return count;
}

/** Owners of whose rows a table may hold versions, ascending. */
export function ownersOf(table: StoredTable): readonly number[] {
  const owners = new Set<number>();
  for (const segment of table.segments) {
    segment.guard(() => {
      const { reader } = segment;
      for (let i = 0; i < reader.ownerCount; i += 1) owners.add(reader.ownerAt(i).owner);
    });
  }
  for (const memtable of table.memtables()) {
    for (const owner of memtable.partitions.keys()) owners.add(owner);
  }
  return [...owners].toSorted((left, right) => left - right);
}

/** Row groups that are looked at: enough to see how far the values of a column lie apart. */
const SPAN_GROUPS_MAX = 64;

/** The segments of a table, for those who look at a store. */
export function listedSegments({ segments }: StoredTable): ListedSegment[] {
  return segments.map(({ entry }): ListedSegment => {
    const { quarantined, home, ...rest } = entry;
    const { deletionGeneration: _, deletionHash: _hash, isGivenUp: _lost, ...known } = rest;
    const status = quarantined ? "quarantined" : "live";
    return home === undefined
      ? { ...known, status }
      : { ...known, storageId: home.storageId, status };
  });
}

/**
 * From the smallest to the largest value that zone maps know of; undefined where one is missing.
 */
export function spanOfColumn(table: StoredTable, columnId: number): number | undefined {
  let min = Infinity;
  let max = -Infinity;
  let groupsLeft = SPAN_GROUPS_MAX;
  for (const segment of table.segments) {
    const isKnown = segment.guard(() => {
      const { reader } = segment;
      const count = Math.min(reader.groupCount, groupsLeft);
      groupsLeft -= count;
      for (let group = 0; group < count; group += 1) {
        const zone = reader.zone(columnId, group);
        if (zone === undefined) return false;
        min = Math.min(min, zone.min);
        max = Math.max(max, zone.max);
      }
      return true;
    });
    if (!isKnown) return undefined;
    if (groupsLeft === 0) break;
  }
  return max < min ? undefined : max - min + 1;
}

export function tableStats(
  table: StoredTable,
  bounds: { upTo: number; after: number },
): TableStats {
  let bytes = 0;
  let minSeq = Infinity;
  let maxSeq = 0;
  for (const { entry } of table.segments) {
    bytes += entry.bytes;
    minSeq = Math.min(minSeq, entry.minSeq);
    maxSeq = Math.max(maxSeq, entry.maxSeq);
  }
  let unflushedVersions = 0;
  let memoryBytes = 0;
  for (const memtable of table.memtables()) {
    memoryBytes += memtable.bytes;
    if (memtable.rowCount === 0) continue;
    unflushedVersions += memtable.rowCount;
    minSeq = Math.min(minSeq, memtable.seqs[0] ?? 0);
    maxSeq = Math.max(maxSeq, memtable.lastSeq);
  }
  let liveRows: number | undefined;
  unlessDamaged(() => {
    liveRows = countLiveRows(table, { owner: undefined, ...bounds });
  });
  return {
    liveRows,
    unflushedVersions,
    segments: table.segments.length,
    bytes,
    memoryBytes,
    minSeq: minSeq === Infinity ? 0 : minSeq,
    maxSeq,
    lastFlushedAtMs: table.progress.lastFlushedAtMs,
  };
}

export function flushedStats(table: StoredTable, owner: number | undefined): FlushedStats {
  let segments = 0;
  let versions = 0;
  let minSeq = Infinity;
  let maxSeq = 0;
  for (const segment of table.segments) {
    const found = owner === undefined ? wholeSpan(segment) : ownSpan(segment, owner);
    if (found === undefined) continue;
    segments += 1;
    versions += found.versions;
    minSeq = Math.min(minSeq, found.minSeq);
    maxSeq = Math.max(maxSeq, found.maxSeq);
  }
  let unflushedVersions = 0;
  for (const { partitions, rowCount } of table.memtables()) {
    unflushedVersions += owner === undefined ? rowCount : (partitions.get(owner)?.count ?? 0);
  }
  return {
    segments,
    versions,
    minSeq: segments === 0 ? 0 : minSeq,
    maxSeq,
    unflushedVersions,
    lastFlushedAtMs: table.progress.lastFlushedAtMs,
    isDamaged: table.segments.some(({ entry }) => entry.quarantined),
  };
}

interface Span {
  readonly versions: number;
  readonly minSeq: number;
  readonly maxSeq: number;
}

function wholeSpan({ entry: { maxSeq, minSeq, rowCount } }: OpenSegment): Span {
  return { versions: rowCount, minSeq, maxSeq };
}

function ownSpan(segment: OpenSegment, owner: number): Span | undefined {
  if (segment.entry.quarantined) return undefined;
  return segment.guard(() => {
    const { reader } = segment;
    const rows = reader.ownerRange(owner);
    if (rows === undefined || rows.start === rows.end) return undefined;
    // The rows of an owner ascend by seq.
    const [minSeq, maxSeq] = [seqAt(reader, rows.start), seqAt(reader, rows.end - 1)];
    return { versions: rows.end - rows.start, minSeq, maxSeq };
  });
}

function seqAt(reader: OpenSegment["reader"], row: number): number {
  const group = reader.groupOf(row);
  return reader.seqs(group)[row - reader.groupStart(group)] ?? 0;
}

interface Bounds {
  readonly owner: number | undefined;
  readonly upTo: number;
  /** Rows up to here have expired; 0 for none. */
  readonly after: number;
}

function liveInMemtable(memtable: Memtable, { after, owner, upTo }: Bounds): number {
  const { owners, seqs, deleted, replacedBy, rowCount } = memtable;
  let count = 0;
  const partition = owner === undefined ? undefined : memtable.partitions.get(owner);
  if (owner !== undefined && partition === undefined) return 0;
  const listed = partition?.count ?? rowCount;
  for (let index = 0; index < listed; index += 1) {
    const row = partition === undefined ? index : (partition.rows[index] ?? 0);
    const seq = seqs[row] ?? 0;
    if (seq > upTo || seq <= after || deleted[row] === 1) continue;
    if (owner !== undefined && owners[row] !== owner) continue;
    const replacement = replacedBy[row] ?? 0;
    if (replacement === 0 || replacement > upTo) count += 1;
  }
  return count;
}

function liveInSegment(segment: OpenSegment, { after, owner, upTo }: Bounds): number {
  if (segment.entry.maxSeq <= after) return 0;
  return segment.guard(() => {
    const { reader, deletions } = segment;
    const everything = { start: 0, end: reader.rowCount };
    const span = owner === undefined ? everything : reader.ownerRange(owner);
    if (span === undefined || span.start === span.end) return 0;
    let count = 0;
    const lastGroup = reader.groupOf(span.end - 1);
    for (let group = reader.groupOf(span.start); group <= lastGroup; group += 1) {
      const groupStart = reader.groupStart(group);
      const start = Math.max(span.start, groupStart);
      const end = Math.min(span.end, groupStart + reader.groupRows(group));
      const hasExpired = segment.entry.minSeq <= after;
      if (!hasExpired && !reader.hasTombstones(group)) {
        count += end - start - deletions.countReplaced(start, end, upTo);
        continue;
      }
      const isHidden = reader.deleted(group).slice(start - groupStart, end - groupStart);
      deletions.markReplaced(start, upTo, isHidden);
      const seqs = hasExpired ? reader.seqs(group).subarray(start - groupStart) : undefined;
      for (let index = 0; index < isHidden.length; index += 1) {
        if (isHidden[index] === 1) continue;
        if (seqs === undefined || (seqs[index] ?? 0) > after) count += 1;
      }
    }
    return count;
  });
}
