/**
 * Verifies that keys crafted to collide cost no more than other keys. An attacker who knows the
 * constants of the hash function can craft such keys. The tests measure processor time. Without a
 * salt, each of them takes a second or more.
 */
import { expect, test } from "bun:test";
import { KeyHashTable } from "../../../../src/sql/execute/keys/key_hash_table.ts";
import { TextInterner } from "../../../../src/sql/execute/keys/text_interner.ts";
import { BIGINT, type Vector } from "../../../../src/types/mod.ts";
import { cpuMs } from "../../../support/cpu_time.ts";

const KEYS = 40_000;
const BATCH = 2000;
const CPU_MS_MAX = 400;

function inBatches<T>(items: readonly T[], add: (batch: readonly T[]) => void): void {
  for (let start = 0; start < items.length; start += BATCH) add(items.slice(start, start + BATCH));
}

/**
 * Returns strings of eight ASCII characters whose second half cancels out the effect of the first
 * on the hash.
 */
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

test("strings that were crafted to share a hash are as fast as others", () => {
  const texts = textsOfOneHash();
  const table = new TextInterner();
  const took = cpuMs(() =>
    inBatches(texts, (values) =>
      table.idsOf({ kind: "any", length: values.length, values: [...values] }, BATCH, true),
    ),
  );
  expect(table.count).toBe(KEYS);
  expect(took).toBeLessThan(CPU_MS_MAX);
});

test("whole numbers that were crafted to share a hash are as fast as others", () => {
  const keys = Array.from({ length: KEYS }, (_, high) => {
    return high * 2 ** 32 + ((0x1234567 ^ Math.imul(high, 0x9e3779b1)) >>> 0);
  });
  const index = new KeyHashTable([BIGINT]);
  const vectorOf = (values: readonly number[]): Vector => {
    return { kind: "f64", length: BATCH, values: Float64Array.from(values), nulls: undefined };
  };
  const took = cpuMs(() => inBatches(keys, (batch) => index.add([vectorOf(batch)], BATCH)));
  expect(index.count).toBe(KEYS);
  expect(took).toBeLessThan(CPU_MS_MAX);
});
