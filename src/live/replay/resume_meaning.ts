/**
 * Decides whether a client's resume position is still meaningful. History shows which rows have
 * changed since that position. This file decides whether the client's rows belong to the same table
 * and user, and still look as the query would show them now. If not, no replay of changes can turn
 * them into the current result.
 */
import type { Principal } from "../../auth/mod.ts";
import type { Seq } from "../../base/seq.ts";
import type { Catalog, TableEntry } from "../../catalog/mod.ts";
import type { LivePlan, ResultPlan } from "../../sql/mod.ts";
import { SHARED_OWNER } from "../../storage/mod.ts";
import { dataTypeWord } from "../../types/mod.ts";
import { SubscriptionError } from "../contract/live.ts";
import { ending, endingFor, resumeExpired } from "../contract/live_errors.ts";

/** The part of the catalog that records when each definition was valid. */
export type DefinitionHistory = Pick<
  Catalog,
  "tableAt" | "tableById" | "tableDroppedSeq" | "tableOpenedSeq" | "userDroppedSeq"
>;

export interface Resume {
  readonly id: string;
  readonly principal: Principal;
  readonly plan: LivePlan;
  /**
   * The position of the client. The position is above 0, because a client that resumes from 0 has
   * no rows.
   */
  readonly position: Seq;
}

/** @throws {SubscriptionError} RESUME_EXPIRED, SCHEMA_CHANGED */
export function requireSameMeaning(definitions: DefinitionHistory, resume: Resume): void {
  const { id, plan, position, principal } = resume;
  const table = definitions.tableById(plan.tableId);
  // The server's own tables are not in the catalog and never change.
  if (table === undefined) return;
  const droppedSeq = Math.max(
    definitions.tableDroppedSeq(table.namespace, table.name),
    plan.owner === SHARED_OWNER ? 0 : definitions.userDroppedSeq(principal.userId),
  );
  if (position < droppedSeq) {
    throw new SubscriptionError(endingFor(id, resumeExpired(droppedSeq), "planning"));
  }
  const before = definitions.tableAt(plan.tableId, position);
  // The table did not exist at that position, so no client has a row from it.
  if (before === undefined || showsSame(plan, { before, table })) return;
  throw changed(id, `Table ${plan.tableName} was altered`);
}

/** Returns whether a query shows an unchanged row in the same form now as at the position. */
function showsSame(
  { hasStar, namedColumns }: LivePlan,
  { before, table }: { before: TableEntry; table: TableEntry },
): boolean {
  if (before.schemaVersion === table.schemaVersion) return true;
  // Detects columns that no longer exist: each current column is named and compared below.
  if (hasStar && before.columns.length !== table.columns.length) return false;
  return namedColumns.every(({ columnId: id }) => {
    const was = before.columns.find(({ columnId }) => columnId === id);
    const is = table.columns.find(({ columnId }) => columnId === id);
    if (was === undefined || is === undefined) return false;
    // A wider type may format the same value differently.
    const wordOf = ({ type }: typeof was): string => JSON.stringify(dataTypeWord(type));
    return was.name === is.name && wordOf(was) === wordOf(is);
  });
}

export interface ResultResume {
  readonly id: string;
  readonly principal: Principal;
  readonly plan: ResultPlan;
  readonly position: Seq;
}

/**
 * Checks that a query that is followed as a whole reads the same tables and views as at its
 * position, with the same columns.
 *
 * @throws {SubscriptionError} RESUME_EXPIRED, SCHEMA_CHANGED
 */
export function requireSameResult(
  definitions: DefinitionHistory,
  { id, plan, position, principal }: ResultResume,
): void {
  for (const { owner, tableId } of plan.tables) {
    const table = definitions.tableById(tableId);
    // The server's own tables are not in the catalog and never change.
    if (table === undefined) continue;
    const droppedSeq = Math.max(
      definitions.tableDroppedSeq(table.namespace, table.name),
      owner === SHARED_OWNER ? 0 : definitions.userDroppedSeq(principal.userId),
    );
    if (position < droppedSeq) {
      throw new SubscriptionError(endingFor(id, resumeExpired(droppedSeq), "planning"));
    }
    const before = definitions.tableAt(tableId, position);
    if (before === undefined || before.schemaVersion === table.schemaVersion) continue;
    throw changed(id, `Table ${table.namespace}.${table.name} was altered`);
  }
  if (position < plan.viewsChangedSeq) throw changed(id, "A view was replaced");
}

function changed(id: string, what: string): SubscriptionError {
  const message = `${what}; subscribe without from_seq_id`;
  return new SubscriptionError(ending(id, "SCHEMA_CHANGED", message));
}
