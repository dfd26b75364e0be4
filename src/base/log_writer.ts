/**
 * Writes the log: one line an event, to the console and to files that are kept small.
 *
 *     <logs_path>/tidemark.log      being written
 *     <logs_path>/tidemark.log.1    the one before, up to .<filesMax - 1>
 *
 * Lines are buffered for a moment and written together; `flush` writes what waits. A log that cannot
 * be written says so once on the console and never stops the server.
 */
import { appendFileSync, existsSync, mkdirSync, renameSync, rmSync, statSync } from "node:fs";
import type { Clock } from "./clock.ts";
import type { Log, LogFields, LogLevel } from "./log.ts";

export interface LogWriterOptions {
  readonly clock: Clock;
  readonly level: LogLevel;
  readonly format: "compact" | "pretty" | "json";
  readonly toConsole: boolean;
  /** Directory; made if missing. */
  readonly path: string;
  readonly fileBytesMax: number;
  readonly filesMax: number;
}

const RANKS: Readonly<Record<LogLevel, number>> = {
  error: 0,
  warn: 1,
  info: 2,
  debug: 3,
  trace: 4,
};

/** How long a line may wait for others. */
const FLUSH_MS = 200;

const FILE_NAME = "tidemark.log";

export class LogWriter implements Log {
  readonly #options: LogWriterOptions;
  readonly #file: string;
  readonly #rankMax: number;
  #waiting: string[] = [];
  #isScheduled = false;
  #isBroken = false;

  constructor(options: LogWriterOptions) {
    this.#options = options;
    this.#file = `${options.path}/${FILE_NAME}`;
    this.#rankMax = RANKS[options.level];
    this.#attempt(() => mkdirSync(options.path, { recursive: true }));
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

  /** Writes every line that waits. */
  flush(): void {
    const lines = this.#waiting;
    this.#waiting = [];
    this.#isScheduled = false;
    if (lines.length === 0 || this.#isBroken) return;
    this.#attempt(() => {
      this.#rotate();
      appendFileSync(this.#file, lines.join(""), { mode: 0o600 });
    });
  }

  #write(level: LogLevel, message: string, fields: LogFields = {}): void {
    if (RANKS[level] > this.#rankMax) return;
    const { clock, format, toConsole } = this.#options;
    const time = new Date(clock.nowMs()).toISOString();
    const line =
      format === "json"
        ? jsonLine(time, level, message, fields)
        : textLine(time, level, message, fields);
    if (toConsole) process.stderr.write(line);
    this.#waiting.push(line);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    clock.after(FLUSH_MS, () => this.flush());
  }

  #rotate(): void {
    const { fileBytesMax, filesMax } = this.#options;
    if (!existsSync(this.#file) || statSync(this.#file).size < fileBytesMax) return;
    rmSync(`${this.#file}.${filesMax - 1}`, { force: true });
    for (let number = filesMax - 2; number >= 1; number -= 1) {
      const from = `${this.#file}.${number}`;
      if (existsSync(from)) renameSync(from, `${this.#file}.${number + 1}`);
    }
    if (filesMax > 1) renameSync(this.#file, `${this.#file}.1`);
    else rmSync(this.#file);
  }

  #attempt(action: () => void): void {
    try {
      action();
    } catch (error) {
      // The server is worth more than its log: say it once and go on without files.
      this.#isBroken = true;
      process.stderr.write(`Cannot write the log in ${this.#options.path}: ${String(error)}\n`);
    }
  }
}

function textLine(time: string, level: LogLevel, message: string, fields: LogFields): string {
  let line = `${time} ${level.toUpperCase().padEnd(5)} ${oneLine(message)}`;
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) line += ` ${name}=${fieldText(value)}`;
  }
  return `${line}\n`;
}

function fieldText(value: string | number | boolean): string {
  if (typeof value !== "string") return String(value);
  return /^[\w./:@-]+$/.test(value) ? value : JSON.stringify(value);
}

/** A message never breaks its line, whatever a client put into it. */
function oneLine(message: string): string {
  return message.replaceAll(/[\r\n\u2028\u2029]/g, " ");
}

function jsonLine(time: string, level: LogLevel, message: string, fields: LogFields): string {
  return `${JSON.stringify({ time, level, message, ...fields })}\n`;
}
