/** Defines the syntax tree of statements about namespaces. */
import type { AstNode, Name } from "./ast.ts";
import type {
  CreateIndexStatement,
  CreateTableStatement,
  CreateViewStatement,
  DropBehaviour,
  OptionEntry,
  UserName,
} from "./ast_definitions.ts";
import type { CreateSequenceStatement } from "./ast_sequences.ts";
import type { CreateTriggerStatement } from "./ast_triggers.ts";

export interface CreateNamespaceStatement extends AstNode {
  readonly type: "create namespace";
  readonly name: Name;
  readonly ifNotExists?: true | undefined;
  readonly authorization?: UserName | undefined;
  /** The definitions of objects that the statement contains; absent if there are none. */
  readonly elements?: readonly NamespaceElement[] | undefined;
}

/** A definition that CREATE NAMESPACE may contain. */
export type NamespaceElement =
  | CreateIndexStatement
  | CreateSequenceStatement
  | CreateTableStatement
  | CreateTriggerStatement
  | CreateViewStatement;

/** The statement ALTER NAMESPACE, with exactly one of `options` and `owner`. */
export interface AlterNamespaceStatement extends AstNode {
  readonly type: "alter namespace";
  readonly name: Name;
  readonly options?: readonly OptionEntry[] | undefined;
  readonly owner?: UserName | undefined;
}

export interface DropNamespaceStatement extends AstNode {
  readonly type: "drop namespace";
  readonly names: readonly Name[];
  readonly ifExists?: true | undefined;
  readonly cascade?: DropBehaviour | undefined;
}
