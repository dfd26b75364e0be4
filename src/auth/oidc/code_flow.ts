/**
 * Implements the authorization code flow of OpenID Connect, with PKCE (RFC 7636).
 *
 *     browser ──authorization URL: state, nonce, challenge──► provider
 *     browser ◄──callback: code, state, iss──────────────────
 *     server ──code, verifier, proof of the client──► token endpoint ──ID token──► identity
 *
 * The ID token comes from the token endpoint over TLS, but is checked like any other token: its
 * signature, issuer, audience, times, and the nonce that binds it to this login.
 */
import type { Discovery } from "./issuer.ts";
import { ProviderError, type ProviderFetch, type ProviderObject } from "./provider_fetch.ts";
import type { LoginProvider } from "./providers.ts";
import {
  type ExternalIdentity,
  endMsOf,
  identityFrom,
  isEarly,
  isFor,
  timesFrom,
} from "./token_claims.ts";

/** The secrets of a login, which bind its steps to one browser. */
export interface LoginSecrets {
  readonly state: string;
  readonly nonce: string;
  /** The PKCE verifier. The provider first receives only its hash. */
  readonly verifier: string;
}

/**
 * Returns the URL of the provider's login page, to which the browser is redirected.
 * @throws {ProviderError}
 */
export function authorizationUrl(
  { settings }: LoginProvider,
  { authorizationEndpoint, tokenEndpoint }: Discovery,
  { nonce, redirectUri, state, verifier }: LoginSecrets & { readonly redirectUri: string },
): string {
  if (authorizationEndpoint === undefined || tokenEndpoint === undefined) {
    throw new ProviderError(
      `the provider ${settings.name} does not support the authorization code flow`,
    );
  }
  const url = new URL(authorizationEndpoint);
  const parameters = {
    response_type: "code",
    client_id: settings.clientId,
    redirect_uri: redirectUri,
    scope: settings.scopes.join(" "),
    state,
    nonce,
    code_challenge: challengeOf(verifier),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/** Returns the PKCE challenge for a verifier. */
export function challengeOf(verifier: string): string {
  return new Bun.CryptoHasher("sha256").update(verifier).digest().toString("base64url");
}

/** Exchanges an authorization code for the provider's tokens. @throws {ProviderError} */
export async function exchangedCode(
  { settings }: LoginProvider,
  { clientProofs, tokenEndpoint = "" }: Discovery,
  {
    code,
    fetch,
    redirectUri,
    verifier,
  }: { code: string; verifier: string; redirectUri: string; fetch: ProviderFetch },
): Promise<{ readonly idToken: string; readonly accessToken: string | undefined }> {
  const { clientId, clientSecret } = settings;
  const form = new URLSearchParams({
    grant_type: "authorization_code",
    code,
    redirect_uri: redirectUri,
    code_verifier: verifier,
  });
  const headers: Record<string, string> = { "Content-Type": "application/x-www-form-urlencoded" };
  const isBasic = clientProofs === undefined || clientProofs.includes("client_secret_basic");
  if (clientSecret !== undefined && isBasic) {
    headers["Authorization"] = basicCredentials(clientId, clientSecret);
  } else {
    form.set("client_id", clientId);
    if (clientSecret !== undefined) form.set("client_secret", clientSecret);
  }
  const answer = await fetch(tokenEndpoint, { method: "POST", headers, body: form.toString() });
  const { access_token: accessToken, id_token: idToken } = answer;
  if (typeof idToken !== "string") throw new ProviderError("the provider returned no ID token");
  return { idToken, accessToken: typeof accessToken === "string" ? accessToken : undefined };
}

/**
 * Returns the client's credentials for HTTP Basic authentication. OAuth requires the id and the
 * secret to be form-encoded before they are joined (RFC 6749, 2.3.1).
 */
function basicCredentials(clientId: string, clientSecret: string): string {
  const [user, password] = [clientId, clientSecret].map((text) =>
    new URLSearchParams([["", text]]).toString().slice(1),
  );
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}

/**
 * Returns the person identified by an ID token; undefined if the token is not acceptable.
 *
 * @throws {ProviderError} If the provider's keys or the user's claims cannot be fetched.
 */
export async function identityFromIdToken(
  provider: LoginProvider,
  discovery: Discovery,
  {
    accessToken,
    fetch,
    idToken,
    nonce,
    nowMs,
  }: {
    idToken: string;
    accessToken: string | undefined;
    nonce: string;
    nowMs: number;
    fetch: ProviderFetch;
  },
): Promise<ExternalIdentity | undefined> {
  const verified = await provider.keys.verified(idToken);
  if (verified === undefined) return undefined;
  const { payload } = verified;
  const { clientId } = provider.settings;
  const times = timesFrom(payload);
  const isForOthers = Array.isArray(payload["aud"]) && payload["aud"].length > 1;
  const isAcceptable =
    times !== undefined &&
    nowMs < endMsOf(times) &&
    !isEarly(times, nowMs) &&
    payload["iss"] === provider.issuer &&
    isFor(payload, clientId) &&
    (payload["azp"] === clientId || (payload["azp"] === undefined && !isForOthers)) &&
    payload["nonce"] === nonce;
  if (!isAcceptable) return undefined;
  const userInfo = await missingClaims(provider, discovery, { payload, accessToken, fetch });
  return identityFrom({ ...userInfo, ...payload }, provider);
}

/**
 * Fetches claims from the userinfo endpoint if the ID token lacks a claim that the configuration
 * uses. Some providers return most claims only from that endpoint.
 */
async function missingClaims(
  { settings: { claims, scopes, userClaim } }: LoginProvider,
  { userInfoEndpoint }: Discovery,
  {
    accessToken,
    fetch,
    payload,
  }: { payload: ProviderObject; accessToken: string | undefined; fetch: ProviderFetch },
): Promise<ProviderObject> {
  const wanted = [...claims, userClaim, ...(scopes.includes("email") ? ["email"] : [])];
  const isComplete = wanted.every((name) => Object.hasOwn(payload, name));
  if (isComplete || userInfoEndpoint === undefined || accessToken === undefined) return {};
  const headers = { Authorization: `Bearer ${accessToken}` };
  const found = await fetch(userInfoEndpoint, { method: "GET", headers });
  // The two subjects must be equal. If the access token was swapped in transit, the response
  // describes another user.
  return found["sub"] === payload["sub"] ? found : {};
}
