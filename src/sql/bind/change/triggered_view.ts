/**
 * Represents a view with INSTEAD OF triggers as a table, so that statements which write to the view
 * are bound, compiled and run like those which write to a table. The table stores nothing: the
 * triggers are called in place of each change.
 */
import type { TableEntry, TriggerEvent, ViewEntry } from "../../../catalog/mod.ts";
import { type DataType, sameType } from "../../../types/mod.ts";

interface ViewColumnShape {
  readonly name: string;
  readonly type: DataType;
}

const tables = new WeakMap<ViewEntry, TableEntry>();

/** Returns the table that represents a view with the given columns. Its id is the view's id. */
export function tableOfView(view: ViewEntry, columns: readonly ViewColumnShape[]): TableEntry {
  const known = tables.get(view);
  if (known !== undefined && hasColumns(known, columns)) return known;
  const { createdAtMs, createdBy, name, namespace, triggers = [], updatedAtMs, viewId } = view;
  const table: TableEntry = {
    tableId: viewId,
    namespace,
    name,
    kind: "shared",
    columns: columns.map((column, i) => ({
      columnId: i + 1,
      name: column.name,
      type: column.type,
      notNull: false,
      generatedAlways: false,
      missing: null,
    })),
    primaryKey: [],
    checks: [],
    triggers,
    options: {},
    schemaVersion: 1,
    nextColumnId: columns.length + 1,
    createdBy,
    createdAtMs,
    updatedAtMs,
  };
  tables.set(view, table);
  return table;
}

function hasColumns(table: TableEntry, columns: readonly ViewColumnShape[]): boolean {
  return (
    table.columns.length === columns.length &&
    columns.every(({ name, type }, i) => {
      const column = table.columns[i];
      return column?.name === name && sameType(column.type, type);
    })
  );
}

/** Whether a view has an enabled trigger that takes the place of a change. */
export function replacesChange({ triggers = [] }: ViewEntry, event: TriggerEvent): boolean {
  return triggers.some(({ events, timing }) => timing === "instead of" && events.includes(event));
}
