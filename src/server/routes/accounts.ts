/**
 * Serves the routes of `/v1/api/auth/…` through which people manage their own accounts: sign-up,
 * guests, the password, the account itself, and links sent by mail. The routes leave all decisions
 * to the `auth` layer.
 */
import { expireSessionCookies } from "../http/cookies.ts";
import type { Exchange } from "../http/exchange.ts";
import type { FieldNames } from "../http/field_names.ts";
import { HttpError } from "../http/http_error.ts";
import { json } from "../http/responses.ts";
import type { Route, RouteFunction } from "../http/route.ts";
import { ACCOUNT_OPERATIONS } from "../openapi/account_operations.ts";
import {
  type AuthRouteOptions,
  bodyOf,
  callerOf,
  cookieOptions,
  loggedIn,
  tokenOf,
} from "./auth_requests.ts";

const PASSWORD_NAMES = ["pass", "pwd", "passwd", "secret"];
const EMAIL_NAMES = ["mail", "e_mail"];

const SIGN_UP_FIELDS: FieldNames = {
  user: ["username", "name", "login", "user_name", "userid", "user_id"],
  password: PASSWORD_NAMES,
  email: EMAIL_NAMES,
  invitation: ["code", "invite", "invitation_code"],
};

const PASSWORD_FIELDS: FieldNames = {
  password: [...PASSWORD_NAMES, "old_password", "current_password"],
  new_password: ["new", "newpassword"],
};

const DELETE_FIELDS: FieldNames = {
  password: PASSWORD_NAMES,
  code: ["tidemark_code"],
  verifier: ["code_verifier"],
};

const RESET_LINK_FIELDS: FieldNames = { user: ["username", "name", "login", ...EMAIL_NAMES] };

const RESET_FIELDS: FieldNames = {
  token: ["reset_token", "code"],
  password: [...PASSWORD_NAMES, "new_password"],
};

const EMAIL_FIELDS: FieldNames = { password: PASSWORD_NAMES, email: EMAIL_NAMES };

const VERIFY_FIELDS: FieldNames = { token: ["verify_token", "code"] };

export function accountRoutes(options: AuthRouteOptions): readonly Route[] {
  const { auth } = options;
  return [
    route("signup", (exchange) => signUp(exchange, options)),
    route("guest", (exchange) => beginAsGuest(exchange, options)),
    route("password", async (exchange) => {
      const body = await bodyOf(exchange, { ...options, names: PASSWORD_FIELDS });
      const principal = callerOf(exchange, options);
      const login = await auth.ownAccount.changePassword(principal, body, exchange);
      return loggedIn(exchange, login, options);
    }),
    route("delete", (exchange) => deleteAccount(exchange, options)),
    route("reset_link", async (exchange) => {
      const body = await bodyOf(exchange, { ...options, names: RESET_LINK_FIELDS });
      return json(exchange, 202, await auth.links.sendResetLink(body, exchange));
    }),
    route("reset", async (exchange) => {
      const body = await bodyOf(exchange, { ...options, names: RESET_FIELDS });
      return json(exchange, 200, await auth.links.reset(body, exchange));
    }),
    route("verify_link", async (exchange) => {
      await bodyOf(exchange, { ...options, names: {} });
      const principal = callerOf(exchange, options);
      return json(exchange, 202, await auth.links.sendVerifyLink(principal, exchange));
    }),
    route("email", async (exchange) => {
      const body = await bodyOf(exchange, { ...options, names: EMAIL_FIELDS });
      const principal = callerOf(exchange, options);
      return json(exchange, 202, await auth.links.sendChangeLink(principal, body, exchange));
    }),
    route("verify", async (exchange) => {
      const body = await bodyOf(exchange, { ...options, names: VERIFY_FIELDS });
      return json(exchange, 200, await auth.links.verify(body, exchange));
    }),
  ];
}

function route(name: keyof typeof ACCOUNT_OPERATIONS, handle: RouteFunction): Route {
  const operation = ACCOUNT_OPERATIONS[name];
  return { path: `/v1/api/auth/${name}`, method: "POST", shape: "A", operation, handle };
}

async function signUp(exchange: Exchange, options: AuthRouteOptions): Promise<Response> {
  requireOwnPage(exchange, options);
  const body = await bodyOf(exchange, { ...options, names: SIGN_UP_FIELDS });
  const token = tokenOf(exchange, options);
  // An invalid token is refused rather than ignored. Otherwise, a guest whose token has expired
  // would get a second account.
  const guest = token === undefined ? undefined : options.auth.authenticate(token, exchange);
  return json(exchange, 202, await options.auth.signUp(body, exchange, guest));
}

async function beginAsGuest(exchange: Exchange, options: AuthRouteOptions): Promise<Response> {
  requireOwnPage(exchange, options);
  await bodyOf(exchange, { ...options, names: {} });
  return loggedIn(exchange, await options.auth.beginAsGuest(exchange), options);
}

async function deleteAccount(exchange: Exchange, options: AuthRouteOptions): Promise<Response> {
  const body = (await bodyOf(exchange, { ...options, names: DELETE_FIELDS })) ?? {};
  const principal = callerOf(exchange, options);
  const answer = await options.auth.ownAccount.delete(principal, body, exchange);
  const response = json(exchange, 200, answer);
  if (options.mayUseCookies(exchange.request)) {
    expireSessionCookies(response.headers, cookieOptions(exchange, options));
  }
  return response;
}

/**
 * Refuses pages from origins that are neither this server's own nor listed in the configuration.
 * Such pages could make their visitors' browsers create accounts.
 *
 * @throws {HttpError} forbidden
 */
function requireOwnPage({ request }: Exchange, { mayAct }: AuthRouteOptions): void {
  if (mayAct(request)) return;
  throw new HttpError(
    403,
    "forbidden",
    "Web pages from other origins are not allowed to sign up users",
  );
}
