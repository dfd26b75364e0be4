/**
 * The syntax tree of definitions: namespaces, tables, views, users and storages. See `ast.ts` for
 * the rules that apply to all nodes.
 */
import type {
  AstNode,
  DataTypeDef,
  Expr,
  ExprLiteral,
  Name,
  QName,
  QNameAliased,
  SelectStatement,
} from "./ast.ts";

/** Statements that change definitions. */
export type DefinitionStatement =
  | CreateNamespaceStatement
  | AlterNamespaceStatement
  | DropNamespaceStatement
  | CreateTableStatement
  | AlterTableStatement
  | DropTableStatement
  | CreateViewStatement
  | DropViewStatement
  | CreateUserStatement
  | AlterUserStatement
  | DropUserStatement
  | CreateStorageStatement
  | AlterStorageStatement
  | DropStorageStatement;

/** A user id: `'x'`, `"x"` or x. */
export interface UserName extends Name {
  /** CURRENT_USER stood there (ALTER USER only); `name` is "current_user". */
  readonly currentUser?: true | undefined;
}

/** `name = value` of WITH (…), SET (…), OPTIONS (…). The name is in lower case. */
export interface OptionEntry extends AstNode {
  readonly name: string;
  readonly value: ExprLiteral | OptionIdentifier;
}

/** An option value that is a bare word, in lower case unless quoted. */
export interface OptionIdentifier extends Name {
  readonly type: "identifier";
}

export type TableKind = "user" | "shared" | "stream";

export type DropBehaviour = "cascade" | "restrict";

export interface CreateNamespaceStatement extends AstNode {
  readonly type: "create namespace";
  readonly name: Name;
  readonly ifNotExists?: true | undefined;
  readonly authorization?: UserName | undefined;
}

/** Exactly one of `options` and `owner` is there. */
export interface AlterNamespaceStatement extends AstNode {
  readonly type: "alter namespace";
  readonly name: Name;
  readonly options?: readonly OptionEntry[] | undefined;
  readonly owner?: UserName | undefined;
}

export interface DropNamespaceStatement extends AstNode {
  readonly type: "drop namespace";
  readonly name: Name;
  readonly ifExists?: true | undefined;
  readonly cascade?: DropBehaviour | undefined;
}

export interface CreateTableStatement extends AstNode {
  readonly type: "create table";
  /** Own: the word before TABLE. */
  readonly kind?: TableKind | undefined;
  readonly name: QName;
  readonly ifNotExists?: true | undefined;
  readonly columns: readonly CreateColumnDef[];
  readonly constraints?: readonly TableConstraint[] | undefined;
  /** Own: WITH (…). */
  readonly options?: readonly OptionEntry[] | undefined;
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
  | ConstraintCheck;

/** "auto increment" is own. */
export interface ColumnConstraintSimple extends AstNode {
  readonly type: "primary key" | "not null" | "null" | "auto increment";
  readonly constraintName?: Name | undefined;
}

export interface ColumnConstraintDefault extends AstNode {
  readonly type: "default";
  readonly default: Expr;
  /** Own: the text of the expression, for the catalog. */
  readonly source: string;
  readonly constraintName?: Name | undefined;
}

/** GENERATED … AS IDENTITY. */
export interface ColumnConstraintGenerated extends AstNode {
  readonly type: "add generated";
  readonly always: "always" | "by default";
  readonly constraintName?: Name | undefined;
}

/** Of a column or of the table. */
export interface ConstraintCheck extends AstNode {
  readonly type: "check";
  readonly expr: Expr;
  /** Own: the text of the expression, for the catalog. */
  readonly source: string;
  readonly constraintName?: Name | undefined;
}

export type TableConstraint = TableConstraintKey | ConstraintCheck;

export interface TableConstraintKey extends AstNode {
  readonly type: "primary key";
  readonly columns: readonly Name[];
  readonly constraintName?: Name | undefined;
}

export interface AlterTableStatement extends AstNode {
  readonly type: "alter table";
  readonly kind?: TableKind | undefined;
  readonly table: QNameAliased;
  readonly ifExists?: true | undefined;
  readonly changes: readonly TableAlteration[];
}

export type TableAlteration =
  | TableAlterationAddColumn
  | TableAlterationDropColumn
  | TableAlterationRenameColumn
  | TableAlterationAlterColumn
  | TableAlterationModifyColumn
  | TableAlterationAddConstraint
  | TableAlterationDropConstraint
  | TableAlterationSetOptions
  | TableAlterationResetOptions;

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

export interface TableAlterationRenameColumn extends AstNode {
  readonly type: "rename column";
  readonly column: Name;
  readonly to: Name;
}

export interface TableAlterationAlterColumn extends AstNode {
  readonly type: "alter column";
  readonly column: Name;
  readonly alter: AlterColumn;
}

export type AlterColumn = AlterColumnSetType | AlterColumnSetDefault | AlterColumnSimple;

export interface AlterColumnSetType extends AstNode {
  readonly type: "set type";
  readonly dataType: DataTypeDef;
}

export interface AlterColumnSetDefault extends AstNode {
  readonly type: "set default";
  readonly default: Expr;
  /** Own: the text of the expression, for the catalog. */
  readonly source: string;
}

export interface AlterColumnSimple extends AstNode {
  readonly type: "drop default" | "set not null" | "drop not null";
}

/** Own: `MODIFY c t [NULL | NOT NULL]`; `notNull` is absent when neither stood there. */
export interface TableAlterationModifyColumn extends AstNode {
  readonly type: "modify column";
  readonly column: Name;
  readonly dataType: DataTypeDef;
  readonly notNull?: boolean | undefined;
}

/** A CHECK, or a PRIMARY KEY, which the binder refuses. */
export interface TableAlterationAddConstraint extends AstNode {
  readonly type: "add constraint";
  readonly constraint: TableConstraint;
}

export interface TableAlterationDropConstraint extends AstNode {
  readonly type: "drop constraint";
  readonly ifExists?: true | undefined;
  readonly constraint: Name;
}

/** Own: SET (…), SET TBLPROPERTIES (…), SET ACCESS LEVEL x (one entry, access_level). */
export interface TableAlterationSetOptions extends AstNode {
  readonly type: "set options";
  readonly options: readonly OptionEntry[];
}

/** Own: RESET (…); names in lower case. */
export interface TableAlterationResetOptions extends AstNode {
  readonly type: "reset options";
  readonly names: readonly Name[];
}

export interface DropTableStatement extends AstNode {
  readonly type: "drop table";
  readonly kind?: TableKind | undefined;
  readonly names: readonly QName[];
  readonly ifExists?: true | undefined;
  readonly cascade?: DropBehaviour | undefined;
}

export interface CreateViewStatement extends AstNode {
  readonly type: "create view";
  readonly orReplace?: true | undefined;
  readonly name: QName;
  readonly columnNames?: readonly Name[] | undefined;
  readonly query: SelectStatement;
  /** Own: the text of the query, which the catalog keeps. */
  readonly source: string;
}

/** Own. */
export interface DropViewStatement extends AstNode {
  readonly type: "drop view";
  readonly names: readonly QName[];
  readonly ifExists?: true | undefined;
  readonly cascade?: DropBehaviour | undefined;
}

/** Exactly one of `password`, `oauth` and `internal` is there. No member goes into any log. */
export interface CreateUserStatement extends AstNode {
  readonly type: "create user";
  readonly name: UserName;
  readonly ifNotExists?: true | undefined;
  readonly password?: string | undefined;
  /** JSON text. */
  readonly oauth?: string | undefined;
  readonly internal?: true | undefined;
  readonly role?: Name | undefined;
  readonly email?: string | undefined;
}

/** Exactly one of the three is there. */
export interface AlterUserStatement extends AstNode {
  readonly type: "alter user";
  readonly name: UserName;
  readonly password?: string | undefined;
  readonly role?: Name | undefined;
  readonly email?: string | undefined;
}

export interface DropUserStatement extends AstNode {
  readonly type: "drop user";
  readonly name: UserName;
  readonly ifExists?: true | undefined;
  readonly purge?: true | undefined;
}

/** `NAME 'x'`, `PATH 'dir'` … behind CREATE and ALTER STORAGE; the name is in lower case. */
export interface StorageSetting extends AstNode {
  readonly name: string;
  readonly value: string;
}

/** No setting twice. */
export interface CreateStorageStatement extends AstNode {
  readonly type: "create storage";
  readonly name: Name;
  /** filesystem, s3 … */
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
