/**
 * Defines partitions: CREATE TABLE … PARTITION OF, and the catalog changes of ATTACH, DETACH and
 * DROP. `sql/request/partition_changes.ts` moves and deletes the rows in the same transaction.
 *
 * The rights to a partition are the rights to its table: a user who may alter the table may define
 * its partitions.
 */
import { requireAlter, requireCreateTable, requireDrop } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { FIRST_SLICE_MS_MAX } from "../../base/limits.ts";
import { pauser } from "../../base/pauser.ts";
import { SEQ_ZERO } from "../../base/seq.ts";
import {
  checkObjectName,
  type PartitionEntry,
  type Partitioning,
  type PartitionViewEntry,
  type TableEntry,
} from "../../catalog/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { checkDeadline } from "../execute/context/request_ledger.ts";
import { partitionNamed } from "../names/named_partitions.ts";
import { keyTypesOf, partitionsOf, rowsCondition, withParts } from "../names/partitions.ts";
import { findTable, requireHolder } from "../names/table_names.ts";
import { refuseTopicName } from "../names/topics.ts";
import type { CreateTableStatement, PartitionOf, QName } from "../parse/ast/ast.ts";
import { definitionContext } from "./alter_table.ts";
import { Altering } from "./altering.ts";
import { finishIndexes } from "./index_definitions.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { isRelation } from "./numbered_columns.ts";
import { PartitionChange } from "./partition_alteration.ts";
import {
  boundOf,
  type PartitionPlace,
  partitioningOf,
  requireNoOverlap,
} from "./partition_bounds.ts";
import { requireInherited, requireKeysInUnique } from "./partition_keys.ts";
import { redefineTable } from "./redefined_table.ts";
import { holdsRows, RowInspection } from "./row_inspection.ts";
import { qualifiedName, type TableCall, type TableDeps } from "./table_statement.ts";

/** A partitioned table or partition that a statement names. */
interface NamedPartitioned {
  readonly table: TableEntry;
  /** The partition that the statement names; undefined if it names the table itself. */
  readonly partition: PartitionViewEntry | undefined;
  readonly partitioning: Partitioning;
}

/**
 * Finds a partitioned table or partition by name.
 * @throws {DatabaseError}
 */
export function partitionedNamed(
  name: QName,
  call: Pick<TableCall, "namespace" | "principal">,
  deps: Pick<TableDeps, "catalog" | "systemViews">,
): NamedPartitioned {
  const partition = partitionNamed(name, call, deps);
  const table =
    partition?.table ??
    findTable(deps, name, { namespace: call.namespace, node: name, principal: call.principal });
  const partitioning =
    partition === undefined ? table.partitioned : partition.entry.partition.partitioned;
  if (partitioning !== undefined) return { table, partition: partition?.entry, partitioning };
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot use ${qualifiedName(name, call.namespace)} as a partitioned table: it was created ` +
      "without PARTITION BY",
    {
      position: name._location.start,
      hint: "create the table with PARTITION BY RANGE, LIST or HASH",
    },
  );
}

/**
 * Requires that a table can be partitioned.
 * @throws {DatabaseError}
 */
export function partitionedTable(
  table: TableEntry,
  {
    columns,
    constraints = [],
    partitionBy,
  }: Pick<CreateTableStatement, "columns" | "constraints" | "partitionBy">,
): TableEntry {
  if (partitionBy === undefined) return table;
  const position = partitionBy._location.start;
  const written = [...columns.flatMap((column) => column.constraints ?? []), ...constraints];
  for (const constraint of written) requireInherited(table, constraint);
  if (table.kind !== "shared" || table.options.ttlSeconds !== undefined) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot partition ${nameOf(table)}: only SHARED tables can have partitions`,
      {
        position,
        hint:
          table.kind === "user"
            ? "the rows of a USER table are already separated by user"
            : "the rows of a STREAM table are deleted by age; see TTL_SECONDS",
      },
    );
  }
  const partitioning = partitioningOf(partitionBy, table);
  requireKeysInUnique(table, [partitioning], position);
  return { ...table, partitioned: { ...partitioning, accepts: "FALSE" } };
}

/** A planned partition, and the DEFAULT partition whose rows have to be checked. */
interface PlannedPartition {
  readonly table: TableEntry;
  readonly partition: PartitionEntry;
  /**
   * The name of the DEFAULT partition, which must not contain rows that belong to the new
   * partition; undefined if there is none.
   */
  readonly inspected: string | undefined;
}

/** A partition to be added by CREATE or ATTACH. */
export interface NewPartition extends Pick<PartitionOf, "bounds"> {
  readonly parent: QName;
  readonly partitionBy?: CreateTableStatement["partitionBy"];
  readonly columnIds?: readonly number[];
  /** The partitioning of an attached table. */
  readonly partitioned?: Partitioning | undefined;
}

/** The elements that a new partition has in addition to its table. */
export interface PartitionOwn {
  /** Adds it to the definition of the table. @throws {DatabaseError} */
  readonly addTo: (table: TableEntry, change: PartitionChange) => TableEntry;
  /** Returns the partitions that a new partition brings along. */
  readonly parts?: (viewId: number) => readonly PartitionViewEntry[];
}

/**
 * Binds CREATE TABLE … PARTITION OF against the current catalog.
 * @throws {DatabaseError}
 */
export function createPartition(
  node: CreateTableStatement,
  of: PartitionOf,
  { call, deps }: { readonly call: TableCall; readonly deps: TableDeps },
): BoundDefinition {
  const { catalog } = deps;
  const { name } = node.name;
  const namespace = node.name.schema ?? call.namespace;
  const position = node.name._location.start;
  requireHolder(catalog, namespace, node.name);
  requireCreateTable(call.principal, `${namespace}.${name}`, {
    namespace: catalog.namespace(namespace),
  });
  checkObjectName("table", name, { position });
  refuseTopicName(catalog, "table", { namespace, name, position });
  if (isRelation(catalog, namespace, name)) {
    if (node.ifNotExists === true) return () => `Table ${namespace}.${name} already exists`;
    throw new DatabaseError(
      "ALREADY_EXISTS",
      `Cannot create table ${namespace}.${name}: it already exists`,
      { position },
    );
  }
  if (node.options !== undefined || node.kind !== undefined) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot create partition ${namespace}.${name} with a kind or options: a partition ` +
        "always has the kind and the options of its table",
      { position, hint: "define the kind and the options on the partitioned table" },
    );
  }
  const added = { parent: of.parent, bounds: of.bounds, partitionBy: node.partitionBy };
  const plan = (): PlannedPartition => plannedPartition(added, call, deps);
  plan();
  return async () => {
    const own = {
      addTo: (table: TableEntry, change: PartitionChange): TableEntry =>
        change.withElements(table, of.columns ?? [], node.constraints ?? []),
    };
    await addPartition(plan, { namespace, name }, { call, deps, own });
    return `Table ${namespace}.${name} created`;
  };
}

/**
 * Plans a new partition against the current catalog.
 * @throws {DatabaseError}
 */
export function plannedPartition(
  { bounds, columnIds, parent, partitionBy, partitioned: given }: NewPartition,
  call: TableCall,
  deps: TableDeps,
): PlannedPartition {
  const { catalog } = deps;
  const { partition, partitioning, table } = partitionedNamed(parent, call, deps);
  requireAlter(call.principal, table, { namespace: catalog.namespace(table.namespace) });
  const all = partitionsOf(catalog, table.tableId);
  const place: PartitionPlace = {
    table,
    partitioning,
    types: keyTypesOf(table, partitioning),
    siblings: all.filter((each) => each.partition.parentId === partition?.viewId),
    context: definitionContext(deps),
  };
  const bound = boundOf(bounds, place);
  requireNoOverlap(bound, place, bounds);
  const partitioned = partitionBy === undefined ? given : partitioningOf(partitionBy, table);
  if (partitioned !== undefined) {
    const position = (partitionBy ?? bounds)._location.start;
    requireKeysInUnique(table, [partitioned], position);
  }
  const rest = place.siblings.find((each) => each.partition.bound.kind === "default");
  return {
    table,
    inspected: rest && `${rest.namespace}.${rest.name}`,
    partition: {
      tableId: table.tableId,
      ...(partition === undefined ? {} : { parentId: partition.viewId }),
      bound,
      ...(partitioned === undefined ? {} : { partitioned }),
      ...(columnIds === undefined ? {} : { columnIds }),
    },
  };
}

/**
 * Adds a partition once it is certain that no row of the DEFAULT partition belongs to the new
 * partition. The partition is planned again after each wait.
 */
export async function addPartition(
  planned: () => PlannedPartition,
  place: { readonly namespace: string; readonly name: string },
  {
    call,
    deps,
    own,
  }: { readonly call: TableCall; readonly deps: TableDeps; readonly own?: PartitionOwn },
): Promise<void> {
  const { catalog, clock, live, store } = deps;
  const pause = pauser(clock, {
    check: () => checkDeadline(call.ledger, clock),
    firstSliceMs: FIRST_SLICE_MS_MAX,
  });
  store.requireFreeSpace();
  let seen: { readonly table: TableEntry; readonly upTo: typeof SEQ_ZERO } | undefined;
  for (;;) {
    const at = planned();
    const nowMs = clock.nowMs();
    const entry: PartitionViewEntry = {
      ...place,
      viewId: catalog.nextTableId(),
      sql: "",
      searchNamespace: place.namespace,
      columnNames: [],
      tables: [],
      views: [],
      checkOption: "cascaded",
      createdBy: call.principal.userId,
      createdAtMs: nowMs,
      updatedAtMs: nowMs,
      changedSeq: store.issueSeq(),
      partition: at.partition,
    };
    const upTo = store.appliedSeq;
    const inspection = inspectionOf(at, entry, deps);
    if (inspection !== undefined && seen?.table !== at.table) {
      await unwanted(at, () => inspection.inspect({ after: SEQ_ZERO, upTo }, pause));
      seen = { table: at.table, upTo };
      continue;
    }
    if (inspection !== undefined && seen !== undefined) {
      const after = seen.upTo;
      await unwanted(at, () => inspection.inspectNow({ after, upTo }));
    }
    const { table } = at;
    const parts = own?.parts?.(entry.viewId) ?? [];
    const partitions = [...partitionsOf(catalog, table.tableId), entry, ...parts];
    const altering = new Altering(table, { ...call, deps });
    const whole = own?.addTo(table, new PartitionChange(entry, partitions, altering)) ?? table;
    const after = { ...whole, schemaVersion: table.schemaVersion + 1, updatedAtMs: nowMs };
    redefineTable(deps, { before: table, after }, { changedViews: [entry, ...parts] });
    live().viewChanged();
    const known = new Set(table.indexes?.map(({ indexId }) => indexId));
    const made = (after.indexes ?? []).filter(({ indexId }) => !known.has(indexId));
    const { ledger, principal } = call;
    await finishIndexes(deps, table.tableId, { made, ledger, createdBy: principal.userId });
    return;
  }
}

/** Returns a check that no row of the DEFAULT partition belongs to the new partition. */
function inspectionOf(
  { inspected, table }: PlannedPartition,
  entry: PartitionViewEntry,
  deps: TableDeps,
): RowInspection | undefined {
  if (inspected === undefined) return undefined;
  const all = [...partitionsOf(deps.catalog, table.tableId), entry];
  const name = "partition";
  const sql = `NOT (${rowsCondition(table, all, entry)})`;
  return new RowInspection({
    table,
    next: { ...table, checks: [{ name, sql }] },
    demands: [{ kind: "check", name, position: 0 }],
    context: definitionContext(deps),
    store: deps.store,
  });
}

/** Returns the error for a row of the DEFAULT partition that belongs to the new partition. */
async function unwanted(
  { inspected, table }: PlannedPartition,
  inspect: () => void | Promise<void>,
): Promise<void> {
  try {
    await inspect();
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.code !== "CHECK_VIOLATION") throw error;
    throw new DatabaseError(
      "CHECK_VIOLATION",
      `Cannot add a partition to ${nameOf(table)}: the DEFAULT partition ${inspected} contains ` +
        "a row that belongs in the new partition",
      { hint: "delete these rows first, or detach the DEFAULT partition" },
    );
  }
}

/**
 * Returns the partitions that DROP TABLE removes together with a partition. Checks the caller's
 * rights first.
 *
 * @throws {DatabaseError} PERMISSION_DENIED
 */
export function droppedWith(
  { entry, table }: { readonly entry: PartitionViewEntry; readonly table: TableEntry },
  { principal }: Pick<TableCall, "principal">,
  { catalog }: Pick<TableDeps, "catalog">,
): readonly PartitionViewEntry[] {
  requireDrop(principal, table, { namespace: catalog.namespace(table.namespace) });
  return withParts(catalog, entry);
}

/**
 * Removes partitions of a table. Their rows must already have been deleted, because no partition
 * would accept them any longer.
 */
export function removePartitions(
  deps: TableDeps,
  tableId: number,
  views: readonly PartitionViewEntry[],
): void {
  const before = deps.catalog.tableById(tableId);
  if (before === undefined) return;
  // A transaction that has deleted the rows of a partition must not commit if another transaction
  // has written new rows to the partition.
  holdsRows(deps.store, tableId);
  const schemaVersion = before.schemaVersion + 1;
  const after = { ...before, schemaVersion, updatedAtMs: deps.clock.nowMs() };
  redefineTable(deps, { before, after }, { views });
  deps.live().viewChanged();
}
