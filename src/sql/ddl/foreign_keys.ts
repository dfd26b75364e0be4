/**
 * Implements FOREIGN KEY in CREATE TABLE and ALTER TABLE: checks which tables and columns a
 * foreign key may reference.
 *
 *     SHARED ──► SHARED        USER ──► USER, of the same owner        USER ──► SHARED
 *
 * A row of a SHARED table has no owner. If it referenced a USER table, it would be unclear whose
 * row is meant.
 *
 * A foreign key references either a table's primary key or the columns of a unique index that is
 * ready. Such an index cannot be dropped if it is the last unique index on its columns.
 */

import { type Principal, requireAlter } from "../../auth/mod.ts";
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type Catalog,
  type ColumnEntry,
  checkObjectName,
  declaredKeyOf,
  type ForeignKeyEntry,
  keyNameOf,
  NAME_LENGTH_MAX,
  shownColumnsOf,
  type TableEntry,
} from "../../catalog/mod.ts";
import { type DataType, isInteger, isLooselyEqual, sameType, typeName } from "../../types/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import type { IncomingReference } from "../execute/context/execution_context.ts";
import { refuseMaterialized } from "../names/materialized_views.ts";
import { referencesTo } from "../names/references.ts";
import { findTable } from "../names/table_names.ts";
import type {
  ConstraintForeignKey,
  CreateTableStatement,
  Name,
  TableAlterationAlterConstraint,
} from "../parse/ast/ast.ts";
import type { Alterer } from "./altering.ts";

/**
 * The properties of the referencing table that are known before the table's definition is
 * complete.
 */
export type ReferringTable = Pick<
  TableEntry,
  | "checks"
  | "columns"
  | "foreignKeys"
  | "indexes"
  | "isTemporary"
  | "keyComment"
  | "keyName"
  | "kind"
  | "options"
  | "name"
  | "namespace"
  | "primaryKey"
  | "tableId"
>;

/**
 * Returns the foreign keys in a CREATE TABLE. The foreign keys of column constraints come first.
 */
export function foreignKeysIn({
  columns,
  constraints = [],
}: CreateTableStatement): ConstraintForeignKey[] {
  const ofColumns = columns.flatMap((column) => column.constraints ?? []);
  return [...ofColumns, ...constraints].flatMap((each) =>
    each.type === "foreign key" ? [each] : [],
  );
}

/**
 * Returns a table with foreign keys added.
 * @throws {DatabaseError}
 */
export function withForeignKeys<T extends ReferringTable>(
  table: T,
  nodes: readonly ConstraintForeignKey[],
  alterer: Alterer,
): T {
  if (nodes.length === 0) return table;
  const foreignKeys = [...(table.foreignKeys ?? [])];
  const next = { ...table, foreignKeys };
  for (const node of nodes) foreignKeys.push(newForeignKey(node, next, alterer));
  return next;
}

/**
 * Returns the entry for a new foreign key.
 *
 * @throws {DatabaseError} TABLE_NOT_FOUND, COLUMN_NOT_FOUND, INVALID_DEFINITION, ALREADY_EXISTS,
 *   PERMISSION_DENIED
 */
function newForeignKey(
  node: ConstraintForeignKey,
  table: ReferringTable,
  alterer: Alterer,
): ForeignKeyEntry {
  const position = node._location.start;
  const parent = referencedTable(node, table, alterer);
  requireKinds(table, parent, position);
  const columns = node.columns.map((name) => columnNamed(table, name));
  const referenced = referencedColumns(node, parent);
  if (columns.length !== referenced.length) {
    throw invalid(
      position,
      `the foreign key has ${counted(columns.length, "column")}, but references ` +
        `${referenced.length}`,
    );
  }
  if (new Set(columns).size !== columns.length) {
    throw invalid(position, "the same column is listed twice");
  }
  for (const [i, column] of columns.entries()) requireAlike(column, referenced[i], position);
  const { onDelete = "no action", onUpdate = "no action" } = node;
  if (onDelete === "set null" || onDelete === "set default") {
    requireSettable(table, columns, { position, action: onDelete });
  }
  if (onUpdate !== "no action" && onUpdate !== "restrict") {
    requireSettable(table, columns, { position, action: `on update ${onUpdate}` });
  }
  const referencedIds = referenced.map(({ columnId }) => columnId);
  return {
    name: nameFor(node, table, columns),
    columnIds: columns.map(({ columnId }) => columnId),
    tableId: parent.tableId,
    referencedIds,
    onDelete,
    onUpdate,
    isFull: node.match === "full",
    isDeferrable: node.deferrable,
    isDeferred: node.initially === "deferred",
    isValidated: node.notValid !== true,
    // The actual seq is set when the foreign key takes effect.
    sinceSeq: 0,
  };
}

function referencedTable(
  { table: named }: ConstraintForeignKey,
  table: ReferringTable,
  { deps, namespace, principal }: Alterer,
): ReferringTable {
  const { name, schema = namespace } = named;
  if (name === table.name && schema === table.namespace) return table;
  const parent = findTable(deps, named, { namespace, node: named, principal });
  refuseMaterialized("refer to", parent, named);
  requireReference(principal, parent, deps);
  return parent;
}

/**
 * Requires the right to alter the referenced table, because a foreign key restricts which of that
 * table's rows can be deleted.
 */
function requireReference(
  principal: Principal,
  parent: TableEntry,
  { catalog }: Alterer["deps"],
): void {
  requireAlter(principal, parent, { namespace: catalog.namespace(parent.namespace) });
}

function requireKinds(child: ReferringTable, parent: ReferringTable, position: number): void {
  if ([child, parent].some(({ options }) => options.ttlSeconds !== undefined)) {
    throw invalid(
      position,
      "a STREAM table cannot have foreign keys or be referenced by them, because its rows expire",
    );
  }
  if (child.isTemporary !== parent.isTemporary) {
    throw invalid(position, "a temporary table and a permanent table cannot reference each other");
  }
  if (child.kind === "shared" && parent.kind === "user") {
    throw invalid(
      position,
      "a row in a SHARED table belongs to no user, so it cannot reference a row in a USER table",
    );
  }
}

function columnNamed(table: ReferringTable, { name, _location }: Name): ColumnEntry {
  const column = shownColumnsOf(table).find((each) => each.name === name);
  if (column !== undefined) return column;
  throw new DatabaseError(
    "COLUMN_NOT_FOUND",
    `Cannot find column "${name}" in ${table.namespace}.${table.name}`,
    { position: _location.start },
  );
}

/** Returns the columns that a foreign key references, in the order of the referencing columns. */
function referencedColumns(node: ConstraintForeignKey, parent: ReferringTable): ColumnEntry[] {
  const declared = declaredKeyOf(parent);
  const key = (declared?.columnIds ?? []).flatMap(
    (columnId) => parent.columns.find((column) => column.columnId === columnId) ?? [],
  );
  if (node.referenced === undefined) {
    if (key.length > 0) return key;
    const { name, namespace } = parent;
    throw invalid(
      node._location.start,
      `${namespace}.${name} has no primary key, so the foreign key must name the columns of ` +
        "one of its unique indexes",
    );
  }
  const named = node.referenced.map((name) => columnNamed(parent, name));
  const ids = named.map(({ columnId }) => columnId);
  if (isReferable(ids, parent)) return named;
  throw invalid(
    node._location.start,
    "the referenced columns must be the primary key of " +
      `${parent.namespace}.${parent.name}${key.length === 0 ? "" : ` (${key.map(({ name }) => name).join(", ")})`}, ` +
      "or the columns of a unique index that has been built",
  );
}

/**
 * Returns whether a foreign key may reference the given columns. This is allowed if no two rows of
 * the table can have the same values in these columns.
 */
function isReferable(
  ids: readonly number[],
  { indexes = [], primaryKey }: Pick<TableEntry, "indexes" | "primaryKey">,
): boolean {
  const isSame = (others: readonly number[]): boolean =>
    others.length === ids.length && others.every((id) => ids.includes(id));
  if (isSame(primaryKey)) return true;
  return indexes.some(
    ({ columnIds, isUnique, state, where }) =>
      isUnique && state === "ready" && where === undefined && isSame(columnIds),
  );
}

/** Returns the foreign keys that depend on an index that a change to the parent table drops. */
export function referencesLosing(
  next: TableEntry,
  catalog: Pick<Catalog, "tables" | "version">,
): readonly IncomingReference[] {
  const own = (next.foreignKeys ?? []).flatMap((key) =>
    key.tableId === next.tableId ? [{ child: next, key }] : [],
  );
  const others = referencesTo(catalog, next.tableId).filter(
    ({ child }) => child.tableId !== next.tableId,
  );
  return [...own, ...others].filter(({ key }) => !isReferable(key.referencedIds, next));
}

function requireAlike(
  column: ColumnEntry,
  referenced: ColumnEntry | undefined,
  position: number,
): void {
  if (referenced === undefined) return;
  if (isLooselyEqual(column.type) || isLooselyEqual(referenced.type)) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot define the foreign key: the collation of column "${column.name}" or ` +
        `"${referenced.name}" is nondeterministic, but foreign keys require exactly equal strings`,
      { position, hint: "reference a different key, such as a number" },
    );
  }
  if (areAlike(column.type, referenced.type)) return;
  throw invalid(
    position,
    `column "${column.name}" is ${typeName(column.type)}, and "${referenced.name}" is ${typeName(referenced.type)}`,
  );
}

/**
 * Returns whether equal values of both types have the same stored form, so that keys can be
 * compared as they are stored.
 */
export function areAlike(left: DataType, right: DataType): boolean {
  if (sameType(left, right)) return true;
  if (isInteger(left)) return isInteger(right);
  if (left.kind === "decimal" && right.kind === "decimal") return left.scale === right.scale;
  return left.kind === right.kind && left.kind !== "json" && left.kind !== "enum";
}

function requireSettable(
  table: ReferringTable,
  columns: readonly ColumnEntry[],
  { action, position }: { action: string; position: number },
): void {
  const isNull = action.endsWith("set null");
  const fixed = columns.find(
    ({ columnId, generatedSql }) =>
      generatedSql !== undefined || (isNull && table.primaryKey.includes(columnId)),
  );
  if (fixed === undefined) return;
  const why =
    fixed.generatedSql === undefined ? "is part of the primary key" : "is a generated column";
  throw invalid(
    position,
    `${action.toUpperCase()} cannot change column "${fixed.name}", because it ${why}`,
  );
}

/**
 * Returns the name for a new foreign key.
 * @throws {DatabaseError} ALREADY_EXISTS, INVALID_NAME
 */
function nameFor(
  { constraintName, _location }: ConstraintForeignKey,
  table: ReferringTable,
  columns: readonly ColumnEntry[],
): string {
  const taken = new Set([
    ...table.checks.map(({ name }) => name),
    ...(table.foreignKeys ?? []).map(({ name }) => name),
    keyNameOf(table),
  ]);
  if (constraintName !== undefined) {
    const { name } = constraintName;
    checkObjectName("constraint", name, { position: constraintName._location.start });
    if (!taken.has(name)) return name;
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot name constraint "${name}": the table already has a constraint with this name`,
      { position: _location.start },
    );
  }
  const parts = [table.name, ...columns.map(({ name }) => name)].join("_");
  const wanted = parts.replaceAll(/[^A-Za-z0-9_]/g, "_");
  for (let number = 0; ; number += 1) {
    const end = `_fkey${number === 0 ? "" : number}`;
    const name = `${wanted.slice(0, NAME_LENGTH_MAX - end.length)}${end}`;
    if (!taken.has(name)) return name;
  }
}

function invalid(position: number, why: string): DatabaseError {
  return new DatabaseError("INVALID_DEFINITION", `Cannot define the foreign key: ${why}`, {
    position,
  });
}

/** Returns a table without the given foreign keys. */
export function withoutForeignKeys(
  table: TableEntry,
  isGone: (key: ForeignKeyEntry) => boolean,
): TableEntry {
  const { foreignKeys = [] } = table;
  const kept = foreignKeys.filter((key) => !isGone(key));
  return kept.length === foreignKeys.length ? table : { ...table, foreignKeys: kept };
}

/** Sets the seq from which the new foreign keys of a table are in force. */
export function inForceSince(table: TableEntry, seq: number): TableEntry {
  const { foreignKeys } = table;
  if (foreignKeys === undefined || foreignKeys.every(({ sinceSeq }) => sinceSeq > 0)) return table;
  return {
    ...table,
    foreignKeys: foreignKeys.map((key) => (key.sinceSeq > 0 ? key : withSince(key, seq))),
  };
}

function withSince(key: ForeignKeyEntry, sinceSeq: number): ForeignKeyEntry {
  return { ...key, sinceSeq };
}

/**
 * Returns a table's foreign key with the given name.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND
 */
export function foreignKeyNamed(table: TableEntry, { name, _location }: Name): ForeignKeyEntry {
  const key = table.foreignKeys?.find((each) => each.name === name);
  if (key !== undefined) return key;
  throw new DatabaseError(
    "OBJECT_NOT_FOUND",
    `Cannot find foreign key "${name}" on ${nameOf(table)}`,
    { position: _location.start },
  );
}

/**
 * Changes when a table's foreign key is checked.
 * @throws {DatabaseError} OBJECT_NOT_FOUND
 */
export function withTiming(
  table: TableEntry,
  { constraint, deferrable: isDeferrable, initially }: TableAlterationAlterConstraint,
): TableEntry {
  const altered = foreignKeyNamed(table, constraint);
  const next = { ...altered, isDeferrable, isDeferred: initially === "deferred" };
  const keys = table.foreignKeys ?? [];
  return { ...table, foreignKeys: keys.with(keys.indexOf(altered), next) };
}

/**
 * Refuses to drop objects that foreign keys reference.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS
 */
export function refuseReferring(
  action: string,
  referring: readonly IncomingReference[],
  position: number,
): void {
  const [first] = referring;
  if (first === undefined) return;
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot ${action}: ${counted(referring.length, "foreign key")} would lose the referenced ` +
      `key, including "${first.key.name}" on ${nameOf(first.child)}`,
    { position, hint: "add CASCADE to drop the foreign keys as well" },
  );
}
