/**
 * Defines the credentials for automatic login: a token, a user and a password, or a function that
 * returns a token whenever one is needed.
 */
import { type Call, FILLED_TEXT, kindOf, OBJECT, requireOptions, TEXT } from "./checks.ts";
import { ServerError } from "./errors.ts";

/**
 * Returns an access token. The client calls this function again when the server no longer accepts
 * the previous token.
 */
export type TokenFunction = () => string | Promise<string>;

export type Credentials =
  | { readonly token: string }
  | { readonly user: string; readonly password: string }
  | TokenFunction;

const CALL: Call = {
  doing: "log in with the option auth",
  example: 'auth: { token }, auth: { user, password } or auth: async () => "a token"',
};

/**
 * Requires that a value has one of the three forms of credentials.
 * @throws {TypeError}
 */
export function requireCredentials(given: unknown): asserts given is Credentials {
  if (typeof given === "function") return;
  if (!OBJECT.holds(given)) {
    throw new TypeError(
      `Cannot ${CALL.doing}: the option is ${kindOf(given)}; write ${CALL.example}`,
    );
  }
  requireOptions(CALL, given, { token: FILLED_TEXT, user: FILLED_TEXT, password: TEXT });
  const { password, token, user } = given as Record<string, unknown>;
  const isToken = token !== undefined && user === undefined && password === undefined;
  const isLogin = token === undefined && user !== undefined && password !== undefined;
  if (isToken || isLogin) return;
  throw new TypeError(
    `Cannot ${CALL.doing}: the option must have either a token, or a user and a password; ` +
      `write ${CALL.example}`,
  );
}

/**
 * Calls the application's token function, and checks the result.
 * @throws {ServerError} If the function returns no token. Errors thrown by the function pass
 *   through.
 */
export async function tokenFrom(give: TokenFunction): Promise<string> {
  const token: unknown = await give();
  if (typeof token === "string" && token !== "") return token;
  throw new ServerError(
    "unauthorized",
    "Cannot log in: the auth function returned " +
      `${token === "" ? "an empty string" : kindOf(token)}, but must return an access token as a ` +
      "string",
    { status: 401 },
  );
}
