/** Recognises the kinds of lines that `bun test` writes, with or without colours. */

/** Matches the colour codes that the test runner writes to a terminal. */
// oxlint-disable-next-line no-control-regex
const COLOURS = /\x1b\[[0-9;]*m/g;

export function withoutColours(line: string): string {
  return line.replace(COLOURS, "");
}

/**
 * Returns the path of a test file if the line announces the tests of this file; otherwise
 * undefined.
 */
export function fileIn(text: string): string | undefined {
  return /^(\S+_test\.tsx?):$/.exec(text)?.[1];
}

/**
 * Returns whether a line begins the summary that repeats the failed or skipped tests without their
 * files.
 */
export function beginsSummary(text: string, kind: "failed" | "skipped"): boolean {
  return new RegExp(`^\\d+ tests? ${kind}:$`).test(text);
}
