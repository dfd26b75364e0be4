/**
 * The table of the answers that requests with a key have had, which no catalog knows.
 * `sql/request/idempotency.ts` writes and reads it.
 */
import { HOUR_MS } from "../../base/clock.ts";
import type { TableDefinition } from "../../storage/mod.ts";
import { BIGINT, TEXT } from "../../types/mod.ts";

/** No table of a catalog ever gets this id: those count up from 1. */
const TABLE_ID = 0xffff_ffff;

const KEY = 1;
const DIGEST = 2;
const ANSWER = 3;
const CREATED_AT_MS = 4;
/** Key, digest of the request, answer, when. */
export const ANSWER_COLUMN_IDS: readonly number[] = [KEY, DIGEST, ANSWER, CREATED_AT_MS];

/** As a check of its files needs it. */
export const ANSWERS_TABLE: { readonly tableId: number; readonly name: string } = {
  tableId: TABLE_ID,
  name: "system.idempotent_answers",
};

/** Its rows go by themselves when their time is over. */
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
