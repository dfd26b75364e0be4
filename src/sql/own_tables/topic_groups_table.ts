/**
 * Defines the table of topic groups. It is not in the catalog; the topics layer writes and reads
 * it.
 *
 * Each row is the position of a group in a partition.
 */
import { HOUR_MS } from "../../base/clock.ts";
import type { TableDefinition } from "../../storage/mod.ts";
import { BIGINT, BYTES, TEXT } from "../../types/mod.ts";

/**
 * The id of the internal table. Ids in the catalog count up from 1, so no other table has this id.
 */
const TABLE_ID = 0xffff_fffc;

const TOPIC_ID = 1;
const PARTITION = 2;
const GROUP_ID = 3;
const COMMITTED = 4;
const UPDATED_AT_MS = 5;
const BODY = 6;

/**
 * The column ids: topic, partition, group, committed offset (exclusive), time of the last change,
 * body.
 */
export const TOPIC_GROUP_COLUMN_IDS: readonly number[] = [
  TOPIC_ID,
  PARTITION,
  GROUP_ID,
  COMMITTED,
  UPDATED_AT_MS,
  BODY,
];

/** The id and name of the internal table, for checking its files. */
export const TOPIC_GROUPS_TABLE: { readonly tableId: number; readonly name: string } = {
  tableId: TABLE_ID,
  name: "system.topic_groups",
};

export function topicGroupsTable(): TableDefinition {
  return {
    ...TOPIC_GROUPS_TABLE,
    columns: [
      { columnId: TOPIC_ID, name: "topic_id", type: BIGINT, missing: null },
      { columnId: PARTITION, name: "partition_id", type: BIGINT, missing: null },
      { columnId: GROUP_ID, name: "group_id", type: TEXT, missing: null },
      { columnId: COMMITTED, name: "committed_offset", type: BIGINT, missing: null },
      { columnId: UPDATED_AT_MS, name: "updated_at_ms", type: BIGINT, missing: null },
      { columnId: BODY, name: "body", type: BYTES, missing: null },
    ],
    keyColumnIds: [TOPIC_ID, PARTITION, GROUP_ID],
    flush: { rowsMax: 10_000, ageMsMax: HOUR_MS },
    historyMs: HOUR_MS,
  };
}
