/**
 * Tests which rows a merge keeps, their order, and the number of rows that it processes at a time.
 */
import { expect, test } from "bun:test";
import { ROW_GROUP_ROWS_MAX } from "../../../src/base/limits.ts";
import { portions } from "../../../src/storage/background/merge_order.ts";
import { mergedPieces } from "../../../src/storage/background/merge_rows.ts";
import { type DataType, INT, TEXT, type Vector, vectorFromValues } from "../../../src/types/mod.ts";
import { encodeSegment } from "../../support/encoded_segment.ts";
import { type Fate, type HistoryLimits, historyOf, NOT_CURRENT } from "../../support/histories.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { readerOver } from "../../support/segment_files.ts";

interface Version {
  readonly owner: number;
  readonly seq: number;
  readonly isDeleted: boolean;
}

/**
 * Creates a segment with one column.
 * @param value The value of that column.
 * @param replacingSeqs Only for a history segment.
 */
// oxlint-disable-next-line max-params -- a test reads best with one short line for each segment
function segmentOf(
  versions: readonly Version[],
  type: DataType,
  value: Vector,
  replacingSeqs?: Float64Array,
) {
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
    isHistory: replacingSeqs !== undefined,
    replacingSeqs,
  });
  return readerOver(bytes);
}

const KEEPS_ALL: HistoryLimits = {
  retentionFloorSeq: 0,
  expiredSeq: 0,
  settledSeq: 0,
  replaced: [],
};

/**
 * Returns the contents of a merge's portions: the source and the row number of each row, and the
 * row count of each portion.
 */
// oxlint-disable-next-line max-params -- a test reads best with one short line for each pass
function taken(
  readers: readonly ReturnType<typeof readerOver>[],
  type: DataType,
  limits: HistoryLimits,
  output: "current" | "past" = "current",
) {
  const rowCounts = readers.map(({ rowCount }) => rowCount);
  const newRows = rowCounts.map((rowCount) => new Uint32Array(rowCount));
  const history = historyOf(limits, rowCounts);
  const columns = [{ columnId: 1, name: "c1", type, missing: null }];
  const rows: { source: number; row: number; owner: number }[] = [];
  const lengths: number[] = [];
  let stretchCount = 0;
  for (const portion of portions({ readers, columns, history, newRows, output })) {
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
  const { discardedCount, pastCount } = history;
  return { rows, lengths, newRows, stretchCount, discardedCount, pastCount };
}

/** Decides the fate of a row in a merge, using a simple version of the rule. */
function plainFate(
  { isDeleted, owner, row, seq, source }: Version & { source: number; row: number },
  limits: HistoryLimits,
): Fate {
  const { rows, seqs } = limits.replaced[source] ?? {};
  const replacedBy = seqs?.[rows?.indexOf(row) ?? -1];
  if (seq <= limits.expiredSeq || owner === limits.erasedOwner) return "discarded";
  if (replacedBy === undefined && !isDeleted) return "current";
  const obsoleteSince = replacedBy ?? seq;
  if (obsoleteSince <= limits.retentionFloorSeq) return "discarded";
  return obsoleteSince <= limits.settledSeq ? "past" : "current";
}

/**
 * Returns consecutive sources: the seqs of each source are above the seqs of the source before it.
 */
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

function readersOf(sources: readonly (readonly Version[])[]): ReturnType<typeof readerOver>[] {
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

// Verifies that every kept row goes into its output once, ordered by owner and then by seq, and
// that `newRows` gives its position among the current rows. The test compares the merge of random
// owners, replacements, TTLs and retention floors with a sort of all rows.
test("rows are merged in ascending order of owner and seq, each into its output or none", () => {
  const random = new SeededRandom(5);
  for (let round = 0; round < 60; round += 1) {
    const sources = randomSources(random, 1 + random.below(9), 1 + random.below(200));
    const replaceChance = random.pick([0, 0.02, 0.3, 0.97]);
    const replaced = sources.map((versions) => {
      const rows = versions.flatMap((_, row) => (random.chance(replaceChance) ? [row] : []));
      return {
        rows: Uint32Array.from(rows),
        seqs: Float64Array.from(
          rows,
          (row) => (versions[row]?.seq ?? 0) + 1 + random.below(random.pick([10, 10_000])),
        ),
      };
    });
    const limits = {
      retentionFloorSeq: random.pick([0, 3000, 20_000]),
      expiredSeq: random.pick([0, 0, 1200]),
      erasedOwner: random.pick([undefined, random.below(3)]),
      settledSeq: random.pick([0, 0, 5000, 20_000]),
      replaced,
    };
    const readers = readersOf(sources);
    const current = taken(readers, INT, limits);
    const past = taken(readers, INT, limits, "past");
    const all = sources.flatMap((versions, source) =>
      versions.map((version, row) => ({ ...version, source, row })),
    );
    const expected = (wanted: Fate): { source: number; row: number; owner: number }[] =>
      all
        .filter((version) => plainFate(version, limits) === wanted)
        .toSorted((a, b) => a.owner - b.owner || a.seq - b.seq)
        .map(({ source, row, owner }) => ({ source, row, owner }));
    expect(current.rows, `round ${round}`).toEqual(expected("current"));
    expect(past.rows, `round ${round}`).toEqual(expected("past"));
    const places = sources.map(({ length }) => new Uint32Array(length).fill(NOT_CURRENT));
    for (const [place, { source, row }] of current.rows.entries()) {
      const into = places[source];
      if (into !== undefined) into[row] = place;
    }
    expect(current.newRows, `round ${round}`).toEqual(places);
    expect(current.discardedCount, `round ${round}`).toBe(expected("discarded").length);
    expect(current.pastCount, `round ${round}`).toBe(past.rows.length);
    expect([past.discardedCount, past.pastCount]).toEqual([0, 0]);
    for (const reader of readers) reader.close();
  }
});

// Verifies that history in many segments with overlapping seqs is returned as if it were in a
// single segment, without the versions that are obsolete at the retention floor. The test puts
// each version of a random table into a random segment.
test("rows of history are merged by seq, without versions obsolete by the retention floor", () => {
  const random = new SeededRandom(6);
  for (let round = 0; round < 60; round += 1) {
    const sourceCount = 1 + random.below(6);
    const all = Array.from({ length: 1 + random.below(1500) }, (_, index) => {
      const isDeleted = random.chance(0.2);
      const obsoleteSince = index + 1 + (isDeleted ? 0 : 1 + random.below(500));
      const [owner, source] = [random.below(5), random.below(sourceCount)];
      return { owner, seq: index + 1, isDeleted, obsoleteSince, source };
    }).toSorted((a, b) => a.owner - b.owner || a.seq - b.seq);
    const sources = Array.from({ length: sourceCount }, (_, source) =>
      all.filter((version) => version.source === source),
    ).filter((versions) => versions.length > 0);
    const readers = sources.map((versions) =>
      segmentOf(
        versions,
        INT,
        vectorFromValues(
          INT,
          versions.map(({ seq }) => seq),
        ),
        Float64Array.from(versions, ({ obsoleteSince }) => obsoleteSince),
      ),
    );
    const retentionFloorSeq = random.pick([0, 700, 5000]);
    const erasedOwner = random.pick([undefined, 2]);
    const limits = {
      ...KEEPS_ALL,
      retentionFloorSeq,
      ...(erasedOwner === undefined ? {} : { erasedOwner }),
    };
    const { rows, discardedCount } = taken(readers, INT, limits, "past");
    const found = rows.map(({ source, row }) => sources[source]?.[row]?.seq);
    const expected = all.filter(
      ({ obsoleteSince, owner }) => obsoleteSince > retentionFloorSeq && owner !== erasedOwner,
    );
    expect(found, `round ${round}`).toEqual(expected.map(({ seq }) => seq));
    expect(discardedCount, `round ${round}`).toBe(all.length - expected.length);
    for (const reader of readers) reader.close();
  }
});

test("rows of many owners are read as one range per source, and a portion is a row group", () => {
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

/**
 * Returns a segment of a single owner, with strings of the given lengths in units of 125,000
 * characters.
 */
function textSegmentOf(
  lengths: readonly number[],
  firstSeq: number,
): ReturnType<typeof readerOver> {
  const values = [...new Set(lengths)];
  return segmentOf(
    lengths.map((_, row) => ({ owner: 0, seq: firstSeq + row, isDeleted: false })),
    TEXT,
    {
      kind: "dict",
      length: lengths.length,
      values: values.map((length) => "x".repeat(length * 125_000)),
      codes: Uint8Array.from(lengths, (length) => values.indexOf(length)),
      nulls: undefined,
    },
  );
}

// Verifies that a merge holds few bytes in memory at a time. The test uses strings that fill
// groups of 8 MiB, one string that exceeds a group, and a source of short strings after them.
test("portions end when they have many bytes, and keep the order", () => {
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
  // A group holds 67 units. The first group holds 11 strings of 6 units, and the second holds the
  // remaining 4 along with 4 strings from the next source. Each string of 90 units is alone in its
  // group.
  expect(rowCounts).toEqual([11, 8, 1, 2, 1, 4]);
  for (const reader of readers) reader.close();
});

// Verifies that a portion's limit on bytes counts the portion's own rows rather than their row
// groups. In each source, long strings of the first owner come before many short strings of the
// next owner.
test("portions count the bytes of their own rows, not of the groups of these rows", () => {
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
          row < 10 ? `${row}`.repeat(625_000) : `${source} ${row}`,
        ),
      },
    ),
  );
  const { lengths, rows } = taken(readers, TEXT, KEEPS_ALL);
  // A group holds 13 strings of 625,000 bytes, and there are 40 strings.
  expect(lengths.slice(0, 3)).toEqual([13, 13, 13]);
  expect(rows.length).toBe(4 * perSource);
  for (const reader of readers) reader.close();
});

test("mergedPieces stops before a segment is longer than allowed", () => {
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
      history: historyOf(KEEPS_ALL, [1000]),
      newRows: [new Uint32Array(1000)],
      output: "current" as const,
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
      code: "LIMIT_EXCEEDED",
      message: "Cannot write segment 2 of table 7: it would be larger than 100000 bytes",
    }),
  );
});
