/**
 * What the server asks of a connection that stays open, whatever its transport.
 */
import type { Principal } from "../auth/mod.ts";
import type { ConnectionRow } from "../sql/mod.ts";

export interface OpenConnection {
  readonly address: string;
  /** Who is connected; undefined before authentication. */
  readonly principal: Principal | undefined;
  /** What `system.connections` shows; undefined while there is nothing to show. */
  row(): ConnectionRow | undefined;
  /** Called about once a second. */
  tick(): void;
  /** Its tokens are worth nothing any more. */
  revoke(): void;
  /** KILL CONNECTION. */
  kill(): void;
  /** The server stops: closes once what is queued has been sent. */
  shutDown(): void;
  /** Closes without waiting any longer for the queue. */
  closeNow(): void;
}
