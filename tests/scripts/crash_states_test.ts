/**
 * The campaign of crash states finds what is planted, and nothing else: a short form of
 * `scripts/crash_states.ts`.
 */
import { expect, test } from "bun:test";
import { PLANTS } from "../../scripts/crash_states/plants.ts";
import { crashStates } from "../../scripts/crash_states/run.ts";
import { seedOf } from "../support/seeded_random.ts";

const seed = seedOf(1);

test("the store has what it was told in every crash state", async () => {
  let mergeCount = 0;
  // Now and then so few stories have no merge.
  for (let attempt = 0; attempt < 5 && mergeCount === 0; attempt += 1) {
    const { findings, merges } = await crashStates({
      stateCount: 200,
      seed: seed + 1000 * attempt,
    });
    expect(findings).toEqual([]);
    mergeCount += merges;
  }
  expect(mergeCount).toBeGreaterThan(0);
}, 30_000);

test.each(PLANTS)(
  "a planted fault is found: %s",
  async (plant) => {
    const { findings } = await crashStates({ stateCount: 10_000, seed, plant });
    expect(findings.length).toBe(1);
  },
  60_000,
);

test("the same seed tells the same story", async () => {
  const [first, second] = [
    await crashStates({ stateCount: 1, seed }),
    await crashStates({ stateCount: 1, seed }),
  ];
  expect(second).toEqual(first);
}, 30_000);
