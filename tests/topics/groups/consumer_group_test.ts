/**
 * Verifies that no consumer misses an event that occurs after the consumer has checked its group
 * for messages and before it waits. Such an event may be an acknowledgement, or the passing of
 * time.
 */
import { expect, test } from "bun:test";
import { defined } from "../../../src/base/assert.ts";
import { silentLog } from "../../../src/base/log.ts";
import { SeldomLog } from "../../../src/base/seldom_log.ts";
import type { TopicMessage } from "../../../src/sql/mod.ts";
import { ConsumerGroup, type GroupWaiter } from "../../../src/topics/groups/consumer_group.ts";
import type { TopicGroups } from "../../../src/topics/mod.ts";
import { BIGINT, TEXT } from "../../../src/types/mod.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { MemoryManifest } from "../../support/memory_manifest.ts";
import { SimulatedDisk } from "../../support/simulated_disk.ts";
import {
  Definitions,
  type OpenTopics,
  openGroups,
  openTopics,
  tableEntry,
  topicEntry,
} from "../topics_fixture.ts";

const SOURCE = 1;
const TOPIC = 11;
const VISIBILITY_MS = 60_000;
const PLACE = { topicId: TOPIC, partition: 0, group: "g" } as const;
const EARLIEST = { kind: "earliest" } as const;

/** A clock on which time can pass between two reads without any timer firing. */
class PassingClock extends ManualClock {
  #passedMs = 0;
  #looksLeft = Infinity;
  #ms = 0;

  /** Lets `ms` milliseconds pass just before a read of the clock, after `looks` other reads. */
  passAfter(looks: number, ms: number): void {
    this.#looksLeft = looks;
    this.#ms = ms;
  }

  /** Whether the time set by {@linkcode passAfter} has passed. */
  get hasPassed(): boolean {
    return this.#looksLeft < 0;
  }

  /** Cancels {@linkcode passAfter} if the time has not passed yet. */
  settle(): void {
    this.#looksLeft = Infinity;
  }

  override monotonicMs(): number {
    if (this.#looksLeft === 0) this.#passedMs += this.#ms;
    this.#looksLeft -= 1;
    return super.monotonicMs() + this.#passedMs;
  }
}

interface World extends OpenTopics, AsyncDisposable {
  readonly groups: TopicGroups;
  readonly clock: PassingClock;
}

async function open(): Promise<World> {
  const clock = new PassingClock();
  const definitions = new Definitions();
  definitions.tableEntries.set(SOURCE, tableEntry(SOURCE, [TEXT, BIGINT]));
  const source = { tableId: SOURCE, payload: "full", fromSeq: 0 } as const;
  const sources = [
    { ...source, sourceId: 1, operation: "insert" },
    { ...source, sourceId: 2, operation: "update" },
  ] as const;
  definitions.topicEntries.set(TOPIC, topicEntry({ topicId: TOPIC, sources, nextSourceId: 3 }));
  const parts = { clock, definitions, historyMs: 3_600_000 };
  const disk = new SimulatedDisk();
  const opened = await openTopics({ ...parts, disk, manifest: new MemoryManifest() });
  const groups = openGroups(opened, { clock, definitions, visibilityMs: VISIBILITY_MS });
  const close = async (): Promise<void> => {
    await groups.close();
    await opened.topics.close();
    await opened.store.close();
  };
  return { ...opened, clock, groups, [Symbol.asyncDispose]: close };
}

async function write({ store }: World, key: string, value: number): Promise<void> {
  const operation = value === 1 ? "insert" : "update";
  const writes = [{ tableId: SOURCE, owner: 0, operation, rows: [[key, value]] }] as const;
  await store.durable(store.apply({ writes }).lastSeq);
}

/** Runs all work that is not waiting for a timer. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Reads messages as a user, and collects the offsets received. */
function poll(
  { groups }: World,
  { limit, userId, waitMs = 0 }: { limit: number; userId: string; waitMs?: number },
): number[] {
  const got: number[] = [];
  void groups.consume({ ...PLACE, limit, start: EARLIEST, userId, waitMs }).then(({ messages }) => {
    got.push(...messages.map(({ offset }) => offset));
    return undefined;
  });
  return got;
}

/**
 * Checks that a stream redelivers a message even if its delay ends during a fetch, after `looks`
 * reads of the clock.
 *
 * @returns Whether the fetch read the clock more than `looks` times.
 */
async function getsDelayedMessage(looks: number): Promise<boolean> {
  await using world = await open();
  const { clock, groups } = world;
  const got: TopicMessage[] = [];
  const request = { topicId: TOPIC, group: "g", start: EARLIEST, isOrdered: false, userId: "ada" };
  const stream = await groups.open(
    { ...request, credit: 10 },
    {
      messages: (messages) => got.push(...messages) > 0,
      ended: (error) => {
        throw error;
      },
    },
  );
  stream.start();
  await write(world, "delayed", 1);
  await turns();
  expect(got.map(({ offset }) => offset)).toEqual([0]);
  await stream.nack({ partition: 0, offsets: [0], delayMs: 1000 });
  await turns();
  clock.advance(999);
  clock.passAfter(looks, 2);
  await write(world, "other", 1);
  await turns();
  const { hasPassed } = clock;
  clock.settle();
  expect(got.map(({ offset }) => offset)).toContain(1);
  clock.advance(1000);
  await turns();
  expect(got.map(({ deliveries, offset }) => [offset, deliveries])).toContainEqual([0, 2]);
  stream.close();
  return hasPassed;
}

test("ConsumerGroup redelivers a message whose delay ends at any point of a fetch", async () => {
  let looks = 0;
  while (await getsDelayedMessage(looks)) looks += 1;
  expect(looks).toBeGreaterThan(5);
});

test("ConsumerGroup wakes a waiting consumer for a claim whose end another consumer noticed", async () => {
  await using world = await open();
  const { clock } = world;
  await write(world, "a", 1);
  await write(world, "b", 1);
  const first = poll(world, { limit: 2, userId: "ada" });
  await turns();
  expect(first).toEqual([0, 1]);
  const waiting = poll(world, { limit: 1, userId: "bob", waitMs: 2 * VISIBILITY_MS });
  await turns();
  clock.passAfter(0, VISIBILITY_MS);
  const other = poll(world, { limit: 1, userId: "eve" });
  await turns();
  clock.settle();
  expect([other, waiting]).toEqual([[0], []]);
  clock.advance(1);
  await turns();
  expect(waiting).toEqual([1]);
});

test("ConsumerGroup counts an acknowledgement that arrives before its consumer waits", async () => {
  await using world = await open();
  const { clock, store, topics } = world;
  await write(world, "row", 1);
  await write(world, "row", 2);
  // This request stores the starting position of the group that is created next.
  poll(world, { limit: 1, userId: "ada" });
  await turns();
  const log = defined(topics.log(TOPIC), "the topic must exist");
  const deps = { clock, store, log: new SeldomLog(silentLog, clock), visibilityMs: VISIBILITY_MS };
  const group = new ConsumerGroup(PLACE, deps, { isNew: true, log, restoredEnd: 0 });
  const fetch = async (): Promise<number[]> => {
    const found = await group.fetch({ limit: 1, isOrdered: true, consumer: 1 });
    return found.messages.map(({ offset }) => offset);
  };
  expect(await fetch()).toEqual([0]);
  let wakes = 0;
  const wake = (): void => {
    wakes += 1;
  };
  const waiter: GroupWaiter = { seenEvent: group.event, wake };
  expect(await fetch()).toEqual([]);
  group.prepareAck({ ...PLACE, offsets: [0] }).done();
  group.wait(waiter);
  expect(wakes).toBe(1);
  expect(await fetch()).toEqual([1]);
  group.close();
});
