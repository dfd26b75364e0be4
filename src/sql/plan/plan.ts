/**
 * Defines the plan of a query as a tree of plain data. `planner.ts` creates it from a bound query,
 * `sql/execute/build/build.ts` turns it into operators, and EXPLAIN prints it.
 *
 * Every node lists the columns that it yields, in order. Expressions refer to columns by id, and a
 * node may use only the columns of its inputs.
 */
import type { IndexEntry, TableEntry } from "../../catalog/mod.ts";
import type { TermKind, Value } from "../../types/mod.ts";
import type {
  BoundCte,
  BoundRecursion,
  BoundTableFunction,
  ChangesRead,
  GroupingSets,
  PastRead,
  SetOperator,
  SystemRows,
} from "../bind/bound.ts";
import type {
  BoundAggregate,
  BoundColumn,
  BoundExpression,
  BoundSort,
  BoundWindowCall,
  ConstantRows,
  OuterReference,
} from "../bind/bound_expressions.ts";
import type { TermOperator } from "../functions/search/terms.ts";

/**
 * Bounds on a stored column, as expressions that read no columns. If a bound is NULL, no value of
 * the column is within the bounds.
 */
export interface PlannedRange {
  readonly columnId: number;
  readonly min: BoundExpression | undefined;
  readonly max: BoundExpression | undefined;
  /** A LIKE pattern with a fixed prefix, which bounds the values of the column. */
  readonly like?: BoundExpression | undefined;
  /** A prefix of all matching strings. */
  readonly beginning?: BoundExpression | undefined;
}

/** The possible values of a key column. */
export interface KeyPart {
  readonly items: readonly BoundExpression[];
  /** Further possible values of the key column, as constants. */
  readonly constants: readonly Value[];
  /**
   * Arrays of further possible values of the key column. Their lengths are known only at run time.
   */
  readonly lists: readonly BoundExpression[];
  /**
   * Present if the key column must be NULL. In this case, no values are listed, because a NULL in
   * a list of values matches no row.
   */
  readonly isNull?: true;
}

/**
 * Alternatives for the key of a row. An alternative represents all combinations of the values of
 * its parts, which are in key order.
 */
export type SoughtKeys = readonly (readonly KeyPart[])[];

/** The lower or upper end of a range of index keys. */
export interface IndexEdge {
  readonly side: "min" | "max";
  /**
   * The bound's values for the index columns after those with listed values. If a value is NULL,
   * no key satisfies the bound.
   */
  readonly values: readonly BoundExpression[];
  /** Whether the range includes keys that start with exactly the values of this bound. */
  readonly isInclusive: boolean;
}

/** A condition by which an inverted index finds rows. */
export interface TermCondition {
  /** The position of the searched column in the index, counted from 0. */
  readonly part: number;
  readonly kind: TermKind;
  readonly operator: TermOperator;
  readonly value: BoundExpression;
}

/** The keys that matching rows may have in an index. */
export interface IndexAccess {
  readonly index: IndexEntry;
  /**
   * The possible values of the leading index columns. Every alternative has the same number of
   * columns. If no column has listed values, there is a single alternative without parts.
   */
  readonly keys: SoughtKeys;
  /** The bounds on the index columns after those with listed values. The tightest bounds apply. */
  readonly edges: readonly IndexEdge[];
  /** The prefixes of the strings in the index column after those with listed values. */
  readonly beginnings: readonly Pick<PlannedRange, "like" | "beginning">[];
  /**
   * Conditions on the slots of an execution. If any of them is not true, the execution cannot use
   * the index.
   */
  readonly guards: readonly BoundExpression[];
  /**
   * Whether the index lacks the rows with NULL in its first column. When rows are read in index
   * order, these rows come last.
   */
  readonly endsAtNull: boolean;
  /** The conditions by which an inverted index finds rows; absent for a sorted index. */
  readonly terms?: readonly TermCondition[] | undefined;
}

/** A way to find rows: through an index or, if `index` is undefined, by the primary key. */
export type RowAccess = IndexAccess | { readonly index: undefined; readonly keys: SoughtKeys };

export interface ScanNode {
  readonly kind: "scan";
  readonly table: TableEntry;
  readonly columns: readonly BoundColumn[];
  /**
   * Bounds on columns that the filter above the scan implies. They serve only to skip row groups.
   */
  readonly ranges: readonly PlannedRange[];
  /**
   * The bounds on string columns. They are used only by scans that find rows through a sort order,
   * because row groups record no bounds for strings.
   */
  readonly textRanges?: readonly PlannedRange[] | undefined;
  /**
   * The values of all primary key columns, if the filter above the scan determines them. The scan
   * is then a lookup of a single row.
   */
  readonly key: readonly BoundExpression[] | undefined;
  /**
   * All primary keys that the filter above the scan accepts; absent if there are so many that a
   * scan is faster than lookups.
   */
  readonly sought?: SoughtKeys | undefined;
  /**
   * All values of the first key column that the filter above the scan accepts; absent if the
   * filter lists complete keys.
   */
  readonly prefix?: readonly KeyPart[] | undefined;
  /**
   * The indexes through which rows can be found, most promising first. An execution uses the index
   * with the fewest matching rows, or none if every index has too many.
   */
  readonly indexes?: readonly IndexAccess[] | undefined;
  /**
   * An access for each alternative of an OR. An execution may use all these accesses together
   * instead of a single index.
   */
  readonly either?: readonly RowAccess[] | undefined;
  readonly withTombstones: boolean;
  /** The earlier point in time at which the table is read; absent for the current rows. */
  readonly past?: PastRead | undefined;
  /** Returns the table's current number of rows, for all owners together. */
  readonly rowCount: () => number;
  /** Whether to read entire row groups at a time, which is fastest if all rows are needed. */
  readonly isBulk: boolean;
  /**
   * Whether an execution reads only its share of the row groups, because the query is divided
   * among readers.
   */
  readonly isDivided?: boolean;
}

export interface JoinNode {
  readonly kind: "join";
  /**
   * The type of join. A semi join yields the left rows that have a match, and an anti join yields
   * the left rows without a match.
   */
  readonly join: "inner" | "left" | "full" | "semi" | "anti";
  /**
   * The left side of the join. It is streamed, unless the join keeps it in memory and streams the
   * right side.
   */
  readonly left: PlanNode;
  readonly right: PlanNode;
  /**
   * The join keys of the left side, which must equal the corresponding keys of the right side. A
   * join without keys is a nested loop.
   */
  readonly leftKeys: readonly BoundExpression[];
  readonly rightKeys: readonly BoundExpression[];
  /** The rest of the join condition, which may read columns of both sides. */
  readonly residual: BoundExpression | undefined;
  /** For a semi or anti join: whether the left side is expected to be the smaller side. */
  readonly holdsLeft?: boolean;
  /** Whether an error on the right side is raised only if some left row needs the right side. */
  readonly isGuarded?: boolean;
  /** The columns of both sides that the nodes above read. */
  readonly columns: readonly BoundColumn[];
}

/** A join whose right side contains outer references and therefore runs once for each left row. */
export interface LateralNode {
  readonly kind: "lateral";
  readonly join: "inner" | "left";
  readonly left: PlanNode;
  readonly right: PlanNode;
  readonly outerReferences: readonly OuterReference[];
  readonly condition: BoundExpression | undefined;
  readonly columns: readonly BoundColumn[];
}

export interface AggregateNode {
  readonly kind: "aggregate";
  readonly input: PlanNode;
  readonly groupBy: readonly { column: BoundColumn; expression: BoundExpression }[];
  /**
   * The grouping sets of GROUP BY. If there are any, a column with the index of the grouping set
   * precedes the grouping columns.
   */
  readonly groupingSets: GroupingSets | undefined;
  readonly aggregates: readonly BoundAggregate[];
  readonly columns: readonly BoundColumn[];
}

/** Expands each input row by the rows of table functions, combined side by side. */
export interface ExpandNode {
  readonly kind: "expand";
  readonly input: PlanNode;
  readonly functions: readonly BoundTableFunction[];
  /** The columns of the input, followed by the columns of each function. */
  readonly columns: readonly BoundColumn[];
}

/** Window calls with the same partitions and order, which therefore share one sort. */
export interface WindowNode {
  readonly kind: "window";
  readonly input: PlanNode;
  readonly calls: readonly BoundWindowCall[];
  /** The input columns that the nodes above need, followed by the columns of the calls. */
  readonly columns: readonly BoundColumn[];
}

export type PlanNode =
  | ScanNode
  | WindowNode
  | JoinNode
  | LateralNode
  | AggregateNode
  | ExpandNode
  /** A single row without columns, for SELECT without FROM. */
  | { readonly kind: "single"; readonly columns: readonly BoundColumn[] }
  | {
      readonly kind: "system";
      readonly name: string;
      readonly source: SystemRows;
      /** For each column of the node, its index in the rows of the source. */
      readonly positions: readonly number[];
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "values";
      readonly rows: readonly (readonly BoundExpression[])[];
      /**
       * The values of the rows, if all of them are constants. They replace the row expressions.
       */
      readonly constants?: ConstantRows | undefined;
      /** The unsatisfiable condition, if such a condition is the reason why there are no rows. */
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
      /** The changes to a table between two seqs. */
      readonly kind: "changes";
      readonly changes: ChangesRead;
      /** For each column of the node, its position among all columns of a change. */
      readonly positions: readonly number[];
      readonly columns: readonly BoundColumn[];
    }
  | {
      /** The rows of a WITH entry, which are computed once per run. */
      readonly kind: "cte";
      readonly cte: BoundCte;
      /** Returns the plan that computes the rows. Every call returns the same object. */
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
      /** The rows that several readers return after each has run its part of a divided query. */
      readonly kind: "gathered";
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "set";
      readonly operator: SetOperator;
      readonly isAll: boolean;
      /**
       * The left side of a set operation. Each side yields as many columns as the set operation,
       * with the same types.
       */
      readonly left: PlanNode;
      readonly right: PlanNode;
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "filter";
      readonly input: PlanNode;
      readonly condition: BoundExpression;
      /**
       * Whether an error in a condition that is the same for all rows is raised even if there are
       * no rows.
       */
      readonly raisesAlways?: true;
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
      /** The expressions by which rows are grouped. The node keeps the first row of each group. */
      readonly on: readonly BoundExpression[];
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "sort";
      readonly input: PlanNode;
      readonly keys: readonly BoundSort[];
      /**
       * The number of rows needed from the start of the sort order; undefined if all rows are
       * needed.
       */
      readonly limit: BoundExpression | undefined;
      readonly offset: BoundExpression | undefined;
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "limit";
      readonly input: PlanNode;
      readonly limit: BoundExpression | undefined;
      readonly offset: BoundExpression | undefined;
      /**
       * The sort keys of WITH TIES. After the last row, further rows are kept as long as they are
       * equal to it in these keys.
       */
      readonly ties: readonly BoundSort[] | undefined;
      readonly columns: readonly BoundColumn[];
    };
