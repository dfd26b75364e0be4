/**
 * Limits log lines that would otherwise be written for every request while a fault persists, for
 * example while the process has no free file descriptor. For each message, one line per interval
 * is logged, with a count.
 */
import type { Clock } from "./clock.ts";
import type { Log, LogFields } from "./log.ts";

/** The minimum interval between two lines with the same message, in milliseconds. */
const PAUSE_MS = 10_000;

interface Told {
  readonly atMs: number;
  /** The number of lines omitted since the last line was written. */
  omitted: number;
}

export class SeldomLog {
  readonly #log: Log;
  readonly #clock: Clock;
  /** The state of each message. A program has only a few different messages. */
  readonly #told = new Map<string, Told>();

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /**
   * Logs an error, or counts it so that the next line with the same message reports the number.
   */
  error(message: string, fields: LogFields = {}): void {
    const told = this.#fieldsIfDue(message, fields);
    if (told !== undefined) this.#log.error(message, told);
  }

  /**
   * Logs a warning, or counts it so that the next line with the same message reports the number.
   */
  warn(message: string, fields: LogFields = {}): void {
    const told = this.#fieldsIfDue(message, fields);
    if (told !== undefined) this.#log.warn(message, told);
  }

  #fieldsIfDue(message: string, fields: LogFields): LogFields | undefined {
    const atMs = this.#clock.monotonicMs();
    const told = this.#told.get(message);
    if (told !== undefined && atMs - told.atMs < PAUSE_MS) {
      told.omitted += 1;
      return undefined;
    }
    this.#told.set(message, { atMs, omitted: 0 });
    const omitted = told === undefined || told.omitted === 0 ? {} : { omitted: told.omitted };
    return { ...fields, ...omitted };
  }
}
