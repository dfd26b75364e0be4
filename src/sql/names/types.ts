/**
 * Resolves type names in statements, and finds the columns and the stored SQL texts that refer to
 * a type.
 */
import { DatabaseError } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import type {
  Catalog,
  ColumnEntry,
  RoutineType,
  TableEntry,
  TypeEntry,
  ViewEntry,
} from "../../catalog/mod.ts";
import {
  collationsNamedIn,
  constructorsIn,
  parseStored,
  typeIdsIn,
  typeNamesIn,
} from "../bind/expression/type_names.ts";
import type { QName } from "../parse/ast/ast.ts";
import { partsOf } from "../parse/ast/tree_parts.ts";
import { PARSE_LIMITS, parseExpression, parseStatements } from "../parse/parser.ts";
import { findNamespace } from "./table_names.ts";
import { isFunction, type QueryCatalog } from "./views.ts";

/**
 * Returns the type with the given name.
 *
 * @param current The namespace for unqualified names.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, NAMESPACE_NOT_FOUND
 */
export function findType(
  catalog: Pick<Catalog, "namespace" | "type" | "types">,
  node: QName,
  current: string,
): TypeEntry {
  const { name, schema: namespace = current } = node;
  const type = catalog.type(namespace, name);
  if (type !== undefined) return type;
  findNamespace(catalog, namespace, node);
  const shown = `${namespace}.${name}`;
  const known = catalog.types().map((each) => `${each.namespace}.${each.name}`);
  const near = known.find((each) => each.endsWith(`.${name}`)) ?? nearestName(shown, known);
  throw new DatabaseError("OBJECT_NOT_FOUND", `Cannot find type "${shown}"`, {
    position: node._location.start,
    hint: near === undefined ? "the types are listed in system.types" : `did you mean ${near}?`,
  });
}

/** An object whose definition uses a type. */
export interface TypeUser {
  readonly namespace: string;
  /** The kind and name of the object for messages, such as "column app.t.c". */
  readonly shown: string;
}

/**
 * Whether the type of a column is the given type, a domain over it, or an array or row that
 * contains it.
 */
export function holdsType({ domain, type }: ColumnEntry, { typeId }: TypeEntry): boolean {
  return domain?.typeId === typeId || typeIdsIn(type).includes(typeId);
}

/** Returns the columns whose type is or contains the given type. */
export function columnsOfType(catalog: Pick<Catalog, "tables">, entry: TypeEntry): TypeUser[] {
  return catalog
    .tables()
    .flatMap((table) =>
      table.columns
        .filter((column) => holdsType(column, entry))
        .map(({ name }) => used("column", table, `.${name}`)),
    );
}

/**
 * Creates the description of an object that uses a type.
 *
 * @param part Text to append to the object's name, such as a column name.
 */
export function used(
  kind: string,
  { name, namespace }: { readonly namespace: string; readonly name: string },
  part = "",
): TypeUser {
  return { namespace, shown: `${kind} ${namespace}.${name}${part}` };
}

/** Formats a list of objects for a message. */
export function shownUsers(users: readonly TypeUser[]): string {
  return Array.from(new Set(users.map(({ shown }) => shown))).join(", ");
}

/**
 * Returns the row types that have a field of the given type, and the domains and range types over
 * it. A range type and its multirange type hold each other.
 */
export function typesHolding(
  catalog: Pick<Catalog, "types">,
  { typeId }: TypeEntry,
): readonly TypeEntry[] {
  return catalog.types().filter(({ domain, fields = [], multirangeOf, range }) => {
    const types = [
      ...fields.map(({ type }) => type),
      ...(domain === undefined ? [] : [domain.base]),
      ...(range === undefined ? [] : [range.bound]),
    ];
    const isField = fields.some((field) => field.domain?.typeId === typeId);
    const isOfRange = [multirangeOf, range?.multirangeId, range?.domainId].includes(typeId);
    return isField || isOfRange || types.some((type) => typeIdsIn(type).includes(typeId));
  });
}

/** Returns the functions with parameters or results of the given type. */
export function functionsOfType(
  catalog: Pick<Catalog, "functions">,
  { typeId }: TypeEntry,
): TypeUser[] {
  const isOf = (type: RoutineType | undefined): boolean =>
    typeof type === "object" && typeIdsIn(type).includes(typeId);
  return catalog
    .functions()
    .filter(
      ({ routine: { parameters, returns, types } }) =>
        [returns, ...types].some(isOf) || parameters.some(({ type }) => isOf(type)),
    )
    .map((entry) => used("function", entry));
}

/** Returns the tables, views and topics whose stored SQL texts refer to a type by its name. */
export function textsNaming(catalog: TextHolders, entry: TypeEntry): TypeUser[] {
  const { name, namespace } = entry;
  return textsWhere(catalog, (tree) =>
    namesOfTypes(entry, tree).some(
      (node) => node.name === name && (node.schema === undefined || node.schema === namespace),
    ),
  );
}

/**
 * Returns the views and the queries of materialized views in other namespaces whose SQL refers to
 * one of the types of a namespace.
 */
export function viewsNaming(
  catalog: QueryCatalog,
  namespace: string,
  types: readonly TypeEntry[],
): ViewEntry[] {
  if (types.length === 0) return [];
  const others = catalog
    .storedQueries()
    .filter((view) => view.namespace !== namespace && !isFunction(view));
  return others.filter(({ searchNamespace, sql }) => {
    const tree = treeOf(sql);
    return types.some((entry) =>
      namesOfTypes(entry, tree).some(({ name, schema = searchNamespace }) => {
        return name === entry.name && schema === namespace;
      }),
    );
  });
}

function namesOfTypes(entry: TypeEntry, tree: object): readonly Pick<QName, "name" | "schema">[] {
  return [...typeNamesIn(tree), ...collationsNamedIn(tree), ...constructorNames(entry, tree)];
}

/** Whether a type is a range type or a multirange type. */
function isOfRanges({ multirangeOf, range }: TypeEntry): boolean {
  return range !== undefined || multirangeOf !== undefined;
}

/** Returns the names of the functions that may construct values of the given type. */
function constructorNames(entry: TypeEntry, tree: object): readonly QName[] {
  if (!isOfRanges(entry)) return [];
  return constructorsIn(tree).map((call) => call.function);
}

/** Returns the objects whose stored SQL texts may contain a label of an enum type. */
export function textsWithLabel(
  catalog: TextHolders,
  { typeId }: TypeEntry,
  label: string,
): TypeUser[] {
  const tableIds = new Set(
    catalog
      .tables()
      .filter(({ columns }) => columns.some(({ type }) => typeIdsIn(type).includes(typeId)))
      .map(({ tableId }) => tableId),
  );
  return textsWhere(catalog, (tree, read) => {
    if (!read.some((tableId) => tableIds.has(tableId))) return false;
    return [...partsOf(tree)].some(
      (part: { type?: unknown; value?: unknown }) => part.type === "string" && part.value === label,
    );
  });
}

/** Parses the SQL of a view, of a function or of the query of a materialized view. */
function treeOf(sql: string): object {
  // The parser's limits apply only to requests. The stored texts were accepted when they were
  // created.
  return parseStatements(sql, { ...PARSE_LIMITS, sqlBytesMax: Number.POSITIVE_INFINITY });
}

type TextHolders = Pick<Catalog, "tables" | "topics"> & QueryCatalog;

/**
 * Returns the objects that have a stored SQL text for which `holds` returns true.
 *
 * @param holds Receives the syntax tree of a text, and the tables to which the text refers.
 */
function textsWhere(
  catalog: TextHolders,
  holds: (tree: object, tableIds: readonly number[]) => boolean,
): TypeUser[] {
  const inTables = catalog
    .tables()
    .filter((table) =>
      storedTexts(table).some(({ sql }) => holds(parseExpression(sql), [table.tableId])),
    );
  const inQueries = catalog.storedQueries().filter(({ routine, sql, tables }) => {
    // The names in a program are resolved when it runs, so a program depends on no type.
    if (routine?.program !== undefined) return false;
    const tableIds = tables.map(({ tableId }) => tableId);
    return holds(treeOf(sql), tableIds);
  });
  const inTopics = catalog
    .topics()
    .filter(({ sources }) =>
      sources.some(
        ({ tableId, where }) => where !== undefined && holds(parseExpression(where), [tableId]),
      ),
    );
  return [
    ...inTables.map((table) => used("table", table)),
    ...inQueries.map((each) => used(isFunction(each) ? "function" : "view", each)),
    ...inTopics.map((topic) => used("topic", topic)),
  ];
}

/**
 * Requires that the stored SQL texts of a table can be bound without the catalog. A DEFAULT may
 * refer only to the type of its column; any other text may refer only to the types of the columns
 * that it can read.
 *
 * @throws {DatabaseError} INVALID_DEFINITION
 */
export function requireKnownTypes(
  table: StoringTable,
  { catalog, position }: { catalog: Pick<Catalog, "types">; position: number },
): void {
  const names = new Set(catalog.types().map(({ name }) => name));
  if (names.size === 0) return;
  const trees = storedTexts(table).map(({ columns, sql }) => parseStored(sql, columns));
  for (const unknown of trees.flatMap(collationsNamedIn)) {
    if (unknown.definedCollation !== undefined) continue;
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot use collation "${unknown.name}" in a stored expression: only built-in ` +
        "collations and the collations of the columns that the expression reads are allowed",
      { position },
    );
  }
  const ranges = new Set(
    catalog
      .types()
      .filter(isOfRanges)
      .map(({ name }) => name),
  );
  const unknown = [
    ...trees
      .flatMap(typeNamesIn)
      .filter(({ definedType, name }) => definedType === undefined && names.has(name)),
    ...trees
      .flatMap(constructorsIn)
      .filter((call) => call.rangeType === undefined && ranges.has(call.function.name))
      .map((call) => call.function),
  ];
  for (const { name } of unknown) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot use type "${name}" in a stored expression: a DEFAULT may refer only to ` +
        "the type of its column, and a CHECK only to types of the table's columns",
      { position },
    );
  }
}

type StoringTable = Pick<TableEntry, "checks" | "columns" | "indexes">;

interface StoredText {
  readonly sql: string;
  /** The columns whose types the stored expression may refer to. */
  readonly columns: readonly ColumnEntry[];
}

/** Returns the expressions stored with a table. */
function storedTexts({ checks, columns, indexes = [] }: StoringTable): StoredText[] {
  const texts: StoredText[] = checks.map(({ sql }) => ({ sql, columns }));
  for (const column of columns) {
    const { defaultSql, generatedSql } = column;
    if (defaultSql !== undefined) texts.push({ sql: defaultSql, columns: [column] });
    if (generatedSql !== undefined) texts.push({ sql: generatedSql, columns });
  }
  for (const { expressions = [], where } of indexes) {
    for (const { reads, sql } of [...expressions, ...(where === undefined ? [] : [where])]) {
      const read = columns.filter(({ columnId }) => reads.includes(columnId));
      texts.push({ sql, columns: read });
    }
  }
  return texts;
}
