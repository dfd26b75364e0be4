/** Defines the exit codes and the terminal output that the program's commands share. */
import type { Clock } from "./clock.ts";
import { reasonOfCode } from "./disk_reasons.ts";
import { CorruptionError, DatabaseError, DiskError, UnreadableError } from "./errors.ts";

export const EXIT_DONE = 0;
export const EXIT_START_FAILED = 1;
/** The exit code of a command that found damage in the data that it checked or restored. */
export const EXIT_DAMAGED = 1;
export const EXIT_MISUSE = 2;
export const EXIT_FATAL = 70;

/** The name of the program when it runs as a single executable. */
export const PROGRAM_NAME = "tidemark";

/** Receives the lines that a command prints. */
export interface CommandOutput {
  /**
   * The name of the program in the printed lines; defaults to the name of the single executable.
   */
  readonly program?: string;
  /** Prints a line that belongs to the result of the command. */
  readonly say: (line: string) => void;
  /**
   * Prints a line about the command's work, such as its progress or the reason why it was not
   * done.
   */
  readonly tell: (line: string) => void;
}

/** The interval at which a long-running command reports its progress, in milliseconds. */
const PROGRESS_MS = 3000;

/** Decides when a long-running command reports its progress. */
export class ProgressClock {
  readonly #clock: Clock;
  #toldMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#toldMs = clock.monotonicMs();
  }

  /** Returns whether a progress report is due. */
  isDue(): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#toldMs < PROGRESS_MS) return false;
    this.#toldMs = nowMs;
    return true;
  }
}

/** Returns whether a command's arguments ask for help. */
export function isHelpAsked(args: readonly string[]): boolean {
  return args.some((arg) => arg === "--help" || arg === "-h");
}

/** Reports that a command's arguments are invalid. @returns The exit code. */
export function refuseUse(
  { tell }: CommandOutput,
  { command, problem, usage }: { command: string; problem: string; usage: string },
): number {
  tell(`Cannot ${command}: ${problem}\n${usage}`);
  return EXIT_MISUSE;
}

/**
 * Returns the message of an error, followed by an explanation and a remedy if they are known.
 *
 * @param program The name of the program in suggested commands.
 */
export function textWithHint(error: Error, program: string = PROGRAM_NAME): string {
  const hint = hintOf(error, program);
  return hint === undefined ? error.message : `${error.message}; ${hint}`;
}

function hintOf(error: Error, program: string): string | undefined {
  if (error instanceof DatabaseError) return error.hint;
  if (error instanceof DiskError) return reasonOfCode(error.code);
  // Bytes that the disk cannot deliver may still be intact, so the reason that the disk gives
  // comes first.
  const reason = error instanceof UnreadableError ? reasonOfCode(error.code) : undefined;
  if (reason !== undefined || !(error instanceof CorruptionError)) return reason;
  return `${program} verify lists the damage, and ${program} repair shows what can be repaired`;
}

export function megabytes(byteCount: number): string {
  return `${(byteCount / 1e6).toFixed(1)} MB`;
}

/** Returns a path without trailing slashes, for messages that append to it. */
export function withoutTrailingSlashes(path: string): string {
  return path.replace(/(?<=.)\/+$/, "");
}
