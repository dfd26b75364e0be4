/**
 * Statements that read or write rows, bound and compiled once for the plan cache.
 *
 * A prepared statement does not depend on the caller: rights are checked at every run, and the
 * owner of the rows comes from the principal of the run.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { runToCompletion } from "../../base/steps.ts";
import type { Catalog, TableEntry } from "../../catalog/mod.ts";
import type { SchemaField } from "../../protocol/mod.ts";
import type { DataType } from "../../types/mod.ts";
import { type StatementBinding } from "../bind/binding.ts";
import type { BoundOutput, BoundSelect, Requirement } from "../bind/bound.ts";
import type { LiteralRead } from "../bind/bound_expressions.ts";
import type { DmlDeps } from "../bind/change/dml_target.ts";
import { type BoundChange, bindStatement } from "../bind/change/statement_binder.ts";
import { bindLongValues } from "../bind/query/long_values.ts";
import type { StoredNumber } from "../bind/stored_numbers.ts";
import { buildPlan } from "../execute/build/build.ts";
import { buildRowRead, type RowRead } from "../execute/build/build_scan.ts";
import {
  type CompiledChange,
  compileDelete,
  compileInsert,
  compileUpdate,
} from "../execute/change/dml.ts";
import type { Evaluation } from "../execute/change/evaluation.ts";
import type { OperatorFactory } from "../execute/context/operator.ts";
import type { QueryStatement } from "../parse/ast/ast.ts";
import { planDelete, planInsert, planUpdate } from "../plan/dml_plan.ts";
import type { QueryPlan } from "../plan/outputs.ts";
import type { PlanNode } from "../plan/plan.ts";
import { nodesOf } from "../plan/plan_walk.ts";
import { planSelect } from "../plan/planner.ts";
import { CellRows, fieldsOf } from "../result/result.ts";
import { authorize } from "../rights/requirements.ts";

/** A statement is planned again when a table has grown by this factor and a margin. */
const GROWTH = 8;
const ROWS_KEPT = 1000;

interface PreparedBase {
  readonly requirements: readonly Requirement[];
  /** The literals to read before the statement runs. */
  readonly literals: readonly LiteralRead[];
  /** The names of FILE('x') placeholders, in slot order. */
  readonly files: readonly string[];
  /** The fields of returned rows; undefined if none are returned. */
  readonly fields: readonly SchemaField[] | undefined;
  /** Converts returned rows to wire cells. */
  readonly cells: CellRows;
  /** The plan of the rows that it reads; absent for plain values. */
  readonly plan: PlanNode | undefined;
  readonly build: OperatorFactory | undefined;
  /** The number of columns in the rows that it reads. Further columns serve only the plan. */
  readonly columnCount: number;
  /** The evaluations of a change that contain queries. */
  readonly evaluations: readonly Evaluation[];
}

export interface PreparedQuery extends PreparedBase {
  readonly kind: "query";
  readonly build: OperatorFactory;
  /** A fast path to the same answer, if the query has one. */
  readonly readRow: RowRead | undefined;
  readonly plan: PlanNode;
  /** Whether a table has grown so much that another join order may be better. */
  readonly isOutgrown: () => boolean;
}

export interface PreparedDml extends PreparedBase, CompiledChange {
  readonly kind: "insert" | "update" | "delete";
  readonly target: TableEntry;
  /** The positions of the columns that it sets in existing rows. */
  readonly setPositions: readonly number[];
  /** Numbers that the statement stores in timestamp columns. */
  readonly storedNumbers: readonly StoredNumber[];
}

export type Prepared = PreparedQuery | PreparedDml;

/** Binds, plans and compiles a statement in small steps. @throws {DatabaseError} */
export function* prepareInSteps(
  node: QueryStatement,
  { deps, statement }: { deps: DmlDeps; statement: StatementBinding },
): Generator<void, Prepared> {
  yield* bindLongValues(node, statement);
  const bound = yield* bindStatement(node, deps);
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

/** Binds, plans and compiles a statement in this tick. @throws {DatabaseError} */
export function prepare(
  node: QueryStatement,
  parts: { deps: DmlDeps; statement: StatementBinding },
): Prepared {
  return runToCompletion(prepareInSteps(node, parts));
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
    evaluations: [],
    isOutgrown: outgrowthOf(plan.root),
    requirements: statement.requirements,
    literals: statement.literals,
    files: [],
    fields,
    cells: new CellRows(typesOf(select.outputs)),
  };
}

/** Only a plan with a join depends on the number of rows. */
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

/** The plan that reads the rows for a change. */
type ReadingPlan = Pick<PreparedDml, "build" | "columnCount" | "plan">;

function rowsOf(query: QueryPlan): ReadingPlan & { readonly build: OperatorFactory };
function rowsOf(query: QueryPlan | undefined): ReadingPlan;
function rowsOf(query: QueryPlan | undefined): ReadingPlan {
  if (query === undefined) return { plan: undefined, build: undefined, columnCount: 0 };
  return { plan: query.root, build: buildPlan(query.root), columnCount: query.outputCount };
}

function dml(
  compiled: CompiledChange,
  {
    bound,
    rows,
    statement,
  }: { bound: BoundChange; rows: ReadingPlan; statement: StatementBinding },
): PreparedDml {
  const { kind } = bound;
  statement.requireNoSleep(kind.toUpperCase());
  const outputs = bound.returning?.outputs;
  return {
    kind,
    ...compiled,
    target: bound.table,
    setPositions: setsOf(bound).map(({ position }) => position),
    storedNumbers: statement.storedNumbers,
    ...rows,
    requirements: statement.requirements,
    literals: statement.literals,
    files: statement.files,
    fields: outputs === undefined ? undefined : fieldsOf(outputs),
    cells: new CellRows(typesOf(outputs ?? [])),
  };
}

/** Returns what a change sets in existing rows. */
function setsOf(bound: BoundChange): readonly { readonly position: number }[] {
  switch (bound.kind) {
    case "insert":
      return bound.conflict?.sets ?? [];
    case "update":
      return bound.sets;
    case "delete":
      return [];
  }
}

function typesOf(outputs: readonly BoundOutput[]): DataType[] {
  return outputs.map(({ expression }) => expression.type);
}

/** The caller for whom a statement is bound. */
export interface Binder {
  readonly statement: StatementBinding;
  readonly principal: Principal;
  readonly catalog: Catalog;
}

/**
 * Binds a statement for a caller. Errors in the columns of a table that the caller may not read or
 * write are hidden, as are the columns themselves.
 *
 * @throws {DatabaseError} PERMISSION_DENIED, and the errors of `bind`.
 */
export function boundFor<Bound>(binder: Binder, bind: () => Bound): Bound {
  try {
    return bind();
  } catch (error) {
    throw toldTo(binder, error);
  }
}

/** Binds as {@linkcode boundFor} does, in small steps. @throws {DatabaseError} */
export function* boundInSteps(
  binder: Binder,
  steps: Generator<void, Prepared>,
): Generator<void, Prepared> {
  try {
    return yield* steps;
  } catch (error) {
    throw toldTo(binder, error);
  }
}

/** Returns the error that the caller may see. @throws {DatabaseError} PERMISSION_DENIED */
function toldTo({ catalog, principal, statement }: Binder, error: unknown): unknown {
  if (error instanceof DatabaseError) authorize(statement.requirements, principal, catalog);
  return error;
}
