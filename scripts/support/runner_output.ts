/** Recognises the lines that `bun test` writes, coloured or not. */

/** Matches the colour codes that the test runner writes to a terminal. */
// oxlint-disable-next-line no-control-regex
const COLOURS = /\x1b\[[0-9;]*m/g;

export function withoutColours(line: string): string {
  return line.replace(COLOURS, "");
}

/** If a line names a test file whose tests follow, returns the file. */
export function fileIn(text: string): string | undefined {
  return /^(\S+_test\.tsx?):$/.exec(text)?.[1];
}

/**
 * Returns whether the lines after this one repeat the failed or skipped tests, without their
 * files.
 */
export function beginsSummary(text: string, kind: "failed" | "skipped"): boolean {
  return new RegExp(`^\\d+ tests? ${kind}:$`).test(text);
}
