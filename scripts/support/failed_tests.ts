/** Reads from the output of `bun test` which tests failed, in which files, and how many passed. */
import { beginsSummary, fileIn, withoutColours } from "./runner_output.ts";

/** The line of a failed test. It begins with a symbol if the runner may use colours. */
const FAILED = /^(?:\(fail\)|✗)\s+(.*?)(?: \[[\d.]+m?s\])?$/;

/** A figure of the summary. */
const FIGURE = /^ *(\d+) (pass|fail|errors?)$/;

export class FailedTests {
  passCount = 0;
  failCount = 0;
  /** The number of failures outside of tests, such as a file that cannot be loaded. */
  errorCount = 0;
  readonly #names = new Map<string, string[]>();
  #file: string | undefined;
  #isSummary = false;

  /** @param line One line of the runner's output, coloured or not. */
  read(line: string): void {
    const text = withoutColours(line);
    this.#file = fileIn(text) ?? this.#file;
    if (beginsSummary(text, "failed")) this.#isSummary = true;
    const [, figure, kind] = FIGURE.exec(text) ?? [];
    if (kind === "pass") this.passCount = Number(figure);
    else if (kind === "fail") this.failCount = Number(figure);
    else if (kind !== undefined) this.errorCount = Number(figure);
    const name = FAILED.exec(text)?.[1];
    if (name === undefined || this.#isSummary || this.#file === undefined) return;
    const names = this.#names.get(this.#file) ?? [];
    this.#names.set(this.#file, [...names, name]);
  }

  /** The files with failed tests, and the names of these tests. */
  get byFile(): ReadonlyMap<string, readonly string[]> {
    return this.#names;
  }

  /** Whether the output names the file of each failure. */
  get isComplete(): boolean {
    const listed = [...this.#names.values()].reduce((sum, { length }) => sum + length, 0);
    return this.errorCount === 0 && this.failCount > 0 && listed === this.failCount;
  }
}
