/**
 * Checks whether a caller has the rights that a bound statement needs, and creates the error if
 * one is missing.
 *
 * If the caller may not read a table, the table does not exist for that caller: names do not
 * resolve to it (`table_names.ts`), and the caller cannot use another caller's cached plan that
 * reads it.
 */
import {
  mayRead,
  mayReadHistory,
  mayReadView,
  mayRun,
  mayWrite,
  type Principal,
  requireRun,
  requireWrite,
  type StatementClass,
} from "../../auth/mod.ts";
import { DatabaseError, type ErrorDetails } from "../../base/errors.ts";
import type { Catalog, TableEntry } from "../../catalog/mod.ts";
import type { Requirement, ViewOwner } from "../bind/bound.ts";
import {
  areSamePolicies,
  type PolicyCatalog,
  policiesFor,
  principalNamed,
} from "./row_policies.ts";

/**
 * Checks every right that a statement needs, and that the materialized views it reads are
 * populated.
 *
 * @throws {DatabaseError} PERMISSION_DENIED, TABLE_NOT_FOUND for a hidden table, and
 *   INVALID_OPERATION for a materialized view that is not populated
 */
export function authorize(
  requirements: readonly Requirement[],
  principal: Principal,
  catalog: Catalog,
): void {
  requireRights(requirements, principal, catalog);
  requirePopulated(requirements);
}

function requirePopulated(requirements: readonly Requirement[]): void {
  for (const requirement of requirements) {
    if (requirement.action !== "read" && requirement.action !== "policy-read") continue;
    const { materialized, name, namespace } = requirement.table;
    if (materialized?.isPopulated !== false) continue;
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot read materialized view ${namespace}.${name}: it has not been populated; run ` +
        "REFRESH MATERIALIZED VIEW",
      { hint: `run REFRESH MATERIALIZED VIEW ${namespace}.${name}` },
    );
  }
}

/**
 * Checks every right that a statement needs.
 *
 * @throws {DatabaseError} PERMISSION_DENIED, and TABLE_NOT_FOUND for a hidden table
 */
export function requireRights(
  requirements: readonly Requirement[],
  principal: Principal,
  catalog: Catalog,
): void {
  for (const requirement of requirements) {
    if (!meets(requirement, principal, catalog)) refuse(requirement, principal, catalog);
  }
}

const MAY = {
  read: mayRead,
  "read-history": mayReadHistory,
  write: mayWrite,
  // A policy's reads need no check: a policy is in force only while its owner may read the tables
  // that it reads.
  "policy-read": () => true,
};

/**
 * Whether the caller meets a requirement or, for a requirement that comes from a view, whether the
 * view's owner meets it.
 */
function meets(requirement: Requirement, caller: Principal, catalog: Catalog): boolean {
  const principal = holderOf(requirement, caller, catalog);
  return principal !== undefined && hasRight(requirement, principal, catalog);
}

function hasRight(requirement: Requirement, principal: Principal, catalog: Catalog): boolean {
  if ("table" in requirement) {
    const { action, table } = requirement;
    if (action === "rows") return isUnderPolicies(requirement, principal, catalog);
    return MAY[action](principal, table, catalog.namespace(table.namespace));
  }
  if (requirement.action === "read-view") {
    return mayReadView(principal, requirement, catalog.namespace(requirement.namespace));
  }
  const asked = askedOf(requirement);
  return asked === undefined || mayRun(principal, asked.statement);
}

/**
 * Returns the view owner whose right is needed in place of the caller's; undefined if the caller's
 * own right is needed.
 */
function ownerOf(requirement: Requirement): ViewOwner | undefined {
  return "viewOwner" in requirement ? requirement.viewOwner : undefined;
}

/** Returns the users, other than the caller, whose rights a statement needs. */
export function viewOwnersOf(requirements: readonly Requirement[]): readonly string[] {
  const owners = requirements.map((each) => ownerOf(each)?.userId);
  return [...new Set(owners)].filter((owner) => owner !== undefined);
}

/**
 * Returns the user who must have the right: the caller, or a view's owner. Returns undefined if
 * the view's owner has been dropped.
 */
function holderOf(
  requirement: Requirement,
  caller: Principal,
  catalog: PolicyCatalog,
): Principal | undefined {
  const owner = ownerOf(requirement);
  return owner === undefined ? caller : principalNamed(owner.userId, catalog);
}

/** Whether the caller has every right that a statement needs. */
export function meetsAll(
  requirements: readonly Requirement[],
  principal: Principal,
  catalog: Catalog,
): boolean {
  for (const requirement of requirements) {
    if (!meets(requirement, principal, catalog)) return false;
  }
  return true;
}

/**
 * Whether the caller has every right that a statement needs from the caller. Rights needed from
 * the owners of views are not considered.
 */
export function meetsOwn(
  requirements: readonly Requirement[],
  principal: Principal,
  catalog: Catalog,
): boolean {
  return requirements.every(
    (each) => ownerOf(each) !== undefined || meets(each, principal, catalog),
  );
}

/**
 * Whether the owners of the views in a statement have every right that the statement needs from
 * them.
 */
export function ownersMeet(requirements: readonly Requirement[], catalog: Catalog): boolean {
  return requirements.every((each) => {
    const owner = ownerOf(each);
    const principal = owner && principalNamed(owner.userId, catalog);
    return owner === undefined || (principal !== undefined && hasRight(each, principal, catalog));
  });
}

/**
 * Whether the row policies give the caller the same rows as the caller for whom a plan was made.
 */
export function hasSameRows(
  requirements: readonly Requirement[],
  principal: Principal,
  catalog: PolicyCatalog,
): boolean {
  for (const each of requirements) {
    if (each.action === "rows" && !hasSamePolicies(each, principal, catalog)) return false;
  }
  return true;
}

type RowsRequirement = Extract<Requirement, { readonly action: "rows" }>;

function hasSamePolicies(
  requirement: RowsRequirement,
  caller: Principal,
  catalog: PolicyCatalog,
): boolean {
  const principal = holderOf(requirement, caller, catalog);
  return principal !== undefined && isUnderPolicies(requirement, principal, catalog);
}

function isUnderPolicies(
  { policies, table }: RowsRequirement,
  principal: Principal,
  catalog: PolicyCatalog,
): boolean {
  return areSamePolicies(policies, policiesFor(principal, table, catalog));
}

/**
 * Whether the caller can see every table and view of a statement. Tables and views read with the
 * rights of a view's owner are not considered.
 */
export function seesTables(
  requirements: readonly Requirement[],
  principal: Principal,
  catalog: Pick<Catalog, "namespace">,
): boolean {
  for (const requirement of requirements) {
    if (ownerOf(requirement) !== undefined) continue;
    if (requirement.action === "read-view") {
      const namespace = catalog.namespace(requirement.namespace);
      if (!mayReadView(principal, requirement, namespace)) return false;
    }
    if (!("table" in requirement) || requirement.action === "policy-read") continue;
    const { table } = requirement;
    if (!mayRead(principal, table, catalog.namespace(table.namespace))) return false;
  }
  return true;
}

/**
 * Creates the error for a missing right, with the message that the access matrix defines.
 *
 * @throws {DatabaseError} PERMISSION_DENIED, TABLE_NOT_FOUND
 */
function refuse(requirement: Requirement, principal: Principal, catalog: Catalog): void {
  const owner = ownerOf(requirement);
  if (owner !== undefined) {
    const isRows =
      requirement.action === "rows" && catalog.accounts.user(owner.userId) !== undefined;
    throw isRows ? policiesChanged(`the policies on view ${owner.view}`) : notInForce(owner);
  }
  if ("table" in requirement) {
    const { action, table } = requirement;
    const namespace = catalog.namespace(table.namespace);
    // The caller lost the right to read the table after the name was resolved.
    if (!mayRead(principal, table, namespace)) {
      if ("routine" in requirement) throw routineDenied(requirement.routine);
      throw notFound(`${table.namespace}.${table.name}`);
    }
    if (action === "rows") {
      throw policiesChanged(`the policies on ${table.namespace}.${table.name}`);
    }
    if (action === "read-history") throw historyDenied(table);
    requireWrite(principal, table, { namespace });
    return;
  }
  if (requirement.action === "read-view") {
    const { name, routine } = requirement;
    throw routine === undefined ? notFound(name) : routineDenied(routine);
  }
  const asked = askedOf(requirement);
  if (asked === undefined) return;
  const { statement, ...named } = asked;
  requireRun(principal, statement, named);
}

/** Creates the error for a function that reads tables that the caller may not see. */
function routineDenied(name: string): DatabaseError {
  return new DatabaseError(
    "PERMISSION_DENIED",
    `Cannot call function ${name}: it uses a table, view or function that you are not allowed ` +
      "to read or call",
  );
}

function notFound(name: string): DatabaseError {
  return new DatabaseError("TABLE_NOT_FOUND", `Cannot find table ${name}`, { isHidden: true });
}

/**
 * Creates the error for a plan made outdated by a change in the policies that apply to the caller.
 */
function policiesChanged(policies: string): DatabaseError {
  return new DatabaseError(
    "SERIALIZATION_FAILURE",
    `Cannot run the statement: ${policies} that apply to you have changed since the statement ` +
      "was planned",
    { hint: "run the statement again" },
  );
}

/**
 * Creates the error for a view whose owner lacks a right. The message does not name the tables,
 * because the caller may not be allowed to see them.
 */
function notInForce({ view }: ViewOwner): DatabaseError {
  return new DatabaseError(
    "PERMISSION_DENIED",
    `Cannot read view ${view}: it runs with the rights of its owner, who no longer has the ` +
      "necessary rights",
    {
      hint:
        `a user who has these rights can take over the view with ALTER VIEW ${view} SET ` +
        "(SECURITY_INVOKER = false)",
    },
  );
}

function historyDenied({ name, namespace }: TableEntry): DatabaseError {
  return new DatabaseError(
    "PERMISSION_DENIED",
    `Cannot read earlier states of ${namespace}.${name}: this requires the role dba or higher, ` +
      "or ownership of the namespace",
  );
}

interface AskedRow extends ErrorDetails {
  readonly statement: StatementClass;
  readonly action: string;
}

/**
 * Returns the statement class of a requirement in the role × statement matrix; undefined for a
 * requirement that every caller meets.
 */
function askedOf(
  requirement: Exclude<Requirement, { readonly table: TableEntry } | { action: "read-view" }>,
): AskedRow | undefined {
  if (requirement.action === "sleep") {
    const { position } = requirement;
    return { statement: "maintain", action: "call PG_SLEEP", position };
  }
  const { action } = requirement;
  if (action === "take-id" || action === "advisory-lock" || action === "call-program") {
    return undefined;
  }
  if (requirement.view.isOpen) return undefined;
  return { statement: "inspect", action: `read ${requirement.name}` };
}
