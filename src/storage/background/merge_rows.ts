/**
 * Neighbouring segments as the rows of one, in the order of `merge_order.ts`.
 *
 * One portion of the output is in memory at a time.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { concat, constVector, slice, take, type Vector } from "../../types/mod.ts";
import type { StoredColumn } from "../contract/store.ts";
import { convertVector } from "../memtable/convert.ts";
import { gathered } from "../memtable/memtable_segment.ts";
import { SEGMENT_BYTES_MAX } from "../segment/format.ts";
import { groupEnd } from "../segment/group_size.ts";
import type { SegmentReader } from "../segment/reader.ts";
import {
  type SegmentEnd,
  type SegmentOutline,
  type SegmentRows,
  SegmentWriter,
} from "../segment/writer.ts";
import { type MergeSource, type Portion, portions, type Stretch } from "./merge_order.ts";

/** What the end of a segment takes for each row, at most: keys, and owners of one row each. */
const ROW_END_BYTES = 64;

const NO_BYTES: Uint8Array = new Uint8Array(0);

/** Of a merge that left every row out: no segment. */
const EMPTY: SegmentEnd = { bytes: 0, rowCount: 0, minSeq: 0, maxSeq: 0 };

/**
 * The bytes of the merged segment in order; many pieces are empty, to let other work run. Without
 * rows there is none.
 *
 * @param bytesMax Of the segment.
 * @throws {CorruptionError}
 * @throws {DatabaseError} LIMIT_EXCEEDED if it would be longer, as rows may be that were packed.
 */
export function* mergedPieces(
  source: MergeSource,
  outline: SegmentOutline,
  bytesMax: number = SEGMENT_BYTES_MAX,
): Generator<Uint8Array, SegmentEnd> {
  const writer = new SegmentWriter(outline);
  for (const portion of portions(source)) {
    const vectors: Vector[] = [];
    for (const column of source.columns) {
      vectors.push(mergedColumn(source.readers, portion, column));
      yield NO_BYTES;
    }
    const rows = mergedRows(source.readers, portion, vectors);
    for (let from = 0; from < portion.rowCount; ) {
      const to = groupEnd(vectors, from, portion.rowCount);
      yield* writer.group(slicedRows(rows, from, to));
      if (writer.byteCount + ROW_END_BYTES * writer.rowCount > bytesMax) {
        throw tooLong(outline, bytesMax);
      }
      from = to;
    }
  }
  return writer.rowCount === 0 ? EMPTY : yield* writer.finish();
}

function tooLong({ segmentId, tableId }: SegmentOutline, bytesMax: number): DatabaseError {
  return new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot write segment ${segmentId} of table ${tableId}: it would have more than ${bytesMax} bytes`,
    { hint: "have its rows compressed: ALTER TABLE … SET (COMPRESSION = 'zstd')" },
  );
}

function mergedColumn(
  readers: readonly SegmentReader[],
  { places, stretches }: Portion,
  column: StoredColumn,
): Vector {
  const parts = stretches.map((stretch) => storedRows(readerOf(readers, stretch), stretch, column));
  const all = concat(column.type, parts);
  return places === undefined ? all : take(all, { rows: places, count: places.length });
}

/** A column of a stretch, in the form that it has now. */
function storedRows(
  reader: SegmentReader,
  { group, start, end }: Stretch,
  { columnId, type, missing }: StoredColumn,
): Vector {
  const stored = reader.columnRows(columnId, group, { start, end });
  if (stored === undefined) return constVector(missing, end - start);
  const storedType = defined(reader.columnType(columnId), "a stored column has its type");
  return convertVector(stored, storedType, type);
}

function mergedRows(
  readers: readonly SegmentReader[],
  portion: Portion,
  vectors: readonly Vector[],
): SegmentRows {
  const numbers = (of: (reader: SegmentReader, group: number) => Float64Array): Float64Array =>
    mergedNumbers(readers, portion, { of, arrayOf: (length) => new Float64Array(length) });
  return {
    vectors,
    owners: portion.owners,
    seqs: numbers((reader, group) => reader.seqs(group)),
    prevs: numbers((reader, group) => reader.prevs(group)),
    commitSeqs: numbers((reader, group) => reader.commitSeqs(group)),
    deleted: mergedNumbers(readers, portion, {
      of: (reader, group) => reader.deleted(group),
      arrayOf: (length) => new Uint8Array(length),
    }),
  };
}

/** Numbers that every row has. @param of Those of a whole row group. */
function mergedNumbers<T extends Float64Array | Uint8Array>(
  readers: readonly SegmentReader[],
  { places, rowCount, stretches }: Portion,
  {
    of,
    arrayOf,
  }: { of: (reader: SegmentReader, group: number) => T; arrayOf: (length: number) => T },
): T {
  const all = arrayOf(stretches.reduce((sum, { start, end }) => sum + end - start, 0));
  let at = 0;
  for (const stretch of stretches) {
    const { group, start, end } = stretch;
    all.set(of(readerOf(readers, stretch), group).subarray(start, end), at);
    at += end - start;
  }
  return places === undefined ? all : gathered(all, arrayOf(rowCount), places);
}

function readerOf(readers: readonly SegmentReader[], { source }: Stretch): SegmentReader {
  return defined(readers[source], "a stretch has its segment");
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
