/**
 * Verifies that dead letters are deleted along with their messages and topics, at a cost
 * proportional to their number.
 */
import { expect, test } from "bun:test";
import { DEAD_LETTERS_TABLE } from "../../../src/sql/mod.ts";
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

const HOUR_MS = 3_600_000;
const SOURCE = 1;
const WORK = 11;
const DEAD = 12;
const { tableId: LETTERS } = DEAD_LETTERS_TABLE;

interface World extends OpenTopics {
  readonly groups: TopicGroups;
  readonly clock: ManualClock;
  readonly definitions: Definitions;
}

async function open(): Promise<World> {
  const clock = new ManualClock();
  const definitions = new Definitions();
  definitions.tableEntries.set(SOURCE, tableEntry(SOURCE, [TEXT, BIGINT]));
  const sources = [
    { sourceId: 1, tableId: SOURCE, operation: "insert", payload: "full", fromSeq: 0 },
  ] as const;
  const options = { maxDeliveries: 1, deadLetter: `app.topic${DEAD}`, sources, nextSourceId: 2 };
  definitions.topicEntries.set(WORK, topicEntry({ topicId: WORK, ...options }));
  definitions.topicEntries.set(DEAD, topicEntry({ topicId: DEAD, retentionHours: 2 }));
  const disk = new SimulatedDisk();
  const manifest = new MemoryManifest();
  const opened = await openTopics({ clock, definitions, disk, manifest, historyMs: HOUR_MS });
  const groups = openGroups(opened, { clock, definitions, visibilityMs: 1000 });
  return { ...opened, clock, definitions, groups };
}

async function bury({ clock, groups, store }: World, key: string): Promise<void> {
  const writes = [{ tableId: SOURCE, owner: 0, operation: "insert", rows: [[key, 1]] }] as const;
  await store.durable(store.apply({ writes }).lastSeq);
  const request = { topicId: WORK, partition: 0, group: "g", limit: 10, userId: "ada" };
  await groups.consume({ ...request, start: { kind: "earliest" } });
  clock.advance(1000);
  await groups.consume({ ...request, start: { kind: "earliest" } });
  await store.durable(store.appliedSeq);
}

/** Runs all recurring work of a period of `ms` milliseconds. */
async function pass({ clock, topics }: World, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 600_000) {
    clock.advance(600_000);
    await topics.looked();
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }
}

async function close({ groups, store, topics }: World): Promise<void> {
  await groups.close();
  await topics.close();
  await store.close();
}

test("a dead letter is deleted once its topic discards its message, and later ones stay", async () => {
  const world = await open();
  const { store } = world;
  await bury(world, "old");
  expect(store.liveRowCount(LETTERS, undefined)).toBe(1);
  await pass(world, HOUR_MS);
  await bury(world, "new");
  expect(store.liveRowCount(LETTERS, undefined)).toBe(2);
  let scans = 0;
  const scan = store.scan.bind(store);
  store.scan = (tableId, options) => {
    if (tableId === LETTERS) scans += 1;
    return scan(tableId, options);
  };
  await pass(world, 1.5 * HOUR_MS);
  expect(store.liveRowCount(LETTERS, undefined)).toBe(1);
  await pass(world, 2 * HOUR_MS);
  expect(store.liveRowCount(LETTERS, undefined)).toBe(0);
  expect(scans).toBe(0);
  await close(world);
});

test("the dead letters of a dropped topic are deleted", async () => {
  const world = await open();
  const { definitions, groups, store } = world;
  await bury(world, "one");
  definitions.topicEntries.delete(DEAD);
  groups.topicsChanged();
  await pass(world, 600_000);
  expect(store.liveRowCount(LETTERS, undefined)).toBe(0);
  await close(world);
});
