/**
 * The syntax tree of statements about functions. See `ast.ts` for the rules that apply to all
 * nodes.
 */
import type { AstNode, DataTypeDef, Expr, Name, QName, SelectStatement } from "./ast.ts";
import type { DropBehaviour } from "./ast_definitions.ts";

/** A statement that changes the functions of a namespace. */
export type FunctionDefinition =
  | AlterFunctionStatement
  | CreateFunctionStatement
  | DropFunctionStatement;

export type FunctionVolatility = "immutable" | "stable" | "volatile";

/** CREATE FUNCTION with LANGUAGE SQL, whose body is one query. */
export interface CreateFunctionStatement extends AstNode {
  readonly type: "create function";
  readonly orReplace?: true | undefined;
  readonly name: QName;
  /** The parameters, including output parameters and the columns of RETURNS TABLE. */
  readonly parameters: readonly FunctionParameterNode[];
  /** The type after RETURNS; absent if output parameters determine it. */
  readonly dataType?: DataTypeDef | undefined;
  /** Whether the function returns any number of rows. */
  readonly isSet: boolean;
  readonly isStrict: boolean;
  readonly volatility: FunctionVolatility;
  readonly query: SelectStatement;
  /** The text of the query, which the catalog stores. */
  readonly source: string;
}

export type ParameterMode = "in" | "out" | "inout" | "variadic" | "table";

export interface FunctionParameterNode extends AstNode {
  readonly mode: ParameterMode;
  readonly name?: Name | undefined;
  readonly dataType: DataTypeDef;
  readonly default?: Expr | undefined;
  /** The text of the default. */
  readonly source?: string | undefined;
}

/**
 * A function in a statement that changes it: `name` or `name(types)`. Without types, the name must
 * belong to one function only.
 */
export interface FunctionName extends QName {
  /** The types of the input parameters; absent if the text has no parentheses. */
  readonly parameters?: readonly FunctionParameterNode[] | undefined;
}

/** The statement ALTER FUNCTION name RENAME TO to. */
export interface AlterFunctionStatement extends AstNode {
  readonly type: "alter function";
  readonly name: FunctionName;
  readonly to: Name;
}

export interface DropFunctionStatement extends AstNode {
  readonly type: "drop function";
  readonly names: readonly FunctionName[];
  readonly ifExists?: true | undefined;
  readonly cascade?: DropBehaviour | undefined;
}
