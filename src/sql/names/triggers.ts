/** Finds triggers by name, and the triggers that depend on a function or column. */
import { counted } from "../../base/counted.ts";
import { DatabaseError } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import type { Catalog, TableEntry, TriggerEntry, ViewEntry } from "../../catalog/mod.ts";
import { refsIn, rowOfRef } from "../bind/change/trigger_condition.ts";
import type { Name } from "../parse/ast/ast.ts";
import { parseExpression } from "../parse/parser.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import { DROPPED_BY_CASCADE } from "./views.ts";

/** A trigger, with the table or view whose changes fire it. */
export interface PlacedTrigger {
  readonly table: TableEntry | ViewEntry;
  readonly trigger: TriggerEntry;
}

/** Returns the trigger of a table with the given name. @throws {DatabaseError} OBJECT_NOT_FOUND */
export function triggerNamed(table: TableEntry, { name, _location }: Name): TriggerEntry {
  const { triggers = [] } = table;
  const trigger = triggers.find((each) => each.name === name);
  if (trigger !== undefined) return trigger;
  const near = nearestName(
    name,
    triggers.map((each) => each.name),
  );
  throw new DatabaseError(
    "OBJECT_NOT_FOUND",
    `Cannot find trigger "${name}" on ${table.namespace}.${table.name}`,
    {
      position: _location.start,
      hint:
        near === undefined
          ? "to list the triggers, run SELECT * FROM information_schema.triggers"
          : `did you mean "${near}"?`,
    },
  );
}

/** Returns the triggers that call one of the given functions. */
export function triggersCalling(
  catalog: Pick<Catalog, "tables" | "views">,
  functionIds: ReadonlySet<number>,
): PlacedTrigger[] {
  const holders: readonly (TableEntry | ViewEntry)[] = [...catalog.tables(), ...catalog.views()];
  return holders.flatMap((table) =>
    (table.triggers ?? []).flatMap((trigger) =>
      functionIds.has(trigger.functionId) ? [{ table, trigger }] : [],
    ),
  );
}

/** Returns the triggers that refer to a column in UPDATE OF or in their condition. */
export function triggersNaming(
  { columns, triggers = [] }: TableEntry,
  columnId: number,
): readonly TriggerEntry[] {
  const name = columns.find((column) => column.columnId === columnId)?.name;
  return triggers.filter(
    ({ columnIds = [], whenSql }) =>
      columnIds.includes(columnId) ||
      (whenSql !== undefined &&
        refsIn(parseExpression(whenSql)).some(
          (ref) => ref.table !== undefined && ref.name === name,
        )),
  );
}

/**
 * Refuses to remove an object that triggers depend on. @throws {DatabaseError} DEPENDENT_OBJECTS
 */
export function refuseTriggers(
  what: string,
  dependents: readonly PlacedTrigger[],
  { hint = DROPPED_BY_CASCADE, position }: { hint?: string; position: number },
): void {
  if (dependents.length === 0) return;
  const names = dependents.map(
    ({ table, trigger }) => `${trigger.name} on ${table.namespace}.${table.name}`,
  );
  throw new DatabaseError(
    "DEPENDENT_OBJECTS",
    `Cannot ${what}: it is used by ${counted(dependents.length, "trigger")}: ${names.join(", ")}`,
    { position, hint },
  );
}

/** Returns a table with the given triggers, sorted in firing order. */
export function withTriggers(whole: TableEntry, triggers: readonly TriggerEntry[]): TableEntry {
  const { triggers: _, ...table } = whole;
  return triggers.length === 0 ? table : { ...table, triggers: inOrder(triggers) };
}

/** Returns a view with the given triggers, sorted in firing order. */
export function withViewTriggers(view: ViewEntry, triggers: readonly TriggerEntry[]): ViewEntry {
  return { ...view, triggers: triggers.length === 0 ? undefined : inOrder(triggers) };
}

function inOrder(triggers: readonly TriggerEntry[]): readonly TriggerEntry[] {
  // Names are compared by code unit, because PostgreSQL also compares them without a collation.
  return triggers.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Returns a table without the given triggers. */
export function withoutTriggers(table: TableEntry, dropped: readonly TriggerEntry[]): TableEntry {
  if (dropped.length === 0) return table;
  return withTriggers(
    table,
    (table.triggers ?? []).filter((each) => !dropped.includes(each)),
  );
}

/** Returns a trigger condition in which a column of `old` and `new` is renamed. */
export function renamedInCondition(sql: string, from: string, to: string): string {
  return refsIn(parseExpression(sql))
    .filter((ref) => ref.table !== undefined && ref.star !== true && ref.name === from)
    .toSorted((left, right) => right._location.start - left._location.start)
    .reduce((text, ref) => {
      const { end, start } = ref._location;
      return `${text.slice(0, start)}${rowOfRef(ref) ?? "new"}.${nameText(to)}${text.slice(end)}`;
    }, sql);
}
