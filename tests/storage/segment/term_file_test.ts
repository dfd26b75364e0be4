/**
 * Tests the file of an inverted index, and queries over its lists: written terms can be found,
 * damage to any byte is detected, and a query finds the same rows as a linear search.
 */
import { expect, test } from "bun:test";
import { CorruptionError } from "../../../src/base/errors.ts";
import type { TermQuery } from "../../../src/storage/mod.ts";
import {
  openEitherFile,
  openTermFile,
  TermFileWriter,
} from "../../../src/storage/segment/term_file.ts";
import { countByTerms, rowsByTerms } from "../../../src/storage/segment/term_lists.ts";
import { type TermPart, TermPartBuilder } from "../../../src/storage/segment/term_part.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

const PATH = "/data/1.2.idx";
const PLACE = { segmentId: 1, tableId: 3, indexId: 2, rowCount: 5 };

function partOf(firstRow: number, rows: readonly (readonly string[])[]): TermPart {
  const builder = new TermPartBuilder(firstRow);
  for (const terms of rows) builder.add(terms);
  return builder.finished();
}

function writeFile(disk: SimulatedDisk, parts: readonly TermPart[]): void {
  disk.makeDirectory("/data");
  const file = disk.open(PATH, { create: true });
  const writer = new TermFileWriter(file, PLACE);
  for (const part of parts) for (const _ of writer.add(part));
  writer.finish();
  file.close();
}

function rowsOf(part: TermPart, query: TermQuery): number[] {
  return [...rowsByTerms(part, query, { start: 0, end: 65_536 })];
}

function term(text: string, isPrefix = false): TermQuery {
  return { kind: "term", term: text, isPrefix };
}

const FIRST = [["cat", "hat"], [], ["cat", "catalogue", "", "cat"]];
const SECOND = [["日本", "é", "😀", "\ue000"], ["hat"]];

test("a file contains the rows of each term in each part", () => {
  const disk = new SimulatedDisk();
  writeFile(disk, [partOf(0, FIRST), partOf(3, SECOND)]);
  const opened = openTermFile(disk, PATH, PLACE);
  const [first, second] = opened.parts;
  if (first === undefined || second === undefined) throw new Error("the file has two parts");
  expect([first.firstRow, second.firstRow]).toEqual([0, 3]);
  expect(rowsOf(first, term("cat"))).toEqual([0, 2]);
  expect(rowsOf(first, term("ca"))).toEqual([]);
  expect(rowsOf(first, term("ca", true))).toEqual([0, 2]);
  expect(rowsOf(first, term(""))).toEqual([2]);
  expect(rowsOf(first, term("zz"))).toEqual([]);
  for (const each of ["日本", "é", "😀", "\ue000"]) expect(rowsOf(second, term(each))).toEqual([0]);
  expect(rowsOf(second, term("日", true))).toEqual([0]);
  opened.close();
  openEitherFile(disk, PATH, PLACE).close();
});

test("damage to any byte is detected, and so is a file from another place", () => {
  const disk = new SimulatedDisk();
  writeFile(disk, [partOf(0, FIRST), partOf(3, SECOND)]);
  const good = disk.readFile(PATH);
  for (const place of [{ segmentId: 9 }, { tableId: 9 }, { indexId: 9 }, { rowCount: 6 }]) {
    expect(() => openTermFile(disk, PATH, { ...PLACE, ...place })).toThrow(CorruptionError);
  }
  const rewrite = (bytes: Uint8Array): void => {
    const file = disk.open(PATH, { create: true });
    file.truncate(0);
    file.write(bytes, 0);
    file.close();
  };
  for (let at = 0; at < good.length; at += 1) {
    const bad = good.slice();
    bad[at] = (bad[at] ?? 0) ^ 4;
    rewrite(bad);
    expect(() => openTermFile(disk, PATH, PLACE)).toThrow(CorruptionError);
  }
  for (const length of [0, 30, 64, good.length - 8, good.length - 1]) {
    rewrite(good.subarray(0, length));
    expect(() => openTermFile(disk, PATH, PLACE)).toThrow(CorruptionError);
  }
  rewrite(Buffer.concat([good, new Uint8Array(8)]));
  expect(() => openTermFile(disk, PATH, PLACE)).toThrow(CorruptionError);
});

const WORDS = ["a", "ab", "abc", "b", "ba", "c", "日", "日本"];

function randomQuery(random: SeededRandom, depth = 0): TermQuery {
  if (depth > 2 || random.chance(0.4)) return term(random.pick(WORDS), random.chance(0.3));
  const parts = Array.from({ length: random.below(5) }, () => randomQuery(random, depth + 1));
  return { kind: "some", least: 1 + random.below(parts.length + 1), parts };
}

function meets(terms: readonly string[], query: TermQuery): boolean {
  if (query.kind === "term") {
    return terms.some((each) =>
      query.isPrefix ? each.startsWith(query.term) : each === query.term,
    );
  }
  return query.parts.filter((part) => meets(terms, part)).length >= query.least;
}

test("queries find the same rows as a plain search, and count at least as many", () => {
  const random = new SeededRandom(7);
  for (let round = 0; round < 60; round += 1) {
    const rows = Array.from({ length: 1 + random.below(300) }, () =>
      WORDS.filter(() => random.chance(0.2)),
    );
    const part = partOf(100, rows);
    for (let question = 0; question < 20; question += 1) {
      const query = randomQuery(random);
      const start = random.below(rows.length);
      const range = { start, end: start + random.below(rows.length) };
      const expected = [...rows.entries()].flatMap(([row, terms]) =>
        row >= range.start && row < range.end && meets(terms, query) ? row : [],
      );
      expect([...rowsByTerms(part, query, range)]).toEqual(expected);
      expect(countByTerms(part, query, range)).toBeGreaterThanOrEqual(expected.length);
    }
  }
});
