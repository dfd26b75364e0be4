/**
 * Verifies that a subscriber misses nothing and receives the next change, even if its rows have
 * not changed for longer than the retention period. The tables have so many owners that these
 * share a low watermark, which rises above the subscriber's last change.
 */
import { expect, test } from "bun:test";
import type { Seq } from "../../src/base/seq.ts";
import type { TableWrite } from "../../src/storage/mod.ts";
import { LocalWorld } from "../simulation/live_worlds.ts";
import {
  ANN,
  fixtureOver,
  type LiveFixture,
  liveFixture,
  MESSAGES,
  message,
  settle,
} from "../support/live_fixture.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { SeededRandom } from "../support/seeded_random.ts";

const EVERYTHING = "SELECT * FROM chat.messages";
const ROOM = "SELECT * FROM chat.messages WHERE room = $1";

/** One more than the maximum number of owners that have a low watermark each. */
const OWNERS = 1001;

function written(owner: number, operation: TableWrite["operation"], n = 0): TableWrite {
  return { tableId: MESSAGES, owner, operation, rows: [message(1, "lobby", n)] };
}

/** Lets all history expire, so that no subscription can resume from an earlier position. */
function expireAll({ store }: LiveFixture): Seq {
  store.write(written(2, "insert"));
  const floor = store.visibleSeq;
  store.earliestSeq = () => floor;
  return floor;
}

test("a quiet subscription gets the next change after the shared low watermark of all owners has risen", async () => {
  const clock = new ManualClock();
  const world = await LocalWorld.open(clock, new SeededRandom(1));
  const { store } = world;
  const fixture = fixtureOver(store, clock);
  const { sink, subscription } = fixture.open(EVERYTHING, null);
  await settle();
  for (let owner = 2; owner < 2 + OWNERS; owner += 1)
    store.apply({ writes: [written(owner, "insert")] });
  for (let owner = 2; owner < 2 + OWNERS; owner += 1)
    store.apply({ writes: [written(owner, "update", 1)] });
  await world.sync();
  await world.flush();
  for (let half = 0; half < 2; half += 1) await world.discard();
  expect(store.earliestSeq(MESSAGES, ANN.owner ?? 0)).toBeGreaterThan(0);

  // The store applies the change together with others, and makes all of them visible at once.
  store.apply({ writes: [written(2, "update", 2)] });
  store.apply({ writes: [written(1, "insert")] });
  store.apply({ writes: [written(3, "update", 2)] });
  await settle();
  expect(sink.changes()).toEqual([]);
  await world.sync();
  await settle();
  expect(sink.errors()).toEqual([]);
  expect(sink.changes()).toMatchObject([{ change_type: "insert", rows: [{ id: 1 }] }]);
  expect(subscription.position).toBe(store.visibleSeq);
  await world.close();
});

test("a quiet subscription survives a changed definition that is reviewed over many ticks", async () => {
  const fixture = liveFixture();
  const sinks = Array.from({ length: 100 }, (_, index) => {
    return fixture.open(ROOM, null, { id: `m${index}`, params: [`room ${index}`] }).sink;
  });
  await settle();
  expireAll(fixture);
  fixture.sql.schemaVersion = 2;
  fixture.engine.tableChanged(MESSAGES);
  await settle();
  const rows = sinks.map((_, index) => message(index, `room ${index}`));
  fixture.store.write({ tableId: MESSAGES, owner: 1, operation: "insert", rows });
  await settle();
  expect(sinks.flatMap((sink) => sink.errors())).toEqual([]);
  for (const sink of sinks) expect(sink.changes()).toHaveLength(1);
});

test("a subscription that falls behind with the first change after a long silence continues from there", async () => {
  const fixture = liveFixture();
  const { sink, subscription } = fixture.open(EVERYTHING, null);
  await settle();
  sink.room = 1;
  const floor = expireAll(fixture);
  fixture.store.write(written(1, "insert"));
  fixture.store.write(written(1, "update", 1));
  await settle();
  expect(subscription.state).toBe("behind");
  expect(subscription.position).toBeGreaterThan(floor);
  sink.room = Infinity;
  subscription.drained();
  await settle();
  expect(sink.errors()).toEqual([]);
  expect(sink.changes().map(({ change_type: type }) => type)).toEqual(["insert", "update"]);
});
