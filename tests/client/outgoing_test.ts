/**
 * Verifies that every request is served and no subscription is requested twice, whatever message
 * rate a server allows. The test server measures the rate by the test's clock, refuses messages as
 * the real server does, without saying which message it refused, and delays messages in both
 * directions.
 */
import { expect, test } from "bun:test";
import { Outgoing, type SentRequest } from "../../src/client/outgoing.ts";
import type { ClientMessage } from "../../src/protocol/mod.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { shareOf } from "../support/thoroughness.ts";
import { tokenBucket } from "../support/token_buckets.ts";

class PacedServer {
  readonly clock = new ManualClock();
  readonly received: string[] = [];
  readonly served: string[] = [];
  /** Subscriptions that the client no longer wants. */
  readonly unwanted = new Set<string>();
  readonly outgoing: Outgoing;
  refusalCount = 0;
  readonly #perSecond: number;
  readonly #wayMs: number;
  readonly #bucket: ReturnType<typeof tokenBucket>;

  constructor({ perSecond, wayMs }: { perSecond: number; wayMs: number }) {
    this.#perSecond = perSecond;
    this.#wayMs = wayMs;
    this.#bucket = tokenBucket(perSecond);
    this.outgoing = new Outgoing({
      environment: this.clock,
      messageOf: ({ id, type }) => (this.unwanted.has(id) ? undefined : messageFrom({ type, id })),
      send: (message) => void this.clock.after(this.#wayMs, () => this.#receive(message)),
    });
  }

  subscribe(...ids: string[]): void {
    for (const id of ids) this.outgoing.ask({ type: "subscribe", id });
  }

  #receive(message: ClientMessage): void {
    const asked = askedOf(message);
    this.received.push(`${asked.type} ${asked.id}`);
    const waitMs = this.#bucket.take(this.#perSecond, this.clock.monotonicMs());
    if (waitMs === 0) this.served.push(`${asked.type} ${asked.id}`);
    else this.refusalCount += 1;
    this.clock.after(this.#wayMs, () => {
      if (waitMs > 0) this.outgoing.refused(waitMs);
      else if (asked.type === "ping") this.outgoing.pong(asked.id);
      else if (asked.type !== "unsubscribe") this.outgoing.answered(asked);
    });
  }
}

function messageFrom({ id, type }: SentRequest): ClientMessage {
  if (type === "ping") return { type, id };
  if (type === "subscribe") return { type, subscription: { id, sql: "SELECT * FROM a.t" } };
  return { type, subscription_id: id };
}

function askedOf(message: ClientMessage): SentRequest {
  if (message.type === "subscribe") return { type: "subscribe", id: message.subscription.id };
  if (message.type === "ping") return { type: "ping", id: message.id ?? "" };
  if (message.type === "next_batch" || message.type === "unsubscribe") {
    return { type: message.type, id: message.subscription_id ?? "" };
  }
  throw new Error(`Nobody sends ${message.type} here`);
}

function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}${index}`);
}

function countsOf(words: readonly string[], word: string): number {
  return words.filter((each) => each.startsWith(word)).length;
}

test("Outgoing sends messages at once while nothing is refused", () => {
  const server = new PacedServer({ perSecond: 100, wayMs: 10 });
  server.subscribe(...names("q", 50));
  server.clock.advance(10);
  expect(server.received).toEqual(names("subscribe q", 50));
  server.clock.advance(10_000);
  expect(server.received).toHaveLength(50);
  expect(server.clock.timerCount).toBe(0);
});

test("Outgoing repeats a single refused message after the delay that the server requests", () => {
  const server = new PacedServer({ perSecond: 1, wayMs: 10 });
  server.subscribe("first");
  server.clock.advance(100);
  server.subscribe("second");
  server.clock.advance(100);
  expect(server.received).toEqual(["subscribe first", "subscribe second"]);
  expect(server.refusalCount).toBe(1);
  server.clock.advance(1000);
  expect(server.received.slice(2)).toEqual(["subscribe second"]);
  expect(server.served).toEqual(["subscribe first", "subscribe second"]);
});

/**
 * Each pace is the number of messages that a server allows per second, and the number of
 * milliseconds that a message takes.
 */
const PACES = [
  [1, 0],
  [1, 100],
  [5, 1],
  [20, 50],
  [100, 200],
  [100, 1],
] as const;

test.each(shareOf(PACES, { oneOf: 2 }))(
  "Outgoing at %d messages a second and %d ms each way serves every request once, with little delay",
  (perSecond, wayMs) => {
    const server = new PacedServer({ perSecond, wayMs });
    const count = perSecond * 20;
    server.subscribe(...names("q", count));
    let seconds = 0;
    while (countsOf(server.served, "subscribe") < count) {
      expect(seconds, server.served.join()).toBeLessThan(80);
      server.clock.advance(1000);
      seconds += 1;
    }
    server.clock.advance(10_000);
    expect(server.served.filter((word) => word.startsWith("subscribe")).toSorted()).toEqual(
      names("subscribe q", count).toSorted(),
    );
    expect(server.clock.timerCount).toBe(0);
  },
);

test("Outgoing also repeats a request for a batch, unless the batch is no longer wanted", () => {
  const server = new PacedServer({ perSecond: 2, wayMs: 10 });
  server.subscribe("a", "b", "c");
  for (const id of ["a", "b"]) server.outgoing.ask({ type: "next_batch", id });
  server.clock.advance(20);
  expect(server.refusalCount).toBe(3);
  server.unwanted.add("c");
  server.clock.advance(10_000);
  expect(server.served).toEqual(expect.arrayContaining(["next_batch a", "next_batch b"]));
  expect(server.received.filter((word) => word === "subscribe c")).toHaveLength(1);
});

test("Outgoing does not repeat a subscription if an unsubscribe was refused", () => {
  const server = new PacedServer({ perSecond: 2, wayMs: 600 });
  server.subscribe("a");
  for (const id of ["x", "y"]) server.outgoing.ask({ type: "unsubscribe", id });
  server.clock.advance(601);
  // Once there is capacity again, a message is sent before the refusal arrives, and is answered
  // after the delay.
  server.subscribe("b");
  server.clock.advance(20_000);
  expect(server.served).toContain("ping settling");
  expect(server.served.filter((word) => word.startsWith("subscribe"))).toEqual([
    "subscribe a",
    "subscribe b",
  ]);
});

test("Outgoing sends at once again when no message is waiting", () => {
  const server = new PacedServer({ perSecond: 10, wayMs: 10 });
  server.subscribe(...names("q", 30));
  server.clock.advance(20_000);
  const before = server.received.length;
  server.subscribe(...names("r", 8));
  server.clock.advance(10);
  expect(server.received.slice(before)).toEqual(names("subscribe r", 8));
});

test("Outgoing.clear discards the waiting messages, and later ones are sent at once", () => {
  const server = new PacedServer({ perSecond: 2, wayMs: 0 });
  server.subscribe(...names("q", 8));
  server.clock.advance(1);
  server.outgoing.clear();
  expect(server.clock.timerCount).toBe(0);
  const before = server.received.length;
  server.clock.advance(10_000);
  server.subscribe("a", "b");
  server.clock.advance(0);
  expect(server.received.slice(before)).toEqual(["subscribe a", "subscribe b"]);
});
