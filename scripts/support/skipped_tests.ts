/**
 * Determines from the output of `bun test` which tests were skipped, and why. The runner has no
 * place for the reason, so it follows a mark in the name of the skipped test or of its group.
 */

import { beginsSummary, fileIn, withoutColours } from "./runner_output.ts";

/** The mark that separates the name of a skipped test from the reason. */
export const SKIP_MARK = " // skipped: ";

/** The reason for skipping a test that takes part only in a thorough run. */
export const LEFT_TO_THOROUGH = "left to a thorough run";

const NO_REASON = "no reason given";

/**
 * Matches the beginning of the output line of a skipped test. It is a symbol if the runner uses
 * colours.
 */
const SKIPPED = /^(?:\(skip\)|»)\s/;

interface Skipped {
  count: number;
  readonly files: Set<string>;
}

/** Collects the skipped tests of a run from its output, in order. */
export class SkippedTests {
  #file = "";
  #isSummary = false;
  readonly #reasons = new Map<string, Skipped>();

  /**
   * Reads the output of the test runner line by line.
   * @param line A line of the runner's output, coloured or not.
   */
  read(line: string): void {
    const text = withoutColours(line);
    if (beginsSummary(text, "skipped")) this.#isSummary = true;
    this.#file = fileIn(text) ?? this.#file;
    if (this.#isSummary || !SKIPPED.test(text)) return;
    const [, marked = NO_REASON] = text.split(SKIP_MARK);
    // In a skipped group, the name of the group, which contains the reason, precedes the name of
    // the test.
    const reason = marked.split(" > ")[0] ?? NO_REASON;
    const entry = this.#reasons.get(reason) ?? { count: 0, files: new Set() };
    entry.count += 1;
    entry.files.add(this.#file);
    this.#reasons.set(reason, entry);
  }

  /**
   * Returns a table of the reasons for skipping, with counts and files, and the commands that run
   * the skipped tests. Returns an empty string if no test was skipped.
   */
  report(): string {
    const left = this.#reasons.get(LEFT_TO_THOROUGH);
    const missing = [...this.#reasons].filter(([reason]) => reason !== LEFT_TO_THOROUGH);
    return reportOfMissing(missing) + (left === undefined ? "" : reportOfLeft(left));
  }
}

function reportOfMissing(reasons: readonly (readonly [string, Skipped])[]): string {
  if (reasons.length === 0) return "";
  const total = reasons.reduce((sum, [, { count }]) => sum + count, 0);
  const rows = reasons.map(
    ([reason, { count, files }]) =>
      `${String(count).padStart(5)}  ${reason}\n       ${[...files].toSorted().join(" ")}\n`,
  );
  const again = [...new Set(reasons.flatMap(([, { files }]) => Array.from(files)))].join(" ");
  return (
    `\nSkipped ${counted(total)}:\n${rows.join("")}` +
    `Once nothing is missing, run them with: npm test -- ${again}\n`
  );
}

function reportOfLeft({ count, files }: Skipped): string {
  const again = [...files].toSorted().join(" ");
  return (
    `\nLeft ${counted(count)} to a thorough run. ` +
    `Run them with: npm test -- --thorough ${again}\n`
  );
}

function counted(count: number): string {
  return `${count} ${count === 1 ? "test" : "tests"}`;
}
