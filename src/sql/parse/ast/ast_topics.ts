/**
 * Defines the syntax tree of statements about topics. See `ast.ts` for the rules that apply to all
 * nodes.
 */
import type { AstNode, Expr, ExprLiteral, ExprParameter, ExprSlot, Name, QName } from "./ast.ts";
import type { OptionEntry } from "./ast_definitions.ts";

/** A statement that changes the definition of a topic. */
export type TopicDefinition =
  | CreateTopicStatement
  | AlterTopicStatement
  | DropTopicStatement
  | ClearTopicStatement;

/** A type of change that a topic source publishes. */
export type TopicChangeKind = "insert" | "update" | "delete";

/**
 * A number or string in CONSUME and ACK, given as a literal or a parameter. It is a slot if the
 * statement's literals have been lifted out, although such statements have no cached plans.
 */
export type TopicArgument = ExprLiteral | ExprParameter | ExprSlot;

/** A statement that changes a webhook. */
export type WebhookDefinition =
  | AlterWebhookStatement
  | CreateWebhookStatement
  | DropWebhookStatement;

export interface CreateTopicStatement extends AstNode {
  readonly type: "create topic";
  readonly name: QName;
  readonly ifNotExists?: true | undefined;
  readonly partitions?: number | undefined;
  readonly options?: readonly OptionEntry[] | undefined;
}

export interface AlterTopicStatement extends AstNode {
  readonly type: "alter topic";
  readonly name: QName;
  readonly change: TopicAlteration;
}

export type TopicAlteration = AddSource | DropSource | SetTopicOptions;

/** The clause `ADD SOURCE t ON op [WHERE e] [WITH (…)]`. */
export interface AddSource extends AstNode {
  readonly type: "add source";
  readonly table: QName;
  readonly operation: TopicChangeKind;
  readonly where?: Expr | undefined;
  /** The SQL text of `where`, which the catalog stores. */
  readonly source?: string | undefined;
  readonly options?: readonly OptionEntry[] | undefined;
}

export interface DropSource extends AstNode {
  readonly type: "drop source";
  readonly table: QName;
  readonly operation: TopicChangeKind;
}

export interface SetTopicOptions extends AstNode {
  readonly type: "set options";
  readonly options: readonly OptionEntry[];
}

export interface DropTopicStatement extends AstNode {
  readonly type: "drop topic";
  readonly name: QName;
  readonly ifExists?: true | undefined;
}

export interface ClearTopicStatement extends AstNode {
  readonly type: "clear topic";
  readonly name: QName;
}

/** The statement CONSUME. If a member is absent, its default applies. */
export interface ConsumeStatement extends AstNode {
  readonly type: "consume";
  readonly topic: QName;
  readonly partition?: TopicArgument | undefined;
  readonly group?: TopicArgument | undefined;
  readonly from?: "earliest" | "latest" | TopicArgument | undefined;
  readonly limit?: TopicArgument | undefined;
  readonly noAck?: true | undefined;
}

/** The statement ACK, with exactly one of `upTo` and `offsets`. */
export interface AckStatement extends AstNode {
  readonly type: "ack";
  readonly topic: QName;
  readonly group: TopicArgument;
  readonly partition?: TopicArgument | undefined;
  /** The last offset to acknowledge (inclusive). */
  readonly upTo?: TopicArgument | undefined;
  readonly offsets?: readonly TopicArgument[] | undefined;
}

export interface CreateWebhookStatement extends AstNode {
  readonly type: "create webhook";
  readonly name: Name;
  readonly ifNotExists?: true | undefined;
  readonly topic: QName;
  readonly url: string;
  /** The offset in the SQL at which the webhook's URL begins. */
  readonly urlStart: number;
  readonly secret?: string | undefined;
  readonly options?: readonly OptionEntry[] | undefined;
}

export interface AlterWebhookStatement extends AstNode {
  readonly type: "alter webhook";
  readonly name: Name;
  readonly change:
    | {
        readonly type: "set url";
        readonly url: string;
        /** The offset in the SQL at which the webhook's URL begins. */
        readonly urlStart: number;
      }
    | { readonly type: "set secret"; readonly secret: string }
    | { readonly type: "drop secret" }
    | { readonly type: "set options"; readonly options: readonly OptionEntry[] };
}

export interface DropWebhookStatement extends AstNode {
  readonly type: "drop webhook";
  readonly name: Name;
  readonly ifExists?: true | undefined;
}
