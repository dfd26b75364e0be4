/**
 * Describes the operations of `/v1/api/auth/…` through which people manage their accounts, keyed
 * by the last segment of the path. Each is disabled unless the configuration enables it.
 */
import type { Operation } from "../http/operation.ts";
import { SESSION_COOKIES } from "./operations.ts";
import { jsonOf } from "./schemas.ts";

const LIMITED = { 429: ["rate_limited"], 500: ["internal_error"] } as const;

const ACCEPTED = {
  202: {
    description: "The response and its timing are the same whether or not the account exists",
    content: jsonOf("Message"),
  },
} as const;

const DONE = { 200: { description: "Done", content: jsonOf("Message") } } as const;

const TOKENS = {
  200: { description: "Tokens", content: jsonOf("Login"), headers: SESSION_COOKIES },
} as const;

export const ACCOUNT_OPERATIONS: Readonly<
  Record<
    | "delete"
    | "email"
    | "guest"
    | "password"
    | "reset"
    | "reset_link"
    | "signup"
    | "verify"
    | "verify_link",
    Operation
  >
> = {
  signup: {
    id: "signUp",
    tag: "auth",
    summary: "Create an account with the role user, or give a guest a login",
    description:
      "Requires auth.signup. If the request carries a guest's token, the guest keeps the " +
      "account and its rows. The response does not reveal whether the name was free; a login " +
      "does.",
    access: "any token or none",
    body: {
      content: jsonOf("SignUpRequest"),
      required: true,
      example: { user: "…", password: "…" },
    },
    answers: ACCEPTED,
    errors: {
      400: ["invalid_request", "invalid_user", "weak_password"],
      403: ["forbidden", "invalid_invitation"],
      428: ["setup_required"],
      ...LIMITED,
    },
  },
  guest: {
    id: "beginAsGuest",
    tag: "auth",
    summary: "Create a guest account and start its session",
    description:
      "Requires auth.guests. A guest account is deleted after auth.guest_days without activity.",
    access: "anyone",
    answers: TOKENS,
    errors: { 403: ["forbidden"], 428: ["setup_required"], ...LIMITED },
  },
  password: {
    id: "changePassword",
    tag: "auth",
    summary: "Change the caller's own password and end all other sessions",
    description: "Requires auth.own_password.",
    access: "bearer or cookie",
    body: {
      content: jsonOf("PasswordRequest"),
      required: true,
      example: { password: "…", new_password: "…" },
    },
    answers: TOKENS,
    errors: {
      400: ["invalid_request", "weak_password"],
      401: ["unauthorized", "account_locked"],
      403: ["forbidden"],
      ...LIMITED,
    },
  },
  delete: {
    id: "deleteAccount",
    tag: "auth",
    summary: "Delete the caller's own account",
    description:
      "Requires auth.own_deletion. The account's rows are erased after 30 days. If the " +
      "account has no password, the caller must have logged in through its provider within " +
      "the last five minutes, or send the code from a new login at that provider.",
    access: "bearer or cookie",
    body: { content: jsonOf("DeleteRequest"), required: false, example: { password: "…" } },
    answers: DONE,
    errors: {
      400: ["invalid_request"],
      401: ["unauthorized", "account_locked"],
      403: ["forbidden", "invalid_code"],
      ...LIMITED,
    },
  },
  reset_link: {
    id: "sendResetLink",
    tag: "auth",
    summary: "Email an account's address a link for setting a new password",
    description: "Requires auth.password_reset.",
    access: "anyone",
    body: { content: jsonOf("ResetLinkRequest"), required: true, example: { user: "…" } },
    answers: ACCEPTED,
    errors: { 400: ["invalid_request"], 403: ["forbidden"], ...LIMITED },
  },
  reset: {
    id: "resetPassword",
    tag: "auth",
    summary: "Set a new password with the token from a link; the token works only once",
    access: "anyone",
    body: {
      content: jsonOf("ResetRequest"),
      required: true,
      example: { token: "…", password: "…" },
    },
    answers: DONE,
    errors: {
      400: ["invalid_request", "weak_password"],
      403: ["forbidden", "invalid_link"],
      ...LIMITED,
    },
  },
  verify_link: {
    id: "sendVerifyLink",
    tag: "auth",
    summary: "Send the caller another email with a link that verifies the address",
    description: "Requires auth.email_login.",
    access: "bearer or cookie",
    answers: ACCEPTED,
    errors: { 403: ["forbidden"], ...LIMITED },
  },
  email: {
    id: "changeEmail",
    tag: "auth",
    summary: "Email a new address a link that makes it the caller's address",
    description:
      "Requires auth.email_login. The account keeps its current address until the link is " +
      "opened. The response does not reveal whether the new address already belongs to another " +
      "account.",
    access: "bearer or cookie",
    body: {
      content: jsonOf("EmailRequest"),
      required: true,
      example: { password: "…", email: "ann@example.com" },
    },
    answers: ACCEPTED,
    errors: {
      400: ["invalid_request"],
      401: ["unauthorized", "account_locked"],
      403: ["forbidden"],
      ...LIMITED,
    },
  },
  verify: {
    id: "verifyEmail",
    tag: "auth",
    summary: "Verify an email address with the token from a link, so that it can be used to log in",
    access: "anyone",
    body: { content: jsonOf("VerifyRequest"), required: true, example: { token: "…" } },
    answers: DONE,
    errors: { 400: ["invalid_request"], 403: ["forbidden", "invalid_link"], ...LIMITED },
  },
};
