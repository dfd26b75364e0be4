/** Checks the policies and views of a user again when the user's own rights change. */
import { type RedefinitionDeps, redefineTable } from "./redefined_table.ts";

/**
 * Puts the tables that have policies of a user into force again after the user's role has changed
 * or the user was dropped: a policy whose owner lacks rights permits nothing, so live queries with
 * such a policy have to be planned again. Live queries of views that run with the user's rights are
 * checked, too.
 */
export function renewRightsOf(userId: string, deps: RedefinitionDeps): void {
  for (const table of deps.catalog.tables()) {
    const isConcerned = table.policies?.some(({ owner }) => owner === userId) === true;
    if (isConcerned) redefineTable(deps, { before: table, after: { ...table } });
  }
  const hasViews = deps.catalog.views().some(({ ownRights }) => ownRights?.owner === userId);
  if (hasViews) deps.live().viewChanged();
}
