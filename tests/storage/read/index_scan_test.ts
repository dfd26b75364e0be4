/**
 * Verifies that the rows found through a secondary index match a scan, in index order, and that a
 * unique index admits exactly the commits that leave no duplicate. The test makes random changes
 * to the rows of two owners. Versions are replaced, deleted, refused, flushed, merged and
 * recovered, and compared with a plain list.
 */
import { describe, expect, test } from "bun:test";
import { defined } from "../../../src/base/assert.ts";
import { DatabaseError } from "../../../src/base/errors.ts";
import type { Seq } from "../../../src/base/seq.ts";
import type {
  IndexScanOptions,
  IndexSpan,
  LocalStore,
  StoredIndex,
  TableDefinition,
} from "../../../src/storage/mod.ts";
import {
  BIGINT,
  BYTES,
  comparatorFor,
  DOUBLE,
  decimalType,
  type Row,
  TEXT,
  textFromValue,
  type Value,
  valuesOf,
} from "../../../src/types/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  byColumns,
  commit,
  defineTable,
  openStore,
  readRows,
  SMALL_MERGES,
} from "../../support/store_fixture.ts";
import { shareOf } from "../../support/thoroughness.ts";

/** The column types: key, text, number, bytes, wide decimal, double. */
const TYPES = [BIGINT, TEXT, BIGINT, BYTES, decimalType(38, 2), DOUBLE];
const OWNERS = [0, 5];

function indexOn(indexId: number, columnIds: readonly number[], isUnique = false): StoredIndex {
  return { indexId, name: `t_${indexId}`, columnIds, isUnique, state: "ready" };
}

const INDEXES: readonly StoredIndex[] = [
  indexOn(11, [2]),
  indexOn(12, [2, 3]),
  indexOn(13, [3, 2], true),
  indexOn(14, [4]),
  indexOn(15, [5, 6]),
  indexOn(16, [6, 2, 1], true),
];

const TABLE: TableDefinition = { ...defineTable(1, TYPES), indexes: INDEXES };
const COLUMN_IDS = TABLE.columns.map(({ columnId }) => columnId);

function valuesIn(row: Row, { columnIds }: StoredIndex): Value[] {
  return columnIds.map((columnId) => row[columnId - 1] ?? null);
}

/** Compares two index keys over the values that both have, with NULL last. */
function compareKeys({ columnIds }: StoredIndex, left: Row, right: Row): number {
  for (const [at, columnId] of columnIds.slice(0, Math.min(left.length, right.length)).entries()) {
    const [a = null, b = null] = [left[at], right[at]];
    const type = defined(TYPES[columnId - 1], "the column must exist");
    const order =
      a === null || b === null
        ? Number(a === null) - Number(b === null)
        : comparatorFor(type)(a, b);
    if (order !== 0) return order;
  }
  return 0;
}

function isWithin(index: StoredIndex, key: Row, { max, min }: IndexSpan): boolean {
  if (min !== undefined) {
    const order = compareKeys(index, key, min.values);
    if (order < 0 || (order === 0 && !min.isInclusive)) return false;
  }
  if (max === undefined) return true;
  const order = compareKeys(index, key, max.values);
  return order < 0 || (order === 0 && max.isInclusive);
}

type Asked = Pick<IndexScanOptions, "indexId" | "isDescending" | "owner" | "spans"> & {
  readonly upTo?: number;
};

/** Returns the rows of an index scan; undefined if the index cannot serve it. */
function readIndex(store: LocalStore, asked: Asked): Row[] | undefined {
  const upTo = (asked.upTo ?? store.visibleSeq) as Seq;
  const scan = store.scanIndex(1, { ...asked, upTo, columnIds: COLUMN_IDS });
  if (scan === undefined) return undefined;
  const rows: Row[] = [];
  for (let batch = scan.next(7); batch !== undefined; batch = scan.next(7)) {
    const vectors = batch.columns.map((column) => valuesOf(column));
    for (let row = 0; row < batch.rowCount; row += 1) {
      rows.push(vectors.map((values) => values[row] ?? null));
    }
  }
  scan.close();
  return rows;
}

const TEXTS = ["", "a", "ab", "abcdef", "abcdefg", "abcdefh", "abcdé", "zzzzz😀", "日本語", "b"];
const BLOBS = [[], [0], [0, 0], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6, 7], [255]];
const DECIMALS = [0, 1, -5, 10n ** 20n, 10n ** 20n + 1n, -(10n ** 30n), 9007199254740991];
const DOUBLES = [0, -0.5, 1e300, -1e300, 2 ** 60, 2 ** 60 + 256, 3.25];

function randomValue<T>(random: SeededRandom, values: readonly T[]): T | null {
  if (random.chance(0.1)) return null;
  return values[random.below(values.length)] ?? null;
}

/** The strings from which rows are made. In some runs, all of them share a prefix. */
let texts: readonly string[] = TEXTS;

function randomRow(random: SeededRandom, key: number, pool: readonly string[] = texts): Row {
  const blob = randomValue(random, BLOBS);
  return [
    key,
    randomValue(random, pool),
    random.chance(0.1) ? null : random.below(30),
    blob === null ? null : Uint8Array.from(blob),
    randomValue(random, DECIMALS),
    randomValue(random, DOUBLES),
  ];
}

function textOf(rows: readonly Row[]): string {
  return rows
    .map((row) =>
      row.map((value) => (value === null ? "null" : textFromValue(TEXT, value))).join("|"),
    )
    .join("\n");
}

function spansFor(random: SeededRandom, index: StoredIndex): IndexSpan[] {
  const bound = (): IndexSpan["min"] => {
    const length = 1 + random.below(index.columnIds.length);
    const pool = random.chance(0.3) ? TEXTS : texts;
    const values = valuesIn(randomRow(random, random.below(200), pool), index).slice(0, length);
    return { values, isInclusive: random.chance(0.5) };
  };
  switch (random.below(4)) {
    case 0:
      return [{}];
    case 1:
      return [{ min: bound() }];
    case 2:
      return [{ max: bound() }];
    default: {
      const keys = Array.from({ length: 3 }, () => bound()?.values ?? []).toSorted((a, b) =>
        compareKeys(index, a, b),
      );
      const distinct = keys.filter((key, at) => {
        const before = keys[at - 1];
        return before === undefined || compareKeys(index, before, key) < 0;
      });
      return distinct.map((values) => ({
        min: { values, isInclusive: true },
        max: { values, isInclusive: true },
      }));
    }
  }
}

/** The live rows of each owner, by primary key. */
type Model = Map<number, Map<number, Row>>;

function rowsOfModel(model: Model, owner: number): Row[] {
  return [...(model.get(owner)?.values() ?? [])];
}

/** Whether two live rows of an owner would have the same key in a unique index. */
function hasDuplicate(rows: readonly Row[]): boolean {
  return INDEXES.filter(({ isUnique }) => isUnique).some((index) => {
    const keys = rows
      .map((row) => valuesIn(row, index))
      .filter((key) => !key.includes(null))
      .map((key) => key.map(String).join("|"));
    return new Set(keys).size < keys.length;
  });
}

function expectAsModel(store: LocalStore, model: Model, random: SeededRandom): void {
  for (const owner of OWNERS) {
    const all = rowsOfModel(model, owner);
    for (const index of INDEXES) {
      const { indexId } = index;
      const spans = spansFor(random, index);
      const isDescending = random.chance(0.5);
      const found = defined(
        readIndex(store, { indexId, owner, spans, isDescending }),
        "the index must be ready",
      );
      const expected = all.filter((row) =>
        spans.some((span) => isWithin(index, valuesIn(row, index), span)),
      );
      const ids = (rows: readonly Row[]): Row[] =>
        rows.toSorted((a, b) => Number(a[0]) - Number(b[0]));
      expect(textOf(ids(found))).toBe(textOf(ids(expected)));
      const isInOrder = found.every((row, at) => {
        const before = valuesIn(found[at - 1] ?? row, index);
        const order = compareKeys(index, before, valuesIn(row, index));
        return isDescending ? order >= 0 : order <= 0;
      });
      expect(isInOrder).toBe(true);
      const key = valuesIn(randomRow(random, random.below(200)), index);
      if (key.includes(null)) continue;
      const upTo = store.visibleSeq;
      const looked = store.lookupIndex(1, { indexId, owner, key, upTo, columnIds: COLUMN_IDS });
      const same = all.filter((row) => compareKeys(index, valuesIn(row, index), key) === 0);
      expect(textOf(ids(looked ?? []))).toBe(textOf(ids(same)));
    }
  }
}

/** Makes a random change to one owner's rows. Returns whether it was accepted. */
async function changeRandomly(
  store: LocalStore,
  model: Model,
  random: SeededRandom,
): Promise<boolean> {
  const owner = OWNERS[random.below(OWNERS.length)] ?? 0;
  const before = model.get(owner) ?? new Map<number, Row>();
  const keys = [...new Set(Array.from({ length: 1 + random.below(5) }, () => random.below(200)))];
  const operation = (["insert", "update", "delete"] as const)[random.below(3)] ?? "insert";
  const fitting = keys.filter((key) => before.has(key) === (operation !== "insert"));
  if (fitting.length === 0) return true;
  const after = new Map(before);
  const rows = fitting.map((key) => {
    const row = operation === "delete" ? (before.get(key) ?? []) : randomRow(random, key);
    if (operation === "delete") after.delete(key);
    else after.set(key, row);
    return row;
  });
  const isFree = !hasDuplicate([...after.values()]);
  const write = { tableId: 1, owner, operation, rows };
  const isBatch = operation === "insert" && random.chance(0.5);
  const given = isBatch ? byColumns(write, TABLE) : write;
  const isStaged = random.chance(0.3);
  const make = async (): Promise<void> => {
    if (!isStaged) {
      await store.durable(store.apply({ writes: [given] }).lastSeq);
      return;
    }
    const staged = store.stage({});
    staged.add(given);
    while (!staged.settle());
    await store.durable(staged.commit().lastSeq);
  };
  let isAccepted = true;
  try {
    await make();
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    expect(error.code).toBe("DUPLICATE_KEY");
    isAccepted = false;
  }
  expect(isAccepted).toBe(isFree);
  if (isAccepted) model.set(owner, after);
  return isAccepted;
}

describe("scans can use a secondary index", () => {
  for (const seed of shareOf([1, 2, 3], { oneOf: 3 })) {
    test(`an index finds what a scan finds, and admits no duplicate (seed ${seed})`, async () => {
      const random = new SeededRandom(seed);
      texts = seed === 1 ? TEXTS : TEXTS.map((text) => `n-é${text}`);
      const disk = new SimulatedDisk();
      const manifest = new MemoryManifest();
      const clock = new ManualClock();
      const parts = { disk, manifest, clock, definitions: [TABLE] };
      const options = { mergeBounds: SMALL_MERGES };
      let store = await openStore({ ...parts, options });
      const model: Model = new Map();
      let refusals = 0;
      for (let step = 0; step < 300; step += 1) {
        if (!(await changeRandomly(store, model, random))) refusals += 1;
        if (random.chance(0.05)) await store.flush(1);
        if (random.chance(0.02)) await store.compact(1);
        if (random.chance(0.01)) {
          await store.close();
          store = await openStore({ ...parts, options });
        }
        if (step % 20 === 0) expectAsModel(store, model, random);
      }
      expectAsModel(store, model, random);
      expect(refusals).toBeGreaterThan(10);
      for (const owner of OWNERS) {
        expect(readRows(store, TABLE, { owner }).length).toBe(rowsOfModel(model, owner).length);
      }
      await store.close();
    });
  }

  test("an index has a file for each segment of current versions, and none for history", async () => {
    const disk = new SimulatedDisk();
    const manifest = new MemoryManifest();
    const store = await openStore({ disk, manifest, definitions: [TABLE] });
    const row = (key: number): Row => [key, `text ${key}`, key, null, null, key];
    await commit(store, 1, "insert", [1, 2, 3].map(row));
    await store.flush(1);
    await commit(store, 1, "update", [[1, "other", 1, null, null, 1]]);
    await store.flush(1);
    await store.compact(1);
    const entries = manifest.load().segments;
    expect(entries.map(({ history, indexIds }) => [history === undefined, indexIds])).toEqual([
      [true, INDEXES.map(({ indexId }) => indexId)],
      [false, undefined],
    ]);
    const names = disk.list("/data/segments/1").map(({ name }) => name);
    expect(names.filter((name) => name.endsWith(".idx")).length).toBe(INDEXES.length);
    await store.close();
  });
});
