/**
 * Prints the description of files line by line. An error message names the file. It is not an
 * error if the program that reads the output closes the pipe.
 */
import { CorruptionError, DiskError } from "../../src/base/errors.ts";

/**
 * Prints lines. Returns the exit code, which is 1 if a file cannot be read or is damaged, and
 * otherwise 0.
 */
export function printLines(lines: Iterable<string>): number {
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

/**
 * Returns whether an error means that the reader of a pipe has closed it, as `head` does once it
 * has read enough lines.
 */
function isReaderGone(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}
