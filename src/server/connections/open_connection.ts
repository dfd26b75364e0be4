/**
 * What the server asks of a connection that stays open, whatever its transport.
 */
import type { Principal } from "../../auth/mod.ts";
import { type Clock, wallMsAt } from "../../base/clock.ts";
import type { ConnectionRow } from "../../sql/mod.ts";

export interface OpenConnection {
  readonly address: string;
  readonly transport: ConnectionRow["transport"];
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

type WallTimes = "openedAtMs" | "lastSeenAtMs";

/** The row of a connection, which knows its times by the monotonic clock. */
export function connectionRow(
  clock: Clock,
  {
    lastSeenMs,
    openedMs,
    principal,
    ...rest
  }: Omit<ConnectionRow, "userId" | "role" | WallTimes> & {
    readonly principal: Principal;
    readonly openedMs: number;
    readonly lastSeenMs: number;
  },
): ConnectionRow {
  return {
    ...rest,
    userId: principal.userId,
    role: principal.role,
    openedAtMs: wallMsAt(clock, openedMs),
    lastSeenAtMs: wallMsAt(clock, lastSeenMs),
  };
}
