/**
 * Implements the rules that other statements must observe for materialized views. A materialized
 * view is a SHARED table without a primary key, together with a view entry that contains its
 * query. Only REFRESH MATERIALIZED VIEW changes its rows.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { Catalog, TableEntry, ViewEntry } from "../../catalog/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import type { AstNode } from "../parse/ast/ast.ts";

/**
 * Returns the name of the view entry that contains the query of a materialized view. Parentheses
 * in this name keep it from colliding with the name of any view.
 */
export function materializedQueryName(name: string): string {
  return `${name} (materialized)`;
}

/**
 * Rejects a statement that is allowed on an ordinary table but not on a materialized view.
 *
 * @throws {DatabaseError} INVALID_OPERATION
 */
export function refuseMaterialized(action: string, table: TableEntry, node: AstNode): void {
  if (table.materialized === undefined) return;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot ${action} ${nameOf(table)}: it is a materialized view`,
    {
      position: node._location.start,
      hint: "use the tables that its query reads, or create a table with CREATE TABLE … AS",
    },
  );
}

/**
 * Requires that a statement for materialized views is applied to one, and that a statement for
 * tables is not.
 *
 * @throws {DatabaseError} INVALID_OPERATION
 */
export function requireMaterialized(
  isMaterialized: boolean,
  table: TableEntry,
  {
    node,
    verb,
  }: { readonly node: AstNode; readonly verb: "ALTER" | "COMMENT ON" | "DROP" | "REFRESH" },
): void {
  if (isMaterialized === (table.materialized !== undefined)) return;
  const position = node._location.start;
  if (isMaterialized) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot ${verb.toLowerCase()} materialized view ${nameOf(table)}: it is a table`,
      {
        position,
        hint:
          verb === "REFRESH"
            ? "query the table directly: its rows are always current"
            : `use ${verb} TABLE`,
      },
    );
  }
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot ${verb.toLowerCase()} table ${nameOf(table)}: it is a materialized view`,
    { position, hint: `use ${verb} MATERIALIZED VIEW` },
  );
}

/** Returns the tables of the materialized views whose queries are among the given view entries. */
export function materializedAmong(
  entries: readonly ViewEntry[],
  catalog: Pick<Catalog, "tableById">,
): TableEntry[] {
  return entries.flatMap(({ resultId }) =>
    resultId === undefined ? [] : (catalog.tableById(resultId) ?? []),
  );
}
