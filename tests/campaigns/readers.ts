/**
 * Makes the reader threads of the real server fail again and again while clients read and write,
 * and checks that each failure ends a single statement and harms nothing else.
 *
 * A reader exits, throws, throws while it has no statement, is refused memory, or runs for ever:
 * during its plan, its tables, its rows, an evaluation or a question. In the meantime, three
 * clients send analytic queries whose results can be verified by themselves, and two clients send
 * transactions. The following count as faults: a wrong result; a refusal with any code other than
 * the codes for a failed reader or a limit; more failed statements than failed readers; a missing
 * acknowledged write; an exit of the server. Afterwards, every reader must be usable, no file of a
 * replaced segment and no temporary file may be left, and memory and threads must be back at their
 * former level; anything else is a fault, too. Exits with 1 if there is any fault. With
 * `--inject`, the server itself has a fault, and the exit code is 0 only if the fault is found.
 */

import {
  countOption,
  optionalOneOf,
  readOptions,
  seedOption,
} from "../../scripts/support/arguments.ts";
import { INJECTED_FAULTS } from "./readers/faults.ts";
import { failReaders } from "./readers/run.ts";

const {
  seconds,
  rows: rowCount,
  seed,
  inject: injected,
} = readOptions({
  seconds: countOption("how long readers are made to fail", 60),
  rows: countOption("the number of rows of the table that is read", 150_000),
  seed: seedOption(),
  inject: optionalOneOf(
    Object.keys(INJECTED_FAULTS),
    "injects a fault into the server itself, and requires that it is found",
  ),
});
process.stdout.write(`readers: ${seconds} s, seed ${seed}\n`);
const report = await failReaders({
  seconds,
  seed,
  injected,
  rowCount,
});
const { answered, failed, faults, findings, written } = report;
const kinds = [...faults].map(([kind, count]) => `${count} × ${kind}`).join(", ");
process.stdout.write(
  `${answered} correct results, ${failed} statements failed, ${written} transactions; ${kinds}\n`,
);
for (const finding of findings) process.stdout.write(`  ${finding}\n`);
if (injected === undefined) {
  process.exit(findings.length === 0 ? 0 : 1);
}
process.stdout.write(`injected ${injected}: ${findings.length > 0 ? "found" : "NOT FOUND"}\n`);
process.exit(findings.length > 0 ? 0 : 1);
