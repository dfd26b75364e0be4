/**
 * The client against a scripted server: what it sends, in which order, and what it makes of losses,
 * expired tokens and expired history.
 */
import { expect, test } from "bun:test";
import {
  type Client,
  type ClientEnvironment,
  ConnectionError,
  createClient,
  type HttpRequest,
  type LiveEvent,
  ServerError,
  type SocketHandlers,
} from "../../src/client/mod.ts";
import type { ClientMessage } from "../../src/protocol/mod.ts";

/** One WebSocket as the server sees it. */
class ServerSocket {
  readonly received: ClientMessage[] = [];
  isClosed = false;
  readonly handlers: SocketHandlers;

  constructor(handlers: SocketHandlers) {
    this.handlers = handlers;
  }

  tell(...messages: object[]): void {
    for (const message of messages) this.handlers.onText(JSON.stringify(message));
  }

  /** Opens, takes the token, and gives what was subscribed to. */
  welcome(): ClientMessage | undefined {
    this.handlers.onOpen();
    this.tell({ type: "auth_success", user: "ada", role: "dba", protocol: {} });
    return this.received.at(-1);
  }
}

interface Timer {
  readonly delayMs: number;
  readonly callback: () => void;
}

type Answer = { status: number; body: unknown };

class FakeServer implements ClientEnvironment {
  readonly requests: { path: string; request: HttpRequest }[] = [];
  readonly sockets: ServerSocket[] = [];
  readonly timers = new Set<Timer>();
  answer: (path: string, request: HttpRequest) => Answer = (path) =>
    path.endsWith("/sql") ? ok({ results: [], status: "success", took: 1 }) : ok(loginBody("t1"));

  async fetch(
    url: string,
    request: HttpRequest,
  ): Promise<{ ok: boolean; status: number; json(): Promise<unknown> }> {
    const path = new URL(url).pathname;
    this.requests.push({ path, request });
    const { body, status } = this.answer(path, request);
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

  get socket(): ServerSocket {
    const socket = this.sockets.at(-1);
    if (socket === undefined) throw new Error("No socket was opened");
    return socket;
  }

  /** Fires the timers that wait, as if their time had come; gives their delays. */
  fire(): number[] {
    const due = [...this.timers];
    this.timers.clear();
    for (const { callback } of due) callback();
    return due.map(({ delayMs }) => delayMs);
  }
}

function ok(body: unknown): Answer {
  return { status: 200, body };
}

function loginBody(token: string): object {
  return {
    access_token: token,
    refresh_token: `refresh ${token}`,
    user: {},
    admin_ui_access: true,
  };
}

function expired(): Answer {
  const error = { code: "TOKEN_EXPIRED", message: "The token has expired" };
  return { status: 401, body: { results: [], status: "error", took: 0, error } };
}

const SCHEMA = [
  { name: "id", data_type: "BigInt", index: 0, flags: ["pk"] },
  { name: "_seq", data_type: "BigInt", index: 1 },
];

function ack(id: string): object {
  const batch_control = { batch_num: 0, has_more: true, status: "loading", last_seq_id: null };
  return {
    type: "subscription_ack",
    subscription_id: id,
    total_rows: 0,
    batch_control,
    schema: SCHEMA,
  };
}

function batch(id: string, seqs: number[], lastSeq: number, hasMore = false): object {
  const status = hasMore ? "loading" : "ready";
  return {
    type: "initial_data_batch",
    subscription_id: id,
    rows: seqs.map((seq) => ({ id: seq, _seq: seq })),
    batch_control: { batch_num: 0, has_more: hasMore, status, last_seq_id: lastSeq },
  };
}

function inserted(id: string, ...seqs: number[]): object {
  const rows = seqs.map((seq) => ({ id: seq, _seq: seq }));
  return { type: "change", subscription_id: id, change_type: "insert", rows, ts: 1 };
}

function ended(id: string, code: string): object {
  return { type: "error", subscription_id: id, code, message: code, ended: true };
}

async function loggedIn(server: FakeServer): Promise<Client> {
  const client = createClient({ url: "http://db.test:2900/", environment: server });
  await client.session.login("ada", "correct horse 9");
  return client;
}

/** Tells events in a few letters: `+3` a row, `c4` a change of rows, words for the rest. */
function told(events: LiveEvent[]): string[] {
  return events.map((event) => {
    if (event.type === "status") return event.status;
    if (event.type === "start")
      return event.resumedFrom === undefined ? "start" : `from ${event.resumedFrom}`;
    const rows = event.type === "rows" ? event.rows : event.change.rows;
    return rows.map(({ _seq: seq }) => `${event.type === "rows" ? "+" : "c"}${String(seq)}`).join();
  });
}

async function startLive(
  server: FakeServer,
): Promise<{ client: Client; events: LiveEvent[]; id: string }> {
  const client = await loggedIn(server);
  const events: LiveEvent[] = [];
  client.live("SELECT * FROM a.t", { onEvent: (event) => events.push(event) });
  const message = server.socket.welcome();
  const id = message?.type === "subscribe" ? message.subscription.id : "";
  return { client, events, id };
}

test("query gives rows by column name, with the token of the log-in", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const schema = [{ name: "id" }, { name: "text" }];
  server.answer = () =>
    ok({ results: [{ schema, rows: [[7, null]] }], status: "success", took: 1 });
  expect(await client.query("SELECT id, text FROM a.t WHERE id = $1", [7])).toEqual([
    { id: 7, text: null },
  ]);
  const { request } = server.requests.at(-1) ?? {};
  expect(request?.headers["Authorization"]).toBe("Bearer t1");
  expect(JSON.parse(request?.body ?? "")).toEqual({
    sql: "SELECT id, text FROM a.t WHERE id = $1",
    params: [7],
  });
});

test("execute throws what the server refused, with what ran before, also when it came late", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const entry = { row_count: 1, as_user: "ada" };
  const error = { code: "INVALID_SQL", message: "no", position: 9, hint: "yes", statement: 1 };
  for (const status of [400, 200]) {
    server.answer = () => ({ status, body: { results: [entry], status: "error", took: 1, error } });
    const thrown = await client.execute("SELECT 1; SELEC").catch((failure: unknown) => failure);
    expect(thrown).toBeInstanceOf(ServerError);
    expect(thrown).toMatchObject({
      code: "INVALID_SQL",
      position: 9,
      hint: "yes",
      results: [entry],
    });
  }
});

test("execute tells an unreachable server from a refusal", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  server.answer = () => {
    throw new TypeError("Failed to fetch");
  };
  const thrown = await client.execute("SELECT 1").catch((failure: unknown) => failure);
  expect(thrown).toBeInstanceOf(ConnectionError);
});

test("an expired token is refreshed once for all requests that met it, each then repeated", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  server.answer = (path, { headers }) => {
    if (path.endsWith("/refresh")) return ok(loginBody("t2"));
    return headers["Authorization"] === "Bearer t2"
      ? ok({ results: [], status: "success", took: 1 })
      : expired();
  };
  await Promise.all([client.execute("SELECT 1"), client.execute("SELECT 2")]);
  const paths = server.requests.map(({ path }) => path.split("/").at(-1));
  expect(paths).toEqual(["login", "sql", "sql", "refresh", "sql", "sql"]);
  const refresh = server.requests.find(({ path }) => path.endsWith("/refresh"));
  expect(JSON.parse(refresh?.request.body ?? "")).toEqual({ refresh_token: "refresh t1" });
});

test("a refused refresh signs out", async () => {
  const server = new FakeServer();
  let signedOut = 0;
  const client = createClient({
    url: "http://db.test",
    session: "cookie",
    environment: server,
    onSignedOut: () => {
      signedOut += 1;
    },
  });
  await client.session.login("ada", "x");
  server.answer = (path) =>
    path.endsWith("/refresh")
      ? { status: 401, body: { error: "unauthorized", message: "no" } }
      : expired();
  const thrown = await client.execute("SELECT 1").catch((failure: unknown) => failure);
  expect(thrown).toMatchObject({ code: "unauthorized" });
  expect(signedOut).toBe(1);
  expect(client.session.accessToken).toBeUndefined();
});

test("live authenticates by message, asks for each batch, and tells rows before changes", async () => {
  const server = new FakeServer();
  const { events, id } = await startLive(server);
  expect(server.socket.received[0]).toMatchObject({ type: "authenticate", token: "t1" });
  server.socket.tell(ack(id), batch(id, [1, 2], 2, true));
  expect(server.socket.received.at(-1)).toEqual({ type: "next_batch", subscription_id: id });
  server.socket.tell(batch(id, [3], 5), inserted(id, 6));
  expect(told(events)).toEqual(["start", "loading", "+1,+2", "+3", "ready", "c6"]);
});

test("live resumes from the last position after a loss, and drops what comes twice", async () => {
  const server = new FakeServer();
  const { events, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 4), inserted(id, 6));
  const lost = server.socket;
  lost.handlers.onClose(1006);
  expect(server.fire()).toContain(150);
  const message = server.socket.welcome();
  expect(message).toMatchObject({ subscription: { options: { from_seq_id: 6 } } });
  events.length = 0;
  // What an old socket still says is not heard.
  lost.tell(inserted(id, 7));
  server.socket.tell(ack(id), batch(id, [6, 8], 9), inserted(id, 9, 10));
  expect(told(events)).toEqual(["from 6", "loading", "+8", "ready", "c10"]);
});

test("live resumes a quiet table from what the heartbeat tells, and leaves a dead connection", async () => {
  const server = new FakeServer();
  const { events, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [], 4));
  expect(server.fire()).toEqual([20_000]);
  server.socket.tell({ type: "pong", id: "heartbeat", positions: { [id]: 50 } });
  expect(server.fire()).toEqual([20_000]);
  // The second ping is not answered.
  expect(server.fire()).toEqual([10_000]);
  expect(server.socket.isClosed).toBe(true);
  expect(told(events).at(-1)).toBe("offline");
  server.fire();
  expect(server.socket.welcome()).toMatchObject({ subscription: { options: { from_seq_id: 50 } } });
});

test("live starts anew when history has expired, and ends at a refusal", async () => {
  const server = new FakeServer();
  const { client, events, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 4), ended(id, "RESUME_EXPIRED"));
  const again = server.socket.received.at(-1);
  expect(again).toMatchObject({ type: "subscribe", subscription: { id, options: {} } });
  expect(JSON.stringify(again)).not.toContain("from_seq_id");
  server.socket.tell(ack(id), batch(id, [1, 2], 9), ended(id, "NOT_FOUND"));
  expect(told(events).slice(-5)).toEqual(["start", "loading", "+1,+2", "ready", "ended"]);
  expect(server.socket.isClosed).toBe(true);
  client.close();
});

test("live waits longer after each failure, and refreshes the token after a refusal", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  client.live("SELECT * FROM a.t", { onEvent: () => undefined });
  const delays: number[] = [];
  for (let attempt = 0; attempt < 10; attempt += 1) {
    server.socket.handlers.onClose(1006);
    delays.push(...server.fire());
  }
  expect(delays).toEqual([150, 300, 600, 1200, 2400, 4800, 9600, 19_200, 22_500, 22_500]);
  server.answer = () => ok(loginBody("t3"));
  server.socket.handlers.onOpen();
  server.socket.tell({ type: "auth_error", message: "no", code: "TOKEN_EXPIRED" });
  await Bun.sleep(0);
  server.fire();
  server.socket.handlers.onOpen();
  expect(server.socket.received).toEqual([expect.objectContaining({ token: "t3" })]);
});

test("queries share a socket; the last to close closes it", async () => {
  const server = new FakeServer();
  const { client, id } = await startLive(server);
  const second = client.live("SELECT * FROM a.u", { onEvent: () => undefined });
  expect(server.sockets).toHaveLength(1);
  second.close();
  expect(server.socket.received.at(-1)?.type).toBe("unsubscribe");
  expect(server.socket.isClosed).toBe(false);
  client.close();
  expect(server.socket.isClosed).toBe(true);
  // Nothing more is heard, and nothing is tried again.
  server.socket.tell(inserted(id, 99));
  expect(server.fire()).toEqual([]);
  expect(server.sockets).toHaveLength(1);
});
