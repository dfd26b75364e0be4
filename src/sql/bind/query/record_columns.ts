/**
 * Binds `json_populate_record(NULL::t, document)` and similar functions, which return the columns
 * of table t. They are bound as `json_to_record(document) AS (…)` with the names and types of
 * these columns, so they require the right to read the table.
 */
import { shownColumnsOf, type TableEntry } from "../../../catalog/mod.ts";
import type { ColumnDefinition, Expr, FromCall, QName } from "../../parse/ast/ast.ts";

/** Maps each function to its equivalent that takes a list of column definitions. */
const DEFINED_FORMS: ReadonlyMap<string, string> = new Map([
  ["json_populate_record", "json_to_record"],
  ["json_populate_recordset", "json_to_recordset"],
  ["jsonb_populate_record", "jsonb_to_record"],
  ["jsonb_populate_recordset", "jsonb_to_recordset"],
]);

/**
 * Adds the columns of the named table to a call. A call with a value of a row type stays
 * unchanged, because the fields of the row type are its columns.
 *
 * @param tableNamed Returns the table with a given name, and records that the statement reads it.
 * @throws {DatabaseError} TABLE_NOT_FOUND
 */
export function withRecordColumns(
  item: FromCall,
  tableNamed: (name: QName) => TableEntry,
): FromCall {
  const { args, function: called } = item;
  const name = called.schema === undefined ? DEFINED_FORMS.get(called.name) : undefined;
  const [record, document] = args;
  if (name === undefined || record === undefined || document === undefined) return item;
  const table = tableOf(record);
  if (table === undefined) return item;
  if (table.name === RECORD && item.columnDefinitions !== undefined) {
    return { ...item, function: { ...called, name }, args: [document] };
  }
  const columns = shownColumnsOf(tableNamed(table));
  const { _location } = record;
  const columnDefinitions = columns.map(
    ({ name: column, type }): ColumnDefinition => ({
      name: { name: column, _location },
      dataType: { name: column, definedType: type, _location },
      _location,
    }),
  );
  return { ...item, function: { ...called, name }, args: [document], columnDefinitions };
}

/** The name of the row type in a call with a list of column definitions. */
const RECORD = "record";

/** Returns the table name in `NULL::t`; undefined for a value of a row type. */
function tableOf(record: Expr): QName | undefined {
  const isNull = record.type === "cast" && record.operand.type === "null";
  return isNull && record.to.kind !== "array" && record.to.definedType === undefined
    ? record.to
    : undefined;
}
