/**
 * CREATE, ALTER and DROP of namespaces, storages, tables and views.
 *
 * A definition takes a seq, commits in the catalog, and only then reaches storage: the catalog is
 * never behind the data.
 */
import {
  type Principal,
  requireAlter,
  requireCreateTable,
  requireDrop,
  requireRun,
} from "../../auth/mod.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";
import { TURN_MS_MAX } from "../../base/limits.ts";
import { pauser } from "../../base/pauser.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import {
  checkObjectName,
  type TableEntry,
  tableOptionsFrom,
  type ViewEntry,
} from "../../catalog/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import type { StatementResult } from "../common/engine.ts";
import type { SqlEnvironment } from "../common/environment.ts";
import { messageResult } from "../common/result.ts";
import { type DefiningStatement, requireRight } from "../common/statement_kinds.ts";
import { findTable, requireHolder, visibleTable, visibleView } from "../common/table_names.ts";
import { dependentsOf, refuseDependents } from "../common/views.ts";
import {
  checkCancelled,
  checkDeadline,
  type RequestLedger,
} from "../execute/run/request_ledger.ts";
import { removeDroppedFiles } from "../files/uploads.ts";
import type {
  AlterTableStatement,
  CreateTableStatement,
  DropTableStatement,
  QName,
  Statement,
} from "../parse/ast/ast.ts";
import type { BindingWorld } from "../prepare/binding_world.ts";
import type { RunWorld } from "../prepare/new_run.ts";
import { type Alteration, alteredTable, definitionRun } from "./alter_table.ts";
import {
  alterNamespace,
  authorizeNamespace,
  type BoundDefinition,
  createNamespace,
  dropNamespace,
} from "./namespace_definitions.ts";
import { RowInspection } from "./row_inspection.ts";
import {
  alterStorage,
  createStorage,
  dropStorage,
  storageDirectoryOf,
} from "./storage_definitions.ts";
import { newTable, optionSettings } from "./table_elements.ts";
import { authorizeView, createView, droppedMessage, dropViews } from "./view_definitions.ts";

/** What an ALTER TABLE makes of a table; `next` is undefined when it stays as it is. */
interface AlteredTable extends Alteration {
  readonly table: TableEntry;
  /** Those that go with dropped columns. */
  readonly views: readonly ViewEntry[];
}

/** What definitions are bound against and change. */
export interface DefinitionWorld
  extends BindingWorld,
    RunWorld,
    Pick<SqlEnvironment, "blobs" | "definitionOf" | "live" | "log" | "storages"> {}

export class Definitions {
  readonly #world: DefinitionWorld;
  readonly #ledger: RequestLedger;

  constructor(world: DefinitionWorld, ledger: RequestLedger) {
    this.#world = world;
    this.#ledger = ledger;
  }

  /** Rights of a definition, before anything of the request runs. @throws {DatabaseError} */
  authorize(node: DefiningStatement, principal: Principal, namespace: string): void {
    const { catalog } = this.#world;
    switch (node.type) {
      case "create namespace":
      case "drop namespace":
      case "alter namespace":
        authorizeNamespace(node, principal, catalog);
        return;
      case "create table":
        requireCreateTable(principal, shown(node.name, namespace), {
          namespace: catalog.namespace(node.name.schema ?? namespace),
        });
        return;
      case "alter table": {
        const { name, schema = namespace } = node.table;
        const holder = catalog.namespace(schema);
        const table = visibleTable(catalog, { namespace: schema, name }, principal);
        if (table !== undefined) {
          requireAlter(principal, table, { namespace: holder });
          return;
        }
        // A statement before it in the text may make the table.
        requireRun(principal, "defineTable", {
          action: `run ${node.type.toUpperCase()}`,
          position: node._location.start,
          ...(holder === undefined ? {} : { namespace: holder }),
        });
        return;
      }
      case "create storage":
      case "alter storage":
      case "drop storage":
        requireRight(node, principal);
        return;
      case "create view":
      case "drop view":
        authorizeView(node, { principal, namespace }, catalog);
        return;
      case "drop table":
        for (const name of node.names) {
          const holder = catalog.namespace(name.schema ?? namespace);
          requireRun(principal, "removeTable", {
            action: `drop table ${shown(name, namespace)}`,
            ...(holder === undefined ? {} : { namespace: holder }),
          });
        }
        return;
    }
  }

  /**
   * Finds what a definition would be refused for as the catalog is, and changes nothing.
   * @throws {DatabaseError}
   */
  check(node: DefiningStatement, principal: Principal, namespace: string): void {
    this.#bound(node, principal, namespace);
  }

  /** @throws {DatabaseError} */
  async run(
    node: DefiningStatement,
    principal: Principal,
    namespace: string,
  ): Promise<StatementResult> {
    this.authorize(node, principal, namespace);
    const change = this.#bound(node, principal, namespace);
    return messageResult(await change(), principal.userId);
  }

  /** A definition bound against the catalog of this turn. */
  #bound(node: DefiningStatement, principal: Principal, namespace: string): BoundDefinition {
    switch (node.type) {
      case "create namespace":
        return createNamespace(node, principal, this.#world);
      case "alter namespace":
        return alterNamespace(node, this.#world);
      case "drop namespace":
        return dropNamespace(node, this.#world, {
          dropTable: (table, views) => this.#drop(table, views),
          checkCancelled: () => checkCancelled(this.#ledger),
        });
      case "create storage":
        return createStorage(node, this.#world);
      case "alter storage":
        return alterStorage(node, this.#world);
      case "drop storage":
        return dropStorage(node, this.#world);
      case "create table":
        return this.#createTable(node, principal, namespace);
      case "alter table":
        return this.#alterTable(node, principal, namespace);
      case "drop table":
        return this.#dropTables(node, principal, namespace);
      case "create view":
        return createView(node, { principal, namespace, ledger: this.#ledger }, this.#world);
      case "drop view":
        return dropViews(node, { principal, namespace }, this.#world);
    }
  }

  #createTable(
    node: CreateTableStatement,
    principal: Principal,
    namespace: string,
  ): BoundDefinition {
    const { catalog, clock, definitionOf, store } = this.#world;
    const inNamespace = node.name.schema ?? namespace;
    const name = node.name.name;
    const position = node.name._location.start;
    requireHolder(catalog, inNamespace, node.name);
    checkObjectName("table", name, { position });
    const isTaken =
      catalog.table(inNamespace, name) !== undefined ||
      catalog.view(inNamespace, name) !== undefined;
    if (isTaken) {
      if (node.ifNotExists === true) return () => `Table ${inNamespace}.${name} already exists`;
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot create table ${inNamespace}.${name}: it already exists`,
        { position },
      );
    }
    const { kind, options } = tableOptionsFrom(node.kind, optionSettings(node.options));
    const entries = node.options;
    const directoryOf = storageDirectoryOf(this.#world, { entries, kind, options });
    const elements = newTable(node, { kind, tableName: name });
    return () => {
      store.requireRoom();
      const nowMs = clock.nowMs();
      const place = { tableId: catalog.nextTableId(), namespace: inNamespace, name };
      const entry: TableEntry = {
        ...elements,
        ...place,
        ...(directoryOf === undefined ? {} : { storageDirectory: directoryOf(place) }),
        kind,
        options,
        schemaVersion: 1,
        createdBy: principal.userId,
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
      };
      catalog.createTable(entry, store.issueSeq());
      store.defineTable(definitionOf(entry));
      return `Table ${inNamespace}.${name} created`;
    };
  }

  #alterTable(node: AlterTableStatement, principal: Principal, namespace: string): BoundDefinition {
    const { catalog, systemViews } = this.#world;
    const { ifExists } = node;
    systemViews.refuse(node.table, { namespace, principal, action: "alter", ifExists });
    const { name, schema = namespace } = node.table;
    const place = { namespace: schema, name };
    const isThere =
      visibleTable(catalog, place, principal) !== undefined ||
      visibleView(this.#world, place, principal) !== undefined;
    if (ifExists === true && !isThere) {
      return () => `Table ${shown(node.table, namespace)} does not exist`;
    }
    const altered = (): AlteredTable => this.#altered(node, principal, namespace);
    const first = altered();
    return () => this.#inspectAndAlter(node, first, altered);
  }

  /** What a table becomes, as the catalog of this turn has it. @throws {DatabaseError} */
  #altered(node: AlterTableStatement, principal: Principal, namespace: string): AlteredTable {
    const { catalog } = this.#world;
    const table = findTable(this.#world, node.table, { namespace, node: node.table, principal });
    requireAlter(principal, table, { namespace: catalog.namespace(table.namespace) });
    requireKind(node.kind, table, node);
    const { demands, next: altered } = alteredTable(table, node, {
      world: this.#world,
      principal,
      namespace,
    });
    const next = altered === undefined ? undefined : this.#withoutExpired(table, altered);
    const views = next === undefined ? [] : this.#viewsWithout(table, next, node);
    return { table, next, demands, views };
  }

  /** @param altered As at a later turn, since others change tables while rows are looked at. */
  async #inspectAndAlter(
    node: AlterTableStatement,
    first: AlteredTable,
    altered: () => AlteredTable,
  ): Promise<string> {
    const { clock, store } = this.#world;
    const check = (): number => checkDeadline(this.#ledger, clock);
    const pause = pauser(clock, { check, firstTurnMs: TURN_MS_MAX });
    let inspected: { readonly table: TableEntry; readonly upTo: Seq } | undefined;
    for (let at = first; ; at = altered()) {
      const { demands, next, table, views } = at;
      if (next === undefined) {
        return `Table ${nameOf(table)} unchanged at schema version ${table.schemaVersion}`;
      }
      // What makes a table shorter, or its history, is how room is made.
      if (node.changes.some(({ type }) => type.startsWith("add "))) store.requireRoom();
      const run = definitionRun(this.#world);
      const inspection = new RowInspection({ table, next, demands, run, store });
      const upTo = store.appliedSeq;
      if (inspection.isEmpty) return this.#redefine(next, views);
      if (inspected?.table === table) {
        // What was written while the others were read, in the turn of the change.
        inspection.inspectNow({ after: inspected.upTo, upTo });
        return this.#redefine(next, views);
      }
      await inspection.inspect({ after: SEQ_ZERO, upTo }, pause);
      inspected = { table, upTo };
    }
  }

  #redefine(changed: TableEntry, views: readonly ViewEntry[]): string {
    const { catalog, definitionOf, live, store } = this.#world;
    catalog.changeTable(changed, store.issueSeq(), views);
    store.defineTable(definitionOf(changed));
    live().tableChanged(changed.tableId);
    return `Table ${nameOf(changed)} altered to schema version ${changed.schemaVersion}`;
  }

  /** What has expired by the old TTL does not come back by a longer one. */
  #withoutExpired(table: TableEntry, altered: TableEntry): TableEntry {
    const { ttlSeconds } = table.options;
    if (ttlSeconds === undefined || altered.options.ttlSeconds === ttlSeconds) return altered;
    return { ...altered, expiredSeq: this.#world.store.expiredSeq(table.tableId) };
  }

  /** The views that go with dropped columns. @throws {DatabaseError} DEPENDENT_OBJECTS */
  #viewsWithout(
    table: TableEntry,
    changed: TableEntry,
    node: AlterTableStatement,
  ): readonly ViewEntry[] {
    const { catalog } = this.#world;
    const { tableId } = table;
    const views = new Map<number, ViewEntry>();
    for (const change of node.changes) {
      if (change.type !== "drop column") continue;
      const { name, _location } = change.column;
      const column = table.columns.find((each) => each.name === name);
      if (column === undefined || changed.columns.some((c) => c.columnId === column.columnId)) {
        continue;
      }
      const columnIds = new Set([column.columnId]);
      const dependents = dependentsOf(catalog, { columns: { tableId, columnIds } });
      if (change.behaviour !== "cascade") {
        refuseDependents(`drop column "${name}"`, dependents, _location.start);
      }
      for (const view of dependents) views.set(view.viewId, view);
    }
    return [...views.values()];
  }

  #dropTables(node: DropTableStatement, principal: Principal, namespace: string): BoundDefinition {
    const { catalog, systemViews } = this.#world;
    // A table may be named twice, and is dropped once.
    const tables = new Map<number, TableEntry>();
    const missing: string[] = [];
    const { ifExists } = node;
    for (const name of node.names) {
      const place = { namespace, principal, action: "drop", ifExists };
      systemViews.refuse(name, place);
      const named = { namespace: name.schema ?? namespace, name: name.name };
      const table = visibleTable(catalog, named, principal);
      const isView = visibleView(this.#world, named, principal) !== undefined;
      if (table === undefined && ifExists === true && !isView) {
        missing.push(shown(name, namespace));
        continue;
      }
      const found = table ?? findTable(this.#world, name, { namespace, node: name, principal });
      requireDrop(principal, found, { namespace: catalog.namespace(found.namespace) });
      requireKind(node.kind, found, node);
      tables.set(found.tableId, found);
    }
    const dependents = dependentsOf(catalog, { tableIds: new Set(tables.keys()) });
    const dropped = [...tables.values()].map((each) => `${each.namespace}.${each.name}`);
    if (node.cascade !== "cascade") {
      refuseDependents(`drop table ${dropped.join(", ")}`, dependents, node._location.start);
    }
    return async () => {
      let views: readonly ViewEntry[] = dependents;
      const removals: Promise<void>[] = [];
      for (const table of tables.values()) {
        removals.push(this.#drop(table, views));
        views = [];
      }
      await Promise.all(removals);
      return droppedMessage("table", { dropped, missing });
    };
  }

  /** Drops it in this turn; resolves once its files are gone, or left. @throws {DatabaseError} */
  #drop(table: TableEntry, views: readonly ViewEntry[]): Promise<void> {
    const { catalog, live, store } = this.#world;
    catalog.dropTable(table.tableId, store.issueSeq(), views);
    store.dropTable(table.tableId);
    live().tableChanged(table.tableId);
    return this.#removeFiles(table);
  }

  /** As far as the statement is not killed: the table is gone, so that is no failure of it. */
  async #removeFiles({ tableId }: TableEntry): Promise<void> {
    const { log } = this.#world;
    const isEnded = (): boolean => this.#ledger.cancelledBy !== undefined;
    try {
      await removeDroppedFiles(tableId, this.#world, isEnded);
    } catch (error) {
      // Safe: nobody can name its files any more, and they are looked for again every hour.
      if (!isExpected(error)) throw error;
      log.warn("cannot remove the files of a dropped table", { error: error.message });
    }
  }
}

function shown(name: QName, namespace: string): string {
  return `${name.schema ?? namespace}.${name.name}`;
}

/** The kind word of ALTER and DROP must match. @throws {DatabaseError} INVALID_OPERATION */
function requireKind(kind: string | undefined, table: TableEntry, node: Statement): void {
  if (kind === undefined || kind === table.kind) return;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot use ${table.namespace}.${table.name} as a ${kind.toUpperCase()} table: it is ${table.kind.toUpperCase()}`,
    { position: node._location.start },
  );
}
