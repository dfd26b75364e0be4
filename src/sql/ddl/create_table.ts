/** Executes CREATE TABLE. */
import { type Principal, requireCreateTable } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  type Catalog,
  checkObjectName,
  type TableEntry,
  tableOptionsFrom,
} from "../../catalog/mod.ts";
import { requireHolder } from "../names/table_names.ts";
import { refuseTopicName } from "../names/topics.ts";
import { requireKnownTypes } from "../names/types.ts";
import type { CreateTableStatement } from "../parse/ast/ast.ts";
import { withQualifiedDefault } from "./alter_column.ts";
import { foreignKeysIn, inForceSince, withForeignKeys } from "./foreign_keys.ts";
import { type IndexedTable, withFreeKeyName, withUnique } from "./index_elements.ts";
import { materializedQuery } from "./materialized_views.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { withSequences } from "./numbered_columns.ts";
import { createPartition, partitionedTable } from "./partition_definitions.ts";
import { withOwnerPolicies, withoutOwnerOption } from "./policy_definitions.ts";
import { storageDirectoryOf } from "./storage_definitions.ts";
import { newTable, optionSettings } from "./table_elements.ts";
import { withLikedParts, withLikes } from "./table_likes.ts";
import { qualifiedName, type TableCall, type TableDeps } from "./table_statement.ts";

/**
 * Checks the caller's rights for CREATE TABLE, before any part of the request runs.
 *
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function authorizeCreateTable(
  { name }: CreateTableStatement,
  { namespace, principal }: { principal: Principal; namespace: string },
  catalog: Catalog,
): void {
  requireCreateTable(principal, qualifiedName(name, namespace), {
    namespace: catalog.namespace(name.schema ?? namespace),
  });
}

/**
 * Binds CREATE TABLE against the current catalog.
 * @throws {DatabaseError}
 */
export function createTable(
  node: CreateTableStatement,
  call: TableCall,
  deps: TableDeps,
): BoundDefinition {
  return node.partitionOf === undefined
    ? createWhole(node, call, deps)
    : createPartition(node, node.partitionOf, { call, deps });
}

/** Binds CREATE TABLE without PARTITION OF. */
function createWhole(
  written: CreateTableStatement,
  call: TableCall,
  deps: TableDeps,
): BoundDefinition {
  const { catalog, clock, definitionOf, store } = deps;
  const { namespace, principal } = call;
  const inNamespace = written.name.schema ?? namespace;
  const name = written.name.name;
  const position = written.name._location.start;
  requireHolder(catalog, inNamespace, written.name);
  checkObjectName("table", name, { position });
  const shown = written.materialized === undefined ? "Table" : "Materialized view";
  if (isTaken(written, { catalog, inNamespace })) {
    return () => `${shown} ${inNamespace}.${name} already exists`;
  }
  const { likes, node } = withLikes(written, { deps, namespace, principal });
  const { options: entries, owner } = withoutOwnerOption(node.options);
  const { kind, options } = tableOptionsFrom(node.kind, optionSettings(entries));
  const directoryOf = storageDirectoryOf(deps, { entries, kind, options });
  const { numberings, ...elements } = newTable(node, { kind, tableName: name });
  const alterer = { deps, namespace, principal };
  const columns = elements.columns.map((column) => withQualifiedDefault(column, alterer, position));
  const maker = { catalog, clock, principal };
  const place = { namespace: inNamespace, name };
  const isTemporary = written.temporary;
  const persistence = isTemporary === true ? { isTemporary } : {};
  const numbered = { ...elements, columns, kind, options, ...place, ...persistence, tableId: 0 };
  const keys = foreignKeysIn(node);
  const queryOf = materializedQuery(node, call, deps);
  const indexed = <T extends IndexedTable>(table: T): T =>
    withLikedParts(withUnique(withFreeKeyName(table, catalog), node, catalog), likes, catalog);
  const owned = (table: TableEntry): TableEntry =>
    owner === undefined ? table : withOwnerPolicies(table, owner, { call, deps });
  // The sequences, indexes, foreign keys and policies are already created on trial, so that an
  // invalid one is refused before any part of the request runs.
  const tried = withSequences(numbered, numberings, maker).table;
  requireKnownTypes(tried, { catalog, position });
  const { userId: createdBy } = principal;
  const keyed = withForeignKeys(indexed(tried), keys, alterer);
  const whole = { ...keyed, schemaVersion: 1, createdBy, createdAtMs: 0, updatedAtMs: 0 };
  owned(partitionedTable(whole, written));
  return () => {
    store.requireFreeSpace();
    const nowMs = clock.nowMs();
    const queryId = queryOf === undefined ? undefined : catalog.nextTableId();
    const tableId = catalog.nextTableId();
    const made = withSequences({ ...numbered, tableId }, numberings, maker);
    const seq = store.issueSeq();
    const entry: TableEntry = {
      ...withForeignKeys(indexed(made.table), keys, alterer),
      ...(directoryOf === undefined
        ? {}
        : { storageDirectory: directoryOf({ ...place, tableId }) }),
      ...(queryId === undefined ? {} : { materialized: { queryId, isPopulated: false } }),
      schemaVersion: 1,
      createdBy,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
    };
    const table = partitionedTable(owned(inForceSince(entry, seq)), written);
    const queries =
      queryId === undefined
        ? []
        : [queryOf?.(table, { queryId, seq })].flatMap((each) => each ?? []);
    catalog.createTable(table, seq, { sequences: made.sequences, changedViews: queries });
    store.defineTable(definitionOf(entry));
    return `${shown} ${inNamespace}.${name} created`;
  };
}

/**
 * Returns whether the table's name is taken and IF NOT EXISTS permits this.
 *
 * @throws {DatabaseError} ALREADY_EXISTS
 */
function isTaken(
  { ifNotExists, name: { _location, name } }: CreateTableStatement,
  { catalog, inNamespace }: { readonly catalog: Catalog; readonly inNamespace: string },
): boolean {
  const position = _location.start;
  refuseTopicName(catalog, "table", { namespace: inNamespace, name, position });
  const isFree =
    catalog.table(inNamespace, name) === undefined &&
    catalog.view(inNamespace, name) === undefined &&
    catalog.sequence(inNamespace, name) === undefined &&
    catalog.type(inNamespace, name) === undefined;
  if (isFree || ifNotExists === true) return !isFree;
  throw new DatabaseError(
    "ALREADY_EXISTS",
    `Cannot create table ${inNamespace}.${name}: it already exists`,
    { position },
  );
}
