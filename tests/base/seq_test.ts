/**
 * Verifies that, whatever the clock does, ids ascend and never repeat, that their times never go
 * back, and that only ids that need more than 53 bits are refused.
 */
import { expect, test } from "bun:test";
import { HOUR_MS } from "../../src/base/clock.ts";
import { DatabaseError } from "../../src/base/errors.ts";
import {
  SEQ_EPOCH_MS,
  SEQ_ZERO,
  type Seq,
  SeqGenerator,
  seqFromUnixMs,
  unixMsFromSeq,
} from "../../src/base/seq.ts";
import { ManualClock } from "../support/manual_clock.ts";

const DAY_MS = 24 * HOUR_MS;
const START_MS = SEQ_EPOCH_MS + 10 * DAY_MS;

/** The last millisecond for which there are ids, in Unix milliseconds. */
const LAST_MS = SEQ_EPOCH_MS + 2 ** 41 - 1;

function generatorOn(clock: ManualClock, last: Seq = SEQ_ZERO): SeqGenerator {
  return new SeqGenerator({ clock, nodeId: 0, nodeBits: 0, last });
}

test("next issues as many ascending ids as requested while the clock is far behind", () => {
  const clock = new ManualClock(START_MS + 40 * DAY_MS);
  const seqs = generatorOn(clock);
  let before = seqs.next();
  clock.setWall(START_MS);
  for (let count = 0; count < 20_000; count += 1) {
    const seq = seqs.next();
    expect(seq).toBeGreaterThan(before);
    before = seq;
  }
  expect(unixMsFromSeq(before)).toBe(START_MS + 40 * DAY_MS + 4);
});

test("next continues above the newest id if the clock is far behind after startup", () => {
  const last = seqFromUnixMs(START_MS + 40 * DAY_MS);
  const seqs = generatorOn(new ManualClock(START_MS), last);
  expect(seqs.next()).toBe((last + 4096) as Seq);
  expect(seqs.next()).toBe((last + 4097) as Seq);
});

test("block issues ids while the clock is far behind", () => {
  const clock = new ManualClock(START_MS);
  const seqs = generatorOn(clock);
  const before = seqs.next();
  clock.setWall(START_MS - 2 * DAY_MS);
  const first = seqs.block(10_000);
  expect(first).toBeGreaterThan(before);
  expect(seqs.last).toBe((first + seqs.offsetOf(9999)) as Seq);
  expect(seqs.next()).toBeGreaterThan(first + seqs.offsetOf(9999));
});

test("nowMs never goes back, and no later id has an earlier time", () => {
  const clock = new ManualClock(START_MS);
  const seqs = generatorOn(clock);
  seqs.next();
  clock.advance(HOUR_MS);
  expect(seqs.nowMs()).toBe(START_MS + HOUR_MS);
  clock.setWall(START_MS);
  expect(seqs.nowMs()).toBe(START_MS + HOUR_MS);
  expect(unixMsFromSeq(seqs.next())).toBe(START_MS + HOUR_MS);
  expect(unixMsFromSeq(seqs.block(3))).toBe(START_MS + HOUR_MS + 1);
});

test("next issues the last possible id, and then refuses without changing its state", () => {
  const clock = new ManualClock(START_MS);
  const seqs = generatorOn(clock, (Number.MAX_SAFE_INTEGER - 4096) as Seq);
  for (let count = 1; count < 4096; count += 1) seqs.next();
  expect(seqs.next()).toBe(Number.MAX_SAFE_INTEGER as Seq);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    expect(() => seqs.next()).toThrow(DatabaseError);
    expect(() => seqs.block(1)).toThrow(DatabaseError);
  }
  expect(seqs.last).toBe(Number.MAX_SAFE_INTEGER as Seq);
});

test("next refuses while the clock shows a time that has no ids, and continues after that", () => {
  const clock = new ManualClock(LAST_MS + 1);
  const seqs = generatorOn(clock, seqFromUnixMs(START_MS));
  expect(() => seqs.next()).toThrow(
    "Cannot issue a _seq for 2095-09-07T15:47:35.552Z: the latest possible time is " +
      "2095-09-07T15:47:35.551Z",
  );
  expect(seqs.nowMs()).toBe(START_MS);
  clock.setWall(START_MS + HOUR_MS);
  expect(unixMsFromSeq(seqs.next())).toBe(START_MS + HOUR_MS);
});

test("block refuses the whole request if its last id would not exist", () => {
  const clock = new ManualClock(LAST_MS - 1);
  const seqs = generatorOn(clock, seqFromUnixMs(START_MS));
  expect(() => seqs.block(3 * 4096)).toThrow("Cannot issue a _seq");
  expect(seqs.last).toBe(seqFromUnixMs(START_MS));
  expect(unixMsFromSeq(seqs.block(2 * 4096))).toBe(LAST_MS - 1);
  expect(seqs.last).toBe(Number.MAX_SAFE_INTEGER as Seq);
});
