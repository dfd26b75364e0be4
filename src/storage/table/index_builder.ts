/**
 * Builds an index of a segment from the segment's rows. Rows are sorted by the prefixes of their
 * keys, and rows with equal prefixes by their values, one column at a time.
 */
import { defined } from "../../base/assert.ts";
import type { Disk, DiskFile } from "../../base/disk.ts";
import { holdsTerms, type IndexColumn } from "../contract/key_expressions.ts";
import { type IndexEntries, indexFilePieces } from "../segment/index_file.ts";
import type { IndexFilePlace } from "../segment/index_header.ts";
import { IndexOrder } from "../segment/index_order.ts";
import { sortByKey } from "../segment/index_sort.ts";
import { type CommonBytes, commonWith, fillPrefixes, TieSorter } from "../segment/index_ties.ts";
import type { SegmentReader } from "../segment/reader.ts";
import { TermFileWriter } from "../segment/term_file.ts";
import { groupVector, keyValueOf } from "./index_values.ts";
import { termPart } from "./term_builder.ts";

/** The description of an index to build, as plain data. */
export interface IndexOutline {
  readonly indexId: number;
  /** The columns of the index, in key order. */
  readonly columns: readonly IndexColumn[];
}

/** An index that needs a file to be written. */
export interface IndexOutput extends IndexOutline {
  /** The path to which the index file is written. */
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
  const first = defined(columns[0], "index builder: index has no key columns");
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
    keyValueOf(reader, defined(columns[at], "index builder: no key column at this position"), row),
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

/**
 * Determines the length in bytes of the prefix that all strings in a column have in common; 0 for
 * other types.
 */
function* commonBytesOf(reader: SegmentReader, column: IndexColumn): Generator<void, number> {
  if (column.type.kind !== "text") return 0;
  let common: CommonBytes | undefined;
  for (let group = 0; group < reader.groupCount && common?.count !== 0; group += 1) {
    common = commonWith(common, groupVector(reader, column, group));
    yield;
  }
  return common?.count ?? 0;
}

/**
 * Builds an index and writes it to a new file. Returns false if the work was cancelled. @throws
 * {DiskError}
 */
export function* writeIndex(
  disk: Disk,
  reader: SegmentReader,
  { output, isCancelled }: { output: IndexOutput; isCancelled: () => boolean },
): Generator<void, boolean> {
  const steps = holdsTerms(output.columns)
    ? writeTerms(disk, reader, output)
    : writeKeys(disk, reader, output);
  for (let step = steps.next(); step.done !== true; step = steps.next()) {
    yield;
    if (!isCancelled()) continue;
    steps.return(undefined);
    return false;
  }
  return true;
}

/** Writes the file of a sorted index. */
function* writeKeys(disk: Disk, reader: SegmentReader, output: IndexOutput): Generator<void, void> {
  const entries = yield* buildIndex(reader, output);
  const file = newFile(disk, output);
  try {
    let offset = 0;
    for (const piece of indexFilePieces(indexPlaceOf(reader, output.indexId), entries)) {
      file.write(piece, offset);
      offset += piece.length;
      yield;
    }
  } finally {
    file.close();
  }
}

/** Writes the file of an inverted index, one row group at a time. */
function* writeTerms(
  disk: Disk,
  reader: SegmentReader,
  output: IndexOutput,
): Generator<void, void> {
  const file = newFile(disk, output);
  try {
    const writer = new TermFileWriter(file, indexPlaceOf(reader, output.indexId));
    for (let group = 0; group < reader.groupCount; group += 1) {
      yield* writer.add(yield* termPart(reader, output, group));
    }
    writer.finish();
  } finally {
    file.close();
  }
}

function newFile(disk: Disk, { pendingPath }: IndexOutput): DiskFile {
  const file = disk.open(pendingPath, { create: true, writesThrough: true });
  file.truncate(0);
  return file;
}

function indexPlaceOf(
  { rowCount, segmentId, tableId }: Pick<SegmentReader, "rowCount" | "segmentId" | "tableId">,
  indexId: number,
): IndexFilePlace {
  return { rowCount, segmentId, tableId, indexId };
}
