/**
 * Statements that read or write rows, bound and compiled once: what the plan cache holds.
 *
 * A prepared statement names no caller: rights are asked at every run, the owner of the rows comes
 * from the principal of the run.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { inOneTurn } from "../../base/steps.ts";
import type { Catalog, TableEntry } from "../../catalog/mod.ts";
import type { SchemaField } from "../../protocol/mod.ts";
import type { DataType } from "../../types/mod.ts";
import { type StatementBinding } from "../bind/binding.ts";
import type { BoundOutput, BoundSelect, Requirement } from "../bind/bound.ts";
import type { LiteralRead } from "../bind/bound_expressions.ts";
import type { DmlWorld } from "../bind/change/dml_target.ts";
import { type BoundChange, bindStatement } from "../bind/change/statement_binder.ts";
import { bindLongValues } from "../bind/query/long_values.ts";
import type { StoredNumber } from "../bind/stored_numbers.ts";
import { authorize } from "../common/requirements.ts";
import { CellRows, fieldsOf } from "../common/result.ts";
import { buildPlan } from "../execute/build/build.ts";
import { buildRowRead, type RowRead } from "../execute/build/build_scan.ts";
import type { DmlProgram } from "../execute/change/change_writer.ts";
import { compileDelete, compileInsert, compileUpdate } from "../execute/change/dml.ts";
import type { OperatorFactory } from "../execute/run/operator.ts";
import type { QueryStatement } from "../parse/ast/ast.ts";
import { planDelete, planInsert, planUpdate } from "../plan/dml_plan.ts";
import type { QueryPlan } from "../plan/outputs.ts";
import type { PlanNode } from "../plan/plan.ts";
import { nodesOf } from "../plan/plan_walk.ts";
import { planSelect } from "../plan/planner.ts";

/** A plan is made anew when a table has this many times its rows, and some more. */
const GROWTH = 8;
const ROWS_KEPT = 1000;

interface PreparedBase {
  readonly requirements: readonly Requirement[];
  /** To be read before it runs. */
  readonly literals: readonly LiteralRead[];
  /** Names of FILE('x') placeholders, in slot order. */
  readonly files: readonly string[];
  /** Of rows that come back; undefined when none do. */
  readonly fields: readonly SchemaField[] | undefined;
  /** Makes wire cells of the rows that come back. */
  readonly cells: CellRows;
  /** The plan of the rows that it reads; none for plain values. */
  readonly plan: PlanNode | undefined;
  readonly build: OperatorFactory | undefined;
  /** How many columns these rows have; further ones serve the plan alone. */
  readonly columnCount: number;
}

export interface PreparedQuery extends PreparedBase {
  readonly kind: "query";
  readonly build: OperatorFactory;
  /** The shorter way to the same answer, for a query that has one. */
  readonly readRow: RowRead | undefined;
  readonly plan: PlanNode;
  /** Whether a table has grown so much that another order of joins may be the better one. */
  readonly isOutgrown: () => boolean;
}

export interface PreparedDml extends PreparedBase {
  readonly kind: "insert" | "update" | "delete";
  readonly program: DmlProgram;
  readonly target: TableEntry;
  /** Numbers that the statement stores in timestamp columns. */
  readonly storedNumbers: readonly StoredNumber[];
}

export type Prepared = PreparedQuery | PreparedDml;

/** Binds, plans and compiles a statement in small steps. @throws {DatabaseError} */
export function* prepareInSteps(
  node: QueryStatement,
  { world, statement }: { world: DmlWorld; statement: StatementBinding },
): Generator<void, Prepared> {
  yield* bindLongValues(node, statement);
  const bound = yield* bindStatement(node, world);
  switch (bound.kind) {
    case "insert": {
      const plan = planInsert(bound);
      const rows = rowsOf(plan.source.kind === "query" ? plan.source.query : undefined);
      return dml(compileInsert(plan, rows.build), { bound, rows, statement });
    }
    case "update": {
      const plan = planUpdate(bound);
      const rows = rowsOf(plan.rows);
      return dml(compileUpdate(plan, rows.build), { bound, rows, statement });
    }
    case "delete": {
      const plan = planDelete(bound);
      const rows = rowsOf(plan.rows);
      return dml(compileDelete(plan, rows.build), { bound, rows, statement });
    }
    case "query":
      yield;
      return yield* preparedQuery(bound.select, statement);
  }
}

/** The same in this turn. @throws {DatabaseError} */
export function prepare(
  node: QueryStatement,
  parts: { world: DmlWorld; statement: StatementBinding },
): Prepared {
  return inOneTurn(prepareInSteps(node, parts));
}

function* preparedQuery(
  select: BoundSelect,
  statement: StatementBinding,
): Generator<void, PreparedQuery> {
  const plan = planSelect(select);
  yield;
  const fields = fieldsOf(select.outputs);
  return {
    kind: "query",
    build: buildPlan(plan.root),
    readRow: buildRowRead(plan.root),
    plan: plan.root,
    columnCount: fields.length,
    isOutgrown: outgrowthOf(plan.root),
    requirements: statement.requirements,
    literals: statement.literals,
    files: [],
    fields,
    cells: new CellRows(typesOf(select.outputs)),
  };
}

/** Only a plan with a join hangs on how many rows there are. */
function outgrowthOf(root: PlanNode): () => boolean {
  const nodes = nodesOf(root);
  if (!nodes.some(({ kind }) => kind === "join")) return () => false;
  const tables = nodes.flatMap((node) =>
    node.kind === "scan"
      ? [{ count: node.rowCount, limit: ROWS_KEPT + GROWTH * node.rowCount() }]
      : [],
  );
  return () => tables.some(({ count, limit }) => count() > limit);
}

/** How the rows are read that a change is made of. */
type ReadRows = Pick<PreparedDml, "build" | "columnCount" | "plan">;

function rowsOf(query: QueryPlan): ReadRows & { readonly build: OperatorFactory };
function rowsOf(query: QueryPlan | undefined): ReadRows;
function rowsOf(query: QueryPlan | undefined): ReadRows {
  if (query === undefined) return { plan: undefined, build: undefined, columnCount: 0 };
  return { plan: query.root, build: buildPlan(query.root), columnCount: query.outputCount };
}

function dml(
  program: DmlProgram,
  { bound, rows, statement }: { bound: BoundChange; rows: ReadRows; statement: StatementBinding },
): PreparedDml {
  const { kind } = bound;
  statement.requireNoSleep(kind.toUpperCase());
  const outputs = bound.returning?.outputs;
  return {
    kind,
    program,
    target: bound.table,
    storedNumbers: statement.storedNumbers,
    ...rows,
    requirements: statement.requirements,
    literals: statement.literals,
    files: statement.files,
    fields: outputs === undefined ? undefined : fieldsOf(outputs),
    cells: new CellRows(typesOf(outputs ?? [])),
  };
}

function typesOf(outputs: readonly BoundOutput[]): DataType[] {
  return outputs.map(({ expression }) => expression.type);
}

/** For whom a statement is bound. */
export interface Binder {
  readonly statement: StatementBinding;
  readonly principal: Principal;
  readonly catalog: Catalog;
}

/**
 * Binds for a caller: what is wrong with the columns of a table that they may not read or write is
 * not told, nor what columns there are.
 *
 * @throws {DatabaseError} PERMISSION_DENIED, and what `bind` throws.
 */
export function boundFor<Bound>(binder: Binder, bind: () => Bound): Bound {
  try {
    return bind();
  } catch (error) {
    throw toldTo(binder, error);
  }
}

/** As {@linkcode boundFor}, in small steps. @throws {DatabaseError} */
export function* boundInSteps<Bound>(
  binder: Binder,
  steps: Generator<void, Bound>,
): Generator<void, Bound> {
  try {
    return yield* steps;
  } catch (error) {
    throw toldTo(binder, error);
  }
}

/** What a caller is told of a fault. @throws {DatabaseError} PERMISSION_DENIED */
function toldTo({ catalog, principal, statement }: Binder, error: unknown): unknown {
  if (error instanceof DatabaseError) authorize(statement.requirements, principal, catalog);
  return error;
}
