/**
 * Defines the syntax tree of a PL/pgSQL function body.
 *
 * A body is parsed once, without the catalog: types and tables are names, and SQL is a syntax tree
 * together with the variables visible to it. Every variable of a body has a slot of its own,
 * however deeply its block is nested, so a single array contains the values of all variables.
 */
import type { DataTypeDef, Expr, QName, SelectStatement, Statement } from "../parse/ast/ast.ts";

/** The rule for a name that could be either a variable or a column. */
export type NameConflict = "column" | "error" | "variable";

/** A parsed body. */
export interface ProcedureBody {
  readonly conflict: NameConflict;
  /** All variables of the body, in the order of their slots. */
  readonly variables: readonly VariableNode[];
  readonly block: BlockNode;
  /** The slot of the variable FOUND. */
  readonly found: number;
}

/** The declared type of a variable. */
export type DeclaredType =
  | { readonly kind: "type"; readonly dataType: DataTypeDef }
  /** `table.column%TYPE`. */
  | { readonly kind: "column"; readonly table: QName; readonly column: string }
  /** `variable%TYPE`, or the type of a field of the variable. */
  | { readonly kind: "variable"; readonly slot: number; readonly field: string | undefined }
  /** `table%ROWTYPE`. */
  | { readonly kind: "row"; readonly table: QName }
  | { readonly kind: "record" }
  | { readonly kind: "cursor"; readonly cursor: CursorDeclaration | undefined }
  /** A variable whose type is determined by the caller, such as a parameter. */
  | { readonly kind: "given" };

/** The query of a bound cursor, with the slots of its arguments. */
export interface CursorDeclaration {
  /** A query, or a SELECT that locks rows. */
  readonly query: QueryPiece | StatementPiece;
  readonly parameters: readonly { readonly name: string; readonly slot: number }[];
  readonly isScroll: boolean | undefined;
}

export interface VariableNode {
  readonly name: string;
  readonly slot: number;
  readonly declared: DeclaredType;
  readonly isConstant: boolean;
  readonly isNotNull: boolean;
}

/**
 * A variable name that is visible in a part of the body. It is linked to the names declared
 * earlier.
 */
export interface VisibleName {
  readonly name: string;
  readonly slot: number;
  /** The label of the block that declares the variable, or the function's name for a parameter. */
  readonly label: string | undefined;
  readonly outer: VisibleName | undefined;
}

/** An SQL statement or expression within a body. */
interface PieceBase {
  /** The text of the SQL, for error messages. */
  readonly text: string;
  readonly names: VisibleName | undefined;
}

export interface ExpressionPiece extends PieceBase {
  readonly kind: "expression";
  readonly node: Expr;
}

/** A query. If the body expects an expression, the query is written without its leading SELECT. */
export interface QueryPiece extends PieceBase {
  readonly kind: "query";
  readonly node: SelectStatement;
}

export interface StatementPiece extends PieceBase {
  readonly kind: "statement";
  readonly node: Statement;
}

export type ValuePiece = ExpressionPiece | QueryPiece;

export type SqlPiece = ExpressionPiece | QueryPiece | StatementPiece;

/**
 * A step from a variable towards the part of it that is assigned: a field, an element or a slice.
 */
export type TargetStep =
  | { readonly kind: "field"; readonly name: string }
  | { readonly kind: "element"; readonly at: ValuePiece }
  | {
      readonly kind: "slice";
      readonly from: ValuePiece | undefined;
      readonly to: ValuePiece | undefined;
    };

export interface TargetNode {
  readonly slot: number;
  readonly steps: readonly TargetStep[];
}

/** The variables after INTO. */
export interface IntoNode {
  readonly targets: readonly TargetNode[];
  readonly isStrict: boolean;
}

interface NodeBase {
  /** The number of the line in the body, counted from 1. */
  readonly line: number;
}

export interface BlockNode extends NodeBase {
  readonly kind: "block";
  readonly label: string | undefined;
  /** The variables to initialise when the block begins, with their defaults. */
  readonly declarations: readonly DeclarationNode[];
  readonly statements: readonly StatementNode[];
  readonly handlers: readonly HandlerNode[] | undefined;
  /** The slots of the variables SQLSTATE and SQLERRM in the handlers. */
  readonly caught: { readonly state: number; readonly message: number } | undefined;
}

export interface DeclarationNode extends NodeBase {
  readonly slot: number;
  readonly initial: ValuePiece | undefined;
}

/** An error condition after WHEN: a name in lower case, or an SQLSTATE. */
export type ConditionNode =
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "state"; readonly state: string };

export interface HandlerNode extends NodeBase {
  readonly conditions: readonly ConditionNode[];
  readonly statements: readonly StatementNode[];
}

export interface AssignNode extends NodeBase {
  readonly kind: "assign";
  readonly target: TargetNode;
  readonly value: ValuePiece;
}

export interface IfNode extends NodeBase {
  readonly kind: "if";
  readonly branches: readonly {
    readonly condition: ValuePiece;
    readonly statements: readonly StatementNode[];
  }[];
  readonly otherwise: readonly StatementNode[];
}

export interface CaseNode extends NodeBase {
  readonly kind: "case";
  /**
   * The value that CASE compares, and the slot that holds it while the branches are tested; absent
   * for a searched CASE.
   */
  readonly operand: { readonly value: ValuePiece; readonly slot: number } | undefined;
  readonly branches: readonly {
    readonly conditions: readonly ValuePiece[];
    readonly statements: readonly StatementNode[];
  }[];
  /**
   * The statements after ELSE; undefined without ELSE. It is then an error if no branch matches.
   */
  readonly otherwise: readonly StatementNode[] | undefined;
}

interface LoopBase extends NodeBase {
  readonly label: string | undefined;
  readonly statements: readonly StatementNode[];
}

export interface LoopNode extends LoopBase {
  readonly kind: "loop";
  /** The condition of WHILE; undefined for an endless loop. */
  readonly condition: ValuePiece | undefined;
}

export interface IntegerLoopNode extends LoopBase {
  readonly kind: "integer loop";
  readonly slot: number;
  readonly from: ValuePiece;
  readonly to: ValuePiece;
  readonly by: ValuePiece | undefined;
  readonly isReverse: boolean;
}

/** The source of the rows for a loop or for RETURN QUERY. */
export type RowsNode =
  | { readonly kind: "statement"; readonly statement: StatementPiece }
  | {
      readonly kind: "execute";
      readonly text: ValuePiece;
      readonly using: readonly ValuePiece[];
    }
  | {
      readonly kind: "cursor";
      readonly slot: number;
      readonly args: readonly CursorArgument[];
    };

export interface CursorArgument {
  readonly name: string | undefined;
  readonly value: ValuePiece;
}

export interface RowLoopNode extends LoopBase {
  readonly kind: "row loop";
  readonly targets: readonly TargetNode[];
  readonly source: RowsNode;
}

export interface ForeachNode extends LoopBase {
  readonly kind: "foreach";
  /** The loop variable, or several variables for the fields of rows. */
  readonly targets: readonly TargetNode[];
  /** The number of dimensions of the slices over which FOREACH runs; 0 for single elements. */
  readonly slice: number;
  readonly array: ValuePiece;
}

export interface ExitNode extends NodeBase {
  readonly kind: "exit";
  readonly isContinue: boolean;
  readonly label: string | undefined;
  readonly condition: ValuePiece | undefined;
}

export interface ReturnNode extends NodeBase {
  readonly kind: "return";
  readonly value: ValuePiece | undefined;
}

export interface ReturnNextNode extends NodeBase {
  readonly kind: "return next";
  readonly value: ValuePiece | undefined;
}

export interface ReturnQueryNode extends NodeBase {
  readonly kind: "return query";
  readonly source: RowsNode;
}

export type RaiseLevel = "debug" | "exception" | "info" | "log" | "notice" | "warning";

export type RaiseOption =
  | "column"
  | "constraint"
  | "datatype"
  | "detail"
  | "errcode"
  | "hint"
  | "message"
  | "schema"
  | "table";

export interface RaiseNode extends NodeBase {
  readonly kind: "raise";
  readonly level: RaiseLevel;
  readonly condition: ConditionNode | undefined;
  readonly format: string | undefined;
  readonly args: readonly ValuePiece[];
  readonly options: readonly { readonly name: RaiseOption; readonly value: ValuePiece }[];
  /** Whether the statement is RAISE without arguments, which raises the caught error again. */
  readonly isAgain: boolean;
}

export interface AssertNode extends NodeBase {
  readonly kind: "assert";
  readonly condition: ValuePiece;
  readonly message: ValuePiece | undefined;
}

export interface PerformNode extends NodeBase {
  readonly kind: "perform";
  readonly query: QueryPiece;
}

export interface SqlNode extends NodeBase {
  readonly kind: "sql";
  readonly statement: StatementPiece;
  readonly into: IntoNode | undefined;
}

export interface ExecuteNode extends NodeBase {
  readonly kind: "execute";
  readonly text: ValuePiece;
  readonly using: readonly ValuePiece[];
  readonly into: IntoNode | undefined;
}

export interface DiagnosticsNode extends NodeBase {
  readonly kind: "diagnostics";
  readonly isStacked: boolean;
  readonly items: readonly { readonly target: TargetNode; readonly name: string }[];
}

export interface OpenNode extends NodeBase {
  readonly kind: "open";
  readonly slot: number;
  /** The arguments of a bound cursor. */
  readonly args: readonly CursorArgument[];
  /** The source of the rows of an unbound cursor; undefined for a bound cursor. */
  readonly source: RowsNode | undefined;
  readonly isScroll: boolean | undefined;
}

export type FetchKind = "absolute" | "backward" | "forward" | "relative";

export interface FetchNode extends NodeBase {
  readonly kind: "fetch";
  readonly slot: number;
  readonly direction: FetchKind;
  /** The number of rows, or the position, that the direction specifies. */
  readonly count: ValuePiece | number;
  /** The variables in which FETCH stores the row; undefined for MOVE. */
  readonly into: IntoNode | undefined;
}

export interface CloseNode extends NodeBase {
  readonly kind: "close";
  readonly slot: number;
}

export interface CallNode extends NodeBase {
  readonly kind: "call";
  readonly statement: StatementPiece;
}

export interface NullNode extends NodeBase {
  readonly kind: "null";
}

export type StatementNode =
  | AssertNode
  | AssignNode
  | BlockNode
  | CallNode
  | CaseNode
  | CloseNode
  | DiagnosticsNode
  | ExecuteNode
  | ExitNode
  | FetchNode
  | ForeachNode
  | IfNode
  | IntegerLoopNode
  | LoopNode
  | NullNode
  | OpenNode
  | PerformNode
  | RaiseNode
  | ReturnNextNode
  | ReturnNode
  | ReturnQueryNode
  | RowLoopNode
  | SqlNode;
