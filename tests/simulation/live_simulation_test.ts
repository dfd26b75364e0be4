/**
 * Goal: whatever writers, sockets and connections do, a subscriber sees every change of its result
 * exactly once and in order, and what it holds is the result.
 * Method: seeded worlds over the model store and over the real one on a simulated disk, judged by
 * an oracle that shares no code with the engine; and worlds with planted bugs, which it must find.
 * To repeat a failure: SEED=<n> bun test tests/simulation
 */
import { expect, test } from "bun:test";
import { AssertionError } from "../../src/base/assert.ts";
import type { Seq } from "../../src/base/seq.ts";
import type { ChangeBatch } from "../../src/storage/mod.ts";
import { MESSAGES, message } from "../support/live_fixture.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { ModelStore } from "../support/model_store.ts";
import { SeededRandom, seedOf } from "../support/seeded_random.ts";
import { nextTurn, type SimulationReport, StreamViolation } from "./live_simulation.ts";
import {
  LocalWorld,
  type SimulationOptions,
  simulateOverLocalStore,
  simulateOverModel,
} from "./live_worlds.ts";

const SEED_FIRST = seedOf(1);
const SEED_COUNT = process.env["SEED"] === undefined ? 60 : 1;
const STEPS = 400;

/** A planted bug that this many worlds do not show is not looked for. */
const PLANTED_WORLDS_MAX = 100;

type Planted = Omit<SimulationOptions, "steps">;

function run(seed: number, planted: Planted = {}): Promise<SimulationReport> {
  return simulateOverModel(seed, { steps: STEPS, ...planted });
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

test("over the real store, with flushes, they do as well", async () => {
  let changes = 0;
  let expired = 0;
  const seedCount = Math.min(SEED_COUNT, 20);
  for (let seed = SEED_FIRST; seed < SEED_FIRST + seedCount; seed += 1) {
    try {
      const report = await simulateOverLocalStore(seed, { steps: STEPS });
      changes += report.changes;
      expired += report.expired;
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
  if (SEED_COUNT === 1) return;
  expect(changes).toBeGreaterThan(seedCount * 20);
  expect(expired).toBeGreaterThan(5);
});

test("a world ends while a merge of its store waits for the disk", async () => {
  const random = new SeededRandom(1);
  const world = await LocalWorld.open(new ManualClock(), random);
  // Segments are merged by eights.
  for (let id = 0; id < 8; id += 1) {
    const rows = [message(id, "lobby")];
    world.store.apply({ writes: [{ tableId: MESSAGES, owner: 1, operation: "insert", rows }] });
    await world.flush();
  }
  // Turns enough for the merge to have come to its sync, which the disk holds back.
  for (let count = 0; count < 100; count += 1) await nextTurn();
  expect(world.store.segments().length).toBe(8);
  await world.close();
});

test.each([
  ["model", simulateOverModel],
  ["real", simulateOverLocalStore],
])("the same seed gives the same messages over the %s store", async (_name, simulate) => {
  const first = await simulate(5, { steps: STEPS });
  const second = await simulate(5, { steps: STEPS });
  const other = await simulate(6, { steps: STEPS });
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

const PLANTED: Readonly<Record<string, Planted>> = {
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

class BrokenStore extends ModelStore {
  override changes(): never {
    throw new AssertionError("changes cannot be read");
  }
}

test("an assertion in a turn of the engine ends its world, and no other", async () => {
  const store = (clock: ManualClock): ModelStore => new BrokenStore(clock);
  for (let seed = 1; seed <= 10; seed += 1) {
    const error: unknown = await run(seed, { store }).then(
      () => undefined,
      (cause: unknown) => cause,
    );
    expect(error).toEqual(new AssertionError("changes cannot be read"));
  }
});

test.each(Object.entries(PLANTED))("planted: %s, and it is found", async (_name, planted) => {
  for (let seed = SEED_FIRST; seed < SEED_FIRST + PLANTED_WORLDS_MAX; seed += 1) {
    try {
      await run(seed, planted);
    } catch (error) {
      // By the oracle, or by an assertion of the engine on what it was given.
      if (error instanceof StreamViolation || error instanceof AssertionError) return;
      throw error;
    }
  }
  throw new Error(`${PLANTED_WORLDS_MAX} worlds and nothing was noticed`);
});
