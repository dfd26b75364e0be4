/**
 * Implements a log that also keeps its newest lines in memory, so that operators without shell
 * access can read them.
 */
import type { Clock } from "./clock.ts";
import type { Log, LogFields, LogLevel } from "./log.ts";

export interface LogLine {
  readonly timeMs: number;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
}

/** The number of log lines kept in memory. */
const LINES_MAX = 1000;

export class RecentLog implements Log {
  readonly #log: Log;
  readonly #clock: Clock;
  #lines: LogLine[] = [];

  /** Creates a log that keeps its newest lines in memory. @param log Also receives every line. */
  constructor(log: Log, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** The log lines in memory, oldest first. Debug lines are not kept. */
  get lines(): readonly LogLine[] {
    return this.#lines.slice(-LINES_MAX);
  }

  error(message: string, fields?: LogFields): void {
    this.#keep("error", message, fields);
    this.#log.error(message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#keep("warn", message, fields);
    this.#log.warn(message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#keep("info", message, fields);
    this.#log.info(message, fields);
  }

  debug(message: string, fields?: LogFields): void {
    this.#log.debug(message, fields);
  }

  #keep(level: LogLevel, message: string, fields: LogFields = {}): void {
    this.#lines.push({ timeMs: this.#clock.nowMs(), level, message, fields });
    // The list is trimmed only at twice the maximum number of lines, so that a new line rarely
    // requires copying all the others.
    if (this.#lines.length >= 2 * LINES_MAX) this.#lines = this.#lines.slice(-LINES_MAX);
  }
}
