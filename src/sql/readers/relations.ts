/**
 * The names in a statement, resolved twice to the same relations: the event loop notes what they
 * lead to, and a reader in another thread, which has no catalog, binds the statement against that.
 */
import { defined } from "../../base/assert.ts";
import { inOneTurn } from "../../base/steps.ts";
import type { TableEntry, ViewEntry } from "../../catalog/mod.ts";
import { StatementBinding, type TableStatistics } from "../bind/binding.ts";
import type { DmlWorld } from "../bind/change/dml_target.ts";
import { bindStatement } from "../bind/change/statement_binder.ts";
import { bindInSteps } from "../bind/query/select_binder.ts";
import { viewRelation } from "../common/views.ts";
import type { NamedRelations, PlanSource } from "./job.ts";

/** Relations by namespace and name. */
interface Names {
  readonly table: (namespace: string, name: string) => TableEntry | undefined;
  readonly view: (namespace: string, name: string) => ViewEntry | undefined;
}

/** Binds a statement to find out which relations it names. It was bound before without a fault. */
export function relationsOf(
  { namespace, node, types }: Pick<PlanSource, "namespace" | "node" | "types">,
  catalog: Names,
): NamedRelations {
  const tables = new Set<TableEntry>();
  const views = new Set<ViewEntry>();
  const noting: Names = {
    table: (inNamespace, name) => noted(tables, catalog.table(inNamespace, name)),
    view: (inNamespace, name) => noted(views, catalog.view(inNamespace, name)),
  };
  const statement = new StatementBinding(types);
  inOneTurn(bindStatement(node, worldOver(noting, { namespace, statement })));
  return { tables: [...tables], views: [...views] };
}

/** The world in which a reader binds a statement. */
export function worldIn(
  { namespace, relations, types }: PlanSource,
  statistics: TableStatistics,
): { readonly world: DmlWorld; readonly statement: StatementBinding } {
  const tables = new Map(relations.tables.map((table) => [shownName(table), table]));
  const views = new Map(relations.views.map((view) => [shownName(view), view]));
  const names: Names = {
    table: (inNamespace, name) => tables.get(shownName({ namespace: inNamespace, name })),
    view: (inNamespace, name) => views.get(shownName({ namespace: inNamespace, name })),
  };
  const statement = new StatementBinding(types, { statistics });
  return { world: worldOver(names, { namespace, statement }), statement };
}

function worldOver(
  names: Names,
  { namespace, statement }: { namespace: string; statement: StatementBinding },
): DmlWorld {
  const catalog = { table: names.table, namespace: () => undefined };
  const viewWorld = { catalog, view: names.view, systemView: () => undefined };
  return {
    statement,
    isOutermost: true,
    bindInSteps,
    requiresWhere: false,
    source: {
      namespace,
      table: ({ name, schema = namespace }) =>
        defined(names.table(schema, name), "the statement was bound before"),
      systemView: () => undefined,
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
