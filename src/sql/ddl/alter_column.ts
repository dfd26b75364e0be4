/**
 * Implements ALTER COLUMN and MODIFY COLUMN, which change whether an existing column may be NULL,
 * its default and its type.
 */

import { DatabaseError } from "../../base/errors.ts";
import type { ColumnEntry, TableEntry } from "../../catalog/mod.ts";
import { columnNamed, nameOf } from "../bind/change/dml_target.ts";
import { qualifiedDefault } from "../names/sequences.ts";
import type {
  AlterColumnDropExpression,
  AlterColumnSetDefault,
  AstNode,
  TableAlterationAlterColumn,
  TableAlterationModifyColumn,
} from "../parse/ast/ast.ts";
import type { Alterer, Altering } from "./altering.ts";
import { setType } from "./column_type.ts";
import { addIdentity, alterIdentity, dropIdentity, withColumn } from "./identity_columns.ts";
import type { RowDemand } from "./row_inspection.ts";
import { checkDefault } from "./table_elements.ts";

/**
 * Returns the table with an altered column.
 *
 * @param altering Receives the conditions that existing rows of the table must meet.
 */
export function alterColumn(
  table: TableEntry,
  { alter, column: name }: TableAlterationAlterColumn,
  altering: Altering,
): TableEntry {
  const { demands } = altering;
  const column = columnNamed(table, name, "alter");
  switch (alter.type) {
    case "set not null":
      return setNotNull(table, column, { demands, node: alter });
    case "set tuning":
      return table;
    case "drop not null":
      return dropNotNull(table, column, alter);
    case "set default":
      return setDefault(table, column, { alter, altering });
    case "drop default": {
      const { defaultSql, ...rest } = column;
      if (defaultSql === undefined) return table;
      requireFreeDefault(table, column, alter);
      return withColumn(table, rest);
    }
    case "set type":
      return setType(table, column, {
        altering,
        definition: alter.dataType,
        using: alter.using,
      });
    case "add generated":
      return addIdentity(table, column, { alter, altering });
    case "alter identity":
      return alterIdentity(table, column, { alter, altering });
    case "drop expression":
      return dropExpression(table, column, alter);
    case "drop identity":
      return dropIdentity(table, column, { alter, altering });
  }
}

export function modifyColumn(
  table: TableEntry,
  { column: name, dataType, notNull, _location }: TableAlterationModifyColumn,
  altering: Altering,
): TableEntry {
  const { demands } = altering;
  const typed = setType(table, columnNamed(table, name, "alter"), {
    altering,
    definition: dataType,
    using: undefined,
  });
  const column = columnNamed(typed, name, "alter");
  if (notNull === undefined) return typed;
  return notNull
    ? setNotNull(typed, column, { demands, node: { _location } })
    : dropNotNull(typed, column, { _location });
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
  const added = table.indexes?.find(({ isPrimary }) => isPrimary === true)?.columnIds ?? [];
  if ([...table.primaryKey, ...added].includes(column.columnId)) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot allow NULL in column "${column.name}" of ${nameOf(table)}: it is part of the primary key`,
      { position: node._location.start },
    );
  }
  if (column.identity !== undefined) {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot allow NULL in column "${column.name}" of ${nameOf(table)}: it is an identity column`,
      { position: node._location.start },
    );
  }
  return withColumn(table, { ...column, notNull: false });
}

function setDefault(
  table: TableEntry,
  column: ColumnEntry,
  { alter, altering }: { alter: AlterColumnSetDefault; altering: Alterer },
): TableEntry {
  const { default: node, source } = alter;
  requireFreeDefault(table, column, node);
  checkDefault(node, column);
  const changed = withQualifiedDefault(
    { ...column, defaultSql: source },
    altering,
    node._location.start,
  );
  return column.defaultSql === changed.defaultSql ? table : withColumn(table, changed);
}

/**
 * Returns a column with all sequences in its DEFAULT qualified by their namespaces.
 * @throws {DatabaseError}
 */
export function withQualifiedDefault(
  column: ColumnEntry,
  { deps, namespace, principal }: Alterer,
  position: number,
): ColumnEntry {
  const { defaultSql } = column;
  if (defaultSql === undefined) return column;
  const { catalog } = deps;
  const qualified = qualifiedDefault(defaultSql, { catalog, namespace, principal }, position);
  return { ...column, defaultSql: qualified };
}

/** Turns a generated column into an ordinary column that keeps its values. */
function dropExpression(
  table: TableEntry,
  column: ColumnEntry,
  { ifExists, _location }: AlterColumnDropExpression,
): TableEntry {
  const { generatedSql, ...rest } = column;
  if (generatedSql !== undefined) return withColumn(table, { ...rest, generatedAlways: false });
  if (ifExists === true) return table;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot drop the expression of column "${column.name}" of ${nameOf(table)}: it is not a generated column`,
    { position: _location.start },
  );
}

function requireFreeDefault(table: TableEntry, column: ColumnEntry, node: AstNode): void {
  const { generatedAlways, identity, name } = column;
  if (!generatedAlways && identity === undefined) return;
  const what = identity === undefined ? "it is a generated column" : "it is an identity column";
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot change the DEFAULT of column "${name}" of ${nameOf(table)}: ${what}`,
    {
      position: node._location.start,
      ...(identity !== undefined && {
        hint: "to remove the identity, run ALTER COLUMN … DROP IDENTITY",
      }),
    },
  );
}
