/**
 * Treats the real server as badly as sockets can, while one ordinary client goes on working.
 *
 *     bun scripts/abuse.ts [--only silent,storm,next_batch,malformed,handshake,replay,reconnect,
 *                                  bodies,unfinished]
 *                          [--seconds 10] [--sockets 1000] [--messages 100000]
 *                          [--p99 250] [--seed <n>]
 *
 * Each kind of abuse gets a new server with default limits, except the limits by address, which
 * would refuse the whole script. Meanwhile a victim in a process of its own inserts, reads by key
 * and follows its own rows a hundred times a second. The following count as faults: the server
 * ends; the victim is refused or gets no answer; the victim's 99th percentile is above --p99 ms;
 * memory grows by more than a full send queue for each socket plus 200 MB. Where the sockets send
 * unfinished bodies or messages, the bytes that the server accepts of them from one address count
 * instead of the queues.
 *
 * Exits with 1 if there is any fault. It uses loopback only, and stops by itself.
 */
import { ABUSE_NAMES, isAbuse } from "./abuse/abuses.ts";
import { type AbuseReport, runAbuse } from "./abuse/run.ts";
import { readOptions } from "./support/arguments.ts";

const options = readOptions(["only", "seconds", "sockets", "messages", "p99", "seed"], []);
const seconds = options.count("seconds", 10);
const socketCount = options.count("sockets", 1000);
const messageCount = options.count("messages", 100_000);
const p99MsMax = options.count("p99", 250);
const seed = options.count("seed", Date.now() % 1_000_000);
const names = (options.text("only") ?? ABUSE_NAMES.join(",")).split(",");

process.stdout.write(`abuse: ${names.join(", ")}; ${socketCount} sockets, seed ${seed}\n`);
let heldCount = 0;
for (const name of names) {
  if (!isAbuse(name)) {
    process.stderr.write(`Cannot run "${name}": there are ${ABUSE_NAMES.join(", ")}\n`);
    process.exit(2);
  }
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
