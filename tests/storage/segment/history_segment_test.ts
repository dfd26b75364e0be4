/**
 * Tests history segments: each row is returned with the seq that replaced it, no damaged byte is
 * served, and a file is opened only as the kind listed in the manifest.
 */
import { describe, expect, test } from "bun:test";
import { AssertionError } from "../../../src/base/assert.ts";
import { CorruptionError } from "../../../src/base/errors.ts";
import type { Seq } from "../../../src/base/seq.ts";
import type { SegmentEntry } from "../../../src/storage/mod.ts";
import { HISTORY_FORMAT } from "../../../src/storage/segment/format.ts";
import { historyBoundsOf } from "../../../src/storage/segment/history_bounds.ts";
import { SegmentReader } from "../../../src/storage/segment/reader.ts";
import { INT } from "../../../src/types/mod.ts";
import { encodeSegment, type SegmentInput } from "../../support/encoded_segment.ts";
import { randomSegment } from "../../support/random_segment.ts";
import { testThoroughly } from "../../support/requirements.ts";
import { SeededRandom, seedOf } from "../../support/seeded_random.ts";
import { checkListed } from "../../support/segment_files.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

const PATH = "/1.seg";

function diskWith(bytes: Uint8Array): SimulatedDisk {
  const disk = new SimulatedDisk();
  disk.open(PATH, { create: true }).write(bytes, 0);
  return disk;
}

function open(bytes: Uint8Array): SegmentReader {
  return SegmentReader.open(diskWith(bytes), PATH, bytes.length);
}

/** Returns a history segment in which tombstones are recorded as their own replacement. */
function randomHistory(random: SeededRandom, rowCount: number): SegmentInput {
  const { input } = randomSegment(random, { rowCount, ownerCount: 4, keyTypes: [INT] });
  const replacingSeqs = input.seqs.map(
    (seq, row) => seq + (input.deleted[row] === 1 ? 0 : 1 + random.below(2 ** 40)),
  );
  return { ...input, isHistory: true, replacingSeqs };
}

function entryOf(bytes: Uint8Array): SegmentEntry {
  const reader = open(bytes);
  const { maxSeq, minSeq, rowCount, segmentId, tableId } = reader;
  const history = historyBoundsOf(reader);
  return {
    segmentId,
    tableId,
    minSeq: minSeq as Seq,
    maxSeq: maxSeq as Seq,
    rowCount,
    bytes: bytes.length,
    deletionGeneration: 0,
    createdAtMs: 0,
    quarantined: false,
    ...(history === undefined ? {} : { history }),
  };
}

test("replacing seqs are read back, packed or not, together and one by one", () => {
  const random = new SeededRandom(seedOf(31));
  for (const rowCount of [1, 7, 900]) {
    const input = randomHistory(random, rowCount);
    for (const compression of ["none", "zstd"] as const) {
      const reader = open(encodeSegment({ ...input, compression }));
      expect([reader.format, reader.isHistory]).toEqual([HISTORY_FORMAT, true]);
      const expected = input.replacingSeqs ?? new Float64Array();
      expect(reader.replacingSeqs(0)).toEqual(expected);
      for (const [row, seq] of expected.entries()) expect(reader.replacingSeqAt(row)).toBe(seq);
      expect(reader.seqs(0)).toEqual(input.seqs);
      expect(historyBoundsOf(reader)).toEqual({
        lowestReplacingSeq: Math.min(...expected) as Seq,
        highestReplacingSeq: Math.max(...expected) as Seq,
      });
      reader.verify();
      reader.close();
    }
  }
});

test("other segments have no replacing seqs", () => {
  const { input } = randomSegment(new SeededRandom(32), {
    rowCount: 9,
    ownerCount: 2,
    keyTypes: [INT],
  });
  const reader = open(encodeSegment(input));
  expect([reader.isHistory, historyBoundsOf(reader)]).toEqual([false, undefined]);
  expect(() => reader.replacingSeqs(0)).toThrow(AssertionError);
  reader.close();
});

testThoroughly("verify throws CorruptionError for damage to any single byte", () => {
  const good = encodeSegment(randomHistory(new SeededRandom(33), 30));
  for (let offset = 0; offset < good.length; offset += 1) {
    const damaged = good.slice();
    damaged[offset] = (damaged[offset] ?? 0) ^ (1 + (offset % 255));
    const read = (): void => open(damaged).verify();
    expect(read, `byte ${offset}`).toThrow(CorruptionError);
  }
});

describe("the writer of segments refuses faulty rows", () => {
  const input = randomHistory(new SeededRandom(34), 20);
  const deleted = input.deleted.map((_, row) => (row === 3 ? 1 : 0));

  test("the writer refuses a row of history that nothing replaced", () => {
    for (const gap of [0, -1]) {
      const replacingSeqs = input.seqs.map((seq, row) => seq + (row === 5 ? gap : 1));
      expect(() => encodeSegment({ ...input, deleted, replacingSeqs })).toThrow(AssertionError);
    }
    const replacingSeqs = input.seqs.map((seq, row) => seq + (row === 3 ? 0 : 1));
    expect(open(encodeSegment({ ...input, deleted, replacingSeqs })).rowCount).toBe(20);
  });

  test("the writer refuses history without replacing seqs, and other segments with them", () => {
    const { replacingSeqs: _, ...without } = input;
    expect(() => encodeSegment(without)).toThrow(AssertionError);
    expect(() => encodeSegment({ ...input, isHistory: false })).toThrow(AssertionError);
  });
});

test("a file is opened only if its kind and its bounds match the manifest", () => {
  const bytes = encodeSegment(randomHistory(new SeededRandom(35), 20));
  const entry = entryOf(bytes);
  const opened = (other: SegmentEntry): void => checkListed(diskWith(bytes), PATH, other);
  opened(entry);
  const { history, ...current } = entry;
  expect(() => opened(current)).toThrow(CorruptionError);
  if (history === undefined) throw new Error("the entry is of history");
  const { highestReplacingSeq, lowestReplacingSeq } = history;
  for (const other of [
    { ...history, highestReplacingSeq: (highestReplacingSeq - 1) as Seq },
    { ...history, lowestReplacingSeq: (lowestReplacingSeq + 1) as Seq },
  ]) {
    expect(() => opened({ ...entry, history: other })).toThrow(CorruptionError);
  }
});
