/** Tests round trips, bounds and truncated input of the byte codec. */
import { expect, test } from "bun:test";
import { AssertionError } from "../../src/base/assert.ts";
import { ByteReader } from "../../src/base/byte_reader.ts";
import { ByteWriter } from "../../src/base/byte_writer.ts";
import { crc32, placeSeed, xxHash3 } from "../../src/base/checksum.ts";
import { CorruptionError } from "../../src/base/errors.ts";
import { SeededRandom } from "../support/seeded_random.ts";

const SOURCE = { path: "test.bin", fileOffset: 100 };

const TEXTS = ["", "a", "tide", "é", "naïve", "\u{1f30a}", "x".repeat(31), "x".repeat(32)].concat([
  "x".repeat(33),
  "ü".repeat(300),
  `${"x".repeat(20)}\u{10ffff}`,
  "日本語",
]);

function readerOf(write: (writer: ByteWriter) => void): ByteReader {
  const writer = new ByteWriter(16);
  write(writer);
  return new ByteReader(writer.copy(), SOURCE);
}

test("whole numbers round-trip at the bounds of each width", () => {
  const reader = readerOf((writer) => {
    for (const value of [0, 255]) writer.u8(value);
    for (const value of [0, 65535]) writer.u16(value);
    for (const value of [0, 4294967295]) writer.u32(value);
    for (const value of [-2147483648, 2147483647]) writer.i32(value);
    for (const value of [0, 4294967296, Number.MAX_SAFE_INTEGER]) writer.u53(value);
  });
  expect([reader.u8(), reader.u8()]).toEqual([0, 255]);
  expect([reader.u16(), reader.u16()]).toEqual([0, 65535]);
  expect([reader.u32(), reader.u32()]).toEqual([0, 4294967295]);
  expect([reader.i32(), reader.i32()]).toEqual([-2147483648, 2147483647]);
  expect([reader.u53(), reader.u53(), reader.u53()]).toEqual([0, 2 ** 32, 2 ** 53 - 1]);
  expect(reader.remaining).toBe(0);
});

test("varint round-trips on both sides of every length", () => {
  const values: number[] = [0, Number.MAX_SAFE_INTEGER];
  for (let bits = 7; bits < 53; bits += 7) values.push(2 ** bits - 1, 2 ** bits);
  const reader = readerOf((writer) => {
    for (const value of values) writer.varint(value);
  });
  expect(values.map(() => reader.varint())).toEqual(values);
});

test("text round-trips, short and long, ASCII or not", () => {
  const reader = readerOf((writer) => {
    for (const text of TEXTS) writer.text(text);
  });
  expect(TEXTS.map(() => reader.text())).toEqual(TEXTS);
  expect(reader.remaining).toBe(0);
});

test("any sequence of writes round-trips", () => {
  const random = new SeededRandom(7);
  for (let round = 0; round < 200; round += 1) {
    const writer = new ByteWriter(1);
    const checks: ((reader: ByteReader) => void)[] = [];
    for (let step = 0; step < 20; step += 1) {
      const number = Math.floor(random.unit() * 2 ** random.between(1, 53));
      const bytes = random.bytes(random.below(40));
      const text = random.pick(TEXTS);
      switch (random.below(6)) {
        case 0:
          writer.f64(random.unit() - number);
          break;
        case 1:
          writer.varint(number);
          checks.push((reader) => expect(reader.varint()).toBe(number));
          continue;
        case 2:
          writer.block(bytes);
          checks.push((reader) => expect([...reader.block()]).toEqual([...bytes]));
          continue;
        case 3:
          writer.text(text);
          checks.push((reader) => expect(reader.text()).toBe(text));
          continue;
        case 4:
          writer.u53(number);
          checks.push((reader) => expect(reader.u53()).toBe(number));
          continue;
        default:
          writer.align(8);
          writer.f64(number);
          checks.push((reader) => {
            reader.align(8);
            expect(reader.f64()).toBe(number);
          });
          continue;
      }
      checks.push((reader) => reader.skip(8));
    }
    const reader = new ByteReader(writer.view(), SOURCE);
    for (const check of checks) check(reader);
    expect(reader.remaining).toBe(0);
  }
});

test("setU32 overwrites a placeholder, and cutTo and reset discard bytes", () => {
  const writer = new ByteWriter();
  writer.u32(0);
  writer.u8(1);
  writer.setU32(0, 77);
  writer.cutTo(4);
  expect([...writer.view()]).toEqual([77, 0, 0, 0]);
  expect(() => writer.setU32(1, 0)).toThrow(AssertionError);
  writer.reset();
  expect(writer.length).toBe(0);
});

test("every read past the end is a CorruptionError with the position", () => {
  const reads: ((reader: ByteReader) => unknown)[] = [
    (reader) => reader.u8(),
    (reader) => reader.u16(),
    (reader) => reader.u32(),
    (reader) => reader.i32(),
    (reader) => reader.f64(),
    (reader) => reader.u53(),
    (reader) => reader.varint(),
    (reader) => reader.raw(1),
    (reader) => reader.block(),
    (reader) => reader.text(),
    (reader) => reader.skip(1),
  ];
  for (const read of reads) {
    const reader = new ByteReader(new Uint8Array(3), SOURCE);
    reader.skip(3);
    expect(() => read(reader)).toThrow("Cannot read test.bin at byte 103: the data ends too early");
  }
});

test("a number beyond 53 bits is a CorruptionError", () => {
  expect(() => new ByteReader(new Uint8Array(8).fill(255), SOURCE).u53()).toThrow(CorruptionError);
  expect(() => new ByteReader(new Uint8Array(9).fill(255), SOURCE).varint()).toThrow(
    CorruptionError,
  );
});

test("crc32 continues from the preceding bytes", () => {
  const bytes = new TextEncoder().encode("123456789");
  expect(crc32(bytes)).toBe(0xcbf43926);
  expect(crc32(bytes.subarray(4), crc32(bytes.subarray(0, 4)))).toBe(0xcbf43926);
});

test("xxHash3 depends on the seed, and placeSeed on every part of the place", () => {
  const bytes = new TextEncoder().encode("123456789");
  const places = [placeSeed(1, 2, 3), placeSeed(2, 2, 3), placeSeed(1, 3, 3), placeSeed(1, 2, 4)];
  expect(new Set(places).size).toBe(4);
  const hashes = places.map((seed) => xxHash3(bytes, seed).low);
  expect(new Set(hashes).size).toBe(4);
  // XXH3_64bits of an empty input is 2D06800538D394C2 in the published test vectors.
  expect(xxHash3(new Uint8Array(0))).toEqual({ low: 0x38d394c2, high: 0x2d068005 });
});
