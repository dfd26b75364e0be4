/** Checks a user's policies and views again when the user's rights change. */
import { type RedefinitionDeps, redefineTable } from "./redefined_table.ts";

/**
 * Redefines the tables that have policies owned by a user, after the user's role has changed or
 * the user was dropped. A policy whose owner lacks rights permits nothing, so live queries on
 * these tables have to be planned again. Live queries on views that run with the user's rights are
 * checked again as well.
 */
export function renewRightsOf(userId: string, deps: RedefinitionDeps): void {
  for (const table of deps.catalog.tables()) {
    const isConcerned = table.policies?.some(({ owner }) => owner === userId) === true;
    if (isConcerned) redefineTable(deps, { before: table, after: { ...table } });
  }
  const hasViews = deps.catalog.views().some(({ ownRights }) => ownRights?.owner === userId);
  if (hasViews) deps.live().viewChanged();
}
