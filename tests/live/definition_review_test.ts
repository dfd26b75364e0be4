/**
 * Verifies what happens while the effect of a changed definition on subscriptions is being
 * reviewed. A subscription reports no position above the change that may be about to end it,
 * because a client that resumed there would keep old rows. Changes to other tables do not wait for
 * the review.
 */
import { expect, test } from "bun:test";
import { DatabaseError } from "../../src/base/errors.ts";
import type { LiveSubscription } from "../../src/live/mod.ts";
import {
  type LiveFixture,
  liveFixture,
  MESSAGES,
  message,
  messagesTable,
  settle,
  subscriber,
} from "../support/live_fixture.ts";
import { until } from "../support/until.ts";

const EVERYTHING = "SELECT * FROM chat.messages";
const ROOM = "SELECT * FROM chat.messages WHERE room = $1";

/**
 * Opens followers of different rooms, and returns them. There are more than the engine replans in
 * one tick.
 */
function manyRooms(fixture: LiveFixture): LiveSubscription[] {
  return Array.from({ length: 100 }, (_, index) => {
    return fixture.open(ROOM, null, { id: `m${index}`, params: [`room ${index}`] }).subscription;
  });
}

/** Writes rows of a different user, which advances the visible seq. */
function writeElsewhere({ store }: LiveFixture, id: number): void {
  store.write({ tableId: MESSAGES, owner: 2, operation: "insert", rows: [message(id, "hall")] });
}

test("LiveSubscription.position is undefined until it is known whether a dropped table ends the subscription", async () => {
  const fixture = liveFixture();
  const opened = manyRooms(fixture);
  await settle();
  writeElsewhere(fixture, 1);
  const before = fixture.store.visibleSeq;
  expect(opened.map(({ position }) => position)).toEqual(opened.map(() => before));
  fixture.sql.refusal = new DatabaseError("TABLE_NOT_FOUND", "gone");
  fixture.engine.tableChanged(MESSAGES);
  writeElsewhere(fixture, 2);
  const open = opened.filter(({ state }) => state !== "ended");
  expect(open.length).toBeGreaterThan(50);
  expect(open.map(({ position }) => position)).toEqual(open.map(() => undefined));
  // `system.live`, which operators see, shows a subscription's position even during the review.
  expect(fixture.engine.subscriptions()[0]?.position).toBe(fixture.store.visibleSeq);
  await until(() => opened.every(({ state }) => state === "ended"));
});

test("LiveSubscription.position advances once a changed definition turns out not to matter", async () => {
  const fixture = liveFixture();
  const opened = manyRooms(fixture);
  await settle();
  fixture.sql.schemaVersion = 2;
  fixture.engine.tableChanged(MESSAGES);
  writeElsewhere(fixture, 1);
  expect(opened.some(({ position }) => position === undefined)).toBe(true);
  const { visibleSeq } = fixture.store;
  await until(() => opened.every(({ position }) => position === visibleSeq));
});

test("a change to another table is sent long before thousands of subscriptions have been reviewed", async () => {
  const fixture = liveFixture();
  const other = MESSAGES + 1;
  fixture.store.defineTable(messagesTable(other));
  const opened = Array.from({ length: 500 }, (_, index) => {
    return fixture.open(EVERYTHING, null, { as: subscriber(`user ${index}`, 10 + index) });
  });
  fixture.sql.tableId = other;
  const { sink } = fixture.open(EVERYTHING, null);
  await settle();
  fixture.sql.refusal = new DatabaseError("TABLE_NOT_FOUND", "gone");
  fixture.engine.tableChanged(MESSAGES);
  const endedCount = (): number =>
    opened.filter(({ subscription }) => subscription.state === "ended").length;
  let endedBefore = 0;
  sink.onSend = () => {
    endedBefore = endedCount();
  };
  const rows = [message(1, "lobby")];
  fixture.store.write({ tableId: other, owner: 1, operation: "insert", rows });
  await until(() => endedCount() === opened.length);
  expect(sink.changes()).toHaveLength(1);
  expect(endedBefore).toBeGreaterThan(0);
  expect(endedBefore).toBeLessThan(100);
});
