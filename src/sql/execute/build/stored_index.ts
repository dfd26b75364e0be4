/** Translates an index's catalog entry into the store's definition of the index. */
import {
  type IndexEntry,
  indexPartsOf,
  KEY_INDEX_ID,
  readIndexesOf,
  type TableEntry,
} from "../../../catalog/mod.ts";
import type { StoredExpression, StoredIndex } from "../../../storage/mod.ts";
import { nameText } from "../../parse/print/print_expressions.ts";

/** Returns the store's definitions of a table's indexes; undefined if the table has none. */
export function storedIndexesOf(table: TableEntry): readonly StoredIndex[] | undefined {
  const indexes = readIndexesOf(table).map((index) => storedIndexOf(table, index));
  return indexes.length === 0 ? undefined : indexes;
}

/** Returns the store's definition of an index. */
export function storedIndexOf(table: Pick<TableEntry, "columns">, index: IndexEntry): StoredIndex {
  const { columnIds, enforcedSeq, equalNulls, indexId, isExclusion, isUnique, name, state } = index;
  const expressions = storedExpressionsOf(table, index);
  return {
    indexId,
    name,
    columnIds,
    ...(expressions.length === 0 ? {} : { expressions }),
    isUnique,
    ...(equalNulls === true && { equalNulls }),
    ...(isExclusion === true && { isExclusion }),
    state,
    ...(indexId === KEY_INDEX_ID && { isOptional: true }),
    enforcedSeq,
  };
}

/**
 * Returns the computed key parts of an index. A partial index also lists the rows that do not meet
 * its condition, with NULL in every part of their keys.
 */
function storedExpressionsOf(
  table: Pick<TableEntry, "columns">,
  index: IndexEntry,
): readonly StoredExpression[] {
  const { expressions = [], where } = index;
  return indexPartsOf(table, index).flatMap(({ columnId, name, type }): StoredExpression[] => {
    const expression = expressions.find((each) => each.columnId === columnId);
    if (expression === undefined && where === undefined) return [];
    const value = expression === undefined ? nameText(name) : `(${expression.sql}\n)`;
    const readIds = new Set([...(expression?.reads ?? [columnId]), ...(where?.reads ?? [])]);
    const sql = where === undefined ? value : `CASE WHEN (${where.sql}\n) THEN ${value} END`;
    const terms = expression?.terms;
    const stored = { columnId, name, sql, type, readIds: [...readIds] };
    return [terms === undefined ? stored : { ...stored, terms }];
  });
}
