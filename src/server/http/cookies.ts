/**
 * Handles the two cookies of a browser session. Only the auth endpoints, file downloads and event
 * streams read them. Every other endpoint requires the header, so that a page from another origin
 * cannot use the cookies. Code that reads or sets a cookie must also check the origin of the page.
 */
import type { LoginBody } from "../../protocol/mod.ts";

export type CookieName = "tidemark_auth" | "tidemark_refresh";

/** The paths of the cookies, below the base path. */
const PATHS: Readonly<Record<CookieName, string>> = {
  tidemark_auth: "/",
  tidemark_refresh: "/v1/api/auth",
};

export interface CookieOptions {
  /** Whether the cookies are sent over https only. */
  readonly isSecure: boolean;
  /** The path below which the browser reaches the server; empty for the root. */
  readonly basePath: string;
}

/** Returns the value of a request's cookie; undefined if it is absent. */
export function cookieOf(request: Request, name: CookieName): string | undefined {
  const header = request.headers.get("cookie");
  if (header === null) return undefined;
  const value = new Bun.CookieMap(header).get(name);
  return value === null || value === "" ? undefined : value;
}

/** Sets both cookies; each expires together with its token. */
export function setSessionCookies(
  headers: Headers,
  login: LoginBody,
  options: CookieOptions,
): void {
  const { access_token, expires_at, refresh_token, refresh_expires_at } = login;
  const end = { expires: new Date(expires_at), ...options };
  headers.append("Set-Cookie", cookie("tidemark_auth", access_token, end));
  const refreshEnd = { expires: new Date(refresh_expires_at), ...options };
  headers.append("Set-Cookie", cookie("tidemark_refresh", refresh_token, refreshEnd));
}

/** Makes the browser delete both cookies. */
export function expireSessionCookies(headers: Headers, options: CookieOptions): void {
  const end = { expires: new Date(0), ...options };
  headers.append("Set-Cookie", cookie("tidemark_auth", "", end));
  headers.append("Set-Cookie", cookie("tidemark_refresh", "", end));
}

function cookie(
  name: CookieName,
  value: string,
  { basePath, expires, isSecure }: CookieOptions & { readonly expires: Date },
): string {
  const sent = new Bun.Cookie(name, value, {
    path: basePath + PATHS[name],
    expires,
    httpOnly: true,
    sameSite: "strict",
    secure: isSecure,
  });
  return sent.serialize();
}
