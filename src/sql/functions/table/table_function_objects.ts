/** Defines table functions that list the partitions of a table. */
import {
  BOOLEAN,
  INT,
  oidOfObjectName,
  REGCLASS,
  type Row,
  type RowValue,
  type Value,
} from "../../../types/mod.ts";
import type { CallDeps, PartitionRow } from "../base/function.ts";
import type { TableFunction } from "./table_function.ts";

function* cellsOf([rows]: readonly Value[]): Generator<Row> {
  for (const row of (rows ?? []) as readonly RowValue[]) yield [...row.cells];
}

type Listing = (relation: string, call: CallDeps) => readonly PartitionRow[];

function computing(
  list: Listing,
  cells: (row: PartitionRow) => Value[],
): (values: readonly Value[], call: CallDeps) => Value {
  return ([relation], call) =>
    list(oidOfObjectName(relation as string), call).map((row) => ({ cells: cells(row) }));
}

export const OBJECT_TABLE_FUNCTIONS: readonly TableFunction[] = [
  {
    name: "pg_partition_tree",
    forms: [
      {
        parameters: [REGCLASS],
        columns: () => [
          { name: "relid", type: REGCLASS },
          { name: "parentrelid", type: REGCLASS },
          { name: "isleaf", type: BOOLEAN },
          { name: "level", type: INT },
        ],
        compute: computing(
          (oid, { objects }) => objects.partitions(oid, "tree"),
          ({ isLeaf, level, parent, relation }) => [relation, parent, isLeaf, level],
        ),
        rows: cellsOf,
      },
    ],
  },
  {
    name: "pg_partition_ancestors",
    forms: [
      {
        parameters: [REGCLASS],
        columns: () => [{ name: "relid", type: REGCLASS }],
        compute: computing(
          (oid, { objects }) => objects.partitions(oid, "ancestors"),
          ({ relation }) => [relation],
        ),
        rows: cellsOf,
      },
    ],
  },
];
