/**
 * Resolves the names of tables, namespaces and storages to catalog entries, and suggests
 * corrections for unknown names.
 */
import { mayRead, mayReadView, mayRun, type Principal } from "../../auth/mod.ts";
import { DatabaseError, withDetails } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import {
  type Catalog,
  DEFAULT_NAMESPACE,
  isSystemNamespace,
  type NamespaceEntry,
  type StorageEntry,
  type TableEntry,
  type ViewEntry,
} from "../../catalog/mod.ts";
import type { AstNode } from "../parse/ast/ast.ts";
import { seesTables } from "../rights/requirements.ts";
import { requirementsOf, type ViewDeps } from "./views.ts";

export interface TableName {
  readonly name: string;
  readonly schema?: string | undefined;
}

/** The catalog and the system views in which names are looked up. */
interface NamedDeps {
  readonly catalog: Catalog;
  readonly systemViews: { readonly find: ViewDeps["systemView"] };
}

/**
 * Finds a table by name. Returns undefined if the table does not exist or the caller may not read
 * it.
 */
export function visibleTable(
  catalog: Pick<Catalog, "namespace" | "table">,
  { namespace, name }: { namespace: string; name: string },
  principal: Principal,
): TableEntry | undefined {
  const table = catalog.table(namespace, name);
  if (table === undefined) return undefined;
  return mayRead(principal, table, catalog.namespace(table.namespace)) ? table : undefined;
}

/**
 * Finds a view by name. Returns undefined if the view does not exist, if it reads a table that the
 * caller may not read, or if the caller's token excludes its namespace.
 */
export function visibleView(
  { catalog, systemViews }: NamedDeps,
  { namespace, name }: { namespace: string; name: string },
  principal: Principal,
): ViewEntry | undefined {
  const entry = catalog.view(namespace, name);
  if (entry === undefined) return undefined;
  if (!mayReadView(principal, entry, catalog.namespace(namespace))) return undefined;
  const requirements = requirementsOf(entry, catalog, systemViews.find);
  return seesTables(requirements, principal, catalog) ? entry : undefined;
}

/**
 * Finds the table that a statement refers to. A table that the caller may not read counts as
 * missing.
 *
 * @throws {DatabaseError} TABLE_NOT_FOUND, NAMESPACE_NOT_FOUND
 */
export function findTable(
  deps: NamedDeps,
  { name, schema }: TableName,
  { namespace, node, principal }: { namespace: string; node: AstNode; principal: Principal },
): TableEntry {
  const { catalog } = deps;
  const inNamespace = schema ?? namespace;
  const table = visibleTable(catalog, { namespace: inNamespace, name }, principal);
  if (table !== undefined) return table;
  const position = node._location.start;
  const shown = `${inNamespace}.${name}`;
  const view = visibleView(deps, { namespace: inNamespace, name }, principal);
  if (view?.partition !== undefined)
    throw usedAsTable(shown, view.partition.tableId, deps, position);
  if (view !== undefined) {
    throw new DatabaseError("INVALID_OPERATION", `Cannot use ${shown} as a table: it is a view`, {
      position,
    });
  }
  const known = visibleNames(deps, { principal, wanted: name });
  const isBare = schema === undefined;
  const meant = meantBy(shown, name, known) ?? (isBare ? anywhere(name, known) : undefined);
  const instead = insteadOfCatalogTable(name);
  if (meant === undefined && instead === undefined) findNamespace(catalog, inNamespace, node);
  const isThere = catalog.namespace(inNamespace) !== undefined;
  const isHidden =
    catalog.table(inNamespace, name) !== undefined || catalog.view(inNamespace, name) !== undefined;
  const parts = [
    ...(meant === undefined ? [] : [`did you mean ${meant}?`]),
    ...(schema === undefined ? [instead ?? whereNamesLead(inNamespace, name)] : []),
    ...(schema === "pg_catalog" && instead !== undefined ? [instead] : []),
    ...limitOfToken(principal, inNamespace),
  ];
  throw new DatabaseError(
    isThere ? "TABLE_NOT_FOUND" : "NAMESPACE_NOT_FOUND",
    isThere ? `Cannot find table ${shown}` : `Cannot find namespace ${inNamespace}`,
    { position, isHidden, ...(parts.length === 0 ? {} : { hint: parts.join(" ") }) },
  );
}

/**
 * Creates the error for a statement that is applied to a partition but is possible only for the
 * whole table.
 */
function usedAsTable(
  shown: string,
  tableId: number,
  { catalog }: NamedDeps,
  position: number,
): DatabaseError {
  const table = catalog.tableById(tableId);
  const hint = "a partition shares the definition of its table; run the statement on";
  return new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot use ${shown} as a separate table: it is a partition`,
    { position, hint: `${hint} ${table?.namespace}.${table?.name}` },
  );
}

/**
 * Returns a hint if a service token is limited to other namespaces. The hint does not reveal
 * whether the table exists.
 */
function limitOfToken({ tokenScope }: Principal, namespace: string): readonly string[] {
  const { namespaces, tokenName } = tokenScope ?? {};
  if (namespaces?.has(namespace) !== false) return [];
  return [`The token ${tokenName} is limited to the namespaces ${[...namespaces].join(", ")}`];
}

/**
 * Returns the names that hints may mention. A hint must not reveal tables or views that the caller
 * may not see.
 */
function visibleNames(
  deps: NamedDeps,
  { principal, wanted }: { principal: Principal; wanted: string },
): readonly string[] {
  const { catalog } = deps;
  const tables = catalog.tables().filter((table) => visibleTable(catalog, table, principal));
  const views = catalog.views().filter((view) => visibleView(deps, view, principal));
  const known = [...tables, ...views].map(({ name, namespace }) => `${namespace}.${name}`);
  return [...known, ...systemNames(deps, wanted, principal)];
}

const ALIKE_MAX = 3;

/**
 * Returns the system views with the given name that the caller may read, because a statement may
 * have omitted their namespace.
 */
function systemNames({ systemViews }: NamedDeps, name: string, principal: Principal): string[] {
  return ["system", "information_schema"].flatMap((namespace) => {
    const view = systemViews.find(namespace, name);
    const isReadable = view !== undefined && (view.isOpen || mayRun(principal, "inspect"));
    return isReadable ? [`${namespace}.${name}`] : [];
  });
}

/**
 * Returns the name that the user probably meant: the same name in a different namespace or, if
 * there is none, the name with the most similar spelling.
 */
function meantBy(shown: string, name: string, known: readonly string[]): string | undefined {
  const alike = known.filter((each) => each.endsWith(`.${name}`)).slice(0, ALIKE_MAX);
  return alike.length > 0 ? alike.join(" or ") : nearestName(shown, known);
}

/** Returns the most similar table name in any namespace. */
function anywhere(name: string, known: readonly string[]): string | undefined {
  const shownOf = new Map(known.map((shown) => [shown.slice(shown.indexOf(".") + 1), shown]));
  const near = nearestName(name, shownOf.keys());
  return near === undefined ? undefined : shownOf.get(near);
}

/** Tables of PostgreSQL's catalog, by the place that has their contents here. */
const PLACES_OF_CATALOG_TABLES: readonly (readonly [place: string, names: RegExp])[] = [
  ["Running statements are in system.queries, connections in system.connections", /^stat_activity/],
  ["Statements and their times are in system.query_stats", /^stat_statements/],
  ["Indexes are listed in system.indexes", /^(index|indexes|stat_user_indexes)$/],
  ["Columns are listed in information_schema.columns", /^(attribute|attrdef)$/],
  ["Constraints are listed in information_schema.table_constraints", /^constraint$/],
  ["Types are listed in system.types", /^(type|enum|range)$/],
  ["Sequences are listed in system.sequences", /^sequences?$/],
  ["Functions are listed in information_schema.routines", /^(proc|aggregate)$/],
  ["Triggers are listed in information_schema.triggers", /^trigger$/],
  ["Policies are listed in system.policies", /^(policy|policies)$/],
  ["Views are listed in information_schema.views", /^(views|rewrite)$/],
  ["Materialized views are listed in system.materialized_views", /^matviews$/],
  ["Namespaces are listed in information_schema.schemata", /^namespace$/],
  ["Users are listed in system.users", /^(authid|roles|user|shadow)$/],
  ["Settings are listed in system.settings", /^settings$/],
  ["Locks are listed in system.advisory_locks and system.transactions", /^locks$/],
  ["Tables and views are listed in information_schema.tables", /^/],
];

/**
 * Returns a hint for the name of a table in the catalog of PostgreSQL or SQLite; undefined for any
 * other name.
 */
function insteadOfCatalogTable(name: string): string | undefined {
  const [, rest] = /^(?:pg_|sqlite_)(.*)$/s.exec(name) ?? [];
  if (rest === undefined) return undefined;
  return PLACES_OF_CATALOG_TABLES.find(([, names]) => names.test(rest))?.[0];
}

/** Returns a hint that says in which namespace an unqualified name was looked up. */
function whereNamesLead(namespace: string, name: string): string {
  if (name === "dual") return "To get a single row, use SELECT without FROM";
  return namespace === DEFAULT_NAMESPACE
    ? "Unqualified names refer to the namespace default, unless USE or the request sets a " +
        "different one"
    : `Unqualified names refer to ${namespace}, the current namespace`;
}

/**
 * Creates the error for an unknown name in a system namespace.
 *
 * @param known The names of the views that the caller may read, for the hint.
 */
export function noSystemView(
  shown: string,
  known: readonly string[],
  node: AstNode,
): DatabaseError {
  const relation = shown.slice(shown.indexOf("."));
  const near = known.find((name) => name.endsWith(relation)) ?? nearestName(shown, known);
  return new DatabaseError("TABLE_NOT_FOUND", `Cannot find system view ${shown}`, {
    position: node._location.start,
    hint:
      near === undefined
        ? "to list all tables and views, run SELECT table_schema, table_name FROM " +
          "information_schema.tables"
        : `did you mean ${near}?`,
  });
}

/**
 * Requires that users may create objects in a namespace.
 *
 * @throws {DatabaseError} RESERVED_NAME, NAMESPACE_NOT_FOUND
 */
export function requireHolder(catalog: Catalog, name: string, node: AstNode): void {
  if (isSystemNamespace(name)) {
    throw new DatabaseError(
      "RESERVED_NAME",
      `Cannot create anything in namespace ${name}: this namespace is reserved for the server`,
      { position: node._location.start },
    );
  }
  findNamespace(catalog, name, node);
}

/** Returns the namespace with the given name. @throws {DatabaseError} NAMESPACE_NOT_FOUND */
export function findNamespace(
  catalog: Pick<Catalog, "namespace">,
  name: string,
  node: AstNode,
): NamespaceEntry {
  const namespace = catalog.namespace(name);
  if (namespace !== undefined) return namespace;
  throw new DatabaseError("NAMESPACE_NOT_FOUND", `Cannot find namespace ${name}`, {
    position: node._location.start,
    hint: "to list the namespaces that you may see, run SHOW NAMESPACES",
  });
}

/**
 * Returns the storage with the given name, which must not be the data directory. @throws
 * {DatabaseError} OBJECT_NOT_FOUND
 */
export function findStorage(
  catalog: Catalog,
  storageId: string,
  position: number | undefined,
): StorageEntry {
  const storage = catalog.storages.named(storageId);
  if (storage !== undefined) return storage;
  throw new DatabaseError("OBJECT_NOT_FOUND", `Cannot find storage "${storageId}"`, {
    position,
    hint: "to list the storages, run SHOW STORAGES",
  });
}

/**
 * Runs a function. If it throws an error without a position, the position of the name in the
 * statement is added to the error.
 */
export function atName<T>({ _location }: AstNode, ask: () => T): T {
  try {
    return ask();
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.position !== undefined) throw error;
    throw withDetails(error, { position: _location.start });
  }
}
