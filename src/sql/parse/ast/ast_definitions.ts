/**
 * Defines the syntax tree of definitions: tables, views, users and storages. See
 * `ast.ts` for the rules that apply to all nodes.
 */
import type {
  AstNode,
  CollationNode,
  DataTypeDef,
  Expr,
  ExprLiteral,
  Name,
  QName,
  QNameAliased,
  SelectStatement,
} from "./ast.ts";
import type { FunctionDefinition, FunctionName } from "./ast_functions.ts";
import type {
  AlterNamespaceStatement,
  CreateNamespaceStatement,
  DropNamespaceStatement,
} from "./ast_namespaces.ts";
import type { PartitionBy, PartitionDefinition, PartitionOf } from "./ast_partitions.ts";
import type { PolicyDefinition } from "./ast_policies.ts";
import type { SequenceDefinition, SequenceOption } from "./ast_sequences.ts";
import type { SecretDefinition } from "./ast_tokens.ts";
import type { TopicDefinition, WebhookDefinition } from "./ast_topics.ts";
import type { TableAlterationTriggers, TriggerDefinition } from "./ast_triggers.ts";
import type { DoStatement, TypeDefinition } from "./ast_types.ts";

/** A statement that defines, changes or drops an object. */
export type DefinitionStatement =
  | CreateNamespaceStatement
  | AlterNamespaceStatement
  | DropNamespaceStatement
  | CreateTableStatement
  | CreateTableAsStatement
  | AlterTableStatement
  | PartitionDefinition
  | DropTableStatement
  | CreateIndexStatement
  | AlterIndexStatement
  | DropIndexStatement
  | CreateViewStatement
  | AlterViewStatement
  | DropViewStatement
  | RefreshStatement
  | CreateUserStatement
  | AlterUserStatement
  | DropUserStatement
  | CreateStorageStatement
  | AlterStorageStatement
  | DropStorageStatement
  | AlterOwnerStatement
  | CommentStatement
  | CreateExtensionStatement
  | FunctionDefinition
  | PolicyDefinition
  | TriggerDefinition
  | SequenceDefinition
  | TypeDefinition
  | DoStatement
  | TopicDefinition
  | WebhookDefinition
  | SecretDefinition;

/** The id of a user, written as `'x'`, `"x"` or x. */
export interface UserName extends Name {
  /**
   * Set if the user was written as CURRENT_USER or, for a new owner, SESSION_USER or CURRENT_ROLE.
   * `name` is then that keyword. Only ALTER USER, CREATE TOKEN, CREATE NAMESPACE, and OWNER TO for
   * a table, view, sequence, type or function allow it.
   */
  readonly currentUser?: true | undefined;
}

/** A `name = value` entry of WITH (…), SET (…) or OPTIONS (…). The name is in lower case. */
export interface OptionEntry extends AstNode {
  readonly name: string;
  readonly value: ExprLiteral | OptionIdentifier;
}

/** An option value that is an unquoted word in lower case, or a quoted identifier as written. */
export interface OptionIdentifier extends Name {
  readonly type: "identifier";
}

export type TableKindWord = "user" | "shared" | "stream";

export type DropBehaviour = "cascade" | "restrict";

export interface CreateTableStatement extends AstNode {
  readonly type: "create table";
  /** The table kind written before TABLE. */
  readonly kind?: TableKindWord | undefined;
  readonly name: QName;
  readonly ifNotExists?: true | undefined;
  readonly columns: readonly CreateColumnDef[];
  readonly likes?: readonly TableLike[] | undefined;
  readonly constraints?: readonly TableConstraint[] | undefined;
  /**
   * The parent of a table that is created as a partition. The partition has the parent's columns.
   */
  readonly partitionOf?: PartitionOf | undefined;
  readonly partitionBy?: PartitionBy | undefined;
  /** The entries of the WITH (…) clause. */
  readonly options?: readonly OptionEntry[] | undefined;
  /** The query of a materialized view, whose rows the table contains. */
  readonly materialized?: MaterializedQuery | undefined;
  readonly temporary?: true | undefined;
  /** The ON COMMIT clause of a temporary table; absent if there is none. */
  readonly onCommit?: "delete rows" | "drop" | undefined;
  /** Set if UNLOGGED was written, which has no effect. */
  readonly unlogged?: true | undefined;
}

/** Whether a table is TEMPORARY or UNLOGGED. */
export type TablePersistence = Pick<CreateTableStatement, "temporary" | "unlogged">;

export interface MaterializedQuery {
  readonly query: SelectStatement;
  /** The SQL text of the query, which the catalog stores. */
  readonly source: string;
}

/**
 * The statement `CREATE TABLE … AS query`, which can also be written `SELECT … INTO`, and the
 * statement `CREATE MATERIALIZED VIEW … AS query`.
 */
export interface CreateTableAsStatement
  extends Pick<
      CreateTableStatement,
      | "ifNotExists"
      | "kind"
      | "materialized"
      | "name"
      | "onCommit"
      | "options"
      | "temporary"
      | "unlogged"
    >,
    AstNode {
  readonly type: "create table as";
  /** Names for the first columns of the new table. They replace the names in the query. */
  readonly columnNames: readonly Name[] | undefined;
  readonly query: SelectStatement;
  /** Whether the table is filled with the rows of the query. */
  readonly withData: boolean;
}

/** A property of another table that LIKE copies or omits. "all" means all properties. */
export type LikedPart =
  | "all"
  | "comments"
  | "compression"
  | "constraints"
  | "defaults"
  | "generated"
  | "identity"
  | "indexes"
  | "statistics"
  | "storage";

/**
 * A LIKE clause among the columns of CREATE TABLE: `LIKE table [{INCLUDING | EXCLUDING} part …]`.
 */
export interface TableLike extends AstNode {
  readonly type: "like";
  readonly table: QName;
  /** The number of columns that precede the LIKE clause. */
  readonly after: number;
  /** The INCLUDING and EXCLUDING options as written. A later option overrides an earlier one. */
  readonly parts: readonly { readonly including: boolean; readonly part: LikedPart }[];
}

export interface CreateColumnDef extends AstNode {
  readonly kind: "column";
  readonly name: Name;
  readonly dataType: DataTypeDef;
  readonly constraints?: readonly ColumnConstraint[] | undefined;
}

export type ColumnConstraint =
  | ColumnConstraintSimple
  | ColumnConstraintDefault
  | ColumnConstraintGenerated
  | ColumnConstraintStored
  | ConstraintForeignKey
  | ConstraintCheck;

/** A column constraint without arguments. "auto increment" is an extension. */
export interface ColumnConstraintSimple extends AstNode {
  readonly type: "primary key" | "unique" | "not null" | "null" | "auto increment";
  /** True if NULLS NOT DISTINCT was written. */
  readonly equalNulls?: true;
  readonly constraintName?: Name | undefined;
}

export interface ColumnConstraintDefault extends AstNode {
  readonly type: "default";
  readonly default: Expr;
  /** The SQL text of the DEFAULT, which the catalog stores. */
  readonly source: string;
  readonly constraintName?: Name | undefined;
}

/** The column constraint GENERATED … AS IDENTITY. */
export interface ColumnConstraintGenerated extends AstNode {
  readonly type: "add generated";
  readonly always: "always" | "by default";
  /** The sequence options in parentheses after IDENTITY. */
  readonly options?: readonly SequenceOption[] | undefined;
  readonly constraintName?: Name | undefined;
}

/** The column constraint GENERATED ALWAYS AS (…) STORED, which defines a computed column. */
export interface ColumnConstraintStored extends AstNode {
  readonly type: "stored";
  readonly expr: Expr;
  /** The SQL text of the expression, which the catalog stores. */
  readonly source: string;
  readonly constraintName?: Name | undefined;
}

/** A CHECK constraint on a column or on the table. */
export interface ConstraintCheck extends AstNode {
  readonly type: "check";
  readonly expr: Expr;
  /** The SQL text of the expression, which the catalog stores. */
  readonly source: string;
  /** Set by NO INHERIT, which only a table without partitions accepts. */
  readonly isNotInherited?: true;
  readonly constraintName?: Name | undefined;
}

export type ReferenceAction = "cascade" | "no action" | "restrict" | "set default" | "set null";

/** A foreign key: FOREIGN KEY on a table, or REFERENCES on a column. */
export interface ConstraintForeignKey extends AstNode {
  readonly type: "foreign key";
  readonly columns: readonly Name[];
  readonly table: QName;
  /** The referenced columns; absent if the primary key is referenced. */
  readonly referenced?: readonly Name[] | undefined;
  readonly match?: "full" | "simple" | undefined;
  readonly onDelete?: ReferenceAction | undefined;
  readonly onUpdate?: ReferenceAction | undefined;
  readonly deferrable: boolean;
  readonly initially?: "deferred" | "immediate" | undefined;
  readonly notValid?: true | undefined;
  readonly constraintName?: Name | undefined;
}

export type TableConstraint =
  | TableConstraintKey
  | ConstraintCheck
  | ConstraintExclude
  | ConstraintForeignKey;

/** The constraint EXCLUDE USING gist (…): no two rows may satisfy all of its comparisons. */
export interface ConstraintExclude extends AstNode {
  readonly type: "exclude";
  readonly parts: readonly ExcludedPart[];
  /** The condition for the rows that the constraint compares; absent for all rows. */
  readonly where?: IndexedExpression | undefined;
  readonly constraintName?: Name | undefined;
}

/** A value that EXCLUDE compares between rows, and the comparison operator. */
export interface ExcludedPart {
  readonly part: Name | IndexedExpression;
  readonly operator: "=" | "&&";
}

export interface TableConstraintKey extends AstNode {
  readonly type: "primary key" | "unique";
  /** True if NULLS NOT DISTINCT was written. */
  readonly equalNulls?: true;
  readonly columns: readonly Name[];
  /** The columns listed after INCLUDE. */
  readonly included?: readonly Name[];
  readonly constraintName?: Name | undefined;
}

export interface CreateIndexStatement extends AstNode {
  readonly type: "create index";
  readonly isUnique: boolean;
  /** Set if CONCURRENTLY was written. The statement then cannot run in a transaction. */
  readonly isConcurrent?: true | undefined;
  /** Set if ONLY was written: indexes of partitions are not attached to the new index. */
  readonly only?: true | undefined;
  readonly ifNotExists?: true | undefined;
  /** The name of the index; absent if it is derived from the table and columns. */
  readonly name?: Name | undefined;
  readonly table: QName;
  /** The access method of an inverted index; absent for a sorted index. */
  readonly method?: "gin" | undefined;
  readonly columns: readonly IndexedColumn[];
  /**
   * The columns listed after INCLUDE. They have no effect, because an index lookup always finds
   * the whole row.
   */
  readonly included?: readonly Name[];
  /** True if NULLS NOT DISTINCT was written. */
  readonly equalNulls?: true;
  /** The condition of a partial index. */
  readonly where?: IndexedExpression | undefined;
}

/** An expression or condition of an index, with its SQL text. */
export interface IndexedExpression extends AstNode {
  readonly expr: Expr;
  readonly source: string;
}

/**
 * A part of an index key. Its sort order is accepted but has no effect, because an index can be
 * read in both directions.
 */
export interface IndexedColumn {
  readonly part: Name | IndexedExpression;
  readonly collation?: CollationNode | undefined;
  /** The operator class of a part of an inverted index. */
  readonly operatorClass?: Name | undefined;
  readonly order?: "asc" | "desc" | undefined;
  readonly nulls?: "first" | "last" | undefined;
}

/** The statement ALTER INDEX … RENAME TO, or ALTER INDEX … ATTACH PARTITION. */
export interface AlterIndexStatement extends AstNode {
  readonly type: "alter index";
  readonly name: QName;
  readonly ifExists?: true | undefined;
  readonly change:
    | { readonly type: "rename"; readonly to: Name }
    | { readonly type: "attach"; readonly partition: QName };
}

export interface DropIndexStatement extends AstNode {
  readonly type: "drop index";
  readonly isConcurrent?: true | undefined;
  readonly names: readonly QName[];
  readonly ifExists?: true | undefined;
  readonly cascade?: DropBehaviour | undefined;
}

export type CommentedKind =
  | "column"
  | "constraint"
  | "function"
  | "index"
  | "materialized view"
  | "namespace"
  | "sequence"
  | "table"
  | "type"
  | "view";

export interface CommentStatement extends AstNode {
  readonly type: "comment on";
  readonly kind: CommentedKind;
  /** The object to which the comment applies. For a column or constraint, this is its table. */
  readonly name: FunctionName | QName;
  /** The column or constraint within `name`, if the comment applies to one. */
  readonly part?: Name | undefined;
  /** The text of the comment; absent for NULL, which removes the comment. */
  readonly comment?: string | undefined;
}

/** The statement `ALTER TABLE | VIEW | SEQUENCE | TYPE | FUNCTION … OWNER TO user`. */
export interface AlterOwnerStatement extends AstNode {
  readonly type: "alter owner";
  /**
   * The kind of object named in the statement. As in dumps of older servers, a view or sequence
   * may also be called a table.
   */
  readonly kind: "function" | "materialized view" | "sequence" | "table" | "type" | "view";
  readonly name: FunctionName | QName;
  readonly ifExists?: true | undefined;
  readonly owner: UserName;
}

export interface CreateExtensionStatement extends AstNode {
  readonly type: "create extension";
  readonly name: Name;
  readonly ifNotExists?: true | undefined;
}

export interface AlterTableStatement extends AstNode {
  readonly type: "alter table";
  readonly kind?: TableKindWord | undefined;
  /** Whether the statement is ALTER MATERIALIZED VIEW. */
  readonly isMaterialized?: true | undefined;
  readonly table: QNameAliased;
  /** Set if ONLY was written: indexes of partitions are not attached to a new constraint. */
  readonly only?: true | undefined;
  readonly ifExists?: true | undefined;
  readonly changes: readonly TableAlteration[];
}

export type TableAlteration =
  | TableAlterationAddColumn
  | TableAlterationDropColumn
  | TableAlterationRename
  | TableAlterationPopulate
  | TableAlterationRenameColumn
  | TableAlterationAlterConstraint
  | TableAlterationRenameConstraint
  | TableAlterationAlterColumn
  | TableAlterationModifyColumn
  | TableAlterationAddConstraint
  | TableAlterationDropConstraint
  | TableAlterationValidate
  | TableAlterationSetOptions
  | TableAlterationResetOptions
  | TableAlterationTriggers;

export interface TableAlterationAddColumn extends AstNode {
  readonly type: "add column";
  readonly ifNotExists?: true | undefined;
  readonly column: CreateColumnDef;
}

export interface TableAlterationDropColumn extends AstNode {
  readonly type: "drop column";
  readonly ifExists?: true | undefined;
  readonly column: Name;
  readonly behaviour?: DropBehaviour | undefined;
}

/** The ALTER TABLE action RENAME TO. The table stays in its namespace. */
export interface TableAlterationRename extends AstNode {
  readonly type: "rename table";
  readonly to: Name;
}

/**
 * Records whether a materialized view is populated. REFRESH creates this change; it cannot be
 * written in SQL.
 */
export interface TableAlterationPopulate extends AstNode {
  readonly type: "populate";
  readonly isPopulated: boolean;
}

export interface TableAlterationRenameColumn extends AstNode {
  readonly type: "rename column";
  readonly column: Name;
  readonly to: Name;
}

export interface TableAlterationRenameConstraint extends AstNode {
  readonly type: "rename constraint";
  readonly constraint: Name;
  readonly to: Name;
}

/** The ALTER TABLE action ALTER CONSTRAINT, which changes when a foreign key is checked. */
export interface TableAlterationAlterConstraint extends AstNode {
  readonly type: "alter constraint";
  readonly constraint: Name;
  readonly deferrable: boolean;
  readonly initially?: "deferred" | "immediate" | undefined;
}

export interface TableAlterationAlterColumn extends AstNode {
  readonly type: "alter column";
  readonly column: Name;
  readonly alter: AlterColumn;
}

export type AlterColumn =
  | AlterColumnSetType
  | AlterColumnSetDefault
  | AlterColumnSimple
  | ColumnConstraintGenerated
  | AlterColumnIdentity
  | AlterColumnDropIdentity
  | AlterColumnDropExpression;

/**
 * A change to an identity column: SET GENERATED …, SET INCREMENT … and other options, or RESTART
 * [[WITH] n].
 */
export interface AlterColumnIdentity extends AstNode {
  readonly type: "alter identity";
  readonly always?: "always" | "by default" | undefined;
  readonly options: readonly SequenceOption[];
}

export interface AlterColumnDropExpression extends AstNode {
  readonly type: "drop expression";
  readonly ifExists?: true | undefined;
}

export interface AlterColumnDropIdentity extends AstNode {
  readonly type: "drop identity";
  readonly ifExists?: true | undefined;
}

export interface AlterColumnSetType extends AstNode {
  readonly type: "set type";
  readonly dataType: DataTypeDef;
  /** The expression that computes the new values; absent if the old values are simply cast. */
  readonly using?: Expr;
  /** The SQL text of `using`. */
  readonly usingSource?: string;
}

export interface AlterColumnSetDefault extends AstNode {
  readonly type: "set default";
  readonly default: Expr;
  /** The SQL text of the expression, which the catalog stores. */
  readonly source: string;
}

export interface AlterColumnSimple extends AstNode {
  /**
   * `set tuning` represents SET STATISTICS, SET STORAGE and SET COMPRESSION, which have no effect.
   */
  readonly type: "drop default" | "set not null" | "drop not null" | "set tuning";
}

/**
 * The ALTER TABLE action `MODIFY c t [NULL | NOT NULL]`. `notNull` is absent if neither NULL nor
 * NOT NULL was written.
 */
export interface TableAlterationModifyColumn extends AstNode {
  readonly type: "modify column";
  readonly column: Name;
  readonly dataType: DataTypeDef;
  readonly notNull?: boolean | undefined;
}

/** The ALTER TABLE action ADD with a CHECK, PRIMARY KEY or other table constraint. */
export interface TableAlterationAddConstraint extends AstNode {
  readonly type: "add constraint";
  readonly constraint: TableConstraint;
}

export interface TableAlterationDropConstraint extends AstNode {
  readonly type: "drop constraint";
  readonly ifExists?: true | undefined;
  readonly constraint: Name;
  readonly behaviour?: DropBehaviour | undefined;
}

export interface TableAlterationValidate extends AstNode {
  readonly type: "validate constraint";
  readonly constraint: Name;
}

/**
 * The ALTER TABLE actions SET (…), SET TBLPROPERTIES (…) and SET ACCESS LEVEL x. The last action
 * becomes a single entry named access_level.
 */
export interface TableAlterationSetOptions extends AstNode {
  readonly type: "set options";
  readonly options: readonly OptionEntry[];
}

/** The ALTER TABLE action RESET (…). The names are in lower case. */
export interface TableAlterationResetOptions extends AstNode {
  readonly type: "reset options";
  readonly names: readonly Name[];
}

export interface DropTableStatement extends AstNode {
  readonly type: "drop table";
  readonly kind?: TableKindWord | undefined;
  /** Whether the statement is DROP MATERIALIZED VIEW. */
  readonly isMaterialized?: true | undefined;
  readonly names: readonly QName[];
  readonly ifExists?: true | undefined;
  readonly cascade?: DropBehaviour | undefined;
}

/** The statement `REFRESH MATERIALIZED VIEW [CONCURRENTLY] name [WITH [NO] DATA]`. */
export interface RefreshStatement extends AstNode {
  readonly type: "refresh materialized view";
  readonly name: QName;
  readonly concurrently?: true | undefined;
  /** False for WITH NO DATA, which leaves the view unpopulated. */
  readonly withData?: boolean | undefined;
}

export interface CreateViewStatement extends AstNode {
  readonly type: "create view";
  readonly orReplace?: true | undefined;
  readonly temporary?: true | undefined;
  readonly name: QName;
  readonly columnNames?: readonly Name[] | undefined;
  readonly options?: readonly OptionEntry[] | undefined;
  readonly query: SelectStatement;
  /** The SQL text of the query, which the catalog stores. */
  readonly source: string;
  /** The kind of WITH CHECK OPTION; absent if the option was not written. */
  readonly checkOption?: "cascaded" | "local" | undefined;
}

/**
 * The statements `ALTER VIEW name RENAME TO to`, `… SET (…)`, `… RESET (…)`, and `… ALTER COLUMN c`
 * with SET DEFAULT or DROP DEFAULT.
 */
export interface AlterViewStatement extends AstNode {
  readonly type: "alter view";
  readonly name: QName;
  readonly ifExists?: true | undefined;
  readonly change:
    | { readonly type: "rename"; readonly to: Name }
    | TableAlterationAlterColumn
    | TableAlterationSetOptions
    | TableAlterationResetOptions;
}

/** DROP VIEW. */
export interface DropViewStatement extends AstNode {
  readonly type: "drop view";
  readonly names: readonly QName[];
  readonly ifExists?: true | undefined;
  readonly cascade?: DropBehaviour | undefined;
}

/**
 * The statement CREATE USER, with exactly one of `password`, `oauth` and `internal`. None of these
 * values may ever be logged.
 */
export interface CreateUserStatement extends AstNode {
  readonly type: "create user";
  readonly name: UserName;
  readonly ifNotExists?: true | undefined;
  readonly password?: string | undefined;
  /** The OAuth settings of the user as JSON text. */
  readonly oauth?: string | undefined;
  readonly internal?: true | undefined;
  readonly role?: Name | undefined;
  readonly email?: string | undefined;
  /** The metadata of the user as JSON text. */
  readonly metadata?: string | undefined;
}

/** The statement ALTER USER, with exactly one change. */
export interface AlterUserStatement extends AstNode {
  readonly type: "alter user";
  readonly name: UserName;
  /** The provider link to add or drop, as JSON text. */
  readonly link?: { readonly add?: string; readonly drop?: string } | undefined;
  readonly password?: string | undefined;
  readonly role?: Name | undefined;
  readonly email?: string | undefined;
  /** The metadata of the user as JSON text. */
  readonly metadata?: string | undefined;
}

export interface DropUserStatement extends AstNode {
  readonly type: "drop user";
  readonly name: UserName;
  readonly ifExists?: true | undefined;
  readonly purge?: true | undefined;
}

/** A setting of a storage, such as `NAME 'x'` or `PATH 'dir'`. The name is in lower case. */
export interface StorageSetting extends AstNode {
  readonly name: string;
  readonly value: string;
}

/** The statement CREATE STORAGE. Each setting occurs at most once. */
export interface CreateStorageStatement extends AstNode {
  readonly type: "create storage";
  readonly name: Name;
  /** The type of the storage, such as filesystem or s3. */
  readonly storageType: Name;
  readonly settings: readonly StorageSetting[];
}

export interface AlterStorageStatement extends AstNode {
  readonly type: "alter storage";
  readonly name: Name;
  readonly settings: readonly StorageSetting[];
}

export interface DropStorageStatement extends AstNode {
  readonly type: "drop storage";
  readonly name: Name;
  readonly ifExists?: true | undefined;
}
