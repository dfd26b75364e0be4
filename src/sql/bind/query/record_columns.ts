/**
 * Binds `json_populate_record(NULL::t, document)` and similar functions, whose columns are those of
 * table t. They are bound as `json_to_record(document) AS (…)` with the names and types of these
 * columns, so they require the right to read the table.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { shownColumnsOf, type TableEntry } from "../../../catalog/mod.ts";
import type { ColumnDefinition, Expr, FromCall, QName } from "../../parse/ast/ast.ts";

/** The functions with columns of their own that do the same. */
const DEFINED_FORMS: ReadonlyMap<string, string> = new Map([
  ["json_populate_record", "json_to_record"],
  ["json_populate_recordset", "json_to_recordset"],
  ["jsonb_populate_record", "jsonb_to_record"],
  ["jsonb_populate_recordset", "jsonb_to_recordset"],
]);

/**
 * Returns the call with the columns of its table; any other call unchanged.
 *
 * @param tableNamed Returns the table of a name, and notes that it is read.
 * @throws {DatabaseError} UNSUPPORTED_FEATURE, TABLE_NOT_FOUND
 */
export function withRecordColumns(
  item: FromCall,
  tableNamed: (name: QName) => TableEntry,
): FromCall {
  const { args, function: called } = item;
  const name = called.schema === undefined ? DEFINED_FORMS.get(called.name) : undefined;
  const [record, document] = args;
  if (name === undefined || record === undefined || document === undefined) return item;
  const columns = shownColumnsOf(tableNamed(tableOf(record)));
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

/** Returns the name of the table in `NULL::t`. @throws {DatabaseError} UNSUPPORTED_FEATURE */
function tableOf(record: Expr): QName {
  const isNull = record.type === "cast" && record.operand.type === "null";
  if (isNull && record.to.kind !== "array" && record.to.definedType === undefined) return record.to;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    "Cannot populate this record: expected NULL::t with the name of a table, whose columns have no other values",
    { position: record._location.start },
  );
}
