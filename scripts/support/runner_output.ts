/** The lines that `bun test` writes, coloured or not. */

/** Matches the colours that the test runner writes to a terminal. */
// oxlint-disable-next-line no-control-regex
const COLOURS = /\x1b\[[0-9;]*m/g;

export function withoutColours(line: string): string {
  return line.replace(COLOURS, "");
}

/** Returns the file whose tests follow a line, if the line names a file. */
export function fileIn(text: string): string | undefined {
  return /^(\S+_test\.tsx?):$/.exec(text)?.[1];
}

/** Whether the lines after this one repeat the tests of one kind, without their files. */
export function beginsSummary(text: string, kind: "failed" | "skipped"): boolean {
  return new RegExp(`^\\d+ tests? ${kind}:$`).test(text);
}
