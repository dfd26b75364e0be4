/** Checks the policies and views of a user again when the rights of the user change. */
import { type RedefinitionDeps, redefineTable } from "./redefined_table.ts";

/**
 * Redefines the tables that have policies of a user, after the role of the user has changed or the
 * user was dropped. A policy whose owner lacks rights permits nothing, so live queries on these
 * tables have to be planned again. Live queries of views that run with the rights of the user are
 * checked as well.
 */
export function renewRightsOf(userId: string, deps: RedefinitionDeps): void {
  for (const table of deps.catalog.tables()) {
    const isConcerned = table.policies?.some(({ owner }) => owner === userId) === true;
    if (isConcerned) redefineTable(deps, { before: table, after: { ...table } });
  }
  const hasViews = deps.catalog.views().some(({ ownRights }) => ownRights?.owner === userId);
  if (hasViews) deps.live().viewChanged();
}
