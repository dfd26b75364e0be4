/**
 * Verifies that after CLEAR TOPIC, no consumer gets an older message, and that offsets continue
 * without a break.
 */
import { expect, test } from "bun:test";
import { INT } from "../../src/types/mod.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { MemoryManifest } from "../support/memory_manifest.ts";
import { SimulatedDisk } from "../support/simulated_disk.ts";
import { commit } from "../support/store_fixture.ts";
import { Definitions, openTopics, tableEntry, topicEntry } from "./topics_fixture.ts";

test("a cleared topic delivers only later messages, at once and after a restart", async () => {
  const definitions = new Definitions();
  definitions.tableEntries.set(1, tableEntry(1, [INT, INT]));
  const source = { tableId: 1, operation: "insert", payload: "key", fromSeq: 0 } as const;
  const topic = topicEntry({ topicId: 9, sources: [{ sourceId: 1, ...source }] });
  definitions.topicEntries.set(9, topic);
  const parts = {
    definitions,
    clock: new ManualClock(),
    disk: new SimulatedDisk(),
    manifest: new MemoryManifest(),
    historyMs: 1000,
  };
  const { store, topics } = await openTopics(parts);
  await commit(store, 1, "insert", [
    [1, 1],
    [2, 2],
  ]);
  await topics.log(9)?.count();
  expect(topics.log(9)?.earliestOffset(0)).toBe(0);
  definitions.topicEntries.set(9, { ...topic, clearedSeq: store.issueSeq() });
  topics.topicsChanged();
  await topics.log(9)?.count();
  expect(topics.log(9)?.earliestOffset(0)).toBe(2);
  await commit(store, 1, "insert", [[3, 3]]);
  await topics.log(9)?.count();
  const read = await topics.log(9)?.read(0, { from: 0, limit: 9 });
  expect(read?.messages.map(({ offset }) => offset)).toEqual([2]);
  await topics.close();
  await store.close();
  const again = await openTopics(parts);
  await again.topics.log(9)?.count();
  expect(again.topics.log(9)?.earliestOffset(0)).toBe(2);
  expect(again.topics.log(9)?.nextOffset(0)).toBe(3);
  await again.topics.close();
  await again.store.close();
});
