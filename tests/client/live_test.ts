/**
 * Tests the client's live queries against a scripted server: their messages, their order, and
 * their responses to lost connections, expired history and a server without capacity.
 */
import { expect, test } from "bun:test";
import { createClient, type LiveEvent } from "../../src/client/mod.ts";
import {
  ack,
  batch,
  ended,
  FakeServer,
  inserted,
  loggedIn,
  loginBody,
  ok,
  startLive,
  told,
} from "./scripted_server.ts";

/**
 * Plays a batch, a lost connection and a change to handlers that throw.
 * @returns The errors, each of which was rethrown in a separate tick.
 */
function playBatchLossAndChange(server: FakeServer, id: string): unknown[] {
  const thrown: unknown[] = [];
  const fire = (): void => {
    for (const timer of [...server.timers].toSorted((a, b) => a.delayMs - b.delayMs)) {
      // In a healthy client, none of these timers is due yet except the reconnect timer.
      if (timer.delayMs >= 10_000) continue;
      server.timers.delete(timer);
      try {
        timer.callback();
      } catch (error) {
        thrown.push(error);
      }
    }
  };
  server.socket.tell(ack(id), batch(id, [1, 2], 2, true));
  expect(server.socket.received.at(-1)).toEqual({ type: "next_batch", subscription_id: id });
  server.socket.tell(batch(id, [3], 5), inserted(id, 6));
  server.socket.handlers.onClose(1006);
  fire();
  expect(server.socket.welcome()).toMatchObject({ subscription: { options: { from_seq_id: 6 } } });
  server.socket.tell(ack(id), batch(id, [], 9), inserted(id, 10));
  fire();
  return thrown;
}

test("live authenticates by message, requests each batch, and delivers rows before changes", async () => {
  const server = new FakeServer();
  const { events, id } = await startLive(server);
  expect(server.socket.received[0]).toMatchObject({ type: "authenticate", token: "t1" });
  server.socket.tell(ack(id), batch(id, [1, 2], 2, true));
  expect(server.socket.received.at(-1)).toEqual({ type: "next_batch", subscription_id: id });
  server.socket.tell(batch(id, [3], 5), inserted(id, 6));
  expect(told(events)).toEqual(["start", "loading", "+1,+2", "+3", "ready", "c6"]);
});

test("live resumes from the last position after a loss, and drops duplicates", async () => {
  const server = new FakeServer();
  const { events, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 4), inserted(id, 6));
  const lost = server.socket;
  lost.handlers.onClose(1006);
  expect(server.fire()).toContain(150);
  const message = server.socket.welcome();
  expect(message).toMatchObject({ subscription: { options: { from_seq_id: 6 } } });
  events.length = 0;
  // Messages from an old socket are ignored.
  lost.tell(inserted(id, 7));
  server.socket.tell(ack(id), batch(id, [6, 8], 9), inserted(id, 9, 10));
  expect(told(events)).toEqual(["from 6", "loading", "+8", "ready", "c10"]);
});

test("live continues unaffected when a handler throws", async () => {
  const calm = new FakeServer();
  const { events: expected, id } = await startLive(calm);
  playBatchLossAndChange(calm, id);
  for (const index of expected.keys()) {
    const server = new FakeServer();
    const ofEvent = new Error(`event ${index}`);
    const ofState = new Error("state open");
    const client = createClient({
      url: "http://db.test",
      environment: server,
      onConnection(state) {
        if (state === "open") throw ofState;
      },
    });
    await client.session.login("ada", "x");
    const events: LiveEvent[] = [];
    client.live("SELECT * FROM a.t", {
      onEvent(event) {
        events.push(event);
        if (events.length === index + 1) throw ofEvent;
      },
    });
    server.socket.welcome();
    const thrown = playBatchLossAndChange(server, id);
    expect(told(events), `event ${index}`).toEqual(told(expected));
    // The runtime reports each of these errors exactly once.
    expect(thrown.filter((error) => error === ofEvent)).toHaveLength(1);
    expect(thrown.filter((error) => error === ofState)).toHaveLength(2);
  }
});

test("live resumes a quiet table from the position in the heartbeat, and abandons a dead connection", async () => {
  const server = new FakeServer();
  const { events, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [], 4));
  expect(server.fire()).toEqual([20_000]);
  server.socket.tell({ type: "pong", id: "heartbeat", positions: { [id]: 50 } });
  expect(server.fire()).toEqual([20_000]);
  // The second ping gets no response.
  expect(server.fire()).toEqual([10_000]);
  expect(server.socket.isClosed).toBe(true);
  expect(told(events).at(-1)).toBe("offline");
  server.fire();
  expect(server.socket.welcome()).toMatchObject({ subscription: { options: { from_seq_id: 50 } } });
});

test("live recovers from a socket that does not respond before it is open or accepted", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  client.live("SELECT * FROM a.t", { onEvent: () => undefined });
  expect(server.fire()).toEqual([20_000]);
  expect(server.socket.isClosed).toBe(true);
  expect(server.fire()).toEqual([150]);
  server.socket.handlers.onOpen();
  expect(server.fire()).toEqual([20_000]);
  expect(server.fire()).toEqual([300]);
  expect(server.socket.welcome()).toMatchObject({ type: "subscribe" });
});

test("live keeps waiting for the pong while other messages arrive", async () => {
  const server = new FakeServer();
  const { id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [], 4));
  expect(server.fire()).toEqual([20_000]);
  server.socket.tell(inserted(id, 5));
  expect(server.fire()).toEqual([10_000]);
  expect(server.socket.isClosed).toBe(false);
  expect(server.fire()).toEqual([10_000]);
  expect(server.socket.isClosed).toBe(true);
});

test("live starts again if history has expired, and ends after a refusal", async () => {
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

test("live reconnects at once when the network returns, and listens only while it waits", async () => {
  const listeners = new Set<() => void>();
  class Page extends FakeServer {
    whenOnline(callback: () => void): () => void {
      listeners.add(callback);
      return () => listeners.delete(callback);
    }
  }
  const server = new Page();
  const { client, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 1));
  expect(listeners.size).toBe(0);
  for (let losses = 1; losses <= 8; losses += 1) {
    server.socket.handlers.onClose(1006);
    expect(listeners.size).toBe(1);
    for (const listener of listeners) listener();
    expect(server.sockets).toHaveLength(losses + 1);
    // The timer for the wait is gone as well; the remaining timer watches the new socket.
    expect([...server.timers].map(({ delayMs }) => delayMs)).toEqual([20_000]);
    expect(listeners.size).toBe(0);
  }
  server.socket.handlers.onClose(1006);
  client.close();
  expect(listeners.size).toBe(0);
  expect(server.timers.size).toBe(0);
});

test("queries share a socket, which the last query closes", async () => {
  const server = new FakeServer();
  const { client, id } = await startLive(server);
  const second = client.live("SELECT * FROM a.u", { onEvent: () => undefined });
  expect(server.sockets).toHaveLength(1);
  second.close();
  expect(server.socket.received.at(-1)?.type).toBe("unsubscribe");
  expect(server.socket.isClosed).toBe(false);
  client.close();
  expect(server.socket.isClosed).toBe(true);
  // Further messages are ignored, and the client does not retry.
  server.socket.tell(inserted(id, 99));
  expect(server.fire()).toEqual([]);
  expect(server.sockets).toHaveLength(1);
});

test("live waits longer each time for capacity that it had before, and ends if it never had any", async () => {
  const server = new FakeServer();
  const { client, events, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 4));
  server.socket.handlers.onClose(1006);
  server.fire();
  server.socket.welcome();
  const full = ended(id, "SUBSCRIPTION_LIMIT_EXCEEDED");
  for (const delayMs of [150, 300, 600]) {
    server.socket.tell(full);
    expect(server.fire()).toContain(delayMs);
    expect(server.socket.received.at(-1)).toMatchObject({
      type: "subscribe",
      subscription: { id, options: { from_seq_id: 4 } },
    });
    // The heartbeat timer fired at the same time.
    server.socket.tell({ type: "pong", id: "heartbeat", positions: {} });
  }
  server.socket.tell(ack(id), batch(id, [5], 6), full);
  expect(told(events).slice(-5)).toEqual(["from 4", "loading", "+5", "ready", "offline"]);
  expect(server.fire()).toContain(150);
  const second: LiveEvent[] = [];
  client.live("SELECT * FROM a.u", { onEvent: (event) => second.push(event) });
  server.socket.tell(ended("live-2", "SUBSCRIPTION_LIMIT_EXCEEDED"));
  expect(told(second)).toEqual(["ended"]);
  server.socket.tell(full);
  client.close();
  expect(server.fire()).toEqual([]);
});
