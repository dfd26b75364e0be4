/**
 * Computes row counts and sizes of a table from data in memory, so that planning a statement or
 * inspecting a table reads no rows. Only counting live rows may read rows, and its result is
 * cached.
 */
import type { FlushedStats, ListedSegment, TableStats } from "../contract/store_figures.ts";
import type { MemPartition } from "../memtable/mem_partition.ts";
import { BLOCK_ROWS, type Memtable } from "../memtable/memtable.ts";
import type { OpenSegment } from "./open_segment.ts";
import { type StoredTable, unlessDamaged } from "./table.ts";

/**
 * Counts the rows live at a seq, for one owner or, if `owner` is undefined, for all owners. The
 * total over all owners is counted once and then updated by each commit, so `upTo` must be the
 * visible seq.
 */
export function countLiveRows(table: StoredTable, bounds: LiveRowBounds): number {
  const { after, owner } = bounds;
  // Rows expire without a commit, so the total of a table with a TTL cannot be cached.
  const isKept = owner === undefined && after === 0;
  if (isKept && table.liveRows !== undefined) return table.liveRows;
  let count = 0;
  for (const segment of table.segments) count += liveInSegment(segment, bounds);
  for (const segment of table.historyAt(bounds.upTo)) count += liveInHistory(segment, bounds);
  for (const memtable of table.memtables()) {
    const { partitions } = memtable;
    const own = owner === undefined ? partitions.values() : [partitions.get(owner)];
    for (const partition of own) {
      if (partition !== undefined) count += liveInPartition(memtable, partition, bounds);
    }
  }
  if (isKept) table.liveRows = count;
  return count;
}

/** Returns the owners who may have row versions in a table, in ascending order. */
export function ownersOf(table: StoredTable): readonly number[] {
  const owners = new Set<number>();
  for (const segment of table.allSegments) {
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

/**
 * The maximum number of row groups to sample, which is enough to estimate how far apart the values
 * of a column are.
 */
const SPAN_GROUPS_MAX = 64;

/** Returns the properties of a table's segments that are shown to users. */
export function listedSegments({ allSegments }: StoredTable): ListedSegment[] {
  return allSegments.map(({ entry }): ListedSegment => {
    const { quarantined, history, home, ...rest } = entry;
    const { deletionGeneration: _, deletionHash: _hash, isGivenUp: _lost, ...known } = rest;
    const status = quarantined ? "quarantined" : "live";
    const kind = history === undefined ? "current" : "history";
    return home === undefined
      ? { ...known, kind, status }
      : { ...known, kind, storageId: home.storageId, status };
  });
}

/**
 * Returns the smallest and the largest value in the zone maps of row groups that have a live row;
 * undefined if a zone map is missing.
 */
export function spanOfColumn(
  table: StoredTable,
  { columnId, upTo }: { readonly columnId: number; readonly upTo: number },
): number | undefined {
  let min = Infinity;
  let max = -Infinity;
  let groupsLeft = SPAN_GROUPS_MAX;
  for (const segment of table.segments) {
    const isKnown = segment.guard(() => {
      const { reader } = segment;
      for (let group = 0; group < reader.groupCount && groupsLeft > 0; group += 1) {
        const span = { start: reader.groupStart(group), end: reader.groupStart(group + 1) };
        if (segment.livePages.firstAlive(span, upTo) === span.end) continue;
        groupsLeft -= 1;
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
  for (const { entry } of table.allSegments) {
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
    segments: table.allSegments.length,
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
  for (const segment of table.allSegments) {
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
    isDamaged: table.allSegments.some(({ entry }) => entry.quarantined),
    isCountable: table.segments.every(({ entry }) => !entry.quarantined),
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
    // An owner's rows ascend by seq.
    const [minSeq, maxSeq] = [seqAt(reader, rows.start), seqAt(reader, rows.end - 1)];
    return { versions: rows.end - rows.start, minSeq, maxSeq };
  });
}

function seqAt(reader: OpenSegment["reader"], row: number): number {
  const group = reader.groupOf(row);
  return reader.seqs(group)[row - reader.groupStart(group)] ?? 0;
}

interface LiveRowBounds {
  readonly owner: number | undefined;
  readonly upTo: number;
  /** The seq up to which rows have expired; 0 if none has. */
  readonly after: number;
}

function liveInPartition(
  memtable: Memtable,
  partition: MemPartition,
  { after, upTo }: Pick<LiveRowBounds, "after" | "upTo">,
): number {
  const { deleted, replacedBy } = memtable;
  const end = memtable.indexAfter(partition, upTo);
  let index = memtable.indexAfter(partition, after);
  let count = 0;
  while (index < end) {
    const stop = Math.min((index | (BLOCK_ROWS - 1)) + 1, end);
    const isBlock = stop - index === BLOCK_ROWS;
    const live = isBlock ? memtable.liveRowsOf(partition, index / BLOCK_ROWS, upTo) : undefined;
    if (live !== undefined) {
      count += live.length;
      index = stop;
    }
    for (; index < stop; index += 1) {
      const row = partition.rows[index] ?? 0;
      const replacement = replacedBy[row] ?? 0;
      if (deleted[row] === 0 && (replacement === 0 || replacement > upTo)) count += 1;
    }
  }
  return count;
}

function liveInSegment(segment: OpenSegment, { after, owner, upTo }: LiveRowBounds): number {
  if (segment.entry.maxSeq <= after) return 0;
  return segment.guard(() => {
    const { livePages, reader } = segment;
    const everything = { start: 0, end: reader.rowCount };
    const span = owner === undefined ? everything : reader.ownerRange(owner);
    if (span === undefined || span.start === span.end) return 0;
    if (segment.entry.minSeq > after) return livePages.countAlive(span, upTo);
    let count = 0;
    let start = livePages.firstAlive(span, upTo);
    while (start < span.end) {
      const group = reader.groupOf(start);
      const end = Math.min(span.end, reader.groupStart(group + 1), livePages.endOfPage(start));
      const seqs = reader.seqs(group).subarray(start - reader.groupStart(group));
      const alive = livePages.aliveRows({ start, end }, upTo);
      for (let index = 0; index < (alive?.length ?? end - start); index += 1) {
        if ((seqs[alive === undefined ? index : (alive[index] ?? 0)] ?? 0) > after) count += 1;
      }
      start = livePages.firstAlive({ start: end, end: span.end }, upTo);
    }
    return count;
  });
}

/** Counts the rows of a history segment that were live at a seq. */
function liveInHistory(segment: OpenSegment, { after, owner, upTo }: LiveRowBounds): number {
  return segment.guard(() => {
    const { reader } = segment;
    const everything = { start: 0, end: reader.rowCount };
    const span = owner === undefined ? everything : reader.ownerRange(owner);
    if (span === undefined) return 0;
    let count = 0;
    for (let row = span.start; row < span.end; ) {
      const group = reader.groupOf(row);
      const groupStart = reader.groupStart(group);
      const end = Math.min(span.end, groupStart + reader.groupRows(group));
      const replacing = reader.replacingSeqs(group);
      const seqs = reader.seqs(group);
      const deleted = reader.deleted(group);
      for (; row < end; row += 1) {
        const at = row - groupStart;
        const seq = seqs[at] ?? 0;
        const isWithin = seq > after && seq <= upTo && (replacing[at] ?? 0) > upTo;
        if (isWithin && deleted[at] === 0) count += 1;
      }
    }
    return count;
  });
}
