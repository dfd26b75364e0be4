/**
 * Describes the operations below `/v1/api/auth/oidc/`, through which users log in with an OpenID
 * Connect provider.
 */
import type { Operation } from "../http/operation.ts";
import { inPath, inQuery, SESSION_COOKIES } from "./operations.ts";
import { jsonOf } from "./schemas.ts";

const LIMITED = { 429: ["rate_limited"], 500: ["internal_error"] } as const;

const PROVIDER = inPath("provider", "The name of a section oidc.providers of the configuration");

export const PROVIDER_OPERATIONS: Readonly<
  Record<"callback" | "link" | "links" | "login" | "logout" | "token" | "unlink", Operation>
> = {
  login: {
    id: "beginProviderLogin",
    tag: "auth",
    summary: "Redirect the browser to an identity provider",
    access: "anyone",
    parameters: [
      PROVIDER,
      inQuery(
        "return_to",
        "A path below /ui, or the URL of a page whose origin security.cors.allowed_origins lists",
      ),
      inQuery("challenge", "For a page outside /ui: the SHA-256 of its verifier in base64url"),
    ],
    answers: {
      302: {
        description: "To the provider, or to the page with an error",
        headers: { "Set-Cookie": "tidemark_oidc, HttpOnly, for ten minutes" },
      },
    },
    errors: { 400: ["invalid_request"], 403: ["forbidden"], 404: ["not_found"], ...LIMITED },
  },
  callback: {
    id: "endProviderLogin",
    tag: "auth",
    summary: "Receive the browser from a provider",
    description:
      "Below /ui, the page gets the cookies of a session; a failure leads to /ui/login?error=. Any " +
      "other page gets #tidemark_code= or #tidemark_error=.",
    access: "anyone",
    parameters: [PROVIDER],
    answers: { 302: { description: "To the page that began the login", headers: SESSION_COOKIES } },
    errors: { 404: ["not_found"], ...LIMITED },
  },
  logout: {
    id: "endProviderSession",
    tag: "auth",
    summary: "Receive the end of a session from a provider",
    description:
      "OpenID Connect Back-Channel Logout: the address of a client's backchannel_logout_uri. Ends the " +
      "sessions that began with the session of the provider or, without one, all of the person.",
    access: "anyone",
    parameters: [PROVIDER],
    body: {
      content: {
        "application/x-www-form-urlencoded": {
          type: "object",
          required: ["logout_token"],
          properties: { logout_token: { type: "string", description: "A signed logout token" } },
        },
      },
      required: true,
    },
    answers: { 200: { description: "The sessions have ended" } },
    errors: {
      400: ["invalid_request"],
      404: ["not_found"],
      415: ["unsupported_media_type"],
      ...LIMITED,
    },
  },
  token: {
    id: "exchangeProviderCode",
    tag: "auth",
    summary: "Exchange the code from a login through a provider for tokens; works only once",
    access: "anyone",
    body: {
      content: jsonOf("ProviderCodeRequest"),
      required: true,
      example: { code: "…", verifier: "…" },
    },
    answers: {
      200: { description: "Tokens", content: jsonOf("Login"), headers: SESSION_COOKIES },
    },
    errors: {
      400: ["invalid_request"],
      401: ["unknown_user"],
      403: ["invalid_code"],
      ...LIMITED,
    },
  },
  links: {
    id: "listAccountLinks",
    tag: "auth",
    summary: "List the logins of providers to which the caller's own account is linked",
    access: "bearer or cookie",
    answers: { 200: { description: "The links", content: jsonOf("AccountLinks") } },
    errors: { 401: ["unauthorized"], 500: ["internal_error"] },
  },
  unlink: {
    id: "unlinkAccount",
    tag: "auth",
    summary: "Unlink a provider from the caller's own account, and end the sessions of its logins",
    description: "Requires oidc.linking. The last login of an account cannot be removed.",
    access: "bearer or cookie",
    body: {
      content: jsonOf("ProviderUnlinkRequest"),
      required: true,
      example: { provider: "google", subject: "…", password: "…" },
    },
    answers: { 200: { description: "Done", content: jsonOf("Message") } },
    errors: {
      400: ["invalid_request"],
      401: ["unauthorized", "account_locked"],
      403: ["forbidden"],
      ...LIMITED,
    },
  },
  link: {
    id: "linkAccount",
    tag: "auth",
    summary: "Link the caller's own account to the login of a provider",
    description:
      "Requires oidc.linking. Guests send no password, and keep their account and rows. An account " +
      "that was created by a provider sends the code of a new login there instead of a password. " +
      "An account may have at most ten links.",
    access: "bearer or cookie",
    body: {
      content: jsonOf("ProviderLinkRequest"),
      required: true,
      example: { code: "…", verifier: "…", password: "…" },
    },
    answers: { 200: { description: "Done", content: jsonOf("Message") } },
    errors: {
      400: ["invalid_request"],
      401: ["unauthorized", "account_locked"],
      403: ["forbidden", "invalid_code"],
      409: ["user_exists"],
      ...LIMITED,
    },
  },
};
