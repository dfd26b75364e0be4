/**
 * Verifies that each client request is served once, and that batches are numbered. A client that
 * stops requesting batches is disconnected after a time limit, but never while it is being served
 * or after all of its rows have been sent.
 */
import { expect, test } from "bun:test";
import type { Seq } from "../../../src/base/seq.ts";
import type { BatchStep, LoadReader } from "../../../src/live/subscription/load_reader.ts";
import { Loading } from "../../../src/live/subscription/loading.ts";
import { ManualClock } from "../../support/manual_clock.ts";

const TIMEOUT_MS = 30_000;

/** A reader that returns no rows, because the rows do not matter in these tests. */
const NOTHING: LoadReader = {
  next: () => undefined,
  release: () => undefined,
  close: () => undefined,
};

function begun(): { loading: Loading; clock: ManualClock; timeouts: number[] } {
  const clock = new ManualClock();
  const timeouts: number[] = [];
  const onTimeout = (): void => {
    timeouts.push(clock.monotonicMs());
  };
  const loading = new Loading(NOTHING, { clock, timeoutMs: TIMEOUT_MS, onTimeout });
  return { loading, clock, timeouts };
}

function batch(of: Partial<BatchStep> = {}): BatchStep {
  const lastSeq = 7 as Seq;
  return { kind: "batch", rows: [], lastSeq, isLast: false, endsRequest: true, ...of };
}

test("Loading.count numbers batches and marks the last one", () => {
  const { loading } = begun();
  const more = { has_more: true, status: "loading", last_seq_id: 7 as Seq } as const;

  expect(loading.count(batch())).toEqual({ batch_num: 0, ...more });
  loading.request();
  expect(loading.count(batch())).toEqual({ batch_num: 1, ...more });
  loading.request();
  expect(loading.count(batch({ isLast: true }))).toEqual({
    batch_num: 2,
    has_more: false,
    status: "ready",
    last_seq_id: 7,
  });
});

test("Loading.isRequested is true until a batch has ended each request", () => {
  const { loading } = begun();
  expect(loading.isRequested).toBe(true);

  loading.count(batch({ endsRequest: false }));
  expect(loading.isRequested).toBe(true);
  loading.count(batch());
  expect(loading.isRequested).toBe(false);
});

test.each([
  [14, 15],
  [15, 16],
  [16, 16],
])("Loading.request, called %d times, leaves %d requests open", (callCount, openCount) => {
  const { loading } = begun();
  for (let call = 0; call < callCount; call += 1) loading.request();

  let servedCount = 0;
  for (; loading.isRequested; servedCount += 1) loading.count(batch());
  expect(servedCount).toBe(openCount);
});

test("Loading drops a client that requests nothing in time", () => {
  const { clock, loading, timeouts } = begun();
  loading.count(batch());
  clock.advance(TIMEOUT_MS - 1);
  expect(timeouts).toBeEmpty();

  clock.advance(1);
  expect(timeouts).toHaveLength(1);
});

test("Loading does not charge the time of a batch to its client", () => {
  const { clock, loading, timeouts } = begun();
  clock.advance(2 * TIMEOUT_MS);
  loading.count(batch());
  clock.advance(TIMEOUT_MS - 1);
  loading.request();
  loading.request();
  clock.advance(2 * TIMEOUT_MS);
  loading.count(batch({ endsRequest: false }));
  loading.count(batch());
  clock.advance(2 * TIMEOUT_MS);
  expect(timeouts).toBeEmpty();

  loading.count(batch());
  clock.advance(TIMEOUT_MS - 1);
  expect(timeouts).toBeEmpty();
  clock.advance(1);
  expect(timeouts).toHaveLength(1);
});

test("Loading.close stops the timeout of the client", () => {
  const { clock, loading, timeouts } = begun();
  loading.count(batch());
  loading.close();
  clock.advance(TIMEOUT_MS);

  expect(timeouts).toBeEmpty();
});
