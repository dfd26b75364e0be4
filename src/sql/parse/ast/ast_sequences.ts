/**
 * Defines the syntax tree of sequences. See `ast.ts` for the rules that apply to all nodes.
 */
import type { AstNode, DataTypeDef, Name, QName } from "./ast.ts";
import type { DropBehaviour } from "./ast_definitions.ts";

export type SequenceDefinition =
  | CreateSequenceStatement
  | AlterSequenceStatement
  | DropSequenceStatement;

export interface CreateSequenceStatement extends AstNode {
  readonly type: "create sequence";
  readonly name: QName;
  readonly temporary?: true | undefined;
  readonly ifNotExists?: true | undefined;
  readonly options: readonly SequenceOption[];
}

export interface AlterSequenceStatement extends AstNode {
  readonly type: "alter sequence";
  readonly name: QName;
  readonly ifExists?: true | undefined;
  readonly options: readonly SequenceOption[];
  /** The new name after RENAME TO. If it is present, there are no options. */
  readonly renamedTo?: Name | undefined;
}

export interface DropSequenceStatement extends AstNode {
  readonly type: "drop sequence";
  readonly names: readonly QName[];
  readonly ifExists?: true | undefined;
  readonly cascade?: DropBehaviour | undefined;
}

export type SequenceOption =
  | SequenceType
  | SequenceNumber
  | SequenceCycle
  | SequenceOwned
  | SequenceName;

interface SequenceType extends AstNode {
  readonly type: "as";
  readonly dataType: DataTypeDef;
}

export interface SequenceNumber extends AstNode {
  readonly type: "cache" | "increment" | "maxvalue" | "minvalue" | "restart" | "start";
  /**
   * The number as decimal text; absent for NO MINVALUE, NO MAXVALUE, and RESTART without a number.
   */
  readonly value?: string | undefined;
}

interface SequenceCycle extends AstNode {
  readonly type: "cycle";
  readonly cycles: boolean;
}

/** The option OWNED BY. The last part of the qualified name is the column. */
export interface SequenceOwned extends AstNode {
  readonly type: "owned by";
  /** The column that owns the sequence; absent for OWNED BY NONE. */
  readonly column?: { readonly table: QName; readonly name: Name } | undefined;
}

/** The option SEQUENCE NAME of an identity column. */
interface SequenceName extends AstNode {
  readonly type: "sequence name";
  readonly name: QName;
}
