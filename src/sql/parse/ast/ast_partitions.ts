/** Defines the syntax tree of partitioned tables and their partitions. */
import type { AstNode, Name, QName, QNameAliased } from "./ast.ts";
import type { ColumnConstraint, IndexedColumn, IndexedExpression } from "./ast_definitions.ts";

export type PartitionStrategy = "hash" | "list" | "range";

/** A column or expression by which a table is partitioned, with its collation. */
export type PartitionByKey = Pick<IndexedColumn, "collation" | "part">;

/** The clause `PARTITION BY strategy (key, …)`. */
export interface PartitionBy extends AstNode {
  readonly strategy: PartitionStrategy;
  readonly keys: readonly PartitionByKey[];
}

/**
 * A value in a range bound of a partition. MINVALUE is below all values, and MAXVALUE is above all
 * values.
 */
export type RangeValue = IndexedExpression | "maxvalue" | "minvalue";

/** The bounds of a partition: `DEFAULT`, or `FOR VALUES …`. */
export type PartitionBounds = AstNode &
  (
    | { readonly kind: "default" }
    | { readonly kind: "list"; readonly values: readonly IndexedExpression[] }
    | {
        readonly kind: "range";
        readonly from: readonly RangeValue[];
        readonly to: readonly RangeValue[];
      }
    | { readonly kind: "hash"; readonly modulus: number; readonly remainder: number }
  );

/** A column of the table for which a partition has constraints or a DEFAULT of its own. */
export interface PartitionColumn extends AstNode {
  readonly name: Name;
  readonly constraints: readonly ColumnConstraint[];
}

/** The clause `PARTITION OF parent (column constraint …, …) bounds`. */
export interface PartitionOf {
  readonly parent: QName;
  readonly columns?: readonly PartitionColumn[] | undefined;
  readonly bounds: PartitionBounds;
}

/** The statement `ALTER TABLE t ATTACH PARTITION p bounds`. */
export interface AttachPartitionStatement extends AstNode {
  readonly type: "attach partition";
  readonly table: QNameAliased;
  readonly ifExists?: true | undefined;
  readonly partition: QName;
  readonly bounds: PartitionBounds;
}

/** The statement `ALTER TABLE t DETACH PARTITION p`. */
export interface DetachPartitionStatement extends AstNode {
  readonly type: "detach partition";
  readonly table: QNameAliased;
  readonly ifExists?: true | undefined;
  readonly partition: QName;
}

export type PartitionDefinition = AttachPartitionStatement | DetachPartitionStatement;
