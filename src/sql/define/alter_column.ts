/**
 * ALTER COLUMN and MODIFY COLUMN: nullability, default and type of a column that is there.
 *
 * A type only ever grows, so that every stored value has a form under the new one and no row is
 * rewritten: storage reads older values as the new type has them.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { ColumnEntry, TableEntry } from "../../catalog/mod.ts";
import { castValue, type DataType, sameType, typeName } from "../../types/mod.ts";
import { columnNamed, nameOf } from "../bind/change/dml_target.ts";
import { isSerial, resolveType } from "../bind/expression/types.ts";
import type {
  AlterColumnSetDefault,
  AstNode,
  DataTypeDef,
  TableAlterationAlterColumn,
  TableAlterationModifyColumn,
} from "../parse/ast/ast.ts";
import { parseExpression } from "../parse/parser.ts";
import { columnsNamedIn, type RowDemand } from "./row_inspection.ts";
import { checkDefault, newCheck } from "./table_elements.ts";

/** @param demands Takes what the change demands of the rows that are there. */
export function alterColumn(
  table: TableEntry,
  { alter, column: name }: TableAlterationAlterColumn,
  demands: RowDemand[],
): TableEntry {
  const column = columnNamed(table, name, "alter");
  switch (alter.type) {
    case "set not null":
      return setNotNull(table, column, { demands, node: alter });
    case "drop not null":
      return dropNotNull(table, column, alter);
    case "set default":
      return setDefault(table, column, alter);
    case "drop default": {
      const { defaultSql, ...rest } = column;
      if (defaultSql === undefined) return table;
      requireFreeDefault(table, column, alter);
      return withColumn(table, rest);
    }
    case "set type":
      return setType(table, column, { demands, definition: alter.dataType });
  }
}

export function modifyColumn(
  table: TableEntry,
  { column: name, dataType, notNull, _location }: TableAlterationModifyColumn,
  demands: RowDemand[],
): TableEntry {
  const typed = setType(table, columnNamed(table, name, "alter"), {
    demands,
    definition: dataType,
  });
  const column = columnNamed(typed, name, "alter");
  if (notNull === undefined) return typed;
  return notNull
    ? setNotNull(typed, column, { demands, node: { _location } })
    : dropNotNull(typed, column, { _location });
}

function withColumn(table: TableEntry, column: ColumnEntry): TableEntry {
  const columns = table.columns.map((entry) =>
    entry.columnId === column.columnId ? column : entry,
  );
  return { ...table, columns };
}

function setNotNull(
  table: TableEntry,
  column: ColumnEntry,
  { demands, node }: { demands: RowDemand[]; node: AstNode },
): TableEntry {
  if (column.notNull) return table;
  demands.push({
    kind: "not null",
    columnId: column.columnId,
    position: node._location.start,
  });
  return withColumn(table, { ...column, notNull: true });
}

function dropNotNull(table: TableEntry, column: ColumnEntry, node: AstNode): TableEntry {
  if (!column.notNull) return table;
  if (table.primaryKey.includes(column.columnId)) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot let column "${column.name}" of ${nameOf(table)} be NULL: it is part of the key`,
      { position: node._location.start },
    );
  }
  return withColumn(table, { ...column, notNull: false });
}

function setDefault(
  table: TableEntry,
  column: ColumnEntry,
  { default: node, source }: AlterColumnSetDefault,
): TableEntry {
  if (column.defaultSql === source) return table;
  requireFreeDefault(table, column, node);
  checkDefault(node, column);
  return withColumn(table, { ...column, defaultSql: source });
}

function requireFreeDefault(table: TableEntry, column: ColumnEntry, node: AstNode): void {
  if (!column.generatedAlways) return;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot change the DEFAULT of column "${column.name}" of ${nameOf(table)}: it is GENERATED ALWAYS`,
    { position: node._location.start },
  );
}

function setType(
  table: TableEntry,
  column: ColumnEntry,
  { definition, demands }: { definition: DataTypeDef; demands: RowDemand[] },
): TableEntry {
  const position = definition._location.start;
  const to = resolveType(definition);
  const { columnId, defaultSql, name, type: from } = column;
  if (sameType(from, to) && !isSerial(definition)) return table;
  if (!isWidening(from, to) || isSerial(definition)) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot change column "${name}" of ${nameOf(table)} from ${typeName(from)} to ${typeName(to)}: a type can only grow`,
      { position, hint: "add a column, copy the values with UPDATE, drop the old one, rename" },
    );
  }
  const isKey = table.primaryKey.includes(columnId);
  if (isKey && from.kind === "decimal" && to.kind === "decimal" && from.scale !== to.scale) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot change the scale of column "${name}" of ${nameOf(table)}: it is part of the key`,
      { position, hint: "create a table and copy the rows with INSERT … SELECT" },
    );
  }
  const missing =
    column.missing === null
      ? null
      : castValue(column.missing, { from, to, mode: "explicit", nowMicros: 0 });
  if (defaultSql !== undefined) {
    requireFit({ what: "its DEFAULT", name, position }, () => {
      checkDefault(parseExpression(defaultSql), { name, type: to });
    });
  }
  if (to.kind === "json") demands.push({ kind: "form", columnId, position });
  const next = withColumn(table, { ...column, type: to, missing });
  // A condition may mean another thing over another type, and then must still hold.
  for (const check of table.checks) {
    if (!columnsNamedIn(check.sql, table).has(name)) continue;
    requireFit({ what: `check "${check.name}"`, name, position }, () => {
      const node = { type: "check", expr: parseExpression(check.sql), source: check.sql } as const;
      newCheck({ ...node, _location: definition._location }, next);
    });
    demands.push({ kind: "check", name: check.name, position });
  }
  return next;
}

/** What is wrong has its position in the text of the definition, not in that of the statement. */
function requireFit(
  { name, position, what }: { what: string; name: string; position: number },
  bind: () => void,
): void {
  try {
    bind();
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot change the type of column "${name}": ${what} does not fit it: ${error.message}`,
      { position, cause: error },
    );
  }
}

/** Whether every value of one type is, as it is stored or in another form, one of the other. */
function isWidening(from: DataType, to: DataType): boolean {
  switch (from.kind) {
    case "smallint":
      return to.kind === "int" || to.kind === "bigint";
    case "int":
      return to.kind === "bigint";
    case "float":
      return to.kind === "double";
    case "text":
      return (
        to.kind === "text" &&
        from.lengthMax !== undefined &&
        (to.lengthMax === undefined || to.lengthMax > from.lengthMax)
      );
    case "decimal":
      return (
        to.kind === "decimal" &&
        to.scale >= from.scale &&
        to.precision - to.scale >= from.precision - from.scale
      );
    case "json":
      return to.kind === "json";
    default:
      return false;
  }
}
