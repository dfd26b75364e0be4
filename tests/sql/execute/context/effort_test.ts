/**
 * Verifies that an evaluation checks its time limit after a fixed number of calls, and more often
 * if the calls are slow, and that the size of its results is counted and limited.
 */
import { expect, test } from "bun:test";
import { Effort } from "../../../../src/sql/execute/context/effort.ts";

const MIB = 2 ** 20;

interface Watched {
  readonly effort: Effort;
  /** Returns how often the evaluation has checked the time. */
  looks: () => number;
  advance: (ms: number) => void;
}

function watched(bytesMax = 64 * MIB): Watched {
  let nowMs = 0;
  let lookCount = 0;
  const context = { checkTime: () => void (lookCount += 1), monotonicMs: () => nowMs };
  return {
    effort: new Effort({ context, bytesMax }),
    looks: () => lookCount,
    advance: (ms) => {
      nowMs += ms;
    },
  };
}

test("Effort.note checks the time after sixteen short calls, and after each call once one was long", () => {
  const { advance, effort, looks } = watched();
  for (let call = 0; call < 16; call += 1) effort.note(1);
  expect(looks()).toBe(1);
  for (let call = 0; call < 15; call += 1) effort.note(1);
  expect(looks()).toBe(1);
  advance(5);
  effort.note(1);
  expect(looks()).toBe(2);
  effort.note(1);
  expect(looks()).toBe(3);
});

test("Effort.noteRead makes the next check earlier for long strings and arrays", () => {
  const { effort, looks } = watched();
  effort.noteRead("x".repeat(16 * 4096));
  effort.note(1);
  expect(looks()).toBe(1);
  effort.noteRead(Array.from({ length: 16 * 64 }, () => 1));
  effort.note(1);
  expect(looks()).toBe(2);
});

test("Effort.noteRows checks the time after a thousand rows", () => {
  const { effort, looks } = watched();
  effort.noteRows(1000);
  expect(looks()).toBe(0);
  effort.noteRows(100);
  expect(looks()).toBe(1);
});

test("Effort counts long values since the first row, and refuses more than a statement may create", () => {
  const { effort } = watched();
  effort.note("x".repeat(511));
  expect(effort.madeBytes).toBe(0);
  effort.note("x".repeat(MIB));
  expect(effort.madeBytes).toBeGreaterThanOrEqual(MIB);
  effort.beginRows();
  expect(effort.madeBytes).toBe(0);
  expect(() => effort.note("x".repeat(65 * MIB))).toThrow(/more than 67108864 bytes at once/);
});

test("Effort.apart excludes the work of another query, even if it fails", () => {
  const { effort } = watched();
  effort.note("x".repeat(MIB));
  const before = effort.madeBytes;
  const failing = (): void =>
    effort.apart(() => {
      effort.note("x".repeat(MIB));
      throw new Error("failed");
    });
  expect(failing).toThrow("failed");
  expect(effort.madeBytes).toBe(before);
});

test("Effort.noteRepeated counts a string once for each row", () => {
  const { effort } = watched();
  effort.noteRepeated("x".repeat(1000), 1000);
  expect(effort.madeBytes).toBeGreaterThanOrEqual(1_000_000);
});
