/**
 * The campaign of crash states finds what is planted, and nothing else: a short form of
 * `scripts/crash_states.ts`.
 */
import { expect, test } from "bun:test";
import { PLANTS } from "../../scripts/crash_states/plants.ts";
import { crashStates } from "../../scripts/crash_states/run.ts";
import { seedOf } from "../support/seeded_random.ts";
import { isThorough } from "../support/thoroughness.ts";

const seed = seedOf(1);

const STATES = 200;

/** Found after thousands of states. The campaign with each plant is a part of `.ci/run`. */
const LATE: ReadonlySet<string> = new Set(["ids_not_synced", "no_checksum"]);

test("the store has what it was told in every crash state, and a seed tells one story", async () => {
  const first = await crashStates({ stateCount: STATES, seed });
  expect(first.findings).toEqual([]);
  expect(await crashStates({ stateCount: STATES, seed })).toEqual(first);
  let mergeCount = first.merges;
  // Now and then so few stories have no merge.
  for (let attempt = 1; attempt < 5 && mergeCount === 0; attempt += 1) {
    const { findings, merges } = await crashStates({
      stateCount: STATES,
      seed: seed + 1000 * attempt,
    });
    expect(findings).toEqual([]);
    mergeCount += merges;
  }
  expect(mergeCount).toBeGreaterThan(0);
}, 60_000);

test.each(PLANTS.filter((plant) => isThorough || !LATE.has(plant)))(
  "a planted fault is found: %s",
  async (plant) => {
    const { findings } = await crashStates({ stateCount: 10_000, seed, plant });
    expect(findings.length).toBe(1);
  },
  60_000,
);
