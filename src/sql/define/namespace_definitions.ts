/**
 * CREATE, ALTER and DROP NAMESPACE; what a namespace holds is dropped by `definitions.ts`.
 */
import { type Principal, requireRun } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import {
  type Catalog,
  checkObjectName,
  isReservedNamespace,
  type NamespaceEntry,
  refuseTwice,
  type TableEntry,
  type ViewEntry,
} from "../../catalog/mod.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { findNamespace } from "../common/table_names.ts";
import { dependentsOf } from "../common/views.ts";
import type {
  AlterNamespaceStatement,
  CreateNamespaceStatement,
  DropNamespaceStatement,
  OptionEntry,
  UserName,
} from "../parse/ast/ast.ts";
import { optionSettings } from "./table_elements.ts";

/**
 * A definition that is bound against the catalog: what is left to do, in the same turn. Returns
 * what happened.
 */
export type BoundDefinition = () => string | Promise<string>;

/** What a definition puts its entry into the catalog with. */
export type EntryWorld = Pick<SqlEnvironment, "catalog" | "clock" | "store">;

/** What a change of a namespace reaches. */
type NamespaceWorld = Pick<SqlEnvironment, "catalog" | "live" | "store">;

/** Before anything of the request runs. @throws {DatabaseError} PERMISSION_DENIED */
export function authorizeNamespace(
  node: AlterNamespaceStatement | CreateNamespaceStatement | DropNamespaceStatement,
  principal: Principal,
  catalog: Catalog,
): void {
  const details = {
    action: `run ${node.type.toUpperCase()} on ${node.name.name}`,
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

/** @throws {DatabaseError} */
export function createNamespace(
  node: CreateNamespaceStatement,
  principal: Principal,
  { catalog, clock, store }: EntryWorld,
): BoundDefinition {
  const { name } = node.name;
  checkObjectName("namespace", name, { position: node.name._location.start });
  if (catalog.namespace(name) !== undefined) {
    if (node.ifNotExists === true) return () => `Namespace ${name} already exists`;
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot create namespace ${name}: it already exists`,
      { position: node.name._location.start },
    );
  }
  if (node.authorization !== undefined) requireUser(node.authorization, catalog);
  const owner = node.authorization?.name ?? principal.userId;
  return () => {
    store.requireRoom();
    catalog.createNamespace({ name, owner, options: {}, createdAtMs: clock.nowMs() });
    return `Namespace ${name} created`;
  };
}

/** @throws {DatabaseError} */
export function alterNamespace(
  node: AlterNamespaceStatement,
  world: NamespaceWorld,
): BoundDefinition {
  const { catalog, store } = world;
  const { name } = node.name;
  requireUnreserved(node, "alter");
  const before = findNamespace(catalog, name, node.name);
  const { owner } = node;
  if (owner !== undefined) {
    requireUser(owner, catalog);
    return () => changeOwner({ ...before, owner: owner.name }, world);
  }
  const options = { ...before.options, ...namespaceOptions(node.options ?? []) };
  return () => {
    store.requireRoom();
    catalog.changeNamespace({ ...before, options });
    return `Namespace ${name} altered`;
  };
}

function changeOwner(entry: NamespaceEntry, { catalog, live }: NamespaceWorld): string {
  catalog.changeNamespace(entry);
  // Who owned it may follow tables that only the owner reads.
  for (const { kind, namespace, tableId } of catalog.tables()) {
    if (namespace === entry.name && kind === "shared") live().tableChanged(tableId);
  }
  return `Namespace ${entry.name} belongs to ${entry.owner}`;
}

type DropWorld = Pick<EntryWorld, "catalog" | "clock">;

interface DropSteps {
  /**
   * Drops a table and the views that depend on it in this turn; resolves once its files are gone.
   */
  readonly dropTable: (table: TableEntry, views: readonly ViewEntry[]) => Promise<void>;
  /** @throws {DatabaseError} CANCELLED, SHUTTING_DOWN */
  readonly checkCancelled: () => void;
}

/** @throws {DatabaseError} */
export function dropNamespace(
  node: DropNamespaceStatement,
  { catalog, clock }: DropWorld,
  steps: DropSteps,
): BoundDefinition {
  const { name } = node.name;
  requireUnreserved(node, "drop");
  if (catalog.namespace(name) === undefined && node.ifExists === true) {
    return () => `Namespace ${name} does not exist`;
  }
  findNamespace(catalog, name, node.name);
  const { tables, views } = heldBy(name, catalog);
  if (tables.length + views.length > 0 && node.cascade !== "cascade") {
    throw new DatabaseError(
      "DEPENDENT_OBJECTS",
      `Cannot drop namespace ${name}: it holds ${tables.length} table(s) and ${views.length} view(s)`,
      { position: node.name._location.start, hint: "drop them, or add CASCADE" },
    );
  }
  return async () => {
    await dropHeld(name, { catalog, clock }, steps);
    // Somebody else may have come to its end first.
    if (catalog.namespace(name) !== undefined) catalog.dropNamespace(name);
    return `Namespace ${name} dropped`;
  };
}

/**
 * Drops all that a namespace holds, and returns in a turn in which it holds nothing. Each table is
 * a transaction that is synced, so thousands take seconds, in which others run; what they make in
 * the namespace goes, too. When the statement is cancelled meanwhile, the tables that are left
 * stay.
 */
async function dropHeld(
  name: string,
  { catalog, clock }: DropWorld,
  { checkCancelled, dropTable }: DropSteps,
): Promise<void> {
  const pause = pauser(clock);
  for (;;) {
    const { tables, views } = heldBy(name, catalog);
    const tableIds = new Set(tables.map(({ tableId }) => tableId));
    const viewIds = new Set(views.map(({ viewId }) => viewId));
    catalog.dropViews([...views, ...dependentsOf(catalog, { tableIds, viewIds })]);
    if (tables.length === 0) return;
    for (const { tableId } of tables) {
      const table = catalog.tableById(tableId);
      if (table?.namespace !== name) continue;
      await dropTable(table, dependentsOf(catalog, { tableIds: new Set([tableId]) }));
      await pause();
      checkCancelled();
    }
  }
}

function heldBy(
  name: string,
  catalog: Catalog,
): { readonly tables: readonly TableEntry[]; readonly views: readonly ViewEntry[] } {
  return {
    tables: catalog.tables().filter(({ namespace }) => namespace === name),
    views: catalog.views().filter(({ namespace }) => namespace === name),
  };
}

/** Options of any name: a number is kept as such where a double holds it. */
function namespaceOptions(entries: readonly OptionEntry[]): NamespaceEntry["options"] {
  const settings = optionSettings(entries);
  refuseTwice(settings);
  for (const { name, value, ...at } of settings) {
    if (typeof value !== "number") continue;
    if (Number.isFinite(value) && Math.abs(value) <= Number.MAX_SAFE_INTEGER) continue;
    throw new DatabaseError(
      "INVALID_OPTION",
      `Cannot set option ${name}: a number is at most ${Number.MAX_SAFE_INTEGER}, longer ones go in quotes`,
      at,
    );
  }
  return Object.fromEntries(settings.map(({ name, value }) => [name, value]));
}

/** @throws {DatabaseError} RESERVED_NAME */
function requireUnreserved(
  { name }: AlterNamespaceStatement | DropNamespaceStatement,
  action: "alter" | "drop",
): void {
  if (!isReservedNamespace(name.name)) return;
  throw new DatabaseError(
    "RESERVED_NAME",
    `Cannot ${action} namespace ${name.name}: it is reserved`,
    { position: name._location.start },
  );
}

/** @throws {DatabaseError} USER_NOT_FOUND */
function requireUser({ _location, name }: UserName, catalog: Catalog): void {
  if (catalog.user(name) !== undefined) return;
  throw new DatabaseError("USER_NOT_FOUND", `Cannot find user "${name}"`, {
    position: _location.start,
  });
}
