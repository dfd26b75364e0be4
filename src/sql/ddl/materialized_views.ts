/**
 * Defines the catalog entry for the query of a materialized view. CREATE MATERIALIZED VIEW stores
 * it in the same transaction as the table for the rows.
 */
import { DatabaseError } from "../../base/errors.ts";
import { shownColumnsOf, type TableEntry, type ViewEntry } from "../../catalog/mod.ts";
import { bindQuery } from "../bind/query/select_binder.ts";
import { materializedQueryName } from "../names/materialized_views.ts";
import type { CreateTableStatement } from "../parse/ast/ast.ts";
import type { TableCall, TableDeps } from "./table_statement.ts";
import { storedContent } from "./view_definitions.ts";

/**
 * Binds the query of CREATE MATERIALIZED VIEW. Returns a function that creates the query's catalog
 * entry for a table; undefined if the statement creates an ordinary table.
 *
 * @throws {DatabaseError}
 */
export function materializedQuery(
  { materialized, name: { _location, name } }: CreateTableStatement,
  call: TableCall,
  deps: TableDeps,
): ((table: TableEntry, ids: { queryId: number; seq: number }) => ViewEntry) | undefined {
  if (materialized === undefined) return undefined;
  const { query, source } = materialized;
  const bound = storedContent(call, deps, {
    bind: (place) => bindQuery(query, { ...place, isOutermost: false }),
  });
  const { content } = bound;
  const file = bound.query.outputs.find(({ expression }) => expression.type.kind === "file");
  if (file !== undefined) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot create materialized view ${name}: column "${file.name}" contains files, which ` +
        "cannot be shared between tables",
      { position: _location.start, hint: "leave out the column, or create an ordinary view" },
    );
  }
  const temporary = content.tables.find(
    ({ tableId }) => deps.catalog.tableById(tableId)?.isTemporary === true,
  );
  if (temporary !== undefined) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot create materialized view ${name}: its query reads a temporary table`,
      { position: _location.start, hint: "use CREATE TEMPORARY TABLE … AS instead" },
    );
  }
  return (table, { queryId, seq }) => ({
    ...content,
    viewId: queryId,
    namespace: table.namespace,
    name: materializedQueryName(table.name),
    sql: source,
    searchNamespace: call.namespace,
    columnNames: shownColumnsOf(table).map((column) => column.name),
    resultId: table.tableId,
    createdBy: table.createdBy,
    createdAtMs: table.createdAtMs,
    updatedAtMs: table.updatedAtMs,
    changedSeq: seq,
  });
}
