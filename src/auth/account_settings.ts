/**
 * What people may do with accounts by themselves, without an administrator. Everything is off until
 * the configuration turns it on, and each refusal names the key that would.
 */
import { AuthError } from "./auth_error.ts";

export interface AccountSettings {
  /** The configuration key `auth.signup`. */
  readonly signUp: "off" | "open" | "invitation";
  /** `auth.guests` */
  readonly hasGuests: boolean;
  /** `auth.guest_days`: a guest who is not seen for this long is dropped. */
  readonly guestDays: number;
  /** `auth.own_password` */
  readonly mayChangePassword: boolean;
  /** `auth.own_deletion` */
  readonly mayDeleteAccount: boolean;
  /** `auth.password_reset` */
  readonly hasPasswordReset: boolean;
  /** `auth.email_login`: a verified address is a login name. */
  readonly isEmailLogin: boolean;
  /** `limits.signups_per_hour`, guests included; 0 means no limit. */
  readonly signUpsPerHour: number;
}

/** A message that the operator's program delivers to a person, by mail as a rule. */
export interface AccountNotice {
  readonly type: "email_taken" | "reset_password" | "verify_email";
  readonly userId: string;
  readonly email: string;
  /** The token that proves the receipt; absent from a notice that asks for nothing. */
  readonly token?: string;
  readonly expiresAtMs?: number;
}

/** Delivers a notice. Never waits and never fails. */
export type OnNotice = (notice: AccountNotice) => void;

/**
 * Returns the refusal of something that is not configured.
 *
 * @param what The beginning of the message, for example "Sign-up is off".
 * @param key The setting that turns it on.
 */
export function turnedOff(what: string, key: string): AuthError {
  return new AuthError("forbidden", `${what}: the operator turns it on with ${key}`);
}
