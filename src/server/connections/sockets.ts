/**
 * Manages the server's WebSockets: turns upgrade requests into connections, and passes events to
 * them.
 *
 *     request ──upgrade──► ConnectionRequest ──open──► Connection ──close──► gone
 *
 * An error thrown by a connection is a bug: the connection ends, and the error is passed to
 * `onBug`.
 */
import type { ServerWebSocket, WebSocketHandler } from "bun";
import type { ServerOptions } from "../contract/options.ts";
import { boundsOf } from "../http/body_ledger.ts";
import type { Cors } from "../http/cors.ts";
import type { Exchange } from "../http/exchange.ts";
import { Connection } from "./connection.ts";
import type { ConnectionParts, ConnectionRequest } from "./connection_options.ts";
import type { Connections } from "./connections.ts";
import { HeldMessages } from "./held_messages.ts";
import { MessageTimeSlices } from "./message_time_slices.ts";
import type { OutboxParts } from "./outbox.ts";
import type { SendBudget } from "./send_budget.ts";
import { SocketFlusher } from "./socket_flusher.ts";
import { connectionRequestFrom, upgradeRequired } from "./upgrade.ts";

/**
 * The state of a socket: the options of the upgrade request until the socket is open, and from
 * then on the connection.
 */
export type SocketState = ConnectionRequest | Connection;

export interface SocketsOptions
  extends Pick<
    ServerOptions,
    "auth" | "clock" | "config" | "live" | "log" | "memory" | "onBug" | "receivedBytes" | "topics"
  > {
  readonly cors: Cors;
  readonly connections: Connections;
  readonly sendBudget: SendBudget;
  readonly nextNumber: () => number;
  /**
   * Returns whether the server is stopping. If so, a newly opened socket is told so immediately.
   */
  readonly isStopping: () => boolean;
  readonly onOpened: () => void;
}

type ServerSocket = ServerWebSocket<SocketState>;

export class Sockets {
  readonly #options: SocketsOptions;
  readonly #parts: ConnectionParts;
  /**
   * The limits on the memory for messages; undefined if the system does not count received bytes.
   */
  readonly #held: HeldMessages | undefined;

  constructor(options: SocketsOptions) {
    const { auth, clock, config, live, log, memory, onBug, sendBudget, topics } = options;
    const { receivedBytes: received } = options;
    this.#options = options;
    const messageBytesMax = keptBytesMax(config);
    const bounds = boundsOf(memory.messageBytes);
    this.#held =
      received === undefined
        ? undefined
        : new HeldMessages({ clock, received, messageBytesMax, bounds });
    const flusher = new SocketFlusher(clock, onBug);
    const outbox: OutboxParts = {
      flusher,
      get budgetBytes() {
        return sendBudget.queueBytes;
      },
    };
    const slices = new MessageTimeSlices(clock, onBug);
    this.#parts = { config, auth, live, topics, clock, log, onBug, outbox, slices };
  }

  /** The memory taken up by unfinished and waiting messages, in bytes. */
  get heldBytes(): number {
    return this.#held?.heldBytes ?? 0;
  }

  get handler(): WebSocketHandler<SocketState> {
    return {
      // The runtime's idle timeout is off, because the connection handles keep-alive itself.
      idleTimeout: 0,
      sendPings: false,
      perMessageDeflate: false,
      maxPayloadLength: keptBytesMax(this.#options.config),
      // The outbox limits the queue. A limit here would make the runtime drop the frames after a
      // large row, so the client would miss messages, such as the one that ends its subscription.
      backpressureLimit: 0,
      closeOnBackpressureLimit: false,
      open: (socket) => this.#guard(socket, () => this.#opened(socket)),
      message: (socket, frame) => this.#guard(socket, () => connectionOf(socket)?.receive(frame)),
      drain: (socket) => this.#guard(socket, () => connectionOf(socket)?.drained()),
      ping: (socket) => this.#guard(socket, () => connectionOf(socket)?.touch()),
      pong: (socket) => this.#guard(socket, () => connectionOf(socket)?.touch()),
      close: (socket) => this.#guard(socket, () => this.#closed(socket)),
    };
  }

  /**
   * Upgrades a request, in the tick in which it arrived.
   *
   * @throws {HttpError} If the request is refused.
   */
  upgrade(exchange: Exchange, server: Bun.Server<SocketState>): void {
    const request = connectionRequestFrom(exchange, this.#options);
    const headers = { "X-Request-ID": exchange.requestId };
    if (server.upgrade(exchange.request, { data: request, headers })) return;
    throw upgradeRequired(exchange.request);
  }

  /** Stops checking the sockets. */
  stop(): void {
    this.#held?.stop();
  }

  #opened(socket: ServerSocket): void {
    const request = socket.data;
    if (request instanceof Connection) return;
    const { connections, isStopping, nextNumber, onOpened } = this.#options;
    const connection = new Connection({
      number: nextNumber(),
      socket,
      request,
      parts: this.#parts,
    });
    // A socket's state may exist for a long time, so it must not keep the request alive.
    socket.data = connection;
    connections.add(connection);
    if (request.peer !== undefined) this.#held?.add(connection, request.peer);
    onOpened();
    connection.open();
    if (isStopping()) connection.shutDown();
  }

  #closed(socket: ServerSocket): void {
    const connection = connectionOf(socket);
    if (connection === undefined) return;
    this.#options.connections.remove(connection);
    this.#held?.remove(connection);
    connection.closed();
  }

  /** Ends a connection after a bug, and rethrows the error. */
  #guard(socket: ServerSocket, serve: () => void): void {
    try {
      serve();
    } catch (error) {
      this.#options.onBug(error, "a connection");
      socket.close(1011, "internal failure");
    }
  }
}

/**
 * Returns the maximum number of bytes that the runtime buffers for a message before it
 * disconnects.
 */
function keptBytesMax({ limits }: ServerOptions["config"]): number {
  return 4 * limits.max_message_size;
}

function connectionOf({ data }: ServerSocket): Connection | undefined {
  return data instanceof Connection ? data : undefined;
}
