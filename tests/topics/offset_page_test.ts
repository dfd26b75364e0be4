/**
 * Tests the stored form of an offset page: it is read back unchanged, and damage is always
 * detected rather than mistaken for other messages. Also tests the partition hash, which is part
 * of the storage format.
 */
import { expect, test } from "bun:test";
import { CorruptionError } from "../../src/base/errors.ts";
import { bodyOf, contentsOf, PAGE_MESSAGES, PageContents } from "../../src/topics/offset_page.ts";
import { hashOfNumber, hashOfValue, partitionOf } from "../../src/topics/partition_hash.ts";
import { SeededRandom } from "../support/seeded_random.ts";

function pageOf(random: SeededRandom, count: number): PageContents {
  const contents = new PageContents();
  let seq = random.below(2 ** 30) * 4096;
  for (let index = 0; index < count; index += 1) {
    seq += 1 + random.below(random.pick([1, 4096, 2 ** 30]));
    contents.push(seq, random.pick([1, 1, 1, 300]), random.pick([0, 0, 7, 2 ** 31 + 5]));
  }
  return contents;
}

function messagesOf({ count, owners, seqs, sourceIds }: PageContents): number[][] {
  return Array.from({ length: count }, (_, index) => [
    seqs[index] ?? 0,
    owners[index] ?? 0,
    sourceIds[index] ?? 0,
  ]);
}

test("contentsOf returns what bodyOf has written, from one message to a full page", () => {
  const random = new SeededRandom(3);
  for (const count of [1, 2, 7, PAGE_MESSAGES - 1, PAGE_MESSAGES]) {
    const page = pageOf(random, count);
    const again = contentsOf(bodyOf(page), "test");
    expect(messagesOf(again)).toEqual(messagesOf(page));
  }
});

test("contentsOf refuses a body that is truncated anywhere", () => {
  const body = bodyOf(pageOf(new SeededRandom(4), 40));
  for (let length = 0; length < body.length; length += 1) {
    expect(() => contentsOf(body.subarray(0, length), "test"), `length ${length}`).toThrow(
      CorruptionError,
    );
  }
});

test("PageContents.push refuses a seq that does not ascend", () => {
  const page = new PageContents();
  page.push(5, 1, 0);
  expect(() => page.push(5, 1, 0)).toThrow(
    "offset page: messages are not in ascending order of seq",
  );
});

test("PageContents.firstAbove finds the first message above a seq: before, on, between and after", () => {
  const page = new PageContents();
  for (const seq of [10, 20, 30]) page.push(seq, 1, 0);
  expect([0, 10, 15, 29, 30].map((seq) => page.firstAbove(seq))).toEqual([0, 1, 1, 2, 3]);
});

test("the partition of a row never changes", () => {
  const place = (owner: number, ...key: Parameters<typeof hashOfValue>[1][]): number => {
    let hash = hashOfNumber(hashOfNumber(0, 12), owner);
    for (const value of key) hash = hashOfValue(hash, value);
    return partitionOf(hash, 1024);
  };
  expect([
    place(0, 1),
    place(0, 2),
    place(7, 1),
    place(0, "a"),
    place(0, "ä€"),
    place(0, "a", 1),
    place(0, true),
    place(0, null),
  ]).toMatchInlineSnapshot(`
    [
      563,
      139,
      725,
      124,
      192,
      365,
      563,
      223,
    ]
  `);
  expect(place(0, 5n)).toBe(place(0, 5));
  expect(place(0, -0)).toBe(place(0, 0));
  const counts = new Uint32Array(16);
  for (let id = 0; id < 16_000; id += 1) {
    const partition = partitionOf(hashOfNumber(0, id), 16);
    counts[partition] = (counts[partition] ?? 0) + 1;
  }
  expect(Math.min(...counts)).toBeGreaterThan(850);
  expect(Math.max(...counts)).toBeLessThan(1150);
});
