/**
 * Defines the log interface for every layer below the server. A line consists of a message and
 * named fields, and never contains a secret.
 *
 * `main.ts` decides where, and in which format, lines are written.
 */

export type LogLevel = "error" | "warn" | "info" | "debug" | "trace";

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Log {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
}

/** Discards all lines, for tools and tests that only examine results. */
export const silentLog: Log = {
  error() {},
  warn() {},
  info() {},
  debug() {},
};
