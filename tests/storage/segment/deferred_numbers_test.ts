/**
 * Verifies that numbers decoded lazily equal numbers decoded at once, and that selected numbers
 * can be decoded without the others.
 */
import { expect, test } from "bun:test";
import { defined } from "../../../src/base/assert.ts";
import { ColumnBuffer } from "../../../src/storage/segment/column_buffer.ts";
import { ENCODING_NAMES } from "../../../src/storage/segment/encodings.ts";
import { SegmentReader } from "../../../src/storage/segment/reader.ts";
import {
  BIGINT,
  type DataType,
  DOUBLE,
  INT,
  take,
  type Value,
  valuesOf,
  vectorFromValues,
} from "../../../src/types/mod.ts";
import { encodeSegment } from "../../support/encoded_segment.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

const PATH = "/1.seg";
/** The number of rows, enough to form a run. */
const ROW_COUNT = 300;
const COLUMN_ID = 9;

/** Fills memory before decoding, and thus reveals numbers that were not decoded. */
const UNTOUCHED = -2_000_000_000;

/** Returns numbers below `limit` in scattered order, so that they do not form runs. */
function scattered(limit: number): (row: number) => number {
  return (row) => ((row + 1) * 7919 * 7919) % limit;
}

const byBytes = scattered(200);
const byShorts = scattered(50_000);
const byLongs = scattered(90_000_000);

/** A column for each numeric encoding, whether decoded lazily or at once. */
const COLUMNS: readonly (readonly [string, DataType, (row: number) => Value])[] = [
  ["i32", INT, (row) => byLongs(row) - 40_000_000],
  ["offset8", INT, (row) => byBytes(row) - 100],
  ["offset16", INT, (row) => byShorts(row) - 100],
  ["offset8", BIGINT, (row) => byBytes(row) + 1e12],
  ["offset16", BIGINT, (row) => byShorts(row) - 1e12],
  ["offset32", BIGINT, (row) => byLongs(row) + 1e12],
  ["f64", DOUBLE, (row) => Math.sqrt(byLongs(row))],
  ["f32", { kind: "float" }, (row) => Math.fround(Math.sqrt(byLongs(row)))],
  ["scaled8", DOUBLE, (row) => (byBytes(row) - 100) / 4],
  ["scaled16", DOUBLE, (row) => (byShorts(row) - 100) / 4],
  ["scaled32", DOUBLE, (row) => (byLongs(row) - 100) / 4],
  ["runs", BIGINT, (row) => row],
  ["constant", INT, () => 7],
  ["none", INT, () => null],
  ["wide", BIGINT, (row) => 2n ** 60n + BigInt(row)],
];

function readerOf(type: DataType, values: readonly Value[]): SegmentReader {
  const seqs = Float64Array.from(values, (_, row) => row + 1);
  const bytes = encodeSegment({
    segmentId: 5,
    tableId: 7,
    keyColumnIds: [],
    columns: [{ columnId: COLUMN_ID, type, vector: vectorFromValues(type, values) }],
    owners: new Float64Array(values.length),
    seqs,
    prevs: new Float64Array(values.length),
    commitSeqs: seqs,
    deleted: new Uint8Array(values.length),
  });
  const disk = new SimulatedDisk();
  disk.open(PATH, { create: true }).write(bytes, 0);
  return SegmentReader.open(disk, PATH, bytes.length);
}

const CASES = COLUMNS.flatMap(([encoding, type, valueAt]) =>
  [false, true].map((hasNulls) => ({ encoding, type, valueAt, hasNulls })),
);

test.each(CASES)("columnRows defers $encoding of $type.kind, NULLs: $hasNulls", (column) => {
  const { encoding, hasNulls, type, valueAt } = column;
  const values = Array.from({ length: ROW_COUNT }, (_, row): Value => {
    return hasNulls && row % 5 === 2 ? null : valueAt(row);
  });
  const reader = readerOf(type, values);
  const entry = defined(reader.chunkEntry(COLUMN_ID, 0), "the file must have the column");
  if (!hasNulls) expect(ENCODING_NAMES[entry.encoding]).toBe(encoding);
  const [start, end] = [30, 170];
  const wanted = values.slice(start, end);
  const rows = Uint32Array.of(0, 2, 11, 12, 139, 3);
  const selection = { rows, count: 5 };
  const read = (): ReturnType<typeof reader.columnRows> & object => {
    const buffer = new ColumnBuffer();
    const span = { start, end, buffer, isDeferred: true };
    return defined(reader.columnRows(COLUMN_ID, 0, span), "the segment must have the column");
  };

  const untouched = read();
  expect(untouched.length).toBe(end - start);
  const chosen = [0, 2, 11, 12, 139].map((row) => wanted[row] ?? null);
  expect(valuesOf(take(untouched, selection))).toEqual(chosen);
  // After the selected numbers, all numbers can still be read, and then the selected numbers once
  // more.
  expect(valuesOf(untouched)).toEqual(wanted);
  expect(valuesOf(take(untouched, selection))).toEqual(chosen);
  expect(valuesOf(read())).toEqual(wanted);
  reader.close();
});

test("columnRows decodes only the selected rows, as long as the others are not read", () => {
  for (const [encoding, type, valueAt] of COLUMNS) {
    if (!/^(?:offset|scaled|f32)/.test(encoding)) continue;
    const reader = readerOf(
      type,
      Array.from({ length: ROW_COUNT }, (_, row) => valueAt(row)),
    );
    const buffer = new ColumnBuffer();
    const memory = [buffer.int32s(ROW_COUNT), buffer.float64s(ROW_COUNT)] as const;
    for (const numbers of memory) numbers.fill(UNTOUCHED);
    const span = { start: 0, end: ROW_COUNT, buffer, isDeferred: true };
    const vector = defined(reader.columnRows(COLUMN_ID, 0, span), "the file must have the column");
    take(vector, { rows: Uint32Array.of(4, 150), count: 2 });
    for (const numbers of memory) expect(numbers.every((one) => one === UNTOUCHED)).toBe(true);
    valuesOf(vector);
    expect(memory.some((numbers) => !numbers.includes(UNTOUCHED))).toBe(true);
    reader.close();
  }
});
