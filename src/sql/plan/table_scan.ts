/**
 * Plans how a table is read: by looking up one row by its key, by looking up a list of keys, or by
 * a scan that skips rows that the conditions exclude.
 *
 * The filter above a scan tests all conditions, so bounds and lists of keys may admit too many
 * rows, but never too few. The exception is the lookup of a single row: conditions that follow
 * from its key are not tested again.
 */
import { DELETED_COLUMN_ID } from "../../storage/mod.ts";
import type { BoundRelation } from "../bind/bound.ts";
import type { BoundColumn } from "../bind/bound_expressions.ts";
import { accessOf, areListed, type KeyAccess, keyCountOf } from "./access.ts";
import type { Condition } from "./conditions.ts";
import { alternativesFor, indexesFor } from "./index_access.ts";
import type { PlanNode } from "./plan.ts";
import { narrowed, type PlanningState, stillRead } from "./planning_state.ts";

type TableRelation = Extract<BoundRelation, { kind: "table" }>;

/** Plans the scan of a table. The conditions of its block are tested above the scan. */
export function planTable(
  relation: TableRelation,
  conditions: readonly Condition[],
  state: PlanningState,
): PlanNode {
  const { lookup, prefix, ranges, sought, textRanges } = accessOf(relation.table, conditions);
  // Tombstones are read only if a condition in the same block refers to `_deleted`.
  const deleted = relation.columns.find(isDeletedColumn);
  const withTombstones = deleted !== undefined && state.readers.isReadByCondition(deleted.id);
  if (lookup !== undefined && !withTombstones) {
    return planLookup(relation, { conditions, lookup }, state);
  }
  const columns = stillRead(relation.columns, state);
  // Counting rows opens the files of a table, so rows are counted only if the filter lists keys.
  const isWanted =
    sought !== undefined && !withTombstones && areListed(keyCountOf(sought), relation.rowCount());
  const mayUseIndexes = !isWanted && !withTombstones && relation.past === undefined;
  const scan: PlanNode = {
    kind: "scan",
    table: relation.table,
    columns,
    ranges,
    textRanges: textRanges.length === 0 ? undefined : textRanges,
    key: undefined,
    sought: isWanted ? sought : undefined,
    prefix,
    indexes: mayUseIndexes ? indexesFor(relation.table, conditions) : undefined,
    either: mayUseIndexes ? alternativesFor(relation.table, conditions) : undefined,
    withTombstones,
    past: relation.past,
    rowCount: relation.rowCount,
    isBulk: state.isBulk,
  };
  return narrowed(scan, conditions, state);
}

/** Plans the lookup of one row by its key. Conditions that the key implies are not tested again. */
function planLookup(
  { columns, past, rowCount, table }: TableRelation,
  { conditions, lookup }: { conditions: readonly Condition[]; lookup: KeyAccess },
  state: PlanningState,
): PlanNode {
  const { key, said } = lookup;
  state.readers.close(said);
  const scan: PlanNode = {
    kind: "scan",
    table,
    columns: stillRead(columns, state),
    ranges: [],
    key,
    withTombstones: false,
    past,
    rowCount,
    isBulk: false,
  };
  const rest = conditions.filter((condition) => !said.includes(condition));
  return narrowed(scan, rest, state);
}

function isDeletedColumn({ origin }: BoundColumn): boolean {
  return origin?.columnId === DELETED_COLUMN_ID;
}
