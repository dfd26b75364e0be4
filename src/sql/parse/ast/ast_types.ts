/**
 * Defines the syntax tree of statements about user-defined types, and of DO. See `ast.ts` for the
 * rules that apply to all nodes.
 */
import type { AstNode, CollationNode, DataTypeDef, Expr, Name, OptionEntry, QName } from "./ast.ts";
import type {
  AlterTableStatement,
  ColumnConstraint,
  ConstraintCheck,
  CreateIndexStatement,
  CreateTableStatement,
  DropBehaviour,
} from "./ast_definitions.ts";
import type { CreateSequenceStatement } from "./ast_sequences.ts";

export type TypeDefinition =
  | CreateCollationStatement
  | AlterDomainStatement
  | AlterTypeStatement
  | CreateDomainStatement
  | CreateTypeStatement
  | DropTypeStatement;

export interface CreateCollationStatement extends AstNode {
  readonly type: "create collation";
  readonly name: QName;
  readonly ifNotExists?: true | undefined;
  /** The collation to copy, or the options of the new collation. */
  readonly source: CollationNode | readonly OptionEntry[];
}

export interface CreateDomainStatement extends AstNode {
  readonly type: "create domain";
  readonly name: QName;
  readonly dataType: DataTypeDef;
  readonly constraints: readonly ColumnConstraint[];
}

export interface AlterDomainStatement extends AstNode {
  readonly type: "alter domain";
  readonly name: QName;
  readonly change: DomainChange;
}

export type DomainChange =
  | AddDomainCheck
  | ChangeDomainRule
  | DropDomainConstraint
  | RenameDomainConstraint
  | RenameType
  | SetDomainDefault;

interface ChangeDomainRule extends AstNode {
  readonly type: "drop default" | "drop not null" | "set not null";
}

interface SetDomainDefault extends AstNode {
  readonly type: "set default";
  readonly default: Expr;
  /** The SQL text of the expression. */
  readonly source: string;
}

interface AddDomainCheck extends AstNode {
  readonly type: "add constraint";
  readonly check: ConstraintCheck;
}

interface DropDomainConstraint extends AstNode {
  readonly type: "drop constraint";
  readonly constraint: Name;
  readonly ifExists?: true | undefined;
}

interface RenameDomainConstraint extends AstNode {
  readonly type: "rename constraint";
  readonly constraint: Name;
  readonly to: Name;
}

export interface CreateTypeStatement extends AstNode {
  readonly type: "create type";
  readonly name: QName;
  readonly labels: readonly LabelNode[];
  /** The fields of a row type; absent for any other type. */
  readonly fields?: readonly FieldNode[];
  /** The attributes of a range type; absent for any other type. */
  readonly range?: RangeNode;
}

/** The attributes in `CREATE TYPE … AS RANGE (…)`. */
export interface RangeNode extends AstNode {
  /** The subtype: the type of the bounds. */
  readonly dataType: DataTypeDef;
  readonly operatorClass?: QName | undefined;
  readonly collation?: CollationNode | undefined;
  readonly difference?: QName | undefined;
  /** The name of the multirange type; undefined if it follows from the name of the range type. */
  readonly multirange?: QName | undefined;
}

/** A field of a row type. */
export interface FieldNode extends AstNode {
  readonly name: Name;
  readonly dataType: DataTypeDef;
}

/** A label of an enum type, written as a string. */
export interface LabelNode extends AstNode {
  readonly label: string;
}

export interface AlterTypeStatement extends AstNode {
  readonly type: "alter type";
  readonly isCollation?: true | undefined;
  readonly name: QName;
  readonly change: TypeChange;
}

export type TypeChange = AddLabel | RefreshVersion | RenameLabel | RenameType;

/** The ALTER COLLATION action REFRESH VERSION. */
export interface RefreshVersion extends AstNode {
  readonly type: "refresh version";
}

export interface AddLabel extends AstNode {
  readonly type: "add value";
  readonly label: LabelNode;
  readonly ifNotExists?: true | undefined;
  /** The position of a new enum label; absent if it is added at the end. */
  readonly place?: { readonly side: "before" | "after"; readonly neighbour: LabelNode } | undefined;
}

interface RenameLabel extends AstNode {
  readonly type: "rename value";
  readonly from: LabelNode;
  readonly to: LabelNode;
}

interface RenameType extends AstNode {
  readonly type: "rename";
  readonly to: Name;
}

/** The statement DROP TYPE or DROP DOMAIN. */
export interface DropTypeStatement extends AstNode {
  readonly type: "drop type";
  /** The keyword after DROP, unless the keyword is TYPE. */
  readonly kind?: "collation" | "domain" | undefined;
  readonly names: readonly QName[];
  readonly ifExists?: true | undefined;
  readonly cascade?: DropBehaviour | undefined;
}

/** The statement DO with a single definition. It changes nothing if the object already exists. */
export interface DoStatement extends AstNode {
  readonly type: "do";
  readonly statement: TolerantDefinition;
}

/** A definition that DO may contain. */
export type TolerantDefinition =
  | AlterTableStatement
  | CreateIndexStatement
  | CreateSequenceStatement
  | CreateTableStatement
  | CreateTypeStatement;
