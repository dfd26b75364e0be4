/** Lists the partitions of a table as a tree, for pg_partition_tree and related functions. */
import type { PartitionViewEntry, TableEntry } from "../../catalog/mod.ts";
import { idOfOid, oidOfId } from "../bind/query/table_oid.ts";
import type { PartitionRow } from "../functions/base/function.ts";
import { type ObjectPlace, objectWithOid, seesTable } from "./object_names.ts";
import { isPartition, partitionsOf } from "./partitions.ts";

/** A partitioned table, or one of its partitions. */
interface TreeMember {
  readonly table: TableEntry;
  /** The view entry of the partition; absent for the table itself. */
  readonly partition: PartitionViewEntry | undefined;
}

/**
 * Returns the relation with an OID in a partition tree; undefined if there is no such relation.
 */
function memberWithOid(oid: string, place: ObjectPlace): TreeMember | undefined {
  const { catalog } = place;
  const id = idOfOid(oid);
  const view = catalog.viewById(id);
  const partition = isPartition(view) ? view : undefined;
  const table = catalog.tableById(partition?.partition.tableId ?? id);
  if (table?.partitioned === undefined || !seesTable(table, place)) return undefined;
  return { table, partition };
}

function relationOf({ partition, table }: TreeMember, place: ObjectPlace): string | undefined {
  return objectWithOid("regclass", oidOfId(partition?.viewId ?? table.tableId), place);
}

/** Returns a relation and all partitions below it in the tree, level by level. */
export function partitionTree(oid: string, place: ObjectPlace): PartitionRow[] {
  const member = memberWithOid(oid, place);
  if (member === undefined) return [];
  const { table } = member;
  const children = Map.groupBy(
    partitionsOf(place.catalog, table.tableId),
    ({ partition }) => partition.parentId,
  );
  const [above] = partitionAncestors(oid, place).slice(1);
  let level: { member: TreeMember; parent: string | null }[] = [
    { member, parent: above?.relation ?? null },
  ];
  const rows: PartitionRow[] = [];
  for (let depth = 0; level.length > 0; depth += 1) {
    const below: typeof level = [];
    for (const each of level) {
      const relation = relationOf(each.member, place);
      if (relation === undefined) continue;
      const { partition } = each.member;
      const partitioning =
        partition === undefined ? table.partitioned : partition.partition.partitioned;
      rows.push({
        relation,
        parent: each.parent,
        isLeaf: partitioning === undefined,
        level: depth,
      });
      for (const child of children.get(partition?.viewId) ?? []) {
        below.push({ member: { table, partition: child }, parent: relation });
      }
    }
    level = below;
  }
  return rows;
}

/** Returns a relation and its ancestors in the partition tree. The root table comes last. */
export function partitionAncestors(oid: string, place: ObjectPlace): PartitionRow[] {
  const member = memberWithOid(oid, place);
  if (member === undefined) return [];
  const { table } = member;
  const rows: PartitionRow[] = [];
  for (let { partition } = member; ; partition = parentOf(partition, place)) {
    const relation = relationOf({ table, partition }, place);
    if (relation !== undefined) {
      rows.push({ relation, parent: null, isLeaf: false, level: rows.length });
    }
    if (partition === undefined) return rows;
  }
}

/** Returns the parent partition of a partition; undefined if its parent is the root table. */
function parentOf(
  { partition: { parentId } }: PartitionViewEntry,
  { catalog }: ObjectPlace,
): PartitionViewEntry | undefined {
  const parent = parentId === undefined ? undefined : catalog.viewById(parentId);
  return isPartition(parent) ? parent : undefined;
}
