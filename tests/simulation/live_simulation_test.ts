/**
 * Verifies that, whatever writers, sockets and connections do, a subscriber sees every change to
 * its result exactly once and in order, and has the right rows. The tests run seeded simulations
 * on the model store, and on the real store with a simulated disk. An oracle that shares no code
 * with the engine judges them, and must find the faults that the tests inject. To repeat a
 * failure: SEED=<n> bun test tests/simulation
 */
import { expect, test } from "bun:test";
import { AssertionError } from "../../src/base/assert.ts";
import { MESSAGES, message } from "../support/live_fixture.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { ModelStore } from "../support/model_store.ts";
import { SeededRandom, seedOf } from "../support/seeded_random.ts";
import { SMALL_MERGES } from "../support/store_fixture.ts";
import { amountOf, shareOf } from "../support/thoroughness.ts";
import { findInjected, INJECTED_FAULTS } from "./live_injected_faults.ts";
import { nextTurn } from "./live_simulation.ts";
import { LocalWorld, simulateOverLocalStore, simulateOverModel } from "./live_worlds.ts";

const SEED_FIRST = seedOf(1);
const SEED_COUNT = process.env["SEED"] === undefined ? amountOf({ usual: 1, thorough: 20 }) : 1;
const STEPS = 400;

/** The time to live of rows, about a sixth of the time that passes in a run. */
const TTL_MS = 40;

test("subscribers see every change once, in order, and have the right rows", async () => {
  let changes = 0;
  let resumes = 0;
  let expired = 0;
  for (let seed = SEED_FIRST; seed < SEED_FIRST + SEED_COUNT; seed += 1) {
    try {
      const report = await simulateOverModel(seed, { steps: STEPS });
      changes += report.changes;
      resumes += report.resumes;
      expired += report.expired;
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
  if (SEED_COUNT === 1) return;
  // A simulation in which nothing happens would prove nothing.
  expect(changes).toBeGreaterThan(SEED_COUNT * 20);
  expect(resumes).toBeGreaterThan(SEED_COUNT * 3);
  expect(expired).toBeGreaterThan(5);
});

test("subscribers of the real store see every change once, with flushes in between", async () => {
  let changes = 0;
  let expired = 0;
  const seedCount = Math.min(SEED_COUNT, amountOf({ usual: 2, thorough: 12 }));
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

test.each([
  ["model", simulateOverModel],
  ["real", simulateOverLocalStore],
])("expiring rows of the %s store are delivered as long as they live", async (_name, simulate) => {
  let changes = 0;
  let resumes = 0;
  const seedCount = Math.min(SEED_COUNT, 8);
  for (let seed = SEED_FIRST; seed < SEED_FIRST + seedCount; seed += 1) {
    try {
      const report = await simulate(seed, { steps: STEPS, ttlMs: TTL_MS });
      changes += report.changes;
      resumes += report.resumes;
    } catch (error) {
      throw new Error(`seed ${seed}`, { cause: error });
    }
  }
  if (SEED_COUNT === 1) return;
  expect(changes).toBeGreaterThan(seedCount * 10);
  expect(resumes).toBeGreaterThan(seedCount * 3);
});

test("a run ends while a merge of its store waits for the disk", async () => {
  const random = new SeededRandom(1);
  const world = await LocalWorld.open(new ManualClock(), random);
  for (let id = 0; id < SMALL_MERGES.fanIn; id += 1) {
    const rows = [message(id, "lobby")];
    world.store.apply({ writes: [{ tableId: MESSAGES, owner: 1, operation: "insert", rows }] });
    await world.flush();
  }
  // After this many ticks, the merge waits for its sync, which the simulated disk delays.
  for (let count = 0; count < 100; count += 1) await nextTurn();
  expect(world.store.segments().length).toBe(SMALL_MERGES.fanIn);
  await world.close();
});

test.each(
  shareOf(
    [
      ["model", simulateOverModel],
      ["real", simulateOverLocalStore],
    ] as const,
    { oneOf: 2 },
  ),
)("the same seed gives the same messages over the %s store", async (_name, simulate) => {
  const first = await simulate(5, { steps: STEPS });
  const second = await simulate(5, { steps: STEPS });
  const other = await simulate(6, { steps: STEPS });
  expect(first).toEqual(second);
  expect(first.trace).not.toBe(other.trace);
});

class BrokenStore extends ModelStore {
  override changes(): never {
    throw new AssertionError("changes cannot be read");
  }
}

test("an assertion in a tick of the engine ends its own run and no other", async () => {
  const store = (clock: ManualClock): ModelStore => new BrokenStore(clock);
  for (let seed = 1; seed <= 10; seed += 1) {
    const error: unknown = await simulateOverModel(seed, { steps: STEPS, store }).then(
      () => undefined,
      (cause: unknown) => cause,
    );
    expect(error).toEqual(new AssertionError("changes cannot be read"));
  }
});

test.each(shareOf(INJECTED_FAULTS, { oneOf: 12 }))(
  "the simulation finds the injected fault: %s",
  async (injected) => {
    const finding = await findInjected(injected, { seed: SEED_FIRST, steps: STEPS });
    expect(finding).toBeDefined();
  },
);
