/**
 * Finds the foreign keys that refer to a table. The catalog stores each foreign key with the
 * referring table.
 */
import type { Catalog, TableEntry } from "../../catalog/mod.ts";
import type { IncomingReference } from "../execute/context/execution_context.ts";

interface KnownReferences {
  readonly version: number;
  readonly byTable: ReadonlyMap<number, readonly IncomingReference[]>;
}

const known = new WeakMap<object, KnownReferences>();
const NONE: readonly IncomingReference[] = [];

/** Returns the foreign keys that refer to a table, including those of the table itself. */
export function referencesTo(
  catalog: Pick<Catalog, "tables" | "version">,
  tableId: number,
): readonly IncomingReference[] {
  const { version } = catalog;
  let current = known.get(catalog);
  if (current?.version !== version) {
    current = { version, byTable: byReferenced(catalog.tables()) };
    known.set(catalog, current);
  }
  return current.byTable.get(tableId) ?? NONE;
}

function byReferenced(tables: readonly TableEntry[]): Map<number, IncomingReference[]> {
  const byTable = new Map<number, IncomingReference[]>();
  for (const child of tables) {
    for (const key of child.foreignKeys ?? []) {
      const list = byTable.get(key.tableId) ?? [];
      list.push({ child, key });
      byTable.set(key.tableId, list);
    }
  }
  return byTable;
}
