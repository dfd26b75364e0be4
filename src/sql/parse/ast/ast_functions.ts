/**
 * Defines the syntax tree of statements about functions. See `ast.ts` for the rules that apply to
 * all nodes.
 */
import type { AstNode, DataTypeDef, Expr, ExprCall, Name, QName, SelectStatement } from "./ast.ts";
import type { DropBehaviour } from "./ast_definitions.ts";

/** A statement that changes the functions of a namespace. */
export type FunctionDefinition =
  | AlterFunctionStatement
  | CreateAggregateStatement
  | CreateFunctionStatement
  | DropFunctionStatement;

export type FunctionVolatility = "immutable" | "stable" | "volatile";

/** The language of a function body that is a program rather than a single SQL query. */
export type ProgramLanguage = "plpgsql" | "sql";

/**
 * The statement CREATE FUNCTION or CREATE PROCEDURE. The body is a single SQL query or a program.
 */
export interface CreateFunctionStatement extends AstNode {
  readonly type: "create function";
  readonly orReplace?: true | undefined;
  readonly name: QName;
  /** The parameters, including output parameters and the columns of RETURNS TABLE. */
  readonly parameters: readonly FunctionParameterNode[];
  /** The type after RETURNS; absent if output parameters determine it. */
  readonly dataType?: DataTypeDef | undefined;
  /** Whether the function returns a set of rows. */
  readonly isSet: boolean;
  readonly isStrict: boolean;
  readonly volatility: FunctionVolatility;
  /** The query that is the function body; absent if the body is a program. */
  readonly query?: SelectStatement | undefined;
  /**
   * The language of a function body that is a program; absent if the body is a single SQL query.
   */
  readonly program?: ProgramLanguage | undefined;
  /** Set if the statement creates a procedure, which can be called only by CALL. */
  readonly isProcedure?: true | undefined;
  /** The text of the function body, which the catalog stores. */
  readonly source: string;
}

/** CREATE AGGREGATE. */
export interface CreateAggregateStatement extends AstNode {
  readonly type: "create aggregate";
  readonly orReplace?: true | undefined;
  readonly name: QName;
  readonly parameters: readonly FunctionParameterNode[];
  readonly plain: AggregateStepsNode;
  /** How the aggregate is computed over moving frames; absent if no attribute defines it. */
  readonly moving?: AggregateStepsNode | undefined;
  /** The function after COMBINEFUNC. */
  readonly combine?: QName | undefined;
}

/** The functions from which an aggregate computes its state and its result. */
export interface AggregateStepsNode {
  /** The type of the state. */
  readonly dataType: DataTypeDef;
  /** Returns the state after a row has been added. */
  readonly transition: QName;
  /** Returns the state after a row has been removed. */
  readonly inverse?: QName | undefined;
  /** Returns the result. If absent, the result is the state. */
  readonly final?: QName | undefined;
  /** Whether the final function has parameters for the arguments, too. They are all NULL. */
  readonly isFinalExtended?: true | undefined;
  /** The text of the initial state. If absent, the state is NULL at first. */
  readonly initial?: string | undefined;
}

export type ParameterMode = "in" | "out" | "inout" | "variadic" | "table";

export interface FunctionParameterNode extends AstNode {
  readonly mode: ParameterMode;
  /** Whether the mode is written, even if it is IN. */
  readonly hasMode?: true | undefined;
  readonly name?: Name | undefined;
  readonly dataType: DataTypeDef;
  readonly default?: Expr | undefined;
  /** The SQL text of the parameter's default. */
  readonly source?: string | undefined;
}

/**
 * A function named in a statement that changes it: `name` or `name(types)`. Without types, the
 * name must be unambiguous.
 */
export interface FunctionName extends QName {
  /** Set if the statement applies only to aggregates, to functions, or to procedures. */
  readonly kind?: "aggregate" | "function" | "procedure" | undefined;
  /** The types of the input parameters; absent if the function was written without parentheses. */
  readonly parameters?: readonly FunctionParameterNode[] | undefined;
}

/** The statement ALTER FUNCTION, ALTER PROCEDURE or ALTER ROUTINE. */
export interface AlterFunctionStatement extends AstNode {
  readonly type: "alter function";
  readonly name: FunctionName;
  readonly change: FunctionChange;
}

export type FunctionChange =
  | { readonly type: "rename"; readonly to: Name }
  | ({ readonly type: "set clauses" } & FunctionClauses);

/**
 * The clauses of a function that ALTER FUNCTION can change. A clause that is not written is
 * undefined.
 */
export interface FunctionClauses {
  readonly isStrict?: boolean | undefined;
  readonly volatility?: FunctionVolatility | undefined;
}

/** The statement CALL, which calls a procedure. */
export interface CallStatement extends AstNode {
  readonly type: "call procedure";
  readonly call: ExprCall;
}

/** The statement DO with a PL/pgSQL block. */
export interface DoBlockStatement extends AstNode {
  readonly type: "do block";
  readonly source: string;
}

export interface DropFunctionStatement extends AstNode {
  readonly type: "drop function";
  readonly names: readonly FunctionName[];
  readonly ifExists?: true | undefined;
  readonly cascade?: DropBehaviour | undefined;
}
