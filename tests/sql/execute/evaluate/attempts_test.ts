/**
 * Goal: evaluations of a live query take a turn at most and owe nothing to those before them.
 * Method: a clock that the evaluation itself moves.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../../../src/base/errors.ts";
import { BATCH_ROWS_MAX, TURN_MS_MAX } from "../../../../src/base/limits.ts";
import { Attempts } from "../../../../src/sql/execute/evaluate/attempts.ts";
import { Pauses } from "../../../../src/sql/execute/run/pausing.ts";

const BYTES_MAX = 32 * 2 ** 20;

const TEXT_BYTES = 2 ** 20;
const TEXT = "x".repeat(TEXT_BYTES / 2 - 8);

function attempts(): { pace: Attempts; pauses: Pauses; clock: { ms: number } } {
  const clock = { ms: 1000 };
  const pauses = new Pauses({ now: () => clock.ms, bytesMax: () => BYTES_MAX });
  return { pace: new Attempts({ pauses, monotonicMs: () => clock.ms }), pauses, clock };
}

test("Attempts: what one evaluation made is not held against the next", () => {
  const { pace, pauses } = attempts();
  for (let round = 0; round < 100; round += 1) {
    const result = pace.attempt(1, () => {
      pauses.note(TEXT);
      return [round];
    });
    expect(result).toEqual([round]);
  }
});

test("Attempts: one row that makes more than may be held is refused", () => {
  const { pace, pauses } = attempts();
  expect(() =>
    pace.attempt(1, () => {
      for (let count = 0; count <= BYTES_MAX / TEXT_BYTES; count += 1) pauses.note(TEXT);
      return [];
    }),
  ).toThrow(DatabaseError);
});

test("Attempts: rows that make much together are tried again as an eighth", () => {
  const { pace, pauses } = attempts();
  const evaluate = (): object => {
    for (let row = 0; row < 64; row += 1) pauses.note(TEXT);
    return [];
  };
  expect(pace.rowsMax).toBe(64);
  expect(pace.attempt(64, evaluate)).toBeUndefined();
  expect(pace.rowsMax).toBe(8);
});

test("Attempts: rows that take a turn are broken off, one row is not", () => {
  const { clock, pace, pauses } = attempts();
  let callCount = 0;
  const calls = (rowCount: number) => (): object => {
    for (let row = 0; row < rowCount; row += 1) {
      callCount += 1;
      clock.ms += TURN_MS_MAX;
      pauses.note(row);
    }
    return [];
  };
  expect(pace.attempt(64, calls(64))).toBeUndefined();
  expect(callCount).toBeLessThan(64);
  expect(pace.tookMs).toBe(callCount * TURN_MS_MAX);
  expect(pace.attempt(8, calls(8))).toBeUndefined();
  expect(pace.rowsMax).toBe(1);
  expect(pace.attempt(1, calls(1))).toEqual([]);
});

test("Attempts: rows that took little are followed by twice as many, up to a batch", () => {
  const { pace } = attempts();
  for (let round = 0; round < 10; round += 1) pace.attempt(pace.rowsMax, () => []);
  expect(pace.rowsMax).toBe(BATCH_ROWS_MAX);
});
