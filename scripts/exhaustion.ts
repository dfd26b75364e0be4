/**
 * Sends the real server statements that ask for more than it has, while one ordinary client goes on
 * working.
 *
 *     bun scripts/exhaustion.ts [--only lists,nesting,literals,patterns,products,sorts,makers]
 *                               [--seconds 5] [--statement-seconds 30] [--rows 10000000]
 *                               [--p99 250]
 *
 * For each kind a new server is started whose statements may hold 64 MiB, and a victim in a process
 * of its own inserts, reads by key and follows its own rows a hundred times a second. The
 * statements of the kind are sent one after the other for --seconds, each at least once, and each
 * may take --statement-seconds. Held against the server: an answer that is wrong, a failure that is
 * not a clear refusal, that it ends, that the victim is refused or not answered, that the 99th of a
 * hundred answers takes longer than --p99 ms, and memory beyond what was there before plus the
 * budget plus 200 MB. Exits with 1 when anything is held against it.
 */
import { ATTACK_NAMES, isAttack } from "./exhaustion/attacks.ts";
import { type ExhaustionReport, runAttack } from "./exhaustion/run.ts";
import { readOptions } from "./support/arguments.ts";

const options = readOptions(["only", "seconds", "statement-seconds", "rows", "p99"], []);
const seconds = options.count("seconds", 5);
const statementSeconds = options.count("statement-seconds", 30);
const rowCount = options.count("rows", 10_000_000);
const p99MsMax = options.count("p99", 250);
const names = (options.text("only") ?? ATTACK_NAMES.join(",")).split(",");

process.stdout.write(`exhaustion: ${names.join(", ")}; ${rowCount} rows to sort\n`);
let heldCount = 0;
for (const name of names) {
  if (!isAttack(name)) {
    process.stderr.write(`Cannot run "${name}": there are ${ATTACK_NAMES.join(", ")}\n`);
    process.exit(2);
  }
  const report = await runAttack({ name, seconds, statementSeconds, rowCount, p99MsMax });
  print(name, report);
  heldCount += report.held.length;
}
process.stdout.write(heldCount === 0 ? "unharmed\n" : `HARMED: ${heldCount} findings\n`);
process.exit(heldCount === 0 ? 0 : 1);

function print(
  name: string,
  { held, memory, outcomes, victim: { answers, errors, p99Ms } }: ExhaustionReport,
): void {
  const work = Object.entries(p99Ms).map(([kind, ms]) => `${kind} ${ms.toFixed(1)}`);
  process.stdout.write(
    `${name}: victim ${answers} answers, ${errors.length} errors, p99 ms: ${work.join(", ")}; ` +
      `memory ${memory.beforeMiB} → ${memory.peakMiB} MiB\n`,
  );
  for (const { count, ended, longestMs, peakMiB, title } of outcomes) {
    const most = `${longestMs.toFixed(0)} ms and ${peakMiB} MiB at most`;
    process.stdout.write(`  ${count} × ${title}: ${ended}, ${most}\n`);
  }
  for (const finding of held) process.stdout.write(`  HELD: ${finding}\n`);
}
