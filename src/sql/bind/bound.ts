/**
 * The bound form of a statement: names are resolved to columns, every operator has its types, casts
 * are explicit, and the required rights are listed.
 *
 * A column has an id that is unique within its query; the plan decides where its values are in a
 * batch. Expressions are in `bound_expressions.ts`.
 */
import type { TokenScope } from "../../auth/mod.ts";
import type { PolicyEntry, Role, TableEntry, ViewRights } from "../../catalog/mod.ts";
import type { DataType, Row, Value } from "../../types/mod.ts";
import type {
  BoundAggregate,
  BoundColumn,
  BoundExpression,
  BoundSort,
  BoundWindowCall,
  ConstantRows,
  OuterReference,
} from "./bound_expressions.ts";

/** The owner of a view whose query runs with the rights of the owner. */
export interface ViewOwner {
  readonly userId: string;
  /** The name of the view, as "namespace.name". */
  readonly view: string;
}

/** A right that a statement needs. It is checked at every execution. */
export type Requirement =
  | {
      readonly action: "read" | "read-history" | "write";
      readonly table: TableEntry;
      /** The user who needs the right; absent for the caller. */
      readonly viewOwner?: ViewOwner | undefined;
      /** The function whose text needs the right; absent if the statement itself needs it. */
      readonly routine?: string;
    }
  /**
   * The right to read or write the rows that these policies permit, or all rows of the table if
   * `policies` is undefined.
   */
  | {
      readonly action: "rows";
      readonly table: TableEntry;
      readonly policies: readonly PolicyEntry[] | undefined;
      /** The user to whom the policies apply; absent for the caller. */
      readonly viewOwner?: ViewOwner | undefined;
    }
  /**
   * A policy reads the table. It does so with the rights of its owner, so the caller needs no
   * right.
   */
  | { readonly action: "policy-read"; readonly table: TableEntry }
  /**
   * The right to read the view itself, in addition to the rights that the query of the view needs.
   */
  | {
      readonly action: "read-view";
      readonly name: string;
      readonly namespace: string;
      readonly ownRights: ViewRights | undefined;
      /** The user who needs the right; absent for the caller. */
      readonly viewOwner?: ViewOwner | undefined;
      /** The function whose text needs the right; absent if the statement itself needs it. */
      readonly routine?: string;
    }
  /** The right to read a system view, whose name includes the namespace. */
  | { readonly action: "read-system"; readonly name: string; readonly view: SystemView }
  /** The right to generate an id, which every user has. */
  | { readonly action: "take-id" }
  | { readonly action: "sleep"; readonly position: number }
  /** The right to call a function for advisory locks, which every user has. */
  | { readonly action: "advisory-lock"; readonly name: string; readonly position: number }
  /** A call of a program, which only the event loop can run. */
  | { readonly action: "call-program"; readonly name: string; readonly position: number };

/** The rows of VALUES. */
export interface BoundRows {
  readonly rows: readonly (readonly BoundExpression[])[];
  /** The values of the rows if all of them are constants; used in place of the expressions. */
  readonly constants: ConstantRows | undefined;
  /** The type of each output column. */
  readonly types: readonly DataType[];
}

/** A table that is read as of an earlier time, with FOR SYSTEM_TIME AS OF. */
export interface PastRead {
  /** The position of a past read in the statement's list of past reads. */
  readonly index: number;
  readonly table: TableEntry;
  /** The seq or the time as of which the table is read; the expression reads no columns. */
  readonly moment: BoundExpression;
  /** Whether the seq may lie in the middle of a commit. True if it is a position among changes. */
  readonly isExact?: boolean;
}

/** The changes to a table above one seq and up to another. */
export interface ChangesRead {
  /** The table, and the seq above which its changes are read. */
  readonly past: PastRead;
  /** The last seq, as an expression without columns; undefined for the seq of the snapshot. */
  readonly upTo: BoundExpression | undefined;
}

/** A relation that FROM names or computes. */
export type BoundRelation =
  | {
      readonly kind: "table";
      readonly table: TableEntry;
      /** Returns the current number of rows, across all owners; called only to order joins. */
      readonly rowCount: () => number;
      /** Returns the estimated number of distinct values in a column, if known. */
      readonly distinctOf: (columnId: number) => number | undefined;
      /** The earlier time as of which the table is read; absent if the newest rows are read. */
      readonly past?: PastRead | undefined;
      /** The condition under which policies permit a row; absent if they permit every row. */
      readonly rule?: BoundExpression | undefined;
      readonly alias: string;
      /** The columns of a relation: the declared ones, followed by `_seq` and `_deleted`. */
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "system";
      readonly source: SystemRows;
      readonly name: string;
      readonly alias: string;
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "query";
      readonly query: BoundSelect;
      /** Whether the query is a WITH entry that is bound again at the place where it is read. */
      readonly isEntry?: true;
      readonly alias: string;
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "values";
      readonly rows: readonly (readonly BoundExpression[])[];
      readonly constants?: ConstantRows | undefined;
      readonly alias: string;
      readonly columns: readonly BoundColumn[];
    }
  | {
      /** The rows of table functions that run side by side, as in ROWS FROM. */
      readonly kind: "function";
      readonly functions: readonly BoundTableFunction[];
      /** Whether an additional last column contains the row number, counted from 1. */
      readonly hasOrdinality: boolean;
      readonly alias: string;
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "cte";
      readonly cte: BoundCte;
      readonly alias: string;
      readonly columns: readonly BoundColumn[];
    }
  | {
      /**
       * The result of a recursive query: the rows of `first`, followed by the rows that `next`
       * derives from the rows of the previous step, until a step yields none.
       */
      readonly kind: "recursive";
      readonly recursion: BoundRecursion;
      readonly isAll: boolean;
      readonly first: BoundSelect;
      readonly next: BoundSelect;
      readonly alias: string;
      readonly columns: readonly BoundColumn[];
    }
  | {
      /** The rows of the previous step of a recursive query, read within `next`. */
      readonly kind: "working";
      readonly recursion: BoundRecursion;
      readonly alias: string;
      readonly columns: readonly BoundColumn[];
    }
  | {
      /** The changes to a table: changes('ns.t', from_seq, to_seq). */
      readonly kind: "changes";
      readonly changes: ChangesRead;
      readonly alias: string;
      readonly columns: readonly BoundColumn[];
    }
  | {
      /** A set operation on two queries with the same column types. */
      readonly kind: "set";
      readonly operator: SetOperator;
      readonly isAll: boolean;
      readonly left: BoundSelect;
      readonly right: BoundSelect;
      readonly alias: string;
      readonly columns: readonly BoundColumn[];
    };

/** A call of a table function. */
export interface BoundTableFunction {
  readonly name: string;
  readonly args: readonly BoundExpression[];
  /**
   * Whether the function is called even if an argument is NULL. Otherwise such a call yields no
   * rows.
   */
  readonly seesNull: boolean;
  /** The number of columns of the relation. */
  readonly width: number;
  /** The number of rows, if it is known. */
  readonly rowCount?: number;
  readonly rows: (values: readonly Value[]) => Iterable<Row>;
}

/**
 * Calls of table functions in a select list or a similar clause. The calls run side by side: each
 * input row expands to as many rows as the longest call returns, and the results of shorter calls
 * are filled with NULL.
 */
export interface BoundExpansion {
  readonly stage: ExpansionStage;
  readonly functions: readonly BoundTableFunction[];
  /** The output columns, one for each function. */
  readonly columns: readonly BoundColumn[];
}

/**
 * When the expansion happens: before grouping, before windows, before DISTINCT and ORDER BY, or
 * after all of these and before LIMIT.
 */
export type ExpansionStage = "grouping" | "windows" | "outputs" | "order";

/** A query that WITH names. */
export interface BoundCte {
  readonly name: string;
  readonly query: BoundSelect;
  /**
   * Whether the rows of the entry must be computed exactly once, even if the entry is read several
   * times.
   */
  readonly isKept: boolean;
  readonly isVolatile: boolean;
  /** True if the rows depend on columns of an outer query. */
  readonly readsOuter: boolean;
  /** The number of times that FROM refers to the entry; complete once the statement is bound. */
  readonly references: { count: number };
}

/** Identifies a recursive query, so that its working table can be found at run time. */
export interface BoundRecursion {
  readonly name: string;
}

export type SetOperator = "union" | "intersect" | "except";

/** A view in the namespace system or information_schema. */
export interface SystemView {
  readonly columns: readonly { readonly name: string; readonly type: DataType }[];
  readonly rows: SystemRows;
  /** Whether every role may read the view, restricted to the rows that the caller may see. */
  readonly isOpen: boolean;
}

/**
 * Yields the rows of a system view that the caller may see, with columns in declared order. The
 * rows come in portions, each of which is computed on demand with a bounded amount of work.
 */
export type SystemRows = (call: SystemCall) => Iterable<readonly (readonly Value[])[]>;

/** The caller that reads a system view, and the columns that the call needs. */
export interface SystemCall {
  readonly userId: string;
  readonly role: Role;
  /**
   * Whether the call runs inside EXECUTE AS, where the caller has no rights as the owner of a
   * namespace.
   */
  readonly isImpersonated: boolean;
  /** The limits of the service token that the caller uses. */
  readonly tokenScope?: TokenScope | undefined;
  /** The positions of the columns to return. The view need not compute the other columns. */
  readonly positions: readonly number[];
}

export type BoundFrom =
  | { readonly kind: "relation"; readonly relation: BoundRelation }
  | {
      readonly kind: "join";
      readonly join: "inner" | "left" | "full" | "cross";
      readonly left: BoundFrom;
      readonly right: BoundFrom;
      readonly condition: BoundExpression | undefined;
      /**
       * For a full join: the columns that USING or NATURAL merges. Each takes its value from the
       * side that has a row.
       */
      readonly merged?: readonly { column: BoundColumn; expression: BoundExpression }[] | undefined;
      /** For LATERAL: the values of each left row that the right side reads. */
      readonly outerReferences?: readonly OuterReference[] | undefined;
      /**
       * For LATERAL: a form of the right side that computes its rows from groups, once for all rows
       * of the left side. This form has the same columns as the right side and no outer references.
       */
      readonly asGroups?: JoinedGroups | undefined;
      /**
       * True if the right side computes expressions over columns of the left side. Only plans
       * contain such joins.
       */
      readonly isBeside?: true;
    };

export type BoundJoin = Extract<BoundFrom, { kind: "join" }>;

/**
 * A LATERAL join rewritten as a join of the left side with groups, and the outputs that replace the
 * right side.
 */
export interface JoinedGroups extends BoundJoin {
  readonly left: BoundJoin;
}

export interface BoundOutput {
  readonly name: string;
  readonly expression: BoundExpression;
}

export interface GroupingSets {
  /**
   * The positions in `groupBy` of the expressions of each set. In the rows of a set, all other
   * grouping expressions are NULL.
   */
  readonly sets: readonly (readonly number[])[];
  /** The column that contains the index of the set to which a row belongs. */
  readonly column: BoundColumn;
}

/** One SELECT block. */
export interface BoundSelect {
  readonly from: BoundFrom | undefined;
  readonly where: BoundExpression | undefined;
  /** Grouping expressions, with the columns through which later clauses read them. */
  readonly groupBy: readonly { column: BoundColumn; expression: BoundExpression }[];
  /** For GROUPING SETS, ROLLUP and CUBE: the rows are grouped once for each set. */
  readonly groupingSets: GroupingSets | undefined;
  readonly aggregates: readonly BoundAggregate[];
  /**
   * Whether the block aggregates. HAVING alone makes a block aggregate even if both lists are
   * empty.
   */
  readonly isAggregated: boolean;
  readonly having: BoundExpression | undefined;
  readonly windows: readonly BoundWindowCall[];
  /**
   * The expansions of the block, in execution order. An expansion may read the results of earlier
   * ones, even in the same stage.
   */
  readonly expansions: readonly BoundExpansion[];
  readonly outputs: readonly BoundOutput[];
  readonly distinct: "none" | "all" | { readonly on: readonly BoundExpression[] };
  readonly orderBy: readonly BoundSort[];
  readonly limit: BoundExpression | undefined;
  readonly offset: BoundExpression | undefined;
  readonly withTies: boolean;
}
