/**
 * Defines bound expressions: computations on values, queries within them, aggregates and windows.
 *
 * In a bound tree, slots replace the lifted literals and the caller's identity. The slots are
 * filled at each execution, so a single bound tree serves every caller and all literals.
 */
import type { TableEntry } from "../../catalog/mod.ts";
import type { DataType, DomainType, Value } from "../../types/mod.ts";
import type { AggregateForm } from "../functions/aggregate/aggregates.ts";
import type { CallDeps, CalledProgram, VectorFunction } from "../functions/base/function.ts";
import type { WindowName } from "../functions/window_functions.ts";
import type { SelectStatement } from "../parse/ast/ast.ts";
import type { BoundSelect } from "./bound.ts";
import type { CellPlace } from "./cell_error.ts";

/** A column of a relation in the query. */
export interface BoundColumn {
  /** The column id, which is unique within the query. */
  readonly id: number;
  readonly name: string;
  readonly type: DataType;
  /**
   * The stored column that this column reads. Pushdown, dependency tracking and the flags of
   * result columns need it.
   */
  readonly origin?: { readonly table: TableEntry; readonly columnId: number } | undefined;
}

/**
 * Computes a value from argument values. It is called once per row, unless the expression can be
 * evaluated for a whole column at once.
 */
export type RowFunction = (values: readonly Value[], call: CallDeps) => Value;

/**
 * A literal or parameter that is read before its statement runs: a constant that could not be
 * converted at binding, a literal that the plan cache lifted out, or an untyped parameter.
 */
export interface LiteralRead {
  readonly slot: number | undefined;
  /** The value of a constant. It is passed to `read`. */
  readonly value: Value;
  /** The position of the literal in the SQL that was bound. */
  readonly position: number;
  /**
   * Reads the literal as the required type.
   * @throws {DatabaseError}
   */
  readonly read: (value: Value) => unknown;
  /** Set for a parameter. */
  readonly parameter?: UntypedParameter;
}

/**
 * A parameter whose type its use determines. It is read before the statement runs only if it is
 * used once: uses such as `$1 = '' OR id = $1::int` require several types, and the first may
 * decide whether the second is evaluated.
 */
export interface UntypedParameter {
  /** The number in `$n`. */
  readonly number: number;
  /** How often the statement uses the parameter. */
  uses: number;
}

/**
 * Identifies an untyped literal: its position in the SQL, and the list of literals that are read
 * before the statement runs, to which it may be added.
 */
export interface UntypedLiteral {
  readonly position: number;
  readonly reads: LiteralRead[];
  /** Set for a parameter. */
  readonly parameter?: UntypedParameter;
}

export interface BoundConstant {
  readonly kind: "constant";
  readonly type: DataType;
  readonly value: Value;
  readonly untyped?: UntypedLiteral;
}

/**
 * The original arguments of a ROW call, before its untyped literals got default types. They are
 * valid only while the call still has the arguments listed in `args`.
 */
export interface RowAsWritten {
  readonly args: readonly BoundExpression[];
  readonly values: readonly BoundExpression[];
}

export type BoundExpression =
  | BoundConstant
  | {
      readonly kind: "slot";
      readonly type: DataType;
      readonly slot: number;
      readonly untyped?: UntypedLiteral;
      /**
       * Whether the slot contains a value sent with the request. Other slots contain lifted
       * literals and files.
       */
      readonly isParameter?: boolean;
    }
  | { readonly kind: "column"; readonly type: DataType; readonly column: BoundColumn }
  | {
      readonly kind: "cast";
      readonly type: DataType;
      readonly operand: BoundExpression;
      /**
       * Converts a value to the target type of the cast; undefined if the cast leaves every value
       * unchanged.
       */
      readonly convert: (value: Value) => Value;
      /**
       * Whether the cast preserves the order and equality of numbers. If so, an f64 or i32 vector
       * can be used unchanged.
       */
      readonly isNumericIdentity: boolean;
      /**
       * The factor by which to multiply integers, set for a cast that only moves the decimal
       * point. The multiplication cannot fail.
       */
      readonly factor?: number | undefined;
      /** Whether the cast leaves text unchanged, in any representation. */
      readonly isSameText?: boolean;
      /**
       * The column to name in error messages about the value. It is set if a change writes the
       * value.
       */
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
      /**
       * Whether the expression casts text in which words such as 'now' mean the time of the
       * statement.
       */
      readonly readsTimeWords?: boolean;
      /** Whether evaluating the call can never raise an error. */
      readonly neverFails?: boolean;
      /**
       * Evaluates the call for a whole column at once; absent if the function does not support
       * this.
       */
      readonly evaluateVector?: VectorFunction | undefined;
      /**
       * Set for LIKE and NOT LIKE, for which `sql/execute/kernels/like_bytes.ts` has a loop over
       * undecoded text.
       */
      readonly like?: { readonly isNegated: boolean } | undefined;
      /** The program that the call runs; undefined for a built-in function. */
      readonly program?: CalledProgram;
      /**
       * Set if the call tests its argument against the given domain, and the elements and fields of
       * the argument against the domains in the given type. The call returns the argument.
       */
      readonly checks?: { readonly type: DataType; readonly domain?: DomainType | undefined };
      /** Set for ROW(…): its arguments before their untyped literals got default types. */
      readonly row?: RowAsWritten;
    }
  | {
      /** A comparison of two operands of the same type: one of = <> < <= > >=. */
      readonly kind: "compare";
      readonly type: DataType;
      readonly operator: ComparisonOperator;
      readonly left: BoundExpression;
      readonly right: BoundExpression;
      readonly evaluate: RowFunction;
    }
  | {
      /** Arithmetic with +, - or * on operands that are usually represented as doubles. */
      readonly kind: "arithmetic";
      readonly type: DataType;
      readonly operator: "+" | "-" | "*";
      readonly left: BoundExpression;
      readonly right: BoundExpression;
      /** The largest magnitude up to which doubles represent the result exactly. */
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
      /** A value that an inner query reads from the enclosing query. */
      readonly kind: "outer";
      readonly type: DataType;
      readonly id: number;
    }
  | {
      /** A subquery whose result is used as a value. */
      readonly kind: "subquery";
      readonly type: DataType;
      readonly subquery: BoundSubquery;
      /** The operands to compare with the subquery's rows; set for IN, ANY and ALL. */
      readonly operands: readonly BoundExpression[];
      /**
       * The values that the query reads from the enclosing row, in the order of its outer
       * references.
       */
      readonly outerReferences: readonly BoundExpression[];
    }
  | {
      /** Membership in a list. Every item has the operand's type. */
      readonly kind: "in";
      readonly type: DataType;
      readonly operand: BoundExpression;
      readonly items: readonly BoundExpression[];
      /**
       * Further list items, stored as plain values of the operand's type, so that a long list does
       * not need an expression for each item.
       */
      readonly constants: readonly Value[];
      /**
       * An array expression that provides further list items. It reads no columns, and its value
       * may be NULL.
       */
      readonly list?: BoundExpression | undefined;
      readonly negated: boolean;
    }
  | {
      /**
       * Membership in a list of rows. The expressions of the list read no columns, and each row has
       * the types of the operands.
       */
      readonly kind: "row in";
      readonly type: DataType;
      readonly operands: readonly BoundExpression[];
      readonly rows: readonly (readonly BoundExpression[])[];
    };

/** The bound expressions of a given kind. */
export type ExpressionOf<Kind extends BoundExpression["kind"]> = Extract<
  BoundExpression,
  { kind: Kind }
>;

export type BoundComparison = ExpressionOf<"compare">;

/** Rows whose values are known before the statement runs, stored by column. */
export interface ConstantRows {
  readonly rowCount: number;
  /** The values for each column, in the column's type. */
  readonly columns: readonly (readonly Value[])[];
}

/** A value that an inner query reads from the enclosing query. */
export interface OuterReference {
  /** The id by which "outer" expressions of the inner query refer to the value. */
  readonly id: number;
  /** The referenced value, as an expression of the outer query. */
  readonly value: BoundExpression;
}

/**
 * A subquery in an expression. Within one run, its result depends only on the values of its outer
 * references, so the subquery is evaluated once for each combination of these values.
 */
export interface BoundSubquery {
  readonly form: SubqueryForm;
  readonly query: BoundSelect;
  /** The ids of the outer references, in the same order as their types in `outerTypes`. */
  readonly outerIds: readonly number[];
  readonly outerTypes: readonly DataType[];
  /**
   * An equivalent of the subquery that computes the results for many values of the outer
   * references at once; undefined if there is none.
   */
  readonly keyed: KeyedQuery | undefined;
  /** Whether the query may return a different result each time it is evaluated. */
  readonly isVolatile: boolean;
  /** The position of the inner query in the SQL. */
  readonly position: number;
  /**
   * Identifies the query as written, so that equal queries are recognised; absent if each
   * occurrence of the query is evaluated separately.
   */
  readonly written: WrittenQuery | undefined;
}

/**
 * Identifies a query within an expression by its syntax tree and scope. Two queries with equal
 * identities are equal.
 */
export interface WrittenQuery {
  readonly node: SelectStatement;
  /**
   * The scope in which the query's names are resolved. Each enclosing block has one scope object.
   */
  readonly scope: object;
  /**
   * The index of the query column that provides this value, if each column of the query becomes a
   * separate value.
   */
  readonly column: number;
}

export type SubqueryForm =
  | { readonly kind: "scalar" | "exists" }
  | { readonly kind: "array"; readonly ofArrays: boolean }
  | {
      /**
       * Represents `operands operator ANY (query)`, or the same with ALL. IN is `= ANY`, and NOT
       * IN is `<> ALL`.
       */
      readonly kind: "any" | "all";
      readonly operator: string;
      /**
       * One comparison function per operand. It is called with the operand and the value of the
       * corresponding query column.
       */
      readonly evaluates: readonly RowFunction[];
      /** The types in which each operand and its column are compared. */
      readonly types: readonly DataType[];
    };

/**
 * An equivalent of a correlated subquery whose outer references occur only in equalities. The
 * equalities are removed, so that the query is evaluated once for all values of the outer
 * references.
 */
export interface KeyedQuery {
  /** The query with its original outputs, followed by the values that must equal the keys. */
  readonly query: BoundSelect;
  /** The key expressions of a subquery. They read only outer references. */
  readonly keys: readonly BoundExpression[];
  /** The query's LIMIT, which applies to the rows of each key separately. */
  readonly limit: BoundExpression | undefined;
  readonly offset: BoundExpression | undefined;
  /**
   * The query that provides the result for a key without matching rows. It is needed because an
   * aggregate yields a row even without input.
   */
  readonly withoutRows: BoundSelect | undefined;
}

/** A branch of CASE: the condition after WHEN and the value after THEN. */
export interface CaseBranch {
  readonly when: BoundExpression;
  readonly value: BoundExpression;
}

export type ComparisonOperator = "=" | "<>" | "<" | "<=" | ">" | ">=";

/**
 * An aggregate of a query block. The aggregate operator computes the value, and expressions read it
 * through `column`.
 */
export interface BoundAggregate {
  readonly column: BoundColumn;
  readonly form: AggregateForm;
  /** Set for a user-defined aggregate. Its form then creates no states. */
  readonly steps?: AggregateSteps | undefined;
  /** The aggregate's argument; absent for count(*). */
  readonly argument: BoundExpression | undefined;
  /** The aggregate's further arguments, such as the separator of string_agg. */
  readonly extra: readonly BoundExpression[];
  readonly isDistinct: boolean;
  readonly filter: BoundExpression | undefined;
  readonly orderBy: readonly BoundSort[];
}

/**
 * How a user-defined aggregate computes its result. The expressions read only the columns listed
 * here, which exist only while a step is evaluated.
 */
export interface AggregateSteps {
  /** The column with the current state. */
  readonly state: BoundColumn;
  /** The columns with the arguments. */
  readonly args: readonly BoundColumn[];
  /** The state before the first row. It reads no columns. */
  readonly initial: BoundExpression;
  /**
   * The state after the first row whose arguments are not NULL; undefined if the transition
   * computes this state, too.
   */
  readonly first: BoundExpression | undefined;
  /** The state after a row has been added. */
  readonly transition: AggregateStep;
  /** The state after a row has been removed; NULL if it cannot be removed. */
  readonly inverse: AggregateStep | undefined;
  /** The result; undefined if it is the state. The arguments are NULL. */
  readonly final: AggregateStep | undefined;
  /** How the aggregate is computed over frames whose start moves. */
  readonly moving: AggregateSteps | undefined;
}

/** A call within a user-defined aggregate. */
export interface AggregateStep {
  readonly expression: BoundExpression;
  /** Whether the function is not called if the state or an argument is NULL. */
  readonly isStrict: boolean;
}

export interface BoundSort {
  readonly expression: BoundExpression;
  readonly isDescending: boolean;
  readonly nullsFirst: boolean;
}

/**
 * A window call. The window operator computes the value, and expressions read it through `column`.
 */
export interface BoundWindowCall {
  readonly column: BoundColumn;
  readonly form:
    | { readonly kind: "function"; readonly name: WindowName }
    | {
        readonly kind: "aggregate";
        readonly aggregate: AggregateForm;
        /** Set for a user-defined aggregate. Its form then creates no states. */
        readonly steps?: AggregateSteps | undefined;
      };
  readonly args: readonly BoundExpression[];
  readonly filter: BoundExpression | undefined;
  readonly window: BoundWindow;
}

/** The order in which a window call reads rows, and the frame of each row. */
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
  /**
   * The offset of a frame bound, as an expression without columns that is evaluated once per run;
   * undefined if the bound has no offset.
   */
  readonly offset: BoundExpression | undefined;
  /** Set for RANGE with an offset: the ordering value, and how far the frame extends from it. */
  readonly reach: BoundReach | undefined;
}

export interface BoundReach {
  /**
   * The ordering value, converted to the type that `step` returns, so that both can be compared.
   */
  readonly key: BoundExpression;
  /**
   * Moves an ordering value, which is not NULL, by the offset in the direction of the frame bound.
   */
  readonly step: (key: Value, offset: Value) => Value;
  readonly isNegative: (offset: Value) => boolean;
}
