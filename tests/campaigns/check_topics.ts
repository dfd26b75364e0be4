/**
 * Checks the guarantees of topics. Each change to a source table has one message at one offset,
 * the offsets of a partition are contiguous, and the messages of a row keep their order. A group
 * misses no message, and only unacknowledged messages are redelivered to it. An effect committed
 * together with an acknowledgement happens once.
 *
 * Writers run transactions over three tables on the real server. Six groups of one to eight
 * consumers work through four topics with filters, all operations and all payloads. Consumers
 * crash while they hold messages, sleep for longer than their claims last, and acknowledge late.
 * The server itself is stopped and killed during the run. The expected messages are computed from
 * the writers' acknowledgements alone. Exits with 1 if anything is wrong. With `--inject`, the
 * campaign damages the messages or the actions of some groups, and exits with 0 only if it reports
 * these groups and no others.
 */
import {
  countOption,
  optionalCount,
  optionalOneOf,
  readOptions,
  seedOption,
} from "../../scripts/support/arguments.ts";
import { findInjected } from "../support/find_injected.ts";
import { INJECTED_FAULTS, type InjectedFault } from "./check_topics/injected_faults.ts";
import { type CheckReport, checkTopics } from "./check_topics/run.ts";

const options = readOptions({
  changes: countOption("the number of changes that the writers make", 100_000),
  writers: countOption("the number of clients that write", 8),
  restarts: optionalCount("the number of stops and kills of the server", "one per 20,000 changes"),
  seed: seedOption(),
  inject: optionalOneOf(
    [...INJECTED_FAULTS, "all"],
    "damages a group, and requires that the damage is noticed; all injects every fault in one run",
  ),
});
const { changes, writers, seed, inject: injected } = options;
const restarts = options.restarts ?? Math.max(2, Math.round(changes / 20_000));

const startMs = Date.now();

if (injected === undefined) {
  const report = await run(seed, []);
  process.stdout.write(isSound(report) ? "sound\n" : "NOT SOUND\n");
  process.exitCode = isSound(report) ? 0 : 1;
} else {
  const all = injected === "all" ? INJECTED_FAULTS : [injected];
  await findInjected({ injected: all, seed }, async (seedOfRun, sought) => {
    const report = await run(seedOfRun, sought);
    if (!isSound(report)) throw new Error("The run found faults where none was injected");
    return report.noticed;
  });
}

/** Returns whether the groups without an injected fault are free of faults. */
function isSound({ faults }: CheckReport): boolean {
  return Object.values(faults).every((count) => count === 0);
}

/** Runs the check once, and prints its report. */
async function run(seedOfRun: number, sought: readonly InjectedFault[]): Promise<CheckReport> {
  process.stdout.write(
    `check_topics: ${changes} changes, ${writers} writers, ${restarts} restarts, ` +
      `seed ${seedOfRun}\n`,
  );
  const report = await checkTopics({
    changes,
    writers,
    restarts,
    seed: seedOfRun,
    injected: sought,
    onProgress: print,
  });
  print(report);
  for (const finding of report.findings) process.stdout.write(`  ${finding}\n`);
  return report;
}

function print(it: CheckReport): void {
  const { faults } = it;
  const seconds = ((Date.now() - startMs) / 1000).toFixed(0);
  process.stdout.write(
    `${seconds} s: ${it.written} changes written, ${it.delivered} messages delivered, ` +
      `${it.redelivered} of them again, ${it.crashes} crashes and ${it.stalls} stalls of consumers, ` +
      `${it.restarts.SIGKILL} kills and ${it.restarts.SIGTERM} stops of the server; ` +
      `lost ${faults.lost}, surplus ${faults.surplus}, out of order ${faults.outOfOrder}, ` +
      `gaps ${faults.gaps}, unstable ${faults.unstable}, divided ${faults.divided}, ` +
      `redelivered ${faults.redelivered}, early ${faults.early}, overtaken ${faults.overtaken}, ` +
      `effects ${faults.effects}\n`,
  );
}
