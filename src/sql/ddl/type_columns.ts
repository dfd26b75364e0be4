/**
 * Implements the effects of DROP TYPE and DROP DOMAIN with CASCADE on tables: ALTER TABLE … DROP
 * COLUMN … CASCADE drops the columns of the type, and everything that needs them.
 */
import type { Catalog, TableEntry, TypeEntry } from "../../catalog/mod.ts";
import { holdsType } from "../names/types.ts";
import type { QueryCatalog } from "../names/views.ts";
import type { AlterTableStatement, DropTypeStatement } from "../parse/ast/ast.ts";
import { planAlteration } from "./table_alteration.ts";
import type { TableCall, TableDeps } from "./table_statement.ts";

/** The catalog objects whose definitions may use a type. */
export type TypeHolders = Pick<Catalog, "functions" | "tables" | "topics"> & QueryCatalog;

/**
 * Returns the catalog objects that remain once the columns of the given types have been dropped.
 *
 * @throws {DatabaseError} If a column cannot be dropped, for example because it is part of a
 *   primary key.
 */
export function holdersWithout(
  types: readonly TypeEntry[],
  node: DropTypeStatement,
  call: TableCall,
  deps: TableDeps,
): TypeHolders {
  const { catalog } = deps;
  const changed = new Map<number, TableEntry | undefined>();
  const views = new Set<number>();
  for (const alteration of alterationsFor(types, node, catalog)) {
    const plan = planAlteration(alteration, call, deps);
    changed.set(plan.table.tableId, plan.next);
    for (const { materialized, tableId } of plan.materialized) {
      changed.set(tableId, undefined);
      if (materialized !== undefined) views.add(materialized.queryId);
    }
    for (const { viewId } of plan.views) views.add(viewId);
  }
  return {
    tables: () =>
      catalog.tables().flatMap((table) => {
        const { tableId } = table;
        return changed.has(tableId) ? (changed.get(tableId) ?? []) : [table];
      }),
    topics: () => catalog.topics(),
    functions: () => catalog.functions().filter(({ viewId }) => !views.has(viewId)),
    storedQueries: () => catalog.storedQueries().filter(({ viewId }) => !views.has(viewId)),
  };
}

/**
 * Drops the columns of the given types.
 * @throws {DatabaseError}
 */
export async function dropColumnsOf(
  types: readonly TypeEntry[],
  node: DropTypeStatement,
  call: TableCall,
  deps: TableDeps,
): Promise<void> {
  for (;;) {
    const [alteration] = alterationsFor(types, node, deps.catalog);
    if (alteration === undefined) return;
    await planAlteration(alteration, call, deps).run();
  }
}

/**
 * Returns statements that drop the columns of the given types, one per table. A materialized view
 * gets no statement, because it is dropped with the columns that its query reads.
 */
function alterationsFor(
  types: readonly TypeEntry[],
  { _location }: DropTypeStatement,
  catalog: Catalog,
): AlterTableStatement[] {
  return catalog.tables().flatMap((table): AlterTableStatement[] => {
    if (table.materialized !== undefined) return [];
    const columns = table.columns.filter((column) => types.some((type) => holdsType(column, type)));
    if (columns.length === 0) return [];
    return [
      {
        type: "alter table",
        table: { name: table.name, schema: table.namespace, _location },
        changes: columns.map(({ name }) => ({
          type: "drop column",
          column: { name, _location },
          behaviour: "cascade",
          _location,
        })),
        _location,
      },
    ];
  });
}
