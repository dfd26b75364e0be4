/**
 * How messages of many connections share the event loop: at once while there is time, in rotation
 * once there is none.
 */
import { expect, test } from "bun:test";
import { type MessageServer, MessageTurns } from "../../../src/server/connections/message_turns.ts";
import { ManualClock } from "../../support/manual_clock.ts";

/** Serves messages that take a while each, and writes down when. */
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

/** Meets a bug with each message that waited. */
class BuggyConnection extends SlowConnection {
  override serveWaiting(): boolean {
    throw new TypeError("a planted bug");
  }
}

function setUp(): { clock: ManualClock; turns: MessageTurns; served: string[] } {
  const clock = new ManualClock();
  const served: string[] = [];
  const turns = new MessageTurns(clock, (error) => void served.push(String(error)));
  return { clock, turns, served };
}

test("there is time until messages have used up their share, and again in the next window", () => {
  const { clock, turns, served } = setUp();
  const one = new SlowConnection("a", clock, served);
  expect(turns.hasTime).toBe(true);
  turns.serve(one, "1");
  expect(turns.hasTime).toBe(true);
  turns.serve(one, "2");
  expect(turns.hasTime).toBe(false);
  clock.advance(20);
  expect(turns.hasTime).toBe(true);
  turns.serve(one, "3");
  expect(turns.hasTime).toBe(true);
  expect(served).toEqual(["a1", "a2", "a3"]);
});

test("a message that takes longer than a window leaves no time in the turn of its end", () => {
  const { clock, turns, served } = setUp();
  const slow = new SlowConnection("a", clock, served);
  slow.serveNow = () => clock.advance(100);
  turns.serve(slow, "1");
  expect(turns.hasTime).toBe(false);
  clock.advance(15);
  expect(turns.hasTime).toBe(false);
  clock.advance(1);
  expect(turns.hasTime).toBe(true);
});

test("waiting connections are served one message each, a few in a turn", async () => {
  const { clock, turns, served } = setUp();
  const all = ["a", "b", "c"].map((name) => new SlowConnection(name, clock, served));
  for (const connection of all) {
    connection.waiting.push("1", "2");
    turns.enqueue(connection);
  }
  expect(served).toEqual([]);
  // Who comes now does not overtake those who wait, whatever the clock says.
  clock.advance(100);
  expect(turns.hasTime).toBe(false);
  await clock.yield();
  expect(served).toEqual(["a1", "b1"]);
  await clock.yield();
  expect(served).toEqual(["a1", "b1", "c1", "a2"]);
  await clock.yield();
  expect(served).toEqual(["a1", "b1", "c1", "a2", "b2", "c2"]);
  clock.advance(20);
  expect(turns.hasTime).toBe(true);
});

test("a connection that is gone is not served, and one that comes back is", async () => {
  const { clock, turns, served } = setUp();
  const gone = new SlowConnection("a", clock, served);
  gone.waiting.push("1");
  turns.enqueue(gone);
  turns.forget(gone);
  await clock.yield();
  expect(served).toEqual([]);
  turns.enqueue(gone);
  await clock.yield();
  expect(served).toEqual(["a1"]);
});

test("a bug that a waiting message meets ends its connection, goes up, and holds nobody else", async () => {
  const { clock, turns, served } = setUp();
  const all = [new BuggyConnection("a", clock, served), new SlowConnection("b", clock, served)];
  for (const connection of all) {
    connection.waiting.push("1", "2", "3");
    turns.enqueue(connection);
  }
  await clock.yield();
  expect(served).toEqual(["TypeError: a planted bug", "a failed", "b1", "b2"]);
  await clock.yield();
  expect(served.slice(4)).toEqual(["b3"]);
});
