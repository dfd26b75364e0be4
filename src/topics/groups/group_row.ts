/**
 * Reads and writes the positions of groups in the groups table.
 *
 *     body   end − committed; the number of runs of acknowledged messages above the committed
 *            offset, then of each run its distance to the one before and its length; the number of
 *            unacknowledged messages that were not delivered exactly once, then of each its
 *            distance to the one before and its deliveries. All numbers are varints.
 */
import { assert } from "../../base/assert.ts";
import { ByteReader } from "../../base/byte_reader.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import { TOPIC_GROUP_COLUMN_IDS, TOPIC_GROUPS_TABLE } from "../../sql/mod.ts";
import { SHARED_OWNER, type Store, type TableWrite } from "../../storage/mod.ts";
import { type Row, type Value, valueAt } from "../../types/mod.ts";
import type { WindowState } from "./group_window.ts";

const { tableId: TABLE_ID, name: TABLE_NAME } = TOPIC_GROUPS_TABLE;

const [, , , COMMITTED = 0, UPDATED_AT_MS = 0, BODY = 0] = TOPIC_GROUP_COLUMN_IDS;

/** The store methods used to read and write groups. */
export type GroupStore = Pick<
  Store,
  "appliedSeq" | "apply" | "durable" | "lookup" | "owners" | "scan" | "visibleSeq"
>;

/** Identifies a consumer group in a partition. */
export interface GroupPlace {
  readonly topicId: number;
  readonly partition: number;
  readonly group: string;
}

/** The stored position of a consumer group. */
export interface StoredGroup {
  readonly state: WindowState;
  readonly updatedAtMs: number;
}

/** Reads a group's newest position, durable or not; undefined if the group has no position. */
export function storedGroup(
  store: GroupStore,
  { group, partition, topicId }: GroupPlace,
): StoredGroup | undefined {
  const row = store.lookup(TABLE_ID, {
    owner: SHARED_OWNER,
    key: [topicId, partition, group],
    upTo: store.appliedSeq,
    columnIds: [COMMITTED, UPDATED_AT_MS, BODY],
  });
  if (row === undefined) return undefined;
  const [committed, updatedAtMs, body] = row;
  assert(body instanceof Uint8Array, "consumer group: stored record has no body");
  return { state: stateOf(Number(committed), body), updatedAtMs: Number(updatedAtMs) };
}

/** Whether a group's newest position equals this state. */
export function isStoredState(store: GroupStore, place: GroupPlace, state: WindowState): boolean {
  const stored = storedGroup(store, place);
  if (stored === undefined || stored.state.committed !== state.committed) return false;
  return Buffer.compare(bodyOf(stored.state), bodyOf(state)) === 0;
}

/** A row of the groups table without its body. */
export interface ListedGroup extends GroupPlace {
  readonly committed: number;
  readonly updatedAtMs: number;
}

/** Returns the durable positions of all groups, in no particular order. */
export function listedGroups(store: GroupStore): ListedGroup[] {
  return [...storedRows(store)].map(([topicId, partition, group, committed, updatedAtMs]) => ({
    topicId: Number(topicId),
    partition: Number(partition),
    group: typeof group === "string" ? group : "",
    committed: Number(committed),
    updatedAtMs: Number(updatedAtMs),
  }));
}

function* storedRows(store: GroupStore): Generator<Row> {
  const scan = store.scan(TABLE_ID, {
    owner: SHARED_OWNER,
    upTo: store.visibleSeq,
    columnIds: TOPIC_GROUP_COLUMN_IDS.slice(0, -1),
  });
  try {
    for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
      for (let row = 0; row < batch.rowCount; row += 1) {
        yield batch.columns.map((column): Value => valueAt(column, row));
      }
    }
  } finally {
    scan.close();
  }
}

/** Deletes the stored positions of groups whose topics no longer exist. */
export async function removeGroups(
  store: GroupStore,
  isGone: (topicId: number) => boolean,
): Promise<void> {
  const rows = [...storedRows(store)].filter(([topicId]) => isGone(Number(topicId)));
  if (rows.length === 0) return;
  // A deleted position needs no body, because it is never read.
  const deleted = rows.map((row): Row => row.concat(null));
  await store.durable(store.apply({ writes: [write("delete", deleted)] }).lastSeq);
}

/**
 * Returns the write that stores a group's position. @param isNew Whether the table has no row for
 * the group yet.
 */
export function groupWrite(
  { group, partition, topicId }: GroupPlace,
  { isNew, nowMs, state }: { isNew: boolean; nowMs: number; state: WindowState },
): TableWrite {
  const row: Row = [topicId, partition, group, state.committed, nowMs, bodyOf(state)];
  return write(isNew ? "insert" : "update", [row]);
}

function write(operation: TableWrite["operation"], rows: readonly Row[]): TableWrite {
  return { tableId: TABLE_ID, owner: SHARED_OWNER, operation, rows };
}

function bodyOf({ acked, committed, deliveries, end }: WindowState): Uint8Array {
  const writer = new ByteWriter(32);
  writer.varint(end - committed);
  writer.varint(acked.length);
  let at = committed;
  for (const [from, to] of acked) {
    writer.varint(from - at);
    writer.varint(to - from);
    at = to;
  }
  writer.varint(deliveries.length);
  at = committed;
  for (const [offset, count] of deliveries) {
    writer.varint(offset - at);
    writer.varint(count);
    at = offset;
  }
  return writer.copy();
}

function stateOf(committed: number, body: Uint8Array): WindowState {
  const reader = new ByteReader(body, { path: TABLE_NAME });
  const end = committed + reader.varint();
  const acked: [number, number][] = [];
  let at = committed;
  for (let left = reader.varint(); left > 0; left -= 1) {
    const from = at + reader.varint();
    at = from + reader.varint();
    acked.push([from, at]);
  }
  const deliveries: [number, number][] = [];
  at = committed;
  for (let left = reader.varint(); left > 0; left -= 1) {
    at += reader.varint();
    deliveries.push([at, reader.varint()]);
  }
  return { committed, end, acked, deliveries };
}
