/**
 * Decides which of a table's policies apply to a caller.
 *
 * A policy is in force only while its owner may read every row of the table and of the other
 * tables that the policy reads. Once the owner loses this right or the account, the policy permits
 * nothing.
 */
import { mayRead, type Principal, policiesOf, policyRoleFor } from "../../auth/mod.ts";
import type { Catalog, PolicyEntry, TableEntry, UserEntry } from "../../catalog/mod.ts";
import { type RowRights, rightsBy } from "../bind/row_rights.ts";

/** The part of the catalog that determines which policies apply. */
export type PolicyCatalog = Pick<Catalog, "accounts" | "namespace" | "tableById">;

/** Returns the rights of a caller to rows of tables, in the form that the binder needs. */
export function rowRightsOf(catalog: PolicyCatalog, principal: Principal): RowRights {
  return rightsBy({
    policiesFor: (table, owner) => {
      const reader = owner === undefined ? principal : principalNamed(owner.userId, catalog);
      // If the view's owner has been dropped, no policy permits a row, and each execution reports
      // the missing owner.
      return reader === undefined ? [] : policiesFor(reader, table, catalog);
    },
    tableById: (tableId) => catalog.tableById(tableId),
  });
}

/**
 * Returns a user as a principal without a login, to check rights that the user passes on to others
 * through a policy or a view. Returns undefined if the user has been dropped.
 */
export function principalNamed(
  userId: string,
  catalog: Pick<Catalog, "accounts">,
): Principal | undefined {
  const user = catalog.accounts.user(userId);
  return user && principalOf(user);
}

/**
 * Returns the policies that decide which of a table's rows a caller may use; undefined if the
 * caller may use every row.
 */
export function policiesFor(
  principal: Principal,
  table: TableEntry,
  catalog: PolicyCatalog,
): readonly PolicyEntry[] | undefined {
  const role = policyRoleFor(principal, table, catalog.namespace(table.namespace));
  if (role === undefined) return undefined;
  return policiesOf(table, role).filter((policy) => isInForce(policy, catalog));
}

/** Whether two lists contain the same policies. */
export function areSamePolicies(
  some: readonly PolicyEntry[] | undefined,
  others: readonly PolicyEntry[] | undefined,
): boolean {
  if (some === undefined || others === undefined) return some === others;
  return some.length === others.length && some.every((policy, index) => policy === others[index]);
}

/** Whether the owner of a policy may still read every row of the tables that the policy reads. */
export function isInForce({ owner, tables }: PolicyEntry, catalog: PolicyCatalog): boolean {
  const principal = principalNamed(owner, catalog);
  if (principal === undefined) return false;
  return tables.every(({ tableId }) => {
    const table = catalog.tableById(tableId);
    return table !== undefined && hasEveryRow(principal, table, catalog);
  });
}

/** Whether a user may read every row of a SHARED table. */
export function hasEveryRow(
  principal: Principal,
  table: TableEntry,
  catalog: Pick<Catalog, "namespace">,
): boolean {
  const namespace = catalog.namespace(table.namespace);
  if (policyRoleFor(principal, table, namespace) !== undefined) return false;
  return table.kind === "shared" && mayRead(principal, table, namespace);
}

function principalOf({ role, userId }: UserEntry): Principal {
  return {
    userId,
    role,
    owner: undefined,
    actorId: userId,
    actorRole: role,
    isImpersonated: false,
    sessionId: "",
  };
}
