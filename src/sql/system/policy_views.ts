/** The rows of `system.policies` and SHOW POLICIES. */
import { mayAlter, type Principal } from "../../auth/mod.ts";
import type { PolicyEntry, TableEntry } from "../../catalog/mod.ts";
import { BOOLEAN, DATETIME, type Row, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { PlainColumn } from "../result/result.ts";
import { isInForce } from "../rights/row_policies.ts";
import { ADMIN_ONLY, type ColumnList, view } from "./system_view.ts";

/** The parts of the database that the policy view reads. */
export type PolicyViewDeps = Pick<SqlEnvironment, "catalog">;

const POLICY_COLUMNS: ColumnList = [
  ["table_id", TEXT],
  ["policy_name", TEXT],
  ["command", TEXT],
  ["roles", TEXT],
  ["using_expression", TEXT],
  ["check_expression", TEXT],
  ["owner", TEXT],
  ["is_in_force", BOOLEAN],
  ["created_at", DATETIME],
  ["updated_at", DATETIME],
];

export const SHOW_POLICIES_COLUMNS: readonly PlainColumn[] = POLICY_COLUMNS.map(([name, type]) => ({
  name,
  type,
}));

export function policyViews(deps: PolicyViewDeps): [string, SystemView][] {
  const rows = (): Row[] => deps.catalog.tables().flatMap((table) => rowsOf(table, deps));
  return [["system.policies", view(POLICY_COLUMNS, rows, ADMIN_ONLY)]];
}

/**
 * Returns the policies that the caller may alter, for one table or for all tables. They are
 * ordered by table, and within a table in order of definition.
 */
export function policyRows(
  deps: PolicyViewDeps,
  principal: Principal,
  table: TableEntry | undefined,
): Row[] {
  const { catalog } = deps;
  const tables = table === undefined ? catalog.tables() : [table];
  return tables
    .filter((each) => mayAlter(principal, each, catalog.namespace(each.namespace)))
    .flatMap((each) => rowsOf(each, deps));
}

function rowsOf(table: TableEntry, { catalog }: PolicyViewDeps): Row[] {
  return (table.policies ?? []).map((policy) => [
    `${table.namespace}.${table.name}`,
    policy.name,
    policy.command,
    rolesOf(policy),
    policy.using ?? null,
    policy.check ?? null,
    policy.owner,
    isInForce(policy, catalog),
    policy.createdAtMs * 1000,
    policy.updatedAtMs * 1000,
  ]);
}

function rolesOf({ roles }: PolicyEntry): string {
  return roles?.join(", ") ?? "public";
}
