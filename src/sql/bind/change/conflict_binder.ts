/**
 * ON CONFLICT: its target is the primary key, its actions see the stored and the proposed row.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { keyNameOf, type TableEntry } from "../../../catalog/mod.ts";
import type { OnConflictAction } from "../../parse/ast/ast.ts";
import type { Place } from "../binding.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { bindCondition } from "../expression/expression_binder.ts";
import { queriesAround } from "../query/select_world.ts";
import { Scope } from "../scope.ts";
import { type BoundSet, bindSets, type DmlWorld, nameOf, type Target } from "./dml_target.ts";

export interface BoundConflict {
  readonly action: "nothing" | "update";
  /** Columns of the stored row, then of the proposed one (`excluded`). */
  readonly columns: readonly BoundColumn[];
  readonly sets: readonly BoundSet[];
  readonly where: BoundExpression | undefined;
}

export function bindConflict(
  action: OnConflictAction,
  target: Target,
  world: DmlWorld,
): BoundConflict {
  const { statement } = world;
  const { table } = target;
  checkConflictTarget(action, table);
  if (action.do === "do nothing") {
    return { action: "nothing", columns: [], sets: [], where: undefined };
  }
  if (action.on === undefined) {
    throw new DatabaseError(
      "INVALID_QUERY",
      "Cannot run ON CONFLICT DO UPDATE: it must name the primary key columns",
      { position: action._location.start },
    );
  }
  const excluded = table.columns.map(({ columnId, name, type }) =>
    statement.newColumn({ name, type, origin: { table, columnId } }),
  );
  const proposed = {
    alias: "excluded",
    namespace: undefined,
    columns: excluded,
    systemColumns: [],
  };
  // Either row may be meant by a name alone, as in PostgreSQL: it is ambiguous.
  const { relations, visible } = target.from.scope;
  const scope = new Scope([...relations, proposed], [...visible, ...excluded]);
  const place: Place = {
    statement,
    scope,
    clause: "ON CONFLICT",
    sink: undefined,
    allowsFiles: true,
    ...queriesAround(world),
  };
  return {
    action: "update",
    columns: [...target.columns, ...excluded],
    sets: bindSets(action.do.sets, table, place),
    where: action.where === undefined ? undefined : bindCondition(action.where, place),
  };
}

function checkConflictTarget({ on, _location }: OnConflictAction, table: TableEntry): void {
  if (on === undefined) return;
  const keyNames = table.primaryKey.map(
    (columnId) => table.columns.find((column) => column.columnId === columnId)?.name ?? "",
  );
  if (on.type === "on constraint") {
    const { name } = on.constraint;
    if (name === keyNameOf(table)) return;
    const isCheck = table.checks.some((check) => check.name === name);
    throw new DatabaseError(
      isCheck ? "INVALID_QUERY" : "OBJECT_NOT_FOUND",
      `Cannot ${isCheck ? "use" : "find"} constraint "${name}": the key of ${nameOf(table)} is ${keyNameOf(table)}`,
      { position: on._location.start },
    );
  }
  const named = on.exprs.map(({ name }) => name);
  const isKey = named.length === keyNames.length && keyNames.every((name) => named.includes(name));
  if (isKey) return;
  throw new DatabaseError(
    "INVALID_QUERY",
    `Cannot use ON CONFLICT (${named.join(", ")}): the target must be the primary key (${keyNames.join(", ")})`,
    { position: _location.start },
  );
}
