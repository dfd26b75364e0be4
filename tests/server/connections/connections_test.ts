/**
 * Goal: every open connection is looked at once a second, and those of a session end with it,
 * however many there are, and no turn of the event loop is long because of it. Method: connections
 * that count, a clock that the test moves, and the turns between.
 */
import { expect, test } from "bun:test";
import type { Principal } from "../../../src/auth/mod.ts";
import { Connections } from "../../../src/server/connections/connections.ts";
import type { OpenConnection } from "../../../src/server/connections/open_connection.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { noBugs } from "../../support/no_bugs.ts";

/** Several turns' worth. */
const MANY = 300;

/** What looking at a connection takes, unless a test says otherwise: 64 fit into a turn. */
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

/** Goes on by what is done, too. */
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

/** Until everything that waits for the event loop had its turn, again and again. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** A tenth of a second after another, and the turns behind each. */
async function tenths(clock: WorkClock, count: number): Promise<void> {
  for (let tenth = 0; tenth < count; tenth += 1) {
    clock.advance(100);
    await turns();
  }
}

test("Connections looks at all of many once a second, at a tenth of them at a time", async () => {
  const { all, clock } = opened();
  clock.advance(99);
  expect(ticked(all, 0)).toBe(MANY);
  clock.advance(1);
  await turns();
  expect(ticked(all, 1)).toBe(MANY / 10);
  await tenths(clock, 9);
  expect(ticked(all, 1)).toBe(MANY);
  await tenths(clock, 1);
  expect(ticked(all, 2)).toBe(MANY / 10);
  await tenths(clock, 9);
  expect(ticked(all, 2)).toBe(MANY);
});

test("Connections looks at a tenth that takes long in several turns", async () => {
  const { all, clock } = opened({ visitMs: 0.5 });
  clock.advance(100);
  expect(ticked(all, 1)).toBe(8);
  await turns();
  expect(ticked(all, 1)).toBe(MANY / 10);
});

test("Connections looks at nobody who has gone between two turns, and at who has come in the next round at the latest", async () => {
  const { all, clock, connections } = opened({ visitMs: 0.5 });
  clock.advance(100);
  const [gone, come] = [all[20] ?? new Counted({ clock }), new Counted({ clock })];
  connections.remove(gone);
  connections.add(come);
  await turns();
  await tenths(clock, 9);
  expect(gone.tickCount).toBe(0);
  expect(ticked(all, 1)).toBe(MANY - 1);
  await tenths(clock, 10);
  expect(ticked(all, 2)).toBe(MANY - 1);
  expect(come.tickCount).toBeGreaterThanOrEqual(1);
  expect(clock.timerCount).toBe(1);
});

test.each([1, 3, 10, 11])("Connections looks at each of %p once a second", async (count) => {
  const { all, clock } = opened({ count });
  for (const second of [1, 2, 3]) {
    await tenths(clock, 10);
    expect(ticked(all, second)).toBe(count);
  }
});

test("Connections looks at nobody once the server stops", async () => {
  const { all, clock, connections } = opened({ visitMs: 0.5 });
  clock.advance(100);
  const stopped = connections.shutDown("websocket");
  await turns();
  expect(ticked(all, 1)).toBe(8);
  for (const connection of all) connections.remove(connection);
  clock.advance(20);
  await stopped;
  expect(clock.timerCount).toBe(0);
});

test("Connections.revoke ends many in several turns, and none that came after", async () => {
  const clock = new WorkClock();
  const connections = new Connections(clock, noBugs);
  const all = Array.from({ length: MANY }, () => new Counted({ clock, principal: BOB }));
  const other = new Counted({ clock, principal: { ...BOB, actorId: "ann" } });
  for (const connection of [other, ...all]) connections.add(connection);
  connections.revoke({ userId: "bob", sessionId: undefined });
  const late = new Counted({ clock, principal: BOB });
  connections.add(late);
  expect(all.filter(({ isRevoked }) => isRevoked)).toHaveLength(64);
  await turns();
  expect(all.filter(({ isRevoked }) => isRevoked)).toHaveLength(MANY);
  expect([other.isRevoked, late.isRevoked]).toEqual([false, false]);
});

test.each([
  ["all that take no time in one turn", 0, 300],
  ["few of those that take long in a turn", 2, 2],
  ["one that takes longer than a turn", 50, 1],
])("Connections.revoke ends %s", (_what, visitMs, count) => {
  const clock = new WorkClock();
  const connections = new Connections(clock, noBugs);
  const all = Array.from({ length: MANY }, () => new Counted({ clock, principal: BOB, visitMs }));
  for (const connection of all) connections.add(connection);
  connections.revoke({ userId: "bob", sessionId: undefined });
  expect(all.filter(({ isRevoked }) => isRevoked)).toHaveLength(count);
});

test("Connections sets no timer while there is none", async () => {
  const { all, clock, connections } = opened();
  for (const connection of all) connections.remove(connection);
  clock.advance(1000);
  expect(clock.timerCount).toBe(0);
  connections.add(new Counted({ clock }));
  expect(clock.timerCount).toBe(1);
});
