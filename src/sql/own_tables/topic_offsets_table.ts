/**
 * Defines the table of counted topic offsets. It is not in the catalog; the topics layer writes
 * and reads it.
 *
 * Each row is a page: consecutive messages of a partition. The row of partition -1 contains no
 * messages. Its body contains the seq up to which the topic's messages have been counted.
 */
import { HOUR_MS } from "../../base/clock.ts";
import type { TableDefinition } from "../../storage/mod.ts";
import { BIGINT, BYTES } from "../../types/mod.ts";

/**
 * The id of the internal table. Ids in the catalog count up from 1, so no other table has this id.
 */
const TABLE_ID = 0xffff_fffd;

const TOPIC_ID = 1;
const PARTITION = 2;
const FIRST_OFFSET = 3;
const COUNT = 4;
const FIRST_SEQ = 5;
const LAST_SEQ = 6;
const PAYLOAD_BYTES = 7;
const BODY = 8;

/**
 * The column ids: topic, partition, first offset, number of messages, first and last seq, total
 * size of the payloads in bytes, body.
 */
export const TOPIC_OFFSET_COLUMN_IDS: readonly number[] = [
  TOPIC_ID,
  PARTITION,
  FIRST_OFFSET,
  COUNT,
  FIRST_SEQ,
  LAST_SEQ,
  PAYLOAD_BYTES,
  BODY,
];

/** The id and name of the internal table, for checking its files. */
export const TOPIC_OFFSETS_TABLE: { readonly tableId: number; readonly name: string } = {
  tableId: TABLE_ID,
  name: "system.topic_pages",
};

function number(columnId: number, name: string): TableDefinition["columns"][number] {
  return { columnId, name, type: BIGINT, missing: null };
}

export function topicOffsetsTable(): TableDefinition {
  return {
    ...TOPIC_OFFSETS_TABLE,
    columns: [
      number(TOPIC_ID, "topic_id"),
      number(PARTITION, "partition_id"),
      number(FIRST_OFFSET, "first_offset"),
      number(COUNT, "messages"),
      number(FIRST_SEQ, "first_seq"),
      number(LAST_SEQ, "last_seq"),
      number(PAYLOAD_BYTES, "payload_bytes"),
      { columnId: BODY, name: "body", type: BYTES, missing: null },
    ],
    keyColumnIds: [TOPIC_ID, PARTITION, FIRST_OFFSET],
    flush: { rowsMax: 10_000, ageMsMax: HOUR_MS },
    historyMs: HOUR_MS,
  };
}
