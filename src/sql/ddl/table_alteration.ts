/**
 * Executes ALTER TABLE. `alter_table.ts` computes the altered definition. This file inspects the
 * rows and puts the definition into force.
 *
 *     altered table ──rows inspected──► offsets of topics held ──► redefined, in one tick
 *            ▲                                   │
 *            └──── another request changed it ───┘
 *
 * A foreign key takes effect first, and existing rows are validated afterwards. If rows have to be
 * rewritten, `table_rewrite.ts` both inspects them and puts the definition into force.
 */
import { mayRead, type Principal, requireAlter, requireReach, requireRun } from "../../auth/mod.ts";
import { FIRST_SLICE_MS_MAX } from "../../base/limits.ts";
import { pauser } from "../../base/pauser.ts";
import { SEQ_ZERO, type Seq } from "../../base/seq.ts";
import type {
  Catalog,
  IndexEntry,
  PartitionIndex,
  TableEntry,
  ViewEntry,
} from "../../catalog/mod.ts";
import { nameOf } from "../bind/change/dml_target.ts";
import { checkDeadline } from "../execute/context/request_ledger.ts";
import { requireMaterialized } from "../names/materialized_views.ts";
import { partitionNamed } from "../names/named_partitions.ts";
import { type PlacedPolicy, withoutPolicies } from "../names/policies.ts";
import { findTable, visibleTable, visibleView } from "../names/table_names.ts";
import type {
  AlterTableStatement,
  CreateIndexStatement,
  TriggerDefinition,
} from "../parse/ast/ast.ts";
import { type Alteration, alteredTable, definitionContext } from "./alter_table.ts";
import { dropTogether } from "./drop_table.ts";
import { HeldOffsets } from "./held_offsets.ts";
import { attachAlike, finishIndexes } from "./index_definitions.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { alteredPartition, altersPartition } from "./partition_alteration.ts";
import { changeForeignKey, dropForeignKey, dropPolicy, redefineTable } from "./redefined_table.ts";
import { validateReference } from "./reference_validation.ts";
import {
  policiesWithout,
  removedColumns,
  retypedColumns,
  viewsWithout,
} from "./removed_columns.ts";
import { RowInspection } from "./row_inspection.ts";
import { viewsAfterRename } from "./table_rename.ts";
import { rewriteTable } from "./table_rewrite.ts";
import { qualifiedName, requireKind, type TableCall, type TableDeps } from "./table_statement.ts";
import { requireSourcesKept } from "./topic_sources.ts";

/** A planned ALTER TABLE. `next` is undefined if the table does not change. */
interface PlannedAlteration extends Alteration {
  readonly table: TableEntry;
  /** Views to be dropped together with columns that they read. */
  readonly views: readonly ViewEntry[];
  /**
   * The tables of materialized views to be dropped together with the columns that the views read.
   */
  readonly materialized: readonly TableEntry[];
  /** The policies of other tables to be dropped together with the columns that they read. */
  readonly policies: readonly PlacedPolicy[];
}

/** The result of an ALTER TABLE, and the new indexes that have not been built yet. */
interface Altered {
  readonly message: string;
  readonly tableId: number;
  readonly made: readonly IndexEntry[];
}

/**
 * Checks the caller's rights for ALTER TABLE, CREATE INDEX and trigger definitions, before any
 * part of the request runs.
 *
 * @throws {DatabaseError}
 */
export function authorizeAlteration(
  node: AlterTableStatement | CreateIndexStatement | TriggerDefinition,
  { namespace, principal }: { principal: Principal; namespace: string },
  catalog: Catalog,
): void {
  const { name, schema = namespace } = node.table;
  const holder = catalog.namespace(schema);
  const table = visibleTable(catalog, { namespace: schema, name }, principal);
  if (table !== undefined) {
    requireAlter(principal, table, { namespace: holder });
    return;
  }
  // The table may not exist yet, because an earlier statement in the request may create it.
  requireRun(principal, "defineTable", {
    action: `run ${node.type.toUpperCase()}`,
    position: node._location.start,
    ...(holder === undefined ? {} : { namespace: holder }),
  });
}

/**
 * Binds ALTER TABLE against the current catalog.
 * @throws {DatabaseError}
 */
export function alterTable(
  node: AlterTableStatement,
  call: TableCall,
  deps: TableDeps,
): BoundDefinition {
  const { catalog, systemViews } = deps;
  const { namespace, principal } = call;
  const { ifExists } = node;
  systemViews.refuse(node.table, { namespace, principal, action: "alter", ifExists });
  const { name, schema = namespace } = node.table;
  const place = { namespace: schema, name };
  const isThere =
    visibleTable(catalog, place, principal) !== undefined ||
    visibleView(deps, place, principal) !== undefined;
  if (ifExists === true && !isThere) {
    return () => `Table ${qualifiedName(node.table, namespace)} does not exist`;
  }
  const statement = new AlterTable(node, call, deps);
  const first = statement.plan();
  return () => statement.run(first);
}

/**
 * Plans an ALTER TABLE on behalf of another statement, against the current catalog.
 *
 * @throws {DatabaseError}
 */
export function planAlteration(
  node: AlterTableStatement,
  call: TableCall,
  deps: TableDeps,
): PlannedAlteration & { readonly run: () => Promise<string> } {
  const statement = new AlterTable(node, call, deps);
  const plan = statement.plan();
  return { ...plan, run: () => statement.run(plan) };
}

class AlterTable {
  readonly #node: AlterTableStatement;
  readonly #call: TableCall;
  readonly #deps: TableDeps;
  /**
   * A list of promises, each of which resolves once the files of a dropped materialized view have
   * been removed.
   */
  readonly #removals: Promise<void>[] = [];

  constructor(node: AlterTableStatement, call: TableCall, deps: TableDeps) {
    this.#node = node;
    this.#call = call;
    this.#deps = deps;
  }

  /**
   * Plans the altered table against the current catalog.
   *
   * @param nextColumnId The id of the first new column, if ids have been reserved.
   * @throws {DatabaseError}
   */
  plan(nextColumnId?: number): PlannedAlteration {
    const { catalog } = this.#deps;
    const { namespace, principal } = this.#call;
    const node = this.#node;
    const named = partitionNamed(node.table, { namespace, principal }, this.#deps);
    const part = altersPartition(node) ? named : undefined;
    const found =
      part?.table ?? findTable(this.#deps, node.table, { namespace, node: node.table, principal });
    const table = nextColumnId === undefined ? found : { ...found, nextColumnId };
    requireAlter(principal, table, { namespace: catalog.namespace(table.namespace) });
    requireKind(node.kind, table, node);
    if (node.isMaterialized === true) {
      requireMaterialized(true, table, { node: node.table, verb: "ALTER" });
    }
    const alterer = { deps: this.#deps, principal, namespace };
    const { next: altered, ...alteration } =
      part === undefined
        ? alteredTable(table, node, alterer)
        : alteredPartition({ ...part, table }, node, alterer);
    if (altered === undefined) {
      return { ...alteration, table, next: undefined, views: [], materialized: [], policies: [] };
    }
    const removed = [
      ...removedColumns(table, altered, node),
      ...retypedColumns(table, alteration.retyped),
    ];
    const action = `alter table ${table.namespace}.${table.name}`;
    const reach = (places: readonly { readonly namespace: string }[]): void =>
      requireReach(principal, places, { action, position: node._location.start });
    const { materialized, views } = viewsWithout(removed, { catalog, principal, reach });
    const place = { catalog, reach, table, materialized };
    const { others: policies, own } = policiesWithout(removed, place);
    const next = withoutPolicies(this.#withoutExpired(table, altered), own);
    requireSourcesKept({ catalog, reach }, { before: table, after: next }, node);
    return { ...alteration, table, next, views, materialized, policies };
  }

  /** Alters the table, and builds its new indexes. Returns a description of the change. */
  async run(first: PlannedAlteration): Promise<string> {
    const { ledger, principal } = this.#call;
    const { made, message, tableId } = await this.#alter(first);
    await Promise.all(this.#removals);
    if (made.length > 0) {
      await finishIndexes(this.#deps, tableId, { made, ledger, createdBy: principal.userId });
    }
    if (this.#node.only !== true) {
      const now = this.#deps.catalog.tableById(tableId);
      const own = made.filter(({ isOfPartitions }) => isOfPartitions !== true);
      for (const each of [...own, ...newNames(first.table, now)]) {
        attachAlike(this.#deps, tableId, each);
      }
    }
    return message;
  }

  /**
   * Alters the table. Returns a description of the change, and the indexes that have not been
   * built yet. The change is planned again after each wait, because other requests may change
   * tables in the meantime.
   */
  async #alter(first: PlannedAlteration): Promise<Altered> {
    const { clock, store } = this.#deps;
    const check = (): number => checkDeadline(this.#call.ledger, clock);
    const pause = pauser(clock, { check, firstSliceMs: FIRST_SLICE_MS_MAX });
    let inspected: { readonly table: TableEntry; readonly upTo: Seq } | undefined;
    const held = new HeldOffsets(this.#deps);
    try {
      for (let at = first; ; at = this.plan()) {
        const { demands, next, table } = at;
        const { tableId } = table;
        if (next === undefined) {
          const message =
            `Table ${nameOf(table)} not changed; it is still at schema version ` +
            table.schemaVersion;
          return { message, tableId, made: [] };
        }
        // Only statements that add something require free space, so that an operator can still
        // free up space by changing a table or its history.
        if (this.#node.changes.some(({ type }) => type.startsWith("add "))) {
          store.requireFreeSpace();
        }
        const unheld = at.materialized.find((each) => !held.holds(each.tableId));
        if (unheld !== undefined) {
          await held.hold(unheld.tableId);
          continue;
        }
        if (at.rewrites.length > 0) return await this.#rewrite(tableId, { held, pause });
        const made = madeIndexes(table, next);
        const context = definitionContext(this.#deps);
        const inspection = new RowInspection({ table, next, demands, context, store });
        const upTo = store.appliedSeq;
        if (!inspection.isEmpty && inspected?.table !== table) {
          await inspection.inspect({ after: SEQ_ZERO, upTo }, pause);
          inspected = { table, upTo };
        } else if (!held.holds(table.tableId)) {
          await held.hold(table.tableId);
        } else {
          // Rows written by other statements during the inspection are checked now, in the tick of
          // the change.
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

  /** Rewrites the rows of the table, and puts the altered definition into force. */
  async #rewrite(
    tableId: number,
    { held, pause }: { held: HeldOffsets; pause: () => Promise<void> },
  ): Promise<Altered> {
    this.#deps.store.requireFreeSpace();
    return await rewriteTable<PlannedAlteration, Altered>(this.#deps, {
      ...this.#call,
      tableId,
      pause,
      hold: () => held.hold(tableId),
      plan: (nextColumnId) => this.plan(nextColumnId),
      redefine: (at, next) => {
        const message = this.#redefine(at, next);
        return { message, tableId, made: madeIndexes(at.table, next) };
      },
    });
  }

  #redefine(alteration: PlannedAlteration, after: TableEntry): string {
    const { droppedSequences, marks, materialized, sequences, table: before } = alteration;
    for (const each of alteration.referring) dropForeignKey(this.#deps, each);
    for (const each of alteration.policies) dropPolicy(this.#deps, each);
    const { ledger } = this.#call;
    const views = materialized.length === 0 ? alteration.views : [];
    if (materialized.length > 0) {
      const dropped = { views: alteration.views, ledger };
      this.#removals.push(...dropTogether(materialized, dropped, this.#deps));
    }
    const changedViews = viewsAfterRename(this.#deps.catalog, before, after);
    const others = { changedViews, droppedSequences, marks, sequences, views };
    redefineTable(this.#deps, { before, after }, others);
    const what = after.materialized === undefined ? "Table" : "Materialized view";
    return `${what} ${nameOf(after)} altered to schema version ${after.schemaVersion}`;
  }

  /**
   * Checks existing rows against foreign keys that are in force, and marks these keys as
   * validated. If a row violates a foreign key added by this statement, the key is dropped again.
   */
  async #validate(
    { table: before, validations }: PlannedAlteration,
    pause: () => Promise<void>,
  ): Promise<void> {
    const { catalog, store } = this.#deps;
    const { tableId } = before;
    const { principal } = this.#call;
    for (const name of validations) {
      const table = catalog.tableById(tableId);
      const key = table?.foreignKeys?.find((each) => each.name === name);
      const parent = key && catalog.tableById(key.tableId);
      if (table === undefined || key === undefined || parent === undefined) return;
      const isNew = before.foreignKeys?.some((each) => each.name === name) !== true;
      try {
        const isShown = mayRead(principal, parent, catalog.namespace(parent.namespace));
        const shownParent = isShown ? nameOf(parent) : "a table that you cannot see";
        await validateReference({ key, parent, shownParent, table }, store, pause);
      } catch (error) {
        if (isNew) changeForeignKey(this.#deps, { tableId, name }, () => undefined);
        throw error;
      }
      changeForeignKey(this.#deps, { tableId, name }, (each) => ({ ...each, isValidated: true }));
    }
  }

  /**
   * Records which rows have expired under the old TTL, so that a longer TTL does not bring them
   * back. A SHARED table needs no such record, because its expired rows are deleted.
   */
  #withoutExpired(table: TableEntry, altered: TableEntry): TableEntry {
    if (table.kind !== "stream") return altered;
    if (altered.options.ttlSeconds === table.options.ttlSeconds) return altered;
    return { ...altered, expiredSeq: this.#deps.store.expiredSeq(table.tableId) };
  }
}

/** Returns the indexes that an ALTER TABLE adds. */
function madeIndexes(before: TableEntry, after: TableEntry): readonly IndexEntry[] {
  const known = new Set(before.indexes?.map(({ indexId }) => indexId));
  return (after.indexes ?? []).filter(({ indexId }) => !known.has(indexId));
}

/** Returns the indexes of partitions that an ALTER TABLE adds. */
function newNames(before: TableEntry, after: TableEntry | undefined): readonly PartitionIndex[] {
  const known = before.partitionIndexes ?? [];
  const isKnown = ({ name, namespace }: PartitionIndex): boolean =>
    known.some((each) => each.name === name && each.namespace === namespace);
  return (after?.partitionIndexes ?? []).filter((each) => !isKnown(each));
}
