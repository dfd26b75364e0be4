/** Updates policies when the rights of their owners change. */
import { type RedefinitionDeps, redefineTable } from "./redefined_table.ts";

/**
 * Puts the tables that have policies of a user into force again after the user's role has changed
 * or the user was dropped: a policy whose owner lacks rights permits nothing, so live queries with
 * such a policy have to be planned again.
 */
export function renewPoliciesOf(userId: string, deps: RedefinitionDeps): void {
  for (const table of deps.catalog.tables()) {
    const isConcerned = table.policies?.some(({ owner }) => owner === userId) === true;
    if (isConcerned) redefineTable(deps, { before: table, after: { ...table } });
  }
}
