/**
 * Validates the address of a server, and formats it for messages.
 */

/**
 * Returns the canonical form of an address, without a trailing slash.
 *
 * @throws {TypeError} If it is not an HTTP address. Otherwise, the first request would fail
 *   without giving a reason.
 */
export function serverUrlFrom(given: unknown): string {
  // JavaScript callers may pass any value, or none.
  const text = String(given);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return withoutSlash(url);
  // Text before an @ is not shown, because it may contain a password, even in an invalid address.
  const shown = text.replace(/^.*@/s, "");
  throw new TypeError(
    `Cannot use the url "${shown}": it must begin with http:// or https://, as in ` +
      '"http://127.0.0.1:2900"',
  );
}

/** Returns the address without the user name and password. */
export function shownUrl(serverUrl: string): string {
  const url = new URL(serverUrl);
  url.username = "";
  url.password = "";
  return withoutSlash(url);
}

function withoutSlash({ href }: URL): string {
  return href.replace(/\/+$/, "");
}
