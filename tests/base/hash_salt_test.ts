/**
 * Keys that were made to share one hash, as whoever knows the constants can make them, cost no more
 * than others. Time is that of the processor; unsalted, each of these took a second or more.
 */
import { expect, test } from "bun:test";
import { KeyIndex } from "../../src/sql/execute/keys/key_index.ts";
import { TextTable } from "../../src/sql/execute/keys/text_table.ts";
import { KeyRows } from "../../src/storage/memtable/key_rows.ts";
import { BIGINT, type Vector } from "../../src/types/mod.ts";

const KEYS = 40_000;
const BATCH = 2000;
const CPU_MS_MAX = 400;

function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { system, user } = process.cpuUsage(before);
  return (system + user) / 1000;
}

function inBatches<T>(items: readonly T[], add: (batch: readonly T[]) => void): void {
  for (let start = 0; start < items.length; start += BATCH) add(items.slice(start, start + BATCH));
}

/** Texts of eight ASCII characters: the second half undoes what the first one did. */
function textsOfOneHash(): string[] {
  const texts: string[] = [];
  const view = new DataView(new ArrayBuffer(8));
  for (let i = 0; texts.length < KEYS; i += 1) {
    let first = 0x20202020;
    for (let byte = 0; byte < 4; byte += 1) first += ((i >>> (6 * byte)) & 0x3f) << (8 * byte);
    let hash = Math.imul(8 ^ first, 0x85ebca6b);
    hash ^= hash >>> 15;
    const second = hash ^ 0x12345678;
    if ((second & 0x80808080) !== 0) continue;
    view.setInt32(0, first, true);
    view.setInt32(4, second, true);
    texts.push(Buffer.from(view.buffer).toString("latin1"));
  }
  return texts;
}

test("texts that were made to share a hash are numbered like others", () => {
  const texts = textsOfOneHash();
  const table = new TextTable();
  const took = cpuMs(() =>
    inBatches(texts, (values) =>
      table.numbersOf({ kind: "any", length: values.length, values: [...values] }, BATCH, true),
    ),
  );
  expect(table.count).toBe(KEYS);
  expect(took).toBeLessThan(CPU_MS_MAX);
});

test("whole numbers that were made to share a hash are numbered like others", () => {
  const keys = Array.from({ length: KEYS }, (_, high) => {
    return high * 2 ** 32 + ((0x1234567 ^ Math.imul(high, 0x9e3779b1)) >>> 0);
  });
  const index = new KeyIndex([BIGINT]);
  const vectorOf = (values: readonly number[]): Vector => {
    return { kind: "f64", length: BATCH, values: Float64Array.from(values), nulls: undefined };
  };
  const took = cpuMs(() => inBatches(keys, (batch) => index.add([vectorOf(batch)], BATCH)));
  expect(index.count).toBe(KEYS);
  expect(took).toBeLessThan(CPU_MS_MAX);
});

test("keys of a memtable that were made to share a hash are found like others", () => {
  const view = new DataView(new ArrayBuffer(8));
  const keys = Array.from({ length: KEYS }, (_, i) => {
    const high = 0x43300000 + KEYS - i;
    view.setInt32(4, high, true);
    view.setInt32(0, 0x777 ^ Math.imul(high, 0x85ebca6b), true);
    return view.getFloat64(0, true);
  });
  expect(keys.every(Number.isSafeInteger)).toBe(true);
  const rows = new KeyRows();
  const took = cpuMs(() => {
    for (const [row, key] of keys.entries()) rows.set(key, row);
  });
  expect(rows.get(keys[KEYS - 1] ?? 0)).toBe(KEYS - 1);
  expect(took).toBeLessThan(CPU_MS_MAX);
});
