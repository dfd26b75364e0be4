/**
 * The bound form of a statement: names are resolved to columns, every operator has its types,
 * casts are explicit, and the required rights are listed.
 *
 * A column's id is unique within its query. The plan decides where the column's values are in a
 * batch. Expressions are defined in `bound_expressions.ts`.
 */
import type { TokenScope } from "../../auth/mod.ts";
import type { PolicyEntry, Role, TableEntry, ViewRights } from "../../catalog/mod.ts";
import type { DataType, Row, Value } from "../../types/mod.ts";
import type { Name } from "../parse/ast/ast.ts";
import type {
  BoundAggregate,
  BoundColumn,
  BoundExpression,
  BoundSort,
  BoundWindowCall,
  ConstantRows,
  OuterReference,
} from "./bound_expressions.ts";

/** The owner of a view. The view's query runs with the owner's rights. */
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
      /** The user who needs the right; absent if it is the caller. */
      readonly viewOwner?: ViewOwner | undefined;
      /** The function whose body needs the right; absent if the statement itself needs it. */
      readonly routine?: string;
    }
  /**
   * The right to read or write the rows that the given policies permit, or all rows of the table
   * if `policies` is undefined.
   */
  | {
      readonly action: "rows";
      readonly table: TableEntry;
      readonly policies: readonly PolicyEntry[] | undefined;
      /** The user to whom the policies apply; absent if it is the caller. */
      readonly viewOwner?: ViewOwner | undefined;
    }
  /** A policy reads the table with the rights of the policy's owner, so the caller needs none. */
  | { readonly action: "policy-read"; readonly table: TableEntry }
  /** The right to read the view itself, in addition to the rights required by the view's query. */
  | {
      readonly action: "read-view";
      readonly name: string;
      readonly namespace: string;
      readonly ownRights: ViewRights | undefined;
      /** The user who needs the right; absent if it is the caller. */
      readonly viewOwner?: ViewOwner | undefined;
      /** The function whose body needs the right; absent if the statement itself needs it. */
      readonly routine?: string;
    }
  /** The right to read a system view. `name` includes the namespace. */
  | { readonly action: "read-system"; readonly name: string; readonly view: SystemView }
  /** The right to generate an id, which every user has. */
  | { readonly action: "take-id" }
  | { readonly action: "sleep"; readonly position: number }
  /** The right to call a function for advisory locks, which every user has. */
  | { readonly action: "advisory-lock"; readonly name: string; readonly position: number }
  /** A call to a program. Only the event loop can run it. */
  | { readonly action: "call-program"; readonly name: string; readonly position: number };

/** The rows of a VALUES list. */
export interface BoundRows {
  readonly rows: readonly (readonly BoundExpression[])[];
  /** The values of the rows if all of them are constants; used in place of the expressions. */
  readonly constants: ConstantRows | undefined;
  /** The type of each output column. */
  readonly types: readonly DataType[];
}

/** A table read as of an earlier time, with FOR SYSTEM_TIME AS OF. */
export interface PastRead {
  /** The index of this entry in the statement's list of past reads. */
  readonly index: number;
  readonly table: TableEntry;
  /** The seq or the time as of which the table is read. The expression must not read columns. */
  readonly moment: BoundExpression;
  /**
   * Whether the seq may lie in the middle of a commit, because it is a position among the changes
   * to a table.
   */
  readonly isExact?: boolean;
}

/** The changes to a table above one seq and up to another. */
export interface ChangesRead {
  /** The table, and the seq above which its changes are read. */
  readonly past: PastRead;
  /**
   * The last seq to read, as an expression without columns; undefined to read up to the snapshot.
   */
  readonly upTo: BoundExpression | undefined;
}

/** The current row of a cursor, as a statement refers to it. */
export interface CursorRow {
  readonly cursor: Name;
  readonly table: TableEntry;
  /** The first of the slots that hold the key of the row. */
  readonly slot: number;
}

/** A relation in FROM, either named or computed. */
export type BoundRelation =
  | {
      readonly kind: "table";
      readonly table: TableEntry;
      /** Returns the current number of rows across all owners. Called only to order joins. */
      readonly rowCount: () => number;
      /** Returns the estimated number of distinct values in a column; undefined if unknown. */
      readonly distinctOf: (columnId: number) => number | undefined;
      /** The past read of the table; absent if the newest rows are read. */
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
      /** Whether the query is a WITH entry that is bound again wherever it is read. */
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
      /** The rows of table functions called side by side, as in ROWS FROM. */
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
       * derives from the rows of the previous step, until a step yields no rows.
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
      /** The rows of the previous step of a recursive query. Only `next` reads them. */
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

/** A call to a table function. */
export interface BoundTableFunction {
  readonly name: string;
  readonly args: readonly BoundExpression[];
  /**
   * Whether the function is called even if an argument is NULL. Otherwise, a call with a NULL
   * argument yields no rows.
   */
  readonly seesNull: boolean;
  /** How many columns the result has. */
  readonly width: number;
  /** The number of rows; absent if unknown. */
  readonly rowCount?: number;
  readonly rows: (values: readonly Value[]) => Iterable<Row>;
}

/**
 * Calls to table functions in a select list or a similar clause. The calls run side by side: each
 * input row expands to as many rows as the longest call returns, and shorter results are padded
 * with NULL.
 */
export interface BoundExpansion {
  readonly stage: ExpansionStage;
  readonly functions: readonly BoundTableFunction[];
  /** The output columns, one per function. */
  readonly columns: readonly BoundColumn[];
}

/**
 * When the expansion happens: before grouping, before windows, before DISTINCT and ORDER BY, or
 * after all of these and before LIMIT.
 */
export type ExpansionStage = "grouping" | "windows" | "outputs" | "order";

/** A query named in a WITH clause. */
export interface BoundCte {
  readonly name: string;
  readonly query: BoundSelect;
  /**
   * Whether the entry's rows must be computed exactly once, even if the entry is read several
   * times.
   */
  readonly isKept: boolean;
  readonly isVolatile: boolean;
  /** Whether the rows depend on columns of an outer query. */
  readonly readsOuter: boolean;
  /** How many times FROM refers to the entry. The count is final once the statement is bound. */
  readonly references: { count: number };
}

/** Identifies a recursive query, so that its working table can be found at run time. */
export interface BoundRecursion {
  readonly name: string;
}

export type SetOperator = "union" | "intersect" | "except";

/** A view in the namespace `system` or `information_schema`. */
export interface SystemView {
  readonly columns: readonly { readonly name: string; readonly type: DataType }[];
  readonly rows: SystemRows;
  /** Whether every role may read the view, restricted to the rows that the caller may see. */
  readonly isOpen: boolean;
}

/**
 * Yields the rows of a system view that the caller may see, with columns in declared order. The
 * rows come in portions, each computed on demand with a bounded amount of work.
 */
export type SystemRows = (call: SystemCall) => Iterable<readonly (readonly Value[])[]>;

/** The caller that reads a system view, and the columns that it needs. */
export interface SystemCall {
  readonly userId: string;
  readonly role: Role;
  /**
   * Whether the call runs inside EXECUTE AS. If so, the caller does not have the rights of a
   * namespace owner.
   */
  readonly isImpersonated: boolean;
  /** The limits of the service token that the caller uses. */
  readonly tokenScope?: TokenScope | undefined;
  /** The positions of the columns to return. The view need not compute any others. */
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
       * Set for a full join: the columns merged by USING or NATURAL. Each merged column takes its
       * value from whichever side has a row.
       */
      readonly merged?: readonly { column: BoundColumn; expression: BoundExpression }[] | undefined;
      /** Set for LATERAL: the values that the right side reads from each left row. */
      readonly outerReferences?: readonly OuterReference[] | undefined;
      /**
       * Set for LATERAL: an equivalent of the right side that computes its rows as groups, once
       * for all rows of the left side. It has the same columns as the right side and no outer
       * references.
       */
      readonly asGroups?: JoinedGroups | undefined;
      /**
       * Set if the right side only computes expressions over columns of the left side. Only plans
       * contain such joins.
       */
      readonly isBeside?: true;
    };

export type BoundJoin = Extract<BoundFrom, { kind: "join" }>;

/**
 * A LATERAL join rewritten as a join of the left side with groups, with the outputs that replace
 * the right side.
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
   * For each grouping set, the positions of its expressions in `groupBy`. In the rows of a set,
   * all other grouping expressions are NULL.
   */
  readonly sets: readonly (readonly number[])[];
  /** The column that contains the index of the grouping set to which a row belongs. */
  readonly column: BoundColumn;
}

/** A single SELECT block. */
export interface BoundSelect {
  readonly from: BoundFrom | undefined;
  readonly where: BoundExpression | undefined;
  /** Grouping expressions, with the columns through which later clauses read them. */
  readonly groupBy: readonly { column: BoundColumn; expression: BoundExpression }[];
  /** Set for GROUPING SETS, ROLLUP and CUBE: the rows are grouped once for each set. */
  readonly groupingSets: GroupingSets | undefined;
  readonly aggregates: readonly BoundAggregate[];
  /**
   * Whether the block aggregates. HAVING alone makes a block aggregate, even if both `groupBy` and
   * `aggregates` are empty.
   */
  readonly isAggregated: boolean;
  readonly having: BoundExpression | undefined;
  readonly windows: readonly BoundWindowCall[];
  /**
   * The expansions of the block, in execution order. An expansion may read the results of earlier
   * expansions, even in the same stage.
   */
  readonly expansions: readonly BoundExpansion[];
  readonly outputs: readonly BoundOutput[];
  readonly distinct: "none" | "all" | { readonly on: readonly BoundExpression[] };
  readonly orderBy: readonly BoundSort[];
  readonly limit: BoundExpression | undefined;
  readonly offset: BoundExpression | undefined;
  readonly withTies: boolean;
}
