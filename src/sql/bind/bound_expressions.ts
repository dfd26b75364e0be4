/**
 * What computes a value in a bound statement: expressions, queries within them, aggregates and
 * windows.
 *
 * A bound tree holds no literal that the plan cache lifted out and no identity of a caller: those
 * are slots, filled at each execution, so one bound tree serves every caller and every literal.
 */
import type { TableEntry } from "../../catalog/mod.ts";
import type { DataType, Value } from "../../types/mod.ts";
import type { AggregateForm } from "../functions/aggregate/aggregates.ts";
import type { CallWorld, VectorFunction } from "../functions/base/function.ts";
import type { WindowName } from "../functions/window_functions.ts";
import type { SelectStatement } from "../parse/ast/ast.ts";
import type { BoundSelect } from "./bound.ts";
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

export interface BoundConstant {
  readonly kind: "constant";
  readonly type: DataType;
  readonly value: Value;
  readonly untyped?: UntypedLiteral;
}

export type BoundExpression =
  | BoundConstant
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
      /**
       * Of a cast that only moves the point: what a whole number is multiplied by, without fail.
       */
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
      /**
       * Of LIKE: whether it is NOT LIKE; its loop over undecoded text is in
       * `sql/execute/kernels/like_bytes.ts`.
       */
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
      /** An array without columns whose elements are further items; the array may be NULL. */
      readonly list?: BoundExpression | undefined;
      readonly negated: boolean;
    }
  | {
      /**
       * Membership in a list of rows that read no column; each row has the types of the operands.
       */
      readonly kind: "row in";
      readonly type: DataType;
      readonly operands: readonly BoundExpression[];
      readonly rows: readonly (readonly BoundExpression[])[];
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
  /** How it is written; absent where it is asked anew at each place. */
  readonly written: WrittenQuery | undefined;
}

/** What a query in an expression is bound from: the same from the same. */
export interface WrittenQuery {
  readonly node: SelectStatement;
  /** What its names mean: that of the block around it, which is one object. */
  readonly scope: object;
  /** Which of its columns, where each is a value of its own. */
  readonly column: number;
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
