/**
 * Verifies that the crash state campaign finds injected faults and nothing else. This is a short
 * version of `tests/campaigns/crash_states.ts`.
 */
import { expect, test } from "bun:test";
import { testThoroughly } from "../../support/requirements.ts";
import { seedOf } from "../../support/seeded_random.ts";
import { amountOf, isThorough, shareOf } from "../../support/thoroughness.ts";
import { INJECTED_FAULTS } from "./injected_faults.ts";
import { crashStates } from "./run.ts";
import { TOPIC_FAULTS, topicStates } from "./topic_stories.ts";

const seed = seedOf(1);

const STATES = amountOf({ usual: 4, thorough: 200 });

/**
 * The number of topic states to test. Topic states take longer to open and to compare than other
 * states.
 */
const TOPIC_STATES = 60;

/** Faults that are found only after many states. `.ci/run` injects them into the campaign. */
const LATE: ReadonlySet<string> = new Set([
  "ids_not_synced",
  "index_wrong_after_merge",
  "no_checksum",
]);

test("the store keeps all durable changes in every crash state, and a seed reproduces its run", async () => {
  const first = await crashStates({ stateCount: STATES, seed });
  expect(first.findings).toEqual([]);
  if (!isThorough) return;
  expect(await crashStates({ stateCount: STATES, seed })).toEqual(first);
  let mergeCount = first.merges;
  // With so few states, a run sometimes contains no merge and has to be repeated.
  for (let attempt = 1; attempt < 5 && mergeCount === 0; attempt += 1) {
    const { findings, merges } = await crashStates({
      stateCount: STATES,
      seed: seed + 1000 * attempt,
    });
    expect(findings).toEqual([]);
    mergeCount += merges;
  }
  expect(mergeCount).toBeGreaterThan(0);
});

testThoroughly(
  "topics keep offsets, acknowledgements and effects in every crash state",
  async () => {
    const first = await topicStates({ stateCount: TOPIC_STATES, seed });
    expect(first.findings).toEqual([]);
    expect(first.acknowledged).toBeGreaterThan(0);
  },
);

test.each(shareOf(TOPIC_FAULTS, { oneOf: 8 }))(
  "the campaign finds the injected topic fault %s",
  async (injected) => {
    const { findings } = await topicStates({ stateCount: 10_000, seed, injected });
    expect(findings.length).toBe(1);
  },
);

const EARLY = INJECTED_FAULTS.filter((injected) => !LATE.has(injected));

test.each(shareOf(EARLY, { oneOf: 6 }))("an injected fault is found: %s", async (injected) => {
  const { findings } = await crashStates({ stateCount: 10_000, seed, injected });
  expect(findings.length).toBe(1);
});
