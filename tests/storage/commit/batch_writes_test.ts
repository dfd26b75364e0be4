/**
 * Verifies that a columnar write has the same effect as a write by rows: the log has the same
 * bytes, and the columns of the memtable have the same values. A store accepts and refuses the
 * same writes in both forms.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../src/base/errors.ts";
import { COMMIT_BYTES_MAX } from "../../../src/base/limits.ts";
import type { LocalStore, StoredColumn, TableWrite } from "../../../src/storage/mod.ts";
import {
  BIGINT,
  BOOLEAN,
  BYTES,
  type DataType,
  DOUBLE,
  INT,
  JSONB,
  type Row,
  TEXT,
  type Value,
  type Vector,
  valuesOf,
  vectorFromValues,
} from "../../../src/types/mod.ts";
import { SeededRandom } from "../../support/seeded_random.ts";
import { defineTable, openStore, readRows } from "../../support/store_fixture.ts";
import { shareOf } from "../../support/thoroughness.ts";
import { frameEncoder, memColumn } from "../../support/write_parts.ts";

const ROWS = 900;
const TYPES: readonly DataType[] = [BIGINT, INT, DOUBLE, BOOLEAN, TEXT, BYTES, JSONB];
const COLUMNS: readonly StoredColumn[] = TYPES.map((type, index) => ({
  columnId: index + 1,
  name: `c${index}`,
  type,
  missing: null,
}));

function valueOf({ kind }: DataType, random: SeededRandom): Value {
  if (random.chance(0.1)) return null;
  switch (kind) {
    case "bigint":
      return random.pick<Value>([0, 255, 256, -1, 2 ** 31, -(2 ** 52), 9007199254740993n]);
    case "int":
      return random.pick([0, 255, 256, -1, 2147483647]);
    case "double":
      return random.pick([0, 1.5, -2, 1e300]);
    case "boolean":
      return random.chance(0.5);
    case "bytes":
      return random.bytes(random.below(5));
    default:
      return random.pick(["", "a", "ä€😀", "a text of more than sixteen bytes", "x".repeat(200)]);
  }
}

/**
 * Returns the values as a vector. Text is encoded as UTF-8 that begins a few bytes into its
 * buffer.
 */
function vectorOf(type: DataType, values: readonly Value[]): Vector {
  if (type.kind !== "text") return vectorFromValues(type, values);
  const texts = values.map((value) => Buffer.from(typeof value === "string" ? value : ""));
  const offsets = new Uint32Array(values.length + 1).fill(3);
  for (const [row, text] of texts.entries()) offsets[row + 1] = (offsets[row] ?? 0) + text.length;
  const nulls = Uint8Array.from(values, (value) => (value === null ? 1 : 0));
  const bytes = new Uint8Array(Buffer.concat([Buffer.from("..."), ...texts]));
  return { kind: "utf8", length: values.length, bytes, offsets, nulls };
}

interface EncodedOptions {
  readonly columns?: readonly StoredColumn[];
  readonly fileBytes?: number;
  readonly rowBytesMax?: number;
}

function encoded(
  add: (encoder: ReturnType<typeof frameEncoder>) => void,
  write: TableWrite,
  { columns = COLUMNS, fileBytes = 65536, rowBytesMax = 4096 }: EncodedOptions = {},
): Uint8Array[] {
  const encoder = frameEncoder({
    fileBytes,
    rowBytesMax,
    commitBytesMax: COMMIT_BYTES_MAX,
    isRelaxed: false,
    position: { fileNumber: 1, offset: 64, frameNumber: 0 },
    lastSeq: 0,
  });
  encoder.currentFile = { number: 1, bytes: fileBytes };
  encoder.begin(3);
  encoder.beginWrite(write, columns);
  add(encoder);
  encoder.end();
  const groups: Uint8Array[] = [];
  while (encoder.nextGroup !== undefined) {
    groups.push(encoder.takeGroup().bytes.slice());
    encoder.groupWritten();
  }
  return groups;
}

test("addBatch writes the same as addRow, even if a commit is split", () => {
  const random = new SeededRandom(11);
  const rows = Array.from({ length: ROWS }, (): Row => TYPES.map((it) => valueOf(it, random)));
  const columns = TYPES.map((type, at) =>
    vectorOf(
      type,
      rows.map((row) => row[at] ?? null),
    ),
  );
  const seqs = Float64Array.from(rows, (_, row) => 1000 + row * (row % 50 === 0 ? 2 : 1) + row);
  const prevs = Float64Array.from(rows, () => (random.chance(0.2) ? random.below(1000) : 0));
  const write: TableWrite = { tableId: 7, owner: 9, operation: "insert", rows };
  const byRows = encoded((encoder) => {
    for (const [at, row] of rows.entries()) encoder.addRow(row, seqs[at] ?? 0, prevs[at] ?? 0);
  }, write);
  const batch = { rowCount: ROWS, columns };
  const byColumns = encoded((encoder) => encoder.addBatch(batch, seqs, prevs), write);
  expect(byColumns).toEqual(byRows);
  expect(byRows.length).toBeGreaterThan(1);
});

/**
 * Types that are written column by column: numbers, and text of every length that is handled
 * differently.
 */
const PLAIN_TYPES: readonly DataType[] = [BIGINT, INT, DOUBLE, TEXT, TEXT];
const PLAIN_COLUMNS = COLUMNS.slice(0, PLAIN_TYPES.length);
const LENGTHS = [0, 1, 16, 17, 127, 128, 300, 16_383, 16_384, 20_000];

test.each([
  ["in one frame", { fileBytes: 1 << 23, rowBytesMax: 1 << 20 }],
  ["in frames that are split", { fileBytes: 1 << 18, rowBytesMax: 1 << 16 }],
])("addBatch writes numbers and texts as addRow does, batch after batch, %s", (_, sizes) => {
  const random = new SeededRandom(14);
  const plainValue = ({ kind }: DataType, round: number): Value => {
    if (round % 2 === 0 && random.chance(0.1)) return null;
    if (kind === "double") return random.pick([0, -0, 0.5, -2, 255, 256, 1e300, Number.NaN]);
    if (kind === "bigint") return random.pick([0, 255, 256, -1, 2 ** 31, -(2 ** 52)]);
    if (kind === "int") return random.pick([0, 255, 256, -1, 2147483647, -2147483648]);
    const long = random.chance(0.01) ? LENGTHS.length : LENGTHS.indexOf(16_383);
    return random.pick(["x", "ä"]).repeat(LENGTHS[random.below(long)] ?? 0);
  };
  const batches = Array.from({ length: 12 }, (__, round) => {
    const rows = Array.from({ length: random.between(0, 60) }, (): Row => {
      return PLAIN_TYPES.map((type) => plainValue(type, round));
    });
    const columns = PLAIN_TYPES.map((type, at) =>
      vectorOf(
        type,
        rows.map((row) => row[at] ?? null),
      ),
    );
    const seqs = Float64Array.from(rows, (___, row) => (round + 2) * 2 ** 33 + row + (row >> 4));
    const prevs = Float64Array.from(rows, () => (random.chance(0.1) ? 2 ** 33 + 5 : 0));
    return { rows, columns, seqs, prevs };
  });
  const options = { columns: PLAIN_COLUMNS, ...sizes };
  const write: TableWrite = { tableId: 7, owner: 9, operation: "insert", rows: [] };
  const byRows = encoded(
    (encoder) => {
      for (const { prevs, rows, seqs } of batches) {
        for (const [at, row] of rows.entries()) encoder.addRow(row, seqs[at] ?? 0, prevs[at] ?? 0);
      }
    },
    write,
    options,
  );
  const byColumns = encoded(
    (encoder) => {
      for (const { columns, prevs, rows, seqs } of batches) {
        encoder.addBatch({ rowCount: rows.length, columns }, seqs, prevs);
      }
    },
    write,
    options,
  );
  expect(byColumns).toEqual(byRows);
});

test("addBatch refuses a row of numbers and texts only if it is too large", () => {
  const bytes = 4096 - 1 - 1 - 2;
  const one = Float64Array.of(1);
  const write: TableWrite = { tableId: 7, owner: 9, operation: "insert", rows: [] };
  const add = (length: number): unknown => {
    const batch = { rowCount: 1, columns: [vectorOf(TEXT, ["x".repeat(length)])] };
    const options = { columns: COLUMNS.slice(4, 5) };
    return encoded((it) => it.addBatch(batch, one, Float64Array.of(0)), write, options);
  };
  expect(add(bytes)).toHaveLength(1);
  expect(() => add(bytes + 1)).toThrow("Cannot store a row of 4097 bytes");
});

test("addBatch refuses a row that is too large", () => {
  const columns = TYPES.map((type) =>
    vectorOf(
      type,
      ["x".repeat(5000)].map((text) => (type.kind === "text" ? text : null)),
    ),
  );
  const write: TableWrite = { tableId: 7, owner: 9, operation: "insert", rows: [] };
  const batch = { rowCount: 1, columns };
  const one = Float64Array.of(1);
  expect(() => encoded((it) => it.addBatch(batch, one, Float64Array.of(0)), write)).toThrow(
    "the maximum is 4096",
  );
});

test.each(shareOf(TYPES, { oneOf: 2 }))(
  "appendVector of %p has the same contents as appendFrom",
  (type) => {
    const random = new SeededRandom(12);
    const byRows = memColumn(1, type);
    const byVectors = memColumn(1, type);
    for (let round = 0; round < 20; round += 1) {
      const values = Array.from({ length: 1 + random.below(40) }, () => valueOf(type, random));
      const count = random.between(0, values.length);
      byRows.appendFrom(
        values.map((value) => [value]),
        0,
        count,
      );
      byVectors.appendVector(vectorOf(type, values), count);
      if (random.chance(0.3)) {
        const kept = random.between(0, byRows.length);
        byRows.truncate(kept);
        byVectors.truncate(kept);
      }
    }
    const all = (column: ReturnType<typeof memColumn>): Value[] =>
      Array.from({ length: column.length }, (_, row) => column.valueAt(row));
    expect(all(byVectors)).toEqual(all(byRows));
    expect(valuesOf(byVectors.vector())).toEqual(valuesOf(byRows.vector()));
  },
);

const KEYED = [
  ["a key that is BIGINT", defineTable(1, [BIGINT, TEXT])],
  ["a key that is INT", defineTable(1, [INT, TEXT])],
  ["a key that is TEXT", defineTable(1, [TEXT, TEXT])],
  ["a key of two columns", defineTable(1, [BIGINT, TEXT], [1, 2])],
  ["no key", defineTable(1, [BIGINT, TEXT], [])],
] as const;

/** Applies an insert. Returns the code of the error if it is refused. */
async function refusalOf(store: LocalStore, write: TableWrite): Promise<string | undefined> {
  try {
    await store.durable(store.apply({ writes: [write] }).lastSeq);
    return undefined;
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    return error.message;
  }
}

test.each(shareOf(KEYED, { oneOf: 4 }))(
  "a store accepts and refuses batches as it does rows, with %s",
  async (_, table) => {
    const random = new SeededRandom(13);
    const types = table.columns.map(({ type }) => type);
    const byRows = await openStore({ definitions: [table] });
    const byColumns = await openStore({ definitions: [table] });
    const refusals = new Set<string>();
    let next = 1;
    for (let round = 0; round < 120; round += 1) {
      // Most new ids are above all existing ids, and the rest are among them. Some ids occur twice
      // or are too large.
      const from = random.chance(0.6) ? next : random.below(next + 1);
      const step = random.between(1, 3);
      const keys = Array.from({ length: random.between(1, 90) }, (__, i) => from + i * step);
      if (random.chance(0.15)) keys.push(keys[0] ?? 0);
      next = Math.max(next, ...keys) + random.below(3);
      const isLarge = random.chance(0.1);
      const rows = keys.map((key, at): Row => {
        const text = isLarge && at === keys.length - 1 ? "x".repeat(9000) : `${round}`;
        return [types[0]?.kind === "text" ? `k${key}` : key, text];
      });
      const columns = types.map((type, at) =>
        vectorOf(
          type,
          rows.map((row) => row[at] ?? null),
        ),
      );
      const write = { tableId: 1, owner: 0, operation: "insert" as const };
      const refusal = await refusalOf(byRows, { ...write, rows });
      const batch = { rowCount: rows.length, columns };
      expect(await refusalOf(byColumns, { ...write, rows: [], batch })).toBe(refusal);
      if (refusal !== undefined) refusals.add(refusal.slice(0, 20));
      if (random.chance(0.05)) await Promise.all([byRows.flush(1), byColumns.flush(1)]);
      const found = (store: LocalStore): Value[][] =>
        readRows(store, table).map(([, ...row]) => row);
      expect(found(byColumns)).toEqual(found(byRows));
    }
    expect(refusals.size).toBe(table.keyColumnIds.length === 0 ? 1 : 2);
    await byRows.close();
    await byColumns.close();
  },
);
