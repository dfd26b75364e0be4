/**
 * Chooses the triggers of a table that a change fires, evaluates their conditions and calls them.
 *
 * - Triggers fire in the order of their names.
 * - A BEFORE trigger FOR EACH ROW receives the row returned by the preceding trigger. If a trigger
 *   returns NULL, the row stays as it is, and no further trigger fires for it.
 * - An INSTEAD OF trigger does so, too. It takes the place of the change.
 */
import { defined } from "../../../base/assert.ts";
import { awaited, type WaitingSteps } from "../../../base/waiting_steps.ts";
import type { TableEntry, TriggerEntry, TriggerEvent } from "../../../catalog/mod.ts";
import { type Row, valueAt } from "../../../types/mod.ts";
import { bindTriggerCondition } from "../../bind/change/trigger_condition.ts";
import { parseStored } from "../../bind/expression/type_names.ts";
import type { ExecutionContext } from "../context/execution_context.ts";
import type { TransitionRows, TriggerCall } from "../context/trigger_calls.ts";
import { compileExpression } from "../evaluate/expression.ts";
import { columnsFromRows } from "../operators/filter.ts";
import type { RowChange } from "./row_changes.ts";

type Timing = TriggerEntry["timing"];
type Level = TriggerEntry["level"];

/** An event that concerns a whole statement. */
export interface StatementEvent {
  readonly event: TriggerEvent;
  /** The ids of the columns that an UPDATE sets. */
  readonly setIds?: ReadonlySet<number>;
}

/** Decides whether a row meets the condition of a trigger. */
type TriggerCondition = (
  rows: Pick<TriggerCall, "after" | "before">,
  context: ExecutionContext,
) => boolean;

/** An enabled trigger, with its compiled condition. */
interface FiringTrigger {
  readonly entry: TriggerEntry;
  readonly meets: TriggerCondition | undefined;
}

export class FiredTriggers {
  readonly #table: TableEntry;
  readonly #triggers: readonly FiringTrigger[];

  constructor(table: TableEntry, triggers: readonly TriggerEntry[]) {
    this.#table = table;
    this.#triggers = triggers.map((entry) => ({ entry, meets: conditionOf(entry, table) }));
  }

  /** Whether triggers take the place of the changes of an event. */
  replaces(event: TriggerEvent): boolean {
    return this.has("instead of", "row", event);
  }

  /** Whether triggers FOR EACH ROW may change or skip the rows of an event. */
  mayChangeRows(event: TriggerEvent): boolean {
    return this.has("before", "row", event);
  }

  has(timing: Timing, level: Level, event: TriggerEvent): boolean {
    return this.#triggers.some(
      ({ entry }) =>
        entry.timing === timing && entry.level === level && entry.events.includes(event),
    );
  }

  #of(timing: Timing, level: Level, { event, setIds }: StatementEvent): readonly FiringTrigger[] {
    return this.#triggers.filter(({ entry: { columnIds, events, level: own, timing: when } }) => {
      if (when !== timing || own !== level || !events.includes(event)) return false;
      if (event !== "update" || columnIds === undefined || setIds === undefined) return true;
      return columnIds.some((columnId) => setIds.has(columnId));
    });
  }

  /** Fires the BEFORE or AFTER triggers FOR EACH STATEMENT. */
  *fireStatement(
    timing: "after" | "before",
    { transition, ...event }: StatementEvent & { readonly transition?: TransitionRows },
    context: ExecutionContext,
  ): WaitingSteps<void> {
    for (const { entry, meets } of this.#of(timing, "statement", event)) {
      if (meets?.({}, context) === false) continue;
      yield* this.#call(entry, { event: event.event, transition }, context);
    }
  }

  /**
   * Fires the BEFORE or INSTEAD OF triggers FOR EACH ROW. Returns the change that remains to be
   * made, or that the triggers have made; undefined if a trigger skips the row.
   */
  *fireFor(
    timing: "before" | "instead of",
    { change, setIds }: Pick<StatementEvent, "setIds"> & { readonly change: RowChange },
    context: ExecutionContext,
  ): WaitingSteps<RowChange | undefined> {
    const { before, operation } = change;
    const firing = this.#of(timing, "row", { event: operation, ...only(setIds) });
    if (firing.length === 0) return change;
    let row = operation === "delete" ? change.row : this.#uncomputed(change.row);
    for (const { entry, meets } of firing) {
      const rows = { before, after: operation === "delete" ? undefined : row };
      if (meets?.(rows, context) === false) continue;
      const returned = yield* this.#call(entry, { event: operation, ...rows }, context);
      if (returned === null) return undefined;
      if (operation !== "delete") row = returned;
    }
    return row === change.row ? change : { ...change, row };
  }

  /**
   * Returns a row with its generated columns left empty, because their values are computed later.
   */
  #uncomputed(row: Row): Row {
    const { columns } = this.#table;
    if (columns.every(({ generatedSql }) => generatedSql === undefined)) return row;
    return row.map((value, position) =>
      columns[position]?.generatedSql === undefined ? value : null,
    );
  }

  /** Fires the AFTER triggers FOR EACH ROW for a changed row. */
  *fireAfter(
    { before, operation, row }: RowChange,
    { setIds, transition }: Pick<StatementEvent, "setIds"> & { transition?: TransitionRows },
    context: ExecutionContext,
  ): WaitingSteps<void> {
    for (const { entry, meets } of this.#of("after", "row", {
      event: operation,
      ...only(setIds),
    })) {
      const rows = { before, after: operation === "delete" ? undefined : row };
      if (meets?.(rows, context) === false) continue;
      const call = { event: operation, ...rows, transition };
      if (entry.constraint !== undefined && this.#isDeferred(entry, context)) {
        this.#defer(entry, call, context);
      } else yield* this.#call(entry, call, context);
    }
  }

  #isDeferred({ constraint, name }: TriggerEntry, { transaction }: ExecutionContext): boolean {
    if (constraint === undefined || transaction === undefined) return false;
    return transaction.isDeferred({ ...constraint, name });
  }

  #defer(
    trigger: TriggerEntry,
    call: Omit<TriggerCall, "table" | "trigger">,
    { principal, transaction }: ExecutionContext,
  ): void {
    defined(transaction, "trigger queue: deferred trigger outside a transaction").deferCall({
      name: trigger.name,
      principal,
      call: { ...call, table: this.#table, trigger },
    });
  }

  *#call(
    trigger: TriggerEntry,
    call: Omit<TriggerCall, "table" | "trigger">,
    context: ExecutionContext,
  ): WaitingSteps<Row | null> {
    const calls = defined(
      context.triggers,
      "trigger queue: execution context cannot call trigger functions",
    );
    context.checkTime();
    return yield* awaited(calls.call({ ...call, table: this.#table, trigger }));
  }
}

function only(setIds: ReadonlySet<number> | undefined): Pick<StatementEvent, "setIds"> {
  return setIds === undefined ? {} : { setIds };
}

function conditionOf({ whenSql }: TriggerEntry, table: TableEntry): TriggerCondition | undefined {
  if (whenSql === undefined) return undefined;
  const { columns } = table;
  const bound = bindTriggerCondition(parseStored(whenSql, columns), table);
  const layout = new Map([...columns, ...columns].map((_, position) => [position, position]));
  const evaluate = compileExpression(bound, layout);
  const types = columns.map(({ type }) => type);
  const missing: Row = columns.map(() => null);
  return ({ after = missing, before = missing }, context) => {
    const rows = columnsFromRows([[...before, ...after]], [...types, ...types]);
    return valueAt(evaluate({ rowCount: 1, columns: rows }, context), 0) === true;
  };
}

/** Fires the AFTER triggers of a statement or of a foreign key action. */
export function* fireAll(
  triggers: FiredTriggers,
  { changes, events }: { changes: readonly RowChange[]; events: readonly StatementEvent[] },
  context: ExecutionContext,
): WaitingSteps<void> {
  const transitions = new Map(
    events.map((each) => [each.event, transitionOf(changes, each.event)] as const),
  );
  for (const change of changes) {
    const event = events.find((each) => each.event === change.operation);
    if (event === undefined || !triggers.has("after", "row", event.event)) continue;
    yield context.pause();
    const transition = transitions.get(event.event);
    yield* triggers.fireAfter(change, { ...event, ...(transition && { transition }) }, context);
  }
  // The events of a statement end in reverse order, as in PostgreSQL.
  for (const event of events.toReversed()) {
    const transition = transitions.get(event.event);
    const fired = { ...event, ...(transition && { transition }) };
    yield* triggers.fireStatement("after", fired, context);
  }
}

/** Returns the rows that an event of a statement has changed. */
function transitionOf(
  changes: readonly RowChange[],
  event: StatementEvent["event"],
): TransitionRows {
  const own = changes.filter(({ operation }) => operation === event);
  return {
    before: own.flatMap(({ before }) => (before === undefined ? [] : [before])),
    after: own.flatMap(({ operation, row }) => (operation === "delete" ? [] : [row])),
  };
}

const known = new WeakMap<TableEntry, FiredTriggers>();

/** Returns the enabled triggers of a table; undefined if the table has none. */
export function triggersOf(table: TableEntry): FiredTriggers | undefined {
  if (table.triggers === undefined) return undefined;
  let fired = known.get(table);
  if (fired === undefined) {
    const enabled = table.triggers.filter(({ isDisabled }) => isDisabled !== true);
    if (enabled.length === 0) return undefined;
    fired = new FiredTriggers(table, enabled);
    known.set(table, fired);
  }
  return fired;
}

/** Whether changes to a table fire triggers. */
export function hasTriggers({ triggers }: TableEntry): boolean {
  return triggers?.some(({ isDisabled }) => isDisabled !== true) === true;
}
