/**
 * The address of a server: which text is one, and how it is shown.
 */

/**
 * The address in one form, without a slash at the end.
 *
 * @throws {TypeError} If it is none of HTTP: the first request would fail, and not say why.
 */
export function serverUrlFrom(given: unknown): string {
  // JavaScript may give anything, or nothing.
  const text = String(given);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return withoutSlash(url);
  // Whatever it is, what stands before an @ may be a password.
  const shown = text.replace(/^.*@/s, "");
  throw new TypeError(
    `Cannot use the url "${shown}": it should begin with http:// or https://, like "http://127.0.0.1:2900"`,
  );
}

/** The same without name and password. */
export function shownUrl(serverUrl: string): string {
  const url = new URL(serverUrl);
  url.username = "";
  url.password = "";
  return withoutSlash(url);
}

function withoutSlash({ href }: URL): string {
  return href.replace(/\/+$/, "");
}
