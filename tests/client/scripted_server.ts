/**
 * Implements a server that follows a script: each test determines its responses, the messages on
 * its sockets, and when timers fire.
 */
import {
  type Client,
  type ClientEnvironment,
  createClient,
  type HttpRequest,
  type LiveEvent,
  type SocketHandlers,
} from "../../src/client/mod.ts";
import type { ClientMessage, SchemaField } from "../../src/protocol/mod.ts";

/** A WebSocket from the server's point of view. */
export class ServerSocket {
  readonly received: ClientMessage[] = [];
  isClosed = false;
  readonly handlers: SocketHandlers;

  constructor(handlers: SocketHandlers) {
    this.handlers = handlers;
  }

  tell(...messages: object[]): void {
    for (const message of messages) this.handlers.onText(JSON.stringify(message));
  }

  /** Opens the socket, accepts the token, and returns the client's subscriptions. */
  welcome(): ClientMessage | undefined {
    this.handlers.onOpen();
    this.tell({ type: "auth_success", user: "ada", role: "dba", protocol: {} });
    return this.received.at(-1);
  }
}

export interface Timer {
  readonly delayMs: number;
  readonly callback: () => void;
}

export type Answer = { status: number; body: unknown };

export class FakeServer implements ClientEnvironment {
  readonly requests: { path: string; request: HttpRequest }[] = [];
  readonly sockets: ServerSocket[] = [];
  readonly timers: Set<Timer> = new Set();
  nowMs = 1_800_000_000_000;
  answer: (path: string, request: HttpRequest) => Answer | Promise<Answer> = (path) =>
    path.endsWith("/sql") ? ok({ results: [], status: "success", took: 1 }) : ok(loginBody("t1"));

  async fetch(
    url: string,
    request: HttpRequest,
  ): Promise<{ ok: boolean; status: number; json(): Promise<unknown> }> {
    const path = new URL(url).pathname;
    this.requests.push({ path, request });
    const { body, status } = await this.answer(path, request);
    return { ok: status < 400, status, json: async () => body };
  }

  connect(_url: string, handlers: SocketHandlers): { send(text: string): void; close(): void } {
    const socket = new ServerSocket(handlers);
    this.sockets.push(socket);
    return {
      send: (text) => socket.received.push(JSON.parse(text) as ClientMessage),
      close: () => {
        socket.isClosed = true;
      },
    };
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { delayMs, callback };
    this.timers.add(timer);
    return () => this.timers.delete(timer);
  }

  random(): number {
    return 0.5;
  }

  now(): number {
    return this.nowMs;
  }

  get socket(): ServerSocket {
    const socket = this.sockets.at(-1);
    if (socket === undefined) throw new Error("No socket was opened");
    return socket;
  }

  /** Fires the pending timers immediately, and returns their delays. */
  fire(): number[] {
    const due = [...this.timers];
    this.timers.clear();
    for (const { callback } of due) callback();
    return due.map(({ delayMs }) => delayMs);
  }
}

export function ok(body: unknown): Answer {
  return { status: 200, body };
}

export function loginBody(token: string, id = "ada"): object {
  return {
    access_token: token,
    refresh_token: `refresh ${token}`,
    user: { id },
    admin_ui_access: true,
  };
}

export function expired(code = "TOKEN_EXPIRED"): Answer {
  const error = { code, message: "no" };
  return { status: 401, body: { results: [], status: "error", took: 0, error } };
}

export function busy(): Answer {
  const error = { code: "STARTING", message: "soon", retry_after_seconds: 7 };
  return { status: 503, body: { results: [], status: "error", took: 0, error } };
}

const SCHEMA: readonly SchemaField[] = [
  { name: "id", data_type: "BigInt", index: 0, flags: ["pk"] },
  { name: "_seq", data_type: "BigInt", index: 1 },
];

export function ack(id: string): object {
  const batch_control = { batch_num: 0, has_more: true, status: "loading", last_seq_id: null };
  return {
    type: "subscription_ack",
    subscription_id: id,
    total_rows: 0,
    batch_control,
    schema: SCHEMA,
  };
}

export function batch(id: string, seqs: number[], lastSeq: number, hasMore = false): object {
  const status = hasMore ? "loading" : "ready";
  return {
    type: "initial_data_batch",
    subscription_id: id,
    rows: seqs.map((seq) => ({ id: seq, _seq: seq })),
    batch_control: { batch_num: 0, has_more: hasMore, status, last_seq_id: lastSeq },
  };
}

export function inserted(id: string, ...seqs: number[]): object {
  const rows = seqs.map((seq) => ({ id: seq, _seq: seq }));
  return { type: "change", subscription_id: id, change_type: "insert", rows, ts: 1 };
}

export function ended(id: string, code: string): object {
  return { type: "error", subscription_id: id, code, message: code, ended: true };
}

export async function loggedIn(server: FakeServer): Promise<Client> {
  const client = createClient({ url: "http://db.test:2900/", environment: server });
  await client.session.login("ada", "correct horse 9");
  return client;
}

/** Abbreviates events: `+3` for a row, `c4` for a changed row, and words for all other events. */
export function told(events: LiveEvent[]): string[] {
  return events.map((event) => {
    if (event.type === "status") return event.status;
    if (event.type === "start")
      return event.resumedFrom === undefined ? "start" : `from ${event.resumedFrom}`;
    const rows = event.type === "rows" ? event.rows : event.change.rows;
    return rows.map(({ _seq: seq }) => `${event.type === "rows" ? "+" : "c"}${Number(seq)}`).join();
  });
}

export async function startLive(
  server: FakeServer,
): Promise<{ client: Client; events: LiveEvent[]; id: string }> {
  const client = await loggedIn(server);
  const events: LiveEvent[] = [];
  client.live("SELECT * FROM a.t", { onEvent: (event) => events.push(event) });
  const message = server.socket.welcome();
  const id = message?.type === "subscribe" ? message.subscription.id : "";
  return { client, events, id };
}
