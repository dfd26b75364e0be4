/**
 * Verifies that Zstandard restores blocks of every length, and detects data that was not
 * compressed with it.
 */
import { expect, spyOn, test } from "bun:test";
import { AssertionError } from "../../src/base/assert.ts";
import { zstdPack, zstdUnpack } from "../../src/base/zstd.ts";
import { SeededRandom } from "../support/seeded_random.ts";

const LENGTHS = [1, 2, 100, 255, 256, 257, 4096, 16_383, 16_384, 65_535, 65_536];

test.each(LENGTHS)("a block of %d bytes is restored, whether or not it shrinks", (length) => {
  const random = new SeededRandom(length);
  const even = new Uint8Array(length).fill(7);
  for (const block of [even, new Uint8Array(random.bytes(length))]) {
    const packed = zstdPack(block);
    expect(new Uint8Array(zstdUnpack(packed, length) ?? [])).toEqual(block);
    for (const other of [0, length - 1, length + 1, 2 * length]) {
      if (other !== length) expect(zstdUnpack(packed, other)).toBeUndefined();
    }
  }
  if (length > 1000) expect(zstdPack(even).length).toBeLessThan(length / 50);
});

test("zstdPack refuses input that is not a block", () => {
  expect(() => zstdPack(new Uint8Array(0))).toThrow(AssertionError);
  expect(() => zstdPack(new Uint8Array(65_537))).toThrow(AssertionError);
});

test("zstdUnpack detects truncated input, and input that is not a frame of the given length", () => {
  const random = new SeededRandom(1);
  const block = new Uint8Array(random.bytes(300));
  const packed = zstdPack(block);
  for (let length = 0; length < 50; length += 1) {
    expect(zstdUnpack(packed.subarray(0, length), 300)).toBeUndefined();
  }
  expect(zstdUnpack(new Uint8Array(40), 300)).toBeUndefined();
  // The first of the two frames has the expected length.
  expect(zstdUnpack(Buffer.concat([packed, packed]), 300)).toBeUndefined();
  // The first of these headers claims a length of 2^31 in four bytes, and the second contains no
  // length.
  for (const head of [
    [0xa0, 0, 0, 0, 0x80],
    [0x00, 0x38],
  ]) {
    const other = Uint8Array.from([...packed.subarray(0, 4), ...head, ...packed.subarray(7)]);
    expect(zstdUnpack(other, 300)).toBeUndefined();
  }
  for (let at = 0; at < 8; at += 1) {
    const damaged = Uint8Array.from(packed);
    damaged[at] = (damaged[at] ?? 0) ^ 0xff;
    expect(zstdUnpack(damaged, 300), `byte ${at}`).toBeUndefined();
  }
});

test("zstdUnpack never asks the library for more memory than the input declares", () => {
  const first = zstdPack(new Uint8Array(300).fill(7));
  // This input of half a kilobyte would decompress to 16 MiB.
  const bomb = Bun.zstdCompressSync(new Uint8Array(2 ** 24));
  const skipped = [0x50, 0x2a, 0x4d, 0x18, 0x60, 44, 0, 0];
  const repeated = [0x02, 0x09, 0, 7];
  const forged: [string, Uint8Array][] = [
    ["another frame behind it", Buffer.concat([first, bomb])],
    ["an empty frame behind it", Buffer.concat([first, Bun.zstdCompressSync(new Uint8Array(0))])],
    [
      "a frame that is skipped",
      Buffer.concat([Uint8Array.from(skipped), Buffer.alloc(0x2c60), bomb]),
    ],
    [
      "many blocks",
      Uint8Array.from([
        ...first.subarray(0, 7),
        ...Array.from({ length: 9 }, () => repeated).flat(),
      ]),
    ],
  ];
  const unpack = spyOn(Bun, "zstdDecompressSync");
  try {
    for (const [what, bytes] of forged) expect(zstdUnpack(bytes, 300), what).toBeUndefined();
    expect(unpack).not.toHaveBeenCalled();
  } finally {
    unpack.mockRestore();
  }
});
