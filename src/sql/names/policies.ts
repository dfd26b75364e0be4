/** Finds policies by name, and the policies whose expressions refer to a table or column. */
import { DatabaseError } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import type { Catalog, PolicyEntry, TableEntry } from "../../catalog/mod.ts";
import type { Name } from "../parse/ast/ast.ts";
import { DROPPED_BY_CASCADE, type Removal } from "./views.ts";

/** A policy, with the table whose rows it protects. */
export interface PlacedPolicy {
  readonly table: TableEntry;
  readonly policy: PolicyEntry;
}

/** Returns the policy of a table with the given name. @throws {DatabaseError} OBJECT_NOT_FOUND */
export function policyNamed(table: TableEntry, { name, _location }: Name): PolicyEntry {
  const { policies = [] } = table;
  const policy = policies.find((each) => each.name === name);
  if (policy !== undefined) return policy;
  const known = policies.map((each) => each.name);
  const near = nearestName(name, known);
  throw new DatabaseError(
    "OBJECT_NOT_FOUND",
    `Cannot find policy "${name}" on ${table.namespace}.${table.name}`,
    {
      position: _location.start,
      hint:
        near === undefined ? "to list the policies, run SHOW POLICIES" : `did you mean "${near}"?`,
    },
  );
}

/**
 * Returns the policies whose expressions refer to a removed object. Policies of tables that are
 * also removed are not included.
 */
export function policiesNeeding(
  catalog: Pick<Catalog, "tables">,
  { columns, tableIds }: Pick<Removal, "columns" | "tableIds">,
): PlacedPolicy[] {
  const needs = ({ tables }: PolicyEntry): boolean =>
    tables.some(
      ({ tableId, used }) =>
        tableIds?.has(tableId) === true ||
        (columns?.tableId === tableId && used.some((id) => columns.columnIds.has(id))),
    );
  return catalog.tables().flatMap((table) => {
    if (tableIds?.has(table.tableId) === true) return [];
    return (table.policies ?? []).filter(needs).map((policy) => ({ table, policy }));
  });
}

/**
 * Refuses a change to objects to which policies refer.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS
 */
export function refusePolicies(
  what: string,
  dependents: readonly PlacedPolicy[],
  { hint = DROPPED_BY_CASCADE, position }: { hint?: string; position: number },
): void {
  if (dependents.length === 0) return;
  const names = dependents.map(
    ({ policy, table }) => `${policy.name} on ${table.namespace}.${table.name}`,
  );
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot ${what}: it is used by ${dependents.length} policies: ${names.join(", ")}`,
    { position, hint },
  );
}

/** Returns a table without the given policies. */
export function withoutPolicies(whole: TableEntry, dropped: readonly PolicyEntry[]): TableEntry {
  if (dropped.length === 0) return whole;
  const { policies, ...table } = whole;
  const names = new Set(dropped.map(({ name }) => name));
  const kept = (policies ?? []).filter(({ name }) => !names.has(name));
  return kept.length === 0 ? table : { ...table, policies: kept };
}
