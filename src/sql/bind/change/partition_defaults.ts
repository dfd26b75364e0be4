/** Applies the DEFAULTs of a partition to a statement that writes through the partition's name. */
import type { ColumnEntry, TableEntry } from "../../../catalog/mod.ts";
import type { Target } from "./dml_target.ts";

const known = new WeakMap<TableEntry, Map<number, TableEntry>>();

/**
 * Returns the table into which a statement writes, with the DEFAULTs of the partition that it
 * names.
 */
export function tableWithDefaults({ table, view }: Pick<Target, "table" | "view">): TableEntry {
  const { partitionDefaults } = table;
  const viewId = view?.relation.partition?.id;
  const own = partitionDefaults?.filter((each) => each.viewId === viewId) ?? [];
  if (viewId === undefined || own.length === 0) return table;
  // The compiled form of a table is cached by its entry, so each partition keeps its own entry.
  let entries = known.get(table);
  if (entries === undefined) known.set(table, (entries = new Map()));
  let entry = entries.get(viewId);
  if (entry === undefined) {
    const columns = table.columns.map((column): ColumnEntry => {
      const other = own.find(({ columnId }) => columnId === column.columnId);
      if (other === undefined) return column;
      const { defaultSql: _, ...rest } = column;
      return other.sql === undefined ? rest : { ...rest, defaultSql: other.sql };
    });
    entry = { ...table, columns };
    entries.set(viewId, entry);
  }
  return entry;
}
