/**
 * Who is asking: the authenticated caller, and on whose behalf.
 *
 * The identity in `userId`, `role` and `owner` decides what a statement may do and which rows it
 * sees; the actor is who logged in. They differ only inside EXECUTE AS.
 */
import type { Role } from "../catalog/mod.ts";

export interface Principal {
  readonly userId: string;
  readonly role: Role;
  /**
   * Account number that owns this user's rows; undefined for an id that has never written, whose
   * USER tables are empty.
   */
  readonly owner: number | undefined;
  /** Who logged in. */
  readonly actorId: string;
  readonly actorRole: Role;
  /** Set inside EXECUTE AS, where SHARED tables cannot be written. */
  readonly isImpersonated: boolean;
  /** Login session, for revocation; empty for internal callers. */
  readonly sessionId: string;
}
