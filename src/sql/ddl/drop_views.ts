/**
 * Executes DROP VIEW and DROP FUNCTION. With CASCADE, they may also drop the tables of
 * materialized views.
 */
import { DatabaseError } from "../../base/errors.ts";
import type { FunctionEntry, TableEntry, ViewEntry } from "../../catalog/mod.ts";
import { findFunction, functionsMeant, shownName } from "../names/functions.ts";
import type { DropFunctionStatement, DropViewStatement } from "../parse/ast/ast.ts";
import { type DroppedObjects, dropAll, withDependents } from "./drop_table.ts";
import { droppedMessage } from "./dropped_message.ts";
import { functionPlace } from "./function_definitions.ts";
import type { BoundDefinition } from "./namespace_definitions.ts";
import type { TableCall, TableDeps } from "./table_statement.ts";
import { viewNamed } from "./view_definitions.ts";

/**
 * Binds DROP VIEW against the current catalog.
 *
 * @throws {DatabaseError} TABLE_NOT_FOUND, DEPENDENT_OBJECTS, …
 */
export function dropViews(
  node: DropViewStatement,
  call: TableCall,
  deps: TableDeps,
): BoundDefinition {
  const dropped = (): DroppedObjects => viewsDropped(node, call, deps);
  dropped();
  return () => dropAll(dropped, call.ledger, deps);
}

function viewsDropped(
  node: DropViewStatement,
  { namespace, principal }: TableCall,
  { catalog, systemViews }: TableDeps,
): DroppedObjects {
  const { ifExists } = node;
  const entries = new Map<number, ViewEntry>();
  const missing: string[] = [];
  for (const name of node.names) {
    systemViews.refuse(name, { namespace, principal, action: "drop", ifExists });
    const entry = viewNamed(catalog, name, { namespace, action: "drop", ifExists });
    if (entry === undefined) missing.push(`${name.schema ?? namespace}.${name.name}`);
    else entries.set(entry.viewId, entry);
  }
  const dropped = [...entries.values()].map((each) => `${each.namespace}.${each.name}`);
  const statement = {
    action: `drop view ${dropped.join(", ")}`,
    position: node._location.start,
    isCascading: node.cascade === "cascade",
    principal,
  };
  const named = { tables: new Map<number, TableEntry>(), entries: [...entries.values()] };
  const message = droppedMessage("view", { dropped, missing });
  return { ...withDependents(named, statement, catalog), message };
}

/**
 * Binds DROP FUNCTION against the current catalog.
 * @throws {DatabaseError} FUNCTION_NOT_FOUND, DEPENDENT_OBJECTS, …
 */
export function dropFunctions(
  node: DropFunctionStatement,
  call: TableCall,
  deps: TableDeps,
): BoundDefinition {
  const dropped = (): DroppedObjects => functionsDropped(node, call, deps);
  dropped();
  return () => dropAll(dropped, call.ledger, deps);
}

function functionsDropped(
  node: DropFunctionStatement,
  call: TableCall,
  deps: TableDeps,
): DroppedObjects {
  const place = functionPlace(call, deps);
  const entries = new Map<number, FunctionEntry>();
  const missing: string[] = [];
  for (const name of node.names) {
    if (node.ifExists === true && functionsMeant(name, place).length === 0) {
      missing.push(shownName(name, call.namespace));
      continue;
    }
    const entry = findFunction(name, place);
    if (name.kind === "function" && entry.routine.aggregate !== undefined) {
      throw new DatabaseError(
        "INVALID_OPERATION",
        `Cannot drop ${entry.namespace}.${entry.name} with DROP FUNCTION: it is an aggregate`,
        { position: name._location.start, hint: "use DROP AGGREGATE", sqlstate: "42809" },
      );
    }
    entries.set(entry.viewId, entry);
  }
  const dropped = [...entries.values()].map((each) => `${each.namespace}.${each.name}`);
  const statement = {
    action: `drop function ${dropped.join(", ")}`,
    position: node._location.start,
    isCascading: node.cascade === "cascade",
    principal: call.principal,
  };
  const named = { tables: new Map<number, TableEntry>(), entries: [...entries.values()] };
  const message = droppedMessage("function", { dropped, missing });
  return { ...withDependents(named, statement, deps.catalog), message };
}
