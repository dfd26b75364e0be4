/**
 * Verifies that every open connection is checked once a second, and that a session's connections
 * end with it, however many there are, without long ticks of the event loop. The tests count the
 * checks of each connection, and control the clock and the ticks.
 */
import { expect, test } from "bun:test";
import type { Principal } from "../../../src/auth/mod.ts";
import { Connections } from "../../../src/server/connections/connections.ts";
import type { OpenConnection } from "../../../src/server/connections/open_connection.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { noBugs } from "../../support/no_bugs.ts";

/** A number of connections so large that checking them takes several ticks. */
const MANY = 300;

/**
 * The duration of a check, in milliseconds, unless a test sets another one. 64 checks fit into a
 * tick.
 */
const VISIT_MS = 1 / 16;

const BOB: Principal = {
  userId: "bob",
  role: "service",
  owner: undefined,
  actorId: "bob",
  actorRole: "service",
  isImpersonated: false,
  sessionId: "s1",
};

/** A clock that also advances while the tested code works. */
class WorkClock extends ManualClock {
  workMs = 0;

  override monotonicMs(): number {
    return super.monotonicMs() + this.workMs;
  }
}

interface CountedOptions {
  readonly clock: WorkClock;
  readonly principal?: Principal;
  readonly visitMs?: number;
}

class Counted implements OpenConnection {
  readonly queuedBytes = 0;
  readonly address = "127.0.0.1";
  readonly transport = "sse";
  readonly principal: Principal | undefined;
  readonly #clock: WorkClock;
  readonly #visitMs: number;
  tickCount = 0;
  isRevoked = false;

  constructor({ clock, principal, visitMs = VISIT_MS }: CountedOptions) {
    this.principal = principal;
    this.#clock = clock;
    this.#visitMs = visitMs;
  }

  row(): undefined {
    return undefined;
  }

  tick(): void {
    this.tickCount += 1;
    this.#clock.workMs += this.#visitMs;
  }

  revoke(): void {
    this.isRevoked = true;
    this.#clock.workMs += this.#visitMs;
  }

  kill(): void {}
  shutDown(): void {}
  closeNow(): void {}
}

function opened({ count = MANY, visitMs = VISIT_MS } = {}): {
  clock: WorkClock;
  connections: Connections;
  all: Counted[];
} {
  const clock = new WorkClock();
  const connections = new Connections(clock, noBugs);
  const all = Array.from({ length: count }, () => new Counted({ clock, visitMs }));
  for (const connection of all) connections.add(connection);
  return { clock, connections, all };
}

function ticked(all: readonly Counted[], count: number): number {
  return all.filter(({ tickCount }) => tickCount === count).length;
}

/** Waits repeatedly until everything queued on the event loop has run. */
async function ticks(): Promise<void> {
  for (let tick = 0; tick < 10; tick += 1) await new Promise((resolve) => setImmediate(resolve));
}

/**
 * Advances the clock in steps of a tenth of a second, and waits for the resulting ticks after each
 * step.
 */
async function tenths(clock: WorkClock, count: number): Promise<void> {
  for (let tenth = 0; tenth < count; tenth += 1) {
    clock.advance(100);
    await ticks();
  }
}

test("Connections visits each of many connections once a second, a tenth of them at a time", async () => {
  const { all, clock } = opened();
  clock.advance(99);
  expect(ticked(all, 0)).toBe(MANY);
  clock.advance(1);
  await ticks();
  expect(ticked(all, 1)).toBe(MANY / 10);
  await tenths(clock, 9);
  expect(ticked(all, 1)).toBe(MANY);
  await tenths(clock, 1);
  expect(ticked(all, 2)).toBe(MANY / 10);
  await tenths(clock, 9);
  expect(ticked(all, 2)).toBe(MANY);
});

test("Connections spreads a slow tenth over several ticks", async () => {
  const { all, clock } = opened({ visitMs: 0.5 });
  clock.advance(100);
  expect(ticked(all, 1)).toBe(8);
  await ticks();
  expect(ticked(all, 1)).toBe(MANY / 10);
});

test("Connections visits no connection that was closed between two ticks, and new ones in the next round at the latest", async () => {
  const { all, clock, connections } = opened({ visitMs: 0.5 });
  clock.advance(100);
  const [gone, come] = [all[20] ?? new Counted({ clock }), new Counted({ clock })];
  connections.remove(gone);
  connections.add(come);
  await ticks();
  await tenths(clock, 9);
  expect(gone.tickCount).toBe(0);
  expect(ticked(all, 1)).toBe(MANY - 1);
  await tenths(clock, 10);
  expect(ticked(all, 2)).toBe(MANY - 1);
  expect(come.tickCount).toBeGreaterThanOrEqual(1);
  expect(clock.timerCount).toBe(1);
});

test.each([1, 3, 10, 11])(
  "Connections visits each of %p connections once a second",
  async (count) => {
    const { all, clock } = opened({ count });
    for (const second of [1, 2, 3]) {
      await tenths(clock, 10);
      expect(ticked(all, second)).toBe(count);
    }
  },
);

test("Connections visits no connection once the server is stopping", async () => {
  const { all, clock, connections } = opened({ visitMs: 0.5 });
  clock.advance(100);
  const stopped = connections.shutDown("websocket");
  await ticks();
  expect(ticked(all, 1)).toBe(8);
  for (const connection of all) connections.remove(connection);
  clock.advance(20);
  await stopped;
  expect(clock.timerCount).toBe(0);
});

test("Connections.revoke ends many connections over several ticks, and none that were opened later", async () => {
  const clock = new WorkClock();
  const connections = new Connections(clock, noBugs);
  const all = Array.from({ length: MANY }, () => new Counted({ clock, principal: BOB }));
  const other = new Counted({ clock, principal: { ...BOB, actorId: "ann" } });
  for (const connection of [other, ...all]) connections.add(connection);
  connections.revoke({ userId: "bob", sessionId: undefined });
  const late = new Counted({ clock, principal: BOB });
  connections.add(late);
  expect(all.filter(({ isRevoked }) => isRevoked)).toHaveLength(64);
  await ticks();
  expect(all.filter(({ isRevoked }) => isRevoked)).toHaveLength(MANY);
  expect([other.isRevoked, late.isRevoked]).toEqual([false, false]);
});

test.each([
  ["all connections that take no time in one tick", 0, 300],
  ["a few slow connections per tick", 2, 2],
  ["one connection that takes longer than a tick", 50, 1],
])("Connections.revoke ends %s", (_what, visitMs, count) => {
  const clock = new WorkClock();
  const connections = new Connections(clock, noBugs);
  const all = Array.from({ length: MANY }, () => new Counted({ clock, principal: BOB, visitMs }));
  for (const connection of all) connections.add(connection);
  connections.revoke({ userId: "bob", sessionId: undefined });
  expect(all.filter(({ isRevoked }) => isRevoked)).toHaveLength(count);
});

test("Connections sets no timer while no connection is open", async () => {
  const { all, clock, connections } = opened();
  for (const connection of all) connections.remove(connection);
  clock.advance(1000);
  expect(clock.timerCount).toBe(0);
  connections.add(new Counted({ clock }));
  expect(clock.timerCount).toBe(1);
});
