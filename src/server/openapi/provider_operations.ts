/**
 * Describes the operations below `/v1/api/auth/oidc/`, through which users log in with an OpenID
 * Connect provider.
 */
import type { Operation } from "../http/operation.ts";
import { inPath, inQuery, SESSION_COOKIES } from "./operations.ts";
import { jsonOf } from "./schemas.ts";

const LIMITED = { 429: ["rate_limited"], 500: ["internal_error"] } as const;

const PROVIDER = inPath(
  "provider",
  "The name of a provider, as in the section oidc.providers.<name> of the configuration",
);

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
        "The page to return to: a path below /ui, or a URL whose origin is listed in " +
          "security.cors.allowed_origins",
      ),
      inQuery(
        "challenge",
        "For a page outside /ui: the SHA-256 hash of the page's verifier, in base64url",
      ),
    ],
    answers: {
      302: {
        description: "Redirect to the provider, or back to the page with an error",
        headers: { "Set-Cookie": "The HttpOnly cookie tidemark_oidc, valid for ten minutes" },
      },
    },
    errors: { 400: ["invalid_request"], 403: ["forbidden"], 404: ["not_found"], ...LIMITED },
  },
  callback: {
    id: "endProviderLogin",
    tag: "auth",
    summary: "Receive the browser when an identity provider redirects it back",
    description:
      "A page below /ui gets session cookies; if the login fails, the browser goes to " +
      "/ui/login?error=. Any other page gets #tidemark_code= or #tidemark_error= in its URL.",
    access: "anyone",
    parameters: [PROVIDER],
    answers: {
      302: {
        description: "Redirect to the page on which the login began",
        headers: SESSION_COOKIES,
      },
    },
    errors: { 404: ["not_found"], ...LIMITED },
  },
  logout: {
    id: "endProviderSession",
    tag: "auth",
    summary: "Receive a provider's notification that a session has ended",
    description:
      "The backchannel_logout_uri for OpenID Connect Back-Channel Logout. Ends the sessions " +
      "that began in the given session at the provider or, if the token names no session, all " +
      "sessions that the person began through the provider.",
    access: "anyone",
    parameters: [PROVIDER],
    body: {
      content: {
        "application/x-www-form-urlencoded": {
          type: "object",
          required: ["logout_token"],
          properties: {
            logout_token: { type: "string", description: "A logout token signed by the provider" },
          },
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
    summary:
      "Exchange the code from a login through a provider for tokens; each code works only once",
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
    summary: "List the provider logins to which the caller's own account is linked",
    access: "bearer or cookie",
    answers: { 200: { description: "The linked logins", content: jsonOf("AccountLinks") } },
    errors: { 401: ["unauthorized"], 500: ["internal_error"] },
  },
  unlink: {
    id: "unlinkAccount",
    tag: "auth",
    summary:
      "Unlink a provider from the caller's own account, and end the sessions started through it",
    description: "Requires oidc.linking. An account's last remaining login cannot be removed.",
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
    summary: "Link the caller's own account to a login at a provider",
    description:
      "Requires oidc.linking. Guests send no password, and keep their account and rows. If the " +
      "account was created through a provider, the request contains the code from a new login " +
      "at that provider instead of a password. An account may have at most ten links.",
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
