/**
 * How the client becomes somebody without being told to log in: by a token, by a name and a
 * password, or by a function that gives a token whenever one is needed.
 */
import { type Call, FILLED_TEXT, kindOf, OBJECT, requireOptions, TEXT } from "./checks.ts";
import { ServerError } from "./errors.ts";

/** Gives an access token. Asked again when the one before is accepted no more. */
export type TokenFunction = () => string | Promise<string>;

export type Credentials =
  | { readonly token: string }
  | { readonly user: string; readonly password: string }
  | TokenFunction;

const CALL: Call = {
  doing: "log in by auth",
  example: 'auth: { token }, auth: { user, password } or auth: async () => "a token"',
};

/** @throws {TypeError} If they are none of the three. */
export function requireCredentials(given: unknown): asserts given is Credentials {
  if (typeof given === "function") return;
  if (!OBJECT.holds(given)) {
    throw new TypeError(`Cannot ${CALL.doing}: it is ${kindOf(given)}; write ${CALL.example}`);
  }
  requireOptions(CALL, given, { token: FILLED_TEXT, user: FILLED_TEXT, password: TEXT });
  const { password, token, user } = given as Record<string, unknown>;
  const isToken = token !== undefined && user === undefined && password === undefined;
  const isLogin = token === undefined && user !== undefined && password !== undefined;
  if (isToken || isLogin) return;
  throw new TypeError(
    `Cannot ${CALL.doing}: it should have either a token, or a user and a password; write ${CALL.example}`,
  );
}

/** @throws {ServerError} If it gives no token; and whatever it throws itself. */
export async function tokenFrom(give: TokenFunction): Promise<string> {
  const token: unknown = await give();
  if (typeof token === "string" && token !== "") return token;
  throw new ServerError(
    "unauthorized",
    `Cannot log in: the auth function gave ${token === "" ? "empty text" : kindOf(token)}, and should give an access token as text`,
    { status: 401 },
  );
}

/** Whose token it is, as the token says itself; undefined where it cannot be read. */
export function subjectOf(token: string): string | undefined {
  const claims = token.split(".")[1]?.replaceAll("-", "+").replaceAll("_", "/");
  try {
    const bytes = Uint8Array.from(atob(claims ?? ""), (each) => each.charCodeAt(0));
    const { sub } = JSON.parse(new TextDecoder().decode(bytes)) as { sub?: unknown };
    return typeof sub === "string" ? sub : undefined;
  } catch {
    // It is no token that can be read here; the server judges it.
    return undefined;
  }
}
