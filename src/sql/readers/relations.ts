/**
 * Ensures that the names in a statement refer to the same relations in two threads. The event loop
 * records the relations, and a reader, which has no catalog, binds the statement against this
 * record.
 */
import type { Principal } from "../../auth/mod.ts";
import { defined } from "../../base/assert.ts";
import { runToCompletion } from "../../base/steps.ts";
import type {
  Catalog,
  DefinedType,
  FunctionEntry,
  PartitionViewEntry,
  TableEntry,
  ViewEntry,
} from "../../catalog/mod.ts";
import { StatementBinding, type TableStatistics } from "../bind/binding.ts";
import type { Requirement, SystemView, ViewOwner } from "../bind/bound.ts";
import type { DmlDeps } from "../bind/change/dml_target.ts";
import { bindStatement } from "../bind/change/statement_binder.ts";
import { bindInSteps } from "../bind/query/select_binder.ts";
import { type RowRights, rightsBy } from "../bind/row_rights.ts";
import { partitionsOf, tableParts } from "../names/partitions.ts";
import { isFunction, routineOf, viewRelation } from "../names/views.ts";
import { type PolicyCatalog, rowRightsOf } from "../rights/row_policies.ts";
import type { NamedRelations, PlanSource } from "./job.ts";
import type { Questions } from "./questions.ts";

/** Looks up tables, views and functions by namespace and name. */
interface RelationNames {
  readonly table: (namespace: string, name: string) => TableEntry | undefined;
  readonly tableById: (tableId: number) => TableEntry | undefined;
  readonly view: (namespace: string, name: string) => ViewEntry | undefined;
  readonly viewById: (viewId: number) => ViewEntry | undefined;
  readonly functionsNamed: (namespace: string, name: string) => readonly FunctionEntry[];
  readonly partitionsOf: (tableId: number) => readonly PartitionViewEntry[];
  readonly systemView: (namespace: string, name: string) => SystemView | undefined;
  readonly definedType: (namespace: string, name: string) => DefinedType | undefined;
}

/** The operations of the catalog with which the event loop resolves names. */
type NamingCatalog = Omit<RelationNames, "partitionsOf" | "systemView"> &
  Pick<Catalog, "views"> &
  PolicyCatalog;

/** Returns the system views that a statement reads, keyed by qualified name. */
export function systemViewsIn(requirements: readonly Requirement[]): Map<string, SystemView> {
  const views = new Map<string, SystemView>();
  for (const requirement of requirements) {
    if (requirement.action === "read-system") views.set(requirement.name, requirement.view);
  }
  return views;
}

/**
 * Binds a statement to record the relations to which it refers. The statement has been bound
 * before without an error.
 */
export function relationsOf(
  { namespace, node, types }: Pick<PlanSource, "namespace" | "node" | "types">,
  { catalog, principal }: { readonly catalog: NamingCatalog; readonly principal: Principal },
  systemViews: ReadonlyMap<string, SystemView>,
): NamedRelations {
  const tables = new Set<TableEntry>();
  const views = new Set<ViewEntry>();
  const definedTypes = new Map<string, DefinedType>();
  const noting: RelationNames = {
    table: (inNamespace, name) => noted(tables, catalog.table(inNamespace, name)),
    tableById: (tableId) => noted(tables, catalog.tableById(tableId)),
    view: (inNamespace, name) => noted(views, catalog.view(inNamespace, name)),
    viewById: (viewId) => noted(views, catalog.viewById(viewId)),
    functionsNamed: (inNamespace, name) => {
      const found = catalog.functionsNamed(inNamespace, name);
      for (const entry of found) views.add(entry);
      return found;
    },
    partitionsOf: (tableId) => {
      const found = partitionsOf(catalog, tableId);
      for (const entry of found) views.add(entry);
      return found;
    },
    systemView: (inNamespace, name) => systemViews.get(shownName({ namespace: inNamespace, name })),
    definedType: (inNamespace, name) => {
      const found = catalog.definedType(inNamespace, name);
      if (found !== undefined) definedTypes.set(shownName({ namespace: inNamespace, name }), found);
      return found;
    },
  };
  const statement = new StatementBinding(types);
  const policies = new Map<string, readonly string[]>();
  const own = rowRightsOf(catalog, principal);
  const rights = rightsBy({
    tableById: noting.tableById,
    policiesFor: (table, owner) => {
      const applied = own.within(owner).policiesFor(table);
      if (applied !== undefined) {
        policies.set(
          policyKey(table, owner),
          applied.map(({ name }) => name),
        );
      }
      return applied;
    },
  });
  runToCompletion(bindStatement(node, depsOver(noting, { namespace, rights, statement })));
  return {
    policies,
    tables: [...tables],
    views: [...views],
    types: definedTypes,
    systemViews: Array.from(systemViews, ([name, { columns, isOpen }]) => ({
      name,
      columns,
      isOpen,
    })),
  };
}

/**
 * Returns the dependencies with which a reader binds a statement.
 *
 * @param questions Sends the questions of the job that runs the plan.
 */
export function depsIn(
  { namespace, relations, types }: PlanSource,
  { questions, statistics }: { statistics: TableStatistics; questions: () => Questions },
): { readonly deps: DmlDeps; readonly statement: StatementBinding } {
  const tables = new Map(relations.tables.map((table) => [shownName(table), table]));
  const views = new Map(relations.views.map((view) => [shownName(view), view]));
  const systemViews = new Map(
    relations.systemViews.map(({ columns, isOpen, name }): [string, SystemView] => [
      name,
      { columns, isOpen, rows: (call) => questions().systemRows(name, call) },
    ]),
  );
  const names: RelationNames = {
    table: (inNamespace, name) => tables.get(shownName({ namespace: inNamespace, name })),
    tableById: (tableId) => relations.tables.find((table) => table.tableId === tableId),
    view: (inNamespace, name) => views.get(shownName({ namespace: inNamespace, name })),
    viewById: (viewId) => relations.views.find((view) => view.viewId === viewId),
    functionsNamed: (inNamespace, name) =>
      relations.views
        .filter(isFunction)
        .filter((entry) => entry.namespace === inNamespace && entry.routine.name === name),
    partitionsOf: (tableId) =>
      partitionsOf({ views: () => relations.views.filter((entry) => !isFunction(entry)) }, tableId),
    systemView: (inNamespace, name) => systemViews.get(shownName({ namespace: inNamespace, name })),
    definedType: (inNamespace, name) =>
      relations.types.get(shownName({ namespace: inNamespace, name })),
  };
  const statement = new StatementBinding(types, { statistics });
  const rights = rightsBy({
    policiesFor: (table, owner) => {
      const applied = relations.policies.get(policyKey(table, owner));
      return applied && table.policies?.filter(({ name }) => applied.includes(name));
    },
    tableById: names.tableById,
  });
  return { deps: depsOver(names, { namespace, rights, statement }), statement };
}

function depsOver(
  names: RelationNames,
  {
    namespace,
    rights,
    statement,
  }: { namespace: string; rights: RowRights; statement: StatementBinding },
): DmlDeps {
  const { definedType, partitionsOf: listed, table, tableById } = names;
  const catalog = { definedType, table, tableById, namespace: () => undefined };
  const { systemView, view, viewById } = names;
  const viewDeps = { catalog, view, viewById, partitionsOf: listed, systemView };
  return {
    statement,
    isOutermost: true,
    bindInSteps,
    rights,
    requiresWhere: false,
    source: {
      namespace,
      table: ({ name, schema = namespace }) =>
        defined(names.table(schema, name), "reader binder: table was not bound by the event loop"),
      partsOf: (tableId, within) =>
        tableParts({ tableById, partitionsOf: listed }, tableId, within),
      systemView: names.systemView,
      view: ({ name, schema = namespace }) => {
        const entry = names.view(schema, name);
        return entry === undefined ? undefined : viewRelation(entry, viewDeps);
      },
      functions: ({ name, schema = namespace }) =>
        names.functionsNamed(schema, name).map((entry) => routineOf(entry, viewDeps)),
    },
  };
}

/** Returns the key of the policies that apply to the owner of a view, or to the caller. */
function policyKey({ tableId }: TableEntry, owner: ViewOwner | undefined): string {
  return owner === undefined ? String(tableId) : `${tableId} ${owner.userId}`;
}

function noted<T>(into: Set<T>, entry: T | undefined): T | undefined {
  if (entry !== undefined) into.add(entry);
  return entry;
}

function shownName({
  name,
  namespace,
}: {
  readonly name: string;
  readonly namespace: string;
}): string {
  return `${namespace}.${name}`;
}
