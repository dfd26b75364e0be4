/**
 * Sends the real server statements that exceed its resources, while an ordinary client goes on
 * working.
 *
 * Each kind of statement gets a new server, on which a statement may use 64 MiB of memory. A
 * victim in its own process inserts rows, reads by key and follows its own rows a hundred times a
 * second. The statements of the kind are sent one after another for --seconds, each at least once,
 * and each may take --statement-seconds. The following count as faults: a wrong result; a failure
 * that is not a clear refusal; an exit of the server; a refusal of the victim, or no response to
 * it; a 99th percentile of the victim's waits above --p99 ms; memory that grows by more than the
 * budget plus 200 MB. Exits with 1 if there is any fault.
 *
 * `grammar` repeats each construct of the grammar --from times in one request, then --factor times
 * as often, and so on, until the SQL is refused or reaches the length limit. An ordinary user
 * sends the SQL, and an administrator sends it again with EXPLAIN. --seed determines the order of
 * the constructs; all of them run, or as many as fit into --seconds. A client reads by key while
 * each request runs. Further faults are: a read that waits for more than --wait ms; a request that
 * exceeds its time limit; memory that grows by more than the budget plus --memory MiB. --inject
 * starts a server with an injected fault: it stops for half a second at intervals, or its memory
 * grows without end. Such a run exits with 0 if it finds the fault.
 */

import {
  countOption,
  optionalCount,
  optionalOneOf,
  readOptions,
  seedOption,
  someOf,
  textOption,
} from "../../scripts/support/arguments.ts";
import { ATTACK_NAMES } from "./exhaustion/attacks.ts";
import { multiplyGrammar } from "./exhaustion/multiply.ts";
import { type ExhaustionReport, runAttack } from "./exhaustion/run.ts";

/** For each injected fault, the text by which the report shows that the fault was found. */
const FOUND_AS = { hold: "a read waited", memory: "memory grew" } as const;

const options = readOptions({
  only: someOf([...ATTACK_NAMES, "grammar"], "the kinds of statements"),
  seconds: optionalCount(
    "how long statements of each kind are sent",
    "5; for grammar, until all are sent",
  ),
  "statement-seconds": countOption("how long a statement may take", 30),
  rows: countOption("the number of rows to sort", 10_000_000),
  p99: optionalCount("the limit for the victim's 99th percentile in ms", "250; for grammar, 100"),
  from: countOption("grammar: how often each construct is repeated at first", 64),
  factor: countOption("grammar: the factor by which each further text repeats it more often", 2),
  like: textOption(
    "<title>",
    "grammar: runs only the constructs whose title contains this text",
    "",
  ),
  seed: seedOption("grammar: decides the order of the constructs"),
  wait: countOption("grammar: how many ms a concurrent read may wait", 250),
  memory: countOption("grammar: how many MiB the memory may grow beyond the budget", 200),
  inject: optionalOneOf(
    ["hold", "memory"],
    "grammar: makes the server stop for half a second at intervals or grow, and requires that this is found",
  ),
});
const { rows: rowCount, only: names } = options;
const statementSeconds = options["statement-seconds"];

process.stdout.write(`exhaustion: ${names.join(", ")}; ${rowCount} rows to sort\n`);
let heldCount = 0;
for (const name of names) {
  if (name === "grammar") {
    heldCount += await multiplied();
    continue;
  }
  const { p99: p99MsMax = 250, seconds = 5 } = options;
  const report = await runAttack({ name, seconds, statementSeconds, rowCount, p99MsMax });
  print(name, report);
  heldCount += report.held.length;
}
process.stdout.write(heldCount === 0 ? "unharmed\n" : `HARMED: ${heldCount} findings\n`);
process.exit(heldCount === 0 ? 0 : 1);

/** Returns the number of faults. With an injected fault, returns 0 if it was found. */
async function multiplied(): Promise<number> {
  const { inject: injected } = options;
  const sign = injected === undefined ? undefined : FOUND_AS[injected];
  const held = await multiplyGrammar({
    from: options.from,
    factor: options.factor,
    like: options.like,
    seconds: options.seconds ?? 0,
    seed: options.seed,
    waitMsMax: options.wait,
    p99MsMax: options.p99 ?? 100,
    memoryBytesMax: options.memory * 2 ** 20,
    injected,
  });
  if (sign === undefined) return held.length;
  const isFound = held.some((finding) => finding.includes(sign));
  process.stdout.write(`the injected fault was ${isFound ? "found" : "not found"}\n`);
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
