/**
 * The WebSockets of the server: a request that asks for one, and what becomes of it.
 *
 *     request ──upgrade──► ConnectionRequest ──open──► Connection ──close──► gone
 *
 * An error that a connection throws is a bug: it ends that connection and is passed to `onBug`.
 */
import type { ServerWebSocket, WebSocketHandler } from "bun";
import type { ServerOptions } from "../common/options.ts";
import type { Cors } from "../http/cors.ts";
import type { Exchange } from "../http/exchange.ts";
import { Connection } from "./connection.ts";
import type { ConnectionParts, ConnectionRequest } from "./connection_options.ts";
import type { Connections } from "./connections.ts";
import { HeldMessages } from "./held_messages.ts";
import { MessageTurns } from "./message_turns.ts";
import { SocketFlusher } from "./socket_flusher.ts";
import { connectionRequestFrom, upgradeRequired } from "./upgrade.ts";

/** What the upgrade asked for, until the socket is open. */
export type SocketState = ConnectionRequest | Connection;

export interface SocketsOptions
  extends Pick<
    ServerOptions,
    "auth" | "clock" | "config" | "live" | "log" | "onBug" | "receivedBytes"
  > {
  readonly cors: Cors;
  readonly connections: Connections;
  readonly nextNumber: () => number;
  /** Whether a socket that opens now is told at once that the server stops. */
  readonly isStopping: () => boolean;
  readonly onOpened: () => void;
}

type ServerSocket = ServerWebSocket<SocketState>;

export class Sockets {
  readonly #options: SocketsOptions;
  readonly #parts: ConnectionParts;
  /** Absent where the system does not count what it receives. */
  readonly #held: HeldMessages | undefined;

  constructor(options: SocketsOptions) {
    const { auth, clock, config, live, log, onBug, receivedBytes: received } = options;
    this.#options = options;
    const messageBytesMax = keptBytesMax(config);
    this.#held =
      received === undefined ? undefined : new HeldMessages({ clock, received, messageBytesMax });
    const budgetBytes = config.websocket.send_queue_bytes;
    const outbox = { budgetBytes, flusher: new SocketFlusher(clock, onBug) };
    const turns = new MessageTurns(clock, onBug);
    this.#parts = { config, auth, live, clock, log, outbox, turns };
  }

  /** For the runtime. */
  get handler(): WebSocketHandler<SocketState> {
    return {
      // Keep-alive is the connection's: it counts every frame, and closes with 1000.
      idleTimeout: 0,
      sendPings: false,
      perMessageDeflate: false,
      maxPayloadLength: keptBytesMax(this.#options.config),
      // The outbox bounds the queue. What the runtime dropped behind one row above the frame size
      // its client would miss: that its subscription has ended, for one.
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
   * Makes a socket of a request, in the turn in which it arrived.
   *
   * @throws {HttpError} What the request is refused with.
   */
  upgrade(exchange: Exchange, server: Bun.Server<SocketState>): void {
    const request = connectionRequestFrom(exchange, this.#options);
    const headers = { "X-Request-ID": exchange.requestId };
    if (server.upgrade(exchange.request, { data: request, headers })) return;
    throw upgradeRequired(exchange.request);
  }

  /** No socket is looked at any more. */
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
    // The request goes with this: a socket is open for long, and what it asked for is known.
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

  /** A bug in one connection ends that connection and goes up. */
  #guard(socket: ServerSocket, serve: () => void): void {
    try {
      serve();
    } catch (error) {
      this.#options.onBug(error, "a connection");
      socket.close(1011, "internal failure");
    }
  }
}

/** The runtime keeps so much of one message, and hangs up beyond it. */
function keptBytesMax({ limits }: ServerOptions["config"]): number {
  return 4 * limits.max_message_size;
}

function connectionOf({ data }: ServerSocket): Connection | undefined {
  return data instanceof Connection ? data : undefined;
}
