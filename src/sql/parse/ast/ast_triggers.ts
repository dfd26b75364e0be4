/**
 * Defines the syntax tree of statements about triggers. See `ast.ts` for the rules that apply to
 * all nodes.
 */
import type { AstNode, Expr, Name, QName } from "./ast.ts";

/** A statement that changes the triggers of a table or view. */
export type TriggerDefinition =
  | AlterTriggerStatement
  | CreateTriggerStatement
  | DropTriggerStatement;

export type TriggerTimingWord = "before" | "after" | "instead of";

export type TriggerEventWord = "insert" | "update" | "delete" | "truncate";

export interface CreateTriggerStatement extends AstNode {
  readonly type: "create trigger";
  readonly orReplace?: true | undefined;
  readonly name: Name;
  /** The table or view whose changes fire the trigger. */
  readonly table: QName;
  readonly timing: TriggerTimingWord;
  readonly events: readonly TriggerEventWord[];
  /** The columns listed after UPDATE OF. */
  readonly columns?: readonly Name[] | undefined;
  readonly level: "row" | "statement";
  /**
   * The names that REFERENCING assigns to the transition tables, which contain the rows before and
   * after the statement.
   */
  readonly oldTable?: Name | undefined;
  readonly newTable?: Name | undefined;
  /** The deferral of a constraint trigger; absent for any other trigger. */
  readonly constraint?: TriggerDeferralNode | undefined;
  readonly when?: Expr | undefined;
  /** The SQL text of the trigger's WHEN condition. */
  readonly source?: string | undefined;
  readonly function: QName;
  readonly arguments: readonly string[];
}

/** Determines when a constraint trigger runs. */
export interface TriggerDeferralNode {
  readonly deferrable?: boolean | undefined;
  readonly initially?: "deferred" | "immediate" | undefined;
}

/** The statement ALTER TRIGGER … RENAME TO. */
export interface AlterTriggerStatement extends AstNode {
  readonly type: "alter trigger";
  readonly name: Name;
  readonly table: QName;
  readonly to: Name;
}

export interface DropTriggerStatement extends AstNode {
  readonly type: "drop trigger";
  readonly name: Name;
  readonly table: QName;
  readonly ifExists?: true | undefined;
}

/** The ALTER TABLE action ENABLE TRIGGER or DISABLE TRIGGER. */
export interface TableAlterationTriggers extends AstNode {
  readonly type: "enable trigger" | "disable trigger";
  /** The name of the trigger; absent for ALL and USER, which both mean all triggers. */
  readonly trigger?: Name | undefined;
}
