/**
 * Builds an index of a segment from the segment's rows. Rows are sorted by the prefixes of their
 * keys, and rows with equal prefixes by their values, a column at a time.
 */
import { defined } from "../../base/assert.ts";
import type { Disk } from "../../base/disk.ts";
import type { Value, Vector } from "../../types/mod.ts";
import { computedKey, computedKeys, type IndexColumn } from "../contract/key_expressions.ts";
import type { StoredColumn } from "../contract/table_definition.ts";
import { converted, convertVector, formOf } from "../memtable/convert.ts";
import { type IndexEntries, type IndexFilePlace, indexFilePieces } from "../segment/index_file.ts";
import { IndexOrder } from "../segment/index_order.ts";
import { sortByKey } from "../segment/index_sort.ts";
import { type CommonBytes, commonWith, fillPrefixes, TieSorter } from "../segment/index_ties.ts";
import type { SegmentReader } from "../segment/reader.ts";

/** The description of an index to build, as plain data. */
export interface IndexOutline {
  readonly indexId: number;
  /** The columns of the index, in key order. */
  readonly columns: readonly IndexColumn[];
}

/** An index to write to a file. */
export interface IndexOutput extends IndexOutline {
  /** The path at which it is written. */
  readonly pendingPath: string;
}

/**
 * Builds an index in steps of a few milliseconds.
 * @throws {CorruptionError} If the segment is damaged.
 */
export function* buildIndex(
  reader: SegmentReader,
  { columns }: Pick<IndexOutline, "columns">,
): Generator<void, IndexEntries> {
  const { rowCount } = reader;
  const prefixes = new Float64Array(rowCount);
  const rows = new Uint32Array(rowCount);
  for (let row = 0; row < rowCount; row += 1) rows[row] = row;
  const first = defined(columns[0], "an index has a column");
  const commonBytes = yield* commonBytesOf(reader, first);
  for (let group = 0; group < reader.groupCount; group += 1) {
    const start = reader.groupStart(group);
    const count = reader.groupRows(group);
    const ofGroup = prefixes.subarray(start, start + count);
    const vector = groupVector(reader, first, group);
    fillPrefixes(ofGroup, vector, { commonBytes, rows: rows.subarray(0, count) });
    yield;
  }
  const ties = new TieSorter(new IndexOrder(columns), (at, row) =>
    keyValueOf(reader, defined(columns[at], "a column of the index"), row),
  );
  for (let index = 0; index < reader.ownerCount; index += 1) {
    const { end, start } = reader.ownerAt(index);
    const keys = prefixes.subarray(start, end);
    const ofOwner = rows.subarray(start, end);
    yield* sortByKey(keys, ofOwner);
    yield* ties.sort(keys, ofOwner, 0);
  }
  return { prefixes, rows, commonBytes };
}

/** Counts the bytes with which every string in a column begins; 0 for other types. */
function* commonBytesOf(reader: SegmentReader, column: IndexColumn): Generator<void, number> {
  if (column.type.kind !== "text") return 0;
  let common: CommonBytes | undefined;
  for (let group = 0; group < reader.groupCount && common?.count !== 0; group += 1) {
    common = commonWith(common, groupVector(reader, column, group));
    yield;
  }
  return common?.count ?? 0;
}

/** Builds an index and writes it to a new file. Returns false if cancelled. @throws {DiskError} */
export function* writeIndex(
  disk: Disk,
  reader: SegmentReader,
  { output, isCancelled }: { output: IndexOutput; isCancelled: () => boolean },
): Generator<void, boolean> {
  const steps = buildIndex(reader, output);
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) {
    yield;
    if (isCancelled()) return false;
  }
  const file = disk.open(output.pendingPath, { create: true, writesThrough: true });
  try {
    file.truncate(0);
    let offset = 0;
    for (const piece of indexFilePieces(indexPlaceOf(reader, output.indexId), step.value)) {
      file.write(piece, offset);
      offset += piece.length;
      yield;
      if (isCancelled()) return false;
    }
  } finally {
    file.close();
  }
  return true;
}

function indexPlaceOf(
  { rowCount, segmentId, tableId }: Pick<SegmentReader, "rowCount" | "segmentId" | "tableId">,
  indexId: number,
): IndexFilePlace {
  return { rowCount, segmentId, tableId, indexId };
}

/** Returns a value of a row of a segment, in the current form of its column. */
function storedValue(
  reader: Pick<SegmentReader, "columnType" | "valueAt">,
  { columnId, missing, type }: StoredColumn,
  row: number,
): Value {
  const value = reader.valueAt(columnId, row);
  const storedType = reader.columnType(columnId);
  if (value === undefined || storedType === undefined) return missing;
  return converted(value, formOf(storedType), type);
}

/** Returns the value of a row of a segment in a part of the keys of an index. */
export function keyValueOf(
  reader: Pick<SegmentReader, "columnType" | "valueAt">,
  column: IndexColumn,
  row: number,
): Value {
  const { expression } = column;
  if (expression === undefined) return storedValue(reader, column, row);
  return computedKey(
    expression,
    expression.reads.map((each) => storedValue(reader, each, row)),
  );
}

/** Returns the values of a part of the keys of an index in a group. */
function groupVector(reader: SegmentReader, column: IndexColumn, group: number): Vector {
  const { columnId, expression, missing, type } = column;
  if (expression !== undefined) {
    const read = expression.reads.map((each) => groupVector(reader, each, group));
    return computedKeys(expression, read, reader.groupRows(group));
  }
  const vector = reader.column(columnId, group);
  const storedType = reader.columnType(columnId);
  if (vector === undefined || storedType === undefined) {
    return { kind: "const", length: reader.groupRows(group), value: missing };
  }
  return convertVector(vector, storedType, type);
}
