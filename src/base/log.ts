/**
 * The log, as every layer below the server sees it: a line with named fields, never a secret.
 *
 * Where lines go and how they look is decided in `main.ts`.
 */

export type LogLevel = "error" | "warn" | "info" | "debug" | "trace";

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Log {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
}

/** Drops every line; for tools and tests that look at results only. */
export const silentLog: Log = {
  error() {},
  warn() {},
  info() {},
  debug() {},
};
