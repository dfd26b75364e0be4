/** Lists the partitions of a table as a tree, for pg_partition_tree and its siblings. */
import type { PartitionViewEntry, TableEntry } from "../../catalog/mod.ts";
import { idOfOid, oidOfId } from "../bind/query/table_oid.ts";
import type { PartitionRow } from "../functions/base/function.ts";
import { type ObjectPlace, objectWithOid, seesTable } from "./object_names.ts";
import { isPartition, partitionsOf } from "./partitions.ts";

/** A partitioned table, or one of its partitions. */
interface TreeMember {
  readonly table: TableEntry;
  /** Absent for the table itself. */
  readonly partition: PartitionViewEntry | undefined;
}

/** Returns the member of a tree of partitions that has an OID; undefined if there is none. */
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

/** Returns a relation, and all partitions below it, level by level. */
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

/** Returns a relation and the relations that contain it, the whole table last. */
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

/** Returns the partition that contains a partition; undefined if the whole table does. */
function parentOf(
  { partition: { parentId } }: PartitionViewEntry,
  { catalog }: ObjectPlace,
): PartitionViewEntry | undefined {
  const parent = parentId === undefined ? undefined : catalog.viewById(parentId);
  return isPartition(parent) ? parent : undefined;
}
