/**
 * Tests how the messages of many connections share the event loop. They are served immediately
 * while there is time, and otherwise in rotation.
 */
import { expect, test } from "bun:test";
import {
  type MessageServer,
  MessageTimeSlices,
} from "../../../src/server/connections/message_time_slices.ts";
import { ManualClock } from "../../support/manual_clock.ts";

/**
 * A connection whose messages each take a while to serve, and that records when it serves them.
 */
class SlowConnection implements MessageServer {
  readonly waiting: string[] = [];
  readonly #name: string;
  readonly #clock: ManualClock;
  readonly #served: string[];

  constructor(name: string, clock: ManualClock, served: string[]) {
    this.#name = name;
    this.#clock = clock;
    this.#served = served;
  }

  serveNow(frame: string | Uint8Array): void {
    this.#clock.advance(5);
    this.#served.push(`${this.#name}${String(frame)}`);
  }

  serveWaiting(): boolean {
    const frame = this.waiting.shift();
    if (frame !== undefined) this.serveNow(frame);
    return this.waiting.length > 0;
  }

  failed(): void {
    this.#served.push(`${this.#name} failed`);
  }
}

/** A connection for which serving a waiting message always hits a bug. */
class BuggyConnection extends SlowConnection {
  override serveWaiting(): boolean {
    throw new TypeError("an injected bug");
  }
}

function setUp(): { clock: ManualClock; slices: MessageTimeSlices; served: string[] } {
  const clock = new ManualClock();
  const served: string[] = [];
  const slices = new MessageTimeSlices(clock, (error) => void served.push(String(error)));
  return { clock, slices, served };
}

test("messages are served at once until they have used up their share, and again in the next window", () => {
  const { clock, slices, served } = setUp();
  const one = new SlowConnection("a", clock, served);
  expect(slices.hasTime).toBe(true);
  slices.serve(one, "1");
  expect(slices.hasTime).toBe(true);
  slices.serve(one, "2");
  expect(slices.hasTime).toBe(false);
  clock.advance(20);
  expect(slices.hasTime).toBe(true);
  slices.serve(one, "3");
  expect(slices.hasTime).toBe(true);
  expect(served).toEqual(["a1", "a2", "a3"]);
});

test("a message that takes longer than a window leaves no time in the tick in which it ends", () => {
  const { clock, slices, served } = setUp();
  const slow = new SlowConnection("a", clock, served);
  slow.serveNow = () => clock.advance(100);
  slices.serve(slow, "1");
  expect(slices.hasTime).toBe(false);
  clock.advance(15);
  expect(slices.hasTime).toBe(false);
  clock.advance(1);
  expect(slices.hasTime).toBe(true);
});

test("waiting connections are served one message each, a few per tick", async () => {
  const { clock, slices, served } = setUp();
  const all = ["a", "b", "c"].map((name) => new SlowConnection(name, clock, served));
  for (const connection of all) {
    connection.waiting.push("1", "2");
    slices.enqueue(connection);
  }
  expect(served).toEqual([]);
  // A new connection does not overtake the connections that are waiting, whatever the clock shows.
  clock.advance(100);
  expect(slices.hasTime).toBe(false);
  await clock.yield();
  expect(served).toEqual(["a1", "b1"]);
  await clock.yield();
  expect(served).toEqual(["a1", "b1", "c1", "a2"]);
  await clock.yield();
  expect(served).toEqual(["a1", "b1", "c1", "a2", "b2", "c2"]);
  clock.advance(20);
  expect(slices.hasTime).toBe(true);
});

test("a closed connection is not served, and one that returns is", async () => {
  const { clock, slices, served } = setUp();
  const gone = new SlowConnection("a", clock, served);
  gone.waiting.push("1");
  slices.enqueue(gone);
  slices.forget(gone);
  await clock.yield();
  expect(served).toEqual([]);
  slices.enqueue(gone);
  await clock.yield();
  expect(served).toEqual(["a1"]);
});

test("a bug in a waiting message ends its connection, is reported, and does not delay others", async () => {
  const { clock, slices, served } = setUp();
  const all = [new BuggyConnection("a", clock, served), new SlowConnection("b", clock, served)];
  for (const connection of all) {
    connection.waiting.push("1", "2", "3");
    slices.enqueue(connection);
  }
  await clock.yield();
  expect(served).toEqual(["TypeError: an injected bug", "a failed", "b1", "b2"]);
  await clock.yield();
  expect(served.slice(4)).toEqual(["b3"]);
});
