/**
 * The tables that the SQL layer keeps in the store for itself, and that no catalog knows. Whoever
 * opens a store, or checks its files, asks here for all of them: recovery takes the rows of a table
 * that it was not told of for those of a dropped one.
 */
import { assert } from "../../base/assert.ts";
import type { TableDefinition } from "../../storage/mod.ts";
import { ANSWERS_TABLE, answersTable } from "./answers_table.ts";
import { AUDIT_TABLE, auditTable } from "./audit_log.ts";

/** What is known of them without a configuration. */
export const OWN_TABLES: readonly { readonly tableId: number; readonly name: string }[] = [
  ANSWERS_TABLE,
  AUDIT_TABLE,
];

assert(
  new Set(OWN_TABLES.map(({ tableId }) => tableId)).size === OWN_TABLES.length,
  "own tables have ids of their own",
);

/** Their definitions, as the store is to be opened with. */
export function ownTables({ answersTtlMs }: { answersTtlMs: number }): TableDefinition[] {
  return [answersTable(answersTtlMs), auditTable()];
}
