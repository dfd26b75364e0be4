/**
 * Goal: every open connection is looked at once a second, and those of a session end with it, however
 * many there are, and no turn of the event loop is long because of it.
 * Method: connections that count, a clock that the test moves, and the turns between.
 */
import { expect, test } from "bun:test";
import type { Principal } from "../../../src/auth/mod.ts";
import { Connections } from "../../../src/server/connections/connections.ts";
import type { OpenConnection } from "../../../src/server/connections/open_connection.ts";
import { ManualClock } from "../../support/manual_clock.ts";

/** Several turns' worth. */
const MANY = 300;

const BOB: Principal = {
  userId: "bob",
  role: "service",
  owner: undefined,
  actorId: "bob",
  actorRole: "service",
  isImpersonated: false,
  sessionId: "s1",
};

class Counted implements OpenConnection {
  readonly address = "127.0.0.1";
  readonly principal: Principal | undefined;
  tickCount = 0;
  isRevoked = false;

  constructor(principal?: Principal) {
    this.principal = principal;
  }

  row(): undefined {
    return undefined;
  }

  tick(): void {
    this.tickCount += 1;
  }

  revoke(): void {
    this.isRevoked = true;
  }

  kill(): void {}
  shutDown(): void {}
  closeNow(): void {}
}

function opened(): { clock: ManualClock; connections: Connections; all: Counted[] } {
  const clock = new ManualClock();
  const connections = new Connections(clock);
  const all = Array.from({ length: MANY }, () => new Counted());
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

test("Connections looks at all of many once a second, in several turns", async () => {
  const { all, clock } = opened();
  clock.advance(1000);
  expect(ticked(all, 1)).toBe(64);
  await turns();
  expect(ticked(all, 1)).toBe(MANY);
  clock.advance(999);
  await turns();
  expect(ticked(all, 1)).toBe(MANY);
  clock.advance(1);
  await turns();
  expect(ticked(all, 2)).toBe(MANY);
});

test("Connections looks at nobody who has gone between two turns, and at who has come once more", async () => {
  const { all, clock, connections } = opened();
  clock.advance(1000);
  const [gone, come] = [all.at(-1) ?? new Counted(), new Counted()];
  connections.remove(gone);
  connections.add(come);
  await turns();
  expect(gone.tickCount).toBe(0);
  clock.advance(1000);
  await turns();
  expect(ticked(all, 2)).toBe(MANY - 1);
  expect(clock.timerCount).toBe(1);
});

test("Connections looks at nobody once the server stops", async () => {
  const { all, clock, connections } = opened();
  clock.advance(1000);
  const stopped = connections.shutDown();
  await turns();
  expect(ticked(all, 1)).toBe(64);
  for (const connection of all) connections.remove(connection);
  clock.advance(20);
  await stopped;
  expect(clock.timerCount).toBe(0);
});

test("Connections.revoke ends many in several turns, and none that came after", async () => {
  const connections = new Connections(new ManualClock());
  const all = Array.from({ length: MANY }, () => new Counted(BOB));
  const other = new Counted({ ...BOB, actorId: "ann" });
  for (const connection of [other, ...all]) connections.add(connection);
  connections.revoke({ userId: "bob", sessionId: undefined });
  const late = new Counted(BOB);
  connections.add(late);
  expect(all.filter(({ isRevoked }) => isRevoked)).toHaveLength(64);
  await turns();
  expect(all.filter(({ isRevoked }) => isRevoked)).toHaveLength(MANY);
  expect([other.isRevoked, late.isRevoked]).toEqual([false, false]);
});

test("Connections sets no timer while there is none", async () => {
  const { all, clock, connections } = opened();
  for (const connection of all) connections.remove(connection);
  clock.advance(1000);
  expect(clock.timerCount).toBe(0);
  connections.add(new Counted());
  expect(clock.timerCount).toBe(1);
});
