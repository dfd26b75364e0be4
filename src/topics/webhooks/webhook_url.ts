/** Validates the URLs of webhooks. */
import { DatabaseError } from "../../base/errors.ts";
import { hostOf, type OutboundHosts } from "../../base/outbound_hosts.ts";

const URL_LENGTH_MAX = 2048;

/**
 * Parses a webhook URL.
 *
 * @param position The URL's offset in the statement's SQL; undefined if it does not come from a
 *   statement.
 * @throws {DatabaseError} INVALID_OPTION if it is not a valid webhook URL, PERMISSION_DENIED if
 *   its host is not listed
 */
export function webhookUrl(text: string, hosts: OutboundHosts, position?: number): URL {
  const at = position === undefined ? {} : { position };
  const url = URL.parse(text);
  const fault = faultOf(text, url);
  if (url === null || fault !== undefined) {
    throw new DatabaseError("INVALID_OPTION", `Cannot deliver to this URL: ${fault}`, at);
  }
  const host = hostOf(url);
  if (hosts.permits(host)) return url;
  throw new DatabaseError(
    "PERMISSION_DENIED",
    `Cannot deliver to host "${host}": it is not listed in security.webhook_hosts`,
    {
      ...at,
      hint: "ask the operator to add the host to security.webhook_hosts, and to restart the server",
    },
  );
}

/**
 * Returns the reason why a URL cannot be used; undefined if it can be used. The reason never
 * repeats the URL, because the URL may contain a secret.
 */
function faultOf(text: string, url: URL | null): string | undefined {
  if (text.length > URL_LENGTH_MAX) return `the URL has more than ${URL_LENGTH_MAX} characters`;
  if (url === null) return "the URL must have a form such as 'https://hooks.example.com/orders'";
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return "the URL must begin with https:// or http://";
  }
  if (url.username !== "" || url.password !== "") {
    return "the URL must not contain a user or a password; to sign the requests, use SECRET";
  }
  return url.hash === "" ? undefined : "the URL must not have a fragment";
}
