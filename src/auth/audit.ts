/**
 * Defines the events of the audit log: logins and all changes to rights and accounts. No event
 * contains a password, a token or any other secret.
 */
import type { Caller } from "./answers.ts";

export interface AuditEvent {
  /** The audited action, for example "login" or "drop table". */
  readonly action: string;
  /** The user who performed the audited action. For a failed login, the name that was given. */
  readonly actor: string;
  /** The object on which the audited action was performed. */
  readonly target: string;
  readonly outcome: "ok" | "denied" | "failed";
  readonly details?: Readonly<Record<string, string | number | boolean>>;
  readonly address?: string | undefined;
  /** The user whose account or rows the audited action affected. */
  readonly subject?: string;
}

/** Returns the source and the id of a request in the form of audit event fields. */
export function sourceOf(
  { address, requestId }: Pick<Caller, "address" | "requestId">,
  details: NonNullable<AuditEvent["details"]> = {},
): Pick<AuditEvent, "address" | "details"> {
  const all = { ...details, ...(requestId === undefined ? {} : { request_id: requestId }) };
  return { address, ...(Object.keys(all).length === 0 ? {} : { details: all }) };
}

/** Returns the audit event for a user's successful action on their own account. */
export function ownAction(
  userId: string,
  caller: Pick<Caller, "address" | "requestId">,
  action: string,
): AuditEvent {
  const about = { actor: userId, target: userId, subject: userId };
  return { ...sourceOf(caller), ...about, action, outcome: "ok" };
}

/** Records an audit event. Never blocks and never throws. */
export type OnAudit = (event: AuditEvent) => void;
