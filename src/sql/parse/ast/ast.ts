/**
 * Defines the syntax tree, which the parser produces and the binder consumes.
 *
 * Node shapes, field names and `type` strings are those of pgsql-ast-parser (with which the tests
 * compare the parser), with extensions for constructs that it lacks. "The library" below means
 * pgsql-ast-parser. Nodes and members that it lacks, or defines differently, are marked
 * "(extension)". Rules for all nodes:
 *
 * - `_location` is the half-open range [start, end) of the node in the SQL of the request, in
 *   UTF-16 units. It does not include parentheses around an expression.
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
export type * from "./ast_namespaces.ts";
export type * from "./ast_partitions.ts";
export type * from "./ast_policies.ts";
export type * from "./ast_sequences.ts";
export type * from "./ast_tokens.ts";
export type * from "./ast_topics.ts";
export type * from "./ast_triggers.ts";
export type * from "./ast_types.ts";
export type * from "./ast_xml.ts";

/**
 * The maximum depth of an expression tree. SQL that nests deeper is INVALID_SQL, so tree walks
 * never overflow the stack.
 */
export const EXPRESSION_DEPTH_MAX = 6000;

/** The range [start, end) of a node in the SQL of the request, in UTF-16 units. */
export interface Location {
  readonly start: number;
  readonly end: number;
}

/** The properties that all nodes of the syntax tree have. */
export interface AstNode {
  readonly _location: Location;
}

/** The name of a column, alias, constraint or similar. */
export interface Name extends AstNode {
  readonly name: string;
}

/** A name that may be qualified: `name` or `schema.name`. The schema is a namespace. */
export interface QName extends Name {
  readonly schema?: string | undefined;
  /** Whether ONLY precedes the name of a table whose rows a statement reads or changes. */
  readonly only?: true | undefined;
}

/** The target of a change to rows: `ns.t AS alias`. */
export interface QNameAliased extends QName {
  readonly alias?: string | undefined;
  /**
   * Whether the target may be a materialized view. REFRESH sets this property in the changes that
   * it creates; the parser never sets it.
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

/** A type as written, before its name is resolved and checked. */
export type DataTypeDef = ArrayDataTypeDef | BasicDataTypeDef;

/** An array type, such as `INT[]`. */
export interface ArrayDataTypeDef extends AstNode {
  readonly kind: "array";
  readonly arrayOf: DataTypeDef;
  readonly collation?: CollationNode | undefined;
}

/**
 * A type that is not an array. `VARCHAR(3)` has the name "varchar" and the config [3]. The words
 * of a longer name are separated by single spaces.
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
  /** The data type that was found for a name defined by CREATE TYPE (extension). */
  readonly definedType?: DataType | undefined;
  /**
   * The domain that the name refers to, if any (extension). `definedType` is then the base type of
   * the domain.
   */
  readonly domain?: DomainType | undefined;
  readonly collation?: CollationNode | undefined;
}

/** The name of a collation, as after COLLATE. */
export interface CollationNode extends QName {
  /** The collation that was found for a name defined by CREATE COLLATION (extension). */
  readonly definedCollation?: Collation | undefined;
}

export type IntervalFieldWord = "year" | "month" | "day" | "hour" | "minute" | "second";

/** A query. `TABLE t` is parsed to the same node as `SELECT * FROM t`. */
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
   * The table named by INTO. The parser turns a SELECT … INTO statement into CREATE TABLE … AS;
   * the binder rejects INTO anywhere else.
   */
  readonly into?: (QName & TablePersistence) | undefined;
  /**
   * The items of FROM as a flat list. An item without `join` follows a comma or comes first. An
   * item with `join` is joined to everything since the last comma.
   */
  readonly from?: readonly From[] | undefined;
  readonly where?: Expr | undefined;
  readonly groupBy?: readonly GroupItem[] | undefined;
  /** Whether GROUP BY has DISTINCT, which removes duplicate grouping sets. */
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

/** An item of the select list or of RETURNING. `*` is a reference with `star` set. */
export interface SelectedColumn extends AstNode {
  readonly expr: Expr;
  readonly alias?: Name | undefined;
}

/**
 * An expression or a grouping set. `(a, b)` and `()` are a `list`, whose elements together form
 * one grouping key.
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
 * A set operation. ORDER BY and LIMIT after it apply to the whole operation (the library assigns
 * them to `right`).
 */
export interface SelectFromUnion extends AstNode {
  readonly type: "union" | "union all" | "intersect" | "intersect all" | "except" | "except all";
  /** The left operand. Chains are left-associative (in the library, right-associative). */
  readonly left: SelectStatement;
  readonly right: SelectStatement;
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  readonly limit?: LimitStatement | undefined;
}

/**
 * A list of rows: `VALUES (…), …`. The parser allows rows of different lengths, and the binder
 * rejects them.
 */
export interface ValuesStatement extends AstNode {
  readonly type: "values";
  readonly values: readonly (readonly Expr[])[];
  /** The values in compact form; set if the list consists of many plain literals. */
  readonly literals?: LiteralList | undefined;
  readonly orderBy?: readonly OrderByStatement[] | undefined;
  readonly limit?: LimitStatement | undefined;
}

/**
 * A query or change with WITH: `WITH a AS (…), b AS (…) in`. The type indicates whether RECURSIVE
 * was written. If it was, every entry may refer to itself (the library has a separate node with a
 * single binding).
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
  /** The sort direction. `USING <` means ASC, and `USING >` means DESC. */
  readonly order?: "ASC" | "DESC" | undefined;
  readonly nulls?: "FIRST" | "LAST" | undefined;
}

/**
 * The clauses LIMIT and OFFSET. For LIMIT ALL, the limit is absent; for LIMIT NULL, it is a NULL
 * literal; for FETCH FIRST ROW, it is 1.
 */
export interface LimitStatement extends AstNode {
  readonly limit?: Expr | undefined;
  readonly offset?: Expr | undefined;
  /** True if FETCH … WITH TIES was written (extension). */
  readonly withTies?: true | undefined;
}

export type From = FromTable | FromStatement | FromCall | FromRows | FromGroup;

/** The join of a FROM item with the items before it. */
export interface JoinClause extends AstNode {
  readonly type: "INNER JOIN" | "LEFT JOIN" | "RIGHT JOIN" | "FULL JOIN" | "CROSS JOIN";
  readonly on?: Expr | undefined;
  readonly using?: readonly Name[] | undefined;
  /** The alias for the columns merged by USING (extension). */
  readonly usingAlias?: Name | undefined;
  /** True for a NATURAL join, which has neither ON nor USING (extension). */
  readonly natural?: true | undefined;
}

/** A table, view or CTE named in FROM. */
export interface FromTable extends AstNode {
  readonly type: "table";
  readonly name: QNameMapped;
  readonly join?: JoinClause | undefined;
  /** The point in time after FOR SYSTEM_TIME AS OF. */
  readonly systemTime?: Expr | undefined;
  readonly sample?: TableSample | undefined;
}

/** TABLESAMPLE: which share of a table's rows is read. */
export interface TableSample extends AstNode {
  readonly method: "bernoulli" | "system";
  readonly percentage: Expr;
  /** The number after REPEATABLE, which decides about the rows. */
  readonly seed?: Expr | undefined;
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
  /** Set if a CALL statement calls a procedure. */
  readonly isProcedure?: true | undefined;
  readonly alias?: TableAliasName | undefined;
  readonly withOrdinality?: true | undefined;
  readonly lateral?: true | undefined;
  readonly join?: JoinClause | undefined;
  /**
   * The columns in `AS x (a INT, b TEXT)` (extension). If they are present, `alias` is x without
   * columns, or absent.
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
  /** The table functions. They have no aliases, but each may have column definitions. */
  readonly calls: readonly FromCall[];
  readonly alias?: TableAliasName | undefined;
  readonly withOrdinality?: true | undefined;
  readonly lateral?: true | undefined;
  readonly join?: JoinClause | undefined;
}

/**
 * Parenthesised joins that form one operand: `a JOIN (b JOIN c ON …) ON …` (extension). The items
 * have the same form as the `from` items of a SELECT. With an alias, as in `(a JOIN b ON …) AS j`,
 * the group is a single relation.
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
  readonly columns?: readonly TargetColumn[] | undefined;
  readonly insert:
    | SelectStatement
    | LiteralValuesStatement
    | DefaultValuesStatement
    | CopySourceStatement;
  /** The keyword after OVERRIDING: SYSTEM or USER; absent without OVERRIDING. */
  readonly overriding?: "system" | "user" | undefined;
  readonly onConflict?: OnConflictAction | undefined;
  readonly returning?: readonly SelectedColumn[] | undefined;
}

/**
 * The source of the INSERT to which COPY FROM STDIN is translated (extension). Its rows are sent
 * with the request, or follow the statement in the SQL.
 */
export interface CopySourceStatement extends AstNode {
  readonly type: "copy source";
  readonly options: CopySettings;
  /** The COPY data between the statement and the line `\.`, as UTF-8; absent if there are none. */
  readonly data?: Uint8Array | undefined;
}

/**
 * `COPY t TO STDOUT` or `COPY (query) TO STDOUT` (extension). A table is represented by a query
 * that selects its columns.
 */
export interface CopyToStatement extends AstNode {
  readonly type: "copy to";
  readonly statement: SelectStatement;
  /** The table and its columns, if COPY names a table rather than a query. */
  readonly named?:
    | { readonly table: QName; readonly columns?: readonly Name[] | undefined }
    | undefined;
  readonly options: CopySettings;
}

export type CopyFormat = "text" | "csv" | "ndjson" | "binary";

/** The options of COPY, with the defaults of the format filled in. */
export interface CopySettings {
  readonly format: CopyFormat;
  /** The ASCII character that separates the cells of COPY data. */
  readonly delimiter: string;
  /** The string that represents NULL in COPY data. */
  readonly nullText: string;
  /** The string that represents a column's default value in COPY data; absent if there is none. */
  readonly defaultText?: string | undefined;
  /**
   * Whether the first line of COPY data contains column names, and whether these must match the
   * table's columns.
   */
  readonly header: "none" | "line" | "match";
  /** The quote character of COPY data, a single ASCII character; used only for CSV. */
  readonly quote: string;
  readonly escape: string;
  /** The columns whose cells COPY always quotes. */
  readonly forceQuote: CopyColumns;
  /** The columns in which COPY reads an unquoted `nullText` as an ordinary string. */
  readonly forceNotNull: CopyColumns;
  /** The columns in which COPY reads a quoted `nullText` as NULL, too. */
  readonly forceNull: CopyColumns;
  readonly onConflict: "error" | "nothing" | "update";
  /** Whether COPY skips rows with a value that its column cannot store. */
  readonly skipsFaulty: boolean;
}

/** The columns to which an option of COPY applies. */
export type CopyColumns = "all" | readonly Name[];

/** The source of `INSERT INTO t DEFAULT VALUES` (extension). */
export interface DefaultValuesStatement extends AstNode {
  readonly type: "default values";
}

/**
 * A long VALUES list of plain literals as the source of INSERT, stored as an array of cells in row
 * order (extension): cell = row × columnCount + column. `literalValuesToRows` converts it to the
 * ordinary form.
 */
export interface LiteralValuesStatement extends AstNode, LiteralList {
  readonly type: "literal values";
}

/** A list of plain literals, stored row by row as positions in the SQL text. */
export interface LiteralList {
  readonly rowCount: number;
  readonly columnCount: number;
  /** The kind of each cell, as a {@linkcode LiteralCell}. */
  readonly kinds: Uint8Array;
  /** The SQL of the request as UTF-8, which contains the cells. `literalText` reads a cell. */
  readonly bytes: Uint8Array;
  /**
   * The offset in `bytes` at which each cell begins. The cell of a string begins at its quote, and
   * the cell of a number at its sign.
   */
  readonly starts: Int32Array;
  /** The offset in `bytes` at which each cell ends. */
  readonly ends: Int32Array;
}

/** The kinds of cells in a {@linkcode LiteralList}. */
export const LiteralCell = {
  null: 0,
  default: 1,
  false: 2,
  true: 3,
  integer: 4,
  numeric: 5,
  /** A string literal whose value is exactly the text between its quotes. */
  string: 6,
  /** A string literal that must be decoded: it contains doubled quotes, or is written as E'…'. */
  encodedString: 7,
} as const;

export interface OnConflictAction extends AstNode {
  readonly on?: OnConflictOnExpr | OnConflictOnConstraint | undefined;
  readonly do: "do nothing" | { readonly sets: readonly SetStatement[] };
  readonly where?: Expr | undefined;
}

/**
 * The target of ON CONFLICT: the parts of an index key and, for a partial index, its condition.
 */
export interface OnConflictOnExpr extends AstNode {
  readonly type: "on expr";
  /** The parts of the index key. A column is an ordinary column reference. */
  readonly exprs: readonly Expr[];
  readonly where?: Expr | undefined;
}

export interface OnConflictOnConstraint extends AstNode {
  readonly type: "on constraint";
  readonly constraint: QName;
}

/**
 * An assignment in SET. `(a, b) = (1, 2)` becomes two `set` entries; `(a, b) = (SELECT …)` becomes
 * one `set columns` entry.
 */
export type SetStatement = SetColumn | SetColumns;

export interface SetColumn extends AstNode {
  /** The discriminant of {@linkcode SetStatement} (extension). */
  readonly type: "set";
  readonly column: TargetColumn;
  readonly value: Expr;
}

/**
 * A column to which a change assigns, or a part of a column: `SET a[1] = 2`, `INSERT INTO t
 * (r.x)`.
 */
export interface TargetColumn extends Name {
  /** The path to the assigned part; absent if the whole column is assigned (extension). */
  readonly part?: readonly PartStep[];
}

/** A step from a value to a part of it: an element, a slice or a field. */
export type PartStep = Subscript | FieldStep;

/** A step from a row to one of its fields: `.name` (extension). */
export interface FieldStep extends AstNode {
  readonly type: "field step";
  readonly name: string;
}

/** A subscript: `[to]` or `[from:to]` (extension). */
export interface Subscript extends AstNode {
  readonly type: "index" | "slice";
  readonly from?: Expr | undefined;
  readonly to?: Expr | undefined;
}

/** An assignment to several columns from one query: `(a, b) = (SELECT …)` (extension). */
export interface SetColumns extends AstNode {
  readonly type: "set columns";
  readonly columns: readonly TargetColumn[];
  readonly select: SelectStatement;
}

export interface UpdateStatement extends AstNode {
  readonly type: "update";
  readonly table: QNameAliased;
  readonly sets: readonly SetStatement[];
  /** The FROM items of UPDATE (extension: the library accepts only one). */
  readonly from?: readonly From[] | undefined;
  readonly where?: Expr | undefined;
  /** The cursor of WHERE CURRENT OF, in place of a condition (extension). */
  readonly currentOf?: Name | undefined;
  readonly returning?: readonly SelectedColumn[] | undefined;
}

export interface DeleteStatement extends AstNode {
  readonly type: "delete";
  readonly from: QNameAliased;
  /** The USING items of DELETE (extension). */
  readonly using?: readonly From[] | undefined;
  readonly where?: Expr | undefined;
  /** The cursor of WHERE CURRENT OF, in place of a condition (extension). */
  readonly currentOf?: Name | undefined;
  readonly returning?: readonly SelectedColumn[] | undefined;
  /**
   * Set in the DELETE that the server derives from TRUNCATE, because TRUNCATE fires separate
   * triggers.
   */
  readonly isTruncation?: true | undefined;
}

export interface MergeStatement extends AstNode {
  readonly type: "merge";
  readonly into: QNameAliased;
  /** The source of MERGE: a single item, possibly with joins. */
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
  readonly columns?: readonly TargetColumn[] | undefined;
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
