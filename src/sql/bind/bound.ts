/**
 * What the binder makes of a statement: names are columns, every operator has its types, casts are
 * written out, and the rights that the statement needs stand beside it.
 *
 * A bound tree holds no literal that the plan cache lifted out and no identity of a caller: those
 * are slots, filled at each execution, so one bound tree serves every caller and every literal.
 * A column is named by an id that is unique within its query; where its values lie in a batch is
 * decided by the plan.
 */
import type { Role, TableEntry } from "../../catalog/mod.ts";
import type { DataType, Row, Value } from "../../types/mod.ts";
import type { AggregateForm } from "../functions/aggregates.ts";
import type { CallWorld, VectorFunction } from "../functions/function.ts";
import type { WindowName } from "../functions/window_functions.ts";
import type { CellPlace } from "./cell_error.ts";

/** A column of some relation of a query. */
export interface BoundColumn {
  /** Unique within the query. */
  readonly id: number;
  readonly name: string;
  readonly type: DataType;
  /** Stored column behind it, for flags, pushdown and dependencies. */
  readonly origin?: { readonly table: TableEntry; readonly columnId: number } | undefined;
}

/** How a value is computed from values; called once a row unless a kernel knows better. */
export type RowFunction = (values: readonly Value[], call: CallWorld) => Value;

/** A literal that is read before its statement runs: a constant that cannot be, or a lifted one. */
export interface LiteralRead {
  readonly slot: number | undefined;
  /** Of a constant. */
  readonly value: Value;
  /** Of the literal in the text that was bound. */
  readonly position: number;
  /** @throws {DatabaseError} */
  readonly read: (value: Value) => unknown;
}

/** Where an untyped literal stands, and the list of what its statement is to read. */
export interface UntypedLiteral {
  readonly position: number;
  readonly reads: LiteralRead[];
}

export type BoundExpression =
  | {
      readonly kind: "constant";
      readonly type: DataType;
      readonly value: Value;
      readonly untyped?: UntypedLiteral;
    }
  | {
      readonly kind: "slot";
      readonly type: DataType;
      readonly slot: number;
      readonly untyped?: UntypedLiteral;
      /** A value of the request; others are literals that the plan cache lifted out, and files. */
      readonly isParameter?: boolean;
    }
  | { readonly kind: "column"; readonly type: DataType; readonly column: BoundColumn }
  | {
      readonly kind: "cast";
      readonly type: DataType;
      readonly operand: BoundExpression;
      /** Undefined result: the value passes as it is. */
      readonly convert: (value: Value) => Value;
      /** Keeps order and equality on numbers, so that a vector of f64 or i32 passes unchanged. */
      readonly isNumericIdentity: boolean;
      /** Of a cast that only moves the point: what a whole number is multiplied by, without fail. */
      readonly factor?: number | undefined;
      /** Text stays as it is, in whatever form a vector holds it. */
      readonly isSameText?: boolean;
      /** Of a value that is written: what computing or converting it throws names its column. */
      readonly cell?: CellPlace;
    }
  | {
      readonly kind: "call";
      readonly type: DataType;
      readonly name: string;
      readonly args: readonly BoundExpression[];
      readonly evaluate: RowFunction;
      readonly seesNull: boolean;
      readonly volatility: "immutable" | "stable" | "volatile";
      /** A cast of text for which words like 'now' are the time of the statement. */
      readonly readsTimeWords?: boolean;
      /** The loop over a whole column, of those that have one. */
      readonly evaluateVector?: VectorFunction | undefined;
      /** Of LIKE: whether it is NOT LIKE; its loop over undecoded text is `kernels/like_bytes.ts`. */
      readonly like?: { readonly isNegated: boolean } | undefined;
    }
  | {
      /** One of = <> < <= > >= over two operands of one type. */
      readonly kind: "compare";
      readonly type: DataType;
      readonly operator: ComparisonOperator;
      readonly left: BoundExpression;
      readonly right: BoundExpression;
      readonly evaluate: RowFunction;
    }
  | {
      /** One of + - * over operands whose fast form is a number. */
      readonly kind: "arithmetic";
      readonly type: DataType;
      readonly operator: "+" | "-" | "*";
      readonly left: BoundExpression;
      readonly right: BoundExpression;
      /** Largest magnitude of a result that the double form gets right. */
      readonly magnitudeMax: number;
      readonly evaluate: RowFunction;
    }
  | {
      readonly kind: "and" | "or";
      readonly type: DataType;
      readonly operands: readonly BoundExpression[];
    }
  | { readonly kind: "not"; readonly type: DataType; readonly operand: BoundExpression }
  | {
      readonly kind: "is";
      readonly type: DataType;
      readonly test: "null" | "true" | "false";
      readonly negated: boolean;
      readonly operand: BoundExpression;
    }
  | {
      readonly kind: "case";
      readonly type: DataType;
      readonly branches: readonly CaseBranch[];
      readonly otherwise: BoundExpression | undefined;
    }
  | {
      readonly kind: "coalesce";
      readonly type: DataType;
      readonly operands: readonly BoundExpression[];
    }
  | {
      /** A value of the query around this one, as it captured it. */
      readonly kind: "outer";
      readonly type: DataType;
      readonly id: number;
    }
  | {
      /** What a query in an expression answers. */
      readonly kind: "subquery";
      readonly type: DataType;
      readonly subquery: BoundSubquery;
      /** What the rows are compared with: IN, ANY and ALL. */
      readonly operands: readonly BoundExpression[];
      /** What the query reads of the row around it, in the order of its captures. */
      readonly captures: readonly BoundExpression[];
    }
  | {
      /** Membership in a list; every item has the operand's type. */
      readonly kind: "in";
      readonly type: DataType;
      readonly operand: BoundExpression;
      readonly items: readonly BoundExpression[];
      /** Further items, of the operand's type: none of many is an expression. */
      readonly constants: readonly Value[];
      readonly negated: boolean;
    };

/** Rows that are known before the statement runs, column by column. */
export interface ConstantRows {
  readonly rowCount: number;
  /** Of the types of the columns. */
  readonly columns: readonly (readonly Value[])[];
}

/** A value that an inner query reads of the expression around it. */
export interface BoundCapture {
  /** Of the "outer" expressions in the inner query. */
  readonly id: number;
  /** Over the outer query. */
  readonly value: BoundExpression;
}

/**
 * A query in an expression. Its answer depends on the run and on the values of its captures, and is
 * computed once for each of them.
 */
export interface BoundSubquery {
  readonly form: SubqueryForm;
  readonly query: BoundSelect;
  /** Ids of the captures, and the type of each. */
  readonly captureIds: readonly number[];
  readonly captureTypes: readonly DataType[];
  /** The same query for all values of its captures at once. */
  readonly keyed: KeyedQuery | undefined;
  /** Gives another answer each time it is asked. */
  readonly isVolatile: boolean;
  /** Where it stands in the text. */
  readonly position: number;
}

export type SubqueryForm =
  | { readonly kind: "scalar" | "exists" | "array" }
  | {
      /** `operands operator ANY (query)`, or ALL; IN is `= ANY`, NOT IN is `<> ALL`. */
      readonly kind: "any" | "all";
      readonly operator: string;
      /** Compares each operand with the column beside it; takes the pair. */
      readonly evaluates: readonly RowFunction[];
      /** Of each operand and of the column beside it. */
      readonly types: readonly DataType[];
    };

/**
 * A query that its captures narrow by equality only, without those conditions: read once, it
 * answers for every value of the captures.
 */
export interface KeyedQuery {
  /** The outputs of the query, then the values that the keys must equal. */
  readonly query: BoundSelect;
  /** Over captures. */
  readonly keys: readonly BoundExpression[];
  /** Of the rows of one key. */
  readonly limit: BoundExpression | undefined;
  readonly offset: BoundExpression | undefined;
  /** The query for a key that no row has: an aggregate yields a row then, too. */
  readonly withoutRows: BoundSelect | undefined;
}

/** WHEN a condition holds, the value behind THEN. */
export interface CaseBranch {
  readonly when: BoundExpression;
  readonly value: BoundExpression;
}

export type ComparisonOperator = "=" | "<>" | "<" | "<=" | ">" | ">=";

/** An aggregate of a block: computed by the aggregate operator, read through `column`. */
export interface BoundAggregate {
  readonly column: BoundColumn;
  readonly form: AggregateForm;
  /** Absent for count(*). */
  readonly argument: BoundExpression | undefined;
  /** Further arguments, e.g. the separator of string_agg. */
  readonly extra: readonly BoundExpression[];
  readonly isDistinct: boolean;
  readonly filter: BoundExpression | undefined;
  readonly orderBy: readonly BoundSort[];
}

export interface BoundSort {
  readonly expression: BoundExpression;
  readonly isDescending: boolean;
  readonly nullsFirst: boolean;
}

/** A call over a window: computed by the window operator, read through `column`. */
export interface BoundWindowCall {
  readonly column: BoundColumn;
  readonly form:
    | { readonly kind: "function"; readonly name: WindowName }
    | { readonly kind: "aggregate"; readonly aggregate: AggregateForm };
  readonly args: readonly BoundExpression[];
  readonly filter: BoundExpression | undefined;
  readonly window: BoundWindow;
}

/** Which rows a row sees, and in which order. */
export interface BoundWindow {
  readonly partitionBy: readonly BoundExpression[];
  readonly orderBy: readonly BoundSort[];
  readonly frame: BoundFrame;
}

export interface BoundFrame {
  readonly mode: "rows" | "range" | "groups";
  readonly start: BoundFrameBound;
  readonly end: BoundFrameBound;
  readonly exclude: "current row" | "group" | "ties" | undefined;
}

export interface BoundFrameBound {
  readonly type:
    | "unbounded preceding"
    | "preceding"
    | "current row"
    | "following"
    | "unbounded following";
  /** Of preceding and following: without columns, asked once a run. */
  readonly offset: BoundExpression | undefined;
  /** Of RANGE with an offset: the ordering value and how far from it the bound lies. */
  readonly reach: BoundReach | undefined;
}

export interface BoundReach {
  /** The ordering value in the type in which it is compared with what `step` gives. */
  readonly key: BoundExpression;
  /** Moves a value that is not NULL by the offset, in the direction of the bound. */
  readonly step: (key: Value, offset: Value) => Value;
  readonly isNegative: (offset: Value) => boolean;
}

/** What a statement needs to be allowed; checked at every execution. */
export type Requirement =
  | { readonly action: "read" | "write"; readonly table: TableEntry }
  | { readonly action: "read-system"; readonly name: string; readonly isOpen: boolean }
  | { readonly action: "sleep"; readonly position: number };

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
      readonly alias: string;
      readonly columns: readonly BoundColumn[];
    }
  | {
      readonly kind: "values";
      readonly rows: readonly (readonly BoundExpression[])[];
      /** In place of the rows. */
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
      /** The rows of `first`, then of `next` over the rows of the step before, until there are none. */
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
  readonly rows: (values: readonly Value[]) => Iterable<Row>;
}

/** An entry of WITH. */
export interface BoundCte {
  readonly name: string;
  readonly query: BoundSelect;
  /** Its text asks that its rows are computed once, however often they are read. */
  readonly isKept: boolean;
  readonly isVolatile: boolean;
  /** Its rows hang on nothing but the run. */
  readonly isFree: boolean;
  /** How often FROM names it; complete once the statement is bound. */
  readonly references: { count: number };
}

/** Names a recursive query: what its working table is found by in a run. */
export interface BoundRecursion {
  readonly name: string;
}

export type SetOperator = "union" | "intersect" | "except";

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
  readonly outputs: readonly BoundOutput[];
  readonly distinct: "none" | "all" | { readonly on: readonly BoundExpression[] };
  readonly orderBy: readonly BoundSort[];
  readonly limit: BoundExpression | undefined;
  readonly offset: BoundExpression | undefined;
  readonly withTies: boolean;
}
