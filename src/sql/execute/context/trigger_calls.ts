/**
 * Defines how a change calls the functions of triggers. The layer that runs statements implements
 * the interface, because a trigger function itself runs statements.
 */
import type { Principal } from "../../../auth/mod.ts";
import type { TableEntry, TriggerEntry, TriggerEvent } from "../../../catalog/mod.ts";
import type { Row } from "../../../types/mod.ts";

/** The rows of a statement that triggers read under the names in the REFERENCING clause. */
export interface TransitionRows {
  readonly before: readonly Row[];
  readonly after: readonly Row[];
}

/** A call to a trigger function. The rows passed to it have the table's columns in order. */
export interface TriggerCall {
  readonly table: TableEntry;
  readonly trigger: TriggerEntry;
  readonly event: TriggerEvent;
  /** The row before the change; absent for INSERT and for triggers FOR EACH STATEMENT. */
  readonly before?: Row | undefined;
  /** The row after the change; absent for DELETE and for triggers FOR EACH STATEMENT. */
  readonly after?: Row | undefined;
  readonly transition?: TransitionRows | undefined;
}

export interface TriggerCalls {
  /**
   * Runs a trigger's function within the transaction of the statement. Returns the function's
   * result, which is a row, or null for NULL.
   *
   * @throws {DatabaseError} LIMIT_EXCEEDED if triggers fire each other too deeply, and the errors
   *   of the function.
   */
  call(call: TriggerCall): Row | null | Promise<Row | null>;
}

/** A call to a constraint trigger that is deferred to the commit. */
export interface DeferredCall {
  /** The name of the trigger. */
  readonly name: string;
  /** The user whose statement fired the trigger. */
  readonly principal: Principal;
  readonly call: TriggerCall;
}
