/**
 * What the commands of the program have in common: exit codes, and how they say things on a
 * terminal.
 */
import type { Clock } from "./clock.ts";
import { reasonOfCode } from "./disk_reasons.ts";
import { CorruptionError, DatabaseError, DiskError, UnreadableError } from "./errors.ts";

export const EXIT_DONE = 0;
export const EXIT_START_FAILED = 1;
/** Of what a command was to check, or to put back. */
export const EXIT_DAMAGED = 1;
export const EXIT_MISUSE = 2;
export const EXIT_FATAL = 70;

/** How the program is called where it is one file. */
export const PROGRAM_NAME = "tidemark";

/** Where the lines of a command go. */
export interface CommandOutput {
  /** How the program is called, as these lines name it; as one file when absent. */
  readonly program?: string;
  /** Takes a line of the result. */
  readonly say: (line: string) => void;
  /** Takes a line about the work: progress, and why it was not done. */
  readonly tell: (line: string) => void;
}

/** Work that takes longer says where it is, this often. */
const PROGRESS_MS = 3000;

/** Says when it is time to tell how far the work is. */
export class ProgressClock {
  readonly #clock: Clock;
  #toldMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#toldMs = clock.monotonicMs();
  }

  /** Whether nothing was told for a while; who asks tells something then. */
  isDue(): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#toldMs < PROGRESS_MS) return false;
    this.#toldMs = nowMs;
    return true;
  }
}

/** Whether the arguments of a command only ask how it is used. */
export function isHelpAsked(args: readonly string[]): boolean {
  return args.some((arg) => arg === "--help" || arg === "-h");
}

/** Refuses arguments. @returns The exit code. */
export function refuseUse(
  { tell }: CommandOutput,
  { command, problem, usage }: { command: string; problem: string; usage: string },
): number {
  tell(`Cannot ${command}: ${problem}\n${usage}`);
  return EXIT_MISUSE;
}

/**
 * What happened, and what it means or what can be done about it.
 *
 * @param program How its commands are called.
 */
export function textWithHint(error: Error, program: string = PROGRAM_NAME): string {
  const hint = hintOf(error, program);
  return hint === undefined ? error.message : `${error.message}; ${hint}`;
}

function hintOf(error: Error, program: string): string | undefined {
  if (error instanceof DatabaseError) return error.hint;
  if (error instanceof DiskError) return reasonOfCode(error.code);
  // Bytes that the disk does not give may be whole: what it says of them comes first.
  const reason = error instanceof UnreadableError ? reasonOfCode(error.code) : undefined;
  if (reason !== undefined || !(error instanceof CorruptionError)) return reason;
  return `${program} verify says what is damaged, ${program} repair what can be done`;
}

/** As "1 file", "2 files". */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

export function megabytes(byteCount: number): string {
  return `${(byteCount / 1e6).toFixed(1)} MB`;
}

/** A path as it is named in messages, where parts are put behind it. */
export function withoutTrailingSlashes(path: string): string {
  return path.replace(/(?<=.)\/+$/, "");
}
