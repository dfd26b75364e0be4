/**
 * Lists the internal tables that the SQL layer keeps in the store. They are not in the catalog.
 * Code that opens a store or checks its files must include all of them, because recovery treats
 * the rows of an unknown table as rows of a dropped table.
 */
import { assert } from "../../base/assert.ts";
import type { TableDefinition } from "../../storage/mod.ts";
import { ANSWERS_TABLE, answersTable } from "./answers_table.ts";
import { AUDIT_TABLE, auditTable } from "./audit_log.ts";
import { DEAD_LETTERS_TABLE, deadLettersTable } from "./dead_letters_table.ts";
import { TOPIC_GROUPS_TABLE, topicGroupsTable } from "./topic_groups_table.ts";
import { TOPIC_OFFSETS_TABLE, topicOffsetsTable } from "./topic_offsets_table.ts";

/** The id and name of each internal table, which do not depend on the configuration. */
export const OWN_TABLES: readonly { readonly tableId: number; readonly name: string }[] = [
  ANSWERS_TABLE,
  AUDIT_TABLE,
  TOPIC_OFFSETS_TABLE,
  TOPIC_GROUPS_TABLE,
  DEAD_LETTERS_TABLE,
];

assert(
  new Set(OWN_TABLES.map(({ tableId }) => tableId)).size === OWN_TABLES.length,
  "internal tables: two tables have the same id",
);

/** Returns the table definitions that must be passed when the store is opened. */
export function ownTables({ answersTtlMs }: { answersTtlMs: number }): TableDefinition[] {
  return [
    answersTable(answersTtlMs),
    auditTable(),
    topicOffsetsTable(),
    topicGroupsTable(),
    deadLettersTable(),
  ];
}
