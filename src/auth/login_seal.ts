/**
 * Seals the state of a login through a provider in a signed cookie, which the browser keeps until
 * the login ends. The server itself stores nothing. Logins that strangers start and never finish
 * therefore take up no memory, and a login in progress survives a restart.
 *
 *     {base64url of JSON}.{base64url(HMAC-SHA256(secret, "provider login\n" + the first part))}
 */
import { timingSafeEqual } from "node:crypto";
import type { LoginSecrets } from "./oidc/code_flow.ts";

export interface BegunLogin extends LoginSecrets {
  readonly provider: string;
  /** The page to which the browser returns: a path of the admin page, or a URL. */
  readonly returnTo: string;
  /**
   * The PKCE challenge of the application that will exchange a code; undefined if the admin page
   * started the login.
   */
  readonly challenge: string | undefined;
  /** The time at which the login expires, in Unix milliseconds. */
  readonly untilMs: number;
}

/** The maximum duration of a login through a provider, in seconds. */
export const LOGIN_SECONDS = 600;

export function sealedLogin(secret: Uint8Array, login: BegunLogin): string {
  const text = Buffer.from(JSON.stringify(login)).toString("base64url");
  return `${text}.${signatureOf(secret, text).toString("base64url")}`;
}

/**
 * Returns the login whose state a signed cookie contains; undefined if this server did not sign
 * it.
 */
export function unsealedLogin(secret: Uint8Array, sealed: string): BegunLogin | undefined {
  const [text = "", signature = ""] = sealed.split(".");
  const given = Buffer.from(signature, "base64url");
  const made = signatureOf(secret, text);
  if (given.length !== made.length || !timingSafeEqual(given, made)) return undefined;
  // The JSON needs no further checks, because the signature proves that this server wrote it.
  return JSON.parse(Buffer.from(text, "base64url").toString()) as BegunLogin;
}

function signatureOf(secret: Uint8Array, text: string): Buffer {
  return new Bun.CryptoHasher("sha256", secret).update(`provider login\n${text}`).digest();
}
