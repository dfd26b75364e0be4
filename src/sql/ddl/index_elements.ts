/** Converts CREATE INDEX statements and UNIQUE constraints into catalog entries. */
import { DatabaseError } from "../../base/errors.ts";
import { INDEXES_MAX, KEY_COLUMNS_MAX } from "../../base/limits.ts";
import {
  type Catalog,
  type ColumnEntry,
  checkObjectName,
  dependsOn,
  type IndexEntry,
  type IndexExpression,
  keyNameOf,
  NAME_LENGTH_MAX,
  type PartitionIndex,
  shownColumnsOf,
  type TableEntry,
} from "../../catalog/mod.ts";
import type { Store } from "../../storage/mod.ts";
import { isGeometric, typeName } from "../../types/mod.ts";
import type {
  ColumnConstraint,
  ConstraintExclude,
  CreateColumnDef,
  CreateTableStatement,
  IndexedExpression,
  Name,
  TableConstraint,
  TableConstraintKey,
} from "../parse/ast/ast.ts";
import { indexCondition, indexExpression, invertedExpression } from "./index_expressions.ts";
import { holdsRows } from "./row_inspection.ts";
import { requireKeyType } from "./table_elements.ts";

/** An index or UNIQUE constraint, as the statement defines it. */
export interface WrittenIndex {
  readonly columns: readonly (Name | IndexedExpression)[];
  /** The operator class of each part of an inverted index; absent for a sorted index. */
  readonly classes?: readonly (Name | undefined)[] | undefined;
  /** The columns listed in INCLUDE. They are only required to exist. */
  readonly included?: readonly Name[] | undefined;
  readonly where?: IndexedExpression | undefined;
  /**
   * The name of the index or constraint; undefined if it is derived from the table and its columns.
   */
  readonly name: Name | undefined;
  readonly isUnique: boolean;
  /** Whether NULLs count as equal (NULLS NOT DISTINCT). */
  readonly equalNulls?: true | undefined;
  readonly isConstraint: boolean;
  readonly isPrimary?: true;
  /**
   * Whether the last part of the index key is a range that must not overlap the range of another
   * row.
   */
  readonly isExclusion?: true;
  readonly position: number;
}

/** The properties of a table that are needed to add an index to it. */
export type IndexedTable = Pick<
  TableEntry,
  | "checks"
  | "columns"
  | "indexes"
  | "keyName"
  | "name"
  | "namespace"
  | "nextColumnId"
  | "partitionIndexes"
  | "primaryKey"
>;

/**
 * Returns the table with an additional index.
 *
 * @param state The state of the new index: "ready" only if the table has no rows.
 * @throws {DatabaseError} COLUMN_NOT_FOUND, INVALID_DEFINITION, ALREADY_EXISTS, LIMIT_EXCEEDED,
 *   INVALID_NAME
 */
export function withIndex<Table extends IndexedTable>(
  table: Table,
  written: WrittenIndex,
  { catalog, state }: { catalog: Pick<Catalog, "tables" | "view">; state: IndexEntry["state"] },
): Table {
  const { isConstraint, isPrimary, isUnique, name, position } = written;
  const { indexes = [] } = table;
  // A dump defines the key of each partition before it combines these keys into one.
  if (indexes.filter(({ within }) => within === undefined).length >= INDEXES_MAX) {
    throw new DatabaseError(
      "LIMIT_EXCEEDED",
      `Cannot add an index to table "${table.name}": it already has ${INDEXES_MAX} indexes, ` +
        "which is the maximum",
      { position },
    );
  }
  if (written.isExclusion === true) refuseShapes(table, written);
  const { columnIds, expressions } =
    written.classes === undefined
      ? partsOf(table, written)
      : invertedPartsOf(table, written, written.classes);
  requireNullsApply(written);
  if (written.isExclusion === true) requireRange(table, { columnIds, expressions }, position);
  requireIncluded(table, written);
  if (name !== undefined) checkObjectName("index", name.name, { position: name._location.start });
  const isTaken = takenNames(table, catalog);
  if (name !== undefined && isTaken(name.name)) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot name index "${name.name}": namespace ${table.namespace} already has an index, a constraint, a table or a view with this name`,
      { position: name._location.start },
    );
  }
  const index: IndexEntry = {
    indexId: table.nextColumnId,
    name: name?.name ?? automaticName(table, written, isTaken),
    columnIds,
    ...(expressions.length === 0 ? {} : { expressions }),
    isUnique,
    // A non-unique index does not compare keys, so NULLS NOT DISTINCT has no effect on it, as in
    // PostgreSQL.
    ...(isUnique && written.equalNulls === true && { equalNulls: true }),
    ...(written.isExclusion === true && { isExclusion: true }),
    isConstraint,
    ...(written.where === undefined ? {} : { where: indexCondition(table, written.where) }),
    ...(isPrimary === true && { isPrimary }),
    state,
  };
  const nextColumnId = table.nextColumnId + 1 + expressions.length;
  return { ...table, indexes: [...indexes, index], nextColumnId };
}

/**
 * Adds the UNIQUE constraints of a table definition to a new table, in the order in which they are
 * written.
 */
export function withUnique<Table extends IndexedTable>(
  table: Table,
  { columns, constraints = [] }: CreateTableStatement,
  catalog: Pick<Catalog, "tables" | "view">,
): Table {
  for (const each of constraints) if (each.type === "primary key") requireIncluded(table, each);
  return [...columns.flatMap(uniqueOfColumn), ...constraints.flatMap(uniqueOfTable)].reduce(
    (next, unique) => withIndex(next, unique, { catalog, state: "ready" }),
    table,
  );
}

/**
 * Requires that the columns listed in INCLUDE exist.
 * @throws {DatabaseError} COLUMN_NOT_FOUND
 */
function requireIncluded(
  table: IndexedTable,
  { included = [] }: Pick<WrittenIndex, "included">,
): void {
  for (const named of included) namedColumn(table, named);
}

/** Returns the UNIQUE constraints of a column. */
export function uniqueOfColumn({ constraints = [], name }: CreateColumnDef): WrittenIndex[] {
  return constraints.flatMap((constraint: ColumnConstraint) =>
    constraint.type === "unique" ? [constraintOn([name], constraint)] : [],
  );
}

/**
 * Returns the indexes for a table constraint: one for UNIQUE or EXCLUDE, and none for any other
 * constraint.
 */
export function uniqueOfTable(constraint: TableConstraint): WrittenIndex[] {
  if (constraint.type === "exclude") return [exclusionOf(constraint)];
  return constraint.type === "unique" ? [constraintOn(constraint.columns, constraint)] : [];
}

/** @throws {DatabaseError} UNSUPPORTED_FEATURE */
function exclusionOf({
  _location,
  constraintName: name,
  parts,
  where,
}: ConstraintExclude): WrittenIndex {
  const position = _location.start;
  const ranges = parts.filter(({ operator }) => operator === "&&");
  if (ranges.length !== 1) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot define the EXCLUDE constraint: it compares ${ranges.length} ranges using &&, but ` +
        "must compare exactly one",
      {
        position,
        hint: ranges.length === 0 ? "use UNIQUE" : "combine the ranges into one",
      },
    );
  }
  // In the index, the values that must be equal come first, followed by the range.
  const equal = parts.filter(({ operator }) => operator === "=");
  const columns = [...equal, ...ranges].map(({ part }) => part);
  return { columns, where, name, isUnique: false, isConstraint: true, isExclusion: true, position };
}

/**
 * Refuses an EXCLUDE constraint that compares shapes.
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
function refuseShapes({ columns }: IndexedTable, { columns: parts, position }: WrittenIndex): void {
  const last = parts.at(-1);
  const name = last && columnNameIn(last)?.name;
  const type = columns.find((column) => column.name === name)?.type;
  if (type === undefined || !isGeometric(type)) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot use EXCLUDE with values of type ${typeName(type)}: it is not available yet`,
    { position, hint: "compare a range, such as int4range(a, b), WITH &&" },
  );
}

/**
 * Requires that the last part of a key is a range.
 * @throws {DatabaseError} INVALID_DEFINITION
 */
function requireRange(
  { columns }: IndexedTable,
  { columnIds, expressions }: IndexParts,
  position: number,
): void {
  const last = columnIds.at(-1);
  const type = [...expressions, ...columns].find(({ columnId }) => columnId === last)?.type;
  if (type?.kind === "range") return;
  throw new DatabaseError(
    "INVALID_DEFINITION",
    "Cannot define the EXCLUDE constraint: && compares ranges, but the type of this element is " +
      (type === undefined ? "unknown" : typeName(type)),
    { position, hint: "compare a range, such as tsrange(starts, ends), WITH &&" },
  );
}

function constraintOn(
  columns: readonly Name[],
  {
    _location,
    constraintName: name,
    equalNulls,
    included,
  }: Pick<TableConstraintKey, "_location" | "constraintName" | "equalNulls" | "included">,
): WrittenIndex {
  const position = _location.start;
  return { columns, included, name, isUnique: true, equalNulls, isConstraint: true, position };
}

/**
 * Refuses NULLS NOT DISTINCT for a partial index. Index files list the rows that do not satisfy
 * the condition under a key of NULLs, so rows with that key would wrongly count as duplicates.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
function requireNullsApply({ equalNulls, isUnique, position, where }: WrittenIndex): void {
  if (!isUnique || equalNulls !== true || where === undefined) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    "Cannot define the index: NULLS NOT DISTINCT is not supported in an index with a WHERE clause",
    { position, hint: "index an expression that is never NULL, such as (COALESCE(column, ''))" },
  );
}

/** Returns the initial state of a new index on an existing table. */
export function firstStateOf(store: Store, tableId: number): IndexEntry["state"] {
  const isEmpty = store.stats(tableId).segments === 0 && !holdsRows(store, tableId);
  return isEmpty ? "ready" : "building";
}

/** Returns the table without the indexes that contain a dropped column. */
export function withoutIndexesOf<Table extends IndexedTable>(
  table: Table,
  columnId: number,
): Table {
  const { indexes } = table;
  if (indexes?.some((index) => dependsOn(index, columnId)) !== true) return table;
  return { ...table, indexes: indexes.filter((index) => !dependsOn(index, columnId)) };
}

/** Finds an index of a table by name in a namespace. */
export function indexNamed(
  catalog: Pick<Catalog, "tables">,
  { name, namespace }: { namespace: string; name: string },
): { readonly table: TableEntry; readonly index: IndexEntry } | undefined {
  for (const table of catalog.tables()) {
    if (table.namespace !== namespace) continue;
    const index = table.indexes?.find((each) => each.name === name && each.isOfPartitions !== true);
    if (index !== undefined) return { table, index };
  }
  return undefined;
}

/** Finds an index of a single partition by name in a namespace. */
export function partitionIndexNamed(
  catalog: Pick<Catalog, "tables">,
  { name, namespace }: { namespace: string; name: string },
): { readonly table: TableEntry; readonly partIndex: PartitionIndex } | undefined {
  for (const table of catalog.tables()) {
    const partIndex = table.partitionIndexes?.find(
      (each) => each.name === name && each.namespace === namespace,
    );
    if (partIndex !== undefined) return { table, partIndex };
  }
  return undefined;
}

interface IndexParts {
  /** The ids of the columns and expressions of an index key, in order. */
  readonly columnIds: readonly number[];
  /** The expressions among the parts of an index key. */
  readonly expressions: readonly IndexExpression[];
}

/** Returns the key parts of an inverted index, all of which are expressions. */
function invertedPartsOf(
  table: IndexedTable,
  { columns, isUnique, position }: WrittenIndex,
  classes: readonly (Name | undefined)[],
): IndexParts {
  if (isUnique || columns.length > KEY_COLUMNS_MAX) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot define the index: a gin index must have 1 to ${KEY_COLUMNS_MAX} columns, and ` +
        "cannot be unique",
      { position },
    );
  }
  const expressions = columns.map((part, at): IndexExpression => {
    const name = columnNameIn(part);
    if (name !== undefined) namedColumn(table, name);
    const columnId = table.nextColumnId + 1 + at;
    return { columnId, ...invertedExpression(table, part, classes[at]) };
  });
  return { columnIds: expressions.map(({ columnId }) => columnId), expressions };
}

/** Returns the key parts of a sorted index. */
function partsOf(
  table: IndexedTable,
  { columns: parts, isPrimary, isUnique, position }: WrittenIndex,
): IndexParts {
  const distinct = new Set(parts.map(textOfPart));
  if (distinct.size < parts.length || parts.length > KEY_COLUMNS_MAX) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot define the ${isUnique ? "unique " : ""}index: it must have 1 to ${KEY_COLUMNS_MAX} different columns`,
      { position },
    );
  }
  const what = isPrimary ? "a primary key" : "an index";
  const expressions: IndexExpression[] = [];
  const columnIds = parts.map((part): number => {
    const name = columnNameIn(part);
    if (name !== undefined) return indexedColumn(table, name, what).columnId;
    if (!("expr" in part)) return 0;
    const columnId = table.nextColumnId + 1 + expressions.length;
    expressions.push({ columnId, ...indexExpression(table, part) });
    return columnId;
  });
  return { columnIds, expressions };
}

function textOfPart(part: Name | IndexedExpression): string {
  return columnNameIn(part)?.name ?? ("source" in part ? `(${part.source})` : "");
}

/**
 * Returns the column name if a key part consists of just a column, with or without parentheses;
 * undefined for any other part.
 */
function columnNameIn(part: Name | IndexedExpression): Name | undefined {
  if ("name" in part) return part;
  return part.expr.type === "ref" ? { name: part.expr.name, _location: part._location } : undefined;
}

function indexedColumn(table: IndexedTable, named: Name, what: string): ColumnEntry {
  const column = namedColumn(table, named);
  requireKeyType(column, { position: named._location.start, what });
  return column;
}

function namedColumn(table: IndexedTable, { _location, name }: Name): ColumnEntry {
  const column = shownColumnsOf(table).find((each) => each.name === name);
  if (column !== undefined) return column;
  throw new DatabaseError(
    "COLUMN_NOT_FOUND",
    `Cannot index column "${name}": the table has no such column`,
    {
      position: _location.start,
    },
  );
}

/**
 * Returns a new table with an unused name for its primary key. The default name may be taken,
 * because a renamed table keeps the name of its key.
 */
export function withFreeKeyName<Table extends IndexedTable>(
  table: Table,
  catalog: Pick<Catalog, "tables" | "view">,
): Table {
  const usual = keyNameOf(table);
  if (usual === undefined || table.keyName !== undefined) return table;
  const isTaken = takenNames({ ...table, primaryKey: [] }, catalog);
  if (!isTaken(usual)) return table;
  for (let number = 1; ; number += 1) {
    const keyName = `${usual}${number}`;
    if (!isTaken(keyName)) return { ...table, keyName };
  }
}

/**
 * Returns a function that tests whether an index, constraint, table or view of the namespace
 * already uses a name.
 */
export function takenNames(
  own: IndexedTable,
  catalog: Pick<Catalog, "tables" | "view">,
): (name: string) => boolean {
  const { namespace } = own;
  const others = catalog
    .tables()
    .filter((table) => table.namespace === namespace && table.name !== own.name);
  const taken = new Set<string>();
  for (const table of [own, ...others]) {
    taken.add(table.name);
    const keyName = keyNameOf(table);
    if (keyName !== undefined) taken.add(keyName);
    for (const { name } of table.indexes ?? []) taken.add(name);
  }
  for (const { name } of own.checks) taken.add(name);
  for (const { partitionIndexes = [] } of [own, ...catalog.tables()]) {
    for (const each of partitionIndexes) if (each.namespace === namespace) taken.add(each.name);
  }
  return (name) => taken.has(name) || catalog.view(namespace, name) !== undefined;
}

/**
 * Returns the name of the column or function in an index part; "expr" for any other expression.
 */
function shortNameOf(part: Name | IndexedExpression): string {
  const column = columnNameIn(part);
  if (column !== undefined || !("expr" in part)) return column?.name ?? "";
  return part.expr.type === "call" ? part.expr.function.name : "expr";
}

/**
 * Returns the name that PostgreSQL would choose for an index. Names that are too long are
 * shortened.
 */
function automaticName(
  { name: tableName }: IndexedTable,
  { columns, isConstraint, isExclusion, isPrimary }: WrittenIndex,
  isTaken: (name: string) => boolean,
): string {
  const other = isExclusion === true ? "excl" : isConstraint ? "key" : "idx";
  const ending = isPrimary ? "pkey" : other;
  const named = isPrimary ? [] : columns.map(shortNameOf);
  const wanted = [tableName, ...named].join("_");
  for (let number = 0; ; number += 1) {
    const end = `_${ending}${number === 0 ? "" : number}`;
    const name = `${wanted.slice(0, NAME_LENGTH_MAX - end.length)}${end}`;
    if (!isTaken(name)) return name;
  }
}
