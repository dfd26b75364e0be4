/**
 * Determines from the output of `bun test` which tests failed, in which files, and how many tests
 * passed.
 */
import { beginsSummary, fileIn, withoutColours } from "./runner_output.ts";

/**
 * Matches the output line of a failed test. It begins with a symbol if the runner uses colours.
 */
const FAILED = /^(?:\(fail\)|✗)\s+(.*?)(?: \[[\d.]+m?s\])?$/;

/**
 * Matches the line that announces an error outside any test, such as a request that failed after
 * its test had ended.
 */
const ERROR = /^# Unhandled error between tests$/;

/** Matches a line of the runner's summary that contains a count. */
const FIGURE = /^ *(\d+) (pass|fail|errors?)$/;

export class FailedTests {
  passCount = 0;
  failCount = 0;
  #errorCount = 0;
  #listedCount = 0;
  readonly #names = new Map<string, string[]>();
  #file: string | undefined;
  #isSummary = false;

  /**
   * Reads the output of the test runner line by line.
   * @param line A line of the runner's output, coloured or not.
   */
  read(line: string): void {
    const text = withoutColours(line);
    this.#file = fileIn(text) ?? this.#file;
    if (beginsSummary(text, "failed")) this.#isSummary = true;
    const [, figure, kind] = FIGURE.exec(text) ?? [];
    if (kind === "pass") this.passCount = Number(figure);
    else if (kind === "fail") this.failCount = Number(figure);
    else if (kind !== undefined) this.#errorCount = Number(figure);
    const name = ERROR.test(text) ? "an error between tests" : FAILED.exec(text)?.[1];
    if (name === undefined || this.#isSummary || this.#file === undefined) return;
    const names = this.#names.get(this.#file) ?? [];
    this.#names.set(this.#file, [...names, name]);
    this.#listedCount += 1;
  }

  /** The names of the failed tests, keyed by file. */
  get byFile(): ReadonlyMap<string, readonly string[]> {
    return this.#names;
  }

  /** Whether every failure in the output was attributed to a file. */
  get isComplete(): boolean {
    return this.#listedCount > 0 && this.#listedCount === this.failCount + this.#errorCount;
  }
}
