/**
 * Decides whether and when to resend a request. A request is resent if its failure is temporary
 * and repeating it is safe: reads are always safe, and other requests need an idempotency key,
 * which lets the server recognise them.
 */
import type { ClientEnvironment } from "./environment.ts";
import { ConnectionError, ServerError } from "./errors.ts";

/** A duration, such as "500ms", "10s" or "2m". */
export type Duration = `${number}${"ms" | "s" | "m"}`;

const MS_PER_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

/**
 * The statuses of temporary failures: too many requests, a proxy that cannot reach the server or
 * gets no response in time, and a server that is not ready.
 */
const PASSING_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

const RETRY_MS_MIN = 200;
const RETRY_MS_MAX = 30_000;

export interface RepeatRules {
  readonly environment: Pick<ClientEnvironment, "after" | "random">;
  /** The maximum number of times that a request is resent. */
  readonly maxRetries: number;
  /** The signal that lets the caller end the wait before the next attempt. */
  readonly signal: AbortSignal | undefined;
  /** Called after each failed attempt to send a request. */
  readonly onFailure?: (() => void) | undefined;
}

/**
 * Sends a request, and resends it as long as it fails for a temporary reason and retries remain.
 */
export async function withRepeats<T>(send: () => Promise<T>, rules: RepeatRules): Promise<T> {
  for (let failureCount = 0; ; failureCount += 1) {
    try {
      return await send();
    } catch (error) {
      rules.onFailure?.();
      if (failureCount >= rules.maxRetries || !isPassing(error)) throw error;
      const toldSeconds = error instanceof ServerError ? error.retryAfterSeconds : undefined;
      const delayMs =
        toldSeconds === undefined ? backoffMs(rules.environment, failureCount) : toldSeconds * 1000;
      await pause(delayMs, rules);
    }
  }
}

/**
 * Returns the delay before the next attempt, in milliseconds. Half of the delay is random, so that
 * clients do not all reconnect at once after a restart.
 */
export function backoffMs(
  { random }: Pick<ClientEnvironment, "random">,
  failureCount: number,
): number {
  const ceiling = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** failureCount);
  return ceiling * (0.5 + random() / 2);
}

const CONFLICT_MS_MIN = 10;
const CONFLICT_MS_MAX = 2000;

/**
 * Returns the pause before a transaction is retried, in milliseconds. Half of the pause is random,
 * so that conflicting transactions do not collide again.
 */
export function conflictPauseMs(
  { random }: Pick<ClientEnvironment, "random">,
  conflictCount: number,
): number {
  const ceiling = Math.min(CONFLICT_MS_MAX, CONFLICT_MS_MIN * 2 ** conflictCount);
  return ceiling * (0.5 + random() / 2);
}

/**
 * Matches whitespace and comments before a statement. It does not match nested comments, because
 * finding the end of one requires counting. SQL that begins with a nested comment is therefore not
 * treated as a read.
 */
const COMMENTS = /^(?:\s|--[^\n]*\n|\/\*[^*/]*(?:(?:\*(?!\/)|\/(?!\*))[^*/]*)*\*\/)+/;

/** Returns whether `sql` is a single query and nothing else. Returns false if in doubt. */
export function isRead(sql: string): boolean {
  const text = sql.replace(COMMENTS, "");
  const isQuery = /^(?:with|select|values|table|show|describe|desc)\b/i.test(text);
  if (!isQuery || /;\s*[^\s;]/.test(text)) return false;
  return !/^with\b/i.test(text) || !/\b(?:insert|update|delete|merge)\b/i.test(text);
}

/** Converts a duration to milliseconds. @throws {TypeError} */
export function msFromDuration(duration: string): number {
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(duration) ?? [];
  const ms = Number(digits) * (MS_PER_UNIT[unit] ?? Number.NaN);
  if (ms > 0) return ms;
  throw new TypeError(
    `Cannot use the duration "${duration}": it must have a form such as "500ms" or "10s"`,
  );
}

export function isPassing(error: unknown): boolean {
  if (error instanceof ConnectionError) return true;
  if (!(error instanceof ServerError)) return false;
  return PASSING_STATUSES.has(error.status) || error.code === "COMMIT_UNKNOWN";
}

/**
 * Waits for a delay. The caller's signal can end the wait early. @throws The reason of the signal.
 */
export function pause(delayMs: number, { environment, signal }: RepeatRules): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = environment.after(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    if (signal?.aborted === true) onAbort();
    else signal?.addEventListener("abort", onAbort, { once: true });
  });
}
