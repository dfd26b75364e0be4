/**
 * A clock that is far behind the ids: said once, and once more when it has caught up.
 */
import { expect, test } from "bun:test";
import { HOUR_MS } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { RecentLog } from "../../src/base/recent_log.ts";
import { SEQ_EPOCH_MS } from "../../src/base/seq.ts";
import { ClockWatch } from "../../src/storage/clock_watch.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { commit, defineTable, openStore } from "../support/store_fixture.ts";

const START_MS = SEQ_EPOCH_MS + 1000 * HOUR_MS;

test("ClockWatch says once that the clock is far behind, and once that it has caught up", () => {
  const clock = new ManualClock(START_MS);
  const log = new RecentLog(silentLog, clock);
  const watch = new ClockWatch({ clock, ids: { nowMs: () => START_MS }, log });
  const told = (): string[] => log.lines.map(({ level, message }) => `${level} ${message}`);
  const behind = "warn the system clock is far behind the newest sequence id: set the clock";
  watch.look();
  clock.setWall(START_MS - HOUR_MS);
  watch.look();
  expect(told()).toEqual([]);
  clock.setWall(START_MS - HOUR_MS - 1);
  watch.look();
  watch.look();
  expect(told()).toEqual([behind]);
  expect(log.lines[0]?.fields).toEqual({
    clock: "2026-02-11T14:59:59.999Z",
    newestId: "2026-02-11T16:00:00.000Z",
  });
  clock.setWall(START_MS - 1);
  watch.look();
  expect(told()).toEqual([behind]);
  clock.setWall(START_MS);
  watch.look();
  watch.look();
  const caughtUp = "warn the system clock has caught up with the newest sequence id";
  expect(told()).toEqual([behind, caughtUp]);
});

test("a store takes every commit, and never repeats a seq, while the clock is far behind", async () => {
  const clock = new ManualClock(START_MS);
  const log = new RecentLog(silentLog, clock);
  const parts = {
    clock,
    log,
    disk: new SimulatedDisk(),
    manifest: new MemoryManifest(),
    definitions: [defineTable(1, [{ kind: "int" }])],
  };
  const seqs: number[] = [];
  for (let life = 0; life < 3; life += 1) {
    const store = await openStore(parts);
    store.lookAtClock();
    for (let row = 0; row < 5; row += 1) {
      seqs.push((await commit(store, 1, "insert", [[life * 10 + row]])).lastSeq);
    }
    await store.close();
    clock.setWall(START_MS - (life + 2) * HOUR_MS);
  }
  expect(seqs).toEqual([...new Set(seqs)].toSorted((left, right) => left - right));
  // The clock was right in the first life.
  const warnings = log.lines.filter(({ level }) => level === "warn");
  expect(warnings.length).toBe(2);
});
