/**
 * How a tool prints files: line by line, with an error that names the file, and no complaint when
 * whoever reads the lines has enough of them.
 */
import { CorruptionError, DiskError } from "../../src/base/errors.ts";

/**
 * Prints lines. Returns the exit code: 0, or 1 if a file cannot be read or is damaged, or 2.
 *
 * @param linesOf Undefined when the arguments are wrong: then the usage is shown.
 */
export function runDump(
  usage: string,
  argv: readonly string[],
  linesOf: (argv: readonly string[]) => Iterable<string> | undefined,
): number {
  if (argv[0] === "--help" || argv[0] === "-h") {
    process.stdout.write(`${usage}\n`);
    return 0;
  }
  const lines = linesOf(argv);
  if (lines === undefined) {
    process.stderr.write(`${usage}\n`);
    return 2;
  }
  try {
    for (const line of lines) process.stdout.write(`${line}\n`);
    return 0;
  } catch (error) {
    if (isReaderGone(error)) return 0;
    if (!(error instanceof CorruptionError || error instanceof DiskError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 1;
  }
}

/** `… | head` closes the pipe. */
function isReaderGone(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}
