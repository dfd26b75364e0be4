/**
 * Tests packed chunks. Written values can be read back as a whole, in part and one by one. Chunks
 * that are not worth packing stay plain. Neither damaged bytes nor bytes that do not unpack
 * correctly are ever served.
 *
 * To reproduce a failure: SEED=<n> bun test tests/storage/segment/packed_chunk_test.ts
 */

import { describe, expect, test } from "bun:test";
import { CorruptionError } from "../../../src/base/errors.ts";
import { ChunkCache } from "../../../src/storage/segment/chunk_cache.ts";
import { ENCODING_NAMES } from "../../../src/storage/segment/encodings.ts";
import {
  encodeHeader,
  PACKED_FORMAT,
  segmentFormatOf,
} from "../../../src/storage/segment/format.ts";
import {
  AUTO_CHUNK_BYTES_MIN,
  AUTO_SHARE_MAX,
  AUTO_VALUE_BYTES_MIN,
  BLOCK_BYTES,
} from "../../../src/storage/segment/packing.ts";
import { SegmentReader } from "../../../src/storage/segment/reader.ts";
import { writeSegment } from "../../../src/storage/segment/writer.ts";
import {
  BIGINT,
  BYTES,
  type DataType,
  DOUBLE,
  INT,
  JSON_TEXT,
  TEXT,
  type Value,
  valuesOf,
  vectorFromValues,
} from "../../../src/types/mod.ts";
import { encodeSegment, type SegmentInput, segmentChunks } from "../../support/encoded_segment.ts";
import { forgedSegment } from "../../support/forged_segment.ts";
import {
  COLUMN_TYPES,
  NULL_SHAPES,
  randomSegment,
  randomValues,
  randomVector,
  SHAPES,
} from "../../support/random_segment.ts";
import { SeededRandom, seedOf } from "../../support/seeded_random.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import { amountOf, shareOf } from "../../support/thoroughness.ts";

const PATH = "/1.seg";

function open(bytes: Uint8Array, cache: ChunkCache = new ChunkCache()): SegmentReader {
  const disk = new SimulatedDisk();
  disk.open(PATH, { create: true }).write(bytes, 0);
  return SegmentReader.open(disk, PATH, bytes.length, cache);
}

function readAll(bytes: Uint8Array): void {
  const reader = open(bytes);
  try {
    reader.verify();
  } finally {
    reader.close();
  }
}

/** Returns rows of a single owner, without a key, in one column with the id 1. */
function inputOf(
  type: DataType,
  values: readonly Value[],
  compression: SegmentInput["compression"],
): SegmentInput {
  const seqs = Float64Array.from({ length: values.length }, (_, row) => row + 1);
  return {
    segmentId: 5,
    tableId: 7,
    keyColumnIds: [],
    compression,
    columns: [{ columnId: 1, type, vector: vectorFromValues(type, values) }],
    owners: new Float64Array(values.length),
    seqs,
    prevs: new Float64Array(values.length),
    commitSeqs: seqs,
    deleted: new Uint8Array(values.length),
  };
}

function isPacked(reader: SegmentReader, columnId = 1): boolean {
  return reader.chunkEntry(columnId, 0)?.isPacked === true;
}

/** Returns a unique string of `length` letters that compresses to less than half. */
function longText(random: SeededRandom, length: number): string {
  const words = ["tide ", "mark ", "ebb ", "flow ", "moon ", "shore "];
  let text = "";
  while (text.length < length) text += random.pick(words) + String(random.below(10));
  return text.slice(0, length);
}

describe("packed chunks are read as they were written", () => {
  test.each(
    shareOf(COLUMN_TYPES, { oneOf: 8 }).map((type) => [JSON.stringify(type), type] as const),
  )("%s comes back whole, in part and one by one", (_name, type) => {
    const seed = seedOf(21);
    const random = new SeededRandom(seed);
    let packedCount = 0;
    for (const shape of SHAPES) {
      for (const nulls of NULL_SHAPES) {
        for (const count of [1, 9, 300, 5000]) {
          const values = randomValues(random, type, { shape, nulls, count });
          const input = inputOf(
            BIGINT,
            values.map((_, row) => row),
            "zstd",
          );
          const vector = randomVector(random, type, values);
          const columns = [...input.columns, { columnId: 9, type, vector }];
          const reader = open(encodeSegment({ ...input, columns }));
          const encoding = ENCODING_NAMES[reader.chunkEntry(9, 0)?.encoding ?? -1];
          const message = `seed ${seed} ${shape} ${nulls} ${count} ${encoding}`;
          if (isPacked(reader, 9)) packedCount += 1;
          for (let round = 0; round < 2; round += 1) {
            const start = random.below(count);
            expect(reader.valueAt(9, start), message).toEqual(values[start] ?? null);
            const end = random.between(start, count);
            const part = reader.columnRows(9, 0, { start, end });
            const found = part === undefined ? [] : valuesOf(part);
            expect(found, message).toEqual(values.slice(start, end));
          }
          const column = reader.column(9, 0);
          expect(column === undefined ? [] : valuesOf(column), message).toEqual(values);
          expect(reader.seqs(0), message).toEqual(input.seqs);
          reader.verify();
          reader.close();
        }
      }
    }
    // Chunks with a single row, only NULLs, or a constant are not packed. Most other chunks are
    // packed.
    expect(packedCount).toBeGreaterThan(type.kind === "boolean" ? 2 : 8);
  });

  test("every way to read a row of a packed segment agrees with the model", () => {
    const random = new SeededRandom(seedOf(4));
    for (let round = 0; round < amountOf({ usual: 2, thorough: 10 }); round += 1) {
      const rowCount = random.between(200, 900);
      const { input } = randomSegment(random, { rowCount, ownerCount: 9, keyTypes: [TEXT, INT] });
      const plain = open(encodeSegment(input));
      const packed = open(encodeSegment({ ...input, compression: "zstd" }));
      expect([plain.format, packed.format]).toEqual([2, PACKED_FORMAT]);
      expect(isPacked(packed, -1)).toBe(true);
      for (let row = 0; row < rowCount; row += 1) {
        const owner = input.owners[row] ?? 0;
        expect(packed.rowOfSeq(owner, input.seqs[row] ?? 0)).toBe(row);
        expect(packed.seqAt(row)).toBe(plain.seqAt(row));
        expect(packed.prevAt(row)).toBe(plain.prevAt(row));
        expect(packed.commitSeqAt(row)).toBe(plain.commitSeqAt(row));
        expect(packed.isTombstone(row)).toBe(plain.isTombstone(row));
        const key = input.keyColumnIds.map((columnId) => plain.valueAt(columnId, row) ?? null);
        expect(packed.findKey(owner, key)).toBe(plain.findKey(owner, key));
        for (const { columnId } of input.columns) {
          expect(packed.valueAt(columnId, row)).toEqual(plain.valueAt(columnId, row) ?? null);
        }
      }
      for (let group = 0; group < plain.groupCount; group += 1) {
        expect(packed.prevs(group)).toEqual(plain.prevs(group));
        expect(packed.commitSeqs(group)).toEqual(plain.commitSeqs(group));
        expect(new Uint8Array(packed.deleted(group))).toEqual(new Uint8Array(plain.deleted(group)));
        expect(packed.hasTombstones(group)).toBe(plain.hasTombstones(group));
        for (const { columnId } of input.columns) {
          expect(packed.zone(columnId, group)).toEqual(plain.zone(columnId, group));
        }
      }
      plain.close();
      packed.close();
    }
  });

  test("text in many blocks is read back, whichever rows are requested", () => {
    const random = new SeededRandom(seedOf(9));
    const values = Array.from({ length: 3000 }, (_, row): Value => {
      if (row % 7 === 3) return null;
      // Some strings span several blocks, and some are empty.
      return row % 500 === 8 ? longText(random, 100_000) : longText(random, random.below(300));
    });
    for (const type of [TEXT, BYTES]) {
      const typed = type === TEXT ? values : values.map(bytesOfText);
      const reader = open(encodeSegment(inputOf(type, typed, "auto")));
      expect(isPacked(reader)).toBe(true);
      expect(reader.unpackedBytes(1, 0)).toBeGreaterThan(20 * BLOCK_BYTES);
      for (let round = 0; round < amountOf({ usual: 50, thorough: 200 }); round += 1) {
        const start = random.below(3000);
        const end = random.between(start, Math.min(3000, start + 700));
        const part = reader.columnRows(1, 0, { start, end });
        expect(part === undefined ? [] : valuesOf(part)).toEqual(typed.slice(start, end));
        if (type === TEXT) expectChosen(reader, { start, end, typed, random });
      }
      const whole = reader.column(1, 0);
      expect(whole === undefined ? [] : valuesOf(whole)).toEqual(typed);
      reader.close();
    }
  });

  test("writeSegment writes the same bytes as encodeSegment, with the matching header", () => {
    const random = new SeededRandom(1);
    const values = Array.from({ length: 900 }, () => longText(random, 200));
    for (const [compression, format] of [
      ["none", 2],
      ["auto", 3],
    ] as const) {
      const input = inputOf(TEXT, values, compression);
      const disk = new SimulatedDisk();
      const steps = writeSegment(disk.open(PATH, { create: true }), segmentChunks(input));
      let step = steps.next();
      while (step.done !== true) step = steps.next();
      const bytes = encodeSegment(input);
      expect(disk.readFile(PATH)).toEqual(bytes);
      expect(segmentFormatOf(bytes)).toBe(format);
      const known = { bytes: bytes.length, rowCount: 900, minSeq: 1, maxSeq: 900 };
      expect(step.value).toEqual(format === 2 ? known : { ...known, compression: "zstd" });
    }
  });
});

/**
 * Checks selected rows of a range. The rows are looked up one by one only if they are far enough
 * apart.
 */
function expectChosen(
  reader: SegmentReader,
  {
    start,
    end,
    typed,
    random,
  }: { start: number; end: number; typed: readonly Value[]; random: SeededRandom },
): void {
  const step = random.between(2, 40);
  const rows = Uint32Array.from({ length: Math.ceil((end - start) / step) }, (_, i) => i * step);
  const selection = { rows, count: rows.length };
  const chosen = reader.chosenTexts(1, 0, { start, selection });
  const span = rows.at(-1) ?? 0;
  expect(chosen === undefined).toBe(rows.length * 16 > span);
  if (chosen === undefined) return;
  expect(valuesOf(chosen)).toEqual([...rows].map((row) => typed[start + row] ?? null));
}

function bytesOfText(value: Value): Value {
  return typeof value === "string" ? new TextEncoder().encode(value) : null;
}

describe("auto and zstd choose which chunks to pack", () => {
  const random = new SeededRandom(2);

  /** Returns one string per row, such that a chunk has `byteCount` bytes including its offsets. */
  function textsOf(byteCount: number, rowCount: number): string[] {
    const textBytes = byteCount - 8 * Math.ceil((rowCount + 1) / 2);
    const each = Math.floor(textBytes / rowCount);
    const texts = Array.from({ length: rowCount }, () => longText(random, each));
    texts[0] += "x".repeat(textBytes - each * rowCount);
    return texts;
  }

  test("auto packs text above a minimum size of the chunk and of its values", () => {
    const rowCount = Math.floor(AUTO_CHUNK_BYTES_MIN / AUTO_VALUE_BYTES_MIN) - 5;
    for (const [byteCount, rows, expected] of [
      [AUTO_CHUNK_BYTES_MIN, rowCount, true],
      [AUTO_CHUNK_BYTES_MIN - 8, rowCount, false],
      [2000 * AUTO_VALUE_BYTES_MIN, 2000, true],
      [2000 * AUTO_VALUE_BYTES_MIN - 8, 2000, false],
    ] as const) {
      const texts = textsOf(byteCount, rows);
      const plain = encodeSegment(inputOf(TEXT, texts, "none"));
      const entry = open(plain).chunkEntry(1, 0);
      expect([entry?.byteCount, ENCODING_NAMES[entry?.encoding ?? -1]]).toEqual([
        byteCount,
        "text",
      ]);
      const bytes = encodeSegment(inputOf(TEXT, texts, "auto"));
      expect(isPacked(open(bytes)), `${byteCount} bytes`).toBe(expected);
      // A segment without packed chunks has the same bytes as a segment written without packing.
      if (!expected) expect(bytes).toEqual(plain);
      expect(isPacked(open(encodeSegment(inputOf(TEXT, texts, "zstd"))))).toBe(true);
    }
  });

  test.each([
    ["small", 200],
    ["sampled", 6000],
  ])("auto packs text that shrinks considerably: a %s chunk", (_name, rowCount) => {
    /** Part of each string is random hexadecimal digits, which compress to half their size. */
    const share = (noiseChars: number): number => {
      const values = Array.from({ length: rowCount }, (_, row) => {
        const noise = Buffer.from(random.bytes(noiseChars)).toString("base64").slice(0, noiseChars);
        return `${String(row).padStart(500 - noiseChars, "-")}${noise}`;
      });
      const plain = open(encodeSegment(inputOf(TEXT, values, "none"))).chunkEntry(1, 0);
      const all = open(encodeSegment(inputOf(TEXT, values, "zstd"))).chunkEntry(1, 0);
      const chosen = open(encodeSegment(inputOf(TEXT, values, "auto")));
      const left = (all?.byteCount ?? 0) / (plain?.byteCount ?? 1);
      expect(isPacked(chosen), `${left} of it is left`).toBe(left <= AUTO_SHARE_MAX);
      return left;
    };
    expect(share(250)).toBeLessThan(AUTO_SHARE_MAX);
    expect(share(450)).toBeGreaterThan(AUTO_SHARE_MAX);
  });

  test("auto packs JSON and bytes, but not numbers, dictionaries or embeddings", () => {
    const rows = Array.from({ length: 5000 }, (_, row) => row);
    const embedding: DataType = { kind: "embedding", dimensions: 64 };
    const cases: [DataType, Value[], boolean][] = [
      [DOUBLE, rows.map((row) => Math.PI * (row % 9)), false],
      [BIGINT, rows.map((row) => (row % 3 === 0 ? 2n ** 60n : row)), false],
      [TEXT, rows.map((row) => "long ".repeat(50) + String(row % 9)), false],
      [embedding, rows.map(() => new Float32Array(64).fill(0.5)), false],
      [JSON_TEXT, rows.map((row) => JSON.stringify({ row, text: "long ".repeat(50) })), true],
      [BYTES, rows.map((row) => new Uint8Array(300).fill(row % 200)), true],
    ];
    for (const [type, values, expected] of cases) {
      expect(isPacked(open(encodeSegment(inputOf(type, values, "auto")))), type.kind).toBe(
        expected,
      );
      expect(isPacked(open(encodeSegment(inputOf(type, values, "zstd")))), type.kind).toBe(true);
      expect(isPacked(open(encodeSegment(inputOf(type, values, "none")))), type.kind).toBe(false);
    }
  });

  test("zstd packs nothing that would not shrink", () => {
    const noise = Array.from({ length: 300 }, () => random.bytes(200));
    expect(isPacked(open(encodeSegment(inputOf(BYTES, noise, "zstd"))))).toBe(false);
    expect(isPacked(open(encodeSegment(inputOf(INT, [1], "zstd"))))).toBe(false);
  });
});

describe("packed chunks use little memory", () => {
  const random = new SeededRandom(3);
  const values = Array.from({ length: 20_000 }, () => longText(random, 200));
  const file = encodeSegment(inputOf(TEXT, values, "auto"));

  test("zone maps and flags are read without unpacking, and a row unpacks only its own blocks", () => {
    const cache = new ChunkCache();
    const input = inputOf(TEXT, values, "zstd");
    const numbers = Float64Array.from({ length: 20_000 }, (_, row) => (row * 7919) % 20_000);
    const columns = [
      ...input.columns,
      {
        columnId: 2,
        type: BIGINT,
        vector: { kind: "f64", length: 20_000, values: numbers, nulls: undefined } as const,
      },
    ];
    const reader = open(encodeSegment({ ...input, columns }), cache);
    expect(isPacked(reader, 2)).toBe(true);
    expect(reader.zone(2, 0)).toEqual({ min: 0, max: 19_999, nullCount: 0 });
    expect(reader.hasTombstones(0)).toBe(false);
    expect(reader.isUnpackedInParts(1, 0)).toBe(true);
    expect(reader.isUnpackedInParts(2, 0)).toBe(false);
    expect(cache.byteCount).toBe(0);
    expect(reader.valueAt(1, 10_000)).toBe(values[10_000] ?? null);
    expect(cache.byteCount).toBeGreaterThan(BLOCK_BYTES);
    expect(cache.byteCount).toBeLessThan(4 * BLOCK_BYTES);
    reader.close();
    expect(cache.byteCount).toBe(0);
  });

  test("the cache stays within its limit, and a block is unpacked once while it is cached", () => {
    const cache = new ChunkCache(20 * BLOCK_BYTES);
    const reader = open(file, cache);
    for (let row = 0; row < 20_000; row += 50) {
      expect(reader.valueAt(1, row)).toBe(values[row] ?? null);
      expect(cache.byteCount).toBeLessThanOrEqual(20 * BLOCK_BYTES);
    }
    expect(cache.byteCount).toBeGreaterThan(15 * BLOCK_BYTES);
    reader.close();
    const roomy = new ChunkCache();
    const again = open(file, roomy);
    for (let start = 0; start < 20_000; start += 4096) {
      again.columnRows(1, 0, { start, end: Math.min(20_000, start + 4096) });
    }
    const full = roomy.byteCount;
    again.columnRows(1, 0, { start: 3, end: 15_000 });
    expect(roomy.byteCount).toBe(full);
    // The chunk is assembled from the cached blocks, and then kept as a whole.
    const whole = again.column(1, 0);
    expect(whole?.length).toBe(20_000);
    expect(again.column(1, 0)).toBe(defined(whole));
    expect(roomy.byteCount).toBeGreaterThan(full + (again.unpackedBytes(1, 0) ?? 0));
    again.close();
    expect(roomy.byteCount).toBe(0);
  });

  test("selected rows unpack only their own blocks", () => {
    const cache = new ChunkCache();
    const reader = open(file, cache);
    const selection = { rows: Uint32Array.of(40, 3000, 4000, 9999), count: 3 };
    const chosen = reader.chosenTexts(1, 0, { start: 100, selection });
    expect(chosen === undefined ? [] : valuesOf(chosen)).toEqual(
      [140, 3100, 4100].map((row) => values[row] ?? ""),
    );
    expect(cache.byteCount).toBeLessThan(9 * BLOCK_BYTES);
    expect(reader.chosenTexts(9, 0, { start: 0, selection })).toBeUndefined();
    reader.close();
  });

  test("a vector of packed rows stays valid after close", () => {
    const reader = open(file);
    const vector = reader.columnRows(1, 0, { start: 10, end: 20 });
    reader.close();
    expect(vector === undefined ? [] : valuesOf(vector)).toEqual(values.slice(10, 20));
  });
});

function defined<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("there is none");
  return value;
}

describe("damage to packed chunks is detected", () => {
  const random = new SeededRandom(6);
  const values = Array.from({ length: 400 }, () => longText(random, 250));
  const good = encodeSegment(inputOf(TEXT, values, "zstd"));
  const { offset, byteCount } = defined(open(good).chunkEntry(1, 0));
  const unpackedBytes = defined(open(good).unpackedBytes(1, 0));
  const blockCount = Math.ceil(unpackedBytes / BLOCK_BYTES);

  const step = amountOf({ usual: 31, thorough: 1 });

  test("verify throws CorruptionError for damage to any single byte of a packed segment", () => {
    const { input } = randomSegment(random, { rowCount: 90, ownerCount: 4, keyTypes: [INT] });
    const small = encodeSegment({ ...input, compression: "zstd" });
    expect(segmentFormatOf(small)).toBe(3);
    for (let at = 0; at < small.length; at += step) {
      const damaged = small.slice();
      damaged[at] = (damaged[at] ?? 0) ^ (1 + (at % 255));
      expect(() => readAll(damaged), `byte ${at}`).toThrow(CorruptionError);
    }
    for (let at = offset; at < offset + byteCount; at += 5 * step) {
      const damaged = good.slice();
      damaged[at] = (damaged[at] ?? 0) ^ (1 + (at % 255));
      expect(() => open(damaged).valueAt(1, 7), `byte ${at}`).toThrow(
        `Cannot read /1.seg at byte ${offset}: the checksum of column 1 in row group 0`,
      );
    }
  });

  test("a forged file without a change can be read", () => {
    const same = forgedSegment(good, 1, () => undefined);
    expect(same).toEqual(good);
    expect(blockCount).toBe(7);
  });

  test("a wrong length counts as damage, even with a valid checksum", () => {
    const lies = [0, 1, 7, BLOCK_BYTES, unpackedBytes - 8, unpackedBytes - 1, unpackedBytes + 1];
    const more = [unpackedBytes + 8, blockCount * BLOCK_BYTES, 2 * unpackedBytes, 2 ** 32 - 1];
    for (const lie of [...lies, ...more]) {
      const bytes = forgedSegment(good, 1, (chunk) => chunk.setUint32(0, lie, true));
      const message = `${lie} instead of ${unpackedBytes}`;
      expect(() => readAll(bytes), message).toThrow(CorruptionError);
      const reader = open(bytes);
      expect(() => reader.column(1, 0), message).toThrow(
        /^Cannot read \/1\.seg at byte \d+: .*packed/,
      );
      // Damage to this column must not affect the other columns.
      expect(reader.seqs(0).length).toBe(400);
    }
  });

  test("a wrong end of a block counts as damage", () => {
    for (let block = 0; block < blockCount; block += 1) {
      for (const by of [-4000, -1, 1, 8, 4000, 2 ** 31]) {
        const bytes = forgedSegment(good, 1, (chunk) => {
          const at = 4 + 4 * block;
          chunk.setUint32(at, chunk.getUint32(at, true) + by, true);
        });
        if (block === blockCount - 1 && by > 0 && by < 8) continue;
        expect(() => open(bytes).column(1, 0), `block ${block} by ${by}`).toThrow(CorruptionError);
      }
    }
  });

  test("ends of blocks that decrease or exceed the chunk are damage before a block is unpacked", () => {
    const lastAt = 4 * blockCount;
    for (const lie of [
      (chunk: DataView) => chunk.setUint32(8, chunk.getUint32(4, true), true),
      (chunk: DataView) => chunk.setUint32(8, 1, true),
      (chunk: DataView) => chunk.setUint32(4, 0, true),
      (chunk: DataView) => chunk.setUint32(lastAt, chunk.getUint32(lastAt, true) + 8, true),
      (chunk: DataView) => chunk.setUint32(lastAt, chunk.getUint32(lastAt, true) - 8, true),
    ]) {
      const bytes = forgedSegment(good, 1, lie);
      expect(() => open(bytes).valueAt(1, 0)).toThrow(
        `Cannot read /1.seg at byte ${offset}: the blocks of a packed chunk do not fit its ${unpackedBytes} bytes`,
      );
    }
  });

  test("a block that does not unpack is damage with a position, and the others can be read", () => {
    const headBytes = 4 + 4 * blockCount;
    for (const inFrame of [0, 3, 4, 5, 6]) {
      let secondAt = 0;
      const bytes = forgedSegment(good, 1, (chunk) => {
        secondAt = offset + headBytes + chunk.getUint32(4, true);
        const at = secondAt - offset + inFrame;
        chunk.setUint8(at, chunk.getUint8(at) ^ 0xff);
      });
      const reader = open(bytes);
      const message = `Cannot read /1.seg at byte ${secondAt}: block 1 of a packed chunk does not unpack to ${BLOCK_BYTES} bytes`;
      expect(() => reader.column(1, 0)).toThrow(message);
      expect(() => reader.verify()).toThrow(message);
      expect(reader.valueAt(1, 0)).toBe(values[0] ?? null);
      expect(reader.valueAt(1, 399)).toBe(values[399] ?? null);
      expect(() => reader.valueAt(1, 91)).toThrow(message);
    }
  });

  test("a packed chunk in a file that declares none is damage", () => {
    const bytes = good.slice();
    bytes.set(encodeHeader({ format: 2, segmentId: 5, tableId: 7 }));
    const reader = open(bytes);
    expect(() => reader.column(1, 0)).toThrow(
      `Cannot read /1.seg at byte ${offset}: a chunk is packed, but the file has format 2, which has no packed chunks`,
    );
  });
});
