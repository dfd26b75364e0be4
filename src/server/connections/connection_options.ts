/**
 * What a connection is made from, apart from it, so that what serves a part of it knows its shape
 * and not the connection. What all have in common is one object: an idle connection holds little.
 */
import type { Auth, Caller } from "../../auth/mod.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Peer } from "../../base/received_bytes.ts";
import type { LiveEngine } from "../../live/mod.ts";
import type { ServerConfig } from "../common/options.ts";
import type { FrameFormat } from "../frames/encode.ts";
import type { MessageTurns } from "./message_turns.ts";
import type { OutboxParts, Socket } from "./outbox.ts";

/** What the upgrade request asked for. */
export interface ConnectionRequest {
  readonly caller: Caller;
  /** The Authorization header of the upgrade, if it had one. */
  readonly bearer: string | undefined;
  readonly format: FrameFormat;
  /** `compress=false`: no message of the client turns gzip on again. */
  readonly isGzipForbidden: boolean;
  /** The other end of its TCP connection; undefined if that is already gone. */
  readonly peer: Peer | undefined;
}

/** What all connections of a server share. */
export interface ConnectionParts {
  readonly config: Pick<ServerConfig, "limits" | "websocket">;
  readonly auth: Auth;
  readonly live: LiveEngine;
  readonly clock: Clock;
  readonly log: Log;
  /** Shared by all connections. */
  readonly turns: MessageTurns;
  readonly outbox: OutboxParts;
}

export interface ConnectionOptions {
  /** Of this server's connections; kept as a number, which costs nothing. */
  readonly number: number;
  readonly socket: Socket;
  readonly request: ConnectionRequest;
  readonly parts: ConnectionParts;
}
