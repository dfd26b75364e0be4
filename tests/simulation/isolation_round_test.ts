/**
 * Verifies that the seed of an isolation campaign determines its statements, so that a reported
 * leak can be reproduced.
 */
import { expect } from "bun:test";
import { Round } from "../campaigns/isolation/round.ts";
import { testThoroughly } from "../support/requirements.ts";

const STATEMENTS = 60;

/** Returns a digest of all statements in a round. */
async function traceOf(seed: number): Promise<string> {
  const totals = { statements: 0, compared: 0, messages: 0, leaks: 0 };
  const trace = new Bun.CryptoHasher("sha1");
  await using round = await Round.open(seed, { totals, injected: undefined, trace });
  await round.run(STATEMENTS);
  expect(totals.leaks).toBe(0);
  return trace.digest("hex");
}

testThoroughly("Round sends the same statements for the same seed", async () => {
  const first = await traceOf(8);
  expect(await traceOf(8)).toBe(first);
  expect(await traceOf(9)).not.toBe(first);
});
