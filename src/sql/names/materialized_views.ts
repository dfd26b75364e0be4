/**
 * Defines the rules of materialized views that other statements observe. A materialized view is a
 * SHARED table without a primary key, together with an entry among the views that contains its
 * query. Only REFRESH MATERIALIZED VIEW changes the rows.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { Catalog, TableEntry, ViewEntry } from "../../catalog/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import type { AstNode } from "../parse/ast/ast.ts";

/**
 * Returns the name of the entry that contains the query of a materialized view. No view can have
 * this name, because of its parentheses.
 */
export function materializedQueryName(name: string): string {
  return `${name} (materialized)`;
}

/**
 * Refuses a statement on a materialized view that only an ordinary table accepts.
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
 * Requires that a statement on a materialized view names one, and that a statement on a table does
 * not.
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
            ? "query the table as it is: its rows are always current"
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

/** Returns the tables of the materialized views whose queries are among the given entries. */
export function materializedAmong(
  entries: readonly ViewEntry[],
  catalog: Pick<Catalog, "tableById">,
): TableEntry[] {
  return entries.flatMap(({ resultId }) =>
    resultId === undefined ? [] : (catalog.tableById(resultId) ?? []),
  );
}
