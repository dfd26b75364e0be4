/**
 * Protects partition keys: every unique key must contain them, and their columns must not change.
 * Constraints of a partitioned table apply to all partitions.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  type Catalog,
  type ColumnEntry,
  declaredKeyOf,
  type Partitioning,
  refusesRows,
  type TableEntry,
} from "../../catalog/mod.ts";
import { partitionsOf } from "../names/partitions.ts";
import type { ColumnConstraint, TableConstraint } from "../parse/ast/ast.ts";
import { columnsNamedIn } from "./row_inspection.ts";

/**
 * Returns the partitioning of a table and of each of its subpartitioned partitions; an empty list
 * if the table is not partitioned.
 */
export function partitioningsOf(
  { partitioned, tableId }: TableEntry,
  catalog: Pick<Catalog, "views">,
): readonly Partitioning[] {
  if (partitioned === undefined) return [];
  const parts = partitionsOf(catalog, tableId);
  return [partitioned, ...parts.flatMap(({ partition }) => partition.partitioned ?? [])];
}

/**
 * Requires that every unique key of a table contains the partition keys, as in PostgreSQL.
 *
 * @param all The partitionings of the table and of its partitions.
 * @throws {DatabaseError} INVALID_DEFINITION
 */
export function requireKeysInUnique(
  table: TableEntry,
  all: readonly Partitioning[],
  position: number,
): void {
  const keys = all.flatMap((partitioning) => partitioning.keys);
  const declared = declaredKeyOf(table)?.columnIds ?? [];
  const unique = [
    ...(declared.length === 0 ? [] : [{ name: "the primary key", columnIds: declared }]),
    ...(table.indexes ?? [])
      .filter((index) => refusesRows(index) && index.within === undefined)
      .map(({ columnIds, name }) => ({ name: `"${name}"`, columnIds })),
  ];
  for (const { columnIds, name } of unique) {
    const missing = keys.find(
      ({ isColumn, reads }) => !isColumn || reads.some((id) => !columnIds.includes(id)),
    );
    if (missing === undefined) continue;
    throw new DatabaseError(
      "INVALID_DEFINITION",
      `Cannot define ${name} of partitioned table ${table.namespace}.${table.name}: it must ` +
        `contain the partition key ${missing.sql}`,
      { position, hint: "add all keys from PARTITION BY to the unique key" },
    );
  }
}

/**
 * Requires that no partition key of the table or of its partitions reads the given column.
 *
 * @throws {DatabaseError} INVALID_DEFINITION
 */
export function requireNoPartitionKey(
  table: TableEntry,
  { columnId, name }: ColumnEntry,
  about: {
    readonly catalog: Pick<Catalog, "views">;
    readonly action: string;
    readonly position: number;
  },
): void {
  const keys = partitioningsOf(table, about.catalog).flatMap((each) => each.keys);
  if (!keys.some(({ reads }) => reads.includes(columnId))) return;
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot ${about.action} column "${name}" of ${table.namespace}.${table.name}: the column ` +
      "is part of the partition key",
    { position: about.position },
  );
}

/**
 * Requires that no partition has a check or a DEFAULT of its own for a column whose type changes.
 *
 * @throws {DatabaseError} DEPENDENT_OBJECTS
 */
export function requireNoPartitionRule(
  table: TableEntry,
  { columnId, name }: ColumnEntry,
  position: number,
): void {
  const { partitionChecks = [], partitionDefaults = [] } = table;
  const check = partitionChecks.find(({ own }) => columnsNamedIn(own, table).has(name));
  const isDefault = partitionDefaults.some((each) => each.columnId === columnId);
  if (check === undefined && !isDefault) return;
  const rule = check === undefined ? "a DEFAULT" : `constraint "${check.name}"`;
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot change the type of column "${name}" of ${table.namespace}.${table.name}: ${rule} of ` +
      "a single partition depends on it",
    { position, hint: "drop it first with ALTER TABLE of the partition" },
  );
}

/**
 * Requires that a constraint of a partitioned table also applies to its partitions.
 * @throws {DatabaseError} INVALID_DEFINITION
 */
export function requireInherited(
  { name, namespace }: Pick<TableEntry, "name" | "namespace">,
  constraint: ColumnConstraint | TableConstraint,
): void {
  if (constraint.type !== "check" || constraint.isNotInherited !== true) return;
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot define a constraint of ${namespace}.${name} with NO INHERIT: a constraint of a ` +
      "partitioned table applies to all partitions",
    { position: constraint._location.start, hint: "remove NO INHERIT" },
  );
}
