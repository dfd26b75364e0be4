/**
 * Tries to find out from response times which accounts exist. It compares sign-ups with free and
 * taken names, links for known and unknown users, and logins by known and unknown users. Welch's
 * t-test compares the times of each pair; |t| of 4.5 or more counts as a leak.
 *
 * The samples of a pair alternate in random order, so that a busy machine slows down both sides
 * alike. The run also adds a few milliseconds to the times of one side of each pair, as a leak
 * would, and must detect this delay.
 *
 * Exits with 1 if a pair leaks, or if an added delay is not detected.
 */

import { countOption, readOptions, seedOption } from "../../scripts/support/arguments.ts";
import { type Chance, chanceFromSeed } from "../../scripts/support/chance.ts";
import { PASSWORD, type ServerProcess, startReadyServer } from "../support/server_process.ts";

const T_MAX = 4.5;

/** The added delay that the run must detect, in milliseconds. */
const INJECTED_MS = 20;

const { samples, seed } = readOptions({
  samples: countOption("the number of samples of each side of a pair", 300),
  seed: seedOption(),
});

interface Pair {
  readonly name: string;
  /**
   * The functions that send the requests for the two sides of a pair. Each call uses a different
   * name.
   */
  readonly sides: readonly [(index: number) => Sent, (index: number) => Sent];
}

interface Sent {
  readonly path: string;
  readonly body: object;
}

const signUp = (user: string): Sent => ({ path: "signup", body: { user, password: PASSWORD } });
const link = (user: string): Sent => ({ path: "reset_link", body: { user } });
const logIn = (user: string): Sent => ({ path: "login", body: { user, password: "wrong" } });

const PAIRS: readonly Pair[] = [
  {
    name: "sign-up by a free and by a taken name",
    sides: [(index) => signUp(`free_${index}`), (index) => signUp(`known_${index}`)],
  },
  {
    name: "link for a known and for an unknown user",
    sides: [(index) => link(`known_${index}`), (index) => link(`unknown_${index}`)],
  },
  {
    name: "login of a known and of an unknown user",
    sides: [(index) => logIn(`known_${index}`), (index) => logIn(`unknown_${index}`)],
  },
];

await using server = await startReadyServer({
  config: {
    limits: { signups_per_hour: 0, auth_requests_per_sec_per_ip: 0 },
    auth: {
      signup: "open",
      password_reset: true,
      // No program listens at this address, so notices are lost.
      notice_url: "http://127.0.0.1:9/notices",
    },
  },
});
await createUsers(server);
const chance = chanceFromSeed(seed);
process.stdout.write(`account_times: ${samples} samples per side, seed ${seed}\n`);
let faultCount = 0;
for (const pair of PAIRS) {
  const [left, right] = await timesOf(pair, chance);
  const t = welch(left, right);
  const isLeak = Math.abs(t) >= T_MAX;
  const delayed = right.map((ms) => ms + INJECTED_MS);
  const isDetected = Math.abs(welch(left, delayed)) >= T_MAX;
  if (isLeak || !isDetected) faultCount += 1;
  const medians = [left, right].map((side) => `${medianOf(side).toFixed(2)} ms`).join(" and ");
  process.stdout.write(
    `${pair.name}: ${medians}, t = ${t.toFixed(2)}${isLeak ? ", LEAK" : ""}; ` +
      `a delay of ${INJECTED_MS} ms is ${isDetected ? "detected" : "NOT DETECTED"}\n`,
  );
}
process.stdout.write(faultCount === 0 ? "as expected\n" : `${faultCount} faults\n`);
process.exitCode = faultCount === 0 ? 0 : 1;

/** Creates a user for each sample, because failed logins lock a name. */
async function createUsers(target: ServerProcess): Promise<void> {
  const batch = 20;
  for (let from = 0; from < samples; from += batch) {
    const texts = Array.from({ length: Math.min(batch, samples - from) }, (_, index) => {
      const user = `known_${from + index}`;
      return `CREATE USER ${user} WITH PASSWORD '${PASSWORD}' EMAIL '${user}@example.com'`;
    });
    await target.rows(texts.join("; "));
  }
}

async function timesOf({ sides }: Pair, order: Chance): Promise<[number[], number[]]> {
  const times: [number[], number[]] = [[], []];
  for (let index = 0; index < samples; index += 1) {
    const first = order.below(2);
    for (const side of first === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const { body, path } = sides[side](index);
      const startMs = performance.now();
      const answer = await server.post(`/v1/api/auth/${path}`, body);
      await answer.arrayBuffer();
      times[side].push(performance.now() - startMs);
    }
  }
  return times;
}

/**
 * Returns Welch's t statistic for two samples: the difference of their means in units of its
 * standard error.
 */
function welch(left: readonly number[], right: readonly number[]): number {
  const error = Math.sqrt(varianceOf(left) / left.length + varianceOf(right) / right.length);
  return (meanOf(left) - meanOf(right)) / error;
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function varianceOf(values: readonly number[]): number {
  const mean = meanOf(values);
  return values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? 0;
}
