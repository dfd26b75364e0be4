/**
 * The plan of a query: a tree of what to do, as plain data. `planner.ts` makes it from a bound
 * query, `sql/execute/build/build.ts` turns it into operators, EXPLAIN prints it.
 *
 * Every node lists the columns that it yields, in order; expressions name columns by id, and a node
 * may use only the columns of its inputs.
 */
import type { TableEntry } from "../../catalog/mod.ts";
import type { Value } from "../../types/mod.ts";
import type {
  BoundCte,
  BoundRecursion,
  BoundTableFunction,
  GroupingSets,
  SetOperator,
  SystemRows,
} from "../bind/bound.ts";
import type {
  BoundAggregate,
  BoundCapture,
  BoundColumn,
  BoundExpression,
  BoundSort,
  BoundWindowCall,
  ConstantRows,
} from "../bind/bound_expressions.ts";

/** Bounds on a stored column, as expressions without columns; NULL matches nothing. */
export interface PlannedRange {
  readonly columnId: number;
  readonly min: BoundExpression | undefined;
  readonly max: BoundExpression | undefined;
  /** A pattern of LIKE, which bounds by how it begins. */
  readonly like?: BoundExpression | undefined;
}

/** The values that a column of a key may have. */
export interface KeyPart {
  readonly items: readonly BoundExpression[];
  /** Further values. */
  readonly constants: readonly Value[];
  /** Arrays of further values, whose lengths are known only at run time. */
  readonly lists: readonly BoundExpression[];
}

/** Keys, as alternatives: of each all combinations of its parts, which stand in key order. */
export type SoughtKeys = readonly (readonly KeyPart[])[];

export interface ScanNode {
  readonly kind: "scan";
  readonly table: TableEntry;
  readonly columns: readonly BoundColumn[];
  /** Bounds that the filter above implies; they only let the scan skip row groups. */
  readonly ranges: readonly PlannedRange[];
  /** The same of text, for who finds rows by their order: there are no bounds of its row groups. */
  readonly textRanges?: readonly PlannedRange[] | undefined;
  /** Values of the whole primary key, when the filter fixes it: a lookup instead of a scan. */
  readonly key: readonly BoundExpression[] | undefined;
  /** All keys that the filter above accepts; absent if there are as many keys as rows. */
  readonly sought?: SoughtKeys | undefined;
  /** All values of the first key column, if the whole key is not listed. */
  readonly prefix?: readonly KeyPart[] | undefined;
  readonly withTombstones: boolean;
  /** How many rows the table has now, over all owners. */
  readonly rowCount: () => number;
  /** Whole row groups at a time: what reads everything anyway is fastest so. */
  readonly isBulk: boolean;
  /** Only the row groups are read that the run has of a query that several readers divide. */
  readonly isDivided?: boolean;
}

export interface JoinNode {
  readonly kind: "join";
  /** A semi join passes left rows that have a partner, an anti join those that have none. */
  readonly join: "inner" | "left" | "full" | "semi" | "anti";
  /** Streams, unless it is held; then the right side streams. */
  readonly left: PlanNode;
  readonly right: PlanNode;
  /** Pairwise equal; none makes it a nested loop. */
  readonly leftKeys: readonly BoundExpression[];
  readonly rightKeys: readonly BoundExpression[];
  /** What must hold besides, over both sides. */
  readonly residual: BoundExpression | undefined;
  /** Of a semi or anti join: its left side is expected to be the smaller one. */
  readonly holdsLeft?: boolean;
  /** A fault of the right side is one of the statement only if a left row asks for it. */
  readonly isGuarded?: boolean;
  /** Those of both sides that are read above. */
  readonly columns: readonly BoundColumn[];
}

/** A join whose right side is planned over captures and run for each row of the left one. */
export interface LateralNode {
  readonly kind: "lateral";
  readonly join: "inner" | "left";
  readonly left: PlanNode;
  readonly right: PlanNode;
  readonly captures: readonly BoundCapture[];
  readonly condition: BoundExpression | undefined;
  readonly columns: readonly BoundColumn[];
}

export interface AggregateNode {
  readonly kind: "aggregate";
  readonly input: PlanNode;
  readonly groupBy: readonly { column: BoundColumn; expression: BoundExpression }[];
  /** Its column is the first one, before those of the groups. */
  readonly groupingSets: GroupingSets | undefined;
  readonly aggregates: readonly BoundAggregate[];
  readonly columns: readonly BoundColumn[];
}

/** Joins each input row with the rows of table functions, which run side by side. */
export interface ExpandNode {
  readonly kind: "expand";
  readonly input: PlanNode;
  readonly functions: readonly BoundTableFunction[];
  /** The columns of the input, followed by the columns of each function. */
  readonly columns: readonly BoundColumn[];
}

/** Calls over windows with the same partitions and order: one sort serves them all. */
export interface WindowNode {
  readonly kind: "window";
  readonly input: PlanNode;
  readonly calls: readonly BoundWindowCall[];
  /** Columns of the input that are read above, then those of the calls. */
  readonly columns: readonly BoundColumn[];
}

export type PlanNode =
  | ScanNode
  | WindowNode
  | JoinNode
  | LateralNode
  | AggregateNode
  | ExpandNode
  /** One row without columns: SELECT without FROM. */
  | { readonly kind: "single"; readonly columns: readonly BoundColumn[] }
  | {
      readonly kind: "system";
      readonly name: string;
      readonly source: SystemRows;
      /** Positions in the source's rows, for each column. */
      readonly positions: readonly number[];
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "values";
      readonly rows: readonly (readonly BoundExpression[])[];
      /** In place of the rows. */
      readonly constants?: ConstantRows | undefined;
      /** The condition that no row satisfies, if that is why there are no rows. */
      readonly never?: BoundExpression | undefined;
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "function";
      readonly functions: readonly BoundTableFunction[];
      readonly hasOrdinality: boolean;
      readonly columns: readonly BoundColumn[];
    }
  | {
      /** Rows of a WITH entry that are computed once a run. */
      readonly kind: "cte";
      readonly cte: BoundCte;
      /** Plans the rows; every call returns the same plan. */
      readonly source: () => PlanNode;
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "recursive";
      readonly recursion: BoundRecursion;
      readonly isAll: boolean;
      readonly first: PlanNode;
      readonly next: PlanNode;
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "working";
      readonly recursion: BoundRecursion;
      readonly columns: readonly BoundColumn[];
    }
  | {
      /** Rows that several readers have yielded, each from its part of a divided query. */
      readonly kind: "gathered";
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "set";
      readonly operator: SetOperator;
      readonly isAll: boolean;
      /** Both yield as many columns as this node, of the same types. */
      readonly left: PlanNode;
      readonly right: PlanNode;
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "filter";
      readonly input: PlanNode;
      readonly condition: BoundExpression;
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "project";
      readonly input: PlanNode;
      readonly expressions: readonly BoundExpression[];
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "distinct";
      readonly input: PlanNode;
      /** What must differ; the first row of each group is kept. */
      readonly on: readonly BoundExpression[];
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "sort";
      readonly input: PlanNode;
      readonly keys: readonly BoundSort[];
      /** Only this many first rows are needed. */
      readonly limit: BoundExpression | undefined;
      readonly offset: BoundExpression | undefined;
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "limit";
      readonly input: PlanNode;
      readonly limit: BoundExpression | undefined;
      readonly offset: BoundExpression | undefined;
      /** WITH TIES: rows equal to the last one in these keys follow. */
      readonly ties: readonly BoundSort[] | undefined;
      readonly columns: readonly BoundColumn[];
    };
