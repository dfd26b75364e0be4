/**
 * Tests segment files. Written values can be read back, whatever the type, the encoding and the
 * NULLs. Every way of reading a row agrees with a plain model. No damaged byte is ever served.
 *
 * To reproduce a failure: SEED=<n> bun test tests/storage/segment/segment_test.ts
 */
import { describe, expect, test } from "bun:test";
import { AssertionError, defined } from "../../../src/base/assert.ts";
import type { DiskFile, OpenOptions } from "../../../src/base/disk.ts";
import { CorruptionError, UnreadableError } from "../../../src/base/errors.ts";
import { ROW_GROUP_ROWS_MAX } from "../../../src/base/limits.ts";
import { ENCODING_NAMES } from "../../../src/storage/segment/encodings.ts";
import { SegmentReader } from "../../../src/storage/segment/reader.ts";
import { SegmentWriter, writeSegment } from "../../../src/storage/segment/writer.ts";
import {
  BIGINT,
  BYTES,
  type DataType,
  DOUBLE,
  INT,
  type Row,
  slice,
  TEXT,
  UUID,
  type Value,
  valuesOf,
  vectorFromValues,
} from "../../../src/types/mod.ts";
import { encodeSegment, type SegmentInput, segmentChunks } from "../../support/encoded_segment.ts";
import { ForwardingDisk, ForwardingFile } from "../../support/forwarding_disk.ts";
import {
  COLUMN_TYPES,
  NULL_SHAPES,
  randomSegment,
  randomValues,
  randomVector,
  type SegmentModel,
  SHAPES,
} from "../../support/random_segment.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { SeededRandom, seedOf } from "../../support/seeded_random.ts";
import { failNth, SimulatedDisk } from "../../support/simulated_disk.ts";
import { amountOf } from "../../support/thoroughness.ts";

const PATH = "/1.seg";

function diskWith(bytes: Uint8Array): SimulatedDisk {
  const disk = new SimulatedDisk();
  disk.open(PATH, { create: true }).write(bytes, 0);
  return disk;
}

function open(bytes: Uint8Array): SegmentReader {
  return SegmentReader.open(diskWith(bytes), PATH, bytes.length);
}

function readAll(bytes: Uint8Array): void {
  const reader = open(bytes);
  try {
    reader.verify();
  } finally {
    reader.close();
  }
}

function keyName(owner: number, key: Row): string {
  return JSON.stringify([owner, key]);
}

/** Returns rows of a single owner, with seqs 1, 2, 3 … and without a key. */
function plainInput(columns: { type: DataType; values: readonly Value[] }[]): SegmentInput {
  const rowCount = columns[0]?.values.length ?? 1;
  const seqs = Float64Array.from({ length: rowCount }, (_, row) => row + 1);
  return {
    segmentId: 5,
    tableId: 7,
    keyColumnIds: [],
    columns: columns.map(({ type, values }, index) => ({
      columnId: index + 1,
      type,
      vector: vectorFromValues(type, values),
    })),
    owners: new Float64Array(rowCount),
    seqs,
    prevs: new Float64Array(rowCount),
    commitSeqs: seqs,
    deleted: new Uint8Array(rowCount),
  };
}

function encodingOf(reader: SegmentReader, columnId: number): string {
  return ENCODING_NAMES[reader.chunkEntry(columnId, 0)?.encoding ?? -1] ?? "unknown";
}

/**
 * Reads the contents of a segment file in every possible way, and compares them with the model.
 */
function expectSame(reader: SegmentReader, { input, values }: SegmentModel): void {
  expect(reader.rowCount).toBe(input.seqs.length);
  expect(reader.segmentId).toBe(input.segmentId);
  expect(reader.tableId).toBe(7);
  for (let group = 0; group < reader.groupCount; group += 1) {
    const start = reader.groupStart(group);
    const end = start + reader.groupRows(group);
    expect(reader.seqs(group)).toEqual(input.seqs.slice(start, end));
    expect(reader.prevs(group)).toEqual(input.prevs.slice(start, end));
    expect(reader.commitSeqs(group)).toEqual(input.commitSeqs.slice(start, end));
    expect(new Uint8Array(reader.deleted(group))).toEqual(input.deleted.slice(start, end));
    for (const { columnId } of input.columns) {
      const expected = values.get(columnId)?.slice(start, end) ?? [];
      const vector = reader.column(columnId, group);
      expect(vector === undefined ? [] : valuesOf(vector)).toEqual(expected);
    }
  }
}

describe("segments are read as they were written", () => {
  for (const type of COLUMN_TYPES) {
    test(`every shape and NULL pattern of ${JSON.stringify(type)} is read back`, () => {
      const seed = seedOf(11);
      const random = new SeededRandom(seed);
      for (const shape of SHAPES) {
        for (const nulls of NULL_SHAPES) {
          for (const count of [1, 7, 8, 9, 300]) {
            const values = randomValues(random, type, { shape, nulls, count });
            const input = plainInput([{ type: BIGINT, values: values.map((_, row) => row) }]);
            const vector = randomVector(random, type, values);
            const columns = [...input.columns, { columnId: 9, type, vector }];
            const reader = open(encodeSegment({ ...input, columns }));
            const message = `seed ${seed} ${shape} ${nulls} ${count} ${encodingOf(reader, 9)}`;
            const column = reader.column(9, 0);
            expect(column === undefined ? [] : valuesOf(column), message).toEqual(values);
            const row = random.below(count);
            expect(reader.valueAt(9, row), message).toEqual(values[row] ?? null);
            const end = random.between(row, count);
            const part = reader.columnRows(9, 0, { start: row, end });
            expect(part === undefined ? [] : valuesOf(part), message).toEqual(
              values.slice(row, end),
            );
            expect(reader.columnType(9)).toEqual(type);
            reader.close();
          }
        }
      }
    });
  }

  test("whole segments with all types are read back", () => {
    const seed = seedOf(3);
    const random = new SeededRandom(seed);
    for (let round = 0; round < 20; round += 1) {
      const rowCount = random.between(1, 400);
      const model = randomSegment(random, { rowCount, ownerCount: 20, keyTypes: [TEXT, INT] });
      const reader = open(encodeSegment(model.input));
      expectSame(reader, model);
      reader.verify();
      reader.close();
    }
  });

  test("each encoding is used where it is the smallest", () => {
    // The numbers, up to 999, do not ascend evenly, except in the case "runs".
    const rows = Array.from({ length: 1000 }, (_, place) => (place * 387) % 1000);
    const cases: [string, DataType, (row: number, place: number) => Value][] = [
      ["none", INT, () => null],
      ["constant", DOUBLE, () => 0.5],
      ["constant", { kind: "boolean" }, () => true],
      ["bits", { kind: "boolean" }, (row) => row % 2 === 0],
      ["f64", DOUBLE, (row) => row / 7],
      ["scaled8", DOUBLE, (row) => ((row % 200) - 30) / 10],
      ["scaled16", DOUBLE, (row) => row / 8],
      ["scaled32", DOUBLE, (row) => (row * 123_456) / 100],
      ["f64", DOUBLE, (row) => (row === 7 ? Math.PI : row / 8)],
      ["runs", BIGINT, (_, place) => 2 ** 50 + place * 4096],
      ["runs", INT, (_, place) => (place < 500 ? 3 - place : place - 700)],
      ["f64", BIGINT, (row) => row * 2 ** 40],
      ["f32", { kind: "float" }, (row) => row / 8],
      ["i32", INT, (row) => row * 1_000_000],
      ["offset8", INT, (row) => 5_000_000 + (row % 256)],
      ["offset16", INT, (row) => 5_000_000 + row],
      ["offset32", BIGINT, (row) => 2 ** 52 + row * 4_000_000],
      ["offset16", { kind: "decimal", precision: 10, scale: 2 }, (row) => row],
      ["wide", BIGINT, (row) => (row === 5 ? 2n ** 60n : row)],
      ["dictionary", TEXT, (row) => `name ${row % 300}`],
      ["dictionary", TEXT, () => "same"],
      ["text", TEXT, (row) => `name ${row}`],
      ["blocks", BYTES, (row) => new Uint8Array([row])],
    ];
    const columns = cases.map(([, type, valueOf]) => ({ type, values: rows.map(valueOf) }));
    const reader = open(encodeSegment(plainInput(columns)));
    const found = cases.map((_, index) => encodingOf(reader, index + 1));
    expect(found).toEqual(cases.map(([encoding]) => encoding));
    for (const [index, { values }] of columns.entries()) {
      const vector = reader.column(index + 1, 0);
      expect(vector === undefined ? [] : valuesOf(vector)).toEqual(values);
    }
    expect(reader.column(99, 0)).toBeUndefined();
    expect(reader.valueAt(99, 0)).toBeUndefined();
    expect(reader.zone(99, 0)).toBeUndefined();
    expect(reader.zone(4, 0)).toBeUndefined();
    expect(reader.zone(5, 0)).toEqual({ min: 0, max: 999 / 7, nullCount: 0 });
    expect(reader.zone(1, 0)).toEqual({ min: Infinity, max: -Infinity, nullCount: 1000 });
    expect(reader.zone(19, 0)).toBeUndefined();
    expect(reader.zone(20, 0)).toBeUndefined();
  });

  test("runs and scaled doubles are read back together, in part and one by one, among NULLs", () => {
    const random = new SeededRandom(seedOf(5));
    const evenly = (count: number): Value[] => {
      let value = random.between(-1000, 1000);
      let step = 1;
      return Array.from({ length: count }, (_, row) => {
        if (row % 500 === 0) step = random.between(-3, 70_000);
        value += step;
        return value;
      });
    };
    for (const scale of [1, 2, 8, 10, 100, 1000, 1_000_000]) {
      for (const span of [200, 5000, 60_000, 3_000_000]) {
        const low = random.between(-90_000, 90_000);
        const scaled = Array.from({ length: 3000 }, (): Value => {
          return span === 5000 && random.chance(0.3) ? null : (low + random.below(span)) / scale;
        });
        const columns = [
          { type: BIGINT, values: evenly(3000) },
          { type: INT, values: evenly(3000) },
          { type: DOUBLE, values: scaled },
        ];
        const reader = open(encodeSegment(plainInput(columns)));
        expect([encodingOf(reader, 1), encodingOf(reader, 2)]).toEqual(["runs", "runs"]);
        expect(encodingOf(reader, 3)).toMatch(scale === 1 ? /offset/ : /scaled/);
        for (const [index, { values }] of columns.entries()) {
          const start = random.below(2990);
          const end = random.between(start + 1, 3000);
          const some = reader.columnRows(index + 1, 0, { start, end });
          expect(some === undefined ? [] : valuesOf(some)).toEqual(values.slice(start, end));
          const all = reader.column(index + 1, 0);
          expect(all === undefined ? [] : valuesOf(all)).toEqual(values);
          for (let row = start; row < values.length; row += 13) {
            expect(reader.valueAt(index + 1, row)).toBe(values[row] ?? null);
          }
        }
      }
    }
  });

  test("numbers whose difference exceeds the exact range are read back", () => {
    const { MAX_SAFE_INTEGER: most } = Number;
    const values = Array.from({ length: 2000 }, (_, row) => (row === 700 ? -most : most - 1));
    const reader = open(encodeSegment(plainInput([{ type: BIGINT, values }])));
    const column = defined(reader.column(1, 0), "the segment must have its column");
    expect(valuesOf(column)).toEqual(values);
    reader.close();
  });

  test("bounds of whole numbers are read back exactly", () => {
    const values: Value[] = [
      Number.MAX_SAFE_INTEGER,
      Number.MIN_SAFE_INTEGER,
      9007199254740992n,
      -9007199254740992n,
      9223372036854775807n,
      -9223372036854775808n,
      0,
      -1,
    ];
    const huge: Value[] = [10n ** 38n - 1n, 1n - 10n ** 38n, 0, -1, ...values.slice(0, 4)];
    const input = plainInput([
      { type: BIGINT, values },
      { type: { kind: "decimal", precision: 38, scale: 0 }, values: huge },
      { type: BIGINT, values: values.map((_, row) => (row % 2 === 0 ? 2 ** 53 - 1 : 1 - 2 ** 53)) },
    ]);
    const reader = open(encodeSegment(input));
    expect(values.map((_, row) => reader.valueAt(1, row))).toEqual(values);
    expect(huge.map((_, row) => reader.valueAt(2, row))).toEqual(huge);
    expect(reader.valueAt(3, 0)).toBe(2 ** 53 - 1);
    expect(reader.valueAt(3, 1)).toBe(1 - 2 ** 53);
  });

  test("several row groups are read back, and rows are found in their group", () => {
    const random = new SeededRandom(1);
    const count = ROW_GROUP_ROWS_MAX * 2 + 17;
    const input = plainInput([{ type: INT, values: Array.from({ length: count }, (_, i) => i) }]);
    const owners = input.owners.map((_, row) => Math.floor(row / 50_000));
    const reader = open(encodeSegment({ ...input, owners, keyColumnIds: [1] }));
    expect(reader.groupCount).toBe(3);
    expect(reader.groupRows(2)).toBe(17);
    for (let round = 0; round < 300; round += 1) {
      const row = random.below(count);
      expect(reader.valueAt(1, row)).toBe(row);
      expect(reader.groupOf(row)).toBe(Math.floor(row / ROW_GROUP_ROWS_MAX));
      expect(reader.findKey(Math.floor(row / 50_000), [row])).toBe(row);
      expect(reader.findKey(7, [row])).toBe(-1);
      expect(reader.findKey(0, [count + row])).toBe(-1);
    }
    expect(reader.ownerRange(2)).toEqual({ start: 100_000, end: count });
    expect(reader.zone(1, 1)).toEqual({
      min: ROW_GROUP_ROWS_MAX,
      max: ROW_GROUP_ROWS_MAX * 2 - 1,
      nullCount: 0,
    });
  });

  test("a group ends before its text has too many bytes, and rows are still found", () => {
    const text = "x".repeat(768 * 1024);
    const values = Array.from({ length: 12 }, (_, row) => (row === 0 ? text : `${row}${text}`));
    const reader = open(encodeSegment(plainInput([{ type: TEXT, values }])));
    expect(reader.groupCount).toBe(2);
    for (let row = 0; row < 12; row += 1) {
      const group = reader.groupOf(row);
      expect(row >= reader.groupStart(group)).toBe(true);
      expect(row < reader.groupStart(group + 1)).toBe(true);
    }
    expect(reader.valueAt(1, 11) === `11${text}`).toBe(true);
    reader.verify();
  });
});

describe("single rows of a segment can be read", () => {
  const KEYS: readonly (readonly DataType[])[] = [[INT], [TEXT], [TEXT, INT], [BIGINT], [UUID], []];
  for (const keyTypes of KEYS) {
    test(`findKey, rowOfSeq and ownerRange agree with a model for the key ${keyTypes.map((type) => type.kind).join()}`, () => {
      const seed = seedOf(21);
      const random = new SeededRandom(seed);
      for (let round = 0; round < 5; round += 1) {
        const model = randomSegment(random, { rowCount: 500, ownerCount: 30, keyTypes });
        const { input, values } = model;
        const reader = open(encodeSegment(input));
        const keyAt = (row: number): Row =>
          keyTypes.map((_, index) => values.get(index + 1)?.[row] ?? null);
        const newest = new Map<string, number>();
        const ranges = new Map<number, { start: number; end: number }>();
        for (let row = 0; row < 500; row += 1) {
          const owner = input.owners[row] ?? 0;
          newest.set(keyName(owner, keyAt(row)), row);
          ranges.set(owner, { start: ranges.get(owner)?.start ?? row, end: row + 1 });
        }
        for (let owner = -1; owner < 92; owner += 1) {
          expect(reader.ownerRange(owner)).toEqual(ranges.get(owner));
          const key = keyAt(random.below(500));
          const expected = keyTypes.length === 0 ? undefined : newest.get(keyName(owner, key));
          expect(reader.findKey(owner, key), `seed ${seed}`).toBe(expected ?? -1);
        }
        const owners = Array.from({ length: reader.ownerCount }, (_, i) => reader.ownerAt(i));
        expect(owners).toEqual(
          [...ranges].map(([owner, { start, end }]) => ({ owner, start, end })),
        );
        for (let row = 0; row < 500; row += 1) {
          const owner = input.owners[row] ?? 0;
          const seq = input.seqs[row] ?? 0;
          if (keyTypes.length > 0) {
            expect(reader.findKey(owner, keyAt(row))).toBe(
              newest.get(keyName(owner, keyAt(row))) ?? -2,
            );
          }
          expect(reader.rowOfSeq(owner, seq)).toBe(row);
          const isNext = input.owners[row + 1] === owner && input.seqs[row + 1] === seq + 1;
          if (!isNext) expect(reader.rowOfSeq(owner, seq + 1)).toBe(-1);
          expect(reader.rowOfSeq(owner + 1, seq)).toBe(-1);
          expect(reader.seqAt(row)).toBe(seq);
          expect(reader.prevAt(row)).toBe(input.prevs[row] ?? 0);
          expect(reader.commitSeqAt(row)).toBe(input.commitSeqs[row] ?? 0);
          expect(reader.isTombstone(row)).toBe(input.deleted[row] === 1);
        }
      }
    });
  }

  test("keys that differ only in their form or position are distinguished", () => {
    const values: Value[] = ["1", "", "a", "A", "é", "e\u0301", "\u{1f30a}"];
    const input = plainInput([{ type: TEXT, values }]);
    const reader = open(encodeSegment({ ...input, keyColumnIds: [1] }));
    for (const [row, value] of values.entries()) expect(reader.findKey(0, [value])).toBe(row);
    expect(reader.findKey(0, [1])).toBe(-1);
    expect(reader.findKey(1, ["a"])).toBe(-1);
  });

  test("bytes, wide numbers and booleans can be keys", () => {
    const cases: [DataType, Value[]][] = [
      [BYTES, [new Uint8Array([1]), new Uint8Array([1, 0]), new Uint8Array(0)]],
      [BIGINT, [2n ** 60n, 1, -(2n ** 60n)]],
      [{ kind: "boolean" }, [true, false]],
    ];
    for (const [type, values] of cases) {
      const reader = open(encodeSegment({ ...plainInput([{ type, values }]), keyColumnIds: [1] }));
      expect(values.map((value) => reader.findKey(0, [value]))).toEqual(
        values.map((_, row) => row),
      );
    }
  });

  test("hasTombstones returns without reading rows", () => {
    const input = plainInput([{ type: INT, values: [1, 2, 3] }]);
    const withNone = open(encodeSegment(input));
    expect(withNone.hasTombstones(0)).toBe(false);
    for (const flags of [
      [0, 1, 0],
      [1, 1, 1],
    ]) {
      const reader = open(encodeSegment({ ...input, deleted: Uint8Array.from(flags) }));
      expect(reader.hasTombstones(0)).toBe(true);
      expect([...reader.deleted(0)]).toEqual(flags);
    }
  });
});

/** A disk that counts the open files. */
class CountingDisk extends ForwardingDisk {
  openCount = 0;
  readonly simulated: SimulatedDisk;

  constructor(simulated: SimulatedDisk) {
    super(simulated);
    this.simulated = simulated;
  }

  override open(path: string, options: OpenOptions): DiskFile {
    const file = new CountedFile(super.open(path, options));
    this.openCount += 1;
    file.onClose = () => {
      this.openCount -= 1;
    };
    return file;
  }
}

class CountedFile extends ForwardingFile {
  onClose: () => void = () => {};

  override close(): void {
    super.close();
    this.onClose();
  }
}

/** A usual run damages one of this many bytes. */
const BYTES_EACH = amountOf({ usual: 5, thorough: 1 });

describe("damage to segments is detected", () => {
  const random = new SeededRandom(5);
  const { input } = randomSegment(random, { rowCount: 40, ownerCount: 4, keyTypes: [INT] });
  const good = encodeSegment(input);

  test("verify throws CorruptionError for damage to any single byte of a segment", () => {
    for (let offset = 0; offset < good.length; offset += BYTES_EACH) {
      const damaged = good.slice();
      damaged[offset] = (damaged[offset] ?? 0) ^ (1 + (offset % 255));
      expect(() => readAll(damaged), `byte ${offset}`).toThrow(CorruptionError);
    }
  });

  test("open throws CorruptionError for damage in header, trailer or directory", () => {
    const trailer = new DataView(good.buffer, good.length - 64);
    const directoryOffset = trailer.getUint32(8, true);
    for (let offset = 0; offset < good.length; offset += 1) {
      if (offset === 64) offset = directoryOffset;
      const damaged = good.slice();
      damaged[offset] = (damaged[offset] ?? 0) ^ 0xff;
      expect(() => open(damaged), `byte ${offset}`).toThrow(CorruptionError);
    }
  });

  testThoroughly(
    "open throws CorruptionError for truncation anywhere, even if the recorded length matches",
    () => {
      for (let length = 0; length < good.length; length += 1) {
        const disk = diskWith(good.subarray(0, length));
        expect(() => SegmentReader.open(disk, PATH, good.length)).toThrow(CorruptionError);
        expect(() => SegmentReader.open(disk, PATH, length), `${length}`).toThrow(CorruptionError);
      }
      const longer = new Uint8Array(good.length + 8);
      longer.set(good);
      expect(() => open(longer)).toThrow(CorruptionError);
    },
  );

  test("damage in one chunk leaves the others readable", () => {
    const reader = open(good);
    const { offset } = reader.chunkEntry(-1, 0) ?? { offset: 0 };
    reader.close();
    const damaged = good.slice();
    damaged[offset] = (damaged[offset] ?? 0) ^ 1;
    const half = open(damaged);
    expect(() => half.seqs(0)).toThrow(
      `Cannot read /1.seg at byte ${offset}: the checksum of column -1 in row group 0 does not match`,
    );
    expect(half.column(1, 0)?.length).toBe(40);
  });

  test("a chunk that replaces another of the same length is damage", () => {
    const values = Array.from({ length: 100 }, (_, row) => row / 3);
    const twins = encodeSegment(
      plainInput([
        { type: DOUBLE, values },
        { type: DOUBLE, values: values.map((value) => -value) },
      ]),
    );
    const reader = open(twins);
    const first = reader.chunkEntry(1, 0)?.offset ?? 0;
    const second = reader.chunkEntry(2, 0)?.offset ?? 0;
    const swapped = twins.slice();
    swapped.set(twins.subarray(first, first + 800), second);
    swapped.set(twins.subarray(second, second + 800), first);
    expect(() => open(swapped).column(1, 0)).toThrow(CorruptionError);
  });

  test.each(["map", "read"] as const)(
    "a segment that cannot be opened because its %s fails leaves no file open",
    (operation) => {
      const disk = new CountingDisk(diskWith(good));
      for (const code of ["EMFILE", "EIO"] as const) {
        disk.simulated.faultPlan = failNth(operation, 1, { code });
        expect(() => SegmentReader.open(disk, PATH, good.length)).toThrow(code);
        expect(disk.openCount, code).toBe(0);
      }
      expect(() => SegmentReader.open(disk, PATH, good.length + 1)).toThrow("bytes instead of");
      expect(disk.openCount).toBe(0);
      const reader = SegmentReader.open(disk, PATH, good.length);
      expect(disk.openCount).toBe(1);
      reader.close();
      expect(disk.openCount).toBe(0);
    },
  );

  test("parts that a failing disk cannot read are unreadable, at open and at the first access", () => {
    const disk = diskWith(good);
    disk.faultPlan = failNth("read", 1, { code: "EIO" });
    expect(() => SegmentReader.open(disk, PATH, good.length)).toThrow(UnreadableError);
    const reader = SegmentReader.open(disk, PATH, good.length);
    disk.faultPlan = failNth("read", 1, { code: "EIO" });
    expect(() => reader.seqs(0)).toThrow(UnreadableError);
    expect(reader.seqs(0).length).toBe(40);
  });
});

describe("segments are written and closed", () => {
  const input = plainInput([{ type: INT, values: [1, 2, 3] }]);

  test("writeSegment writes the bytes of encodeSegment in steps", () => {
    const disk = new SimulatedDisk();
    const file = disk.open(PATH, { create: true });
    const steps = writeSegment(file, segmentChunks(input));
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    const bytes = encodeSegment(input);
    expect(disk.readFile(PATH)).toEqual(bytes);
    expect(step.value).toEqual({ bytes: bytes.length, rowCount: 3, minSeq: 1, maxSeq: 3 });
  });

  test("SegmentWriter accepts groups of any size, and the reader finds every row", () => {
    const random = new SeededRandom(8);
    const model = randomSegment(random, { rowCount: 300, ownerCount: 9, keyTypes: [INT] });
    const writer = new SegmentWriter(model.input);
    const pieces: Uint8Array[] = [];
    for (let start = 0; start < 300; ) {
      const end = Math.min(300, start + random.between(1, 60));
      const { owners, seqs, prevs, commitSeqs, deleted, columns } = model.input;
      const rows = {
        vectors: columns.map(({ vector }) => slice(vector, start, end)),
        owners: owners.subarray(start, end),
        seqs: seqs.subarray(start, end),
        prevs: prevs.subarray(start, end),
        commitSeqs: commitSeqs.subarray(start, end),
        deleted: deleted.subarray(start, end),
      };
      pieces.push(...writer.group(rows));
      start = end;
    }
    expect(writer.rowCount).toBe(300);
    expect(writer.byteCount).toBe(Buffer.concat(pieces).length);
    pieces.push(...writer.finish());
    const reader = open(Buffer.concat(pieces));
    expect(reader.groupCount).toBeGreaterThan(4);
    expectSame(reader, model);
    for (let row = 0; row < 300; row += 1) {
      const owner = model.input.owners[row] ?? 0;
      expect(reader.rowOfSeq(owner, model.input.seqs[row] ?? 0)).toBe(row);
    }
  });

  test("the writer refuses rows that are out of order", () => {
    const owners = Float64Array.from([1, 0, 0]);
    expect(() => encodeSegment({ ...input, owners })).toThrow(AssertionError);
    const seqs = Float64Array.from([1, 1, 2]);
    expect(() => encodeSegment({ ...input, seqs })).toThrow(AssertionError);
  });

  test("close leaves every view with length 0 and refuses further reads", () => {
    const values = Array.from({ length: 100 }, (_, row) => row / 3);
    const reader = open(encodeSegment(plainInput([{ type: DOUBLE, values }])));
    const vector = reader.column(1, 0);
    expect(vector?.kind === "f64" && vector.values.length).toBe(100);
    reader.close();
    expect(vector?.kind === "f64" && vector.values.length).toBe(0);
    expect(() => reader.valueAt(1, 0)).toThrow(AssertionError);
  });
});
