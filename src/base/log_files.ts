/**
 * Writes the log to files. The size of each file is limited, and writing resumes after a temporary
 * disk failure.
 *
 *     <path>/tidemark.log      being written
 *     <path>/tidemark.log.1    the one before, up to .<filesMax - 1>
 *
 *     writing ──a write fails──► failing: lines are counted and lost, a try every few seconds
 *        ▲                          │
 *        └──────a try succeeds──────┘  and begins with a line that says what is missing
 *
 * No function here throws, because a failure to log must not stop the server.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import type { Clock } from "./clock.ts";

/** The number of lost log lines, and the time since which lines have been lost. */
export interface LogLoss {
  readonly lineCount: number;
  /** The time since which lines have been lost, or may have been lost, in Unix milliseconds. */
  readonly sinceMs: number;
}

export interface LogFilesOptions {
  readonly clock: Clock;
  /** The directory for the log files. It is created if it does not exist. */
  readonly path: string;
  readonly fileBytesMax: number;
  readonly filesMax: number;
  /** Returns the log line that reports how many lines were lost. */
  readonly lineOf: (loss: LogLoss) => string;
  /** Called when writing begins to fail. It is not called again until a write has succeeded. */
  readonly onFailing: (error: unknown) => void;
}

const FILE_NAME = "tidemark.log";

/** The pause between two attempts while writing fails, in milliseconds. */
const RETRY_MS = 10_000;

const NEWLINE = 10;

export class LogFiles {
  readonly #options: LogFilesOptions;
  readonly #file: string;
  /** The log lines lost so far; undefined while the files can be written. */
  #loss: LogLoss | undefined;
  /** Whether the log file may end with an incomplete line that an earlier process left behind. */
  #mayBeTorn = true;
  #willRetry = false;

  constructor(options: LogFilesOptions) {
    this.#options = options;
    this.#file = `${options.path}/${FILE_NAME}`;
    this.#try([]);
  }

  /**
   * Appends lines to the log file. Each includes its line break. While writing fails, the lines
   * are only counted.
   */
  append(lines: readonly string[]): void {
    if (this.#loss === undefined) this.#try(lines);
    else this.#lose(lines.length);
  }

  /** Retries immediately if writing was failing, because its cause may have been removed. */
  retry(): void {
    if (this.#loss !== undefined) this.#try([]);
  }

  /**
   * Appends the last lines that the process logs. Unlike {@linkcode append}, it tries to write
   * them even while writing is failing.
   */
  appendLast(lines: readonly string[]): void {
    if (lines.length > 0) this.#try(lines);
  }

  #try(lines: readonly string[]): void {
    const wasFailing = this.#loss !== undefined;
    const text = Buffer.from(lines.join(""));
    let doneBytes = 0;
    try {
      // The directory is created again before each write if somebody has removed it.
      mkdirSync(this.#options.path, { recursive: true });
      this.#rotate();
      const descriptor = openSync(this.#file, "a+", 0o600);
      try {
        this.#endTornLine(descriptor);
        this.#mayBeTorn = true;
        this.#noteLoss(descriptor);
        while (doneBytes < text.length) doneBytes += writeSync(descriptor, text, doneBytes);
        this.#mayBeTorn = false;
      } finally {
        closeSync(descriptor);
      }
    } catch (error) {
      const doneCount = text.subarray(0, doneBytes).filter((byte) => byte === NEWLINE).length;
      this.#lose(lines.length - doneCount);
      if (!wasFailing) this.#options.onFailing(error);
      this.#retryLater();
    }
  }

  #endTornLine(descriptor: number): void {
    const { size } = fstatSync(descriptor);
    if (!this.#mayBeTorn || size === 0) return;
    const last = new Uint8Array(1);
    readSync(descriptor, last, 0, 1, size - 1);
    if (last[0] !== NEWLINE) writeSync(descriptor, "\n");
  }

  #noteLoss(descriptor: number): void {
    if (this.#loss === undefined) return;
    const line = Buffer.from(this.#options.lineOf(this.#loss));
    let doneBytes = 0;
    while (doneBytes < line.length) doneBytes += writeSync(descriptor, line, doneBytes);
    this.#loss = undefined;
  }

  #lose(lineCount: number): void {
    const { lineCount: before, sinceMs } = this.#loss ?? {
      lineCount: 0,
      sinceMs: this.#options.clock.nowMs(),
    };
    this.#loss = { lineCount: before + lineCount, sinceMs };
  }

  #retryLater(): void {
    if (this.#willRetry) return;
    this.#willRetry = true;
    this.#options.clock.after(RETRY_MS, () => {
      this.#willRetry = false;
      if (this.#loss !== undefined) this.#try([]);
    });
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
}
