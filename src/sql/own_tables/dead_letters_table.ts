/**
 * Defines the table of dead letters: messages that were delivered to a group as many times as the
 * topic allows, but were never acknowledged. It is not in the catalog; the topics layer writes and
 * reads it.
 *
 * Each row is one message. Inserting the row is itself a message of the dead-letter topic. A row
 * has the same owner as its message.
 */
import { HOUR_MS } from "../../base/clock.ts";
import {
  SHARED_OWNER,
  type Store,
  type StoredColumn,
  type TableDefinition,
} from "../../storage/mod.ts";
import { BIGINT, type Row, TEXT, type Value, valueAt } from "../../types/mod.ts";

/** The index of the column that contains the user to whom the message belongs. */
const USER_INDEX = 9;

/**
 * The id of the internal table. Ids in the catalog count up from 1, so no other table has this id.
 */
const TABLE_ID = 0xffff_fffb;

/** The id and name of the internal table, for checking its files. */
export const DEAD_LETTERS_TABLE: { readonly tableId: number; readonly name: string } = {
  tableId: TABLE_ID,
  name: "system.dead_letters",
};

/** The columns of a dead letter, in the order in which a row contains their values. */
export const DEAD_LETTER_COLUMNS: readonly StoredColumn[] = [
  { columnId: 1, name: "letter_id", type: TEXT, missing: null },
  { columnId: 2, name: "dead_letter_topic", type: BIGINT, missing: null },
  { columnId: 3, name: "topic_id", type: TEXT, missing: null },
  { columnId: 4, name: "partition_id", type: BIGINT, missing: null },
  { columnId: 5, name: "offset", type: BIGINT, missing: null },
  { columnId: 6, name: "group_id", type: TEXT, missing: null },
  { columnId: 7, name: "deliveries", type: BIGINT, missing: null },
  { columnId: 8, name: "key", type: TEXT, missing: null },
  { columnId: 9, name: "op", type: TEXT, missing: null },
  { columnId: 10, name: "user", type: TEXT, missing: null },
  { columnId: 11, name: "timestamp_ms", type: BIGINT, missing: null },
  { columnId: 12, name: "payload", type: TEXT, missing: null },
];

export function deadLettersTable(): TableDefinition {
  return {
    ...DEAD_LETTERS_TABLE,
    columns: DEAD_LETTER_COLUMNS,
    keyColumnIds: [1],
    flush: { rowsMax: 10_000, ageMsMax: HOUR_MS },
    historyMs: HOUR_MS,
  };
}

/**
 * Deletes the dead letters that concern a user but have no owner, as earlier server versions wrote
 * them. The topic no longer shows deleted letters. Its retention removes their bytes later.
 *
 * @returns The number of deleted letters.
 */
export async function deleteUnownedLetters(
  store: Pick<Store, "apply" | "durable" | "scan" | "visibleSeq">,
  userId: string,
): Promise<number> {
  const rows: Row[] = [];
  const columnIds = DEAD_LETTER_COLUMNS.map(({ columnId }) => columnId);
  const scan = store.scan(TABLE_ID, { owner: SHARED_OWNER, upTo: store.visibleSeq, columnIds });
  try {
    for (let batch = scan.next(); batch !== undefined; batch = scan.next()) {
      for (let index = 0; index < batch.rowCount; index += 1) {
        const row = batch.columns.map((column): Value => valueAt(column, index));
        if (row[USER_INDEX] === userId) rows.push(row);
      }
    }
  } finally {
    scan.close();
  }
  if (rows.length === 0) return 0;
  const writes = [{ tableId: TABLE_ID, owner: SHARED_OWNER, operation: "delete", rows }] as const;
  await store.durable(store.apply({ writes }).lastSeq);
  return rows.length;
}
