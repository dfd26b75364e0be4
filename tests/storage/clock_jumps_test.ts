/**
 * Verifies that no seq repeats when the clock jumps, across restarts and crashes. Also verifies
 * that rows live as long as the clock at their commit implies, and that no warning asks the
 * operator to correct a clock that is right.
 */
import { expect, test } from "bun:test";
import { HOUR_MS } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { RecentLog } from "../../src/base/recent_log.ts";
import { SEQ_EPOCH_MS } from "../../src/base/seq.ts";
import { type SeqEra, SeqTimes } from "../../src/base/seq_times.ts";
import type { LocalStore } from "../../src/storage/mod.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { SeededRandom } from "../support/seeded_random.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { commit, defineTable, openStore, readRows } from "../support/store_fixture.ts";

const START_MS = SEQ_EPOCH_MS + 1000 * HOUR_MS;
const TTL_MS = 60_000;
const STREAM = { ...defineTable(1, [{ kind: "int" }]), ttlMs: TTL_MS };

/** A data directory. Its eras are stored in the same way as in the catalog. */
class World {
  readonly clock = new ManualClock(START_MS);
  readonly log = new RecentLog(silentLog, this.clock);
  disk = new SimulatedDisk();
  readonly manifest = new MemoryManifest();
  eras: readonly SeqEra[] = [];

  open(): Promise<LocalStore> {
    return openStore({
      clock: this.clock,
      log: this.log,
      disk: this.disk,
      manifest: this.manifest,
      definitions: [STREAM],
      seqTimes: new SeqTimes({
        eras: this.eras,
        save: (eras) => {
          this.eras = eras;
        },
      }),
    });
  }

  get warnings(): string[] {
    return this.log.lines.filter(({ level }) => level === "warn").map(({ message }) => message);
  }
}

function keysOf(store: LocalStore): unknown[] {
  return readRows(store, STREAM).map(([, key]) => key);
}

test.each(["goes on", "stops", "loses power"])(
  "rows after a backward jump live as long as others if the process %s",
  async (what) => {
    const world = new World();
    let store = await world.open();
    await commit(store, 1, "insert", [[1]]);
    world.clock.advance(HOUR_MS);
    const ahead = await commit(store, 1, "insert", [[2]]);
    expect(keysOf(store)).toEqual([2]);
    if (what === "stops") await store.close();
    if (what === "loses power") world.disk = world.disk.crash({ keep: "none" });
    world.clock.setWall(START_MS + 5000);
    if (what !== "goes on") store = await world.open();
    store.lookAtClock();
    const after = await commit(store, 1, "insert", [[3]]);
    expect(after.lastSeq).toBeGreaterThan(ahead.lastSeq);
    expect(store.commitMs(after.lastSeq)).toBe(START_MS + 5000);
    expect(store.commitMs(ahead.lastSeq)).toBe(START_MS + HOUR_MS);
    // Rows that expired while the clock was ahead stay expired, even if a new row takes over their
    // key.
    expect(keysOf(store)).toEqual([2, 3]);
    await commit(store, 1, "insert", [[1]]);
    await store.flush(1);
    if (what === "loses power") {
      world.disk = world.disk.crash({ keep: "none" });
      store = await world.open();
    }
    world.clock.advance(TTL_MS - 1);
    expect(keysOf(store)).toEqual([2, 3, 1]);
    world.clock.advance(1);
    expect(keysOf(store)).toEqual([]);
    store.dropExpired();
    const last = await commit(store, 1, "insert", [[4]]);
    expect(store.commitMs(last.lastSeq)).toBe(world.clock.nowMs());
    expect(keysOf(store)).toEqual([4]);
    await store.close();
    expect(world.warnings.filter((line) => line.includes("clock"))).toEqual([
      "the system clock was set back; timestamps and expiry follow the new time, while new _seq values stay ahead of it",
    ]);
  },
);

test("an acknowledged row lives as long as others and no seq repeats, whatever a crash preserves", async () => {
  for (let seed = 1; seed <= 8; seed += 1) {
    const random = new SeededRandom(seed);
    const world = new World();
    const alive = new Map<number, number>();
    let lastSeq = 0;
    for (let life = 0; life < 5; life += 1) {
      const store = await world.open();
      for (let step = 0; step < 4; step += 1) {
        const key = life * 10 + step;
        const { lastSeq: seq } = await commit(store, 1, "insert", [[key]]);
        expect(seq, `seed ${seed}`).toBeGreaterThan(lastSeq);
        expect(store.commitMs(seq), `seed ${seed}`).toBe(world.clock.nowMs());
        lastSeq = seq;
        alive.set(key, TTL_MS);
        if (random.unit() < 0.3) await store.flush(1);
        // Time passes, and all rows written so far age by the same amount.
        const passedMs = Math.floor(random.unit() * 20_000);
        world.clock.advance(passedMs);
        for (const [known, leftMs] of alive) alive.set(known, leftMs - passedMs);
      }
      const found = new Set(keysOf(store));
      for (let step = 0; step < 4; step += 1) {
        const key = life * 10 + step;
        expect(found.has(key), `seed ${seed}, key ${key}`).toBe((alive.get(key) ?? 0) > 0);
      }
      world.disk = world.disk.crash({ keep: "some", random });
      // The clock jumps hours ahead, or back to where it was.
      const jumpMs = Math.floor((random.unit() - 0.5) * 20) * HOUR_MS;
      world.clock.setWall(world.clock.nowMs() + jumpMs);
    }
  }
});

test("a store accepts every commit and never repeats a seq while the clock is far behind", async () => {
  const world = new World();
  const seqs: number[] = [];
  for (let life = 0; life < 3; life += 1) {
    const store = await world.open();
    store.lookAtClock();
    for (let row = 0; row < 5; row += 1) {
      seqs.push((await commit(store, 1, "insert", [[life * 10 + row]])).lastSeq);
    }
    await store.close();
    world.clock.setWall(START_MS - (life + 2) * HOUR_MS);
  }
  expect(seqs).toEqual([...new Set(seqs)].toSorted((left, right) => left - right));
  // There are three runs. The clock is right during the first, so only the other two warn.
  expect(world.warnings.length).toBe(2);
});

test.each(["goes on", "stops"])(
  "an id of SNOWFLAKE_ID() has the time of the clock after a jump if the process %s",
  async (what) => {
    const world = new World();
    let store = await world.open();
    await commit(store, 1, "insert", [[1]]);
    world.clock.setWall(START_MS + HOUR_MS);
    const ahead = store.snowflakeId();
    await commit(store, 1, "insert", [[2]]);
    world.clock.setWall(START_MS + 60_000);
    if (what === "stops") {
      await store.close();
      store = await world.open();
    }
    let last = ahead;
    for (const atMs of [60_000, 61_000, 90_000, HOUR_MS / 2, 2 * HOUR_MS]) {
      world.clock.setWall(START_MS + atMs);
      const id = store.snowflakeId();
      expect(id).toBeGreaterThan(last);
      last = id;
      // After a restart, ids continue above those reserved for the next five seconds.
      const offMs = store.commitMs(id) - (START_MS + atMs);
      expect(offMs).toBeGreaterThanOrEqual(0);
      expect(offMs).toBeLessThan(6_000);
    }
    await store.close();
  },
);

test("a forward jump discards no version that an open snapshot may still need, for an hour", async () => {
  const clock = new ManualClock(START_MS);
  const table = { ...defineTable(1, [{ kind: "int" }, { kind: "text" }]), historyMs: 0 };
  const store = await openStore({ disk: new SimulatedDisk(), clock, definitions: [table] });
  await commit(store, 1, "insert", [
    [1, "a"],
    [2, "b"],
  ]);
  await store.flush(1);
  const upTo = store.visibleSeq;
  const textsThen = (): unknown[] => readRows(store, table, { upTo }).map(([, , text]) => text);
  await commit(store, 1, "update", [[1, "changed"]]);
  await store.flush(1);
  clock.setWall(START_MS + 30 * HOUR_MS);
  await store.compact(1);
  expect(textsThen()).toEqual(["a", "b"]);
  clock.advance(HOUR_MS - 1000);
  await store.compact(1);
  expect(textsThen()).toEqual(["a", "b"]);
  clock.advance(2000);
  await store.compact(1);
  expect(store.earliestSeq(1, 0)).toBeGreaterThan(upTo);
  expect(textsThen()).toEqual(["b"]);
  await store.close();
});
