/** Authentication and authorisation: identifies callers and decides what they may do. */
export type { AccountNotice, AccountSettings, OnNotice } from "./account_settings.ts";
export type { Caller } from "./answers.ts";
export type { AuditEvent } from "./audit.ts";
export { Auth, type AuthSettings } from "./auth.ts";
export { type AuthCode, AuthError } from "./auth_error.ts";
export { exportAccessName, signedAccess, signedFileUrl } from "./file_urls.ts";
export type { CreateInvitationRequest } from "./invitations.ts";
export { isIssuer, type OidcSettings } from "./oidc/oidc_settings.ts";
export { type PasswordPolicy, passwordFault } from "./password.ts";
export {
  isAtLeast,
  isPolicyFor,
  isRuledFor,
  mayActFor,
  mayAlter,
  mayRead,
  mayReadFilesOf,
  mayReadHistory,
  mayReadView,
  mayRun,
  mayWrite,
  ownsNamespace,
  policiesOf,
  policyRoleFor,
  requireAlter,
  requireCreateTable,
  requireDrop,
  requireMessages,
  requireReach,
  requireRun,
  requireTopic,
  requireWrite,
  type StatementClass,
} from "./permissions.ts";
export type { FileUrlKey, Principal, TokenScope } from "./principal.ts";
export type { LoginStep } from "./provider_logins.ts";
export {
  keptSecret,
  keptSecretFault,
  keptSecretPath,
  missingSecretText,
  secretFault,
} from "./secret.ts";
export type { CreateTokenRequest } from "./service_tokens.ts";
export { concerns, type Revocation } from "./session_ends.ts";
export {
  type AlterUserRequest,
  type CreateUserRequest,
  type NewCredentials,
  roleFromWord,
} from "./user_admin.ts";
