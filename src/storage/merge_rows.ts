/**
 * Neighbouring segments as the rows of one: for each owner, ascending, the rows of each segment,
 * oldest first. Since the seqs of neighbours do not overlap, that is ascending (owner, seq).
 *
 * One row group of the output is in memory at a time.
 */
import { assert } from "../base/assert.ts";
import { ROW_GROUP_ROWS_MAX } from "../base/limits.ts";
import { slice, type Value, type Vector, valueAt, vectorFromValues } from "../types/mod.ts";
import { convertVector } from "./convert.ts";
import type { OpenSegment } from "./open_segment.ts";
import { groupEnd } from "./segment/group_size.ts";
import {
  type SegmentOutline,
  type SegmentRows,
  type SegmentSummary,
  SegmentWriter,
} from "./segment/writer.ts";
import type { StoredColumn } from "./store.ts";

const NO_BYTES: Uint8Array = new Uint8Array(0);

/** Rows of one row group of one source. */
interface Span {
  readonly owner: number;
  readonly source: number;
  readonly group: number;
  /** Counted from the start of the group. */
  readonly start: number;
  readonly end: number;
}

export interface MergeSource {
  readonly segments: readonly OpenSegment[];
  readonly columns: readonly StoredColumn[];
  /** For each segment, filled in: where each of its rows is in the output. */
  readonly newRows: readonly Uint32Array[];
}

/** The bytes of the merged segment in order; many pieces are empty, to let other work run. */
export function* mergedPieces(
  source: MergeSource,
  outline: SegmentOutline,
): Generator<Uint8Array, SegmentSummary> {
  const writer = new SegmentWriter(outline);
  let outRow = 0;
  for (const spans of spanGroups(source.segments)) {
    noteNewRows(source, spans, outRow);
    const rowCount = spans.reduce((sum, { start, end }) => sum + end - start, 0);
    outRow += rowCount;
    const vectors: Vector[] = [];
    for (const column of source.columns) {
      vectors.push(mergedColumn(source.segments, spans, column));
      yield NO_BYTES;
    }
    const rows = mergedRows(source.segments, spans, { vectors, rowCount });
    for (let from = 0; from < rowCount; ) {
      const to = groupEnd(vectors, from, rowCount);
      yield* writer.group(slicedRows(rows, from, to));
      from = to;
    }
  }
  return yield* writer.finish();
}

/** All spans in the order of the output, as many at a time as fit a row group. */
function* spanGroups(segments: readonly OpenSegment[]): Generator<Span[]> {
  let spans: Span[] = [];
  let room = ROW_GROUP_ROWS_MAX;
  for (const span of allSpans(segments)) {
    let { start } = span;
    while (start < span.end) {
      const end = Math.min(span.end, start + room);
      spans.push({ ...span, start, end });
      room -= end - start;
      start = end;
      if (room > 0) continue;
      yield spans;
      spans = [];
      room = ROW_GROUP_ROWS_MAX;
    }
  }
  if (spans.length > 0) yield spans;
}

/** Each owner's rows, source by source, cut at the bounds of row groups. */
function* allSpans(segments: readonly OpenSegment[]): Generator<Span> {
  const next = segments.map(() => 0);
  for (;;) {
    const heads = segments.map(({ reader }, source) => {
      const index = next[source] ?? 0;
      return index < reader.ownerCount ? reader.ownerAt(index) : undefined;
    });
    const owner = heads.reduce((least, head) => Math.min(least, head?.owner ?? Infinity), Infinity);
    if (owner === Infinity) return;
    for (const [source, head] of heads.entries()) {
      if (head?.owner !== owner) continue;
      next[source] = (next[source] ?? 0) + 1;
      const reader = segments[source]?.reader;
      assert(reader !== undefined, "a head has its segment");
      for (let row = head.start; row < head.end; ) {
        const group = reader.groupOf(row);
        const groupStart = reader.groupStart(group);
        const end = Math.min(head.end, groupStart + reader.groupRows(group));
        yield { owner, source, group, start: row - groupStart, end: end - groupStart };
        row = end;
      }
    }
  }
}

function noteNewRows(
  { segments, newRows }: MergeSource,
  spans: readonly Span[],
  outRow: number,
): void {
  let row = outRow;
  for (const { source, group, start, end } of spans) {
    const groupStart = segments[source]?.reader.groupStart(group) ?? 0;
    const into = newRows[source];
    assert(into !== undefined, "every source has its rows noted");
    for (let index = start; index < end; index += 1) {
      into[groupStart + index] = row;
      row += 1;
    }
  }
}

function mergedColumn(
  segments: readonly OpenSegment[],
  spans: readonly Span[],
  { columnId, type, missing }: StoredColumn,
): Vector {
  const values: Value[] = [];
  for (const { source, group, start, end } of spans) {
    const segment = segments[source];
    const stored = segment?.reader.columnRows(columnId, group, { start, end });
    const storedType = segment?.columnType(columnId);
    if (stored === undefined || storedType === undefined) {
      for (let index = start; index < end; index += 1) values.push(missing);
      continue;
    }
    const vector = convertVector(stored, storedType, type);
    for (let index = 0; index < vector.length; index += 1) values.push(valueAt(vector, index));
  }
  return vectorFromValues(type, values);
}

function mergedRows(
  segments: readonly OpenSegment[],
  spans: readonly Span[],
  { vectors, rowCount }: { vectors: readonly Vector[]; rowCount: number },
): SegmentRows {
  const rows = {
    vectors,
    owners: new Float64Array(rowCount),
    seqs: new Float64Array(rowCount),
    prevs: new Float64Array(rowCount),
    commitSeqs: new Float64Array(rowCount),
    deleted: new Uint8Array(rowCount),
  };
  let at = 0;
  for (const { owner, source, group, start, end } of spans) {
    const reader = segments[source]?.reader;
    assert(reader !== undefined, "a span has its segment");
    rows.owners.fill(owner, at, at + end - start);
    rows.seqs.set(reader.seqs(group).subarray(start, end), at);
    rows.prevs.set(reader.prevs(group).subarray(start, end), at);
    rows.commitSeqs.set(reader.commitSeqs(group).subarray(start, end), at);
    rows.deleted.set(reader.deleted(group).subarray(start, end), at);
    at += end - start;
  }
  return rows;
}

function slicedRows(rows: SegmentRows, from: number, to: number): SegmentRows {
  return {
    vectors: rows.vectors.map((vector) => slice(vector, from, to)),
    owners: rows.owners.subarray(from, to),
    seqs: rows.seqs.subarray(from, to),
    prevs: rows.prevs.subarray(from, to),
    commitSeqs: rows.commitSeqs.subarray(from, to),
    deleted: rows.deleted.subarray(from, to),
  };
}
