/**
 * What statements are bound against: where the names in FROM lead, to the tables and views of the
 * catalog or the views of the system, and what is known of their rows.
 */
import type { Principal } from "../../auth/mod.ts";
import type { Catalog } from "../../catalog/mod.ts";
import type { StatementBinding, TableStatistics } from "../bind/binding.ts";
import type { DmlWorld } from "../bind/change/dml_target.ts";
import { bindInSteps } from "../bind/query/select_binder.ts";
import type { SqlEnvironment, SqlLimits } from "../common/environment.ts";
import { findTable, noSystemView, visibleView } from "../common/table_names.ts";
import { viewRelation, worldOf } from "../common/views.ts";
import { isSystemViews, type SystemViews } from "../system/system_views.ts";

/** Where names are looked up. */
export interface NameWorld {
  readonly catalog: Catalog;
  readonly systemViews: SystemViews;
}

/** The same, with what is refused whatever the names are. */
export interface BindingWorld extends NameWorld {
  readonly limits: SqlLimits;
}

export interface BindingPlace {
  /** Namespace of unqualified names. */
  readonly namespace: string;
  readonly statement: StatementBinding;
  /** The caller; a table that the caller may not read does not exist. */
  readonly principal: Principal;
}

/** What the binder needs to know of the world. */
export function dmlWorldOf(
  world: BindingWorld,
  { namespace, principal, statement }: BindingPlace,
): DmlWorld {
  const { catalog, limits, systemViews } = world;
  return {
    statement,
    isOutermost: true,
    bindInSteps,
    requiresWhere: limits.requiresWhere,
    source: {
      namespace,
      table(name, node) {
        const { name: relation, schema = namespace } = name;
        if (!isSystemViews(schema)) {
          return findTable(world, name, { namespace, node, principal });
        }
        const known = systemViews.namesFor(principal);
        throw noSystemView(`${schema}.${relation}`, known, node);
      },
      systemView: systemViews.find,
      view: ({ name, schema }) => {
        const entry = visibleView(world, { namespace: schema ?? namespace, name }, principal);
        if (entry === undefined) return undefined;
        return viewRelation(entry, worldOf(catalog, systemViews.find));
      },
    },
  };
}

/** What is known of tables, over all owners: what joins are put in order by. */
export function statisticsOf({ store }: Pick<SqlEnvironment, "store">): TableStatistics {
  return {
    rowsOf: ({ tableId }) => store.liveRowCount(tableId, undefined),
    spanOf: ({ tableId }, columnId) => store.valueSpan(tableId, columnId),
  };
}
