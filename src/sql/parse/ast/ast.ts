/**
 * The syntax tree: what the parser makes and the binder reads.
 *
 * Shapes, field names and `type` words are those of pgsql-ast-parser (the oracle of the tests),
 * extended where it lacks a construct; nodes that differ from it say so. The rules for all nodes:
 *
 * - `_location` is the half-open range [start, end) of the node in the text of the request, in
 *   UTF-16 units; parentheses around an expression are not part of it.
 * - Absent members are undefined or missing. Names are folded already: unquoted ones are in lower
 *   case, quoted ones as written.
 * - Literals keep their exact text. `value` of a number is for messages; exactness is in `text`.
 * - An expression is at most {@linkcode EXPRESSION_DEPTH_MAX} nodes deep, so recursion is safe.
 *
 * This file holds names, queries, DML and the union of statements, and exports the others:
 * `ast_expressions.ts`, `ast_definitions.ts` and `ast_admin.ts`.
 */
import type { AdminStatement } from "./ast_admin.ts";
import type { DefinitionStatement } from "./ast_definitions.ts";
import type { CallOver, Expr, ExprCall, ExprRef } from "./ast_expressions.ts";

export type * from "./ast_admin.ts";
export type * from "./ast_definitions.ts";
export type * from "./ast_expressions.ts";

/** Depth of an expression tree. Deeper text is INVALID_SQL, so that tree walks never overflow. */
export const EXPRESSION_DEPTH_MAX = 1000;

/** [start, end) in the text of the request, in UTF-16 units. */
export interface Location {
  readonly start: number;
  readonly end: number;
}

/** What every node has. */
export interface AstNode {
  readonly _location: Location;
}

/** A name: a column, alias, constraint … */
export interface Name extends AstNode {
  readonly name: string;
}

/** `name` or `schema.name`; the schema is a namespace. */
export interface QName extends Name {
  readonly schema?: string | undefined;
}

/** A target of DML: `ns.t AS alias`. */
export interface QNameAliased extends QName {
  readonly alias?: string | undefined;
}

/** A table in FROM: `ns.t AS alias (c1, c2)`. */
export interface QNameMapped extends QNameAliased {
  readonly columnNames?: readonly Name[] | undefined;
}

/** `AS g (a, b)` behind a table function. */
export interface TableAliasName extends Name {
  readonly columns?: readonly Name[] | undefined;
}

/** A type as written: not resolved, not checked. */
export type DataTypeDef = ArrayDataTypeDef | BasicDataTypeDef;

/** `INT[]`. */
export interface ArrayDataTypeDef extends AstNode {
  readonly kind: "array";
  readonly arrayOf: DataTypeDef;
}

/** `VARCHAR(3)`: name "varchar", config [3]. Words of a name are joined by one space. */
export interface BasicDataTypeDef extends QName {
  readonly kind?: undefined;
  readonly doubleQuoted?: true | undefined;
  readonly config?: readonly number[] | undefined;
  /** Own: `INTERVAL '1' DAY TO HOUR` has ["day", "hour"]; `INTERVAL '1' DAY` has ["day"]. */
  readonly intervalFields?: readonly IntervalField[] | undefined;
}

export type IntervalField = "year" | "month" | "day" | "hour" | "minute" | "second";

/** A query. `TABLE t` is the node of `SELECT * FROM t`. */
export type SelectStatement =
  | SelectFromStatement
  | SelectFromUnion
  | ValuesStatement
  | WithStatement;

/** One SELECT block with its ORDER BY and LIMIT. */
export interface SelectFromStatement extends AstNode {
  readonly type: "select";
  readonly distinct?: "all" | "distinct" | readonly Expr[] | undefined;
  /** Absent for `SELECT FROM t`. */
  readonly columns?: readonly SelectedColumn[] | undefined;
  /**
   * Flat: an item without `join` begins a comma item, one with it joins all of that item so far.
   */
  readonly from?: readonly From[] | undefined;
  readonly where?: Expr | undefined;
  readonly groupBy?: readonly GroupItem[] | undefined;
  /** Of grouping sets that are the same, one is kept. */
  readonly groupDistinct?: true | undefined;
  readonly having?: Expr | undefined;
  /** Own: `WINDOW w AS (…)`. */
  readonly windows?: readonly NamedWindow[] | undefined;
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  readonly limit?: LimitStatement | undefined;
}

export interface NamedWindow extends AstNode {
  readonly name: Name;
  readonly window: CallOver;
}

/** An item of the select list or of RETURNING; `*` is a ref with `star`. */
export interface SelectedColumn extends AstNode {
  readonly expr: Expr;
  readonly alias?: Name | undefined;
}

/** An expression; `(a, b)` and `()` are a `list`, which groups by its parts together. */
export type GroupItem = Expr | GroupingSets;

/** Own (the library has a call): ROLLUP, CUBE and GROUPING SETS, which may nest. */
export interface GroupingSets extends AstNode {
  readonly type: "rollup" | "cube" | "grouping sets";
  readonly groups: readonly GroupItem[];
}

/** ORDER BY and LIMIT behind a set operation belong to it (the library gives them to `right`). */
export interface SelectFromUnion extends AstNode {
  readonly type: "union" | "union all" | "intersect" | "intersect all" | "except" | "except all";
  /** Chains lean to the left (the library leans to the right). */
  readonly left: SelectStatement;
  readonly right: SelectStatement;
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  readonly limit?: LimitStatement | undefined;
}

/** `VALUES (…), …`; rows may differ in length, which the binder refuses. */
export interface ValuesStatement extends AstNode {
  readonly type: "values";
  readonly values: readonly (readonly Expr[])[];
  /** What the values are, when they are many and plain literals. */
  readonly literals?: LiteralList | undefined;
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  readonly limit?: LimitStatement | undefined;
}

/**
 * `WITH a AS (…), b AS (…) in`. The type says whether RECURSIVE stood there; with it every entry
 * may refer to itself (the library has one binding of its own form).
 */
export interface WithStatement extends AstNode {
  readonly type: "with" | "with recursive";
  readonly bind: readonly WithBinding[];
  readonly in: SelectStatement | InsertStatement | UpdateStatement | DeleteStatement;
}

export interface WithBinding extends AstNode {
  readonly alias: Name;
  readonly columnNames?: readonly Name[] | undefined;
  /** Own: true for MATERIALIZED, false for NOT MATERIALIZED. */
  readonly materialized?: boolean | undefined;
  readonly statement: SelectStatement;
}

export interface OrderByStatement extends AstNode {
  readonly by: Expr;
  /** `USING <` is ASC, `USING >` is DESC. */
  readonly order?: "ASC" | "DESC" | undefined;
  readonly nulls?: "FIRST" | "LAST" | undefined;
}

/** LIMIT ALL is an absent limit; LIMIT NULL is the literal. FETCH FIRST ROW is 1. */
export interface LimitStatement extends AstNode {
  readonly limit?: Expr | undefined;
  readonly offset?: Expr | undefined;
  /** Own: FETCH … WITH TIES. */
  readonly withTies?: true | undefined;
}

export type From = FromTable | FromStatement | FromCall | FromRows | FromGroup;

/** How an item joins what stands before it. */
export interface JoinClause extends AstNode {
  readonly type: "INNER JOIN" | "LEFT JOIN" | "RIGHT JOIN" | "FULL JOIN" | "CROSS JOIN";
  readonly on?: Expr | undefined;
  readonly using?: readonly Name[] | undefined;
  /** Own: NATURAL, with neither ON nor USING. */
  readonly natural?: true | undefined;
}

/** A table, view or CTE by name. */
export interface FromTable extends AstNode {
  readonly type: "table";
  readonly name: QNameMapped;
  readonly join?: JoinClause | undefined;
  /** Read, and refused when it is bound: FOR SYSTEM_TIME AS OF. */
  readonly systemTime?: Expr | undefined;
}

/** `(query) AS alias (c1, c2)`. */
export interface FromStatement extends AstNode {
  readonly type: "statement";
  readonly statement: SelectStatement;
  readonly alias?: string | undefined;
  readonly columnNames?: readonly Name[] | undefined;
  readonly lateral?: true | undefined;
  readonly join?: JoinClause | undefined;
}

/** A table function. */
export interface FromCall extends ExprCall {
  readonly alias?: TableAliasName | undefined;
  readonly withOrdinality?: true | undefined;
  readonly lateral?: true | undefined;
  readonly join?: JoinClause | undefined;
  /** Own: `AS x (a INT, b TEXT)`; `alias` is then x without columns, or absent. */
  readonly columnDefinitions?: readonly ColumnDefinition[] | undefined;
}

export interface ColumnDefinition extends AstNode {
  readonly name: Name;
  readonly dataType: DataTypeDef;
}

/** Own: `ROWS FROM (f(…), g(…))`, the rows of table functions side by side. */
export interface FromRows extends AstNode {
  readonly type: "rows from";
  /** Without aliases; each may define its columns. */
  readonly calls: readonly FromCall[];
  readonly alias?: TableAliasName | undefined;
  readonly withOrdinality?: true | undefined;
  readonly lateral?: true | undefined;
  readonly join?: JoinClause | undefined;
}

/**
 * Own: joins that are one operand: `a JOIN (b JOIN c ON …) ON …`. Items as in SELECT's `from`. With
 * an alias, `(a JOIN b ON …) AS j`, it is one relation.
 */
export interface FromGroup extends AstNode {
  readonly type: "from group";
  readonly from: readonly From[];
  readonly alias?: string | undefined;
  readonly columnNames?: readonly Name[] | undefined;
  readonly join?: JoinClause | undefined;
}

export interface InsertStatement extends AstNode {
  readonly type: "insert";
  readonly into: QNameAliased;
  readonly columns?: readonly Name[] | undefined;
  readonly insert: SelectStatement | LiteralValuesStatement | DefaultValuesStatement;
  readonly onConflict?: OnConflictAction | undefined;
  readonly returning?: readonly SelectedColumn[] | undefined;
}

/** Own: `INSERT INTO t DEFAULT VALUES`. */
export interface DefaultValuesStatement extends AstNode {
  readonly type: "default values";
}

/**
 * Own: a long VALUES list of plain literals as the source of INSERT, cell by cell in row order:
 * cell = row × columnCount + column. `literalValuesToRows` gives the ordinary form.
 */
export interface LiteralValuesStatement extends AstNode, LiteralList {
  readonly type: "literal values";
}

/** Plain literals where they stand in a text, row by row. */
export interface LiteralList {
  readonly rowCount: number;
  readonly columnCount: number;
  /** {@linkcode LiteralCell} of each cell. */
  readonly kinds: Uint8Array;
  /** The text of the request in UTF-8, in which the cells lie; see `literalText`. */
  readonly bytes: Uint8Array;
  /** Offset in `bytes` at which each cell begins: of a string its quote, of a number its sign. */
  readonly starts: Int32Array;
  /** Offset in `bytes` behind each cell. */
  readonly ends: Int32Array;
}

/** Kinds of a cell of a {@linkcode LiteralList}. */
export const LiteralCell = {
  null: 0,
  default: 1,
  false: 2,
  true: 3,
  integer: 4,
  numeric: 5,
  /** Its value is what stands between the quotes. */
  string: 6,
  /** With doubled quotes, or E'…'. */
  encodedString: 7,
} as const;

export interface OnConflictAction extends AstNode {
  readonly on?: OnConflictOnExpr | OnConflictOnConstraint | undefined;
  readonly do: "do nothing" | { readonly sets: readonly SetStatement[] };
  readonly where?: Expr | undefined;
}

/** The target columns, each a plain ref. */
export interface OnConflictOnExpr extends AstNode {
  readonly type: "on expr";
  readonly exprs: readonly ExprRef[];
}

export interface OnConflictOnConstraint extends AstNode {
  readonly type: "on constraint";
  readonly constraint: QName;
}

/** `(a, b) = (1, 2)` is two `set` entries; `(a, b) = (SELECT …)` is one `set columns`. */
export type SetStatement = SetColumn | SetColumns;

export interface SetColumn extends AstNode {
  /** Own discriminant. */
  readonly type: "set";
  readonly column: Name;
  readonly value: Expr;
}

/** Own. */
export interface SetColumns extends AstNode {
  readonly type: "set columns";
  readonly columns: readonly Name[];
  readonly select: SelectStatement;
}

export interface UpdateStatement extends AstNode {
  readonly type: "update";
  readonly table: QNameAliased;
  readonly sets: readonly SetStatement[];
  /** Own: a list (the library takes one item). */
  readonly from?: readonly From[] | undefined;
  readonly where?: Expr | undefined;
  readonly returning?: readonly SelectedColumn[] | undefined;
}

export interface DeleteStatement extends AstNode {
  readonly type: "delete";
  readonly from: QNameAliased;
  /** Own. */
  readonly using?: readonly From[] | undefined;
  readonly where?: Expr | undefined;
  readonly returning?: readonly SelectedColumn[] | undefined;
}

/** Reads or writes rows. */
export type QueryStatement = SelectStatement | InsertStatement | UpdateStatement | DeleteStatement;

/** Any statement. */
export type Statement = QueryStatement | DefinitionStatement | AdminStatement;
