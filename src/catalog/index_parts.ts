/**
 * Describes a table's indexes and the parts of their keys, which are columns or expressions.
 */
import type { DataType, TermKind } from "../types/mod.ts";
import { keyNameOf } from "./declared_keys.ts";
import type { IndexEntry, TableEntry } from "./entries.ts";

/** A part of an index key: a column or an expression. */
export interface IndexPart {
  /** The id of the column, or the id that the index assigned to the expression. */
  readonly columnId: number;
  /** The name of the column, or the SQL text of the expression. */
  readonly name: string;
  readonly type: DataType;
  readonly isExpression: boolean;
  /** The kind of terms that an inverted index stores; undefined for any other index. */
  readonly terms: TermKind | undefined;
}

/** Returns the parts of an index key, in key order. */
export function indexPartsOf(
  { columns }: Pick<TableEntry, "columns">,
  { columnIds, expressions = [] }: Pick<IndexEntry, "columnIds" | "expressions">,
): readonly IndexPart[] {
  return columnIds.flatMap((id): IndexPart[] => {
    const computed = expressions.find(({ columnId }) => columnId === id);
    const part = computed ?? columns.find(({ columnId }) => columnId === id);
    if (part === undefined) return [];
    const name = "sql" in part ? part.sql : part.name;
    const isExpression = computed !== undefined;
    return [{ columnId: id, name, type: part.type, isExpression, terms: computed?.terms }];
  });
}

const OPERATOR_CLASSES: Readonly<Record<TermKind, string>> = {
  words: "tsvector_ops",
  trigrams: "gin_trgm_ops",
  document: "jsonb_ops",
  elements: "array_ops",
};

/** Returns the operator class that selects a kind of terms in CREATE INDEX. */
export function operatorClassOf(terms: TermKind): string {
  return OPERATOR_CLASSES[terms];
}

/**
 * Returns whether an index is inverted. An inverted index lists the rows that contain each term,
 * instead of sorting rows.
 */
export function isInverted({ expressions = [] }: Pick<IndexEntry, "expressions">): boolean {
  return expressions.some(({ terms }) => terms !== undefined);
}

/**
 * Returns whether an index enforces a constraint by refusing rows, as the index of a UNIQUE or
 * EXCLUDE constraint does.
 */
export function refusesRows({
  isExclusion,
  isUnique,
}: Pick<IndexEntry, "isExclusion" | "isUnique">): boolean {
  return isUnique || isExclusion === true;
}

/**
 * Returns whether an index depends on a column, either for its keys or for the selection of its
 * rows.
 */
export function dependsOn(
  { columnIds, expressions = [], where }: IndexEntry,
  columnId: number,
): boolean {
  return (
    columnIds.includes(columnId) ||
    expressions.some(({ reads }) => reads.includes(columnId)) ||
    where?.reads.includes(columnId) === true
  );
}

/**
 * Returns whether the values that an index stores under a column id are computed from several
 * columns.
 */
export function computesFrom(index: IndexEntry, columnId: number): boolean {
  const { columnIds, where } = index;
  return dependsOn(index, columnId) && (where !== undefined || !columnIds.includes(columnId));
}

/** The id that stands for the index in primary key order. No column or other index has this id. */
export const KEY_INDEX_ID = 0;

const keyIndexes = new WeakMap<TableEntry, IndexEntry | undefined>();

/**
 * Returns the indexes by which a table's rows can be found and sorted: the secondary indexes and,
 * if the primary key has several columns, an index in primary key order, which is not listed in
 * the catalog.
 */
export function readIndexesOf(table: TableEntry): readonly IndexEntry[] {
  const { indexes = [] } = table;
  if (!keyIndexes.has(table)) keyIndexes.set(table, keyIndexOf(table));
  const keyIndex = keyIndexes.get(table);
  return keyIndex === undefined ? indexes : [...indexes, keyIndex];
}

function keyIndexOf(table: TableEntry): IndexEntry | undefined {
  const { kind, primaryKey } = table;
  const name = keyNameOf(table);
  if (kind === "stream" || primaryKey.length < 2 || name === undefined) return undefined;
  return {
    indexId: KEY_INDEX_ID,
    name,
    columnIds: primaryKey,
    isUnique: false,
    isConstraint: false,
    state: "ready",
  };
}
