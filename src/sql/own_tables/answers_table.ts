/**
 * Defines the internal table that stores the responses to requests with an idempotency key. It is
 * not in the catalog. `sql/request/idempotency.ts` writes and reads it.
 */
import { HOUR_MS } from "../../base/clock.ts";
import type { TableDefinition } from "../../storage/mod.ts";
import { BIGINT, TEXT } from "../../types/mod.ts";

/**
 * The id of the internal table. Ids in the catalog count up from 1, so no other table has this id.
 */
const TABLE_ID = 0xffff_ffff;

const KEY = 1;
const DIGEST = 2;
const ANSWER = 3;
const CREATED_AT_MS = 4;
/** The column ids: key, digest of the request, response and creation time. */
export const ANSWER_COLUMN_IDS: readonly number[] = [KEY, DIGEST, ANSWER, CREATED_AT_MS];

/** The id and name of the internal table, for checking its files. */
export const ANSWERS_TABLE: { readonly tableId: number; readonly name: string } = {
  tableId: TABLE_ID,
  name: "system.idempotent_answers",
};

/** Returns the definition of the table of stored responses. Its rows expire after `ttlMs`. */
export function answersTable(ttlMs: number): TableDefinition {
  return {
    ...ANSWERS_TABLE,
    columns: [
      { columnId: KEY, name: "key", type: TEXT, missing: null },
      { columnId: DIGEST, name: "digest", type: TEXT, missing: null },
      { columnId: ANSWER, name: "answer", type: TEXT, missing: null },
      { columnId: CREATED_AT_MS, name: "created_at_ms", type: BIGINT, missing: null },
    ],
    keyColumnIds: [KEY],
    flush: { rowsMax: 100_000, ageMsMax: HOUR_MS },
    historyMs: HOUR_MS,
    ttlMs,
  };
}
