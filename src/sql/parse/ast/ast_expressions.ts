/**
 * Defines the syntax tree of expressions. See `ast.ts` for the rules that apply to all nodes.
 */

import type { RangeType } from "../../../types/mod.ts";
import type {
  AstNode,
  CollationNode,
  DataTypeDef,
  LiteralList,
  Name,
  OrderByStatement,
  QName,
  SelectStatement,
} from "./ast.ts";
import type { XmlSyntax } from "./ast_xml.ts";

/**
 * Any expression. A parenthesised query is also an expression, represented by the query's node.
 */
export type Expr =
  | ExprRef
  | ExprLiteral
  | ExprBits
  | ExprSlot
  | ExprParameter
  | ExprDefault
  | ExprValueKeyword
  | ExprList
  | ExprArraySelect
  | ExprArrayIndex
  | ExprArraySlice
  | ExprField
  | ExprBinary
  | ExprUnary
  | ExprTernary
  | ExprCast
  | ExprCollate
  | ExprCase
  | ExprCall
  | ExprExtract
  | ExprSubstring
  | ExprOverlay
  | ExprTrim
  | SelectStatement;

/** A constant. A typed literal (`DATE '…'`) is an {@linkcode ExprCast} of a string instead. */
export type ExprLiteral = ExprInteger | ExprNumeric | ExprString | ExprBytes | ExprBool | ExprNull;

/**
 * An integer literal of any length. Its type is the first of INT, BIGINT and DECIMAL in which it
 * fits.
 */
export interface ExprInteger extends AstNode {
  readonly type: "integer";
  /** The value as a number, which is inexact beyond 2^53. */
  readonly value: number;
  /**
   * The decimal digits of the integer without any `_`. A minus sign directly before the number
   * (`-5`) is included.
   */
  readonly text: string;
}

/**
 * A number with a decimal point or an exponent. `text` is as written, but without any `_`: `4.20`,
 * `.5`, `1e3`.
 */
export interface ExprNumeric extends AstNode {
  readonly type: "numeric";
  readonly value: number;
  readonly text: string;
}

/**
 * A string: `'…'`, `E'…'`, `$$…$$`, or adjacent strings joined into one. Escapes have been
 * resolved. The literal is untyped.
 */
export interface ExprString extends AstNode {
  readonly type: "string";
  readonly value: string;
}

/**
 * A bytes literal such as `X'0aff'` (extension). `hex` is in lower case and has an even number of
 * digits.
 */
export interface ExprBytes extends AstNode {
  readonly type: "bytes";
  readonly hex: string;
}

/** A bit string such as `B'101'`. */
export interface ExprBits extends AstNode {
  readonly type: "bits";
  readonly bits: string;
}

export interface ExprBool extends AstNode {
  readonly type: "boolean";
  readonly value: boolean;
}

export interface ExprNull extends AstNode {
  readonly type: "null";
}

/**
 * A slot for a literal that `normalizeStatement` lifted out of the SQL (extension). Its value is
 * `literals[index]` in the result of that call. The kind determines the type: integer is INT,
 * bigint is BIGINT, numeric is DECIMAL(precision, scale), and string is untyped like a quoted
 * literal.
 */
export interface ExprSlot extends AstNode {
  readonly type: "literal slot";
  readonly index: number;
  readonly kind: LiteralKind;
  /** The precision; present only if the kind is numeric. */
  readonly precision?: number | undefined;
  readonly scale?: number | undefined;
}

export type LiteralKind = "integer" | "bigint" | "numeric" | "string";

/** A parameter of the statement. `$1` has the name "$1" and the index 1. */
export interface ExprParameter extends AstNode {
  readonly type: "parameter";
  readonly name: string;
  /** The number of the parameter, counted from 1. */
  readonly index: number;
}

/** DEFAULT used as a value. The binder rejects it except in SET and in the VALUES of INSERT. */
export interface ExprDefault extends AstNode {
  readonly type: "default";
}

/**
 * A reference to a column (`c`, `t.c`, `ns.t.c`) or to all columns (`*`, `t.*`, also in
 * `count(*)`).
 */
export interface ExprRef extends AstNode {
  readonly type: "ref";
  readonly table?: QName | undefined;
  /**
   * Whether `*` refers only to the declared columns that are not generated, as in COPY
   * (extension).
   */
  readonly isDeclared?: true | undefined;
  /** The name of the referenced column, or "*" with {@linkcode star}. */
  readonly name: string;
  /** True for an asterisk, as opposed to a column named "*" (extension). */
  readonly star?: true | undefined;
}

/** A value written as a single keyword, or as `CURRENT_USER()` or `CURRENT_ROLE()`. */
export interface ExprValueKeyword extends AstNode {
  readonly type: "keyword";
  readonly keyword: ValueKeyword;
}

/**
 * A keyword that represents a value. A form with parentheses, such as `CURRENT_TIMESTAMP(3)`, is a
 * call instead.
 */
export type ValueKeyword =
  | "current_catalog"
  | "current_date"
  | "current_role"
  | "current_schema"
  | "current_time"
  | "current_timestamp"
  | "current_user"
  | "localtime"
  | "localtimestamp"
  | "session_user"
  | "user";

/**
 * A list of expressions. A `list` is a row, `(a, b)` or `ROW(a, b)`, or the right side of IN,
 * which is always a list here (the library unwraps a list of one). An `array` is `ARRAY[a, b]`.
 */
export interface ExprList extends AstNode {
  readonly type: "list" | "array";
  readonly expressions: readonly Expr[];
  /** The expressions in compact form; set for an array or an IN list of many plain literals. */
  readonly literals?: LiteralList | undefined;
}

/** An array built from the rows of a query: `ARRAY(SELECT …)`. */
export interface ExprArraySelect extends AstNode {
  readonly type: "array select";
  readonly select: SelectStatement;
}

/** An element of an array: `a[i]`. */
export interface ExprArrayIndex extends AstNode {
  readonly type: "arrayIndex";
  readonly array: Expr;
  readonly index: Expr;
  /**
   * True if the array is itself a subscripted expression in parentheses, as in `(a[1:2])[1]`. The
   * subscripts inside the parentheses are applied first (extension).
   */
  readonly ofWhole?: boolean | undefined;
}

/** A slice of an array: `a[i:j]` (extension). A missing bound is undefined. */
export interface ExprArraySlice extends AstNode {
  readonly type: "arraySlice";
  readonly array: Expr;
  readonly from?: Expr | undefined;
  readonly to?: Expr | undefined;
  /**
   * True if the array is itself a subscripted expression in parentheses. The subscripts inside the
   * parentheses are applied first.
   */
  readonly ofWhole?: boolean | undefined;
}

/** A field of a row value, `(f(x)).c`, or all of its fields, `(f(x)).*` (extension). */
export interface ExprField extends AstNode {
  readonly type: "field";
  readonly row: Expr;
  /** The name of the field, or "*" with {@linkcode star}. */
  readonly name: string;
  readonly star?: true | undefined;
}

/**
 * A binary operation. `<>` is represented as "!=". The right side of IN is a `list` or a query.
 * The right side of `= ANY (…)` is a `call` named any, some or all with a single argument: a query
 * or an array.
 */
export interface ExprBinary extends AstNode {
  readonly type: "binary";
  readonly op: BinaryOperator;
  readonly left: Expr;
  readonly right: Expr;
  /** The expression after ESCAPE in LIKE, ILIKE and SIMILAR TO (extension). */
  readonly escape?: Expr | undefined;
}

export type BinaryOperator =
  | "OR"
  | "AND"
  | "IN"
  | "NOT IN"
  | "LIKE"
  | "NOT LIKE"
  | "ILIKE"
  | "NOT ILIKE"
  | "SIMILAR TO"
  | "NOT SIMILAR TO"
  | "IS DISTINCT FROM"
  | "IS NOT DISTINCT FROM"
  | "OVERLAPS"
  | "AT TIME ZONE"
  | "="
  | "!="
  | "<"
  | "<="
  | ">"
  | ">="
  | "+"
  | "-"
  | "*"
  | "/"
  | "%"
  | "^"
  | SymbolOperator;

/**
 * The operators that PostgreSQL's precedence table lists as "any other operator". JSON `->` with a
 * constant is also represented as a binary operator.
 */
export type SymbolOperator =
  | "||"
  | "->"
  | "->>"
  | "#>"
  | "#>>"
  | "#-"
  | "@>"
  | "<@"
  | "?"
  | "?|"
  | "?&"
  | "&&"
  | "@@"
  | "@?"
  | "~"
  | "~*"
  | "!~"
  | "!~*"
  | "^@"
  | "&"
  | "|"
  | "#"
  | "<<"
  | ">>"
  | "&<"
  | "&>"
  | "-|-"
  | "##"
  | "~="
  | "<^"
  | ">^"
  | "?#"
  | "?-"
  | "?-|"
  | "?||"
  | "<<|"
  | "|>>"
  | "&<|"
  | "|&>"
  | "<<="
  | ">>="
  | "<=>"
  | "<->"
  | "<%"
  | "%>"
  | "<<%"
  | "%>>"
  | "<<->"
  | "<->>"
  | "<#>"
  | "~<~"
  | "~<=~"
  | "~>=~"
  | "~>~"
  | "*="
  | "*<>"
  | "*<"
  | "*<="
  | "*>="
  | "*>";

/**
 * A unary operation. `ISNULL` is represented as "IS NULL". A minus sign before a number is part of
 * the literal instead.
 */
export interface ExprUnary extends AstNode {
  readonly type: "unary";
  readonly op: UnaryOperator;
  readonly operand: Expr;
}

export type UnaryOperator =
  | "+"
  | "-"
  | "NOT"
  | "IS NULL"
  | "IS NOT NULL"
  | "IS TRUE"
  | "IS NOT TRUE"
  | "IS FALSE"
  | "IS NOT FALSE"
  | "IS UNKNOWN"
  | "IS NOT UNKNOWN"
  | "~"
  | "@"
  | "!!"
  | "|/"
  | "||/"
  | "@@"
  | "@-@"
  | "#"
  | "?-"
  | "?|";

/** A range test: `value [NOT] BETWEEN [SYMMETRIC] lo AND hi`. */
export interface ExprTernary extends AstNode {
  readonly type: "ternary";
  readonly op: "BETWEEN" | "NOT BETWEEN";
  readonly value: Expr;
  readonly lo: Expr;
  readonly hi: Expr;
  /** True for BETWEEN SYMMETRIC (extension). */
  readonly symmetric?: true | undefined;
}

/** An explicit cast: `CAST(x AS t)`, `x::t` or `t 'text'`. */
export interface ExprCast extends AstNode {
  readonly type: "cast";
  readonly to: DataTypeDef;
  readonly operand: Expr;
}

/** A collation: `x COLLATE "C"` (extension). */
export interface ExprCollate extends AstNode {
  readonly type: "collate";
  readonly operand: Expr;
  readonly collation: CollationNode;
}

/** A CASE expression. The simple form has a `value`; the searched form has none. */
export interface ExprCase extends AstNode {
  readonly type: "case";
  readonly value?: Expr | undefined;
  readonly whens: readonly ExprWhen[];
  readonly else?: Expr | undefined;
}

export interface ExprWhen extends AstNode {
  readonly when: Expr;
  readonly value: Expr;
}

/**
 * A call to a function, aggregate or window function. This node also represents the following
 * special forms, distinguished by the name of `function`: `exists` (one argument, a query),
 * `any`/`some`/`all` (see {@linkcode ExprBinary}), `coalesce`, `nullif`, `greatest`, `least`,
 * `grouping`, `file` (one string: FILE('part')), `position` (with the arguments needle, haystack),
 * `normalize` (the form is a string), `current_timestamp(3)`, `trim(x)`.
 */
export interface ExprCall extends AstNode {
  readonly type: "call";
  readonly function: QName;
  readonly args: readonly Expr[];
  /**
   * The name of each argument, as in `f(a => 1)`; undefined for a positional argument (extension).
   */
  readonly argNames?: readonly (string | undefined)[] | undefined;
  /** Whether VARIADIC was written before the last argument (extension). */
  readonly isVariadic?: true | undefined;
  readonly distinct?: "all" | "distinct" | undefined;
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  readonly filter?: Expr | undefined;
  readonly withinGroup?: OrderByStatement | undefined;
  /** The sort keys of WITHIN GROUP after the first one (extension). */
  readonly withinGroupThen?: readonly OrderByStatement[] | undefined;
  readonly over?: CallOver | undefined;
  /**
   * The range or multirange type, defined by CREATE TYPE, to which the name of the function has
   * been resolved (extension).
   */
  readonly rangeType?: RangeType | undefined;
  /** The syntax of an SQL/XML call, which determines the meaning of its arguments (extension). */
  readonly xml?: XmlSyntax | undefined;
}

/** A window: `OVER (…)`, `OVER w` or the definition in `WINDOW w AS (…)`. */
export interface CallOver extends AstNode {
  /** The window name in `OVER w`. If it is present, all other members are absent (extension). */
  readonly name?: Name | undefined;
  /** The named window that `OVER (w …)` extends (extension). */
  readonly base?: Name | undefined;
  readonly partitionBy?: readonly Expr[] | undefined;
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  /**
   * The window frame (extension). If it is absent, the frame is RANGE BETWEEN UNBOUNDED PRECEDING
   * AND CURRENT ROW.
   */
  readonly frame?: WindowFrame | undefined;
}

/** A window frame, such as `ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES` (extension). */
export interface WindowFrame extends AstNode {
  readonly mode: "rows" | "range" | "groups";
  readonly start: FrameBound;
  /** The end of the frame. It is always present: without BETWEEN, it is CURRENT ROW. */
  readonly end: FrameBound;
  readonly exclude?: "current row" | "group" | "ties" | undefined;
}

/**
 * A bound of a window frame (extension). The first five types are listed in the order of their
 * positions in a partition.
 */
export interface FrameBound extends AstNode {
  readonly type:
    | "unbounded preceding"
    | "preceding"
    | "current row"
    | "following"
    | "unbounded following";
  /** The offset of the bound; present only for PRECEDING and FOLLOWING. */
  readonly offset?: Expr | undefined;
}

/** The form `EXTRACT(field FROM x)`. The field may be quoted. */
export interface ExprExtract extends AstNode {
  readonly type: "extract";
  readonly field: Name;
  readonly from: Expr;
}

/** The form `SUBSTRING(x FROM a FOR n)`. With commas, it is a call instead. */
export interface ExprSubstring extends AstNode {
  readonly type: "substring";
  readonly value: Expr;
  readonly from?: Expr | undefined;
  readonly for?: Expr | undefined;
}

/** The form `OVERLAY(x PLACING y FROM a FOR n)`. */
export interface ExprOverlay extends AstNode {
  readonly type: "overlay";
  readonly value: Expr;
  readonly placing: Expr;
  readonly from: Expr;
  readonly for?: Expr | undefined;
}

/**
 * The form `TRIM([side] [characters] FROM value)` (extension). `trim(a)` and `trim(a, b)` are
 * calls.
 */
export interface ExprTrim extends AstNode {
  readonly type: "trim";
  readonly side: "both" | "leading" | "trailing";
  readonly characters?: Expr | undefined;
  readonly value: Expr;
}
