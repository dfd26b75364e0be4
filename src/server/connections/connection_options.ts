/**
 * Defines the dependencies of a connection. They are in a separate file so that the parts of a
 * connection can import them without importing the connection itself. Everything that connections
 * share is in a single object, which keeps idle connections small.
 */
import type { Auth, Caller } from "../../auth/mod.ts";
import type { OnBug } from "../../base/bugs.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Peer } from "../../base/received_bytes.ts";
import type { LiveEngine } from "../../live/mod.ts";
import type { TopicConsumers } from "../../topics/mod.ts";
import type { ServerConfig } from "../contract/options.ts";
import type { FrameFormat } from "../frames/encode.ts";
import type { MessageTimeSlices } from "./message_time_slices.ts";
import type { OutboxParts, OutboxSocket } from "./outbox.ts";

/** The information that a WebSocket's upgrade request contained. */
export interface ConnectionRequest {
  readonly caller: Caller;
  /** The Authorization header of the upgrade request; undefined if it had none. */
  readonly bearer: string | undefined;
  readonly format: FrameFormat;
  /**
   * Whether the request contained `compress=false`, which prevents later messages from enabling
   * gzip.
   */
  readonly isGzipForbidden: boolean;
  /** The other end of the TCP connection; undefined if it has already disconnected. */
  readonly peer: Peer | undefined;
}

/** The objects shared by all connections of a server. */
export interface ConnectionParts {
  readonly config: Pick<ServerConfig, "limits" | "websocket">;
  readonly auth: Auth;
  readonly live: LiveEngine;
  readonly topics: TopicConsumers;
  readonly onBug: OnBug;
  readonly clock: Clock;
  readonly log: Log;
  /** The scheduler for client messages, shared by all connections. */
  readonly slices: MessageTimeSlices;
  readonly outbox: OutboxParts;
}

export interface ConnectionOptions {
  /**
   * A number that is unique on this server. Unlike a string, a number takes up no additional
   * memory.
   */
  readonly number: number;
  readonly socket: OutboxSocket;
  readonly request: ConnectionRequest;
  readonly parts: ConnectionParts;
}
