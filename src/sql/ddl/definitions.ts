/**
 * CREATE, ALTER and DROP of namespaces, storages, tables, views, topics and webhooks.
 *
 * A definition gets a seq, commits in the catalog, and only then takes effect in storage, so the
 * catalog is never behind the data.
 */
import {
  type Principal,
  requireAlter,
  requireCreateTable,
  requireDrop,
  requireRun,
} from "../../auth/mod.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";
import { FIRST_SLICE_MS_MAX } from "../../base/limits.ts";
import { pauser } from "../../base/pauser.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import {
  checkObjectName,
  type Dependents,
  type ForeignKeyEntry,
  type IndexEntry,
  type TableEntry,
  tableOptionsFrom,
  type ViewEntry,
} from "../../catalog/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { typesIn, withTypes } from "../bind/expression/type_names.ts";
import type { IncomingReference } from "../execute/context/execution_context.ts";
import {
  checkCancelled,
  checkDeadline,
  type RequestLedger,
} from "../execute/context/request_ledger.ts";
import { removeDroppedFiles } from "../files/uploads.ts";
import { referencesTo } from "../names/references.ts";
import { columnsTakingFrom, type NumberedColumn, sequencesOf } from "../names/sequences.ts";
import { findTable, requireHolder, visibleTable, visibleView } from "../names/table_names.ts";
import { refuseTopicName } from "../names/topics.ts";
import { requireKnownTypes } from "../names/types.ts";
import { dependentsOf, refuseDependents } from "../names/views.ts";
import type {
  AlterIndexStatement,
  AlterOwnerStatement,
  AlterTableStatement,
  CommentStatement,
  CreateExtensionStatement,
  CreateIndexStatement,
  CreateTableStatement,
  DoStatement,
  DropIndexStatement,
  DropTableStatement,
  QName,
  Statement,
  TypeDefinition,
} from "../parse/ast/ast.ts";
import type { StatementResult } from "../ports/engine.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { BindingDeps } from "../prepare/binding_deps.ts";
import type { ExecutionDeps } from "../prepare/statement_context.ts";
import { messageResult } from "../result/result.ts";
import { type DefiningStatement, requireRight } from "../rights/statement_kinds.ts";
import { withQualifiedDefault } from "./alter_column.ts";
import { type Alteration, alteredTable, definitionContext } from "./alter_table.ts";
import { authorizeComment, commentOn } from "./comments.ts";
import { foreignKeysIn, inForceSince, refuseReferring, withForeignKeys } from "./foreign_keys.ts";
import { HeldOffsets } from "./held_offsets.ts";
import {
  authorizeIndexes,
  createIndex,
  dropIndexes,
  finishIndexes,
  renameIndex,
} from "./index_definitions.ts";
import { type IndexedTable, withFreeKeyName, withUnique } from "./index_elements.ts";
import {
  alterNamespace,
  authorizeNamespace,
  type BoundDefinition,
  createNamespace,
  dropNamespace,
} from "./namespace_definitions.ts";
import { withSequences } from "./numbered_columns.ts";
import { alterOwner, createExtension } from "./ownership.ts";
import { validateReference } from "./reference_validation.ts";
import { RowInspection } from "./row_inspection.ts";
import {
  alterSequence,
  authorizeSequence,
  createSequence,
  dropDefaults,
  dropSequences,
  type Redefine,
  refuseNumbered,
} from "./sequence_definitions.ts";
import {
  alterStorage,
  createStorage,
  dropStorage,
  storageDirectoryOf,
} from "./storage_definitions.ts";
import { newTable, optionSettings } from "./table_elements.ts";
import { withLikedParts, withLikes } from "./table_likes.ts";
import { viewsAfterRename } from "./table_rename.ts";
import { alterTopic, createTopic, type TopicDefinitionDeps } from "./topic_definitions.ts";
import { requireSourcesKept, topicsWith, topicsWithout } from "./topic_sources.ts";
import {
  alterType,
  authorizeType,
  createType,
  dropTypes,
  isTypeDefinition,
} from "./type_definitions.ts";
import { authorizeView, createView, droppedMessage, dropViews } from "./view_definitions.ts";
import {
  alterWebhook,
  createWebhook,
  dropWebhook,
  type WebhookDefinitionDeps,
} from "./webhook_definitions.ts";

/** The result of planning an ALTER TABLE. `next` is undefined if the table does not change. */
interface PlannedAlteration extends Alteration {
  readonly table: TableEntry;
  /** The views that are dropped together with the dropped columns. */
  readonly views: readonly ViewEntry[];
}

/** The tables that a statement drops, with the views that depend on them. */
interface DroppedTables {
  readonly tables: readonly TableEntry[];
  readonly views: readonly ViewEntry[];
  /** Columns of other tables that take numbers from dropped sequences. */
  readonly numbered: readonly NumberedColumn[];
  /** Foreign keys of other tables that refer to the dropped tables. */
  readonly referring: readonly IncomingReference[];
  /** The message that the response contains. */
  readonly message: string;
}

type SmallDefinition =
  | AlterOwnerStatement
  | CommentStatement
  | CreateExtensionStatement
  | CreateIndexStatement
  | AlterIndexStatement
  | DropIndexStatement
  | TypeDefinition
  | DoStatement;

/** The dependencies of definitions. */
export interface DefinitionDeps
  extends BindingDeps,
    ExecutionDeps,
    TopicDefinitionDeps,
    WebhookDefinitionDeps,
    Pick<SqlEnvironment, "blobs" | "definitionOf" | "jobs" | "live" | "log" | "storages"> {}

export class DefinitionStatements {
  readonly #deps: DefinitionDeps;
  readonly #ledger: RequestLedger;

  constructor(deps: DefinitionDeps, ledger: RequestLedger) {
    this.#deps = deps;
    this.#ledger = ledger;
  }

  /**
   * Checks the rights of a definition before any part of the request runs. @throws {DatabaseError}
   */
  authorize(node: DefiningStatement, principal: Principal, namespace: string): void {
    const { catalog } = this.#deps;
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
      case "alter table":
      case "create index":
        this.#authorizeAlteration(node, principal, namespace);
        return;
      case "create sequence":
      case "alter sequence":
      case "drop sequence":
        authorizeSequence(node, { principal, namespace }, catalog);
        return;
      case "alter index":
      case "drop index":
        authorizeIndexes(node, { principal, namespace }, catalog);
        return;
      case "alter owner":
      case "comment on":
        authorizeComment(node, { principal, namespace }, catalog);
        return;
      case "create view":
      case "drop view":
        authorizeView(node, { principal, namespace }, catalog);
        return;
      case "drop table":
        this.#authorizeDrop(node, principal, namespace);
        return;
      case "do":
        this.authorize(node.statement, principal, namespace);
        return;
      default:
        if (isTypeDefinition(node)) authorizeType(node, { principal, namespace }, catalog);
        // For storages, topics and webhooks, the required right depends only on the kind of
        // statement.
        else requireRight(node, principal);
    }
  }

  #authorizeDrop({ names }: DropTableStatement, principal: Principal, namespace: string): void {
    for (const name of names) {
      const holder = this.#deps.catalog.namespace(name.schema ?? namespace);
      requireRun(principal, "removeTable", {
        action: `drop table ${shown(name, namespace)}`,
        ...(holder === undefined ? {} : { namespace: holder }),
      });
    }
  }

  #authorizeAlteration(
    node: AlterTableStatement | CreateIndexStatement,
    principal: Principal,
    namespace: string,
  ): void {
    const { catalog } = this.#deps;
    const { name, schema = namespace } = node.table;
    const holder = catalog.namespace(schema);
    const table = visibleTable(catalog, { namespace: schema, name }, principal);
    if (table !== undefined) {
      requireAlter(principal, table, { namespace: holder });
      return;
    }
    // An earlier statement in the text may create the table.
    requireRun(principal, "defineTable", {
      action: `run ${node.type.toUpperCase()}`,
      position: node._location.start,
      ...(holder === undefined ? {} : { namespace: holder }),
    });
  }

  /**
   * Checks a definition against the current catalog, without changing anything.
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

  /** Returns the functions that change sequences and the columns that take numbers from them. */
  get #redefining(): { readonly deps: DefinitionDeps; readonly redefine: Redefine } {
    return {
      deps: this.#deps,
      redefine: (table, changed, others = {}) => this.#changeTable(table, changed, others),
    };
  }

  /** Returns a definition that is bound against the catalog of this tick. */
  #bound(node: DefiningStatement, principal: Principal, namespace: string): BoundDefinition {
    withTypes(node, typesIn(this.#deps.catalog, namespace));
    switch (node.type) {
      case "create namespace":
        return createNamespace(node, principal, this.#deps);
      case "alter namespace":
        return alterNamespace(node, this.#deps);
      case "drop namespace":
        return dropNamespace(node, this.#deps, {
          dropTable: (tableId) => this.#dropWithin(node.name.name, tableId),
          checkCancelled: () => checkCancelled(this.#ledger),
        });
      case "create storage":
        return createStorage(node, this.#deps);
      case "alter storage":
        return alterStorage(node, this.#deps);
      case "drop storage":
        return dropStorage(node, this.#deps);
      case "create table":
        return this.#createTable(node, principal, namespace);
      case "alter table":
        return this.#alterTable(node, principal, namespace);
      case "drop table": {
        const dropped = (): DroppedTables => this.#droppedBy(node, principal, namespace);
        dropped();
        return () => this.#dropTables(dropped);
      }
      case "create view":
        return createView(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
      case "drop view":
        return dropViews(node, { principal, namespace }, this.#deps);
      case "create sequence":
        return createSequence(node, { principal, namespace }, this.#deps);
      case "alter sequence":
        return alterSequence(node, { principal, namespace }, this.#redefining);
      case "drop sequence":
        return dropSequences(node, { principal, namespace }, this.#redefining);
      case "create topic":
        return createTopic(node, { principal, namespace }, this.#deps);
      case "alter topic":
        return alterTopic(node, { principal, namespace }, this.#deps);
      case "create webhook":
        return createWebhook(node, { principal, namespace }, this.#deps);
      case "alter webhook":
        return alterWebhook(node, this.#deps);
      case "drop webhook":
        return dropWebhook(node, this.#deps);
      default:
        return this.#boundSmall(node, principal, namespace);
    }
  }

  #boundSmall(node: SmallDefinition, principal: Principal, namespace: string): BoundDefinition {
    switch (node.type) {
      case "alter owner":
        return alterOwner(node, { principal, namespace }, this.#deps);
      case "comment on":
        return commentOn(node, { principal, namespace }, this.#deps);
      case "create extension":
        return createExtension(node);
      case "create type":
        return createType(node, { principal, namespace }, this.#deps);
      case "alter type":
        return alterType(node, { principal, namespace }, this.#deps);
      case "drop type":
        return dropTypes(node, { principal, namespace }, this.#deps);
      case "do":
        return this.#boundTolerant(node, principal, namespace);
      case "create index":
        return createIndex(node, { principal, namespace, ledger: this.#ledger }, this.#deps);
      case "alter index":
        return renameIndex(node, { principal, namespace }, this.#deps);
      case "drop index":
        return dropIndexes(
          node,
          { principal, namespace, dropReference: this.#dropReference },
          this.#deps,
        );
    }
  }

  /** Binds a definition that does nothing if the object already exists. */
  #boundTolerant(
    { statement }: DoStatement,
    principal: Principal,
    namespace: string,
  ): BoundDefinition {
    try {
      const change = this.#bound(statement, principal, namespace);
      return async () => {
        try {
          return await change();
        } catch (error) {
          return passedOver(error);
        }
      };
    } catch (error) {
      const message = passedOver(error);
      return () => message;
    }
  }

  #createTable(
    written: CreateTableStatement,
    principal: Principal,
    namespace: string,
  ): BoundDefinition {
    const { catalog, clock, definitionOf, store } = this.#deps;
    const inNamespace = written.name.schema ?? namespace;
    const name = written.name.name;
    const position = written.name._location.start;
    requireHolder(catalog, inNamespace, written.name);
    checkObjectName("table", name, { position });
    const isTaken =
      catalog.table(inNamespace, name) !== undefined ||
      catalog.view(inNamespace, name) !== undefined ||
      catalog.sequence(inNamespace, name) !== undefined ||
      catalog.type(inNamespace, name) !== undefined;
    refuseTopicName(catalog, "table", { namespace: inNamespace, name, position });
    if (isTaken) {
      if (written.ifNotExists === true) return () => `Table ${inNamespace}.${name} already exists`;
      throw new DatabaseError(
        "ALREADY_EXISTS",
        `Cannot create table ${inNamespace}.${name}: it already exists`,
        { position },
      );
    }
    const { likes, node } = withLikes(written, { deps: this.#deps, namespace, principal });
    const { kind, options } = tableOptionsFrom(node.kind, optionSettings(node.options));
    const entries = node.options;
    const directoryOf = storageDirectoryOf(this.#deps, { entries, kind, options });
    const { numberings, ...elements } = newTable(node, { kind, tableName: name });
    const alterer = { deps: this.#deps, namespace, principal };
    const columns = elements.columns.map((column) =>
      withQualifiedDefault(column, alterer, position),
    );
    const maker = { catalog, clock, principal };
    const numbered = { ...elements, columns, kind, namespace: inNamespace, name, tableId: 0 };
    const keys = foreignKeysIn(node);
    const indexed = <T extends IndexedTable>(table: T): T =>
      withLikedParts(withUnique(withFreeKeyName(table, catalog), node, catalog), likes, catalog);
    // A trial run refuses columns that cannot be numbered or indexed, and invalid foreign keys,
    // before anything runs.
    const tried = withSequences(numbered, numberings, maker).table;
    requireKnownTypes(tried, { catalog, position });
    withForeignKeys(indexed(tried), keys, alterer);
    return () => {
      store.requireFreeSpace();
      const nowMs = clock.nowMs();
      const place = { tableId: catalog.nextTableId(), namespace: inNamespace, name };
      const made = withSequences({ ...elements, columns, kind, ...place }, numberings, maker);
      const seq = store.issueSeq();
      const entry: TableEntry = {
        ...withForeignKeys(indexed(made.table), keys, alterer),
        ...(directoryOf === undefined ? {} : { storageDirectory: directoryOf(place) }),
        kind,
        options,
        schemaVersion: 1,
        createdBy: principal.userId,
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
      };
      catalog.createTable(inForceSince(entry, seq), seq, { sequences: made.sequences });
      store.defineTable(definitionOf(entry));
      return `Table ${inNamespace}.${name} created`;
    };
  }

  #alterTable(node: AlterTableStatement, principal: Principal, namespace: string): BoundDefinition {
    const { catalog, systemViews } = this.#deps;
    const { ifExists } = node;
    systemViews.refuse(node.table, { namespace, principal, action: "alter", ifExists });
    const { name, schema = namespace } = node.table;
    const place = { namespace: schema, name };
    const isThere =
      visibleTable(catalog, place, principal) !== undefined ||
      visibleView(this.#deps, place, principal) !== undefined;
    if (ifExists === true && !isThere) {
      return () => `Table ${shown(node.table, namespace)} does not exist`;
    }
    const altered = (): PlannedAlteration => this.#altered(node, principal, namespace);
    const first = altered();
    return () => this.#inspectAndAlter(node, { first, altered, createdBy: principal.userId });
  }

  /** Computes the altered table from the catalog of this tick. @throws {DatabaseError} */
  #altered(node: AlterTableStatement, principal: Principal, namespace: string): PlannedAlteration {
    const { catalog } = this.#deps;
    const table = findTable(this.#deps, node.table, { namespace, node: node.table, principal });
    requireAlter(principal, table, { namespace: catalog.namespace(table.namespace) });
    requireKind(node.kind, table, node);
    const { next: altered, ...alteration } = alteredTable(table, node, {
      deps: this.#deps,
      principal,
      namespace,
    });
    const next = altered === undefined ? undefined : this.#withoutExpired(table, altered);
    const views = next === undefined ? [] : this.#viewsWithout(table, next, node);
    if (next !== undefined) {
      requireSourcesKept(catalog, { before: table, after: next }, node);
    }
    return { ...alteration, table, next, views };
  }

  /**
   * @param altered Computes the altered table again in a later tick, because other requests may
   * change tables while rows are checked.
   */
  async #inspectAndAlter(
    node: AlterTableStatement,
    {
      altered,
      createdBy,
      first,
    }: { first: PlannedAlteration; altered: () => PlannedAlteration; createdBy: string },
  ): Promise<string> {
    const altering = await this.#inspectedAndAltered(node, first, altered);
    const { made, message, tableId } = altering;
    if (made.length > 0) {
      await finishIndexes(this.#deps, tableId, { made, ledger: this.#ledger, createdBy });
    }
    return message;
  }

  /** Alters a table. Returns the response, and the indexes that still have to be built. */
  async #inspectedAndAltered(
    node: AlterTableStatement,
    first: PlannedAlteration,
    altered: () => PlannedAlteration,
  ): Promise<{ message: string; tableId: number; made: readonly IndexEntry[] }> {
    const { clock, store } = this.#deps;
    const check = (): number => checkDeadline(this.#ledger, clock);
    const pause = pauser(clock, { check, firstSliceMs: FIRST_SLICE_MS_MAX });
    let inspected: { readonly table: TableEntry; readonly upTo: Seq } | undefined;
    const held = new HeldOffsets(this.#deps);
    try {
      for (let at = first; ; at = altered()) {
        const { demands, next, table } = at;
        const { tableId } = table;
        if (next === undefined) {
          const message = `Table ${nameOf(table)} unchanged at schema version ${table.schemaVersion}`;
          return { message, tableId, made: [] };
        }
        // Only additions need free space. An operator can still free space by shrinking a table or
        // its history.
        if (node.changes.some(({ type }) => type.startsWith("add "))) store.requireFreeSpace();
        const known = new Set(table.indexes?.map(({ indexId }) => indexId));
        const made = (next.indexes ?? []).filter(({ indexId }) => !known.has(indexId));
        const context = definitionContext(this.#deps);
        const inspection = new RowInspection({ table, next, demands, context, store });
        const upTo = store.appliedSeq;
        if (!inspection.isEmpty && inspected?.table !== table) {
          await inspection.inspect({ after: SEQ_ZERO, upTo }, pause);
          inspected = { table, upTo };
        } else if (!held.holds(table.tableId)) {
          await held.hold(table.tableId);
        } else {
          // Rows that were written during the inspection are checked in the tick of the change.
          if (inspected !== undefined) inspection.inspectNow({ after: inspected.upTo, upTo });
          const message = this.#redefine(at, next);
          if (at.validations.length > 0) await this.#validate(at, pause);
          return { message, tableId, made };
        }
      }
    } finally {
      held.release();
    }
  }

  #redefine(alteration: PlannedAlteration, changed: TableEntry): string {
    const { droppedSequences, marks, referring, sequences, table, views } = alteration;
    for (const each of referring) this.#dropReference(each);
    const changedViews = viewsAfterRename(this.#deps.catalog, table, changed);
    const others = { changedViews, droppedSequences, marks, sequences, views };
    this.#changeTable(table, changed, others);
    return `Table ${nameOf(changed)} altered to schema version ${changed.schemaVersion}`;
  }

  /**
   * Checks existing rows against foreign keys that are in force, and marks the keys as validated.
   * If a row violates a foreign key that this statement has added, the key is dropped again.
   */
  async #validate(
    { table: before, validations }: PlannedAlteration,
    pause: () => Promise<void>,
  ): Promise<void> {
    const { catalog, store } = this.#deps;
    for (const name of validations) {
      const table = catalog.tableById(before.tableId);
      const key = table?.foreignKeys?.find((each) => each.name === name);
      const parent = key && catalog.tableById(key.tableId);
      if (table === undefined || key === undefined || parent === undefined) return;
      const isNew = before.foreignKeys?.some((each) => each.name === name) !== true;
      try {
        await validateReference({ key, parent, table }, store, pause);
      } catch (error) {
        if (isNew) this.#changeKey(before.tableId, name, () => undefined);
        throw error;
      }
      this.#changeKey(before.tableId, name, (each) => ({ ...each, isValidated: true }));
    }
  }

  readonly #dropReference = ({ child, key }: IncomingReference): void =>
    this.#changeKey(child.tableId, key.name, () => undefined);

  /** Changes or drops a foreign key in the table's current entry. */
  #changeKey(
    tableId: number,
    name: string,
    change: (key: ForeignKeyEntry) => ForeignKeyEntry | undefined,
  ): void {
    const table = this.#deps.catalog.tableById(tableId);
    if (table?.foreignKeys === undefined) return;
    const foreignKeys = table.foreignKeys.flatMap((key) =>
      key.name === name ? (change(key) ?? []) : [key],
    );
    const schemaVersion = table.schemaVersion + 1;
    this.#changeTable(table, { ...table, foreignKeys, schemaVersion }, {});
  }

  #changeTable(table: TableEntry, changed: TableEntry, others: Dependents): void {
    const { catalog, definitionOf, live, store, topics: topicAccess } = this.#deps;
    const seq = store.issueSeq();
    const topics = topicsWith(catalog, { before: table, after: changed }, seq);
    catalog.changeTable(inForceSince(changed, seq), seq, { ...others, topics });
    store.defineTable(definitionOf(changed));
    live().tableChanged(changed.tableId);
    if (topics.length > 0) topicAccess().topicsChanged();
  }

  /** Rows that have expired under the old TTL must not reappear under a longer one. */
  #withoutExpired(table: TableEntry, altered: TableEntry): TableEntry {
    const { ttlSeconds } = table.options;
    if (ttlSeconds === undefined || altered.options.ttlSeconds === ttlSeconds) return altered;
    return { ...altered, expiredSeq: this.#deps.store.expiredSeq(table.tableId) };
  }

  /**
   * Returns the views to drop together with the dropped columns. @throws {DatabaseError}
   * DEPENDENT_OBJECTS
   */
  #viewsWithout(
    table: TableEntry,
    changed: TableEntry,
    node: AlterTableStatement,
  ): readonly ViewEntry[] {
    const { catalog } = this.#deps;
    const { tableId } = table;
    const views = new Map<number, ViewEntry>();
    for (const change of node.changes) {
      if (change.type !== "drop column") continue;
      const { name, _location } = change.column;
      const column = table.columns.find((each) => each.name === name);
      if (column === undefined || changed.columns.some((c) => c.columnId === column.columnId)) {
        continue;
      }
      // CASCADE also drops the columns that are computed from the dropped column.
      const gone = table.columns.filter(
        (each) => each === column || !changed.columns.some((c) => c.columnId === each.columnId),
      );
      const columnIds = new Set(
        (change.behaviour === "cascade" ? gone : [column]).map(({ columnId }) => columnId),
      );
      const dependents = dependentsOf(catalog, { columns: { tableId, columnIds } });
      if (change.behaviour !== "cascade") {
        refuseDependents(`drop column "${name}"`, dependents, _location.start);
      }
      for (const view of dependents) views.set(view.viewId, view);
    }
    return [...views.values()];
  }

  /**
   * Returns the tables that a statement drops, and everything that is dropped with them. @throws
   * {DatabaseError}
   */
  #droppedBy(node: DropTableStatement, principal: Principal, namespace: string): DroppedTables {
    const { catalog, systemViews } = this.#deps;
    // A statement may name a table twice, but it is dropped only once.
    const tables = new Map<number, TableEntry>();
    const missing: string[] = [];
    const { ifExists } = node;
    for (const name of node.names) {
      const place = { namespace, principal, action: "drop", ifExists };
      systemViews.refuse(name, place);
      const named = { namespace: name.schema ?? namespace, name: name.name };
      const table = visibleTable(catalog, named, principal);
      const isView = visibleView(this.#deps, named, principal) !== undefined;
      if (table === undefined && ifExists === true && !isView) {
        missing.push(shown(name, namespace));
        continue;
      }
      const found = table ?? findTable(this.#deps, name, { namespace, node: name, principal });
      requireDrop(principal, found, { namespace: catalog.namespace(found.namespace) });
      requireKind(node.kind, found, node);
      tables.set(found.tableId, found);
    }
    const dependents = dependentsOf(catalog, { tableIds: new Set(tables.keys()) });
    const dropped = [...tables.values()].map((each) => `${each.namespace}.${each.name}`);
    if (node.cascade !== "cascade") {
      refuseDependents(`drop table ${dropped.join(", ")}`, dependents, node._location.start);
    }
    const ids = new Set(tables.keys());
    const sequences = [...ids].flatMap((tableId) => sequencesOf(catalog, tableId));
    const numbered = columnsTakingFrom(catalog, sequences, ids);
    if (node.cascade !== "cascade") {
      refuseNumbered(`drop table ${dropped.join(", ")}`, numbered, node._location.start);
    }
    const referring = [...ids].flatMap((tableId) =>
      referencesTo(catalog, tableId).filter(({ child }) => !ids.has(child.tableId)),
    );
    if (node.cascade !== "cascade") {
      refuseReferring(`drop table ${dropped.join(", ")}`, referring, node._location.start);
    }
    const message = droppedMessage("table", { dropped, missing });
    return { tables: [...tables.values()], views: dependents, numbered, referring, message };
  }

  /** @param droppedNow Binds the statement in the tick in which it is called. */
  async #dropTables(droppedNow: () => DroppedTables): Promise<string> {
    const held = new HeldOffsets(this.#deps);
    const removals: Promise<void>[] = [];
    let message: string | undefined;
    try {
      while (message === undefined) {
        const { numbered, referring, tables, views, ...dropped } = droppedNow();
        const unheld = tables.find(({ tableId }) => !held.holds(tableId));
        if (unheld !== undefined) {
          await held.hold(unheld.tableId);
          continue;
        }
        dropDefaults(this.#deps.catalog, numbered, (table, changed) =>
          this.#changeTable(table, changed, {}),
        );
        for (const each of referring) this.#dropReference(each);
        for (const [index, table] of tables.entries()) {
          removals.push(this.#drop(table, index === 0 ? views : []));
        }
        message = dropped.message;
      }
    } finally {
      held.release();
    }
    await Promise.all(removals);
    return message;
  }

  /** Drops a table as part of dropping its namespace, unless the table no longer exists. */
  async #dropWithin(namespace: string, tableId: number): Promise<void> {
    const { catalog } = this.#deps;
    const held = new HeldOffsets(this.#deps);
    let removal: Promise<void> | undefined;
    try {
      await held.hold(tableId);
      const table = catalog.tableById(tableId);
      if (table?.namespace !== namespace) return;
      const numbered = columnsTakingFrom(
        catalog,
        sequencesOf(catalog, tableId),
        new Set([tableId]),
      );
      dropDefaults(catalog, numbered, (each, changed) => this.#changeTable(each, changed, {}));
      for (const { child, key } of referencesTo(catalog, tableId)) {
        if (child.tableId !== tableId) this.#changeKey(child.tableId, key.name, () => undefined);
      }
      removal = this.#drop(table, dependentsOf(catalog, { tableIds: new Set([tableId]) }));
    } finally {
      held.release();
    }
    await removal;
  }

  /**
   * Drops a table in this tick. Resolves once the table's files have been removed, or their removal
   * has been left to a later job.
   * @throws {DatabaseError}
   */
  #drop({ tableId }: TableEntry, views: readonly ViewEntry[]): Promise<void> {
    const { catalog, live, store, topics: topicAccess } = this.#deps;
    const seq = store.issueSeq();
    const topics = topicsWithout(catalog, tableId, seq);
    const droppedSequences = sequencesOf(catalog, tableId);
    catalog.dropTable(tableId, seq, { views, topics, droppedSequences });
    store.dropTable(tableId);
    live().tableChanged(tableId);
    if (topics.length > 0) topicAccess().topicsChanged();
    return this.#removeFiles(tableId);
  }

  /**
   * Removes the files of a dropped table until the statement is killed. A kill is not a failure,
   * because the table has already been dropped.
   */
  async #removeFiles(tableId: number): Promise<void> {
    const { log } = this.#deps;
    const isEnded = (): boolean => this.#ledger.cancelledBy !== undefined;
    try {
      await removeDroppedFiles(tableId, this.#deps, isEnded);
    } catch (error) {
      // Safe: no statement can reach the files any longer, and an hourly job tries again to remove
      // them.
      if (!isExpected(error)) throw error;
      log.warn("cannot remove the files of a dropped table", { error: error.message });
    }
  }
}

function shown(name: QName, namespace: string): string {
  return `${name.schema ?? namespace}.${name.name}`;
}

/**
 * Requires that the object has the kind that ALTER or DROP names. @throws {DatabaseError}
 * INVALID_OPERATION
 */
function requireKind(kind: string | undefined, table: TableEntry, node: Statement): void {
  if (kind === undefined || kind === table.kind) return;
  throw new DatabaseError(
    "INVALID_OPERATION",
    `Cannot use ${table.namespace}.${table.name} as a ${kind.toUpperCase()} table: it is ${table.kind.toUpperCase()}`,
    { position: node._location.start },
  );
}

/** Returns the response to a definition whose object already exists. @throws Any other error. */
function passedOver(error: unknown): string {
  if (!(error instanceof DatabaseError) || error.code !== "ALREADY_EXISTS") throw error;
  return `Nothing done: ${error.message}`;
}
