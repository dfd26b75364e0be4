/**
 * Defines `system.indexes`, which lists the primary key and the secondary indexes of each table
 * that the caller may see, and of its partitions.
 */
import {
  type Catalog,
  type ColumnEntry,
  type IndexPart,
  indexPartsOf,
  isInverted,
  keyNameOf,
  operatorClassOf,
  type TableEntry,
} from "../../catalog/mod.ts";
import { BOOLEAN, type Row, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import { exclusionText } from "../names/exclusion_text.ts";
import { withPartitionTables } from "../names/partition_tables.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import { visibleTables } from "./show_rows.ts";
import { type ColumnList, OPEN, principalOf, view } from "./system_view.ts";

const COLUMNS: ColumnList = [
  ["namespace_id", TEXT],
  ["table_name", TEXT],
  ["index_name", TEXT],
  ["columns", TEXT],
  ["is_unique", BOOLEAN],
  ["is_primary", BOOLEAN],
  ["is_constraint", BOOLEAN],
  ["state", TEXT],
  ["definition", TEXT],
  ["index_comment", TEXT],
];

/** Returns the view with its name, "namespace.name". */
export function indexViews({ catalog }: { readonly catalog: Catalog }): [string, SystemView][] {
  const rows = view(
    COLUMNS,
    (call) =>
      visibleTables(catalog, principalOf(call))
        .flatMap((table) => withPartitionTables(table, catalog))
        .flatMap(rowsOf),
    OPEN,
  );
  return [["system.indexes", rows]];
}

function rowsOf(table: TableEntry): Row[] {
  const { indexes = [], name, namespace, primaryKey } = table;
  const keyName = keyNameOf(table);
  const keyColumns = listOf(table, primaryKey);
  const key: Row[] =
    keyName === undefined
      ? []
      : [[namespace, name, keyName, keyColumns, true, true, true, "ready", null, null]];
  return [
    ...key,
    ...indexes.map((index): Row => {
      const { equalNulls, isConstraint, isPrimary = false, isUnique, state, where } = index;
      const columns = indexPartsOf(table, index)
        .map((part) => partText(table, part))
        .join(", ");
      const unique = isUnique ? "UNIQUE " : "";
      const method = isInverted(index) ? " USING gin" : "";
      const nulls = equalNulls === true ? " NULLS NOT DISTINCT" : "";
      const condition = where === undefined ? "" : ` WHERE ${where.sql}`;
      const created = `CREATE ${unique}INDEX ${index.name} ON ${namespace}.${name}${method} (${columns})${nulls}${condition}`;
      const definition =
        index.isExclusion === true
          ? `ALTER TABLE ${namespace}.${name} ADD CONSTRAINT ${index.name} ${exclusionText(table, index)}`
          : created;
      return [
        namespace,
        name,
        index.name,
        columns,
        isUnique,
        isPrimary,
        isConstraint,
        state,
        definition,
        index.comment ?? null,
      ];
    }),
  ];
}

/**
 * Returns a part of an index key in the syntax of CREATE INDEX. In an inverted index, the operator
 * class follows a string column, because strings have no default operator class.
 */
function partText(
  { columns }: Pick<TableEntry, "columns">,
  { isExpression, name, terms }: IndexPart,
): string {
  // An inverted index stores even a plain column as an expression.
  const isColumn = !isExpression || columns.some((column) => isNamed(column, name));
  const part = isColumn ? name : `(${name})`;
  return terms === "trigrams" ? `${part} ${operatorClassOf(terms)}` : part;
}

/** Whether `text` is the name of the column, quoted or unquoted. */
function isNamed({ name }: ColumnEntry, text: string): boolean {
  return text === nameText(name) || text === `"${name.replaceAll('"', '""')}"`;
}

function listOf({ columns }: TableEntry, columnIds: readonly number[]): string {
  return columnIds
    .map((id) => columns.find(({ columnId }) => columnId === id)?.name ?? "")
    .join(", ");
}
