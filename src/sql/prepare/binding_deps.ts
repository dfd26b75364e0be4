/**
 * Creates the environment in which statements are bound: the tables, views and system views to
 * which names in FROM refer, and statistics on their rows.
 */
import { mayReadView, type Principal } from "../../auth/mod.ts";
import type { Catalog } from "../../catalog/mod.ts";
import type { StatementBinding, TableStatistics } from "../bind/binding.ts";
import type { DmlDeps } from "../bind/change/dml_target.ts";
import { bindInSteps } from "../bind/query/select_binder.ts";
import { partitionsOf, tableParts } from "../names/partitions.ts";
import { findTable, noSystemView, visibleView } from "../names/table_names.ts";
import { depsOf, routineOf, viewRelation } from "../names/views.ts";
import type { SqlEnvironment, SqlLimits } from "../ports/environment.ts";
import { rowRightsOf } from "../rights/row_policies.ts";
import { isSystemViews, type SystemViews } from "../system/system_views.ts";

/** The catalog and other objects in which names are looked up. */
export interface NameDeps {
  readonly catalog: Catalog;
  readonly systemViews: SystemViews;
}

/**
 * The objects in which names are looked up, together with the caller and the current namespace.
 */
export interface BindingDeps extends NameDeps {
  readonly limits: SqlLimits;
}

export interface BindingPlace {
  /** The namespace in which a statement looks up unqualified names. */
  readonly namespace: string;
  readonly statement: StatementBinding;
  /** The caller. A table that the caller may not read is treated as if it did not exist. */
  readonly principal: Principal;
}

/** Returns the environment in which the binder binds a statement. */
export function dmlDepsOf(
  deps: BindingDeps,
  { namespace, principal, statement }: BindingPlace,
): DmlDeps {
  const { catalog, limits, systemViews } = deps;
  return {
    statement,
    isOutermost: true,
    bindInSteps,
    rights: rowRightsOf(catalog, principal),
    requiresWhere: limits.requiresWhere,
    source: {
      namespace,
      table(name, node) {
        const { name: relation, schema = namespace } = name;
        if (!isSystemViews(schema)) {
          return findTable(deps, name, { namespace, node, principal });
        }
        const known = systemViews.namesFor(principal);
        throw noSystemView(`${schema}.${relation}`, known, node);
      },
      partsOf: (tableId, within) => {
        const catalogOf = {
          tableById: (id: number) => catalog.tableById(id),
          partitionsOf: (id: number) => partitionsOf(catalog, id),
        };
        return tableParts(catalogOf, tableId, within);
      },
      systemView: systemViews.find,
      view: ({ name, schema }) => {
        const entry = visibleView(deps, { namespace: schema ?? namespace, name }, principal);
        if (entry === undefined) return undefined;
        return viewRelation(entry, depsOf(catalog, systemViews.find));
      },
      functions: ({ name, schema = namespace }) => {
        const found = catalog.functionsNamed(schema, name);
        if (found.length === 0) return [];
        const holder = catalog.namespace(schema);
        const viewDeps = depsOf(catalog, systemViews.find);
        return found
          .filter((entry) => mayReadView(principal, entry, holder))
          .map((entry) => routineOf(entry, viewDeps));
      },
    },
  };
}

/** Returns table statistics over the rows of all owners, for choosing join orders. */
export function statisticsOf({ store }: Pick<SqlEnvironment, "store">): TableStatistics {
  return {
    rowsOf: ({ tableId }) => store.liveRowCount(tableId, undefined),
    distinctOf: ({ tableId }, columnId) => store.distinctValues(tableId, columnId),
  };
}
