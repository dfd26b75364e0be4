/**
 * Verifies that only idempotent requests are sent again, at most as many times as configured, and
 * after the delay that the server requests.
 */
import { expect, test } from "bun:test";
import { ConnectionError, ServerError } from "../../src/client/mod.ts";
import {
  backoffMs,
  isRead,
  msFromDuration,
  type RepeatRules,
  withRepeats,
} from "../../src/client/repeats.ts";

/**
 * Returns retry rules whose waits end immediately, and a list of the delays that the waits would
 * have had.
 */
function rules(maxRetries: number): { delays: number[]; rules: RepeatRules } {
  const delays: number[] = [];
  const environment: RepeatRules["environment"] = {
    after(delayMs, callback) {
      delays.push(delayMs);
      queueMicrotask(callback);
      return () => undefined;
    },
    random: () => 0,
  };
  return { delays, rules: { environment, maxRetries, signal: undefined } };
}

function failing(
  error: Error,
  count: number,
): { send: () => Promise<string>; calls: () => number } {
  let calls = 0;
  const send = async (): Promise<string> => {
    calls += 1;
    if (calls <= count) throw error;
    return "answer";
  };
  return { send, calls: () => calls };
}

test.each<[string, Error, number[]]>([
  ["a lost connection", new ConnectionError("gone"), [100, 200]],
  ["a commit of unknown fate", new ServerError("COMMIT_UNKNOWN", "?", { status: 500 }), [100, 200]],
  ["503", new ServerError("STARTING", "soon", { status: 503, retryAfterSeconds: 5 }), [5000, 5000]],
  ["429", new ServerError("RATE", "slow", { status: 429, retryAfterSeconds: 1 }), [1000, 1000]],
])("withRepeats sends again after %s", async (_what, error, expected) => {
  const { delays, rules: three } = rules(3);
  expect(await withRepeats(failing(error, 2).send, three)).toBe("answer");
  expect(delays).toEqual(expected);
});

test("withRepeats gives up after the configured number of repeats, which may be 0", async () => {
  for (const maxRetries of [0, 2]) {
    const gone = new ConnectionError("gone");
    const { calls, send } = failing(gone, Infinity);
    expect(await withRepeats(send, rules(maxRetries).rules).catch((error) => error)).toBe(gone);
    expect(calls()).toBe(maxRetries + 1);
  }
});

test("withRepeats does not repeat a request that would fail again", async () => {
  const refused = new ServerError("INVALID_SQL", "no", { status: 400 });
  const { calls, send } = failing(refused, 1);
  expect(await withRepeats(send, rules(3).rules).catch((error) => error)).toBe(refused);
  expect(calls()).toBe(1);
});

test("withRepeats ends its wait when the caller loses interest", async () => {
  const controller = new AbortController();
  let isCancelled = false;
  const environment: RepeatRules["environment"] = {
    after: () => () => {
      isCancelled = true;
    },
    random: () => 0,
  };
  const waiting = withRepeats(failing(new ConnectionError("gone"), 1).send, {
    environment,
    maxRetries: 1,
    signal: controller.signal,
  }).catch((error) => error);
  await Bun.sleep(0);
  const reason = new Error("never mind");
  controller.abort(reason);
  expect(await waiting).toBe(reason);
  expect(isCancelled).toBe(true);
});

test("backoffMs doubles up to half a minute, half of which is random", () => {
  const at = (random: number) => (count: number) => backoffMs({ random: () => random }, count);
  expect([0, 1, 2, 20].map(at(0))).toEqual([100, 200, 400, 15_000]);
  expect(at(0.5)(20)).toBe(22_500);
});

test.each([
  ["SELECT 1", true],
  [" -- note\n/* a; b */ select 1 ;\n", true],
  ["WITH a AS (SELECT 1) SELECT * FROM a", true],
  ["SHOW TABLES", true],
  ["VALUES (1)", true],
  ["WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", false],
  ["SELECT 1; DELETE FROM t", false],
  ["INSERT INTO t VALUES (1)", false],
  ["EXECUTE AS USER 'a' (DELETE FROM t)", false],
  ["EXPLAIN ANALYZE DELETE FROM t", false],
  ["/* was: /* all */ SELECT 1 */ DELETE FROM t", false],
  ["/*/* all */ SELECT 1 */ DELETE FROM t", false],
  ["/**/ /* a * / b **/ SELECT 1", true],
  ["selection", false],
  ["", false],
])("isRead %j is %p", (sql, expected) => {
  expect(isRead(sql)).toBe(expected);
});

test("msFromDuration reads a number and its unit, and refuses any other text", () => {
  expect(["500ms", "10s", "1.5m"].map(msFromDuration)).toEqual([500, 10_000, 90_000]);
  for (const text of ["10", "s", "0s", "-1s", "1h", ""]) {
    expect(() => msFromDuration(text)).toThrow(`Cannot use the duration "${text}"`);
  }
});
