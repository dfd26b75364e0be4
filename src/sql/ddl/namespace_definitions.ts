/**
 * Executes CREATE, ALTER and DROP NAMESPACE. `definitions.ts` drops the contents of a namespace.
 */

import { type Principal, requireRun } from "../../auth/mod.ts";
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import {
  type Catalog,
  checkObjectName,
  isReservedNamespace,
  type NamespaceEntry,
  refuseTwice,
  type SequenceEntry,
  type TableEntry,
  type TopicEntry,
  type TypeEntry,
  type ViewEntry,
} from "../../catalog/mod.ts";
import { isPartition } from "../names/partitions.ts";
import { columnsTakingFrom } from "../names/sequences.ts";
import { findNamespace } from "../names/table_names.ts";
import { refuseDeadLetterTopics } from "../names/topics.ts";
import {
  columnsOfType,
  functionsOfType,
  shownUsers,
  typesHolding,
  used,
  viewsNaming,
} from "../names/types.ts";
import { isFunction } from "../names/views.ts";
import type {
  AlterNamespaceStatement,
  CreateNamespaceStatement,
  DropNamespaceStatement,
  Name,
  NamespaceElement,
  OptionEntry,
  QName,
  UserName,
} from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { DefinitionFollowers } from "./definition_followers.ts";
import type { DroppedObjects, NamedObjects } from "./drop_table.ts";
import { optionSettings } from "./table_elements.ts";

/**
 * A definition that has been bound against the catalog. The function must be called in the same
 * tick. It makes the change, and returns a description of it.
 */
export type BoundDefinition = () => string | Promise<string>;

/** The parts of the database that are needed to add an entry to the catalog. */
export type EntryDeps = Pick<SqlEnvironment, "catalog" | "clock" | "store">;

/** The parts of the database that are needed to change a namespace. */
type NamespaceDeps = Pick<SqlEnvironment, "catalog" | "store"> & Pick<DefinitionFollowers, "live">;

/**
 * Checks the caller's rights to a namespace, before any part of the request runs.
 *
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function authorizeNamespace(
  node: AlterNamespaceStatement | CreateNamespaceStatement | DropNamespaceStatement,
  principal: Principal,
  catalog: Catalog,
): void {
  const details = {
    action: `run ${node.type.toUpperCase()} on ${namesIn(node)}`,
    position: node._location.start,
  };
  if (node.type !== "alter namespace" || node.options === undefined) {
    requireRun(principal, "namespace", details);
    return;
  }
  const namespace = catalog.namespace(node.name.name);
  requireRun(principal, "removeTable", {
    ...details,
    ...(namespace === undefined ? {} : { namespace }),
  });
}

function namesIn(
  node: AlterNamespaceStatement | CreateNamespaceStatement | DropNamespaceStatement,
): string {
  const names = node.type === "drop namespace" ? node.names : [node.name];
  return names.map(({ name }) => name).join(", ");
}

/**
 * Binds CREATE NAMESPACE against the current catalog.
 * @throws {DatabaseError}
 */
export function createNamespace(
  node: CreateNamespaceStatement,
  principal: Principal,
  { catalog, clock, store }: EntryDeps,
): BoundDefinition {
  const { name } = node.name;
  checkObjectName("namespace", name, { position: node.name._location.start });
  if (catalog.namespace(name) !== undefined) {
    if (node.ifNotExists === true) return () => `Namespace ${name} already exists`;
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot create namespace ${name}: it already exists`,
      { position: node.name._location.start, sqlstate: "42P06" },
    );
  }
  for (const element of node.elements ?? []) requireElementOf(name, element);
  const isCaller = node.authorization === undefined || node.authorization.currentUser === true;
  if (node.authorization !== undefined && !isCaller) requireUser(node.authorization, catalog);
  const owner = isCaller ? principal.userId : node.authorization.name;
  return () => {
    store.requireFreeSpace();
    catalog.createNamespace({ name, owner, options: {}, createdAtMs: clock.nowMs() });
    return `Namespace ${name} created`;
  };
}

/**
 * Requires that a definition in CREATE NAMESPACE makes a lasting object in the new namespace.
 * @throws {DatabaseError} INVALID_DEFINITION
 */
function requireElementOf(namespace: string, element: NamespaceElement): void {
  const target = targetOf(element);
  const position = target._location.start;
  if (target.schema !== undefined && target.schema !== namespace) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot create namespace ${namespace}: one of its definitions belongs to namespace ` +
        target.schema,
      { position, hint: "write the definition as a separate statement", sqlstate: "42P15" },
    );
  }
  if ("temporary" in element && element.temporary === true) {
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot create ${target.name} in a new namespace: it is temporary`,
      { position, hint: "write CREATE TEMPORARY as a separate statement", sqlstate: "42P16" },
    );
  }
}

/** Returns the name of the table or view that a definition makes or changes. */
function targetOf(element: NamespaceElement): QName {
  const isOfTable = element.type === "create index" || element.type === "create trigger";
  return isOfTable ? element.table : element.name;
}

/**
 * Binds ALTER NAMESPACE against the current catalog.
 * @throws {DatabaseError}
 */
export function alterNamespace(
  node: AlterNamespaceStatement,
  deps: NamespaceDeps,
): BoundDefinition {
  const { catalog, store } = deps;
  const { name } = node.name;
  requireUnreserved(node.name, "alter");
  const before = findNamespace(catalog, name, node.name);
  const { owner } = node;
  if (owner !== undefined) {
    requireUser(owner, catalog);
    return () => changeOwner({ ...before, owner: owner.name }, deps);
  }
  const options = { ...before.options, ...namespaceOptions(node.options ?? []) };
  return () => {
    store.requireFreeSpace();
    catalog.changeNamespace({ ...before, options });
    return `Namespace ${name} altered`;
  };
}

function changeOwner(entry: NamespaceEntry, { catalog, live }: NamespaceDeps): string {
  catalog.changeNamespace(entry);
  // The previous owner's subscriptions may follow tables that only the owner of the namespace may
  // read.
  for (const { kind, namespace, tableId } of catalog.tables()) {
    if (namespace === entry.name && kind === "shared") live().tableChanged(tableId);
  }
  return `Namespace ${entry.name} belongs to ${entry.owner}`;
}

type DropDeps = Pick<SqlEnvironment, "catalog" | "clock" | "store"> & DefinitionFollowers;

interface DropSteps {
  /**
   * Returns objects together with everything that depends on them.
   * @throws {DatabaseError}
   */
  readonly dropped: (named: NamedObjects) => DroppedObjects;
  /**
   * Drops the objects that exist in the tick of the drop. The result resolves once the files of
   * the tables have been removed.
   */
  readonly drop: (droppedNow: () => DroppedObjects) => Promise<unknown>;
  /**
   * Throws if the statement must end.
   * @throws {DatabaseError} CANCELLED, SHUTTING_DOWN
   */
  readonly checkCancelled: () => void;
}

/**
 * Binds DROP NAMESPACE against the current catalog.
 * @throws {DatabaseError}
 */
export function dropNamespaces(
  node: DropNamespaceStatement,
  deps: DropDeps,
  steps: DropSteps,
): BoundDefinition {
  const drops = node.names.map((name) => dropNamespace(name, { deps, node, steps }));
  return async () => {
    const told: string[] = [];
    for (const drop of drops) told.push(await drop());
    return told.join("; ");
  };
}

function dropNamespace(
  { _location, name }: Name,
  { deps, node, steps }: { deps: DropDeps; node: DropNamespaceStatement; steps: DropSteps },
): () => Promise<string> {
  const { catalog } = deps;
  requireUnreserved({ _location, name }, "drop");
  if (catalog.namespace(name) === undefined && node.ifExists === true) {
    return () => Promise.resolve(`Namespace ${name} does not exist`);
  }
  findNamespace(catalog, name, { _location });
  const position = _location.start;
  const { sequences, tables, topics, types, views } = heldBy(name, catalog);
  const heldCount = sequences.length + tables.length + topics.length + types.length + views.length;
  if (heldCount > 0 && node.cascade !== "cascade") {
    const functions = views.filter(isFunction);
    const free = sequences.filter(({ ownedBy }) => ownedBy === undefined);
    const others = [
      ...(topics.length === 0 ? [] : [` and ${counted(topics.length, "topic")}`]),
      ...(free.length === 0 ? [] : [` and ${counted(free.length, "sequence")}`]),
      ...(types.length === 0 ? [] : [` and ${counted(types.length, "type")}`]),
      ...(functions.length === 0 ? [] : [` and ${counted(functions.length, "function")}`]),
    ].join("");
    throw new DatabaseError(
      "DEPENDENT_OBJECTS",
      `Cannot drop namespace ${name}: it contains ${counted(tables.length, "table")} and ${counted(views.length - functions.length, "view")}${others}`,
      {
        position,
        hint: "drop the objects in the namespace first, or use CASCADE to drop them as well",
      },
    );
  }
  refuseDeadLetterTopics(catalog, topics, position);
  refuseNumberedElsewhere(name, catalog, { sequences, position });
  const dropped = steps.dropped({
    tables: new Map(tables.map((table) => [table.tableId, table])),
    entries: views.filter(isPlain),
    users: viewsNaming(catalog, name, types),
  });
  refuseTypesUsedElsewhere(name, catalog, { types, position, dropped });
  refusePartitionsOfOthers(name, catalog, { views, position });
  return async () => {
    await dropHeld(name, deps, steps);
    // Another statement may have dropped the namespace in the meantime.
    if (catalog.namespace(name) !== undefined) catalog.dropNamespace(name);
    return `Namespace ${name} dropped`;
  };
}

/**
 * Refuses to drop a namespace with partitions of tables in other namespaces, because the rows of
 * these partitions would remain.
 */
function refusePartitionsOfOthers(
  name: string,
  catalog: Catalog,
  { position, views }: { readonly views: readonly ViewEntry[]; readonly position: number },
): void {
  for (const { partition, ...view } of views) {
    const table = partition && catalog.tableById(partition.tableId);
    if (table === undefined || table.namespace === name) continue;
    throw new DatabaseError(
      "DEPENDENT_OBJECTS",
      `Cannot drop namespace ${name}: ${view.namespace}.${view.name} is a partition of ${table.namespace}.${table.name}`,
      { position, hint: "drop or detach the partition first" },
    );
  }
}

function isPlain(entry: ViewEntry): boolean {
  return !isPartition(entry);
}

/**
 * Drops the contents of a namespace, and returns in a tick in which the namespace is empty. Every
 * dropped table takes a durable transaction, so dropping thousands of tables takes seconds. Other
 * requests run in the meantime, and any objects that they create in the namespace are dropped as
 * well. If the statement is cancelled, the remaining tables stay.
 */
async function dropHeld(
  name: string,
  { catalog, clock, store, topics: topicAccess, webhooks }: DropDeps,
  { checkCancelled, drop, dropped }: DropSteps,
): Promise<void> {
  const pause = pauser(clock);
  for (;;) {
    const { tables, topics, types, views } = heldBy(name, catalog);
    if (topics.length > 0) {
      catalog.dropTopics(topics, store.issueSeq());
      topicAccess().topicsChanged();
      if (topics.some((topic) => topic.webhooks !== undefined)) webhooks().webhooksChanged();
    }
    // The partitions in the namespace are dropped together with their tables.
    const isUsed = viewsNaming(catalog, name, types).length > 0;
    if (views.some(isPlain) || isUsed) {
      await drop(() => {
        const held = heldBy(name, catalog);
        const users = viewsNaming(catalog, name, held.types);
        return dropped({ tables: new Map(), entries: held.views.filter(isPlain), users });
      });
      checkCancelled();
      continue;
    }
    if (tables.length === 0) {
      // The sequences of the dropped tables are already gone, so only other sequences remain.
      const { sequences } = heldBy(name, catalog);
      catalog.dropSequences(sequences);
      refuseTypesUsedElsewhere(name, catalog, { types });
      catalog.dropTypes(types);
      return;
    }
    for (const { tableId } of tables) {
      await drop(() => {
        const table = catalog.tableById(tableId);
        const isHeld = table?.namespace === name;
        return dropped({ tables: new Map(isHeld ? [[tableId, table]] : []), entries: [] });
      });
      await pause();
      checkCancelled();
    }
  }
}

/**
 * Refuses to drop a namespace with sequences that DEFAULTs in other namespaces use.
 * @throws {DatabaseError} DEPENDENT_OBJECTS
 */
function refuseNumberedElsewhere(
  name: string,
  catalog: Catalog,
  { position, sequences }: { sequences: readonly SequenceEntry[]; position: number },
): void {
  const elsewhere = columnsTakingFrom(catalog, sequences).filter(
    ({ table }) => table.namespace !== name,
  );
  if (elsewhere.length === 0) return;
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot drop namespace ${name}: the DEFAULT of ${counted(elsewhere.length, "column")} in ` +
      "other namespaces uses its sequences",
    { position, hint: "drop these DEFAULTs first, with ALTER COLUMN … DROP DEFAULT" },
  );
}

/**
 * Refuses to drop a namespace with types that are used in other namespaces by objects that remain.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS
 */
function refuseTypesUsedElsewhere(
  name: string,
  catalog: Catalog,
  {
    dropped,
    position,
    types,
  }: {
    readonly types: readonly TypeEntry[];
    readonly position?: number;
    readonly dropped?: Pick<DroppedObjects, "tables">;
  },
): void {
  const gone = new Set(dropped?.tables.map(({ tableId }) => tableId));
  const tables = catalog.tables().filter(({ tableId }) => !gone.has(tableId));
  const elsewhere = types
    .flatMap((type) => [
      ...columnsOfType({ tables: () => tables }, type),
      ...typesHolding(catalog, type).map((each) => used("type", each)),
      ...functionsOfType(catalog, type),
    ])
    .filter(({ namespace }) => namespace !== name);
  if (elsewhere.length === 0) return;
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot drop namespace ${name}: objects in other namespaces use its types: ` +
      shownUsers(elsewhere),
    {
      ...(position === undefined ? {} : { position }),
      hint: "drop the objects that use the types first",
    },
  );
}

interface Contents {
  readonly sequences: readonly SequenceEntry[];
  readonly tables: readonly TableEntry[];
  readonly topics: readonly TopicEntry[];
  readonly types: readonly TypeEntry[];
  readonly views: readonly ViewEntry[];
}

function heldBy(name: string, catalog: Catalog): Contents {
  return {
    sequences: catalog.sequences().filter(({ namespace }) => namespace === name),
    tables: catalog.tables().filter(({ namespace }) => namespace === name),
    topics: catalog.topics().filter(({ namespace }) => namespace === name),
    types: catalog.types().filter(({ namespace }) => namespace === name),
    // The query of a materialized view is dropped with its table.
    views: catalog
      .storedQueries()
      .filter(({ namespace, resultId }) => namespace === name && resultId === undefined),
  };
}

/**
 * Reads the options of a namespace, which may have any name. A number stays a number only if a
 * double represents it exactly.
 */
function namespaceOptions(entries: readonly OptionEntry[]): NamespaceEntry["options"] {
  const settings = optionSettings(entries);
  refuseTwice(settings);
  for (const { name, value, ...at } of settings) {
    if (typeof value !== "number") continue;
    if (Number.isFinite(value) && Math.abs(value) <= Number.MAX_SAFE_INTEGER) continue;
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot set option ${name}: the number is greater than ${Number.MAX_SAFE_INTEGER}; write ` +
        "it in quotes",
      at,
    );
  }
  return Object.fromEntries(settings.map(({ name, value }) => [name, value]));
}

/**
 * Refuses to alter or drop a reserved namespace.
 * @throws {DatabaseError} RESERVED_NAME
 */
function requireUnreserved({ _location, name }: Name, action: "alter" | "drop"): void {
  if (!isReservedNamespace(name)) return;
  throw new DatabaseError(
    "RESERVED_NAME",
    `Cannot ${action} namespace ${name}: this namespace is reserved for the server`,
    { position: _location.start },
  );
}

/**
 * Requires that a user exists.
 * @throws {DatabaseError} USER_NOT_FOUND
 */
function requireUser({ _location, name }: UserName, catalog: Catalog): void {
  if (catalog.accounts.user(name) !== undefined) return;
  throw new DatabaseError("USER_NOT_FOUND", `Cannot find user "${name}"`, {
    position: _location.start,
  });
}
