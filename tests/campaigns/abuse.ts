/**
 * Abuses the real server in every way that sockets permit, while one ordinary client goes on
 * working.
 *
 * For each kind of abuse, a new server is started with default limits, except for the limits per
 * address, which would refuse the entire script. In the meantime, a victim in its own process
 * inserts rows, reads by key and follows its own rows a hundred times a second. The following
 * count as faults: the server exits; the victim is refused or gets no response; the victim's 99th
 * percentile is above --p99 ms; memory grows by more than a full send queue for each socket plus
 * 200 MB. For sockets that send unfinished bodies or messages, the memory limit is not based on
 * send queues, but on the number of unfinished bytes that the server accepts from a single
 * address.
 *
 * Exits with 1 if there is any fault. The script uses only the loopback interface, and stops by
 * itself.
 */

import { countOption, readOptions, seedOption, someOf } from "../../scripts/support/arguments.ts";
import { ABUSE_NAMES } from "./abuse/abuses.ts";
import { type AbuseReport, runAbuse } from "./abuse/run.ts";

const {
  only: names,
  seconds,
  sockets: socketCount,
  messages: messageCount,
  p99: p99MsMax,
  seed,
} = readOptions({
  only: someOf(ABUSE_NAMES, "the kinds of abuse"),
  seconds: countOption("the duration of each kind of abuse that does not end by itself", 10),
  sockets: countOption("the number of sockets at a time", 1000),
  messages: countOption("the number of messages of each kind of abuse that sends many", 100_000),
  p99: countOption("the limit for the victim's 99th percentile in ms", 250),
  seed: seedOption(),
});

process.stdout.write(`abuse: ${names.join(", ")}; ${socketCount} sockets, seed ${seed}\n`);
let heldCount = 0;
for (const name of names) {
  const report = await runAbuse({
    name,
    seconds,
    socketCount,
    messageCount,
    p99MsMax,
    seed,
  });
  print(name, report);
  heldCount += report.held.length;
}
process.stdout.write(heldCount === 0 ? "unharmed\n" : `HARMED: ${heldCount} findings\n`);
process.exit(heldCount === 0 ? 0 : 1);

function print(name: string, { victim, done, memory, held }: AbuseReport): void {
  const work = Object.entries(victim.p99Ms).map(([kind, ms]) => `${kind} ${ms.toFixed(1)}`);
  process.stdout.write(
    `${name}: ${done}; victim ${victim.answers} answers, ${victim.errors.length} errors, p99 ms: ` +
      `${work.join(", ")}; memory ${memory.beforeMiB} → ${memory.peakMiB} MiB\n`,
  );
  for (const finding of held) process.stdout.write(`  ${finding}\n`);
}
