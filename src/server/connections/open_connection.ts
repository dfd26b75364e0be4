/**
 * The interface of every open connection, whatever its transport.
 */
import type { Principal } from "../../auth/mod.ts";
import { type Clock, wallMsAt } from "../../base/clock.ts";
import type { ConnectionRow } from "../../sql/mod.ts";

export interface OpenConnection {
  readonly address: string;
  readonly transport: ConnectionRow["transport"];
  /** The number of bytes that have not been sent to the network yet. */
  readonly queuedBytes: number;
  /** The user of the connection; undefined before authentication. */
  readonly principal: Principal | undefined;
  /** Returns the row of `system.connections`; undefined while there is nothing to show. */
  row(): ConnectionRow | undefined;
  /** Called about once a second for each connection. */
  tick(): void;
  /** Ends the connection because its session was revoked. */
  revoke(): void;
  /** Executes KILL CONNECTION. */
  kill(): void;
  /** Handles the server's shutdown: the connection closes once its queue has been sent. */
  shutDown(): void;
  /** Closes the connection without waiting for its queue to be sent. */
  closeNow(): void;
}

/** How long a connection may continue after its token has expired, in milliseconds. */
const EXPIRY_GRACE_MS = 60_000;

/** The reason given to the client when a connection ends together with its session. */
export interface SessionEnd {
  readonly code: "TOKEN_EXPIRED" | "TOKEN_REVOKED";
  readonly message: string;
}

export const REVOKED: SessionEnd = {
  code: "TOKEN_REVOKED",
  message: "The session has ended; log in again",
};

export const EXPIRED: SessionEnd = {
  code: "TOKEN_EXPIRED",
  message: "The token has expired; connect again with a new one",
};

/** Returns whether a connection's token expired so long ago that the connection must end. */
export function isOverdue(clock: Clock, { tokenEndMs }: Principal): boolean {
  return tokenEndMs !== undefined && clock.nowMs() >= tokenEndMs + EXPIRY_GRACE_MS;
}

type WallTimes = "openedAtMs" | "lastSeenAtMs";

/**
 * Builds the `system.connections` row for a connection. The times that the connection has recorded
 * are readings of the monotonic clock.
 */
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
