/**
 * Defines the syntax tree of statements about service tokens and invitations. See `ast.ts` for the
 * rules that apply to all nodes.
 */
import type { AstNode, Name } from "./ast.ts";
import type { UserName } from "./ast_definitions.ts";

/** A statement that creates or drops a secret: a token or an invitation. */
export type SecretDefinition =
  | CreateTokenStatement
  | DropTokenStatement
  | CreateInvitationStatement
  | DropInvitationStatement;

/** The clause `EXPIRES 'timestamp'` or `EXPIRES IN 'interval'`. */
export interface Expiry extends AstNode {
  readonly kind: "at" | "in";
  readonly text: string;
}

/**
 * A scope of a service token: `READ`, `WRITE`, `DEFINE`, `ACT` or `NAMESPACE name`. The parser
 * accepts any word; unknown words are rejected when the statement runs.
 */
export interface TokenScopeNode extends AstNode {
  /** The scope's keyword in lower case. */
  readonly word: string;
  /** The name after NAMESPACE; absent for other words. */
  readonly namespace?: Name | undefined;
}

export interface CreateTokenStatement extends AstNode {
  readonly type: "create token";
  readonly name: Name;
  readonly user: UserName;
  /** The expiry; absent if it was not written, and for EXPIRES NEVER. */
  readonly expires?: Expiry | undefined;
  readonly scopes?: readonly TokenScopeNode[] | undefined;
}

export interface DropTokenStatement extends AstNode {
  readonly type: "drop token";
  readonly name: Name;
  readonly ifExists?: true | undefined;
}

export interface CreateInvitationStatement extends AstNode {
  readonly type: "create invitation";
  readonly name: Name;
  /**
   * The maximum number of accounts that can be created with the invitation; absent if unlimited.
   */
  readonly uses?: number | undefined;
  readonly expires?: Expiry | undefined;
}

export interface DropInvitationStatement extends AstNode {
  readonly type: "drop invitation";
  readonly name: Name;
  readonly ifExists?: true | undefined;
}
