/**
 * Verifies that the runtime creates no more global names once `settleGlobals` has read all of
 * them.
 */
import { afterEach, expect, test } from "bun:test";
import { settleGlobals } from "../../src/base/globals.ts";

const NAMES = ["tidemarkSeen", "tidemarkHidden"] as const;

afterEach(() => {
  for (const name of NAMES) Reflect.deleteProperty(globalThis, name);
});

test("settleGlobals reads every name of the global object, including names that are not enumerable", () => {
  const read: string[] = [];
  for (const name of NAMES) {
    const get = (): number => read.push(name);
    const enumerable = name === "tidemarkSeen";
    Object.defineProperty(globalThis, name, { configurable: true, enumerable, get });
  }
  settleGlobals();
  expect(read.toSorted()).toEqual([...NAMES].toSorted());
});
