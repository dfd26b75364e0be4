/**
 * Binds MERGE as one query over the source and the target:
 *
 *     source LEFT JOIN target ON condition      an inner join if no clause inserts
 *       └► each row with the number of its clause, which is chosen once
 *            └► the columns of the target row, and the values that the clause of the row writes
 *
 * A clause's values are computed only for the rows to which the clause applies, because they may
 * fail for other rows.
 */
import { defined } from "../../../base/assert.ts";
import { DatabaseError } from "../../../base/errors.ts";
import { runToCompletion } from "../../../base/steps.ts";
import { shownColumnsOf, type TableEntry } from "../../../catalog/mod.ts";
import { BOOLEAN, INT, TEXT } from "../../../types/mod.ts";
import type { Expr, MergeClause, MergeInsert, MergeStatement } from "../../parse/ast/ast.ts";
import type { ExpressionContext } from "../binding.ts";
import type { BoundFrom, BoundOutput, BoundSelect } from "../bound.ts";
import type { BoundColumn, BoundExpression } from "../bound_expressions.ts";
import { columnOutput, columnValue, plainSelect, selectFrom } from "../bound_nodes.ts";
import { binaryOf } from "../expression/binary_forms.ts";
import { bindCondition } from "../expression/expression_binder.ts";
import { bindFrom } from "../query/from_binder.ts";
import { type FromResult, product } from "../query/join_binder.ts";
import { Scope, type ScopeRelation } from "../scope.ts";
import { mapChildren } from "../walk.ts";
import { requireNoDefault } from "./assigned_parts.ts";
import {
  assignedColumns,
  type BoundCell,
  type BoundSet,
  bindAssigned,
  bindCell,
  bindSets,
  bindTarget,
  checkTwice,
  type DmlDeps,
  nameOf,
  notUpdatable,
  placeIn,
  positionOf,
  type Target,
} from "./dml_target.ts";
import { type GivenCell, joinedParts } from "./inserted_parts.ts";
import { type BoundReturning, bindReturning } from "./returning_binder.ts";
import { type BoundGuard, bindGuard } from "./row_guard.ts";
import { liveOnly, seqColumnOf } from "./update_binder.ts";

/** A column that a WHEN clause writes. */
export interface MergedCell {
  /** The position of the column in the table. */
  readonly position: number;
  /** The index of the assigned value among the values of all clauses; undefined for DEFAULT. */
  readonly value: number | undefined;
}

export interface BoundMergeClause {
  readonly action: "nothing" | "delete" | "update" | "insert";
  readonly cells: readonly MergedCell[];
}

export interface BoundMerge {
  readonly kind: "merge";
  readonly table: TableEntry;
  /**
   * Yields the declared columns and `_seq` of the target row, the index of the WHEN clause that
   * applies, the values of all clauses, and the columns carried for RETURNING. If there is no
   * target row, the target columns are NULL.
   */
  readonly rows: BoundSelect;
  readonly clauses: readonly BoundMergeClause[];
  readonly valueCount: number;
  readonly guard: BoundGuard | undefined;
  readonly returning: BoundReturning | undefined;
  /**
   * Whether the last column carried for RETURNING is the name of the MERGE action. `rows` does not
   * yield that column.
   */
  readonly carriesAction: boolean;
}

export function bindMerge(merge: MergeStatement, deps: DmlDeps): BoundMerge {
  const target = bindTarget(merge.into, { commands: ["select"] }, deps);
  if (target.view !== undefined) {
    throw new DatabaseError(
      "READ_ONLY_OBJECT",
      `Cannot run MERGE on view ${target.view.relation.name}: MERGE can write only to tables`,
      { position: merge.into._location.start, hint: "merge into the table that the view reads" },
    );
  }
  const { table } = target;
  if (table.kind === "stream") throw notUpdatable(table, "MERGE", merge);
  requireReachable(merge.clauses);
  const chosen = bindChoice(merge, target, deps);
  const values: BoundExpression[] = [];
  const clauses = merge.clauses.map((clause, index): BoundMergeClause => {
    const cells = bindAction(clause, chosen, deps).map(({ position, value }): MergedCell => {
      if (value === "default") return { position, value: undefined };
      values.push(whenChosen(value, index, { choice: chosen.choice, node: merge.on }));
      return { position, value: values.length - 1 };
    });
    return { action: clause.action.type, cells };
  });
  const action = deps.statement.newColumn({ name: "merge_action", type: TEXT });
  const returning = bindReturning(merge.returning, {
    target: chosen.target,
    from: returnedFrom(chosen),
    deps,
    mergeAction: action,
  });
  const carried = returning?.carried ?? [];
  const { target: read } = chosen;
  const extra = [
    columnValue(seqColumnOf(read)),
    columnValue(chosen.choice),
    ...values,
    ...carried.filter((column) => column !== action).map(columnValue),
  ];
  const declared = read.columns.slice(0, table.columns.length).map(columnOutput);
  const outputs = [...declared, ...extra.map((expression) => ({ name: "", expression }))];
  return {
    kind: "merge",
    table,
    rows: { ...chosen.rows, outputs },
    clauses,
    valueCount: values.length,
    guard: guardOf(merge, table, deps),
    returning,
    carriesAction: carried.includes(action),
  };
}

function guardOf(
  { clauses, into, returning }: MergeStatement,
  table: TableEntry,
  deps: DmlDeps,
): BoundGuard | undefined {
  const does = (action: MergeClause["action"]["type"]): boolean =>
    clauses.some((clause) => clause.action.type === action);
  const updates = does("update");
  return bindGuard(
    {
      table,
      node: into,
      inserts: does("insert"),
      updates,
      replaces: updates,
      removes: does("delete"),
      returns: returning !== undefined,
    },
    deps,
  );
}

/**
 * Refuses a WHEN clause that can never apply because an earlier clause has no condition.
 * @throws {DatabaseError}
 */
function requireReachable(clauses: readonly MergeClause[]): void {
  for (const [index, { isMatched, _location }] of clauses.entries()) {
    const isHidden = clauses
      .slice(0, index)
      .some((other) => other.isMatched === isMatched && other.condition === undefined);
    if (!isHidden) continue;
    const what = isMatched ? "WHEN MATCHED" : "WHEN NOT MATCHED";
    throw new DatabaseError(
      "INVALID_SQL",
      `Cannot run MERGE: this ${what} clause can never apply, because an earlier clause ` +
        "without a condition handles the same rows",
      { position: _location.start, hint: "move the clause without a condition to the end" },
    );
  }
}

/** The joined rows of source and target, each with the WHEN clause that applies to it. */
interface Chosen {
  readonly rows: BoundSelect;
  readonly target: Target;
  readonly source: Scope;
  /** The index of the WHEN clause that applies to a row; NULL if none applies. */
  readonly choice: BoundColumn;
}

function bindChoice(merge: MergeStatement, target: Target, deps: DmlDeps): Chosen {
  const { statement } = deps;
  const source = runToCompletion(bindFrom(merge.source, deps));
  const both = product(target.from, source);
  const on = liveOnly(
    bindCondition(merge.on, placeIn(both, { clause: "ON", deps })),
    target.columns,
  );
  const inserts = merge.clauses.some(({ action }) => action.type === "insert");
  const from: BoundFrom = {
    kind: "join",
    join: inserts ? "left" : "inner",
    left: source.from,
    right: target.from.from,
    condition: on,
  };
  const isMatched = matchOf(target);
  const branches = merge.clauses.map((clause, index) => {
    const scope = clause.isMatched ? both : source;
    const met = clause.isMatched ? isMatched : negated(isMatched);
    const { condition } = clause;
    const operands =
      condition === undefined
        ? [met]
        : [met, bindCondition(condition, placeIn(scope, { clause: "WHEN", deps }))];
    const when: BoundExpression = { kind: "and", type: BOOLEAN, operands };
    return { when, value: integer(index) };
  });
  const choosing: BoundExpression = { kind: "case", type: INT, branches, otherwise: undefined };
  const renewed = new Map<BoundColumn, BoundColumn>();
  const outputs: BoundOutput[] = [];
  for (const { columns, systemColumns } of both.scope.relations) {
    for (const column of [...columns, ...systemColumns]) {
      if (renewed.has(column)) continue;
      const { name, origin, type } = column;
      renewed.set(column, statement.newColumn({ name, type, origin }));
      outputs.push(columnOutput(column));
    }
  }
  const choice = statement.newColumn({ name: "", type: INT });
  outputs.push({ name: "", expression: choosing });
  const columns = [...renewed.values(), choice];
  const query = plainSelect({ from, outputs });
  const again = (column: BoundColumn): BoundColumn =>
    defined(
      renewed.get(column),
      "MERGE binder: column of the source is missing from the derived query",
    );
  const rows = selectFrom({ kind: "query", query, alias: "", columns }, []);
  return {
    rows,
    choice,
    source: renewedScope(source.scope, again),
    target: {
      ...target,
      columns: target.columns.map(again),
      from: {
        from: defined(rows.from, "MERGE binder: source query has no FROM clause"),
        scope: renewedScope(target.from.scope, again),
      },
    },
  };
}

function overColumns(
  expression: BoundExpression,
  again: (column: BoundColumn) => BoundColumn,
): BoundExpression {
  if (expression.kind === "column") return columnValue(again(expression.column));
  return mapChildren(expression, (child) => overColumns(child, again));
}

/**
 * Returns a copy of the scope in which the corresponding columns of the enclosing query replace
 * the original columns.
 */
function renewedScope(
  { relations, visible }: Scope,
  again: (column: BoundColumn) => BoundColumn,
): Scope {
  const made = relations.map(
    ({ alias, columns, namespace, systemColumns, tableOid }): ScopeRelation => ({
      alias,
      namespace,
      columns: columns.map(again),
      systemColumns: systemColumns.map(again),
      tableOid: tableOid && (() => overColumns(tableOid(), again)),
    }),
  );
  return new Scope(made, visible.map(again));
}

/**
 * Returns a condition that tests whether the target has a matching row. It tests a primary key
 * column, which is NULL only if there is no matching row.
 */
function matchOf({ columns, table }: Target): BoundExpression {
  const [keyId] = table.primaryKey;
  const key = columns.find(({ origin }) => origin?.columnId === keyId);
  const operand = columnValue(defined(key, "MERGE binder: target table has no primary key"));
  return { kind: "is", type: BOOLEAN, test: "null", negated: true, operand };
}

function negated(operand: BoundExpression): BoundExpression {
  return { kind: "not", type: BOOLEAN, operand };
}

function integer(value: number): BoundExpression {
  return { kind: "constant", type: INT, value };
}

/**
 * Returns an expression that computes a value only for rows to which the value's WHEN clause
 * applies.
 */
function whenChosen(
  value: BoundExpression,
  index: number,
  { choice, node }: { readonly choice: BoundColumn; readonly node: Expr },
): BoundExpression {
  const { type } = value;
  const when = binaryOf({ op: "=", left: columnValue(choice), right: integer(index) }, node);
  return { kind: "case", type, branches: [{ when, value }], otherwise: undefined };
}

/**
 * Returns the changes that a WHEN clause makes. Columns that the clause leaves at their defaults
 * are omitted.
 */
function bindAction(
  { action }: MergeClause,
  { source, target }: Chosen,
  deps: DmlDeps,
): readonly BoundSet[] {
  const { from, table } = target;
  switch (action.type) {
    case "nothing":
    case "delete":
      return [];
    case "update": {
      const scope = besideTarget(from.scope, source);
      const place = placeIn({ from: from.from, scope }, { clause: "SET", deps });
      return bindSets(action.sets, target, { ...place, allowsFiles: false });
    }
    case "insert": {
      const place = placeIn({ from: from.from, scope: source }, { clause: "VALUES", deps });
      return bindInserted(action, table, place);
    }
  }
}

function besideTarget(target: Scope, source: Scope): Scope {
  return new Scope(
    [...target.relations, ...source.relations],
    [...target.visible, ...source.visible],
  );
}

function bindInserted(
  { columns, overriding, values, _location }: MergeInsert,
  table: TableEntry,
  context: ExpressionContext,
): readonly BoundSet[] {
  checkTwice(columns === undefined ? [] : assignedColumns(columns));
  const positions =
    columns?.map((name) => positionOf(table, name)) ??
    shownColumnsOf(table)
      .slice(0, values.length)
      .map((_, position) => position);
  if (positions.length !== values.length) {
    const more = values.length > positions.length ? "more" : "fewer";
    throw new DatabaseError(
      "INVALID_QUERY",
      `Cannot insert into ${nameOf(table)}: there are ${more} values (${values.length}) than columns (${positions.length})`,
      { position: _location.start, hint: "write one value per column" },
    );
  }
  const given = positions.map((position, i): GivenCell<BoundCell> => {
    const cell = defined(values[i], "MERGE binder: INSERT has fewer values than columns");
    const column = columns?.[i];
    if (column !== undefined) requireNoDefault(column, cell);
    const whole = (): BoundCell => insertedCell(cell, { context, overriding, position, table });
    return { column, position, whole, valueAs: (to) => bindAssigned(cell, to, context) };
  });
  const cells = joinedParts(given, table, context);
  return [...new Set(positions)].map((position, i): BoundSet => {
    return { position, value: defined(cells[i], "MERGE binder: assigned column has no value") };
  });
}

function insertedCell(
  cell: Expr,
  {
    context,
    overriding,
    position,
    table,
  }: {
    readonly context: ExpressionContext;
    readonly overriding: MergeInsert["overriding"];
    readonly position: number;
    readonly table: TableEntry;
  },
): BoundCell {
  const column = table.columns[position];
  if (overriding === "user" && column?.identity !== undefined) return "default";
  const isAllowed = overriding === "system" && column?.generatedSql === undefined;
  return bindCell(cell, { table, position, context, isAllowed });
}

/**
 * RETURNING * lists the source columns before the target columns, although the scope begins with
 * the target.
 */
function returnedFrom({ source, target }: Chosen): FromResult {
  const { from, scope } = target.from;
  const relations = [...scope.relations, ...source.relations];
  return { from, scope: new Scope(relations, [...source.visible, ...scope.visible]) };
}
