/**
 * Sends requests to a login provider. They are limited in time and size, because a provider may be
 * slow, unreachable or hostile while the server has other users to serve.
 *
 * - Only https URLs, and http URLs on this machine, are requested. The certificate authenticates
 *   the host.
 * - Redirects are not followed, because they could lead anywhere.
 * - As with webhooks, a proxy named in the environment is not used.
 */
import type { Clock } from "../../base/clock.ts";
import { ignoreProxies } from "../../base/outbound_hosts.ts";
import { isPrivate } from "./oidc_settings.ts";

/** The time limit for an entire request, including its body, in milliseconds. */
const TIMEOUT_MS = 5000;

/** The maximum size of a response, in bytes. The key sets of large providers are about 20 KiB. */
const BYTES_MAX = 256 * 1024;

/** A failure of a login provider, or of the connection to it. The message contains no secrets. */
export class ProviderError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ProviderError";
  }
}

export type ProviderObject = Readonly<Record<string, unknown>>;

export interface ProviderRequest {
  readonly method: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export type ProviderFetch = (url: string, request: ProviderRequest) => Promise<ProviderObject>;

/**
 * Returns a function that requests a JSON object from a provider. It throws a {@linkcode
 * ProviderError} if the request fails.
 */
export function providerFetch(clock: Clock): ProviderFetch {
  ignoreProxies();
  return async (url, request) => {
    const target = URL.parse(url);
    if (target === null || !isPrivate(target)) {
      throw new ProviderError(`${url} must be a URL with https, or with http on this machine`);
    }
    const where = target.origin + target.pathname;
    const timeout = new AbortController();
    const cancelTimer = clock.after(TIMEOUT_MS, () => timeout.abort());
    try {
      return await requested(target, { ...request, signal: timeout.signal });
    } catch (error) {
      if (error instanceof ProviderError) throw new ProviderError(`${where} ${error.message}`);
      if (timeout.signal.aborted) {
        throw new ProviderError(`${where} did not respond within ${TIMEOUT_MS / 1000} s`);
      }
      // Any other failure comes from the network or from the TLS handshake with the provider.
      throw new ProviderError(`${where} cannot be reached: ${codeOf(error)}`);
    } finally {
      cancelTimer();
    }
  };
}

async function requested(
  target: URL,
  { body, headers = {}, method, signal }: ProviderRequest & { signal: AbortSignal },
): Promise<ProviderObject> {
  const response = await fetch(target, {
    method,
    headers: { Accept: "application/json", "User-Agent": "Tidemark", ...headers },
    redirect: "manual",
    signal,
    ...(body === undefined ? {} : { body }),
  });
  if (!response.ok) {
    const text = await boundedText(response);
    throw new ProviderError(`responded with status ${response.status}${errorCodeIn(text)}`);
  }
  const value = objectFromJson(await boundedText(response));
  if (value === undefined) throw new ProviderError("did not respond with a JSON object");
  return value;
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    // The error exits the loop over the body, which cancels the rest of the download.
    if (length > BYTES_MAX) {
      throw new ProviderError(`responded with more than ${BYTES_MAX / 1024} KiB`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** Parses `text` as a JSON object. Returns undefined if it is anything else. */
function objectFromJson(text: string): ProviderObject | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The text is not JSON. The caller reports this.
    return undefined;
  }
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? (value as ProviderObject) : undefined;
}

/** Returns the OAuth error code in a provider's error response, for use in an error message. */
function errorCodeIn(text: string): string {
  const code = objectFromJson(text)?.["error"];
  return typeof code === "string" && /^[\w.-]{1,64}$/.test(code) ? ` (${code})` : "";
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
