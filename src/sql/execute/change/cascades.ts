/**
 * Fires triggers for the rows that foreign key actions change. As in PostgreSQL, a statement fires
 * the FOR EACH STATEMENT triggers of a referencing table only once per event, and all AFTER
 * triggers of these rows run after the AFTER triggers of the statement itself.
 */
import { DatabaseError } from "../../../base/errors.ts";
import type { WaitingSteps } from "../../../base/waiting_steps.ts";
import type { TableEntry } from "../../../catalog/mod.ts";
import { nameOf } from "../../bind/change/dml_target.ts";
import { runtimeOf } from "../build/table_runtime.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import { ownerOf } from "../operators/scan.ts";
import { type FiredTriggers, fireAll, type StatementEvent, triggersOf } from "./fired_triggers.ts";
import { mayName } from "./references.ts";
import type { RowChange } from "./row_changes.ts";
import { requireCurrent } from "./stored_rows.ts";

export class Cascades {
  readonly #context: ExecutionContext;
  readonly #byEvent = new Map<string, Cascade>();

  constructor(context: ExecutionContext) {
    this.#context = context;
  }

  /** Returns the triggers of a referencing table for one event; undefined if there are none. */
  of(table: TableEntry, event: StatementEvent): Cascade | undefined {
    const triggers = triggersOf(table);
    if (triggers === undefined) return undefined;
    const columns = [...(event.setIds ?? [])].join();
    const name = `${table.tableId}/${event.event}/${columns}`;
    let cascade = this.#byEvent.get(name);
    if (cascade === undefined) {
      cascade = new Cascade(table, { context: this.#context, event, triggers });
      this.#byEvent.set(name, cascade);
    }
    return cascade;
  }

  /** Returns the steps that fire the AFTER triggers of the referencing tables. */
  after(): readonly WaitingSteps<void>[] {
    return [...this.#byEvent.values()].map((cascade) => cascade.after());
  }
}

interface CascadeOptions {
  readonly context: ExecutionContext;
  readonly event: StatementEvent;
  readonly triggers: FiredTriggers;
}

/** The rows of one table that foreign key actions delete or update. */
class Cascade {
  readonly #table: TableEntry;
  readonly #options: CascadeOptions;
  readonly #changes: RowChange[] = [];
  #hasBegun = false;

  constructor(table: TableEntry, options: CascadeOptions) {
    this.#table = table;
    this.#options = options;
  }

  /**
   * Fires the BEFORE triggers FOR EACH STATEMENT, unless they have already been fired.
   * @throws {DatabaseError} UNSUPPORTED_FEATURE if a row belongs to another user.
   */
  *begin(rows: readonly { readonly owner: number }[]): WaitingSteps<void> {
    const { context, event, triggers } = this.#options;
    // This call also ends the first time slice, because the effects of triggers cannot be undone
    // on their own.
    context.stay();
    const own = ownerOf(context.principal, this.#table);
    // A trigger sees the caller's rows, so it must not be passed other users' rows.
    if (rows.some(({ owner }) => owner !== own)) {
      const name = mayName(this.#table, context.references)
        ? nameOf(this.#table)
        : "a different table";
      throw new DatabaseError(
        "UNSUPPORTED_FEATURE",
        `Cannot change other users' rows in ${name} through a foreign key: the table has triggers`,
        { hint: "delete each user's rows first, or disable the triggers" },
      );
    }
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    yield* triggers.fireStatement("before", event, context);
  }

  /** Fires the BEFORE triggers FOR EACH ROW. Returns undefined if a trigger skips the row. */
  *changed(change: RowChange): WaitingSteps<RowChange | undefined> {
    const { context, event, triggers } = this.#options;
    yield context.pause();
    const made = yield* triggers.fireFor("before", { ...event, change }, context);
    if (made !== undefined) requireCurrent(runtimeOf(this.#table), made, context);
    return made;
  }

  note(change: RowChange): void {
    this.#changes.push(change);
  }

  *after(): WaitingSteps<void> {
    if (!this.#hasBegun) return;
    const { context, event, triggers } = this.#options;
    yield* fireAll(triggers, { changes: this.#changes, events: [event] }, context);
  }
}
