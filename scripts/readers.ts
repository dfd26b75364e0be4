/**
 * Fails the reader threads of the real server again and again while clients read and write, and
 * checks that each failure ends one statement and harms nothing else.
 *
 *     bun scripts/readers.ts [--seconds 60] [--rows 150000] [--seed <n>]
 *     bun scripts/readers.ts --plant pinned|gone|hung|lost|unanswered|files
 *
 * A reader ends by itself, throws, throws while it has no statement, is refused memory, or goes on
 * for ever: at its plan, its tables, its rows or a question. Meanwhile three clients send analytic
 * queries whose answers prove themselves, and two send transactions. The following count as faults:
 * a wrong answer; a refusal with another code than those of a failed reader or a limit; more failed
 * statements than failed readers; an acknowledged write that is not there; the end of the server.
 * Afterwards every reader can be used, no file of a replaced segment and no temporary file is left,
 * and memory and threads are as before; anything else is a fault, too. Exits with 1 if there is any
 * fault. With `--plant` the server has a fault of its own, and the exit is 0 only if it is found.
 */
import { PLANTS } from "./readers/faults.ts";
import { failReaders } from "./readers/run.ts";
import { readOptions } from "./support/arguments.ts";

const options = readOptions(["seconds", "rows", "seed", "plant"], []);
const plant = options.text("plant");
if (plant !== undefined && !Object.hasOwn(PLANTS, plant)) {
  process.stderr.write(`Cannot plant "${plant}": there are ${Object.keys(PLANTS).join(", ")}\n`);
  process.exit(2);
}
const seconds = options.count("seconds", 60);
const seed = options.count("seed", Date.now() % 1_000_000);
process.stdout.write(`readers: ${seconds} s, seed ${seed}\n`);
const report = await failReaders({
  seconds,
  seed,
  plant,
  rowCount: options.count("rows", 150_000),
});
const { answered, failed, faults, findings, written } = report;
const kinds = [...faults].map(([kind, count]) => `${count} × ${kind}`).join(", ");
process.stdout.write(
  `${answered} answers proved right, ${failed} statements failed, ${written} transactions; ${kinds}\n`,
);
for (const finding of findings) process.stdout.write(`  ${finding}\n`);
if (plant === undefined) {
  process.exit(findings.length === 0 ? 0 : 1);
}
process.stdout.write(`planted ${plant}: ${findings.length > 0 ? "found" : "NOT FOUND"}\n`);
process.exit(findings.length > 0 ? 0 : 1);
