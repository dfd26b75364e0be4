/** The rows of information_schema.triggers. */
import type { Principal } from "../../auth/mod.ts";
import type { Catalog, TriggerEntry, TriggerEvent } from "../../catalog/mod.ts";
import { DATETIME, INT, type Row, TEXT } from "../../types/mod.ts";
import type { SystemView } from "../bind/bound.ts";
import { qnameText, stringText } from "../parse/print/print_expressions.ts";
import { visibleTables } from "./show_rows.ts";
import { OPEN, principalOf, view } from "./system_view.ts";

/**
 * The trigger events that the SQL standard defines. As in PostgreSQL, TRUNCATE is not among them.
 */
const EVENTS: readonly TriggerEvent[] = ["insert", "delete", "update"];

/** A table or view with its triggers. */
interface TriggerHolder {
  readonly namespace: string;
  readonly name: string;
  readonly triggers?: readonly TriggerEntry[] | undefined;
}

/**
 * Creates the view information_schema.triggers, with one row for each event of each trigger.
 *
 * @param viewsSeenBy Returns the views that a caller may read.
 */
export function triggersOfSchema(
  catalog: Catalog,
  database: string,
  viewsSeenBy: (principal: Principal) => readonly TriggerHolder[],
): SystemView {
  return view(
    [
      ["trigger_catalog", TEXT],
      ["trigger_schema", TEXT],
      ["trigger_name", TEXT],
      ["event_manipulation", TEXT],
      ["event_object_catalog", TEXT],
      ["event_object_schema", TEXT],
      ["event_object_table", TEXT],
      ["action_order", INT],
      ["action_condition", TEXT],
      ["action_statement", TEXT],
      ["action_orientation", TEXT],
      ["action_timing", TEXT],
      ["action_reference_old_table", TEXT],
      ["action_reference_new_table", TEXT],
      ["action_reference_old_row", TEXT],
      ["action_reference_new_row", TEXT],
      ["created", DATETIME],
    ],
    (call) => {
      const principal = principalOf(call);
      const holders = [...visibleTables(catalog, principal), ...viewsSeenBy(principal)];
      return holders.flatMap((table) =>
        EVENTS.flatMap((event) => rowsOf(table, event, { catalog, database })),
      );
    },
    OPEN,
  );
}

interface TriggerReading {
  readonly catalog: Catalog;
  readonly database: string;
}

function rowsOf(
  table: TriggerHolder,
  event: TriggerEvent,
  { catalog, database }: TriggerReading,
): Row[] {
  const { name, namespace, triggers = [] } = table;
  const firing = triggers.filter(({ events }) => events.includes(event));
  return firing.map((trigger): Row => {
    const alike = firing.filter(
      ({ level, timing }) => level === trigger.level && timing === trigger.timing,
    );
    return [
      database,
      namespace,
      trigger.name,
      event.toUpperCase(),
      database,
      namespace,
      name,
      alike.indexOf(trigger) + 1,
      trigger.whenSql ?? null,
      actionOf(trigger, catalog),
      trigger.level.toUpperCase(),
      trigger.timing.toUpperCase(),
      trigger.oldTable ?? null,
      trigger.newTable ?? null,
      null,
      null,
      trigger.createdAtMs * 1000,
    ];
  });
}

function actionOf({ arguments: given, functionId }: TriggerEntry, catalog: Catalog): string | null {
  const called = catalog.functions().find(({ viewId }) => viewId === functionId);
  if (called === undefined) return null;
  const name = qnameText({
    name: called.routine.name,
    schema: called.namespace,
    _location: { start: 0, end: 0 },
  });
  return `EXECUTE FUNCTION ${name}(${given.map(stringText).join(", ")})`;
}
