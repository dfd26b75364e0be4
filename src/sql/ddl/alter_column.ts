/**
 * Implements ALTER COLUMN and MODIFY COLUMN, which change the nullability, the default and the type
 * of an existing column.
 *
 * A type can only be widened, so that every stored value can be represented in the new type. No
 * rows are rewritten: storage converts older values when it reads them.
 */

import { DatabaseError } from "../../base/errors.ts";
import { type ColumnEntry, computesFrom, type TableEntry } from "../../catalog/mod.ts";
import { castValue, type DataType, type DomainType, sameType, typeName } from "../../types/mod.ts";
import { columnNamed, nameOf } from "../bind/change/dml_target.ts";
import { parseStored } from "../bind/expression/type_names.ts";
import { domainOf, isSerial, resolveType } from "../bind/expression/types.ts";
import { referencesTo } from "../names/references.ts";
import { qualifiedDefault } from "../names/sequences.ts";
import type {
  AlterColumnDropExpression,
  AlterColumnSetDefault,
  AstNode,
  DataTypeDef,
  TableAlterationAlterColumn,
  TableAlterationModifyColumn,
} from "../parse/ast/ast.ts";
import type { Alterer, Altering } from "./altering.ts";
import { areAlike } from "./foreign_keys.ts";
import { generatedFrom } from "./generated_columns.ts";
import { addIdentity, alterIdentity, dropIdentity, withColumn } from "./identity_columns.ts";
import { columnsNamedIn, type RowDemand } from "./row_inspection.ts";
import { countedType, retyped } from "./sequence_options.ts";
import { checkDefault, newCheck } from "./table_elements.ts";

/** @param altering Receives the conditions that existing rows must meet. */
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
      return setType(table, column, { altering, definition: alter.dataType });
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
      `Cannot allow NULL in column "${column.name}" of ${nameOf(table)}: it is part of the key`,
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

/** Returns a column whose DEFAULT names sequences with their namespaces. @throws {DatabaseError} */
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

/** Turns a generated column into an ordinary column, which keeps its values. */
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
    `Cannot drop the expression of column "${column.name}" of ${nameOf(table)}: it has none`,
    { position: _location.start },
  );
}

function requireFreeDefault(table: TableEntry, column: ColumnEntry, node: AstNode): void {
  const { generatedAlways, identity, name } = column;
  if (!generatedAlways && identity === undefined) return;
  const what = identity === undefined ? "it is GENERATED ALWAYS" : "it is an identity column";
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot change the DEFAULT of column "${name}" of ${nameOf(table)}: ${what}`,
    {
      position: node._location.start,
      ...(identity !== undefined && { hint: "ALTER COLUMN … DROP IDENTITY removes the identity" }),
    },
  );
}

/** @throws {DatabaseError} UNSUPPORTED_FEATURE if keys that contain the column would change. */
function requireKeyScale(
  table: TableEntry,
  { columnId, name, type: from }: ColumnEntry,
  { position, to }: { to: DataType; position: number },
): void {
  if (from.kind !== "decimal" || to.kind !== "decimal" || from.scale === to.scale) return;
  const what = `Cannot change the scale of column "${name}" of ${nameOf(table)}`;
  if (table.primaryKey.includes(columnId)) {
    throw new DatabaseError("UNSUPPORTED_FEATURE", `${what}: it is part of the key`, {
      position,
      hint: "create a table and copy the rows with INSERT … SELECT",
    });
  }
  const index = table.indexes?.find(({ columnIds }) => columnIds.includes(columnId));
  if (index === undefined) return;
  throw new DatabaseError("UNSUPPORTED_FEATURE", `${what}: index "${index.name}" uses it`, {
    position,
    hint: "drop the index, and create it again afterwards",
  });
}

/**
 * Returns the domain of a new type whose conditions existing rows have to meet; undefined if the
 * domain does not change.
 */
function demandedDomain(
  { columnId, domain: before }: ColumnEntry,
  { altering, definition }: { definition: DataTypeDef; altering: Altering },
): DomainType | undefined {
  const domain = domainOf(definition);
  const position = definition._location.start;
  const isNew = domain !== undefined && domain.typeId !== before?.typeId;
  if (isNew) altering.demands.push({ kind: "domain", columnId, position });
  return domain;
}

/** @throws {DatabaseError} DEPENDENT_OBJECTS */
function requireNoComputedIndex(
  table: TableEntry,
  { columnId, name }: ColumnEntry,
  position: number,
): void {
  const index = table.indexes?.find((each) => computesFrom(each, columnId));
  if (index === undefined) return;
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot change the type of column "${name}" of ${nameOf(table)}: index "${index.name}" computes values from it`,
    { position, hint: "drop the index, and create it again afterwards" },
  );
}

function setType(
  table: TableEntry,
  column: ColumnEntry,
  { altering, definition }: { definition: DataTypeDef; altering: Altering },
): TableEntry {
  const { demands } = altering;
  const position = definition._location.start;
  const to = resolveType(definition);
  const { columnId, defaultSql, name, type: from } = column;
  const domain = demandedDomain(column, { altering, definition });
  if (sameType(from, to) && !isSerial(definition)) {
    const isSame = domain?.typeId === column.domain?.typeId;
    return isSame ? table : withColumn(table, withDomain(column, domain));
  }
  if (!isWidening(from, to) || isSerial(definition)) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot change column "${name}" of ${nameOf(table)} from ${typeName(from)} to ${typeName(to)}: a type can only grow`,
      {
        position,
        hint: "add a column, copy the values with UPDATE, drop the old one, and rename the new one",
      },
    );
  }
  const [computed] = generatedFrom(table, name);
  if (computed !== undefined) {
    throw new DatabaseError(
      "DEPENDENT_OBJECTS",
      `Cannot change the type of column "${name}" of ${nameOf(table)}: column "${computed.name}" is computed from it`,
      { position, hint: "ALTER COLUMN … DROP EXPRESSION first" },
    );
  }
  requireNoComputedIndex(table, column, position);
  requireReferable(table, column, { altering, position, to });
  requireKeyScale(table, column, { to, position });
  const missing =
    column.missing === null
      ? null
      : castValue(column.missing, { from, to, mode: "explicit", nowMicros: 0 });
  if (defaultSql !== undefined) {
    requireFit({ what: "its DEFAULT", name, position }, () => {
      checkDefault(parseStored(defaultSql, [{ type: to }]), { name, type: to });
    });
  }
  const counted = countedType(to);
  const sequence = column.identity && altering.sequenceOf(table, columnId);
  if (counted !== undefined && sequence !== undefined) {
    altering.changeSequence({ ...sequence, ...retyped(sequence, counted) });
  }
  if (to.kind === "json") demands.push({ kind: "form", columnId, position });
  const next = withColumn(table, withDomain({ ...column, type: to, missing }, domain));
  // A condition may have a different meaning with the new type, but it must still be true.
  for (const check of table.checks) {
    if (!columnsNamedIn(check.sql, table).has(name)) continue;
    requireFit({ what: `check "${check.name}"`, name, position }, () => {
      const node = {
        type: "check",
        expr: parseStored(check.sql, next.columns),
        source: check.sql,
      } as const;
      newCheck({ ...node, _location: definition._location }, next);
    });
    demands.push({ kind: "check", name: check.name, position });
  }
  return next;
}

function withDomain(column: ColumnEntry, domain: DomainType | undefined): ColumnEntry {
  const { domain: _, ...rest } = column;
  return domain === undefined ? rest : { ...rest, domain };
}

/**
 * Checks that a foreign key has the same form on both sides, because keys are compared in their
 * stored form. @throws {DatabaseError}
 */
function requireReferable(
  table: TableEntry,
  { columnId, name }: ColumnEntry,
  { altering, position, to }: { altering: Altering; position: number; to: DataType },
): void {
  const { catalog } = altering.deps;
  const others = [
    ...(table.foreignKeys ?? []).map((key) =>
      typeIn(catalog.tableById(key.tableId), key.referencedIds[key.columnIds.indexOf(columnId)]),
    ),
    ...referencesTo(catalog, table.tableId).map(({ child, key }) =>
      typeIn(child, key.columnIds[key.referencedIds.indexOf(columnId)]),
    ),
  ];
  if (others.every((other) => other === undefined || areAlike(other, to))) return;
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot change the type of column "${name}" of ${nameOf(table)}: a foreign key compares it with a column of another type`,
    { position, hint: "drop the foreign key first" },
  );
}

function typeIn(table: TableEntry | undefined, columnId: number | undefined): DataType | undefined {
  return table?.columns.find((each) => each.columnId === columnId)?.type;
}

/**
 * Checks a stored expression against the altered column. The position of an error refers to the
 * stored text of the definition, not to the statement.
 */
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

/**
 * Returns whether every value of one type can be represented in the other, either as stored or
 * after conversion.
 */
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
