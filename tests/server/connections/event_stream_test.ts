/**
 * Verifies that a client that loses its permission to listen is disconnected within a second,
 * whether or not it reads, and that a client that reads receives everything sent before.
 */
import { expect, test } from "bun:test";
import type { Principal } from "../../../src/auth/mod.ts";
import type { LiveSubscription } from "../../../src/live/mod.ts";
import {
  EventStream,
  type EventStreamOptions,
} from "../../../src/server/connections/event_stream.ts";
import { ANN } from "../../support/live_fixture.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { noBugs } from "../../support/no_bugs.ts";

interface Opened {
  readonly clock: ManualClock;
  readonly stream: EventStream;
  /** The calls that the stream has made to its server and its subscription, in order. */
  readonly told: string[];
}

function open(change: Partial<Principal> = {}): Opened {
  const clock = new ManualClock();
  const told: string[] = [];
  const options: EventStreamOptions = {
    connectionId: "sse-1",
    principal: { ...ANN, ...change },
    address: "127.0.0.1",
    isCompressed: false,
    isNetReplay: false,
    clock,
    onBug: noBugs,
    sendBudget: { queueBytes: 1000 },
    commentEveryMs: 1000,
    onEnding: () => told.push("ending"),
    onClosed: () => told.push("closed"),
  };
  const stream = new EventStream(options);
  const subscription = { close: () => told.push("unsubscribed") };
  stream.carry(subscription as unknown as LiveSubscription);
  return { clock, stream, told };
}

test.each(["revoke", "kill"] as const)("%s ends an unread stream within a second", (end) => {
  const { clock, stream, told } = open();
  const body = stream.body();
  stream[end]();
  expect(told).toEqual(["unsubscribed", "ending"]);
  // An event stream counts as a connection as long as it exists, and is listed along with the
  // WebSocket connections.
  expect(stream.row()?.subscriptions).toBe(0);
  clock.advance(999);
  expect(told).toEqual(["unsubscribed", "ending", "closed"]);
  expect(stream.row()).toBeUndefined();
  expect(body.getReader().read()).rejects.toThrow("The stream was closed");
});

test.each(["revoke", "kill"] as const)(
  "%s tells a reading client why its stream ends",
  async (end) => {
    const { clock, stream, told } = open();
    const text = new Response(stream.body()).text();
    stream[end]();
    expect(await text).toContain(end === "revoke" ? "TOKEN_REVOKED" : "KILLED");
    expect(told).toEqual(["unsubscribed", "ending", "closed"]);
    clock.advance(10_000);
    expect(told).toHaveLength(3);
  },
);

test("a stream tells its client that the token has expired, a minute after its expiry", async () => {
  const { clock, stream, told } = open({ tokenEndMs: new ManualClock().nowMs() + 1000 });
  const text = new Response(stream.body()).text();
  clock.advance(60_999);
  stream.tick();
  expect(told).toEqual([]);
  clock.advance(1);
  stream.tick();
  expect(await text).toContain("TOKEN_EXPIRED");
  expect(told).toEqual(["unsubscribed", "ending", "closed"]);
});

test("end waits for a client that reads slowly, unless the connection is also killed", () => {
  const { clock, stream, told } = open();
  stream.body();
  stream.shutDown();
  clock.advance(10_000);
  expect(told).toEqual(["unsubscribed", "ending"]);
  stream.kill();
  clock.advance(999);
  expect(told).toEqual(["unsubscribed", "ending", "closed"]);
});
