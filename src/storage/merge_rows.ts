/**
 * Neighbouring segments as the rows of one: for each owner, ascending, the rows of each segment,
 * oldest first, without what history need not keep. Since the seqs of neighbours do not overlap,
 * that is ascending (owner, seq).
 *
 * One row group of the output is in memory at a time, cut short where its text and bytes are many.
 */
import { assert } from "../base/assert.ts";
import { slice, type Value, type Vector, valueAt, vectorFromValues } from "../types/mod.ts";
import { DISCARDED } from "./history.ts";
import { countOf, type Span, type SpanSource, spanGroups, storedRows } from "./merge_spans.ts";
import { groupEnd } from "./segment/group_size.ts";
import type { SegmentReader } from "./segment/reader.ts";
import {
  type SegmentEnd,
  type SegmentOutline,
  type SegmentRows,
  SegmentWriter,
} from "./segment/writer.ts";
import type { StoredColumn } from "./store.ts";

const NO_BYTES: Uint8Array = new Uint8Array(0);

/** Of a merge that left every row out: no segment. */
const EMPTY: SegmentEnd = { bytes: 0, rowCount: 0, minSeq: 0, maxSeq: 0 };

export interface MergeSource extends SpanSource {
  /** For each reader, filled in: where each of its rows is in the output, or `DISCARDED`. */
  readonly newRows: readonly Uint32Array[];
}

/**
 * The bytes of the merged segment in order; many pieces are empty, to let other work run. Without
 * rows there is none.
 */
export function* mergedPieces(
  source: MergeSource,
  outline: SegmentOutline,
): Generator<Uint8Array, SegmentEnd> {
  const writer = new SegmentWriter(outline);
  for (const newRows of source.newRows) newRows.fill(DISCARDED);
  let outRow = 0;
  for (const spans of spanGroups(source)) {
    noteNewRows(source, spans, outRow);
    const rowCount = spans.reduce((sum, span) => sum + countOf(span), 0);
    outRow += rowCount;
    const vectors: Vector[] = [];
    for (const column of source.columns) {
      vectors.push(mergedColumn(source.readers, spans, column));
      yield NO_BYTES;
    }
    const rows = mergedRows(source.readers, spans, { vectors, rowCount });
    for (let from = 0; from < rowCount; ) {
      const to = groupEnd(vectors, from, rowCount);
      yield* writer.group(slicedRows(rows, from, to));
      from = to;
    }
  }
  return outRow === 0 ? EMPTY : yield* writer.finish();
}

function noteNewRows(
  { readers, newRows }: MergeSource,
  spans: readonly Span[],
  outRow: number,
): void {
  let row = outRow;
  for (const { source, group, start, end, kept } of spans) {
    const groupStart = readers[source]?.groupStart(group) ?? 0;
    const into = newRows[source];
    assert(into !== undefined, "every source has its rows noted");
    const count = kept?.length ?? end - start;
    for (let index = 0; index < count; index += 1) {
      into[groupStart + (kept?.[index] ?? start + index)] = row;
      row += 1;
    }
  }
}

function mergedColumn(
  readers: readonly SegmentReader[],
  spans: readonly Span[],
  column: StoredColumn,
): Vector {
  const values: Value[] = [];
  for (const span of spans) {
    const vector = storedRows(readers, span, column);
    const { kept, start } = span;
    const count = countOf(span);
    for (let index = 0; index < count; index += 1) {
      values.push(valueAt(vector, kept === undefined ? index : (kept[index] ?? 0) - start));
    }
  }
  return vectorFromValues(column.type, values);
}

function mergedRows(
  readers: readonly SegmentReader[],
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
  for (const span of spans) {
    const { owner, source, group } = span;
    const reader = readers[source];
    assert(reader !== undefined, "a span has its segment");
    rows.owners.fill(owner, at, at + countOf(span));
    copyRows(reader.seqs(group), span, { into: rows.seqs, at });
    copyRows(reader.prevs(group), span, { into: rows.prevs, at });
    copyRows(reader.commitSeqs(group), span, { into: rows.commitSeqs, at });
    copyRows(reader.deleted(group), span, { into: rows.deleted, at });
    at += countOf(span);
  }
  return rows;
}

function copyRows<T extends Float64Array | Uint8Array>(
  from: T,
  { start, end, kept }: Span,
  { into, at }: { into: T; at: number },
): void {
  if (kept === undefined) {
    into.set(from.subarray(start, end), at);
    return;
  }
  for (let index = 0; index < kept.length; index += 1)
    into[at + index] = from[kept[index] ?? 0] ?? 0;
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
