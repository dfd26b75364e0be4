/**
 * Defines the syntax tree of statements about policies. See `ast.ts` for the rules that apply to
 * all nodes.
 */
import type { AstNode, Expr, Name, QName } from "./ast.ts";

/** A statement that changes the policies of a table. */
export type PolicyDefinition = CreatePolicyStatement | AlterPolicyStatement | DropPolicyStatement;

export type PolicyCommandWord = "all" | "select" | "insert" | "update" | "delete";

/** The clauses about roles and rows that CREATE POLICY and ALTER POLICY share. */
export interface PolicyClauses {
  /**
   * The role names after TO; absent if the statement has no TO. `public` stands for every role.
   */
  readonly roles?: readonly Name[] | undefined;
  readonly using?: Expr | undefined;
  readonly check?: Expr | undefined;
}

export interface CreatePolicyStatement extends PolicyClauses, AstNode {
  readonly type: "create policy";
  readonly name: Name;
  readonly table: QName;
  /** The command after FOR; absent if the statement has no FOR, which means ALL. */
  readonly command?: PolicyCommandWord | undefined;
}

/**
 * The statement ALTER POLICY. It has either RENAME TO, with the new name in `to`, or at least one
 * of the other clauses.
 */
export interface AlterPolicyStatement extends PolicyClauses, AstNode {
  readonly type: "alter policy";
  readonly name: Name;
  readonly table: QName;
  readonly to?: Name | undefined;
}

export interface DropPolicyStatement extends AstNode {
  readonly type: "drop policy";
  readonly name: Name;
  readonly table: QName;
  readonly ifExists?: true | undefined;
}
