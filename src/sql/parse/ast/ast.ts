/**
 * The syntax tree: the output of the parser and the input of the binder.
 *
 * Shapes, field names and `type` words are those of pgsql-ast-parser (the oracle of the tests),
 * with extensions for constructs that it lacks. Nodes that differ are marked "Own". The rules for
 * all nodes:
 *
 * - `_location` is the half-open range [start, end) of the node in the text of the request, in
 *   UTF-16 units; parentheses around an expression are not part of it.
 * - Absent members are undefined or missing. Names are already folded: unquoted names are in lower
 *   case, quoted names as written.
 * - Literals keep their exact text. `value` of a number is for messages; the exact value is in
 *   `text`.
 * - An expression is at most {@linkcode EXPRESSION_DEPTH_MAX} nodes deep, so recursion is safe.
 *
 * This file contains names, queries, DML and the union of statements, and exports the others:
 * `ast_expressions.ts`, `ast_definitions.ts`, `ast_sequences.ts`, `ast_types.ts`, `ast_topics.ts`
 * and `ast_admin.ts`.
 */
import type { DataType } from "../../../types/mod.ts";
import type { AdminStatement } from "./ast_admin.ts";
import type { DefinitionStatement } from "./ast_definitions.ts";
import type { CallOver, Expr, ExprCall } from "./ast_expressions.ts";
import type { AckStatement, ConsumeStatement } from "./ast_topics.ts";

export type * from "./ast_admin.ts";
export type * from "./ast_definitions.ts";
export type * from "./ast_expressions.ts";
export type * from "./ast_sequences.ts";
export type * from "./ast_topics.ts";
export type * from "./ast_types.ts";

/**
 * The maximum depth of an expression tree. Deeper text is INVALID_SQL, so tree walks never overflow
 * the stack.
 */
export const EXPRESSION_DEPTH_MAX = 6000;

/** The range [start, end) in the text of the request, in UTF-16 units. */
export interface Location {
  readonly start: number;
  readonly end: number;
}

/** The common part of all nodes. */
export interface AstNode {
  readonly _location: Location;
}

/** A name of a column, alias, constraint and so on. */
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

/** `AS g (a, b)` after a table function. */
export interface TableAliasName extends Name {
  readonly columns?: readonly Name[] | undefined;
}

/** A type as written, neither resolved nor checked. */
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
  readonly intervalFields?: readonly IntervalFieldWord[] | undefined;
  /** Own: the type of a name that CREATE TYPE has defined, once the name is resolved. */
  readonly definedType?: DataType | undefined;
}

export type IntervalFieldWord = "year" | "month" | "day" | "hour" | "minute" | "second";

/** A query. `TABLE t` has the node of `SELECT * FROM t`. */
export type SelectStatement =
  | SelectFromStatement
  | SelectFromUnion
  | ValuesStatement
  | WithStatement;

/** One SELECT block with its ORDER BY and LIMIT. */
export interface SelectFromStatement extends AstNode {
  readonly type: "select";
  readonly distinct?: "all" | "distinct" | readonly Expr[] | undefined;
  /** The select list; absent for `SELECT FROM t`. */
  readonly columns?: readonly SelectedColumn[] | undefined;
  /**
   * The table that INTO names. The parser turns a statement that begins so into CREATE TABLE … AS;
   * the binder refuses INTO anywhere else.
   */
  readonly into?: QName | undefined;
  /**
   * A flat list: an item without `join` begins a comma item; an item with `join` joins everything
   * before it in that comma item.
   */
  readonly from?: readonly From[] | undefined;
  readonly where?: Expr | undefined;
  readonly groupBy?: readonly GroupItem[] | undefined;
  /** Whether GROUP BY DISTINCT keeps only one of several equal grouping sets. */
  readonly groupDistinct?: true | undefined;
  readonly having?: Expr | undefined;
  /** Own: `WINDOW w AS (…)`. */
  readonly windows?: readonly WindowDefinition[] | undefined;
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  readonly limit?: LimitStatement | undefined;
}

export interface WindowDefinition extends AstNode {
  readonly name: Name;
  readonly window: CallOver;
}

/** An item of the select list or of RETURNING. `*` is a ref with `star`. */
export interface SelectedColumn extends AstNode {
  readonly expr: Expr;
  readonly alias?: Name | undefined;
}

/**
 * An expressionor a grouping set. `(a, b)` and `()` are a `list`, which groups by all its parts
 * together.
 */
export type GroupItem = Expr | GroupingSetsNode;

/** Own (the library has a call): ROLLUP, CUBE and GROUPING SETS, which may nest. */
export interface GroupingSetsNode extends AstNode {
  readonly type: "rollup" | "cube" | "grouping sets";
  readonly groups: readonly GroupItem[];
}

/**
 * A set operation. ORDER BY and LIMIT after it belong to it (the library assigns them to `right`).
 */
export interface SelectFromUnion extends AstNode {
  readonly type: "union" | "union all" | "intersect" | "intersect all" | "except" | "except all";
  /** The left side: chains lean to the left (the library leans to the right). */
  readonly left: SelectStatement;
  readonly right: SelectStatement;
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  readonly limit?: LimitStatement | undefined;
}

/** `VALUES (…), …`. Rows may differ in length here, but the binder refuses this. */
export interface ValuesStatement extends AstNode {
  readonly type: "values";
  readonly values: readonly (readonly Expr[])[];
  /** The values in compact form, if the list consists of many plain literals. */
  readonly literals?: LiteralList | undefined;
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  readonly limit?: LimitStatement | undefined;
}

/**
 * `WITH a AS (…), b AS (…) in`. The type shows whether RECURSIVE was written; if so, every entry
 * may refer to itself (the library has one binding of its own form).
 */
export interface WithStatement extends AstNode {
  readonly type: "with" | "with recursive";
  readonly bind: readonly WithBinding[];
  readonly in: SelectStatement | ChangeStatement;
}

export interface WithBinding extends AstNode {
  readonly alias: Name;
  readonly columnNames?: readonly Name[] | undefined;
  /** Own: true for MATERIALIZED, false for NOT MATERIALIZED. */
  readonly materialized?: boolean | undefined;
  readonly statement: QueryStatement;
  readonly search?: SearchClause | undefined;
  readonly cycle?: CycleClause | undefined;
}

/** `SEARCH DEPTH | BREADTH FIRST BY a, b SET c`. */
export interface SearchClause extends AstNode {
  readonly order: "depth" | "breadth";
  readonly by: readonly Name[];
  readonly set: Name;
}

/** `CYCLE a, b SET mark [TO value DEFAULT otherwise] USING path`. */
export interface CycleClause extends AstNode {
  readonly columns: readonly Name[];
  readonly mark: Name;
  readonly value?: Expr | undefined;
  readonly otherwise?: Expr | undefined;
  readonly path: Name;
}

export interface OrderByStatement extends AstNode {
  readonly by: Expr;
  /** The direction: `USING <` is ASC, `USING >` is DESC. */
  readonly order?: "ASC" | "DESC" | undefined;
  readonly nulls?: "FIRST" | "LAST" | undefined;
}

/**
 * LIMIT and OFFSET. LIMIT ALL is an absent limit; LIMIT NULL is the literal. FETCH FIRST ROW is 1.
 */
export interface LimitStatement extends AstNode {
  readonly limit?: Expr | undefined;
  readonly offset?: Expr | undefined;
  /** Own: whether FETCH … WITH TIES was written. */
  readonly withTies?: true | undefined;
}

export type From = FromTable | FromStatement | FromCall | FromRows | FromGroup;

/** The join of an item with the items before it. */
export interface JoinClause extends AstNode {
  readonly type: "INNER JOIN" | "LEFT JOIN" | "RIGHT JOIN" | "FULL JOIN" | "CROSS JOIN";
  readonly on?: Expr | undefined;
  readonly using?: readonly Name[] | undefined;
  /** Own: the alias of the columns that USING merges. */
  readonly usingAlias?: Name | undefined;
  /** Own: NATURAL, which has neither ON nor USING. */
  readonly natural?: true | undefined;
}

/** A table, view or CTE that is named in FROM. */
export interface FromTable extends AstNode {
  readonly type: "table";
  readonly name: QNameMapped;
  readonly join?: JoinClause | undefined;
  /** FOR SYSTEM_TIME AS OF: parsed here but refused by the binder. */
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

/** A table function in FROM. */
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
  /** The calls, which have no aliases. Each may define its columns. */
  readonly calls: readonly FromCall[];
  readonly alias?: TableAliasName | undefined;
  readonly withOrdinality?: true | undefined;
  readonly lateral?: true | undefined;
  readonly join?: JoinClause | undefined;
}

/**
 * Own: joins that form one operand: `a JOIN (b JOIN c ON …) ON …`. The items are as in SELECT's
 * `from`. With an alias, as in `(a JOIN b ON …) AS j`, the group is one relation.
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
  readonly insert:
    | SelectStatement
    | LiteralValuesStatement
    | DefaultValuesStatement
    | CopySourceStatement;
  /** OVERRIDING SYSTEM VALUE or OVERRIDING USER VALUE. */
  readonly overriding?: "system" | "user" | undefined;
  readonly onConflict?: OnConflictAction | undefined;
  readonly returning?: readonly SelectedColumn[] | undefined;
}

/**
 * Own: the source of an INSERT that is written as COPY FROM STDIN. Its rows come with the request,
 * or follow the statement in its text.
 */
export interface CopySourceStatement extends AstNode {
  readonly type: "copy source";
  readonly options: CopySettings;
  /** The UTF-8 of the lines between the statement and the line `\.`; absent if none follow. */
  readonly data?: Uint8Array | undefined;
}

/** Own: `COPY t TO STDOUT` or `COPY (query) TO STDOUT`; a table is a query of its columns. */
export interface CopyToStatement extends AstNode {
  readonly type: "copy to";
  readonly statement: SelectStatement;
  /** The table and its columns, as written instead of a query. */
  readonly named?:
    | { readonly table: QName; readonly columns?: readonly Name[] | undefined }
    | undefined;
  readonly options: CopySettings;
}

export type CopyFormat = "text" | "csv" | "ndjson" | "binary";

/** The options of COPY, with the defaults of the format filled in. */
export interface CopySettings {
  readonly format: CopyFormat;
  /** One ASCII character between two cells. */
  readonly delimiter: string;
  /** The text that stands for NULL. */
  readonly nullText: string;
  /** The text that stands for the default of a column; absent if no text does. */
  readonly defaultText?: string | undefined;
  /** Whether a first line names the columns, and whether their names must match. */
  readonly header: "none" | "line" | "match";
  /** One ASCII character each; for CSV only. */
  readonly quote: string;
  readonly escape: string;
  /** The columns whose cells are always quoted. */
  readonly forceQuote: CopyColumns;
  /** The columns in which the text of NULL is a text like any other. */
  readonly forceNotNull: CopyColumns;
  /** The columns in which the text of NULL is NULL even in quotes. */
  readonly forceNull: CopyColumns;
  readonly onConflict: "error" | "nothing" | "update";
  /** Whether rows with a value that its column cannot store are skipped. */
  readonly skipsFaulty: boolean;
}

/** Columns that an option of COPY names. */
export type CopyColumns = "all" | readonly Name[];

/** Own: `INSERT INTO t DEFAULT VALUES`. */
export interface DefaultValuesStatement extends AstNode {
  readonly type: "default values";
}

/**
 * Own: a long VALUES list of plain literals as the source of INSERT, stored cell by cell in row
 * order: cell = row × columnCount + column. `literalValuesToRows` gives the ordinary form.
 */
export interface LiteralValuesStatement extends AstNode, LiteralList {
  readonly type: "literal values";
}

/** Plain literals at their positions in a text, row by row. */
export interface LiteralList {
  readonly rowCount: number;
  readonly columnCount: number;
  /** The {@linkcode LiteralCell} of each cell. */
  readonly kinds: Uint8Array;
  /** The UTF-8 text of the request, which contains the cells; see `literalText`. */
  readonly bytes: Uint8Array;
  /**
   * The offset in `bytes` at which each cell begins: the quote of a string, or the sign of a
   * number.
   */
  readonly starts: Int32Array;
  /** The offset in `bytes` after each cell. */
  readonly ends: Int32Array;
}

/** The kinds of cell in a {@linkcode LiteralList}. */
export const LiteralCell = {
  null: 0,
  default: 1,
  false: 2,
  true: 3,
  integer: 4,
  numeric: 5,
  /** A string whose value is the text between the quotes. */
  string: 6,
  /** A string with doubled quotes, or E'…'. */
  encodedString: 7,
} as const;

export interface OnConflictAction extends AstNode {
  readonly on?: OnConflictOnExpr | OnConflictOnConstraint | undefined;
  readonly do: "do nothing" | { readonly sets: readonly SetStatement[] };
  readonly where?: Expr | undefined;
}

/** The parts of the key of an index, and a condition that its rows meet. */
export interface OnConflictOnExpr extends AstNode {
  readonly type: "on expr";
  /** A column is a plain ref. */
  readonly exprs: readonly Expr[];
  readonly where?: Expr | undefined;
}

export interface OnConflictOnConstraint extends AstNode {
  readonly type: "on constraint";
  readonly constraint: QName;
}

/** `(a, b) = (1, 2)` is two `set` entries; `(a, b) = (SELECT …)` is one `set columns` entry. */
export type SetStatement = SetColumn | SetColumns;

export interface SetColumn extends AstNode {
  /** A discriminant of our own, which the library lacks. */
  readonly type: "set";
  readonly column: Name;
  /** Own: the part of the column that is assigned, as in `SET a[1] = 2`. */
  readonly subscripts?: readonly Subscript[];
  readonly value: Expr;
}

/** Own: `[to]`, or `[from:to]`. */
export interface Subscript extends AstNode {
  readonly type: "index" | "slice";
  readonly from?: Expr | undefined;
  readonly to?: Expr | undefined;
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
  /** Own: a list of items (the library takes only one). */
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

export interface MergeStatement extends AstNode {
  readonly type: "merge";
  readonly into: QNameAliased;
  /** One item with its joins. */
  readonly source: readonly From[];
  readonly on: Expr;
  readonly clauses: readonly MergeClause[];
  readonly returning?: readonly SelectedColumn[] | undefined;
}

/** `WHEN [NOT] MATCHED [AND condition] THEN action`. */
export interface MergeClause extends AstNode {
  readonly isMatched: boolean;
  readonly condition?: Expr | undefined;
  readonly action: MergeAction;
}

export type MergeAction =
  | { readonly type: "nothing" }
  | { readonly type: "delete" }
  | { readonly type: "update"; readonly sets: readonly SetStatement[] }
  | MergeInsert;

export interface MergeInsert extends AstNode {
  readonly type: "insert";
  readonly columns?: readonly Name[] | undefined;
  readonly overriding?: InsertStatement["overriding"];
  /** One row; empty for DEFAULT VALUES. */
  readonly values: readonly Expr[];
}

/** A statement that changes rows. */
export type ChangeStatement = InsertStatement | UpdateStatement | DeleteStatement | MergeStatement;

/** A statement that reads or writes rows. */
export type QueryStatement = SelectStatement | ChangeStatement;

/** Any statement. */
export type Statement =
  | QueryStatement
  | CopyToStatement
  | DefinitionStatement
  | AdminStatement
  | ConsumeStatement
  | AckStatement;
