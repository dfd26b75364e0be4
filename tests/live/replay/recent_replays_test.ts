/**
 * Verifies that a client that resumes gets the same messages whether or not other clients resumed
 * before it, although replays share their first batch.
 */
import { expect, test } from "bun:test";
import type { Seq } from "../../../src/base/seq.ts";
import { SubscriptionError } from "../../../src/live/mod.ts";
import { RecentReplays } from "../../../src/live/replay/recent_replays.ts";
import type { SubscribeOptions } from "../../../src/protocol/mod.ts";
import type { TableWrite } from "../../../src/storage/mod.ts";
import {
  ANN,
  BOB,
  fixtureOver,
  type LiveFixture,
  liveFixture,
  MESSAGES,
  message,
  type RecordingSink,
  settle,
} from "../../support/live_fixture.ts";
import { programFor } from "../../support/live_parts.ts";
import { SeededRandom, seedOf } from "../../support/seeded_random.ts";

const LOBBY = "SELECT * FROM chat.messages WHERE room = 'lobby'";

/** A period, in milliseconds, longer than the time for which a batch is cached. */
const LATER_MS = 1000;

function write(
  { store }: LiveFixture,
  operation: TableWrite["operation"],
  ...ids: readonly number[]
): void {
  const rows = ids.map((id) => message(id, "lobby", store.visibleSeq % 1000));
  store.write({ tableId: MESSAGES, owner: 1, operation, rows });
}

/** Returns a fixture with one table, and a resume position after which five rows have changed. */
function behind(): { fixture: LiveFixture; position: number } {
  const fixture = liveFixture();
  write(fixture, "insert", 1);
  const position = fixture.store.visibleSeq;
  write(fixture, "insert", 2, 3);
  write(fixture, "insert", 4, 5, 6);
  return { fixture, position };
}

/** Opens a replay, and requests batches until it has caught up and is live. */
async function replayed(
  fixture: Pick<LiveFixture, "open">,
  options: SubscribeOptions,
): Promise<RecordingSink> {
  const { sink, subscription } = fixture.open(LOBBY, options);
  while (subscription.state === "loading") {
    subscription.nextBatch();
    await settle();
  }
  subscription.close();
  return sink;
}

/** Sends the same request to a new engine that has not served any other client. */
async function replayedAlone(
  { clock, store }: LiveFixture,
  options: SubscribeOptions,
): Promise<RecordingSink> {
  return await replayed(fixtureOver(store, clock), options);
}

/** Returns the first batch that a sink received, as the same object that the engine sent. */
function firstBatch({ shared }: RecordingSink): unknown {
  return shared.find(({ message: sent }) => sent.type === "initial_data_batch");
}

test("replays of one query from one position share the message with their first batch", () => {
  const { fixture, position } = behind();
  const options = { from_seq_id: position, batch_size: 3 };
  const first = fixture.open(LOBBY, options);
  const second = fixture.open(LOBBY, options);
  expect(firstBatch(second.sink)).toBe(firstBatch(first.sink));
  second.subscription.nextBatch();
  expect(second.sink.batches().map(({ rows }) => rows.map((row) => row["id"]))).toEqual([
    [2, 3, 4],
    [5, 6],
  ]);
  expect(second.sink.batches().at(-1)?.batch_control.status).toBe("ready");
});

test("a subscription with another id shares the rows, but has its own message", () => {
  const { fixture, position } = behind();
  const options = { from_seq_id: position, batch_size: 3 };
  const ids = ["a", "b", "c", "d", "e", "f"];
  for (const id of [...ids, ...ids]) {
    const [batch] = fixture.open(LOBBY, options, { id }).sink.batches();
    expect(batch?.subscription_id).toBe(id);
    expect(batch?.rows.map((row) => row["id"])).toEqual([2, 3, 4]);
  }
});

test("another position, batch size, mode, owner or time creates a separate batch", () => {
  const { fixture, position } = behind();
  const options = { from_seq_id: position, batch_size: 3 };
  const batch = firstBatch(fixture.open(LOBBY, options).sink);
  const others: SubscribeOptions[] = [
    { ...options, from_seq_id: position - 1 },
    { ...options, batch_size: 2 },
    { ...options, replay: "latest" },
  ];
  for (const other of others) expect(firstBatch(fixture.open(LOBBY, other).sink)).not.toBe(batch);
  const { sink } = fixture.open(LOBBY, options, { as: BOB });
  expect(sink.batches().flatMap(({ rows }) => rows)).toEqual([]);
  const again = firstBatch(fixture.open(LOBBY, { ...options, from_seq_id: position }).sink);
  fixture.clock.advance(LATER_MS);
  expect(firstBatch(fixture.open(LOBBY, options).sink)).not.toBe(again);
});

test("a position that has dropped out of history is refused, although a batch still exists", () => {
  const { fixture, position } = behind();
  const options = { from_seq_id: position, batch_size: 3 };
  write(fixture, "update", 2);
  fixture.open(LOBBY, options);
  fixture.store.discard(MESSAGES, 1, fixture.store.visibleSeq);
  expect(() => fixture.open(LOBBY, options)).toThrow(SubscriptionError);
});

test("a batch is shared only with replays that extend as far as the one that created it", () => {
  const { clock, sql } = liveFixture();
  const program = programFor(sql.planLive(ANN, { sql: LOBBY, params: [] }));
  const recent = new RecentReplays(clock);
  const start = { program, position: 5 as Seq, batchSize: 3, boundary: 20 as Seq };
  const made = {
    kind: "batch",
    rows: [],
    lastSeq: 9 as Seq,
    isLast: false,
    endsRequest: true,
  } as const;
  expect(recent.find(start)).toBeUndefined();
  const step = recent.keep(start, made);
  expect(recent.find(start)).toBe(step);
  expect(recent.find({ ...start, boundary: 21 as Seq })).toBe(step);
  expect(recent.find({ ...start, boundary: 19 as Seq })).toBeUndefined();
});

test("the messages equal those of an engine that has served no other client", async () => {
  const seed = seedOf(1);
  const random = new SeededRandom(seed);
  const fixture = liveFixture();
  // The query's group exists for as long as a client follows it.
  fixture.open(LOBBY, null);
  const positions = [fixture.store.visibleSeq];
  const held = new Set<number>();
  for (let round = 0; round < 40; round += 1) {
    for (let count = random.below(3); count > 0; count -= 1) {
      const id = 1 + random.below(4);
      if (!held.has(id)) {
        write(fixture, "insert", id);
        held.add(id);
      } else if (random.below(3) > 0) {
        write(fixture, "update", id);
      } else {
        write(fixture, "delete", id);
        held.delete(id);
      }
      positions.push(fixture.store.visibleSeq);
    }
    const from_seq_id = positions.at(-8 - random.below(2)) ?? positions[0] ?? 0;
    const options = { from_seq_id, batch_size: 1 + random.below(3) };
    const alone = await replayedAlone(fixture, options);
    for (let client = 0; client < 2; client += 1) {
      const { messages } = await replayed(fixture, options);
      expect(messages, `seed ${seed}`).toEqual(alone.messages);
    }
    if (random.below(5) === 0) fixture.clock.advance(LATER_MS);
  }
});
