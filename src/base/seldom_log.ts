/**
 * Lines that may come with every request for as long as something is amiss, as when the process
 * may open no more files: the log has one of each kind now and then, and how many there were.
 */
import type { Clock } from "./clock.ts";
import type { Log, LogFields } from "./log.ts";

/** The log has no two lines of one kind within this. */
const PAUSE_MS = 10_000;

interface Told {
  readonly atMs: number;
  /** Lines since that were left out. */
  omitted: number;
}

export class SeldomLog {
  readonly #log: Log;
  readonly #clock: Clock;
  /** By message, of which a program has few. */
  readonly #told = new Map<string, Told>();

  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Logs an error, or counts it for the next line with the same message. */
  error(message: string, fields: LogFields = {}): void {
    const told = this.#fieldsIfDue(message, fields);
    if (told !== undefined) this.#log.error(message, told);
  }

  /** Logs a warning, or counts it for the next line with the same message. */
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
