/**
 * Presents the rows of several segments as the rows of a single segment, in the order defined by
 * `merge_order.ts`. Only one portion of the output is in memory at a time.
 */
import { defined } from "../../base/assert.ts";
import { DatabaseError } from "../../base/errors.ts";
import { concat, constVector, slice, take, type Vector } from "../../types/mod.ts";
import type { StoredColumn } from "../contract/table_definition.ts";
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
import type { History } from "../table/history.ts";
import { type MergeSource, type Portion, portions, type Stretch } from "./merge_order.ts";

/**
 * The maximum number of bytes that each row adds to the sections at the end of a segment, for its
 * key and its owner.
 */
const ROW_END_BYTES = 64;

const NO_BYTES: Uint8Array = new Uint8Array(0);

/** The result of a merge that discarded every row and therefore wrote no segment. */
const EMPTY: SegmentEnd = { bytes: 0, rowCount: 0, minSeq: 0, maxSeq: 0 };

/**
 * Yields the bytes of the merged segment in order. Many of the pieces are empty, to let other work
 * run in between. If no row remains, no bytes are yielded.
 *
 * @param bytesMax The maximum size of the segment in bytes.
 * @throws {CorruptionError}
 * @throws {DatabaseError} LIMIT_EXCEEDED if the segment would be larger, which can happen when
 *   sources are packed.
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
    const rows = mergedRows(source, portion, vectors);
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
    `Cannot write segment ${segmentId} of table ${tableId}: it would be larger than ${bytesMax} bytes`,
    { hint: "compress the rows with ALTER TABLE … SET (COMPRESSION = 'zstd')" },
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

/** Returns a column for adjacent rows of a segment, converted to the column's current type. */
function storedRows(
  reader: SegmentReader,
  { group, start, end }: Stretch,
  { columnId, type, missing }: StoredColumn,
): Vector {
  const stored = reader.columnRows(columnId, group, { start, end });
  if (stored === undefined) return constVector(missing, end - start);
  const storedType = defined(reader.columnType(columnId), "merge: stored column has no type");
  return convertVector(stored, storedType, type);
}

function mergedRows(
  source: MergeSource,
  portion: Portion,
  vectors: readonly Vector[],
): SegmentRows {
  const { output, readers } = source;
  const numbers = (of: (stretch: ReadStretch) => Float64Array): Float64Array =>
    mergedNumbers(readers, portion, { of, arrayOf: (length) => new Float64Array(length) });
  return {
    vectors,
    owners: portion.owners,
    seqs: numbers(({ reader, group, start, end }) => reader.seqs(group).subarray(start, end)),
    prevs: numbers(({ reader, group, start, end }) => reader.prevs(group).subarray(start, end)),
    commitSeqs: numbers(({ reader, group, start, end }) =>
      reader.commitSeqs(group).subarray(start, end),
    ),
    deleted: mergedNumbers(readers, portion, {
      of: ({ reader, group, start, end }) => reader.deleted(group).subarray(start, end),
      arrayOf: (length) => new Uint8Array(length),
    }),
    replacingSeqs:
      output === "past" ? numbers((stretch) => obsoleteSince(source.history, stretch)) : undefined,
  };
}

/** Returns the seq at which each of some adjacent rows became obsolete. */
function obsoleteSince(history: History, { reader, ...stretch }: ReadStretch): Float64Array {
  const { end, group, source, start } = stretch;
  if (reader.isHistory) return reader.replacingSeqs(group).subarray(start, end);
  const seqs = reader.seqs(group);
  const deleted = reader.deleted(group);
  const firstRow = reader.groupStart(group);
  return Float64Array.from({ length: end - start }, (_, index) => {
    const at = start + index;
    const isDeleted = deleted[at] === 1;
    return history.obsoleteSince({ source, row: firstRow + at, seq: seqs[at] ?? 0, isDeleted });
  });
}

/** Adjacent rows of a segment together with the segment's reader. */
interface ReadStretch extends Stretch {
  readonly reader: SegmentReader;
}

/**
 * Merges the values of a column that has a number in every row.
 *
 * @param of Returns the numbers for adjacent rows of one source.
 */
function mergedNumbers<T extends Float64Array | Uint8Array>(
  readers: readonly SegmentReader[],
  { places, rowCount, stretches }: Portion,
  { of, arrayOf }: { of: (stretch: ReadStretch) => T; arrayOf: (length: number) => T },
): T {
  const all = arrayOf(stretches.reduce((sum, { start, end }) => sum + end - start, 0));
  let at = 0;
  for (const stretch of stretches) {
    all.set(of({ ...stretch, reader: readerOf(readers, stretch) }), at);
    at += stretch.end - stretch.start;
  }
  return places === undefined ? all : gathered(all, arrayOf(rowCount), places);
}

function readerOf(readers: readonly SegmentReader[], { source }: Stretch): SegmentReader {
  return defined(readers[source], "merge: range of rows has no segment");
}

function slicedRows(rows: SegmentRows, from: number, to: number): SegmentRows {
  return {
    vectors: rows.vectors.map((vector) => slice(vector, from, to)),
    owners: rows.owners.subarray(from, to),
    seqs: rows.seqs.subarray(from, to),
    prevs: rows.prevs.subarray(from, to),
    commitSeqs: rows.commitSeqs.subarray(from, to),
    deleted: rows.deleted.subarray(from, to),
    replacingSeqs: rows.replacingSeqs?.subarray(from, to),
  };
}
