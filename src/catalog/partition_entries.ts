/**
 * Defines the entries of partitions: their bounds, and what a partition has in addition to the
 * definitions that it shares with its table. A partition's own indexes, checks and DEFAULTs are
 * part of the table's entry, because the table contains the rows.
 */
import type { IndexCondition } from "./entries.ts";

/** The way in which a table, or one of its partitions, is partitioned. */
export interface Partitioning {
  readonly strategy: "hash" | "list" | "range";
  /** The partition keys. Their types are not stored, because they follow from the columns. */
  readonly keys: readonly PartitioningKey[];
}

/** A column or an expression whose value determines the partition of a row. */
export interface PartitioningKey extends IndexCondition {
  /** Whether the key is a column rather than an expression. */
  readonly isColumn: boolean;
}

/** The partitioning of an entire table. */
export interface TablePartitioning extends Partitioning {
  /**
   * A condition, as SQL text, that is true for the rows that some partition accepts; absent if
   * every row has a partition.
   */
  readonly accepts?: string;
}

/**
 * A partition bound for one key: a value as text, or "minvalue" or "maxvalue" if there is no bound
 * in that direction.
 */
export type PartitionValue = { readonly text: string } | "maxvalue" | "minvalue";

/** The bounds of a partition, which determine the rows that belong to it. */
export type StoredBounds =
  | { readonly kind: "default" }
  /** The key values of the partition's rows in text form; null represents NULL. */
  | { readonly kind: "list"; readonly values: readonly (string | null)[] }
  | {
      readonly kind: "range";
      /** The inclusive lower bound, with a value for each partition key. */
      readonly from: readonly PartitionValue[];
      /** The exclusive upper bound, with a value for each partition key. */
      readonly to: readonly PartitionValue[];
    }
  | { readonly kind: "hash"; readonly modulus: number; readonly remainder: number };

/** A partition: a name for the rows of a table whose keys are within certain bounds. */
export interface PartitionEntry {
  /** The id of the partitioned table, which contains the rows. */
  readonly tableId: number;
  /** The viewId of the parent partition; absent if the parent is the table itself. */
  readonly parentId?: number;
  readonly bound: StoredBounds;
  /** The way in which the partition itself is partitioned; absent if it is not. */
  readonly partitioned?: Partitioning;
  /**
   * The column ids in the partition's own column order; absent if it has the table's column order.
   */
  readonly columnIds?: readonly number[];
}

/** A CHECK or NOT NULL constraint that a single partition has in addition to those of its table. */
export interface PartitionCheck {
  /** The name of the constraint, unique among the checks of the partition and its table. */
  readonly name: string;
  /** The viewId of the partition. */
  readonly viewId: number;
  /** The condition for rows of the partition, as SQL text with column names. */
  readonly own: string;
  /**
   * The condition for all rows of the table, as SQL text: rows within the bound of the partition
   * must meet `own`.
   */
  readonly sql: string;
  /** The id of the column if the condition is that a column is NOT NULL; absent for a CHECK. */
  readonly notNull?: number;
  /** The comment set by COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
}

/** The partition to which an index is limited. */
export interface IndexedPartition {
  /** The viewId of the partition. */
  readonly viewId: number;
  /** The condition with which the index was defined; absent if it was defined without one. */
  readonly where?: IndexCondition;
}

/**
 * The name of an index, or of a constraint with an index, that belongs to a single partition. The
 * rows are found by an index of the table, which may serve any number of partitions.
 */
export interface PartitionIndex {
  readonly name: string;
  /** The namespace of the partition, which is also the namespace of the index. */
  readonly namespace: string;
  /** The viewId of the partition. */
  readonly viewId: number;
  /**
   * The id of the table's index; `KEY_INDEX_ID` for the primary key with which the table was
   * created.
   */
  readonly indexId: number;
  /** Whether the index was defined as a constraint. */
  readonly isConstraint: boolean;
  /** True if the index is the primary key of the partition. */
  readonly isPrimary?: true;
  /**
   * Whether the index is part of an index of the partition's parent, and is therefore dropped
   * together with that index.
   */
  readonly isAttached: boolean;
  /** The comment set by COMMENT ON; absent if there is none. */
  readonly comment?: string | undefined;
}

/** The DEFAULT of a column in a single partition. */
export interface PartitionDefault {
  /** The viewId of the partition. */
  readonly viewId: number;
  readonly columnId: number;
  /** The DEFAULT as SQL text; absent if the column has no DEFAULT in the partition. */
  readonly sql?: string;
}
