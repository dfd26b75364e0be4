/**
 * What the binder makes of a statement: names are columns, every operator has its types, casts are
 * written out, and the rights that the statement needs stand beside it.
 *
 * A column is named by an id that is unique within its query; where its values lie in a batch is
 * decided by the plan. What computes a value is in `bound_expressions.ts`.
 */
import type { Role, TableEntry } from "../../catalog/mod.ts";
import type { DataType, Row, Value } from "../../types/mod.ts";
import type {
  BoundAggregate,
  BoundCapture,
  BoundColumn,
  BoundExpression,
  BoundSort,
  BoundWindowCall,
  ConstantRows,
} from "./bound_expressions.ts";

/** What a statement needs to be allowed; checked at every execution. */
export type Requirement =
  | { readonly action: "read" | "write"; readonly table: TableEntry }
  /** The name is that of the view, with its namespace. */
  | { readonly action: "read-system"; readonly name: string; readonly view: SystemView }
  /** Open to everybody. */
  | { readonly action: "take-id" }
  | { readonly action: "sleep"; readonly position: number };

/** The rows of VALUES. */
export interface BoundRows {
  readonly rows: readonly (readonly BoundExpression[])[];
  /** In place of the rows. */
  readonly constants: ConstantRows | undefined;
  /** Of each column. */
  readonly types: readonly DataType[];
}

/** A relation in FROM. */
export type BoundRelation =
  | {
      readonly kind: "table";
      readonly table: TableEntry;
      /** How many rows it has now, over all owners: asked only where joins are put in order. */
      readonly rowCount: () => number;
      /** How far apart the whole numbers of a column lie, where that is known. */
      readonly spanOf: (columnId: number) => number | undefined;
      readonly alias: string;
      /** Declared columns, then `_seq` and `_deleted`. */
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
      /** A WITH entry that is bound again at the place where it is read. */
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
      /** The rows of table functions side by side. */
      readonly kind: "function";
      readonly functions: readonly BoundTableFunction[];
      /** A last column counts the rows from 1. */
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
       * The rows of `first`, then of `next` over the rows of the step before, until there are none.
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
      /** The rows of the step before, within `next`. */
      readonly kind: "working";
      readonly recursion: BoundRecursion;
      readonly alias: string;
      readonly columns: readonly BoundColumn[];
    }
  | {
      /** Two queries of the same column types. */
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
  /** Called also when an argument is NULL; otherwise there are no rows then. */
  readonly seesNull: boolean;
  /** Columns of a row. */
  readonly width: number;
  /** The number of rows, if it is known. */
  readonly rowCount?: number;
  readonly rows: (values: readonly Value[]) => Iterable<Row>;
}

/**
 * Calls of table functions in a select list or a similar clause. The calls run side by side: each
 * input row becomes as many rows as the longest call returns, and shorter calls are padded with
 * NULL.
 */
export interface BoundExpansion {
  readonly stage: ExpansionStage;
  readonly functions: readonly BoundTableFunction[];
  /** One column for each function. */
  readonly columns: readonly BoundColumn[];
}

/**
 * The stage at which the expansion happens: before grouping, before windows, before DISTINCT and
 * ORDER BY, or after these and before LIMIT.
 */
export type ExpansionStage = "grouping" | "windows" | "outputs" | "order";

/** An entry of WITH. */
export interface BoundCte {
  readonly name: string;
  readonly query: BoundSelect;
  /** Its text asks that its rows are computed once, however often they are read. */
  readonly isKept: boolean;
  readonly isVolatile: boolean;
  /** True if the rows depend on columns of an outer query. */
  readonly readsOuter: boolean;
  /** How often FROM names it; complete once the statement is bound. */
  readonly references: { count: number };
}

/** Names a recursive query: what its working table is found by in a run. */
export interface BoundRecursion {
  readonly name: string;
}

export type SetOperator = "union" | "intersect" | "except";

/** A view of the system or information_schema namespace. */
export interface SystemView {
  readonly columns: readonly { readonly name: string; readonly type: DataType }[];
  readonly rows: SystemRows;
  /** Readable by every role, filtered to the caller. */
  readonly isOpen: boolean;
}

/**
 * Yields the rows of a system view as the caller may see them, columns in declared order: in
 * portions that are made as they are asked for, each in a bounded piece of work.
 */
export type SystemRows = (call: SystemCall) => Iterable<readonly (readonly Value[])[]>;

/** Who reads a system view. */
export interface SystemCall {
  readonly userId: string;
  readonly role: Role;
  /** Inside EXECUTE AS, where nobody owns a namespace. */
  readonly isImpersonated: boolean;
  /** The columns that are read of it, by their place: others need not be found out. */
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
      /** Of a full join: the columns of USING and NATURAL, from whichever side has the row. */
      readonly merged?: readonly { column: BoundColumn; expression: BoundExpression }[] | undefined;
      /** What the right side reads of each row of the left one: LATERAL. */
      readonly captures?: readonly BoundCapture[] | undefined;
      /**
       * True if the right side is rows of expressions over left-hand columns; set only in plans.
       */
      readonly isBeside?: true;
    };

export interface BoundOutput {
  readonly name: string;
  readonly expression: BoundExpression;
}

export interface GroupingSets {
  /** Positions in `groupBy` of the expressions of each set; the others are NULL there. */
  readonly sets: readonly (readonly number[])[];
  /** Holds the position of the set that a row is of. */
  readonly column: BoundColumn;
}

/** One SELECT block. */
export interface BoundSelect {
  readonly from: BoundFrom | undefined;
  readonly where: BoundExpression | undefined;
  /** Grouping expressions with the columns under which later clauses read them. */
  readonly groupBy: readonly { column: BoundColumn; expression: BoundExpression }[];
  /** Of GROUPING SETS and their kin: the rows are grouped once for each. */
  readonly groupingSets: GroupingSets | undefined;
  readonly aggregates: readonly BoundAggregate[];
  /** The block aggregates, even when both lists are empty (HAVING alone). */
  readonly isAggregated: boolean;
  readonly having: BoundExpression | undefined;
  readonly windows: readonly BoundWindowCall[];
  /**
   * In execution order; an expansion may read the results of earlier ones, also within one stage.
   */
  readonly expansions: readonly BoundExpansion[];
  readonly outputs: readonly BoundOutput[];
  readonly distinct: "none" | "all" | { readonly on: readonly BoundExpression[] };
  readonly orderBy: readonly BoundSort[];
  readonly limit: BoundExpression | undefined;
  readonly offset: BoundExpression | undefined;
  readonly withTies: boolean;
}
