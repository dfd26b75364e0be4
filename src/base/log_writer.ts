/**
 * Writes the log to the console and to files (`log_files.ts`). An event looks like this:
 *
 *     compact   <time> <LEVEL> <message> <field>=<value>…
 *     json      {"time":…,"level":…,"message":…,<field>:<value>…}
 *     pretty    as compact, with each field on a line of its own, indented
 *
 * Line breaks in a message or field are escaped, so text from a client can never begin a line.
 *
 * Lines are buffered for a moment and written together; `flush` writes the buffer immediately. A
 * failure to write the files is reported on the console and never stops the server. Once writing
 * succeeds again, a line states how many lines are missing.
 */
import type { Clock } from "./clock.ts";
import { timeText } from "./clock.ts";
import type { Log, LogFields, LogLevel } from "./log.ts";
import { LogFiles, type LogLoss } from "./log_files.ts";

export interface LogWriterOptions {
  readonly clock: Clock;
  readonly level: LogLevel;
  readonly format: "compact" | "pretty" | "json";
  readonly toConsole: boolean;
  /** The directory for the log files. It is created if it does not exist. */
  readonly path: string;
  readonly fileBytesMax: number;
  readonly filesMax: number;
  /** Writes text to the console; defaults to the console of this process. */
  readonly tell?: (text: string) => void;
}

const RANKS: Readonly<Record<LogLevel, number>> = {
  error: 0,
  warn: 1,
  info: 2,
  debug: 3,
  trace: 4,
};

/**
 * The maximum time that a log line waits for further lines before it is written, in milliseconds.
 */
const FLUSH_MS = 200;

/** The indentation that aligns fields with the message, which follows the time and the level. */
const FIELD_MARGIN = `\n${" ".repeat("2026-01-01T00:00:00.000Z ERROR ".length)}`;

export class LogWriter implements Log {
  readonly #options: LogWriterOptions;
  readonly #tell: (text: string) => void;
  #level: LogLevel;
  readonly #files: LogFiles;
  #waiting: string[] = [];
  #isScheduled = false;

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#tell = options.tell ?? ((text) => void process.stderr.write(text));
    this.#level = options.level;
    this.#files = new LogFiles({
      ...options,
      lineOf: (loss) => this.#lineOfLoss(loss),
      onFailing: (error) => this.#tellFailure(error),
    });
  }

  /** The current log level. Less urgent lines are discarded. */
  get level(): LogLevel {
    return this.#level;
  }

  set level(level: LogLevel) {
    this.#level = level;
  }

  error(message: string, fields?: LogFields): void {
    this.#write("error", message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#write("warn", message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#write("info", message, fields);
  }

  debug(message: string, fields?: LogFields): void {
    this.#write("debug", message, fields);
  }

  /**
   * Writes the pending lines to a new file with the usual name, after an operator has renamed the
   * old one. Files are opened for each write, so later lines follow to the new file.
   */
  reopen(): void {
    this.flush();
    this.#files.retry();
  }

  /**
   * Writes all buffered lines. It tries to do so even if the last attempt to write the files
   * failed.
   */
  flush(): void {
    this.#files.appendLast(this.#takeWaiting());
  }

  #takeWaiting(): readonly string[] {
    const lines = this.#waiting;
    this.#waiting = [];
    this.#isScheduled = false;
    return lines;
  }

  #write(level: LogLevel, message: string, fields: LogFields = {}): void {
    if (RANKS[level] > RANKS[this.#level]) return;
    const line = this.#lineFrom(level, message, fields);
    if (this.#options.toConsole) this.#tell(line);
    this.#waiting.push(line);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#options.clock.after(FLUSH_MS, () => {
      const lines = this.#takeWaiting();
      if (lines.length > 0) this.#files.append(lines);
    });
  }

  #lineFrom(level: LogLevel, message: string, fields: LogFields): string {
    const { clock, format } = this.#options;
    const time = timeText(clock.nowMs());
    if (format === "json") return jsonLine(time, level, message, fields);
    const separator = format === "pretty" ? FIELD_MARGIN : " ";
    return textLines(time, { level, message, fields, separator });
  }

  #lineOfLoss({ lineCount, sinceMs }: LogLoss): string {
    const since = timeText(sinceMs);
    return this.#lineFrom("error", "lines are missing here, because the log could not be written", {
      lines: lineCount,
      since,
    });
  }

  #tellFailure(error: unknown): void {
    const { clock, path } = this.#options;
    const reason = error instanceof Error ? error.message : String(error);
    this.#tell(
      `${timeText(clock.nowMs())} Cannot write the log in ${path}: ${reason}; lines are lost ` +
        "until writing succeeds again\n",
    );
  }
}

interface TextParts {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
  /** The text that precedes each field of a log line. */
  readonly separator: string;
}

function textLines(time: string, { fields, level, message, separator }: TextParts): string {
  let text = `${time} ${level.toUpperCase().padEnd(5)} ${oneLine(message)}`;
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) text += `${separator}${name}=${fieldText(value)}`;
  }
  return `${text}\n`;
}

function fieldText(value: string | number | boolean): string {
  if (typeof value !== "string") return String(value);
  return /^[\w./:@-]+$/.test(value) ? value : JSON.stringify(value);
}

/** Returns a message as a single line, even if it contains line breaks from a client. */
function oneLine(message: string): string {
  return message.replaceAll(/[\r\n\u2028\u2029]/g, " ");
}

function jsonLine(time: string, level: LogLevel, message: string, fields: LogFields): string {
  return `${JSON.stringify({ time, level, message, ...fields })}\n`;
}
