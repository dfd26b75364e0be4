/**
 * Defines the syntax tree, which the parser produces and the binder consumes.
 *
 * Shapes, field names and `type` words are those of pgsql-ast-parser (the oracle of the tests),
 * with extensions for constructs that it lacks. Nodes and members that the library lacks, or
 * defines differently, are marked "(extension)". The rules for all nodes:
 *
 * - `_location` is the half-open range [start, end) of the node in the text of the request, in
 *   UTF-16 units; parentheses around an expression are not part of it.
 * - Absent members are undefined or missing. Names are already folded: unquoted names are in lower
 *   case, and quoted names are as written.
 * - Literals keep their exact text. The `value` of a number is only for messages; the exact value
 *   is in `text`.
 * - An expression is at most {@linkcode EXPRESSION_DEPTH_MAX} nodes deep, so recursion is safe.
 *
 * This file contains names, queries, DML and the union of statements, and exports the others:
 * `ast_expressions.ts`, `ast_definitions.ts`, `ast_policies.ts`, `ast_sequences.ts`,
 * `ast_types.ts`, `ast_functions.ts`, `ast_triggers.ts`, `ast_topics.ts`, `ast_tokens.ts` and
 * `ast_admin.ts`.
 */
import type { Collation, DataType, DomainType } from "../../../types/mod.ts";
import type { AdminStatement } from "./ast_admin.ts";
import type { DefinitionStatement, TablePersistence } from "./ast_definitions.ts";
import type { CallOver, Expr, ExprCall } from "./ast_expressions.ts";
import type { CallStatement, DoBlockStatement } from "./ast_functions.ts";
import type { AckStatement, ConsumeStatement } from "./ast_topics.ts";

export type * from "./ast_admin.ts";
export type * from "./ast_definitions.ts";
export type * from "./ast_expressions.ts";
export type * from "./ast_functions.ts";
export type * from "./ast_partitions.ts";
export type * from "./ast_policies.ts";
export type * from "./ast_sequences.ts";
export type * from "./ast_tokens.ts";
export type * from "./ast_topics.ts";
export type * from "./ast_triggers.ts";
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

/** The properties that all nodes of the syntax tree have. */
export interface AstNode {
  readonly _location: Location;
}

/** A name of a column, alias, constraint and so on. */
export interface Name extends AstNode {
  readonly name: string;
}

/** A name that may be qualified: `name` or `schema.name`. The schema is a namespace. */
export interface QName extends Name {
  readonly schema?: string | undefined;
}

/** The target of a change: `ns.t AS alias`. */
export interface QNameAliased extends QName {
  readonly alias?: string | undefined;
  /**
   * Whether the target may be a materialized view. REFRESH sets this in the changes that it makes;
   * no text sets it.
   */
  readonly isRefresh?: true;
}

/** A table in FROM, with its aliases: `ns.t AS alias (c1, c2)`. */
export interface QNameMapped extends QNameAliased {
  readonly columnNames?: readonly Name[] | undefined;
}

/** The alias after a table function: `AS g (a, b)`. */
export interface TableAliasName extends Name {
  readonly columns?: readonly Name[] | undefined;
}

/** A type as it is written in the text, before its name is resolved and checked. */
export type DataTypeDef = ArrayDataTypeDef | BasicDataTypeDef;

/** An array type, such as `INT[]`. */
export interface ArrayDataTypeDef extends AstNode {
  readonly kind: "array";
  readonly arrayOf: DataTypeDef;
  readonly collation?: CollationNode | undefined;
}

/**
 * A type that is not an array. `VARCHAR(3)` has the name "varchar" and the config [3]. The words of
 * a name are joined by single spaces.
 */
export interface BasicDataTypeDef extends QName {
  readonly kind?: undefined;
  readonly doubleQuoted?: true | undefined;
  readonly config?: readonly number[] | undefined;
  /**
   * The fields of an interval (extension): `INTERVAL '1' DAY TO HOUR` has ["day", "hour"], and
   * `INTERVAL '1' DAY` has ["day"].
   */
  readonly intervalFields?: readonly IntervalFieldWord[] | undefined;
  /** The type to which a name from CREATE TYPE has been resolved (extension). */
  readonly definedType?: DataType | undefined;
  /**
   * The domain to which the name refers, if it refers to one (extension). `definedType` is then the
   * base type of the domain.
   */
  readonly domain?: DomainType | undefined;
  readonly collation?: CollationNode | undefined;
}

/** The name of a collation, as after COLLATE. */
export interface CollationNode extends QName {
  /** The collation to which a name from CREATE COLLATION has been resolved (extension). */
  readonly definedCollation?: Collation | undefined;
}

export type IntervalFieldWord = "year" | "month" | "day" | "hour" | "minute" | "second";

/** A query. `TABLE t` has the same node as `SELECT * FROM t`. */
export type SelectStatement =
  | SelectFromStatement
  | SelectFromUnion
  | ValuesStatement
  | WithStatement;

/** A SELECT block with its ORDER BY and LIMIT. */
export interface SelectFromStatement extends AstNode {
  readonly type: "select";
  readonly distinct?: "all" | "distinct" | readonly Expr[] | undefined;
  /** The select list; absent for `SELECT FROM t`. */
  readonly columns?: readonly SelectedColumn[] | undefined;
  /**
   * The table that INTO names. The parser turns a statement of the form SELECT … INTO into CREATE
   * TABLE … AS; the binder refuses INTO anywhere else.
   */
  readonly into?: (QName & TablePersistence) | undefined;
  /**
   * The items of FROM as a flat list. An item without `join` begins a comma item. An item with
   * `join` joins everything before it in that comma item.
   */
  readonly from?: readonly From[] | undefined;
  readonly where?: Expr | undefined;
  readonly groupBy?: readonly GroupItem[] | undefined;
  /** Whether GROUP BY has DISTINCT, which keeps only one of several equal grouping sets. */
  readonly groupDistinct?: true | undefined;
  readonly having?: Expr | undefined;
  /** The windows that the WINDOW clause defines (extension). */
  readonly windows?: readonly WindowDefinition[] | undefined;
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  readonly limit?: LimitStatement | undefined;
}

export interface WindowDefinition extends AstNode {
  readonly name: Name;
  readonly window: CallOver;
}

/** An item of the select list or of RETURNING. `*` is a reference with `star`. */
export interface SelectedColumn extends AstNode {
  readonly expr: Expr;
  readonly alias?: Name | undefined;
}

/**
 * An expression or a grouping set. `(a, b)` and `()` are a `list`, whose parts form one group key
 * together.
 */
export type GroupItem = Expr | GroupingSetsNode;

/**
 * ROLLUP, CUBE or GROUPING SETS, which may be nested (extension; the library represents them as
 * calls).
 */
export interface GroupingSetsNode extends AstNode {
  readonly type: "rollup" | "cube" | "grouping sets";
  readonly groups: readonly GroupItem[];
}

/**
 * A set operation. ORDER BY and LIMIT that follow it belong to it (the library assigns them to
 * `right`).
 */
export interface SelectFromUnion extends AstNode {
  readonly type: "union" | "union all" | "intersect" | "intersect all" | "except" | "except all";
  /** The left side. Chains lean to the left (in the library, to the right). */
  readonly left: SelectStatement;
  readonly right: SelectStatement;
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  readonly limit?: LimitStatement | undefined;
}

/**
 * A list of rows: `VALUES (…), …`. The parser allows rows of different lengths, but the binder
 * refuses them.
 */
export interface ValuesStatement extends AstNode {
  readonly type: "values";
  readonly values: readonly (readonly Expr[])[];
  /** The values in compact form, if the list consists of many plain literals. */
  readonly literals?: LiteralList | undefined;
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  readonly limit?: LimitStatement | undefined;
}

/**
 * A query or change with WITH: `WITH a AS (…), b AS (…) in`. The type shows whether RECURSIVE was
 * written; if so, every entry may refer to itself (the library has a separate node with a single
 * binding).
 */
export interface WithStatement extends AstNode {
  readonly type: "with" | "with recursive";
  readonly bind: readonly WithBinding[];
  readonly in: SelectStatement | ChangeStatement;
}

export interface WithBinding extends AstNode {
  readonly alias: Name;
  readonly columnNames?: readonly Name[] | undefined;
  /** True for MATERIALIZED, false for NOT MATERIALIZED (extension). */
  readonly materialized?: boolean | undefined;
  readonly statement: QueryStatement;
  readonly search?: SearchClause | undefined;
  readonly cycle?: CycleClause | undefined;
}

/** The clause `SEARCH DEPTH | BREADTH FIRST BY a, b SET c`. */
export interface SearchClause extends AstNode {
  readonly order: "depth" | "breadth";
  readonly by: readonly Name[];
  readonly set: Name;
}

/** The clause `CYCLE a, b SET mark [TO value DEFAULT otherwise] USING path`. */
export interface CycleClause extends AstNode {
  readonly columns: readonly Name[];
  readonly mark: Name;
  readonly value?: Expr | undefined;
  readonly otherwise?: Expr | undefined;
  readonly path: Name;
}

export interface OrderByStatement extends AstNode {
  readonly by: Expr;
  /** The direction. `USING <` is ASC, and `USING >` is DESC. */
  readonly order?: "ASC" | "DESC" | undefined;
  readonly nulls?: "FIRST" | "LAST" | undefined;
}

/**
 * LIMIT and OFFSET. LIMIT ALL gives an absent limit, LIMIT NULL a literal, and FETCH FIRST ROW a
 * limit of 1.
 */
export interface LimitStatement extends AstNode {
  readonly limit?: Expr | undefined;
  readonly offset?: Expr | undefined;
  /** True if FETCH … WITH TIES was written (extension). */
  readonly withTies?: true | undefined;
}

export type From = FromTable | FromStatement | FromCall | FromRows | FromGroup;

/** The way in which an item is joined with the items before it. */
export interface JoinClause extends AstNode {
  readonly type: "INNER JOIN" | "LEFT JOIN" | "RIGHT JOIN" | "FULL JOIN" | "CROSS JOIN";
  readonly on?: Expr | undefined;
  readonly using?: readonly Name[] | undefined;
  /** The alias for the columns that USING merges (extension). */
  readonly usingAlias?: Name | undefined;
  /** True for a NATURAL join, which has neither ON nor USING (extension). */
  readonly natural?: true | undefined;
}

/** A table, view or CTE that is named in FROM. */
export interface FromTable extends AstNode {
  readonly type: "table";
  readonly name: QNameMapped;
  readonly join?: JoinClause | undefined;
  /** The moment of FOR SYSTEM_TIME AS OF. */
  readonly systemTime?: Expr | undefined;
}

/** A query in FROM: `(query) AS alias (c1, c2)`. */
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
  /** Set if the item is a CALL of a procedure. */
  readonly isProcedure?: true | undefined;
  readonly alias?: TableAliasName | undefined;
  readonly withOrdinality?: true | undefined;
  readonly lateral?: true | undefined;
  readonly join?: JoinClause | undefined;
  /**
   * The columns in `AS x (a INT, b TEXT)` (extension). The `alias` is then x without columns, or
   * absent.
   */
  readonly columnDefinitions?: readonly ColumnDefinition[] | undefined;
}

export interface ColumnDefinition extends AstNode {
  readonly name: Name;
  readonly dataType: DataTypeDef;
}

/** `ROWS FROM (f(…), g(…))`: table functions whose rows are combined side by side (extension). */
export interface FromRows extends AstNode {
  readonly type: "rows from";
  /** The calls. They have no aliases, but each may define its columns. */
  readonly calls: readonly FromCall[];
  readonly alias?: TableAliasName | undefined;
  readonly withOrdinality?: true | undefined;
  readonly lateral?: true | undefined;
  readonly join?: JoinClause | undefined;
}

/**
 * Joins that form one operand: `a JOIN (b JOIN c ON …) ON …` (extension). The items have the same
 * form as `from` of SELECT. With an alias, as in `(a JOIN b ON …) AS j`, the group is one relation.
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
  /**
   * The words after OVERRIDING: SYSTEM VALUE or USER VALUE; absent if the statement has no
   * OVERRIDING.
   */
  readonly overriding?: "system" | "user" | undefined;
  readonly onConflict?: OnConflictAction | undefined;
  readonly returning?: readonly SelectedColumn[] | undefined;
}

/**
 * The source of an INSERT that is written as COPY FROM STDIN (extension). Its rows come with the
 * request, or follow the statement in its text.
 */
export interface CopySourceStatement extends AstNode {
  readonly type: "copy source";
  readonly options: CopySettings;
  /** The lines between the statement and the line `\.`, as UTF-8; absent if no lines follow. */
  readonly data?: Uint8Array | undefined;
}

/**
 * `COPY t TO STDOUT` or `COPY (query) TO STDOUT` (extension). A table is represented by a query
 * that selects its columns.
 */
export interface CopyToStatement extends AstNode {
  readonly type: "copy to";
  readonly statement: SelectStatement;
  /** The table and its columns, if the statement names a table instead of a query. */
  readonly named?:
    | { readonly table: QName; readonly columns?: readonly Name[] | undefined }
    | undefined;
  readonly options: CopySettings;
}

export type CopyFormat = "text" | "csv" | "ndjson" | "binary";

/** The options of COPY, with the defaults of the format filled in. */
export interface CopySettings {
  readonly format: CopyFormat;
  /** The ASCII character between two cells of COPY data. */
  readonly delimiter: string;
  /** The string that represents NULL in COPY data. */
  readonly nullText: string;
  /** The string that represents the default of a column; absent if there is none. */
  readonly defaultText?: string | undefined;
  /** Whether the first line contains column names, and whether they must match the columns. */
  readonly header: "none" | "line" | "match";
  /** The quote character, one ASCII character; only for CSV. */
  readonly quote: string;
  readonly escape: string;
  /** The columns whose cells COPY always quotes. */
  readonly forceQuote: CopyColumns;
  /** The columns in which an unquoted string for NULL is still an ordinary string. */
  readonly forceNotNull: CopyColumns;
  /** The columns in which the string for NULL means NULL even if it is quoted. */
  readonly forceNull: CopyColumns;
  readonly onConflict: "error" | "nothing" | "update";
  /** Whether COPY skips a row that contains a value which its column cannot store. */
  readonly skipsFaulty: boolean;
}

/** Columns that an option of COPY names. */
export type CopyColumns = "all" | readonly Name[];

/** The source of `INSERT INTO t DEFAULT VALUES` (extension). */
export interface DefaultValuesStatement extends AstNode {
  readonly type: "default values";
}

/**
 * A long VALUES list of plain literals as the source of INSERT, stored cell by cell in row order
 * (extension): cell = row × columnCount + column. `literalValuesToRows` returns the ordinary form.
 */
export interface LiteralValuesStatement extends AstNode, LiteralList {
  readonly type: "literal values";
}

/** A list of plain literals, given by their positions in a text, row by row. */
export interface LiteralList {
  readonly rowCount: number;
  readonly columnCount: number;
  /** The {@linkcode LiteralCell} of each cell. */
  readonly kinds: Uint8Array;
  /** The UTF-8 text of the request, which contains the cells; `literalText` reads them. */
  readonly bytes: Uint8Array;
  /**
   * The offset in `bytes` at which each cell begins. A string begins at its quote, and a number at
   * its sign.
   */
  readonly starts: Int32Array;
  /** The offset in `bytes` at which each cell ends. */
  readonly ends: Int32Array;
}

/** The types of cells in a {@linkcode LiteralList}. */
export const LiteralCell = {
  null: 0,
  default: 1,
  false: 2,
  true: 3,
  integer: 4,
  numeric: 5,
  /** A string whose value is exactly the text between the quotes. */
  string: 6,
  /** A string with doubled quotes, or E'…'. */
  encodedString: 7,
} as const;

export interface OnConflictAction extends AstNode {
  readonly on?: OnConflictOnExpr | OnConflictOnConstraint | undefined;
  readonly do: "do nothing" | { readonly sets: readonly SetStatement[] };
  readonly where?: Expr | undefined;
}

/** The target of ON CONFLICT: the parts of an index key and, for a partial index, its condition. */
export interface OnConflictOnExpr extends AstNode {
  readonly type: "on expr";
  /** The parts of an index key. A column is a plain reference. */
  readonly exprs: readonly Expr[];
  readonly where?: Expr | undefined;
}

export interface OnConflictOnConstraint extends AstNode {
  readonly type: "on constraint";
  readonly constraint: QName;
}

/**
 * An assignment in SET. `(a, b) = (1, 2)` gives two `set` entries; `(a, b) = (SELECT …)` gives one
 * `set columns` entry.
 */
export type SetStatement = SetColumn | SetColumns;

export interface SetColumn extends AstNode {
  /** The discriminant of {@linkcode SetStatement} (extension). */
  readonly type: "set";
  readonly column: Name;
  /** The part of the column to which the value is assigned, as in `SET a[1] = 2` (extension). */
  readonly subscripts?: readonly Subscript[];
  readonly value: Expr;
}

/** A subscript: `[to]` or `[from:to]` (extension). */
export interface Subscript extends AstNode {
  readonly type: "index" | "slice";
  readonly from?: Expr | undefined;
  readonly to?: Expr | undefined;
}

/** An assignment of several columns from one query: `(a, b) = (SELECT …)` (extension). */
export interface SetColumns extends AstNode {
  readonly type: "set columns";
  readonly columns: readonly Name[];
  readonly select: SelectStatement;
}

export interface UpdateStatement extends AstNode {
  readonly type: "update";
  readonly table: QNameAliased;
  readonly sets: readonly SetStatement[];
  /** The items of FROM (extension: the library accepts only one). */
  readonly from?: readonly From[] | undefined;
  readonly where?: Expr | undefined;
  readonly returning?: readonly SelectedColumn[] | undefined;
}

export interface DeleteStatement extends AstNode {
  readonly type: "delete";
  readonly from: QNameAliased;
  /** The items of USING (extension). */
  readonly using?: readonly From[] | undefined;
  readonly where?: Expr | undefined;
  readonly returning?: readonly SelectedColumn[] | undefined;
  /** Set in a statement that the server derives from TRUNCATE, which fires other triggers. */
  readonly isTruncation?: true | undefined;
}

export interface MergeStatement extends AstNode {
  readonly type: "merge";
  readonly into: QNameAliased;
  /** The source of MERGE: one item with its joins. */
  readonly source: readonly From[];
  readonly on: Expr;
  readonly clauses: readonly MergeClause[];
  readonly returning?: readonly SelectedColumn[] | undefined;
}

/** A WHEN clause of MERGE: `WHEN [NOT] MATCHED [AND condition] THEN action`. */
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
  /** The values of one inserted row; empty for DEFAULT VALUES. */
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
  | CallStatement
  | DoBlockStatement
  | ConsumeStatement
  | AckStatement;
