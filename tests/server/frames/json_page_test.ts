/**
 * Tests the code that writes batches as JSON directly from their columns.
 *
 * The output must equal JSON.stringify of the rows as objects, whatever the vectors contain. The
 * test uses random vectors of every kind and type, with every character that JSON escapes, in
 * pages of several parts. To repeat a failure: SEED=<n> bun test
 * tests/server/frames/json_page_test.ts
 */
import { expect, test } from "bun:test";
import type { PagedBatch, ShapedRows } from "../../../src/live/mod.ts";
import { RowPage, rowShapeOf } from "../../../src/live/mod.ts";
import { jsonFromMessage } from "../../../src/server/frames/encode.ts";
import { jsonFromPage } from "../../../src/server/frames/json_page.ts";
import type { LivePlan } from "../../../src/sql/mod.ts";
import { type DataType, slice, type Value, type Vector, valueAt } from "../../../src/types/mod.ts";
import { SeededRandom, seedOf } from "../../support/seeded_random.ts";

interface Column {
  readonly name: string;
  readonly type: DataType;
  readonly vector: Vector;
}

function pageOf(columns: readonly Column[], cuts: readonly number[] = []): RowPage {
  const page = new RowPage(rowShapeOf(planOf(columns)));
  const rowCount = columns[0]?.vector.length ?? 0;
  let start = 0;
  for (const end of [...cuts, rowCount]) {
    const part = columns.map(({ vector }) => slice(vector, start, end));
    page.add({ rowCount: end - start, columns: part } satisfies ShapedRows);
    start = end;
  }
  return page;
}

function planOf(columns: readonly Column[]): LivePlan {
  return {
    tableId: 1,
    tableName: "app.t",
    owner: 1,
    schemaVersion: 1,
    columnIds: [],
    filter: undefined,
    projections: columns.map(({ type }, column) => ({
      type,
      column,
      evaluate: () => {
        throw new Error("a plain column is found by its position");
      },
    })),
    pace: undefined,
    fields: columns.map(({ name }, index) => ({ name, data_type: "Text", index })),
    fieldTypes: columns.map(({ type }) => type),
    keyFieldIndexes: [],
    seqFieldIndex: 0,
    fingerprint: "",
    equality: undefined,
    hasStar: false,
    isExpiry: undefined,
    claimsKey: undefined,
    namedColumns: [],
    mayRead: () => true,
  };
}

function batchOf(rows: RowPage, subscriptionId = "s"): PagedBatch {
  const control = { batch_num: 3, has_more: true, status: "loading", last_seq_id: 7 } as const;
  return { subscriptionId, rows, control };
}

/** Returns the JSON text expected for the message, with its rows as objects. */
function expectedText({ control, rows, subscriptionId }: PagedBatch): string {
  return jsonFromMessage({
    type: "initial_data_batch",
    subscription_id: subscriptionId,
    rows: rows.rows(),
    batch_control: control,
  });
}

function utf8Of(texts: readonly (string | null)[]): Vector {
  const parts = texts.map((text) => Buffer.from(text ?? ""));
  const offsets = new Uint32Array(texts.length + 1);
  for (const [row, part] of parts.entries()) offsets[row + 1] = (offsets[row] ?? 0) + part.length;
  const nulls = Uint8Array.from(texts, (text) => (text === null ? 1 : 0));
  const bytes = Buffer.concat(parts);
  return { kind: "utf8", length: texts.length, bytes, offsets, nulls };
}

function numbersOf(numbers: readonly number[]): Vector {
  const values = Float64Array.from(numbers);
  return { kind: "f64", length: values.length, values, nulls: undefined };
}

const TEXT: DataType = { kind: "text" };
const BIGINT: DataType = { kind: "bigint" };
const DOUBLE: DataType = { kind: "double" };

test("jsonFromPage escapes every character as JSON.stringify does, at every position in a word", () => {
  const texts: string[] = [];
  for (let code = 0; code < 0x180; code += 1) {
    for (let before = 0; before < 5; before += 1) {
      texts.push(`${"x".repeat(before)}${String.fromCharCode(code)}yz`);
    }
  }
  texts.push("", "\u2028\u2029", "🌊🌊", '"\\"\\', "\u0000\u001f\u007f", "ÿ\u0000", 'é"é\\é\né');
  const batch = batchOf(pageOf([{ name: "t", type: TEXT, vector: utf8Of(texts) }]));
  expect(jsonFromPage(batch)).toBe(expectedText(batch));
});

test("jsonFromPage writes numbers as JSON.stringify does, whatever their number of digits", () => {
  const numbers = [0, -0, 0.1, -1.5, 1e21, 1e20, 1e-7, 2 ** 53, Number.MAX_VALUE, 5e-324];
  for (let digits = 0; digits <= 15; digits += 1) {
    for (const near of [-1, 0, 1]) numbers.push(10 ** digits + near, -(10 ** digits) + near);
    numbers.push(7 * 10 ** digits);
  }
  numbers.push(Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 9_007_199_199_999_999);
  const batch = batchOf(pageOf([{ name: "n", type: DOUBLE, vector: numbersOf(numbers) }]));
  expect(jsonFromPage(batch)).toBe(expectedText(batch));
});

test("jsonFromPage writes empty pages, and names and ids with any character", () => {
  const none = { name: "n", type: BIGINT, vector: numbersOf([]) };
  const empty = batchOf(pageOf([none]), '"rows":[]\\');
  expect(jsonFromPage(empty)).toBe(expectedText(empty));
  const columns = ['a"b', "naïve 🌊", "__proto__", "\n"].map((name): Column => {
    return { name, type: BIGINT, vector: numbersOf([1, 2, 3]) };
  });
  const batch = batchOf(pageOf(columns, [1]), 'é"\u0001');
  expect(jsonFromPage(batch)).toBe(expectedText(batch));
  expect(JSON.parse(jsonFromPage(batch)).subscription_id).toBe('é"\u0001');
});

test("a page that exceeds the writer's buffer is complete, and so is the next one", () => {
  const long = utf8Of(["\u0001".repeat(1_000_000), "é".repeat(100_000), "end"]);
  for (let round = 0; round < 2; round += 1) {
    const batch = batchOf(pageOf([{ name: "t", type: TEXT, vector: long }]));
    expect(jsonFromPage(batch)).toBe(expectedText(batch));
  }
});

test("a page remains valid after the memory of its rows is reused", () => {
  const bytes = Buffer.from("abcdef");
  const numbers = Float64Array.of(1, 2);
  const texts: Vector = {
    kind: "utf8",
    length: 2,
    bytes,
    offsets: Uint32Array.of(1, 3, 6),
    nulls: undefined,
  };
  const page = pageOf([
    { name: "t", type: TEXT, vector: texts },
    {
      name: "n",
      type: BIGINT,
      vector: { kind: "f64", length: 2, values: numbers, nulls: undefined },
    },
  ]);
  bytes.fill(0);
  numbers.fill(0);
  expect(page.rows()).toEqual([
    { t: "bc", n: 1 },
    { t: "def", n: 2 },
  ]);
});

test("jsonFromPage writes the same text as JSON.stringify of the rows as objects", () => {
  const seed = seedOf(1);
  const random = new SeededRandom(seed);
  for (let round = 0; round < 100; round += 1) {
    const rowCount = random.below(40);
    const columns = KINDS.map(({ make, type }, index): Column => {
      return { name: `c${index}`, type, vector: make(random, rowCount) };
    });
    const cuts = [random.below(rowCount + 1), random.below(rowCount + 1)].toSorted((a, b) => a - b);
    const batch = batchOf(pageOf(columns, cuts));
    expect(jsonFromPage(batch), `seed ${seed}`).toBe(expectedText(batch));
    const rows = batch.rows.rows();
    expect(rows.length, `seed ${seed}`).toBe(rowCount);
    for (const [index, { vector }] of columns.entries()) {
      if (KINDS[index]?.isPlain !== true) continue;
      const cells = rows.map((row): unknown => row[`c${index}`]);
      expect(cells, `seed ${seed}`).toEqual(rows.map((_, row) => valueAt(vector, row)));
    }
  }
});

interface Kind {
  readonly type: DataType;
  readonly isPlain: boolean;
  readonly make: (random: SeededRandom, rowCount: number) => Vector;
}

const WORDS = ["", "a", "tide", 'say "hi"', "back\\slash", "new\nline", "schön", "🌊", "\u0007"];

function nullsOf(random: SeededRandom, length: number): Uint8Array | undefined {
  if (random.below(2) === 0) return undefined;
  return Uint8Array.from({ length }, () => (random.below(4) === 0 ? 1 : 0));
}

function listOf<Item>(length: number, make: () => Item): Item[] {
  return Array.from({ length }, make);
}

function valuesOf(make: (random: SeededRandom) => Value): Kind["make"] {
  return (random, length) => {
    const values = listOf(length, () => (random.below(5) === 0 ? null : make(random)));
    return { kind: "any", length, values };
  };
}

function wordOf(random: SeededRandom): string {
  return WORDS[random.below(WORDS.length)] ?? "";
}

const KINDS: readonly Kind[] = [
  {
    type: BIGINT,
    isPlain: true,
    make: (random, length) => {
      const values = Float64Array.from(
        { length },
        () => random.below(2 ** 31) * 4_000_000 - 2 ** 52,
      );
      return { kind: "f64", length, values, nulls: nullsOf(random, length) };
    },
  },
  {
    type: { kind: "int" },
    isPlain: true,
    make: (random, length) => {
      const values = Int32Array.from({ length }, () => random.below(2 ** 31) - 2 ** 30);
      return { kind: "i32", length, values, nulls: nullsOf(random, length) };
    },
  },
  {
    type: { kind: "boolean" },
    isPlain: true,
    make: (random, length) => {
      const values = Uint8Array.from({ length }, () => random.below(2));
      return { kind: "bool", length, values, nulls: nullsOf(random, length) };
    },
  },
  {
    type: TEXT,
    isPlain: true,
    make: (random, length) => {
      return utf8Of(listOf(length, () => (random.below(4) === 0 ? null : wordOf(random))));
    },
  },
  {
    type: TEXT,
    isPlain: true,
    make: (random, length) => {
      const codes = Uint8Array.from({ length }, () => random.below(WORDS.length));
      return { kind: "dict", length, codes, values: WORDS, nulls: nullsOf(random, length) };
    },
  },
  { type: TEXT, isPlain: true, make: valuesOf(wordOf) },
  {
    type: TEXT,
    isPlain: true,
    make: (random, length) => ({ kind: "const", length, value: wordOf(random) }),
  },
  { type: BIGINT, isPlain: false, make: valuesOf(() => 9_007_199_254_740_993n) },
  {
    type: { kind: "decimal", precision: 9, scale: 2 },
    isPlain: false,
    make: (random, length) => {
      const values = Float64Array.from({ length }, () => random.below(100_000) - 50_000);
      return { kind: "f64", length, values, nulls: nullsOf(random, length) };
    },
  },
  {
    type: { kind: "float" },
    isPlain: false,
    make: (random, length) => {
      const values = Float64Array.from({ length }, () => Math.fround(random.below(1000) / 7));
      return { kind: "f64", length, values, nulls: nullsOf(random, length) };
    },
  },
  {
    type: { kind: "bytes" },
    isPlain: false,
    make: valuesOf((random) => Uint8Array.from(random.bytes(random.below(5)))),
  },
];
