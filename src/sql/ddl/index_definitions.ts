/**
 * Implements CREATE INDEX, ALTER INDEX and DROP INDEX, and the work that completes a new index.
 *
 *     building ──all rows are in it──► checking (only if unique) ──no duplicate──► ready
 *         └────────────────── failed or killed ──────────────────────┴──► dropped
 *
 * Other statements can write while an index is being built. The statement returns once the index
 * is ready or dropped. If the server stops, the index keeps its state, and the build continues
 * after the next startup.
 *
 * A unique index that a transaction has committed must not be dropped because of a duplicate. No
 * statement can write to its table until the index is ready, not even after a restart.
 */
import { mayRead, type Principal, requireAlter, requireReach, requireRun } from "../../auth/mod.ts";
import { DatabaseError, isExpected } from "../../base/errors.ts";
import { pauser } from "../../base/pauser.ts";
import { repeatedly } from "../../base/repeatedly.ts";
import { SEQ_ZERO } from "../../base/seq.ts";
import {
  type Catalog,
  checkObjectName,
  type IndexEntry,
  KEY_INDEX_ID,
  keyNameOf,
  type PartitionIndex,
  refusesRows,
  type TableEntry,
} from "../../catalog/mod.ts";
import { type Job, type JobEnd, runJob } from "../../storage/mod.ts";
import { isLooselyEqual, TEXT } from "../../types/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { typeWithCollation } from "../bind/expression/collation_names.ts";
import type { RequestLedger } from "../execute/context/request_ledger.ts";
import { partitionNamed } from "../names/named_partitions.ts";
import { partitionsOf } from "../names/partitions.ts";
import { findTable, requireHolder } from "../names/table_names.ts";
import type {
  AlterIndexStatement,
  CreateIndexStatement,
  DropIndexStatement,
  IndexedColumn,
  Name,
  QName,
} from "../parse/ast/ast.ts";
import type { SqlEnvironment } from "../ports/environment.ts";
import type { BindingDeps } from "../prepare/binding_deps.ts";
import { droppedMessage } from "./dropped_message.ts";
import { referencesLosing, refuseReferring } from "./foreign_keys.ts";
import {
  firstStateOf,
  indexNamed,
  partitionIndexNamed,
  takenNames,
  type WrittenIndex,
  withIndex,
} from "./index_elements.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import {
  withAlikeAttached,
  withAttached,
  withoutPartitionIndex,
  withoutTableIndex,
  withPartitionIndex,
} from "./partition_indexes.ts";
import { partitioningsOf, requireKeysInUnique } from "./partition_keys.ts";
import { dropForeignKey, type RedefinitionDeps } from "./redefined_table.ts";
import { RowInspection } from "./row_inspection.ts";

/**
 * The interval, in milliseconds, at which an index build checks whether its request was killed.
 */
const KILL_LOOK_MS = 200;

export interface IndexDeps
  extends Pick<SqlEnvironment, "catalog" | "clock" | "definitionOf" | "jobs" | "log" | "store"> {}

/** The request that creates or drops an index. */
export interface IndexCall {
  readonly principal: Principal;
  /** The namespace in which index statements look up unqualified names. */
  readonly namespace: string;
  readonly ledger: RequestLedger;
}

/**
 * Checks the rights for ALTER INDEX and DROP INDEX, before any part of the request runs.
 *
 * @throws {DatabaseError}
 */
export function authorizeIndexes(
  node: AlterIndexStatement | DropIndexStatement,
  { namespace, principal }: Omit<IndexCall, "ledger">,
  catalog: Catalog,
): void {
  for (const name of node.type === "drop index" ? node.names : [node.name]) {
    const place = { namespace: name.schema ?? namespace, name: name.name };
    const holder = catalog.namespace(place.namespace);
    const table = visibleIndex(catalog, place, principal)?.table;
    if (table !== undefined) requireAlter(principal, table, { namespace: holder });
    // The index may not exist yet, because an earlier statement in the request may create it.
    else {
      requireRun(principal, "defineTable", {
        action: `run ${node.type.toUpperCase()}`,
        position: name._location.start,
        ...(holder === undefined ? {} : { namespace: holder }),
      });
    }
  }
}

/**
 * Binds CREATE INDEX against the current state of the catalog.
 * @throws {DatabaseError}
 */
export function createIndex(
  node: CreateIndexStatement,
  { ledger, namespace, principal }: IndexCall,
  deps: IndexDeps & BindingDeps,
): BoundDefinition {
  const { catalog, store, systemViews } = deps;
  const { name, table: named } = node;
  systemViews.refuse(named, { namespace, principal, action: "index", ifExists: undefined });
  const place = { namespace: named.schema ?? namespace, name: name?.name ?? "" };
  const isThere = (): boolean =>
    node.ifNotExists === true &&
    name !== undefined &&
    (indexNamed(catalog, place) ?? partitionIndexNamed(catalog, place)) !== undefined;
  const planned = (): PlannedIndex => {
    const found = partitionNamed(named, { namespace, principal }, deps);
    const table = found?.table ?? findTable(deps, named, { namespace, node: named, principal });
    requireAlter(principal, table, { namespace: catalog.namespace(table.namespace) });
    const written = writtenIndex(node, table);
    const state = firstStateOf(store, table.tableId);
    if (found !== undefined) {
      const partitions = partitionsOf(catalog, table.tableId);
      const about = { catalog, partition: found.entry, partitions, state };
      const next = withPartitionIndex(table, written, about);
      return { table, next, created: next.partitionIndexes?.at(-1) };
    }
    const next = withIndex(table, written, { catalog, state });
    requireKeysInUnique(next, partitioningsOf(next, catalog), node._location.start);
    return { table, next, created: next.indexes?.at(-1) };
  };
  const already = (): string => `Index ${place.namespace}.${place.name} already exists`;
  if (isThere()) return already;
  planned();
  return async () => {
    if (isThere()) return already();
    store.requireFreeSpace();
    const { created, next, table } = planned();
    changeTable(deps, next);
    const made = (next.indexes ?? []).slice(table.indexes?.length ?? 0);
    await finishIndexes(deps, next.tableId, { made, ledger, createdBy: principal.userId });
    if (node.only !== true && created !== undefined) attachAlike(deps, next.tableId, created);
    return `Index ${place.namespace}.${created?.name} created`;
  };
}

/** A table with a new index, of the table itself or of one of its partitions. */
interface PlannedIndex {
  readonly table: TableEntry;
  readonly next: TableEntry;
  readonly created: IndexEntry | PartitionIndex | undefined;
}

/** @throws {DatabaseError} for a collation that the index cannot have */
function writtenIndex(node: CreateIndexStatement, table: TableEntry): WrittenIndex {
  const columns = node.columns.map(({ part }) => part);
  for (const column of node.columns) checkCollation(table, column);
  const { equalNulls, included, isUnique, method, name, where } = node;
  const classes =
    method === undefined ? undefined : node.columns.map(({ operatorClass }) => operatorClass);
  const keys = { columns, classes, included, isUnique, equalNulls, isConstraint: false };
  return { ...keys, where, name, position: node._location.start };
}

/**
 * Attaches the indexes of partitions that have the same definition as a new index of their parent.
 */
export function attachAlike(
  deps: IndexDeps,
  tableId: number,
  created: IndexEntry | PartitionIndex,
): void {
  const table = deps.catalog.tableById(tableId);
  if (table === undefined) return;
  const viewId = "viewId" in created ? created.viewId : undefined;
  const next = withAlikeAttached(table, { indexId: created.indexId, viewId }, deps.catalog);
  if (next !== table) changeTable(deps, next);
}

/**
 * Binds DROP INDEX against the current catalog.
 * @throws {DatabaseError}
 */
export function dropIndexes(
  node: DropIndexStatement,
  { namespace, principal }: Omit<IndexCall, "ledger">,
  deps: IndexDeps & BindingDeps & RedefinitionDeps,
): BoundDefinition {
  const { catalog } = deps;
  const withoutNamed = (table: TableEntry): TableEntry => {
    const isNamed = ({ name }: IndexEntry): boolean =>
      node.names.some(
        (each) => each.name === name && (each.schema ?? namespace) === table.namespace,
      );
    return { ...table, indexes: (table.indexes ?? []).filter((index) => !isNamed(index)) };
  };
  const found = (name: QName): IndexPlace | undefined => {
    const at = foundIndex(name, { ifExists: node.ifExists, namespace, principal }, catalog);
    if (at === undefined) return undefined;
    const position = name._location.start;
    const action = `drop index ${name.schema ?? namespace}.${name.name}`;
    const isConstraint = at.partIndex?.isConstraint ?? at.index?.isConstraint;
    if (isConstraint === true) {
      const owner = pathOf(at, catalog);
      throw new DatabaseError(
        "DEPENDENT_OBJECTS",
        `Cannot ${action}: it belongs to a constraint of ${owner}; drop the constraint`,
        { position, hint: `use ALTER TABLE ${owner} DROP CONSTRAINT ${name.name}` },
      );
    }
    without(at, name);
    const losing = referencesLosing(withoutNamed(at.table), catalog);
    const children = losing.map(({ child }) => child);
    requireReach(principal, children, { action, position });
    if (node.cascade !== "cascade") refuseReferring(action, losing, position);
    return at;
  };
  const without = ({ index, partIndex, table }: IndexPlace, name: QName): TableEntry => {
    const action = `drop index ${name.schema ?? namespace}.${name.name}`;
    const about = { action, catalog, position: name._location.start };
    if (partIndex !== undefined) return withoutPartitionIndex(table, partIndex, about);
    return index === undefined ? table : withoutTableIndex(table, index, about);
  };
  for (const name of node.names) found(name);
  return () => {
    const dropped: string[] = [];
    const missing: string[] = [];
    // All names in DROP INDEX are looked up before the first index is dropped.
    for (const name of node.names) found(name);
    for (const name of node.names) {
      const shown = `${name.schema ?? namespace}.${name.name}`;
      const at = found(name);
      if (at === undefined) missing.push(shown);
      else {
        for (const each of referencesLosing(without(at, name), catalog)) {
          dropForeignKey(deps, each);
        }
        const table = catalog.tableById(at.table.tableId) ?? at.table;
        changeTable(deps, without({ ...at, table }, name));
        dropped.push(shown);
      }
    }
    return droppedMessage("index", { dropped, missing });
  };
}

/** Returns the path of the table or partition that has an index. */
function pathOf({ partIndex, table }: IndexPlace, catalog: Catalog): string {
  const { name, namespace } = (partIndex && catalog.viewById(partIndex.viewId)) ?? table;
  return `${namespace}.${name}`;
}

/** An index of a table or of one of its partitions. Exactly one of the two is defined. */
interface IndexPlace {
  readonly table: TableEntry;
  readonly index?: IndexEntry | undefined;
  readonly partIndex?: PartitionIndex | undefined;
}

/**
 * Finds an index by name. Returns undefined if the index does not exist or if the caller may not
 * read its table.
 */
function visibleIndex(
  catalog: Catalog,
  place: Parameters<typeof indexNamed>[1],
  principal: Principal,
): IndexPlace | undefined {
  const at = indexNamed(catalog, place) ?? partitionIndexNamed(catalog, place);
  return at !== undefined && isVisible(at.table, catalog, principal) ? at : undefined;
}

function isVisible(table: TableEntry, catalog: Catalog, principal: Principal): boolean {
  return mayRead(principal, table, catalog.namespace(table.namespace));
}

/**
 * Returns an index that the caller may alter; undefined if the index does not exist and the
 * statement has IF EXISTS.
 *
 * @throws {DatabaseError} OBJECT_NOT_FOUND, NAMESPACE_NOT_FOUND, PERMISSION_DENIED
 */
function foundIndex(
  name: QName,
  {
    ifExists,
    namespace,
    principal,
  }: Omit<IndexCall, "ledger"> & { readonly ifExists: true | undefined },
  catalog: Catalog,
): IndexPlace | undefined {
  const place = { namespace: name.schema ?? namespace, name: name.name };
  const at = visibleIndex(catalog, place, principal);
  if (at !== undefined) {
    requireAlter(principal, at.table, { namespace: catalog.namespace(at.table.namespace) });
    return at;
  }
  if (ifExists === true) return undefined;
  requireHolder(catalog, place.namespace, name);
  throw new DatabaseError(
    "OBJECT_NOT_FOUND",
    `Cannot find index ${place.namespace}.${place.name}`,
    {
      position: name._location.start,
      hint: "to list the indexes, run SELECT * FROM system.indexes",
    },
  );
}

/**
 * Binds ALTER INDEX against the current catalog.
 * @throws {DatabaseError}
 */
export function alterIndex(
  node: AlterIndexStatement,
  call: Omit<IndexCall, "ledger">,
  deps: IndexDeps & BindingDeps,
): BoundDefinition {
  const { change, ifExists, name } = node;
  const { namespace, principal } = call;
  const { catalog } = deps;
  const shown = `${name.schema ?? namespace}.${name.name}`;
  const named = tableOfKey(catalog, { namespace: name.schema ?? namespace, name: name.name });
  const keyed = named !== undefined && isVisible(named, catalog, principal) ? named : undefined;
  if (keyed !== undefined) {
    requireAlter(principal, keyed, { namespace: catalog.namespace(keyed.namespace) });
  }
  const at: IndexPlace | undefined =
    keyed === undefined
      ? foundIndex(name, { ifExists, namespace, principal }, catalog)
      : { table: keyed };
  if (at === undefined) return () => `Index ${shown} does not exist`;
  if (change.type === "rename") return renamedIndex(at, { shown, to: change.to }, deps);
  const position = change.partition._location.start;
  const { name: childName, schema = namespace } = change.partition;
  const attachedNow = (): TableEntry => {
    const child = foundIndex(
      change.partition,
      { ifExists: undefined, namespace, principal },
      catalog,
    );
    const parent = {
      name: at.index?.name ?? at.partIndex?.name ?? keyNameOf(at.table) ?? "",
      indexId: at.index?.indexId ?? at.partIndex?.indexId ?? KEY_INDEX_ID,
      viewId: at.partIndex?.viewId,
    };
    if (child?.partIndex !== undefined && child.table.tableId === at.table.tableId) {
      return withAttached(child.table, { child: child.partIndex, parent, position }, catalog);
    }
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot attach index "${childName}" to index "${parent.name}": it is not an index of a ` +
        "partition of the same table",
      { position },
    );
  };
  attachedNow();
  return () => {
    changeTable(deps, attachedNow());
    return `Index ${schema}.${childName} attached to ${shown}`;
  };
}

/**
 * Renames an index. If the index belongs to a primary key or a UNIQUE constraint, the constraint is
 * renamed as well, as in PostgreSQL.
 *
 * @throws {DatabaseError}
 */
function renamedIndex(
  { index, partIndex, table }: IndexPlace,
  { shown, to }: { readonly shown: string; readonly to: Name },
  deps: IndexDeps,
): BoundDefinition {
  const position = to._location.start;
  checkObjectName("index", to.name, { position });
  const namespace = partIndex?.namespace ?? table.namespace;
  if (takenNames({ ...table, namespace }, deps.catalog)(to.name)) {
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot rename index ${shown} to "${to.name}": the namespace already has an index, a constraint, a table or a view with this name`,
      { position },
    );
  }
  return () => {
    changeTable(deps, withRenamedIndex(table, { index, partIndex }, to.name));
    return `Index ${shown} renamed to ${to.name}`;
  };
}

/** Returns the table with a new name for one of its indexes; by default for its primary key. */
function withRenamedIndex(
  table: TableEntry,
  { index, partIndex }: Omit<IndexPlace, "table">,
  name: string,
): TableEntry {
  const { indexes = [], partitionIndexes = [] } = table;
  if (partIndex !== undefined) {
    const at = partitionIndexes.indexOf(partIndex);
    return { ...table, partitionIndexes: partitionIndexes.with(at, { ...partIndex, name }) };
  }
  if (index === undefined) return { ...table, keyName: name };
  return { ...table, indexes: indexes.with(indexes.indexOf(index), { ...index, name }) };
}

/** Returns the table with the primary key of the given name. */
function tableOfKey(
  catalog: Pick<Catalog, "tables">,
  { name, namespace }: { namespace: string; name: string },
): TableEntry | undefined {
  return catalog
    .tables()
    .find((table) => table.namespace === namespace && keyNameOf(table) === name);
}

/**
 * Continues index builds interrupted by a shutdown. The write gates of a table stay closed until
 * its unique indexes committed by transactions are built. This function closes them before it
 * returns, so the server must call it before accepting requests.
 */
export function resumeIndexBuilds(deps: IndexDeps & Pick<SqlEnvironment, "writeGates">): void {
  const tables = deps.catalog.tables();
  const gated = tables.filter(({ indexes = [] }) =>
    indexes.some((index) => refusesRows(index) && isCommittedIndex(index)),
  );
  const gatedIds = withReferring(
    gated.map(({ tableId }) => tableId),
    tables,
  );
  const open = deps.writeGates.closeOpen(gatedIds);
  const builds = tables.map(async (table) => {
    const unfinished = table.indexes?.filter(({ state }) => state !== "ready") ?? [];
    if (unfinished.length === 0) return;
    await resumeBuilds(deps, { table, made: unfinished.filter(isCommittedIndex) });
    // The write gates do not wait for these index builds, and if the builds fail, committed
    // indexes are not affected.
    const others = unfinished.filter((index) => !isCommittedIndex(index));
    void resumeBuilds(deps, { table, made: others });
  });
  const openLater = async (): Promise<void> => {
    await Promise.all(builds);
    if (!deps.jobs.isClosing) open();
  };
  void openLater();
}

async function resumeBuilds(
  deps: IndexDeps,
  { made, table }: { made: readonly IndexEntry[]; table: TableEntry },
): Promise<void> {
  try {
    await finishIndexes(deps, table.tableId, { made });
  } catch (error) {
    // Ignoring the error is safe: either the index was dropped and the job shows why, or the build
    // continues after the next startup.
    if (!isExpected(error)) throw error;
    if (deps.jobs.isClosing) return;
    deps.log.error("cannot build an index", { table: nameOf(table), error: error.message });
  }
}

/** Whether a transaction has committed the index before it was ready. */
export function isCommittedIndex({ isCommitted }: IndexEntry): boolean {
  return isCommitted === true;
}

/** Returns the given tables, and all tables that reference any of them through a foreign key. */
export function withReferring(
  tableIds: readonly number[],
  tables: readonly TableEntry[],
): readonly number[] {
  if (tableIds.length === 0) return [];
  const referring = tables.filter(({ foreignKeys = [] }) =>
    foreignKeys.some(({ tableId }) => tableIds.includes(tableId)),
  );
  return [...new Set([...tableIds, ...referring.map(({ tableId }) => tableId)])];
}

/** New indexes of a table, and the user who defines them. */
export interface NewIndexes {
  readonly made: readonly IndexEntry[];
  readonly ledger?: RequestLedger;
  /** The id of the user who defines the indexes; absent if the server resumes their builds. */
  readonly createdBy?: string;
}

/**
 * Builds new indexes that are not ready, one after another.
 *
 * @throws {DatabaseError} DUPLICATE_KEY, DATA_DAMAGED or CANCELLED: the indexes that are not ready
 *   are dropped. STORAGE_UNAVAILABLE if the server is stopping: the build continues after the next
 *   startup.
 */
export async function finishIndexes(
  deps: IndexDeps,
  tableId: number,
  { createdBy, ledger, made }: NewIndexes,
): Promise<void> {
  for (const [at, { indexId, name, state }] of made.entries()) {
    if (state === "ready") continue;
    const job = deps.jobs.begin({
      kind: "index",
      tableId,
      parameters: { index: name },
      ...(createdBy === undefined ? {} : { createdBy }),
    });
    const stop = repeatedly(deps.clock, KILL_LOOK_MS, () => {
      if (ledger?.cancelledBy !== undefined) job.isCancelled = true;
    });
    const end: JobEnd = await runJob<JobEnd>(job, () => build(deps, { tableId, indexId, job }));
    stop();
    if (end.status === "completed") continue;
    const isStopping =
      end.status === "skipped" && indexOf(deps, { tableId, indexId }) !== undefined;
    if (!isStopping) {
      for (const later of made.slice(at)) dropUnfinished(deps, tableId, later.indexId);
    }
    throw end.error ?? endedEarly(name, isStopping);
  }
}

function dropUnfinished(deps: IndexDeps, tableId: number, indexId: number): void {
  const table = deps.catalog.tableById(tableId);
  if (table === undefined || indexOf(deps, { tableId, indexId })?.state === "ready") return;
  const { madeNotNull } = indexOf(deps, { tableId, indexId }) ?? {};
  const without = withoutIndex(table, indexId);
  if (madeNotNull === undefined) {
    changeTable(deps, without);
    return;
  }
  const columns = table.columns.map((column) =>
    madeNotNull.includes(column.columnId) ? { ...column, notNull: false } : column,
  );
  changeTable(deps, { ...without, columns, schemaVersion: table.schemaVersion + 1 });
}

function endedEarly(name: string, isStopping: boolean): DatabaseError {
  return isStopping
    ? new DatabaseError(
        "STORAGE_UNAVAILABLE",
        `Cannot finish index "${name}" now: the server is shutting down; the build will ` +
          "continue after the next startup",
      )
    : new DatabaseError(
        "CANCELLED",
        `Cannot create index "${name}": its build was killed, or the index was dropped in the ` +
          "meantime",
      );
}

interface Built {
  readonly tableId: number;
  readonly indexId: number;
  readonly job: Job;
}

async function build(deps: IndexDeps, built: Built): Promise<JobEnd> {
  const { indexId, job, tableId } = built;
  const { store } = deps;
  job.start();
  await inspectKeys(deps, built);
  const stopped = (): JobEnd => ({
    status: job.isCancelled && !deps.jobs.isClosing ? "cancelled" : "skipped",
  });
  if (!(await store.buildIndex(tableId, indexId, job))) return stopped();
  const index = indexOf(deps, built);
  if (index === undefined) return stopped();
  if (refusesRows(index)) {
    if (index.state === "building") {
      const seq = store.issueSeq();
      setIndex(deps, tableId, { ...index, state: "checking", enforcedSeq: seq });
    }
    if (!(await store.checkIndex(tableId, indexId, job))) return stopped();
  }
  const checked = indexOf(deps, built);
  if (checked === undefined) return stopped();
  const { isCommitted: _, ...rest } = checked;
  // Only from this point on is it certain that the ranges of no two live rows overlap.
  const apart = index.isExclusion === true ? { enforcedSeq: store.issueSeq() } : {};
  setIndex(deps, tableId, { ...rest, ...apart, state: "ready" });
  return { status: "completed", message: `index ${index.name} is ready` };
}

/**
 * Evaluates the expressions of an index for all existing rows. New rows are checked when they are
 * written.
 *
 * @throws {DatabaseError} The error raised by an expression.
 */
async function inspectKeys(deps: IndexDeps, { indexId, tableId }: Built): Promise<void> {
  const { catalog, clock, store } = deps;
  const table = catalog.tableById(tableId);
  const index = table?.indexes?.find((each) => each.indexId === indexId);
  if (table === undefined || (index?.expressions ?? index?.where) === undefined) return;
  const demands = [{ kind: "index", indexId, position: 0 } as const];
  const inspection = new RowInspection({ table, next: table, demands, store });
  await inspection.inspect({ after: SEQ_ZERO, upTo: store.appliedSeq }, pauser(clock));
}

function indexOf(
  { catalog }: IndexDeps,
  { indexId, tableId }: Omit<Built, "job">,
): IndexEntry | undefined {
  return catalog.tableById(tableId)?.indexes?.find((index) => index.indexId === indexId);
}

function setIndex(deps: IndexDeps, tableId: number, changed: IndexEntry): void {
  const table = deps.catalog.tableById(tableId);
  if (table === undefined) return;
  const indexes = (table.indexes ?? []).map((index) =>
    index.indexId === changed.indexId ? changed : index,
  );
  changeTable(deps, { ...table, indexes });
}

function withoutIndex(table: TableEntry, indexId: number): TableEntry {
  const isOther = (each: { readonly indexId: number }): boolean => each.indexId !== indexId;
  const { indexes = [], partitionIndexes } = table;
  return {
    ...table,
    indexes: indexes.filter(isOther),
    ...(partitionIndexes && { partitionIndexes: partitionIndexes.filter(isOther) }),
  };
}

/** Replaces a table's list of indexes. The list is not part of the table's schema. */
function changeTable({ catalog, clock, definitionOf, store }: IndexDeps, next: TableEntry): void {
  const changed = { ...next, updatedAtMs: clock.nowMs() };
  catalog.changeTable(changed, store.issueSeq(), {});
  store.defineTable(definitionOf(changed));
}

/**
 * Checks the COLLATE clause of an index part. A deterministic collation makes no difference to an
 * index: the index only has to find equal strings, and has its own order.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE, TYPE_MISMATCH, OBJECT_NOT_FOUND
 */
function checkCollation({ columns }: TableEntry, { collation, part }: IndexedColumn): void {
  if (collation === undefined) return;
  const named = "name" in part ? columns.find(({ name }) => name === part.name) : undefined;
  const type = typeWithCollation(named?.type ?? TEXT, collation);
  if (!isLooselyEqual(type)) return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    "Cannot index text with a nondeterministic collation that differs from the column's collation",
    {
      position: collation._location.start,
      hint: "set the collation of the column with ALTER COLUMN … TYPE text COLLATE …",
    },
  );
}
