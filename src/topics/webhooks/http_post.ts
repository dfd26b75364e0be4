/**
 * Sends an HTTP request to a listed host, at an address that has been checked.
 *
 * - The host name is resolved for each request, every address in the response is checked, and the
 *   connection goes to a checked address. A name that resolves differently a moment later (DNS
 *   rebinding) therefore achieves nothing. The certificate is checked against the host name.
 * - Proxies from environment variables are not used, because the proxy would then make the
 *   connection.
 * - Redirects are not followed, because they could lead to a host that is not listed.
 * - Only the status of the response is used; the body is not read.
 */
import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns/promises";
import { isIPv6 } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { hostOf, ignoreProxies, type OutboundHosts } from "../../base/outbound_hosts.ts";

/** After these errors, the host's next address is tried, because nothing has been sent. */
const UNREACHED: ReadonlySet<string> = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"]);

export interface PostRequest {
  readonly url: URL;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Ends the request early when it is aborted. */
  readonly signal: AbortSignal;
}

export type PostAnswer =
  | { readonly isDelivered: true }
  | {
      readonly isDelivered: false;
      /** The reason for the failure, as a sentence without a full stop. */
      readonly reason: string;
      /**
       * How long the receiver has asked the sender to wait before the next attempt, in
       * milliseconds.
       */
      readonly retryAfterMs?: number | undefined;
    };

export type Post = (request: PostRequest) => Promise<PostAnswer>;

export interface PostDeps {
  readonly clock: Clock;
  readonly hosts: OutboundHosts;
  /** Resolves a host name to all of its addresses. Defaults to the system's resolver. */
  readonly resolve?: (host: string) => Promise<readonly LookupAddress[]>;
}

export function posting({ clock, hosts, resolve = resolved }: PostDeps): Post {
  ignoreProxies();
  return async ({ signal, timeoutMs, ...request }) => {
    const timeout = new AbortController();
    const cancelTimer = clock.after(timeoutMs, () => timeout.abort());
    const either = AbortSignal.any([signal, timeout.signal]);
    try {
      const host = hostOf(request.url);
      const found = await orAborted(resolve(host), either);
      const refused = found.find(({ address }) => !hosts.permitsAddress(address, host));
      if (refused !== undefined) return failed(refusal(host, refused.address));
      return await postToAny(request, found, either);
    } catch (error) {
      if (timeout.signal.aborted)
        return failed(`the receiver did not respond within ${timeoutMs / 1000} s`);
      if (signal.aborted) return failed("the server is shutting down");
      // Any network or receiver failure is reported as a failed delivery.
      return failed(`the receiver cannot be reached: ${codeOf(error)}`);
    } finally {
      cancelTimer();
    }
  };
}

function refusal(host: string, address: string): string {
  return (
    `${host} has the address ${address}, which is neither public nor listed in ` +
    "security.webhook_hosts"
  );
}

function failed(reason: string, retryAfterMs?: number): PostAnswer {
  return { isDelivered: false, reason, retryAfterMs };
}

function resolved(host: string): Promise<readonly LookupAddress[]> {
  const family = isIPv6(host) ? 6 : 0;
  return lookup(host, { all: true, family, order: "ipv4first" });
}

/**
 * Waits for a name to be resolved, until the signal is aborted. The resolution itself cannot be
 * cancelled.
 */
function orAborted(
  work: Promise<readonly LookupAddress[]>,
  signal: AbortSignal,
): Promise<readonly LookupAddress[]> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(new DOMException("aborted", "AbortError"));
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

async function postToAny(
  request: Pick<PostRequest, "body" | "headers" | "url">,
  addresses: readonly LookupAddress[],
  signal: AbortSignal,
): Promise<PostAnswer> {
  let last: unknown = new Error("the host name does not resolve to an address");
  for (const { address } of addresses) {
    try {
      return await postTo(request, address, signal);
    } catch (error) {
      if (!UNREACHED.has(codeOf(error))) throw error;
      last = error;
    }
  }
  throw last;
}

async function postTo(
  { body, headers, url }: Pick<PostRequest, "body" | "headers" | "url">,
  address: string,
  signal: AbortSignal,
): Promise<PostAnswer> {
  const at = new URL(url);
  at.hostname = isIPv6(address) ? `[${address}]` : address;
  const isSecure = url.protocol === "https:";
  const response = await fetch(at, {
    method: "POST",
    body,
    headers: { ...headers, Host: url.host },
    redirect: "manual",
    signal,
    // The runtime reuses connections by address, so a reused connection could have been opened for
    // another host name.
    ...(isSecure ? { tls: { serverName: hostOf(url) }, keepalive: false } : {}),
  });
  await response.body?.cancel();
  const { ok, status } = response;
  if (ok) return { isDelivered: true };
  if (status >= 300 && status < 400)
    return failed(`the receiver responded with status ${status}, but redirects are not followed`);
  return failed(
    `the receiver responded with status ${status}`,
    retryAfterMsOf(response.headers.get("retry-after")),
  );
}

/**
 * Reads the number of seconds in a Retry-After header. The header's other form, a date, is ignored
 * because it would require synchronized clocks.
 */
function retryAfterMsOf(header: string | null): number | undefined {
  return header !== null && /^\d{1,6}$/.test(header) ? Number(header) * 1000 : undefined;
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
