/**
 * Goal: whatever writers, sockets and connections do, a subscriber sees every change of its result
 * exactly once and in order, and what it holds is the result.
 * Method: seeded worlds over the model store and over the real one on a simulated disk, judged by
 * an oracle that shares no code with the engine; and worlds with planted bugs, which it must find.
 * To repeat a failure: SEED=<n> bun test tests/simulation
 */
import { expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import type { Seq } from "../../src/base/seq.ts";
import { type ChangeBatch, LocalStore } from "../../src/storage/mod.ts";
import { MESSAGES, messagesTable } from "../support/live_fixture.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { ModelStore } from "../support/model_store.ts";
import { SeededRandom, seedOf } from "../support/seeded_random.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import {
  type Message,
  type SimulatedStore,
  type SimulationReport,
  simulateLive,
} from "./live_simulation.ts";

const SEED_FIRST = seedOf(1);
const SEED_COUNT = process.env["SEED"] === undefined ? 60 : 1;
const STEPS = 400;

function worldOver(store: ModelStore): SimulatedStore {
  store.defineTable(messagesTable());
  return {
    store,
    sync: () => Promise.resolve(store.sync()),
    disturb: () => Promise.resolve(),
    discard: (owner, upTo) => store.discard(MESSAGES, owner, upTo),
  };
}

function run(
  seed: number,
  options: {
    store?: (clock: ManualClock) => ModelStore;
    tamper?: (messages: Message[], random: SeededRandom) => Message[];
  } = {},
): Promise<SimulationReport> {
  const clock = new ManualClock();
  const store = options.store?.(clock) ?? new ModelStore(clock);
  const { tamper } = options;
  return simulateLive({
    random: new SeededRandom(seed),
    clock,
    world: worldOver(store),
    steps: STEPS,
    ...(tamper === undefined ? {} : { tamper }),
  });
}

test("subscribers see every change once, in order, and hold the result", async () => {
  let changes = 0;
  let resumes = 0;
  let expired = 0;
  for (let seed = SEED_FIRST; seed < SEED_FIRST + SEED_COUNT; seed += 1) {
    try {
      const report = await run(seed);
      changes += report.changes;
      resumes += report.resumes;
      expired += report.expired;
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
  if (SEED_COUNT === 1) return;
  // A simulation in which nothing happens proves nothing.
  expect(changes).toBeGreaterThan(SEED_COUNT * 20);
  expect(resumes).toBeGreaterThan(SEED_COUNT * 3);
  expect(expired).toBeGreaterThan(5);
});

/** The real store, whose commits become visible when the disk is let sync, and which flushes. */
async function localWorld(clock: ManualClock, random: SeededRandom): Promise<SimulatedStore> {
  const disk = new SimulatedDisk();
  const store = await LocalStore.open({
    disk,
    dataPath: "/data",
    clock,
    random,
    log: silentLog,
    manifest: new MemoryManifest(),
    definitions: [messagesTable()],
    options: {
      nodeId: 0,
      nodeBits: 0,
      durability: "sync",
      walSegmentBytes: 1 << 20,
      walMaxBytes: 1 << 22,
      rowBytesMax: 1 << 16,
      minFreeBytes: 0,
      ballastBytes: 0,
    },
  });
  disk.holdsSyncs = true;
  async function free(work: Promise<unknown>): Promise<void> {
    disk.holdsSyncs = false;
    disk.releaseSyncs();
    await work;
    disk.holdsSyncs = true;
  }
  return {
    store,
    sync: () => free(store.durable(store.appliedSeq)),
    disturb: () => free(store.flush(MESSAGES)),
    discard: undefined,
  };
}

test("over the real store, with flushes, they do as well", async () => {
  let changes = 0;
  const seedCount = Math.min(SEED_COUNT, 20);
  for (let seed = SEED_FIRST; seed < SEED_FIRST + seedCount; seed += 1) {
    const clock = new ManualClock();
    const random = new SeededRandom(seed);
    const world = await localWorld(clock, random);
    try {
      const report = await simulateLive({ random, clock, world, steps: STEPS });
      changes += report.changes;
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
    await world.store.close();
  }
  if (SEED_COUNT > 1) expect(changes).toBeGreaterThan(seedCount * 20);
});

test("the same seed gives the same messages", async () => {
  const [first, second, other] = [await run(5), await run(5), await run(6)];
  expect(first).toEqual(second);
  expect(first.trace).not.toBe(other.trace);
});

type Batches = (batch: ChangeBatch) => ChangeBatch;

/** A store whose change batches are damaged on their way. */
class FaultyStore extends ModelStore {
  damage: Batches = (batch) => batch;

  override changes(...[tableId, options]: Parameters<ModelStore["changes"]>) {
    const scan = super.changes(tableId, options);
    return {
      next: () => {
        const batch = scan.next();
        return batch === undefined ? undefined : this.damage(batch);
      },
      close: () => scan.close(),
    };
  }
}

class ForgetfulStore extends ModelStore {
  override changes(...[tableId, options]: Parameters<ModelStore["changes"]>) {
    const upTo = Math.max(options.after, options.upTo - 1) as Seq;
    return super.changes(tableId, { ...options, upTo });
  }
}

class BoundlessStore extends ModelStore {
  override scan(...[tableId, options]: Parameters<ModelStore["scan"]>) {
    return super.scan(tableId, { ...options, upTo: this.visibleSeq });
  }
}

class SilentStore extends ModelStore {
  #wakeCount = 0;

  override sync(): void {
    const wake = this.onVisible;
    this.#wakeCount += 1;
    if (this.#wakeCount % 5 === 0) this.onVisible = () => {};
    super.sync();
    this.onVisible = wake;
  }
}

function damaged(damage: Batches): (clock: ManualClock) => ModelStore {
  return (clock) => {
    const store = new FaultyStore(clock);
    store.damage = damage;
    return store;
  };
}

const PLANTED: Readonly<Record<string, Parameters<typeof run>[1]>> = {
  "the newest version of a wake is not read": { store: (clock) => new ForgetfulStore(clock) },
  "a snapshot reads above its boundary": { store: (clock) => new BoundlessStore(clock) },
  "a wake is forgotten": { store: (clock) => new SilentStore(clock) },
  "old values are the new ones": {
    store: damaged((batch) => ({ ...batch, oldColumns: batch.columns })),
  },
  "the version before is not found": {
    store: damaged((batch) => ({ ...batch, hasOld: new Uint8Array(batch.rowCount) })),
  },
  "a tombstone is taken for a row": {
    store: damaged((batch) => ({ ...batch, deleted: new Uint8Array(batch.rowCount) })),
  },
  "prev is lost": {
    store: damaged((batch) => ({ ...batch, prevs: new Float64Array(batch.rowCount) })),
  },
  "a message is lost": {
    tamper: (messages, random) => messages.filter(() => !random.chance(0.01)),
  },
  "a message comes twice": {
    tamper: (messages, random) =>
      messages.flatMap((sent) => (random.chance(0.01) ? [sent, sent] : [sent])),
  },
  "two messages change places": {
    tamper: (messages, random) => (random.chance(0.2) ? messages.toReversed() : messages),
  },
};

test.each(Object.keys(PLANTED))("planted: %s, and it is found", async (name) => {
  for (let seed = 1; seed <= 20; seed += 1) {
    try {
      await run(seed, PLANTED[name]);
    } catch {
      // Found: by the oracle, or by an assertion of the engine on what it was given.
      return;
    }
  }
  throw new Error("20 worlds and nothing was noticed");
});
