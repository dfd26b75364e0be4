/**
 * Defines the account operations that people may perform without an administrator. Every operation
 * is disabled unless the configuration enables it. The error for a disabled operation names the
 * configuration key that would enable it.
 */
import { AuthError } from "./auth_error.ts";

export interface AccountSettings {
  /** The configuration key `auth.signup`: who may create an account. */
  readonly signUp: "off" | "open" | "invitation";
  /** The configuration key `auth.guests`: whether people may use guest accounts. */
  readonly hasGuests: boolean;
  /**
   * The configuration key `auth.guest_days`: the number of days without use after which a guest
   * account is dropped.
   */
  readonly guestDays: number;
  /** The configuration key `auth.own_password`: whether users may change their own password. */
  readonly mayChangePassword: boolean;
  /** The configuration key `auth.own_deletion`: whether users may delete their own account. */
  readonly mayDeleteAccount: boolean;
  /**
   * The configuration key `auth.password_reset`: whether users may reset a forgotten password by
   * mail.
   */
  readonly hasPasswordReset: boolean;
  /** The configuration key `auth.email_login`: whether a verified address is a login name. */
  readonly isEmailLogin: boolean;
  /**
   * The configuration key `limits.signups_per_hour`, the maximum number of new accounts per hour,
   * including guest accounts; 0 means no limit.
   */
  readonly signUpsPerHour: number;
}

/** A message that the operator's program delivers to a person, usually by mail. */
export interface AccountNotice {
  readonly type: "email_taken" | "reset_password" | "verify_email";
  readonly userId: string;
  readonly email: string;
  /**
   * A token that proves that the recipient received the notice. Absent from a notice that requires
   * no action.
   */
  readonly token?: string;
  readonly expiresAtMs?: number;
}

/** Delivers a notice. Never blocks and never throws. */
export type OnNotice = (notice: AccountNotice) => void;

/**
 * Returns the error for an operation that the configuration does not enable.
 *
 * @param what The beginning of the message, for example "Sign-up is disabled".
 * @param key The configuration key that enables the operation.
 */
export function turnedOff(what: string, key: string): AuthError {
  return new AuthError("forbidden", `${what}; the operator can enable it with ${key}`);
}
