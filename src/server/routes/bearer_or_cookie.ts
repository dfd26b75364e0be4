/**
 * Authenticates requests by bearer token or, if there is none, by cookie. Cookies are accepted
 * because an EventSource and page elements such as images cannot send a header.
 */
import type { Auth, Principal } from "../../auth/mod.ts";
import { cookieOf } from "../http/cookies.ts";
import type { Exchange } from "../http/exchange.ts";

export interface BearerOrCookieOptions {
  readonly auth: Auth;
  /** Returns whether the page that sent a request may use its cookies. */
  readonly mayUseCookies: (request: Request) => boolean;
}

/**
 * Returns the caller identified by a bearer token or a browser cookie.
 * @throws {AuthError}
 */
export function bearerOrCookiePrincipal(
  exchange: Exchange,
  { auth, mayUseCookies }: BearerOrCookieOptions,
): Principal {
  const { request } = exchange;
  const header = request.headers.get("authorization");
  const mayBeCookie = header === null && mayUseCookies(request);
  const cookie = mayBeCookie ? cookieOf(request, "tidemark_auth") : undefined;
  const sent = cookie === undefined ? header : `Bearer ${cookie}`;
  return auth.authenticateHeader(sent, exchange, { mayBeCookie: true });
}
