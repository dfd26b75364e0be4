/** Finds partitions by name. */
import type { Principal } from "../../auth/mod.ts";
import type { Catalog, PartitionViewEntry, TableEntry } from "../../catalog/mod.ts";
import { isPartition } from "./partitions.ts";
import { type TableName, visibleView } from "./table_names.ts";
import type { ViewDeps } from "./views.ts";

/**
 * Returns the partition with a given name; undefined if there is none, or if the name refers to
 * any other object.
 */
export function partitionNamed(
  name: TableName,
  { namespace, principal }: { readonly namespace: string; readonly principal: Principal },
  deps: {
    readonly catalog: Catalog;
    readonly systemViews: { readonly find: ViewDeps["systemView"] };
  },
): { readonly entry: PartitionViewEntry; readonly table: TableEntry } | undefined {
  const place = { namespace: name.schema ?? namespace, name: name.name };
  const entry = visibleView(deps, place, principal);
  if (!isPartition(entry)) return undefined;
  const table = deps.catalog.tableById(entry.partition.tableId);
  return table && { entry, table };
}
