/**
 * Whether a position still means what it meant to the client that kept it. History tells which rows
 * changed since; this tells whether the rows that the client holds are of the same table, of the
 * same user, and look as the query shows them now. Where they do not, no replay of changes makes
 * the current result of them.
 */
import type { Principal } from "../auth/mod.ts";
import type { Seq } from "../base/seq.ts";
import type { Catalog, TableEntry } from "../catalog/mod.ts";
import type { LivePlan } from "../sql/mod.ts";
import { SHARED_OWNER } from "../storage/mod.ts";
import { dataTypeWord } from "../types/mod.ts";
import { SubscriptionError } from "./live.ts";
import { ending, endingFor, resumeExpired } from "./live_errors.ts";

/** What was defined when: a part of the catalog. */
export type DefinitionHistory = Pick<
  Catalog,
  "tableAt" | "tableById" | "tableDroppedSeq" | "tableOpenedSeq" | "userDroppedSeq"
>;

export interface Resume {
  readonly id: string;
  readonly principal: Principal;
  readonly plan: LivePlan;
  /** Above 0: who resumes from there holds nothing. */
  readonly position: Seq;
}

/** @throws {SubscriptionError} RESUME_EXPIRED, SCHEMA_CHANGED */
export function requireSameMeaning(definitions: DefinitionHistory, resume: Resume): void {
  const { id, plan, position, principal } = resume;
  const table = definitions.tableById(plan.tableId);
  // The server's own tables are in no catalog, and never change.
  if (table === undefined) return;
  const droppedSeq = Math.max(
    definitions.tableDroppedSeq(table.namespace, table.name),
    plan.owner === SHARED_OWNER ? 0 : definitions.userDroppedSeq(principal.userId),
  );
  if (position < droppedSeq) {
    throw new SubscriptionError(endingFor(id, resumeExpired(droppedSeq), "planning"));
  }
  const before = definitions.tableAt(plan.tableId, position);
  // From before it was created nobody holds a row of it.
  if (before === undefined || showsSame(plan, { before, table })) return;
  const message = `Table ${plan.tableName} was altered; subscribe without from_seq_id`;
  throw new SubscriptionError(ending(id, "SCHEMA_CHANGED", message));
}

/** Whether a query shows an unchanged row now as it did then. */
function showsSame(
  { hasStar, namedColumns }: LivePlan,
  { before, table }: { before: TableEntry; table: TableEntry },
): boolean {
  if (before.schemaVersion === table.schemaVersion) return true;
  // A column that is in one of them only: each of today's is named, and looked for below.
  if (hasStar && before.columns.length !== table.columns.length) return false;
  return namedColumns.every(({ columnId: id }) => {
    const was = before.columns.find(({ columnId }) => columnId === id);
    const is = table.columns.find(({ columnId }) => columnId === id);
    if (was === undefined || is === undefined) return false;
    // A wider type may write the same value otherwise.
    const wordOf = ({ type }: typeof was): string => JSON.stringify(dataTypeWord(type));
    return was.name === is.name && wordOf(was) === wordOf(is);
  });
}
