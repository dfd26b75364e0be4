/**
 * Which rows a merge takes, in what order and how many at a time.
 */
import { expect, test } from "bun:test";
import { ROW_GROUP_ROWS_MAX } from "../../../src/base/limits.ts";
import { portions } from "../../../src/storage/background/merge_order.ts";
import { mergedPieces } from "../../../src/storage/background/merge_rows.ts";
import { SegmentReader } from "../../../src/storage/segment/reader.ts";
import { DISCARDED, History, type HistoryLimits } from "../../../src/storage/table/history.ts";
import { type DataType, INT, TEXT, type Vector, vectorFromValues } from "../../../src/types/mod.ts";
import { encodeSegment } from "../../support/encoded_segment.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";

interface Version {
  readonly owner: number;
  readonly seq: number;
  readonly isDeleted: boolean;
}

/** @param value Of the only column. */
function segmentOf(versions: readonly Version[], type: DataType, value: Vector) {
  const seqs = Float64Array.from(versions, ({ seq }) => seq);
  const bytes = encodeSegment({
    segmentId: 1,
    tableId: 1,
    keyColumnIds: [],
    columns: [{ columnId: 1, type, vector: value }],
    owners: Float64Array.from(versions, ({ owner }) => owner),
    seqs,
    prevs: new Float64Array(versions.length),
    commitSeqs: seqs,
    deleted: Uint8Array.from(versions, ({ isDeleted }) => (isDeleted ? 1 : 0)),
  });
  const disk = new SimulatedDisk();
  disk.open("/1.seg", { create: true }).write(bytes, 0);
  return SegmentReader.open(disk, "/1.seg", bytes.length);
}

const KEEPS_ALL: HistoryLimits = {
  horizonSeq: 0,
  expiredSeq: 0,
  isOldest: true,
  replaced: [],
};

/** What portions say, row by row: source and row in its segment; and the rows of each portion. */
function taken(readers: readonly SegmentReader[], type: DataType, limits: HistoryLimits) {
  const rowCounts = readers.map(({ rowCount }) => rowCount);
  const newRows = rowCounts.map((rowCount) => new Uint32Array(rowCount));
  const history = new History(limits, rowCounts);
  const columns = [{ columnId: 1, name: "c1", type, missing: null }];
  const rows: { source: number; row: number; owner: number }[] = [];
  const lengths: number[] = [];
  let stretchCount = 0;
  for (const portion of portions({ readers, columns, history, newRows })) {
    const sides = portion.stretches.flatMap(({ source, group, start, end }) => {
      const first = (readers[source]?.groupStart(group) ?? 0) + start;
      return Array.from({ length: end - start }, (_, index) => ({ source, row: first + index }));
    });
    stretchCount += portion.stretches.length;
    for (let row = 0; row < portion.rowCount; row += 1) {
      const side = sides[portion.places?.[row] ?? row] ?? { source: -1, row: -1 };
      rows.push({ ...side, owner: portion.owners[row] ?? -1 });
    }
    lengths.push(portion.rowCount);
  }
  return { rows, lengths, newRows, stretchCount, discardedCount: history.discardedCount };
}

/** Neighbours: the seqs of one are above those of the one before. */
function randomSources(random: SeededRandom, sourceCount: number, ownersMax: number): Version[][] {
  return Array.from({ length: sourceCount }, (_, source) => {
    const owners = Array.from({ length: 1 + random.below(400) }, () => random.below(ownersMax));
    return owners
      .toSorted((a, b) => a - b)
      .map((owner, row) => ({
        owner,
        seq: 1000 * source + row + 1,
        isDeleted: random.chance(0.1),
      }));
  });
}

function readersOf(sources: readonly (readonly Version[])[]): SegmentReader[] {
  return sources.map((versions) =>
    segmentOf(
      versions,
      INT,
      vectorFromValues(
        INT,
        Array.from(versions, (_, row) => row),
      ),
    ),
  );
}

// Goal: every row that is kept is taken once, by owner and then by seq, and newRows says where it
// went. Method: random owners, replacements, times to live and horizons, against a sort of all
// rows.
test("rows are taken in ascending order of owner and seq, without what history leaves out", () => {
  const random = new SeededRandom(5);
  for (let round = 0; round < 60; round += 1) {
    const sources = randomSources(random, 1 + random.below(9), 1 + random.below(200));
    const replaceChance = random.pick([0, 0.02, 0.3, 0.97]);
    const replaced = sources.map((versions) => {
      const rows = versions.flatMap((_, row) => (random.chance(replaceChance) ? [row] : []));
      return {
        rows: Uint32Array.from(rows),
        seqs: Float64Array.from(rows, () => 1 + random.below(10_000)),
      };
    });
    const limits = {
      horizonSeq: random.pick([0, 3000, 20_000]),
      expiredSeq: random.pick([0, 0, 1200]),
      erasedOwner: random.pick([undefined, random.below(3)]),
      isOldest: random.chance(0.5),
      replaced,
    };
    const readers = readersOf(sources);
    const { rows, newRows, discardedCount } = taken(readers, INT, limits);
    const judge = new History(
      limits,
      sources.map(({ length }) => length),
    );
    const all = sources.flatMap((versions, source) =>
      versions.map((version, row) => ({ ...version, source, row })),
    );
    const kept = all.filter((version) => !judge.discards(version));
    kept.sort((a, b) => a.owner - b.owner || a.seq - b.seq);
    const expected = kept.map(({ source, row, owner }) => ({ source, row, owner }));
    expect(rows, `round ${round}`).toEqual(expected);
    const places = sources.map(({ length }) => new Uint32Array(length).fill(DISCARDED));
    for (const [place, { source, row }] of expected.entries()) {
      const into = places[source];
      if (into !== undefined) into[row] = place;
    }
    expect(newRows, `round ${round}`).toEqual(places);
    expect(discardedCount, `round ${round}`).toBe(all.length - expected.length);
    for (const reader of readers) reader.close();
  }
});

test("rows of many owners are read as one stretch a source, and a portion is a row group", () => {
  const sourceRows = 50_000;
  const sources = [0, 1, 2].map((source) =>
    Array.from({ length: sourceRows }, (_, row) => ({
      owner: row >> 1,
      seq: sourceRows * source + row + 1,
      isDeleted: false,
    })),
  );
  const readers = readersOf(sources);
  const { lengths, stretchCount } = taken(readers, INT, KEEPS_ALL);
  expect(lengths).toEqual([ROW_GROUP_ROWS_MAX, ROW_GROUP_ROWS_MAX, 18_928]);
  expect(stretchCount).toBe(9);
  for (const reader of readers) reader.close();
});

/** A segment of one owner whose rows have texts of these lengths, in millions of characters. */
function textSegmentOf(lengths: readonly number[], firstSeq: number): SegmentReader {
  const values = [...new Set(lengths)];
  return segmentOf(
    lengths.map((_, row) => ({ owner: 0, seq: firstSeq + row, isDeleted: false })),
    TEXT,
    {
      kind: "dict",
      length: lengths.length,
      values: values.map((length) => "x".repeat(length * 1e6)),
      codes: Uint8Array.from(lengths, (length) => values.indexOf(length)),
      nulls: undefined,
    },
  );
}

// Goal: a merge holds few bytes at a time. Method: texts that fill some groups of 64 MiB, one that
// is more than a group alone, and a source of short ones behind them.
test("portions end where their bytes are many, and keep the order", () => {
  const lengths = [
    Array.from({ length: 15 }, () => 6),
    [...Array.from({ length: 4 }, () => 6), 90, 0, 0, 90],
    [0, 0, 0, 0],
  ];
  const readers = lengths.map((segment, source) => textSegmentOf(segment, 100 * source + 1));
  const { rows, lengths: rowCounts } = taken(readers, TEXT, KEEPS_ALL);
  expect(rows.map(({ source, row }) => [source, row])).toEqual(
    lengths.flatMap((segment, source) => segment.map((_, row) => [source, row])),
  );
  // 67 million bytes are a group: 11 of 6, then 4 + 4 of 6, and each of 90 alone.
  expect(rowCounts).toEqual([11, 8, 1, 2, 1, 4]);
  for (const reader of readers) reader.close();
});

// Goal: neither do rows that are heavy where all sources begin, though their groups are not.
// Method: long texts of the first owner of each source, before many short ones of the next.
test("portions weigh the rows that they take, not those of their groups", () => {
  const perSource = 20_000;
  const readers = [0, 1, 2, 3].map((source) =>
    segmentOf(
      Array.from({ length: perSource }, (_, row) => ({
        owner: row < 10 ? 1 : 2,
        seq: perSource * source + row + 1,
        isDeleted: false,
      })),
      TEXT,
      {
        kind: "any",
        length: perSource,
        values: Array.from({ length: perSource }, (_, row) =>
          row < 10 ? `${row}`.repeat(5e6) : `${source} ${row}`,
        ),
      },
    ),
  );
  const { lengths, rows } = taken(readers, TEXT, KEEPS_ALL);
  // 13 texts of 5 million bytes are a group, and there are 40 of them.
  expect(lengths.slice(0, 3)).toEqual([13, 13, 13]);
  expect(rows.length).toBe(4 * perSource);
  for (const reader of readers) reader.close();
});

test("mergedPieces leaves off before a segment is longer than it may be", () => {
  const versions = Array.from({ length: 1000 }, (_, row) => ({
    owner: 0,
    seq: row + 1,
    isDeleted: false,
  }));
  const random = new SeededRandom(5);
  const texts = versions.map(() => String(random.below(2 ** 31)).repeat(30));
  const reader = segmentOf(versions, TEXT, vectorFromValues(TEXT, texts));
  const columns = [{ columnId: 1, name: "c1", type: TEXT, missing: null }];
  const outline = { segmentId: 2, tableId: 7, keyColumnIds: [], columns };
  const lengthWithin = (bytesMax: number): number => {
    const source = {
      readers: [reader],
      columns,
      history: new History(KEEPS_ALL, [1000]),
      newRows: [new Uint32Array(1000)],
    };
    return [...mergedPieces(source, outline, bytesMax)].reduce(
      (sum, { length }) => sum + length,
      0,
    );
  };

  const enough = lengthWithin(1 << 30) + 64 * 1000;
  expect(lengthWithin(enough)).toBeGreaterThan(100_000);
  expect(() => lengthWithin(100_000)).toThrow(
    expect.objectContaining({
      condition: "LIMIT_EXCEEDED",
      message: "Cannot write segment 2 of table 7: it would have more than 100000 bytes",
    }),
  );
});
