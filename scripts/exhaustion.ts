/**
 * Sends the real server statements that ask for more than it has, while one ordinary client goes on
 * working.
 *
 *     bun scripts/exhaustion.ts [--only lists,nesting,literals,patterns,products,sorts,makers,grammar]
 *                               [--seconds 5] [--statement-seconds 30] [--rows 10000000]
 *                               [--p99 250]
 *     bun scripts/exhaustion.ts --only grammar [--from 64] [--factor 2] [--like <title>]
 *                               [--seconds 0] [--seed <n>] [--p99 100] [--wait 250]
 *                               [--memory 200] [--plant hold|memory]
 *
 * Each kind gets a new server whose statements may hold 64 MiB. A victim in a process of its own
 * inserts, reads by key and follows its own rows a hundred times a second. The statements of the
 * kind are sent one after the other for --seconds, each at least once, and each may take
 * --statement-seconds. The following count as faults: a wrong answer; a failure that is not a clear
 * refusal; the server ends; the victim is refused or gets no answer; the victim's 99th percentile
 * is above --p99 ms; memory grows by more than the budget plus 200 MB. Exits with 1 if there is any
 * fault.
 *
 * `grammar` repeats each construct of the grammar --from times in one text, then --factor times as
 * often, and so on, until the text is refused or reaches the length limit. An ordinary user sends
 * the text, and an administrator sends it again behind EXPLAIN. --seed decides the order of the
 * constructs; all of them run, or as many as --seconds allow. A read by key runs beside each text.
 * Further faults are: a read waits for more than --wait ms; a text exceeds its time limit; memory
 * grows by more than the budget plus --memory MiB. --plant starts a server with a planted fault: it
 * stops for half a second now and then, or its memory grows without end. Such a run exits with 0 if
 * it finds the fault.
 */
import { ATTACK_NAMES, isAttack } from "./exhaustion/attacks.ts";
import { multiplyGrammar } from "./exhaustion/multiply.ts";
import { type ExhaustionReport, runAttack } from "./exhaustion/run.ts";
import { readOptions } from "./support/arguments.ts";

/** How each planted fault shows in the report once it is found. */
const FOUND_AS: ReadonlyMap<string, string> = new Map([
  ["hold", "a read waited"],
  ["memory", "memory grew"],
]);

const options = readOptions(
  "only seconds statement-seconds rows p99 from factor like seed wait memory plant".split(" "),
  [],
);
const seconds = options.count("seconds", 5);
const statementSeconds = options.count("statement-seconds", 30);
const rowCount = options.count("rows", 10_000_000);
const p99MsMax = options.count("p99", 250);
const names = (options.text("only") ?? [...ATTACK_NAMES, "grammar"].join(",")).split(",");

process.stdout.write(`exhaustion: ${names.join(", ")}; ${rowCount} rows to sort\n`);
let heldCount = 0;
for (const name of names) {
  if (name === "grammar") {
    heldCount += await multiplied();
    continue;
  }
  if (!isAttack(name)) {
    process.stderr.write(`Cannot run "${name}": there are ${ATTACK_NAMES.join(", ")}, grammar\n`);
    process.exit(2);
  }
  const report = await runAttack({ name, seconds, statementSeconds, rowCount, p99MsMax });
  print(name, report);
  heldCount += report.held.length;
}
process.stdout.write(heldCount === 0 ? "unharmed\n" : `HARMED: ${heldCount} findings\n`);
process.exit(heldCount === 0 ? 0 : 1);

/** Returns the number of faults; with a planted fault, 0 if it was found. */
async function multiplied(): Promise<number> {
  const plant = options.text("plant");
  const sign = plant === undefined ? undefined : FOUND_AS.get(plant);
  if (plant !== undefined && sign === undefined) {
    process.stderr.write(`Cannot plant "${plant}": there are ${[...FOUND_AS.keys()].join(", ")}\n`);
    process.exit(2);
  }
  const held = await multiplyGrammar({
    from: options.count("from", 64),
    factor: options.count("factor", 2),
    like: options.text("like") ?? "",
    seconds: options.count("seconds", 0),
    seed: options.count("seed", Math.trunc(Math.random() * 1e9)),
    waitMsMax: options.count("wait", 250),
    p99MsMax: options.count("p99", 100),
    memoryBytesMax: options.count("memory", 200) * 2 ** 20,
    plant,
  });
  if (sign === undefined) return held.length;
  const isFound = held.some((finding) => finding.includes(sign));
  process.stdout.write(`the planted fault was ${isFound ? "found" : "not found"}\n`);
  return isFound ? 0 : 1;
}

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
