/**
 * Handles browser cookies: two for the session, and one that exists only while a login through a
 * provider is in progress.
 *
 * Only the auth endpoints, file downloads and event streams read the session cookies. Every other
 * endpoint requires the Authorization header, so a page from a different origin cannot use the
 * cookies. Code that reads or sets a session cookie must also check the page's origin.
 */
import type { LoginBody } from "../../protocol/mod.ts";

type SessionCookie = "tidemark_auth" | "tidemark_refresh";

export type CookieName = SessionCookie | "tidemark_oidc";

/** The paths of the cookies, below the base path. */
const PATHS: Readonly<Record<SessionCookie, string>> = {
  tidemark_auth: "/",
  tidemark_refresh: "/v1/api/auth",
};

export interface CookieOptions {
  /** Whether browsers may send the cookies only over https. */
  readonly isSecure: boolean;
  /** The path below which the browser reaches the server; empty for the root. */
  readonly basePath: string;
}

/** Returns the value of a cookie in the request; undefined if the cookie is absent. */
export function cookieOf(request: Request, name: CookieName): string | undefined {
  const header = request.headers.get("cookie");
  if (header === null) return undefined;
  const value = new Bun.CookieMap(header).get(name);
  return value === null || value === "" ? undefined : value;
}

/** Sets both session cookies. Each expires together with its token. */
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

/** Makes the browser delete both session cookies. */
export function expireSessionCookies(headers: Headers, options: CookieOptions): void {
  const end = { expires: new Date(0), ...options };
  headers.append("Set-Cookie", cookie("tidemark_auth", "", end));
  headers.append("Set-Cookie", cookie("tidemark_refresh", "", end));
}

/**
 * Sets the cookie for a login in progress, or makes the browser delete it. This cookie is separate
 * because the provider redirects the browser from another site, so the browser does not send the
 * session cookies.
 *
 * @param value Undefined to delete the cookie.
 * @param options.path The path of the cookie below the base path.
 */
export function setLoginCookie(
  headers: Headers,
  value: string | undefined,
  { basePath, isSecure, maxAge, path }: CookieOptions & { maxAge: number; path: string },
): void {
  const sent = new Bun.Cookie("tidemark_oidc", value ?? "", {
    path: basePath + path,
    maxAge: value === undefined ? 0 : maxAge,
    httpOnly: true,
    sameSite: "lax",
    secure: isSecure,
  });
  headers.append("Set-Cookie", sent.serialize());
}

function cookie(
  name: SessionCookie,
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
