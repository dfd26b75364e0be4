/**
 * Decides whether a client's resume position is still meaningful. The retained history shows which
 * rows have changed since that position. This file decides whether the client's rows belong to the
 * same table and user, were selected under the same rights and claims, and still look as the
 * query would now show them. If not, no replay of changes can turn them into the current result.
 */
import type { Principal } from "../../auth/mod.ts";
import type { Seq } from "../../base/seq.ts";
import type { Catalog, TableEntry } from "../../catalog/mod.ts";
import type { LivePlan, ResultPlan } from "../../sql/mod.ts";
import { SHARED_OWNER } from "../../storage/mod.ts";
import { dataTypeWord } from "../../types/mod.ts";
import { SubscriptionError } from "../contract/live.ts";
import {
  ending,
  endingFor,
  resumedWithOtherRights,
  resumeExpired,
} from "../contract/live_errors.ts";

/** The catalog methods that return earlier definitions. */
export type DefinitionHistory = Pick<
  Catalog,
  "rowRightsSeq" | "tableAt" | "tableById" | "tableDroppedSeq"
> & { readonly accounts: Pick<Catalog["accounts"], "droppedSeq"> };

/** A client's position, and the plan of its query. */
export interface ResumeOf<Plan> {
  readonly id: string;
  readonly principal: Principal;
  readonly plan: Plan;
  /** The client's position. It is above 0, because a client that resumes from 0 has no rows. */
  readonly position: Seq;
  /**
   * The token claims under which the client received its rows; undefined if the client does not
   * send them.
   */
  readonly claimsKey: string | undefined;
}

export type Resume = ResumeOf<LivePlan>;

/**
 * Requires that the query has kept its meaning since the position from which it resumes.
 * @throws {SubscriptionError} RESUME_EXPIRED, SCHEMA_CHANGED
 */
export function requireSameMeaning(definitions: DefinitionHistory, resume: Resume): void {
  const { id, plan, position, principal } = resume;
  const users = [principal.userId];
  requireSameRights(definitions, resume, { tableIds: [plan.tableId], users });
  const table = definitions.tableById(plan.tableId);
  // The server's own tables are not in the catalog and never change.
  if (table === undefined) return;
  const droppedSeq = Math.max(
    definitions.tableDroppedSeq(table.namespace, table.name),
    plan.owner === SHARED_OWNER ? 0 : definitions.accounts.droppedSeq(principal.userId),
  );
  if (position < droppedSeq) {
    throw new SubscriptionError(endingFor(id, resumeExpired(droppedSeq), "planning"));
  }
  const before = definitions.tableAt(plan.tableId, position);
  // The table did not exist at that position, so no client has rows from it.
  if (before === undefined || showsSame(plan, { before, table })) return;
  throw changed(id, `Table ${plan.tableName} has been altered`);
}

/**
 * Returns whether an unchanged row looks the same under the current definition of its table as it
 * did at the resume position.
 */
function showsSame(
  { hasStar, namedColumns }: LivePlan,
  { before, table }: { before: TableEntry; table: TableEntry },
): boolean {
  if (before.schemaVersion === table.schemaVersion) return true;
  // If the numbers of columns differ, a column no longer exists. The loop below compares only
  // columns that exist now.
  if (hasStar && before.columns.length !== table.columns.length) return false;
  return namedColumns.every(({ columnId: id }) => {
    const was = before.columns.find(({ columnId }) => columnId === id);
    const is = table.columns.find(({ columnId }) => columnId === id);
    if (was === undefined || is === undefined) return false;
    // A value may be formatted differently once its column has been widened.
    const wordOf = ({ type }: typeof was): string => JSON.stringify(dataTypeWord(type));
    return was.name === is.name && wordOf(was) === wordOf(is);
  });
}

export type ResultResume = ResumeOf<ResultPlan>;

/**
 * Requires that a materialised query still reads the same tables and views, with the same columns,
 * as at the position from which it resumes.
 *
 * @throws {SubscriptionError} RESUME_EXPIRED, SCHEMA_CHANGED
 */
export function requireSameResult(definitions: DefinitionHistory, resume: ResultResume): void {
  const { id, plan, position, principal } = resume;
  const tableIds = plan.tables.map(({ tableId }) => tableId);
  const users = [principal.userId, ...plan.viewOwners];
  requireSameRights(definitions, resume, { tableIds, users });
  for (const { owner, tableId } of plan.tables) {
    const table = definitions.tableById(tableId);
    // The server's own tables are not in the catalog and never change.
    if (table === undefined) continue;
    const droppedSeq = Math.max(
      definitions.tableDroppedSeq(table.namespace, table.name),
      owner === SHARED_OWNER ? 0 : definitions.accounts.droppedSeq(principal.userId),
    );
    if (position < droppedSeq) {
      throw new SubscriptionError(endingFor(id, resumeExpired(droppedSeq), "planning"));
    }
    const before = definitions.tableAt(tableId, position);
    if (before === undefined || before.schemaVersion === table.schemaVersion) continue;
    throw changed(id, `Table ${table.namespace}.${table.name} has been altered`);
  }
  if (position < plan.viewsChangedSeq) throw changed(id, "A view has been replaced");
}

/**
 * Requires that rights have not changed since a resume position. If they have, rows hidden at that
 * time may be visible now although they have not changed, and vice versa.
 *
 * @param users The users whose rights determine the rows.
 * @throws {SubscriptionError} RESUME_EXPIRED
 */
function requireSameRights(
  definitions: DefinitionHistory,
  { claimsKey, id, plan, position }: ResumeOf<Pick<LivePlan, "claimsKey">>,
  { tableIds, users }: { tableIds: readonly number[]; users: readonly string[] },
): void {
  const changedSeq = Math.max(
    ...tableIds.flatMap((tableId) => users.map((user) => definitions.rowRightsSeq(tableId, user))),
  );
  if (position < changedSeq) {
    const error = resumedWithOtherRights("Your rights to the rows have changed", changedSeq);
    throw new SubscriptionError(endingFor(id, error, "planning"));
  }
  if (plan.claimsKey === undefined || plan.claimsKey === claimsKey) return;
  const what =
    claimsKey === undefined
      ? 'The query reads claims, but the option "claims" is missing'
      : "The token's claims have changed";
  throw new SubscriptionError(endingFor(id, resumedWithOtherRights(what), "planning"));
}

function changed(id: string, what: string): SubscriptionError {
  const message = `${what}; subscribe without from_seq_id to load the current rows`;
  return new SubscriptionError(ending(id, "SCHEMA_CHANGED", message));
}
