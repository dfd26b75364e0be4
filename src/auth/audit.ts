/**
 * What is worth telling whoever asks later who did what: logins, and all that changes who may do
 * what. Nothing here holds a password, a token or another secret.
 */
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

/** Takes an event without a wait and without failing. */
export type OnAudit = (event: AuditEvent) => void;
