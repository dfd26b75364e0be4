/**
 * What is worth telling whoever asks later who did what: logins, and all that changes who may do
 * what. Nothing here holds a password, a token or another secret.
 */
import type { Caller } from "./answers.ts";

export interface AuditEvent {
  /** What was tried, e.g. "login" or "drop table". */
  readonly action: string;
  /** Who tried; of a login that failed the name that was given. */
  readonly actor: string;
  /** What it was done to. */
  readonly target: string;
  readonly outcome: "ok" | "denied" | "failed";
  readonly details?: Readonly<Record<string, string | number | boolean>>;
  readonly address?: string | undefined;
  /** The user whose account or rows it was about. */
  readonly subject?: string;
}

/** From where a request came, and which it was, as members of an event. */
export function sourceOf(
  { address, requestId }: Pick<Caller, "address" | "requestId">,
  details: NonNullable<AuditEvent["details"]> = {},
): Pick<AuditEvent, "address" | "details"> {
  const all = { ...details, ...(requestId === undefined ? {} : { request_id: requestId }) };
  return { address, ...(Object.keys(all).length === 0 ? {} : { details: all }) };
}

/** Takes an event without a wait and without failing. */
export type OnAudit = (event: AuditEvent) => void;
