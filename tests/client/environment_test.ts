/**
 * Verifies that the client copes with peculiarities of its runtime: timers longer than the runtime
 * supports, a missing WebSocket, a page that becomes visible again, and sockets that are dropped
 * immediately.
 */
import { afterEach, expect, test } from "bun:test";
import { globalEnvironment, withLongTimers } from "../../src/client/environment.ts";
import { createClient, type LiveEvent } from "../../src/client/mod.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { ack, batch, FakeServer, loggedIn, startLive } from "./scripted_server.ts";

const TIMER_MS_MAX = 2 ** 31 - 1;

/**
 * A clock whose timers work like the timers of common runtimes, in which a delay of more than 31
 * bits fires immediately.
 */
class NarrowClock extends ManualClock {
  override after(delayMs: number, callback: () => void): () => void {
    return super.after(delayMs > TIMER_MS_MAX ? 1 : delayMs, callback);
  }
}

test.each([TIMER_MS_MAX - 1, TIMER_MS_MAX, TIMER_MS_MAX + 1, 2 ** 32, 3 * TIMER_MS_MAX, 1e12])(
  "a timer of %d ms fires on time and not earlier",
  (delayMs) => {
    for (const isCancelled of [false, true]) {
      const clock = new NarrowClock();
      const timers = withLongTimers({ ...globalEnvironment, after: clock.after.bind(clock) });
      let calls = 0;
      const cancel = timers.after(delayMs, () => {
        calls += 1;
      });
      clock.advance(delayMs - 1);
      expect(calls).toBe(0);
      if (isCancelled) cancel();
      clock.advance(1);
      expect([calls, clock.timerCount]).toEqual([isCancelled ? 0 : 1, 0]);
    }
  },
);

test("a timeout, a wait and an interruption may be longer than the longest timer of the runtime", async () => {
  const server = new FakeServer();
  const client = createClient({
    url: "http://db.test",
    environment: server,
    timeout: "50000m",
    maxRetries: 1,
  });
  server.answer = (_path, { signal }) =>
    new Promise((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(new Error("aborted")));
    });
  const asked = client.session.status().catch((failure: unknown) => failure);
  await Bun.sleep(0);
  expect(server.fire()).toEqual([TIMER_MS_MAX]);
  expect(server.fire()).toEqual([3e9 - TIMER_MS_MAX]);
  expect(await asked).toMatchObject({ message: expect.stringContaining("within 3000000000 ms") });
  const second = new FakeServer();
  const { client: follower } = await startLive(second);
  follower.interrupt(2 ** 32);
  expect([...second.timers].map(({ delayMs }) => delayMs)).toEqual([TIMER_MS_MAX]);
});

const given = { WebSocket: globalThis.WebSocket };

afterEach(() => {
  Object.assign(globalThis, given);
  Reflect.deleteProperty(globalThis, "document");
});

test("live throws in a runtime without WebSockets, and names the runtimes that support them", () => {
  Reflect.deleteProperty(globalThis, "WebSocket");
  const client = createClient({ url: "http://db.test", auth: { token: "t" } });
  expect(() => client.live("SELECT * FROM a.t", { onEvent: () => undefined })).toThrow(
    /^Cannot follow the query: this runtime has no WebSocket; use Node 22 or later/,
  );
  // A runtime may load a WebSocket implementation after the client was created.
  Object.assign(globalThis, { WebSocket: SilentSocket });
  client.live("SELECT * FROM a.t", { onEvent: () => undefined }).close();
});

test("live pings at once when the network or the visitor returns, and stops listening when it closes", async () => {
  const listeners = new Set<() => void>();
  class Page extends FakeServer {
    whenBack(callback: () => void): () => void {
      listeners.add(callback);
      return () => listeners.delete(callback);
    }
  }
  const server = new Page();
  const { client, id } = await startLive(server);
  server.socket.tell(ack(id), batch(id, [1], 1));
  const [back] = listeners;
  back?.();
  expect(server.socket.received.at(-1)).toEqual({ type: "ping", id: "heartbeat" });
  // No pong arrives, because the connection was lost unnoticed.
  expect(server.fire()).toEqual([10_000]);
  expect(server.socket.isClosed).toBe(true);
  // A client that waits to reconnect does so at once.
  expect(listeners.size).toBe(1);
  for (const listener of listeners) listener();
  expect(server.sockets).toHaveLength(2);
  expect(listeners.size).toBe(0);
  server.socket.welcome();
  expect(listeners.size).toBe(1);
  client.close();
  expect(listeners.size).toBe(0);
});

test("globalEnvironment reports the return of the network, the return of the page, and its visibility", () => {
  const document = Object.assign(new EventTarget(), { visibilityState: "hidden" });
  Object.assign(globalThis, { document });
  let calls = 0;
  // The server's type definitions do not declare dispatchEvent on Bun's globals.
  const page = globalThis as unknown as EventTarget;
  const cancel = globalEnvironment.whenBack?.(() => {
    calls += 1;
  });
  const counts = (): number[] =>
    [
      () => page.dispatchEvent(new Event("online")),
      () => page.dispatchEvent(new Event("pageshow")),
      () => document.dispatchEvent(new Event("visibilitychange")),
    ].map((tell) => {
      calls = 0;
      tell();
      return calls;
    });
  expect(counts()).toEqual([1, 1, 0]);
  document.visibilityState = "visible";
  expect(counts()).toEqual([1, 1, 1]);
  cancel?.();
  expect(counts()).toEqual([0, 0, 0]);
});

/** A WebSocket that opens when the test requests it. */
class SilentSocket extends EventTarget {
  static readonly OPEN = 1;
  static readonly made: SilentSocket[] = [];
  readyState = 0;
  closedWhile: number | undefined;

  constructor() {
    super();
    SilentSocket.made.push(this);
  }

  open(): void {
    this.readyState = 1;
    this.dispatchEvent(new Event("open"));
  }

  close(): void {
    this.closedWhile = this.readyState;
  }
}

test("a socket that is dropped at once never opens, and a socket that is already opening closes once it is open", async () => {
  Object.assign(globalThis, { WebSocket: SilentSocket });
  const { made } = SilentSocket;
  made.length = 0;
  const handlers = { onOpen: () => told.push("open"), onText: () => {}, onClose: () => {} };
  const told: string[] = [];
  globalEnvironment.connect("ws://db.test", handlers).close();
  await Promise.resolve();
  expect(made).toEqual([]);
  const socket = globalEnvironment.connect("ws://db.test", handlers);
  await Promise.resolve();
  expect(made).toHaveLength(1);
  socket.close();
  expect(made[0]?.closedWhile).toBeUndefined();
  made[0]?.open();
  expect([made[0]?.closedWhile, told]).toEqual([1, []]);
});

test("a query that closes as the next one opens passes on its socket, whether or not it is open", async () => {
  const server = new FakeServer();
  const client = await loggedIn(server);
  const events: LiveEvent[] = [];
  const follow = (sql: string) => client.live(sql, { onEvent: (event) => events.push(event) });
  follow("SELECT 1").close();
  const second = follow("SELECT 1");
  await Promise.resolve();
  expect(server.sockets).toHaveLength(1);
  expect(server.socket.welcome()).toMatchObject({ subscription: { id: "live-2" } });
  second.close();
  follow("SELECT 2");
  await Promise.resolve();
  expect(server.sockets).toHaveLength(1);
  expect(server.socket.isClosed).toBe(false);
  expect(server.socket.received.slice(-2).map(({ type }) => type)).toEqual([
    "unsubscribe",
    "subscribe",
  ]);
  follow("SELECT 3").close();
  client.close();
  expect(server.socket.isClosed).toBe(true);
});

test.each(["<html>", "null", "[]", "7", "{}", '{"type":5}', ""])(
  "live drops a socket that sends %p, and reconnects",
  async (text) => {
    const server = new FakeServer();
    const { events, id } = await startLive(server);
    server.socket.tell(ack(id), batch(id, [1], 4));
    server.socket.handlers.onText(text);
    expect(server.socket.isClosed).toBe(true);
    expect(events.at(-1)).toEqual({ type: "status", status: "offline" });
    server.fire();
    expect(server.socket.welcome()).toMatchObject({
      subscription: { options: { from_seq_id: 4 } },
    });
  },
);
