/**
 * Who calls, and what they may do.
 */
export type {
  Caller,
  MeAnswer,
  SessionAnswer,
  SetupAnswer,
  StatusAnswer,
  UserAnswer,
} from "./answers.ts";
export type { AuditEvent, OnAudit } from "./audit.ts";
export { Auth, type AuthOptions, type AuthSettings } from "./auth.ts";
export { type AuthCode, AuthError } from "./auth_error.ts";
export { type PasswordPolicy, passwordFault } from "./password.ts";
export {
  mayRead,
  mayReadFilesOf,
  mayReadHistory,
  mayRun,
  ownsNamespace,
  requireAlter,
  requireCreateTable,
  requireDrop,
  requireRead,
  requireRun,
  requireWrite,
  type StatementClass,
  type TableRight,
} from "./permissions.ts";
export type { Principal } from "./principal.ts";
export {
  isLoopbackHost,
  keptSecret,
  keptSecretFault,
  keptSecretPath,
  type SecretFault,
  secretFault,
} from "./secret.ts";
export type { OnRevoked, Revocation } from "./session_ends.ts";
export {
  type AlterUserRequest,
  type CreateUserRequest,
  type NewCredentials,
  roleFromWord,
} from "./user_admin.ts";
