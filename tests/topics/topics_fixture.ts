/**
 * Provides topics over a store on a simulated disk, with tables and topics that a test defines as
 * plain data.
 */

import { silentLog } from "../../src/base/log.ts";
import { SeldomLog } from "../../src/base/seldom_log.ts";
import { SEQ_ZERO, type Seq } from "../../src/base/seq.ts";
import type { TableEntry, TopicEntry } from "../../src/catalog/mod.ts";
import { type LivePlan, type LiveRequest, ownTables } from "../../src/sql/mod.ts";
import type { LocalStore, TableDefinition } from "../../src/storage/mod.ts";
import { DeadLetterCatalog, LocalTopics, TopicGroups } from "../../src/topics/mod.ts";
import { BOOLEAN, type DataType, valueAt, vectorFromValues } from "../../src/types/mod.ts";
import type { ManualClock } from "../support/manual_clock.ts";
import type { MemoryManifest } from "../support/memory_manifest.ts";
import type { SimulatedDisk } from "../support/simulated_disk.ts";
import { type FixtureParts, openStore, SMALL_MERGES } from "../support/store_fixture.ts";

/** Returns a table with columns of the given types, the first of which is the primary key. */
export function tableEntry(tableId: number, types: readonly DataType[]): TableEntry {
  return {
    tableId,
    namespace: "app",
    name: `t${tableId}`,
    kind: "shared",
    columns: types.map((type, index) => ({
      columnId: index + 1,
      name: `c${index + 1}`,
      type,
      notNull: false,
      generatedAlways: false,
      missing: null,
    })),
    primaryKey: [1],
    checks: [],
    options: {},
    schemaVersion: 1,
    nextColumnId: types.length + 1,
    createdBy: "root",
    createdAtMs: 0,
    updatedAtMs: 0,
  };
}

function definitionOf(table: TableEntry, historyMs: number): TableDefinition {
  return {
    tableId: table.tableId,
    name: `${table.namespace}.${table.name}`,
    columns: table.columns,
    keyColumnIds: table.primaryKey,
    flush: { rowsMax: 1e9, ageMsMax: 1e12 },
    historyMs,
  };
}

export function topicEntry(change: Partial<TopicEntry> & { topicId: number }): TopicEntry {
  return {
    namespace: "app",
    name: `topic${change.topicId}`,
    partitions: 1,
    retentionHours: 168,
    retentionBytes: 1 << 30,
    createdSeq: 0,
    clearedSeq: 0,
    sources: [],
    nextSourceId: 1,
    createdBy: "root",
    createdAtMs: 0,
    updatedAtMs: 0,
    ...change,
  };
}

/**
 * The tables, topics and accounts that a simulation defines. They outlive the simulated processes.
 */
export class Definitions {
  readonly tableEntries: Map<number, TableEntry> = new Map<number, TableEntry>();
  readonly accounts = { ownerName: (owner: number): string => `user${owner}` };
  readonly topicEntries: Map<number, TopicEntry> = new Map<number, TopicEntry>();

  tableById(tableId: number): TableEntry | undefined {
    return this.tableEntries.get(tableId);
  }

  topics(): readonly TopicEntry[] {
    return [...this.topicEntries.values()];
  }

  topic(namespace: string, name: string): TopicEntry | undefined {
    return this.topics().find((entry) => entry.namespace === namespace && entry.name === name);
  }

  changeTopic(entry: TopicEntry, _seq: Seq): void {
    this.topicEntries.set(entry.topicId, entry);
  }
}

/** Plans the only form of condition that these tests use: "c2 > <number>". */
function planLive(_principal: unknown, { sql }: LiveRequest): LivePlan {
  const least = Number(/ WHERE c2 > (\d+)$/.exec(sql)?.[1]);
  if (!Number.isInteger(least)) throw new Error(`${sql} has another condition`);
  const plan: Pick<LivePlan, "columnIds" | "filter"> = {
    columnIds: [2],
    filter: {
      type: BOOLEAN,
      evaluate: ({ columns, rowCount }) =>
        vectorFromValues(
          BOOLEAN,
          Array.from({ length: rowCount }, (_, row) => {
            const [column] = columns;
            return column !== undefined && Number(valueAt(column, row)) > least;
          }),
        ),
    },
  };
  return plan as LivePlan;
}

export interface OpenTopics {
  readonly store: LocalStore;
  readonly topics: LocalTopics;
}

export interface TopicsParts {
  readonly definitions: Definitions;
  readonly clock: ManualClock;
  readonly disk: SimulatedDisk;
  readonly manifest: MemoryManifest;
  /** The time for which the tables themselves keep history, in milliseconds. */
  readonly historyMs: number;
  readonly options?: FixtureParts["options"];
}

/** Opens the store and its topics, as startup does. */
export async function openTopics(parts: TopicsParts): Promise<OpenTopics> {
  const { clock, definitions, disk, historyMs, manifest, options } = parts;
  const store = await openStore({
    disk,
    manifest,
    clock,
    definitions: [
      ...[...definitions.tableEntries.values()].map((table) => definitionOf(table, historyMs)),
      ...ownTables({ answersTtlMs: 0 }),
    ],
    options: { mergeBounds: SMALL_MERGES, ...options },
  });
  for (const tableId of definitions.tableEntries.keys()) store.holdHistory(tableId, SEQ_ZERO);
  const log = new SeldomLog(silentLog, clock);
  const sql = { planLive };
  const onBug = (error: unknown): void => {
    throw error;
  };
  const catalog = new DeadLetterCatalog(definitions, store);
  const topics = new LocalTopics({ catalog, store, sql, clock, log }, onBug);
  store.onVisible = (changed) => topics.noteChanges(changed);
  return { store, topics };
}

/** Opens the groups of open topics. */
export function openGroups(
  { store, topics }: OpenTopics,
  {
    clock,
    definitions,
    visibilityMs,
  }: Pick<TopicsParts, "clock" | "definitions"> & { visibilityMs: number },
): TopicGroups {
  return new TopicGroups({
    logs: topics,
    catalog: definitions,
    store,
    clock,
    log: new SeldomLog(silentLog, clock),
    onBug: (error) => {
      throw error;
    },
    visibilityMs,
  });
}
