/**
 * When a request is sent again, and after how long: what passes by itself, of what may be done
 * twice. A read may; anything else only when it carries a key, by which the server knows it again.
 */
import type { ClientEnvironment } from "./environment.ts";
import { ConnectionError, ServerError } from "./errors.ts";

/** "500ms", "10s" or "2m". */
export type Duration = `${number}${"ms" | "s" | "m"}`;

const MS_PER_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

/**
 * Too many requests; a proxy that reaches no server or gets no answer in time; a server not ready.
 */
const PASSING_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

const RETRY_MS_MIN = 200;
const RETRY_MS_MAX = 30_000;

export interface RepeatRules {
  readonly environment: Pick<ClientEnvironment, "after" | "random">;
  /** How often a request is sent again at most. */
  readonly maxRetries: number;
  /** Ends the wait before the next time. */
  readonly signal: AbortSignal | undefined;
}

/** Sends, and sends again as long as it fails for what passes by itself. */
export async function withRepeats<T>(send: () => Promise<T>, rules: RepeatRules): Promise<T> {
  for (let failureCount = 0; ; failureCount += 1) {
    try {
      return await send();
    } catch (error) {
      if (failureCount >= rules.maxRetries || !isPassing(error)) throw error;
      const toldSeconds = error instanceof ServerError ? error.retryAfterSeconds : undefined;
      const delayMs =
        toldSeconds === undefined ? backoffMs(rules.environment, failureCount) : toldSeconds * 1000;
      await pause(delayMs, rules);
    }
  }
}

/** Half of it by chance: after a restart of the server not everybody comes at once. */
export function backoffMs(
  { random }: Pick<ClientEnvironment, "random">,
  failureCount: number,
): number {
  const ceiling = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** failureCount);
  return ceiling * (0.5 + random() / 2);
}

/** Before a statement. One that holds another stays, and is no query: its end takes counting. */
const COMMENTS = /^(?:\s|--[^\n]*\n|\/\*[^*/]*(?:(?:\*(?!\/)|\/(?!\*))[^*/]*)*\*\/)+/;

/** Whether a text is one query, and nothing else: in doubt it is not. */
export function isRead(sql: string): boolean {
  const text = sql.replace(COMMENTS, "");
  const isQuery = /^(?:with|select|values|table|show|describe|desc)\b/i.test(text);
  if (!isQuery || /;\s*[^\s;]/.test(text)) return false;
  return !/^with\b/i.test(text) || !/\b(?:insert|update|delete|merge)\b/i.test(text);
}

/** @throws {TypeError} */
export function msFromDuration(duration: string): number {
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(duration) ?? [];
  const ms = Number(digits) * (MS_PER_UNIT[unit] ?? Number.NaN);
  if (ms > 0) return ms;
  throw new TypeError(`Cannot use the duration "${duration}": it should be like "500ms" or "10s"`);
}

function isPassing(error: unknown): boolean {
  if (error instanceof ConnectionError) return true;
  if (!(error instanceof ServerError)) return false;
  return PASSING_STATUSES.has(error.status) || error.code === "COMMIT_UNKNOWN";
}

function pause(delayMs: number, { environment, signal }: RepeatRules): Promise<void> {
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
