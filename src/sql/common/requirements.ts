/**
 * The rights that a bound statement needs, asked of one caller: whether it has them, and what it is
 * told when it has not.
 */
import {
  mayRead,
  mayRun,
  mayWrite,
  type Principal,
  requireRead,
  requireRun,
  requireWrite,
  type StatementClass,
} from "../../auth/mod.ts";
import type { ErrorDetails } from "../../base/errors.ts";
import type { Catalog } from "../../catalog/mod.ts";
import type { Requirement } from "../bind/bound.ts";

/** Asks for every right that a statement needs. @throws {DatabaseError} PERMISSION_DENIED */
export function authorize(
  requirements: readonly Requirement[],
  principal: Principal,
  catalog: Catalog,
): void {
  for (const requirement of requirements) {
    if (!meets(requirement, principal, catalog)) refuse(requirement, principal, catalog);
  }
}

/** Whether the caller has a right that a statement needs. */
export function meets(requirement: Requirement, principal: Principal, catalog: Catalog): boolean {
  if ("table" in requirement) {
    const { action, table } = requirement;
    const namespace = catalog.namespace(table.namespace);
    return (action === "read" ? mayRead : mayWrite)(principal, table, namespace);
  }
  const asked = askedOf(requirement);
  return asked === undefined || mayRun(principal, asked.statement);
}

/** The matrix that refuses words the refusal. @throws {DatabaseError} PERMISSION_DENIED */
function refuse(requirement: Requirement, principal: Principal, catalog: Catalog): void {
  if ("table" in requirement) {
    const { action, table } = requirement;
    const right = { namespace: catalog.namespace(table.namespace) };
    (action === "read" ? requireRead : requireWrite)(principal, table, right);
    return;
  }
  const asked = askedOf(requirement);
  if (asked === undefined) return;
  const { statement, ...named } = asked;
  requireRun(principal, statement, named);
}

interface AskedRow extends ErrorDetails {
  readonly statement: StatementClass;
  readonly action: string;
}

/** What is asked of the role × statement matrix; undefined for what is open to everybody. */
function askedOf(
  requirement: Exclude<Requirement, { readonly action: "read" | "write" }>,
): AskedRow | undefined {
  if (requirement.action === "sleep") {
    const { position } = requirement;
    return { statement: "maintain", action: "call PG_SLEEP", position };
  }
  if (requirement.isOpen) return undefined;
  return { statement: "inspect", action: `read ${requirement.name}` };
}
