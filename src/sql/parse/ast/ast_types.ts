/**
 * The syntax tree of types that users define, and of DO. See `ast.ts` for the rules that apply to
 * all nodes.
 */
import type { AstNode, Name, QName } from "./ast.ts";
import type {
  AlterTableStatement,
  CreateIndexStatement,
  CreateTableStatement,
  DropBehaviour,
} from "./ast_definitions.ts";
import type { CreateSequenceStatement } from "./ast_sequences.ts";

export type TypeDefinition = CreateTypeStatement | AlterTypeStatement | DropTypeStatement;

export interface CreateTypeStatement extends AstNode {
  readonly type: "create type";
  readonly name: QName;
  readonly labels: readonly LabelNode[];
}

/** A label of an enum type, written as a string. */
export interface LabelNode extends AstNode {
  readonly label: string;
}

export interface AlterTypeStatement extends AstNode {
  readonly type: "alter type";
  readonly name: QName;
  readonly change: TypeChange;
}

export type TypeChange = AddLabel | RenameLabel | RenameType;

export interface AddLabel extends AstNode {
  readonly type: "add value";
  readonly label: LabelNode;
  readonly ifNotExists?: true | undefined;
  /** The position of a new label; absent for the end of the order. */
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

export interface DropTypeStatement extends AstNode {
  readonly type: "drop type";
  readonly names: readonly QName[];
  readonly ifExists?: true | undefined;
  readonly cascade?: DropBehaviour | undefined;
}

/** DO with one definition. The statement changes nothing if the object already exists. */
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
