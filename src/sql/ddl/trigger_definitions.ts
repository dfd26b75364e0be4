/**
 * Executes CREATE, ALTER and DROP TRIGGER, and ENABLE and DISABLE TRIGGER of ALTER TABLE.
 *
 * A trigger belongs to its table or view: it is dropped with it, and is kept when the table, one of
 * its columns or the function is renamed. It runs with the rights of the user whose statement
 * fires it. Each change to a trigger raises the table's schema version, so that a running
 * statement starts again and fires the correct triggers.
 */
import type { Principal } from "../../auth/mod.ts";
import { requireAlter, requireRun } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  checkObjectName,
  type FunctionEntry,
  shownColumnsOf,
  type TableEntry,
  type TriggerEntry,
  type ViewEntry,
} from "../../catalog/mod.ts";
import { columnNamed, nameOf } from "../bind/change/dml_target.ts";
import { bindTriggerCondition, refsIn, rowOfRef } from "../bind/change/trigger_condition.ts";
import { tableOfView } from "../bind/change/triggered_view.ts";
import { findFunction } from "../names/functions.ts";
import { findTable, visibleView } from "../names/table_names.ts";
import {
  renamedInCondition,
  triggerNamed,
  withoutTriggers,
  withTriggers,
  withViewTriggers,
} from "../names/triggers.ts";
import { depsOf, shapeOf } from "../names/views.ts";
import type {
  CreateTriggerStatement,
  Expr,
  Name,
  Statement,
  TableAlterationTriggers,
  TriggerDefinition,
} from "../parse/ast/ast.ts";
import { expressionToSql } from "../parse/print/print_queries.ts";
import { isTriggerNode } from "../parse/print/print_triggers.ts";
import type { BindingDeps } from "../prepare/binding_deps.ts";
import type { ExecutionDeps } from "../prepare/statement_context.ts";
import { functionPlace } from "./function_definitions.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import { type RedefinitionDeps, redefineTable, redefineView } from "./redefined_table.ts";

type TriggerDeps = BindingDeps & ExecutionDeps & RedefinitionDeps;

/** The user who defines a trigger, and the namespace in which unqualified names are looked up. */
interface TriggerDefiner {
  readonly principal: Principal;
  readonly namespace: string;
}

export function isTriggerDefinition(node: Statement): node is TriggerDefinition {
  return isTriggerNode(node);
}

/** The table or view whose triggers a statement changes. */
interface TriggerPlace {
  /** The table; for a view, the table that represents it (see `triggered_view.ts`). */
  readonly table: TableEntry;
  readonly view: ViewEntry | undefined;
}

/**
 * Binds a trigger definition against the current catalog.
 * @throws {DatabaseError}
 */
export function defineTrigger(
  node: TriggerDefinition,
  call: TriggerDefiner,
  deps: TriggerDeps,
): BoundDefinition {
  const planned = (): TriggerPlace & { readonly next: TableEntry } => {
    const place = placeOf(node, call, deps);
    return { ...place, next: withDefinition(node, place, { call, deps }) };
  };
  const first = planned();
  const shown = `${node.name.name} on ${nameOf(first.table)}`;
  if (first.next === first.table) return () => `Trigger ${shown} does not exist`;
  return () => {
    const { next, table, view } = planned();
    if (node.type === "create trigger") deps.store.requireFreeSpace();
    const updatedAtMs = deps.clock.nowMs();
    if (view === undefined) {
      const after = { ...next, schemaVersion: table.schemaVersion + 1, updatedAtMs };
      redefineTable(deps, { before: table, after });
    } else {
      redefineView(deps, { ...withViewTriggers(view, next.triggers ?? []), updatedAtMs });
    }
    return `Trigger ${shown} ${DONE[node.type]}`;
  };
}

/** Finds the table or view that a statement names. @throws {DatabaseError} */
function placeOf(
  { table: name, type }: TriggerDefinition,
  call: TriggerDefiner,
  deps: TriggerDeps,
): TriggerPlace {
  const { catalog, systemViews } = deps;
  const { principal } = call;
  const named = { namespace: name.schema ?? call.namespace, name: name.name };
  const view = visibleView(deps, named, principal);
  const namespace = catalog.namespace(named.namespace);
  if (view === undefined || view.partition !== undefined || view.resultId !== undefined) {
    const table = findTable(deps, name, { ...call, node: name });
    requireAlter(principal, table, { namespace });
    return { table, view: undefined };
  }
  requireRun(principal, "removeTable", {
    action: `run ${type.toUpperCase()} on ${named.namespace}.${named.name}`,
    position: name._location.start,
    ...(namespace === undefined ? {} : { namespace }),
  });
  const { columns } = shapeOf(view, depsOf(catalog, systemViews.find));
  return { table: tableOfView(view, columns), view };
}

const DONE: Readonly<Record<TriggerDefinition["type"], string>> = {
  "create trigger": "created",
  "alter trigger": "renamed",
  "drop trigger": "dropped",
};

interface TriggerDefining {
  readonly call: TriggerDefiner;
  readonly deps: TriggerDeps;
}

function withDefinition(
  node: TriggerDefinition,
  place: TriggerPlace,
  definer: TriggerDefining,
): TableEntry {
  const { table } = place;
  const { triggers = [] } = table;
  switch (node.type) {
    case "create trigger": {
      const made = newTrigger(node, place, definer);
      return withTriggers(table, [...triggers.filter(({ name }) => name !== made.name), made]);
    }
    case "alter trigger": {
      const before = triggerNamed(table, node.name);
      requireFreeName(table, node.to);
      const after = { ...before, name: node.to.name };
      return withTriggers(
        table,
        triggers.map((each) => (each === before ? after : each)),
      );
    }
    case "drop trigger": {
      const isThere = triggers.some((each) => each.name === node.name.name);
      if (!isThere && node.ifExists === true) return table;
      return withoutTriggers(table, [triggerNamed(table, node.name)]);
    }
  }
}

function newTrigger(
  node: CreateTriggerStatement,
  { table, view }: TriggerPlace,
  { call, deps }: TriggerDefining,
): TriggerEntry {
  const before = table.triggers?.find(({ name }) => name === node.name.name);
  if (before === undefined || node.orReplace !== true) requireFreeName(table, node.name);
  if (view === undefined) requireFireable(node, table);
  else requireFireableByView(node, view);
  requireTransitionTables(node);
  const { columns, constraint, newTable, oldTable, when } = node;
  if (before?.constraint !== undefined || (before !== undefined && constraint !== undefined)) {
    throw invalid(
      node,
      "OR REPLACE is not supported for constraint triggers",
      "drop the existing trigger first",
    );
  }
  const called = findFunction({ ...node.function, parameters: [] }, functionPlace(call, deps));
  requireTriggerFunction(called, node);
  return {
    name: node.name.name,
    timing: node.timing,
    events: node.events,
    ...(columns && { columnIds: columnIdsOf(columns, table) }),
    level: node.level,
    ...(oldTable && { oldTable: oldTable.name }),
    ...(newTable && { newTable: newTable.name }),
    ...(when && { whenSql: conditionText(when, node, table) }),
    functionId: called.viewId,
    arguments: node.arguments,
    ...(constraint && {
      constraint: {
        isDeferrable: constraint.deferrable === true,
        isDeferred: constraint.initially === "deferred",
      },
    }),
    createdBy: call.principal.userId,
    createdAtMs: deps.clock.nowMs(),
  };
}

function invalid(node: CreateTriggerStatement, why: string, hint?: string): DatabaseError {
  return new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot create trigger "${node.name.name}": ${why}`,
    { position: node._location.start, ...(hint === undefined ? {} : { hint }) },
  );
}

/**
 * Requires that changes to the table can fire the trigger that a statement defines.
 * @throws {DatabaseError}
 */
function requireFireable(node: CreateTriggerStatement, table: TableEntry): void {
  const { constraint, events, level, timing } = node;
  if (table.kind === "stream") {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot create a trigger on ${nameOf(table)}: rows in a STREAM table are written outside ` +
        "transactions",
      {
        position: node.table._location.start,
        hint: "use a SHARED or USER table, or let the consumer of a topic do the work",
      },
    );
  }
  if (table.partitioned !== undefined) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot create a trigger on ${nameOf(table)}: partitioned tables cannot have triggers`,
      { position: node.table._location.start, hint: "use a table without partitions" },
    );
  }
  if (table.materialized !== undefined) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot create a trigger on ${nameOf(table)}: only REFRESH changes the rows of a ` +
        "materialized view",
      {
        position: node.table._location.start,
        hint: "create the trigger on the tables that the view reads",
      },
    );
  }
  if (timing === "instead of") {
    throw new DatabaseError(
      "INVALID_OPERATION",
      `Cannot create trigger "${node.name.name}": ${nameOf(table)} is a table, but only a view ` +
        "can have INSTEAD OF triggers",
      { position: node._location.start, hint: "write BEFORE or AFTER for a table" },
    );
  }
  if (events.includes("truncate") && level === "row") {
    throw invalid(node, "a TRUNCATE trigger cannot be FOR EACH ROW", "write FOR EACH STATEMENT");
  }
  if (constraint !== undefined && (timing !== "after" || level !== "row")) {
    throw invalid(node, "a constraint trigger must be AFTER … FOR EACH ROW");
  }
}

/**
 * Requires that changes to a view can fire the trigger that a statement defines.
 * @throws {DatabaseError} INVALID_OPERATION, INVALID_DEFINITION
 */
function requireFireableByView(node: CreateTriggerStatement, view: ViewEntry): void {
  const { columns, constraint, events, level, newTable, oldTable, timing, when } = node;
  const refused = (why: string): DatabaseError =>
    new DatabaseError(
      "INVALID_OPERATION",
      `Cannot create trigger "${node.name.name}": ${view.namespace}.${view.name} is a view, and ` +
        `views cannot have ${why}`,
      { position: node._location.start, hint: "write INSTEAD OF … FOR EACH ROW for a view" },
    );
  if (constraint !== undefined) throw refused("constraint triggers");
  if (events.includes("truncate")) throw refused("TRUNCATE triggers");
  if (newTable !== undefined || oldTable !== undefined) throw refused("transition tables");
  if (timing !== "instead of") {
    if (level === "row") throw refused("BEFORE or AFTER triggers FOR EACH ROW");
    return;
  }
  if (level === "statement") throw invalid(node, "an INSTEAD OF trigger must be FOR EACH ROW");
  if (when !== undefined) throw invalid(node, "an INSTEAD OF trigger cannot have a WHEN condition");
  if (columns !== undefined) {
    throw invalid(node, "an INSTEAD OF trigger cannot have a column list after UPDATE OF");
  }
}

/**
 * Checks the REFERENCING clause of a trigger.
 * @throws {DatabaseError} INVALID_DEFINITION
 */
function requireTransitionTables(node: CreateTriggerStatement): void {
  const { columns, constraint, events, newTable, oldTable, timing } = node;
  if (newTable === undefined && oldTable === undefined) return;
  const has = (event: (typeof events)[number]): boolean => events.includes(event);
  if (timing !== "after") throw invalid(node, "only AFTER triggers can have transition tables");
  if (constraint !== undefined)
    throw invalid(node, "constraint triggers cannot have transition tables");
  if (has("truncate")) throw invalid(node, "TRUNCATE triggers cannot have transition tables");
  if (events.length > 1) {
    throw invalid(
      node,
      "a trigger with transition tables can have only one event",
      "create a separate trigger for each event",
    );
  }
  if (columns !== undefined)
    throw invalid(node, "UPDATE OF cannot be combined with transition tables");
  if (newTable !== undefined && !has("insert") && !has("update")) {
    throw invalid(node, "NEW TABLE requires the event INSERT or UPDATE");
  }
  if (oldTable !== undefined && !has("delete") && !has("update")) {
    throw invalid(node, "OLD TABLE requires the event DELETE or UPDATE");
  }
  if (newTable !== undefined && newTable.name === oldTable?.name) {
    throw invalid(node, "OLD TABLE and NEW TABLE have the same name");
  }
}

function requireTriggerFunction(
  { name, namespace, routine }: FunctionEntry,
  node: CreateTriggerStatement,
): void {
  if (routine.returnsName === "trigger") return;
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot create trigger "${node.name.name}": function ${namespace}.${name} is not a trigger ` +
      "function",
    {
      position: node.function._location.start,
      hint: "declare the function with RETURNS trigger LANGUAGE plpgsql",
    },
  );
}

function columnIdsOf(columns: readonly Name[], table: TableEntry): number[] {
  const ids = columns.map((column) => columnNamed(table, column, "write").columnId);
  const twice = columns.find((_, i) => ids.indexOf(ids[i] ?? -1) !== i);
  if (twice === undefined) return ids;
  throw new DatabaseError(
    "INVALID_DEFINITION",
    `Cannot create the trigger: UPDATE OF lists column "${twice.name}" twice`,
    { position: twice._location.start },
  );
}

/**
 * Checks the WHEN condition of a trigger, and returns the condition's SQL.
 * @throws {DatabaseError}
 */
function conditionText(when: Expr, node: CreateTriggerStatement, table: TableEntry): string {
  const { events, level, timing } = node;
  const generated = new Set(
    shownColumnsOf(table).flatMap(({ generatedSql, name }) =>
      generatedSql === undefined ? [] : [name],
    ),
  );
  for (const ref of refsIn(when)) {
    const row = rowOfRef(ref);
    if (row === undefined) continue;
    if (level === "statement") {
      throw invalid(node, "the WHEN condition of a trigger FOR EACH STATEMENT cannot read columns");
    }
    if (row === "old" && events.includes("insert")) {
      throw invalid(node, "the WHEN condition cannot read OLD, because INSERT has no old row");
    }
    if (row === "new" && events.includes("delete")) {
      throw invalid(node, "the WHEN condition cannot read NEW, because DELETE has no new row");
    }
    const readsGenerated =
      ref.table === undefined || ref.star === true ? generated.size > 0 : generated.has(ref.name);
    if (row === "new" && timing === "before" && readsGenerated) {
      throw invalid(
        node,
        "the WHEN condition of a BEFORE trigger cannot read generated columns of NEW, because " +
          "they are computed later",
      );
    }
  }
  bindTriggerCondition(when, table);
  return expressionToSql(when);
}

function requireFreeName(table: TableEntry, { _location, name }: Name): void {
  const position = _location.start;
  checkObjectName("trigger", name, { position });
  if (table.triggers?.some((each) => each.name === name) !== true) return;
  throw new DatabaseError(
    "ALREADY_EXISTS",
    `Cannot use "${name}" as the name of a trigger on ${nameOf(table)}: the table already has ` +
      "a trigger with this name",
    { position, hint: "CREATE OR REPLACE TRIGGER replaces it" },
  );
}

/**
 * Returns a table with triggers enabled or disabled.
 * @throws {DatabaseError}
 */
export function withTriggerSwitch(
  table: TableEntry,
  { trigger: named, type }: TableAlterationTriggers,
): TableEntry {
  const chosen = named === undefined ? undefined : triggerNamed(table, named);
  const { triggers = [] } = table;
  const switched = triggers.map((each): TriggerEntry => {
    if (chosen !== undefined && each !== chosen) return each;
    if ((each.isDisabled === true) === (type === "disable trigger")) return each;
    if (type === "disable trigger") return { ...each, isDisabled: true };
    const { isDisabled: _, ...enabled } = each;
    return enabled;
  });
  return switched.every((each, i) => each === triggers[i]) ? table : withTriggers(table, switched);
}

/** Returns triggers with the new name of a column in their conditions. */
export function triggersRenamed(
  triggers: readonly TriggerEntry[],
  from: string,
  to: string,
): readonly TriggerEntry[] {
  return triggers.map((each) =>
    each.whenSql === undefined
      ? each
      : { ...each, whenSql: renamedInCondition(each.whenSql, from, to) },
  );
}
