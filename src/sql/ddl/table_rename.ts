/**
 * Implements RENAME TO and RENAME CONSTRAINT of ALTER TABLE. A new name does not affect objects
 * that refer to the table by its id: rows, indexes, sequences, foreign keys and topic sources. A
 * renamed table keeps the names of its constraints, as in PostgreSQL. The SQL of a view is not
 * rewritten, and continues to use the table's former name.
 */

import { DatabaseError } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import {
  type Catalog,
  checkObjectName,
  keyNameOf,
  type TableEntry,
  type ViewEntry,
} from "../../catalog/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { materializedQueryName } from "../names/materialized_views.ts";
import { type QueryCatalog } from "../names/views.ts";
import type {
  Name,
  TableAlterationRename,
  TableAlterationRenameConstraint,
} from "../parse/ast/ast.ts";
import { takenNames } from "./index_elements.ts";
import { isRelation } from "./numbered_columns.ts";
import { unqualified } from "./unqualified.ts";

/**
 * Returns a table under a new name.
 * @throws {DatabaseError} ALREADY_EXISTS, INVALID_NAME
 */
export function renamedTable(
  table: TableEntry,
  { to }: TableAlterationRename,
  catalog: Catalog,
): TableEntry {
  const position = to._location.start;
  checkObjectName("table", to.name, { position });
  const { namespace } = table;
  const keyName = keyNameOf(table);
  if (to.name === table.name || isRelation(catalog, namespace, to.name)) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot rename ${namespace}.${table.name} to "${to.name}": ${namespace}.${to.name} already exists`,
      { position },
    );
  }
  return {
    ...table,
    name: to.name,
    ...(keyName === undefined ? {} : { keyName }),
    checks: table.checks.map((check) => ({ ...check, sql: unqualified(check.sql) })),
    columns: table.columns.map((column) =>
      column.generatedSql === undefined
        ? column
        : { ...column, generatedSql: unqualified(column.generatedSql) },
    ),
  };
}

/**
 * Returns changed entries for the views and functions whose SQL still uses the former name of a
 * renamed table, and for the query of a renamed materialized view.
 */
export function viewsAfterRename(
  catalog: QueryCatalog,
  before: TableEntry,
  after: TableEntry,
): readonly ViewEntry[] {
  if (before.name === after.name) return [];
  const { tableId } = before;
  return catalog.storedQueries().flatMap((view) => {
    if (view.resultId === tableId) return [{ ...view, name: materializedQueryName(after.name) }];
    if (!view.tables.some((each) => each.tableId === tableId)) return [];
    // The SQL of the view contains the name that the table had when the view was created, even if
    // the table is renamed repeatedly.
    const tables = view.tables.map((each) =>
      each.tableId === tableId ? { renamedFrom: before.name, ...each } : each,
    );
    return [{ ...view, tables }];
  });
}

/**
 * Returns a table with a renamed constraint.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, ALREADY_EXISTS, INVALID_NAME
 */
export function renamedConstraint(
  table: TableEntry,
  { constraint, to }: TableAlterationRenameConstraint,
  catalog: Catalog,
): TableEntry {
  const position = to._location.start;
  checkObjectName("constraint", to.name, { position });
  const { checks, foreignKeys = [], indexes = [] } = table;
  const isKey = keyNameOf(table) === constraint.name;
  const unique = indexes.filter(({ isConstraint }) => isConstraint);
  const others = [...checks, ...foreignKeys, ...unique];
  if (!isKey && others.every(({ name }) => name !== constraint.name)) {
    throw constraintNotFound(table, constraint);
  }
  const isTaken = takenNames(table, catalog);
  if (isTaken(to.name) || foreignKeys.some(({ name }) => name === to.name)) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot rename constraint "${constraint.name}" to "${to.name}": the namespace already has an index, a constraint, a table or a view with this name`,
      { position },
    );
  }
  if (isKey) return { ...table, keyName: to.name };
  const renamed = <T extends { readonly name: string }>(each: T): T =>
    each.name === constraint.name ? { ...each, name: to.name } : each;
  return {
    ...table,
    checks: checks.map(renamed),
    ...(table.foreignKeys === undefined ? {} : { foreignKeys: foreignKeys.map(renamed) }),
    ...(table.indexes === undefined ? {} : { indexes: indexes.map(renamed) }),
  };
}

export function constraintNotFound(table: TableEntry, { _location, name }: Name): DatabaseError {
  const position = _location.start;
  const unique = (table.indexes ?? []).filter(({ isConstraint }) => isConstraint);
  const known = [...table.checks, ...unique, ...(table.foreignKeys ?? [])];
  const near = nearestName(
    name,
    known.map((each) => each.name),
  );
  return new DatabaseError(
    "OBJECT_NOT_FOUND",
    `Cannot find constraint "${name}" on ${nameOf(table)}`,
    near === undefined ? { position } : { position, hint: `did you mean "${near}"?` },
  );
}
