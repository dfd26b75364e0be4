/**
 * Verifies that a topic is stored on disk as it was defined, has a unique name and id, and keeps
 * its namespace from being dropped. The tests use real SQLite files, and simulate a kill by
 * copying the files while the catalog is open.
 */
import { afterAll, expect, test } from "bun:test";
import type { CatalogDatabase, TopicEntry } from "../../src/catalog/mod.ts";
import { errorCodeOf } from "../support/error_codes.ts";
import {
  freshPath,
  killedCopy,
  openCatalog,
  removeCatalogs,
  seqOf,
  tableEntry,
} from "./catalog_fixture.ts";

afterAll(removeCatalogs);

function topicEntry(change: Partial<TopicEntry> = {}): TopicEntry {
  return {
    topicId: 9,
    namespace: "app",
    name: "feed",
    partitions: 4,
    retentionHours: 168,
    retentionBytes: 1 << 30,
    createdSeq: 10,
    clearedSeq: 0,
    sources: [
      { sourceId: 1, tableId: 1, operation: "insert", payload: "full", fromSeq: 10 },
      {
        sourceId: 2,
        tableId: 1,
        operation: "update",
        payload: "diff",
        where: "id > 1",
        fromSeq: 11,
      },
    ],
    nextSourceId: 3,
    createdBy: "ada",
    createdAtMs: 1,
    updatedAtMs: 2,
    ...change,
  };
}

function withNamespace(path: string): CatalogDatabase {
  const catalog = openCatalog(path);
  catalog.createNamespace({ name: "app", owner: undefined, options: {}, createdAtMs: 1 });
  return catalog;
}

test("Catalog.topics has the same state on disk as in memory if the process is killed after any change", () => {
  const path = freshPath();
  const catalog = withNamespace(path);
  const topicId = catalog.nextTableId();
  const [source] = topicEntry().sources;
  if (source === undefined) throw new Error("the entry has a source");
  const steps: readonly (() => void)[] = [
    () => catalog.createTopic(topicEntry({ topicId }), seqOf(10)),
    () => catalog.createTopic(topicEntry({ topicId: topicId + 1, name: "a" }), seqOf(11)),
    () =>
      catalog.changeTopic(
        topicEntry({ topicId, sources: [{ ...source, toSeq: 12 }], maxDeliveries: 3 }),
        seqOf(12),
      ),
    () => catalog.changeTopic(topicEntry({ topicId, clearedSeq: 12 }), seqOf(13)),
    () => catalog.dropTopics(catalog.topics().slice(0, 1), seqOf(14)),
    () => catalog.dropTopics([], seqOf(15)),
    () => catalog.dropTopics(catalog.topics(), seqOf(16)),
  ];
  const names: string[][] = [];
  for (const [index, step] of steps.entries()) {
    const { version } = catalog;
    step();
    expect(catalog.version, `step ${index}`).toBe(index === 5 ? version : version + 1);
    const again = openCatalog(killedCopy(path));
    expect(again.topics(), `step ${index}`).toEqual(catalog.topics());
    expect(again.topicById(topicId), `step ${index}`).toEqual(catalog.topicById(topicId));
    expect(again.nextTableId(), `step ${index}`).toBeGreaterThan(topicId);
    names.push(again.topics().map(({ name }) => name));
    again.close();
  }
  const both = ["a", "feed"];
  expect(names).toEqual([["feed"], both, both, both, ["feed"], ["feed"], []]);
  expect(catalog.topic("app", "feed")).toBeUndefined();
  catalog.close();
});

test("topics share names with tables and views, and keep their namespace from being dropped", () => {
  const catalog = withNamespace(freshPath());
  catalog.createTable(tableEntry({ namespace: "app", name: "t" }), seqOf(1));
  const create = (name: string): void => catalog.createTopic(topicEntry({ name }), seqOf(2));
  expect(errorCodeOf(() => create("t"))).toBe("ALREADY_EXISTS");
  create("feed");
  expect(errorCodeOf(() => create("feed"))).toBe("ALREADY_EXISTS");
  const taken = tableEntry({ tableId: 98, namespace: "app", name: "feed" });
  expect(errorCodeOf(() => catalog.createTable(taken, seqOf(3)))).toBe("ALREADY_EXISTS");
  catalog.dropTable(1, seqOf(4));
  expect(errorCodeOf(() => catalog.dropNamespace("app"))).toBe("DEPENDENT_OBJECTS");
  catalog.dropTopics(catalog.topics(), seqOf(5));
  catalog.dropNamespace("app");
  const elsewhere = topicEntry({ namespace: "none" });
  expect(errorCodeOf(() => catalog.createTopic(elsewhere, seqOf(6)))).toBe("NAMESPACE_NOT_FOUND");
  catalog.close();
});

test("Catalog.changeTopic refuses a different number of partitions and messages that would reappear", () => {
  const catalog = withNamespace(freshPath());
  catalog.createTopic(topicEntry({ clearedSeq: 5 }), seqOf(10));
  expect(() =>
    catalog.changeTopic(topicEntry({ partitions: 5, clearedSeq: 5 }), seqOf(11)),
  ).toThrow("catalog: number of topic partitions cannot change");
  expect(() => catalog.changeTopic(topicEntry({ clearedSeq: 4 }), seqOf(11))).toThrow(
    "catalog: the cleared seq of a topic would decrease",
  );
  expect(() => catalog.changeTopic(topicEntry({ topicId: 77 }), seqOf(11))).toThrow(
    "catalog: topic not found",
  );
  catalog.close();
});
