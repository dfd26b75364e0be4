/**
 * The names in a statement, resolved twice to the same relations: the event loop notes what they
 * lead to, and a reader in another thread, which has no catalog, binds the statement against that.
 */
import { defined } from "../../base/assert.ts";
import { inOneTurn } from "../../base/steps.ts";
import type { TableEntry, ViewEntry } from "../../catalog/mod.ts";
import { StatementBinding, type TableStatistics } from "../bind/binding.ts";
import type { Requirement, SystemView } from "../bind/bound.ts";
import type { DmlWorld } from "../bind/change/dml_target.ts";
import { bindStatement } from "../bind/change/statement_binder.ts";
import { bindInSteps } from "../bind/query/select_binder.ts";
import { viewRelation } from "../common/views.ts";
import type { NamedRelations, PlanSource } from "./job.ts";
import type { Questions } from "./questions.ts";

/** Relations by namespace and name. */
interface Names {
  readonly table: (namespace: string, name: string) => TableEntry | undefined;
  readonly view: (namespace: string, name: string) => ViewEntry | undefined;
  readonly systemView: (namespace: string, name: string) => SystemView | undefined;
}

/** The system views that a statement reads, by namespace and name. */
export function systemViewsIn(requirements: readonly Requirement[]): Map<string, SystemView> {
  const views = new Map<string, SystemView>();
  for (const requirement of requirements) {
    if (requirement.action === "read-system") views.set(requirement.name, requirement.view);
  }
  return views;
}

/** Binds a statement to find out which relations it names. It was bound before without a fault. */
export function relationsOf(
  { namespace, node, types }: Pick<PlanSource, "namespace" | "node" | "types">,
  catalog: Omit<Names, "systemView">,
  systemViews: ReadonlyMap<string, SystemView>,
): NamedRelations {
  const tables = new Set<TableEntry>();
  const views = new Set<ViewEntry>();
  const noting: Names = {
    table: (inNamespace, name) => noted(tables, catalog.table(inNamespace, name)),
    view: (inNamespace, name) => noted(views, catalog.view(inNamespace, name)),
    systemView: (inNamespace, name) => systemViews.get(shownName({ namespace: inNamespace, name })),
  };
  const statement = new StatementBinding(types);
  inOneTurn(bindStatement(node, worldOver(noting, { namespace, statement })));
  return {
    tables: [...tables],
    views: [...views],
    systemViews: Array.from(systemViews, ([name, { columns, isOpen }]) => ({
      name,
      columns,
      isOpen,
    })),
  };
}

/**
 * The world in which a reader binds a statement.
 *
 * @param questions Those of the job that runs the plan.
 */
export function worldIn(
  { namespace, relations, types }: PlanSource,
  { questions, statistics }: { statistics: TableStatistics; questions: () => Questions },
): { readonly world: DmlWorld; readonly statement: StatementBinding } {
  const tables = new Map(relations.tables.map((table) => [shownName(table), table]));
  const views = new Map(relations.views.map((view) => [shownName(view), view]));
  const systemViews = new Map(
    relations.systemViews.map(({ columns, isOpen, name }): [string, SystemView] => [
      name,
      { columns, isOpen, rows: (call) => questions().systemRows(name, call) },
    ]),
  );
  const names: Names = {
    table: (inNamespace, name) => tables.get(shownName({ namespace: inNamespace, name })),
    view: (inNamespace, name) => views.get(shownName({ namespace: inNamespace, name })),
    systemView: (inNamespace, name) => systemViews.get(shownName({ namespace: inNamespace, name })),
  };
  const statement = new StatementBinding(types, { statistics });
  return { world: worldOver(names, { namespace, statement }), statement };
}

function worldOver(
  names: Names,
  { namespace, statement }: { namespace: string; statement: StatementBinding },
): DmlWorld {
  const catalog = { table: names.table, namespace: () => undefined };
  const viewWorld = { catalog, view: names.view, systemView: names.systemView };
  return {
    statement,
    isOutermost: true,
    bindInSteps,
    requiresWhere: false,
    source: {
      namespace,
      table: ({ name, schema = namespace }) =>
        defined(names.table(schema, name), "the statement was bound before"),
      systemView: names.systemView,
      view: ({ name, schema = namespace }) => {
        const entry = names.view(schema, name);
        return entry === undefined ? undefined : viewRelation(entry, viewWorld);
      },
    },
  };
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
