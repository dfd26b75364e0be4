/**
 * Binds and compiles statements that read or write rows, once for the plan cache.
 *
 * A prepared statement does not depend on the caller: rights are checked at every execution, and
 * the owner of the rows comes from the principal of the execution.
 */
import type { Principal } from "../../auth/mod.ts";
import { DatabaseError } from "../../base/errors.ts";
import { runToCompletion } from "../../base/steps.ts";
import type { Catalog } from "../../catalog/mod.ts";
import type { SchemaField } from "../../protocol/mod.ts";
import { cellMakerFor, type DataType } from "../../types/mod.ts";
import { type StatementBinding } from "../bind/binding.ts";
import type { BoundOutput, BoundSelect, CursorRow, PastRead, Requirement } from "../bind/bound.ts";
import type { LiteralRead } from "../bind/bound_expressions.ts";
import { type CursorKeys, type CursorReading, withCursorKeys } from "../bind/change/cursor_rows.ts";
import type { DmlDeps } from "../bind/change/dml_target.ts";
import {
  type BoundChange,
  type BoundStatement,
  bindStatement,
} from "../bind/change/statement_binder.ts";
import { bindLongValues } from "../bind/query/long_values.ts";
import type { StoredNumber } from "../bind/stored_numbers.ts";
import { buildPlan } from "../execute/build/build.ts";
import { buildRowRead, type RowRead } from "../execute/build/build_scan.ts";
import type { DmlProgram } from "../execute/change/change_writer.ts";
import {
  type CompiledChange,
  compileDelete,
  compileInsert,
  compileUpdate,
} from "../execute/change/dml.ts";
import type { Evaluation } from "../execute/change/evaluation.ts";
import { compileMerge } from "../execute/change/merge.ts";
import { compileParts, compileReading, type PartProgram } from "../execute/change/part_program.ts";
import type { PlannedChange } from "../execute/change/references.ts";
import type { OperatorFactory } from "../execute/context/operator.ts";
import { buildGuardedRowRead } from "../execute/subquery/guarded_row_read.ts";
import type { QueryStatement } from "../parse/ast/ast.ts";
import { planDelete, planInsert, planMerge, planUpdate } from "../plan/dml_plan.ts";
import type { QueryPlan } from "../plan/outputs.ts";
import type { PlanNode } from "../plan/plan.ts";
import { nodesOf } from "../plan/plan_walk.ts";
import { planSelect } from "../plan/planner.ts";
import { CellRows, fieldsOf } from "../result/result.ts";
import { authorize } from "../rights/requirements.ts";
import { type HoistedCall, withoutCalls } from "./hoisted_calls.ts";

/**
 * The factor by which a table has to grow, beyond a fixed margin, before a statement is planned
 * again.
 */
const GROWTH = 8;
const ROWS_KEPT = 1000;

interface PreparedBase {
  readonly requirements: readonly Requirement[];
  /**
   * The table reads of earlier states that the statement contains, in the order of their indexes.
   */
  readonly pastReads: readonly PastRead[];
  /** The literals to be converted before the statement runs. */
  readonly literals: readonly LiteralRead[];
  /** The names in placeholders of the form FILE('x'), in slot order. */
  readonly files: readonly string[];
  /** The fields of the returned rows; undefined if the statement returns no rows. */
  readonly fields: readonly SchemaField[] | undefined;
  /** Converts the returned rows to wire cells. */
  readonly cells: CellRows;
  /** The plan of the rows that the statement reads; absent if it only writes plain values. */
  readonly plan: PlanNode | undefined;
  readonly build: OperatorFactory | undefined;
  /**
   * The number of leading columns of the plan that the statement uses. Further columns are
   * internal to the plan.
   */
  readonly columnCount: number;
  /** The evaluations of a change whose expressions contain queries. */
  readonly evaluations: readonly Evaluation[];
}

export interface PreparedQuery extends PreparedBase {
  readonly kind: "query";
  /** The types of the values that the statement returns. */
  readonly types: readonly DataType[];
  readonly build: OperatorFactory;
  /** A faster way to compute the same result, if the query has one. */
  readonly readRow: RowRead | undefined;
  readonly plan: PlanNode;
  /** The keys that the rows contain after their columns, if the query is read for a cursor. */
  readonly cursorKeys: CursorKeys | undefined;
  /** The calls to programs that run before the query, in this order. */
  readonly calls: readonly HoistedCall[];
  /** Returns whether a table has grown so much that a different join order may be faster. */
  readonly isOutgrown: () => boolean;
}

type ChangeKind = BoundChange["kind"];

/** A change to rows in a WITH clause, or the main change after it. */
export interface PreparedPart extends PlannedChange {
  readonly kind: ChangeKind;
  /** The name of the WITH entry; undefined for the main query or change. */
  readonly name: string | undefined;
  readonly plan: PlanNode | undefined;
}

/**
 * The rows that one part of a statement reads. They include the rows that its evaluations read, if
 * these contain queries.
 */
export interface PartRead extends Pick<PreparedBase, "build" | "columnCount" | "evaluations"> {
  /**
   * Identifies the rows that a change in WITH returns, for the parts of the statement that read
   * them.
   */
  readonly returned: Pick<PartProgram, "recursion" | "types"> | undefined;
}

export interface PreparedDml extends PreparedBase, CompiledChange {
  /**
   * The type of the statement. If WITH changes rows, this is the type of the main query or change.
   */
  readonly kind: ChangeKind | "select";
  /**
   * The change that the statement makes. If WITH changes rows, this lists the changes in WITH,
   * followed by the main change, if there is one.
   */
  readonly changes: readonly PreparedPart[];
  /** The ids of the tables that the statement changes. */
  readonly tableIds: readonly number[];
  /** The row of a cursor that the statement changes; undefined if it names no cursor. */
  readonly currentRow: CursorRow | undefined;
  /** Whether the statement has a WITH clause that changes rows. */
  readonly isOfParts: boolean;
  /** The plan of the main query, if WITH changes rows. */
  readonly mainPlan: PlanNode | undefined;
  /**
   * The rows that the changes in WITH read, followed by the rows that the main query or change
   * reads. Empty unless WITH changes rows.
   */
  readonly reads: readonly PartRead[];
  /** The plain numbers that the statement stores in timestamp columns. */
  readonly storedNumbers: readonly StoredNumber[];
}

export type Prepared = PreparedQuery | PreparedDml;

/** Binds, plans and compiles a statement in small steps. @throws {DatabaseError} */
export function* prepareInSteps(
  node: QueryStatement,
  {
    cursor,
    deps,
    statement,
  }: {
    readonly deps: DmlDeps;
    readonly statement: StatementBinding;
    /** How a cursor reads the rows of the query; absent if no cursor does. */
    readonly cursor?: CursorReading | undefined;
  },
): Generator<void, Prepared> {
  yield* bindLongValues(node, statement);
  const bound = yield* bindStatement(node, deps);
  switch (bound.kind) {
    case "parts":
      return yield* preparedParts(bound, statement);
    case "query":
      yield;
      return yield* preparedQuery(bound.select, statement, cursor);
    default: {
      const made = compiledChange(bound);
      return dml(made.compiled, { bound, made, statement });
    }
  }
}

/** A change to rows that has been planned and compiled. */
interface MadeChange {
  readonly compiled: CompiledChange;
  readonly rows: ReadingPlan;
}

function compiledChange(bound: BoundChange): MadeChange {
  switch (bound.kind) {
    case "insert": {
      const plan = planInsert(bound);
      const rows = rowsOf(plan.source.kind === "query" ? plan.source.query : undefined);
      return { compiled: compileInsert(plan, rows.build), rows };
    }
    case "update": {
      const plan = planUpdate(bound);
      const rows = rowsOf(plan.rows);
      return { compiled: compileUpdate(plan, rows.build), rows };
    }
    case "delete": {
      const plan = planDelete(bound);
      const rows = rowsOf(plan.rows);
      return { compiled: compileDelete(plan, rows.build), rows };
    }
    case "merge": {
      const plan = planMerge(bound);
      const rows = rowsOf(plan.rows);
      return { compiled: compileMerge(plan, rows.build), rows };
    }
  }
}

/** Prepares a statement whose WITH changes rows. */
function* preparedParts(
  { main, parts }: Extract<BoundStatement, { kind: "parts" }>,
  statement: StatementBinding,
): Generator<void, PreparedDml> {
  const changes: PreparedPart[] = [];
  const programs: PartProgram[] = [];
  const reads: PartRead[] = [];
  for (const { change, recursion } of parts) {
    yield;
    const { compiled, rows } = compiledChange(change);
    changes.push(partOf(change, { name: recursion.name, rows }));
    const returned = { recursion, types: typesOf(change.returning?.outputs ?? []) };
    programs.push({ ...returned, program: compiled.program });
    reads.push({ ...rows, evaluations: compiled.evaluations, returned });
  }
  yield;
  if (main.kind === "query") {
    const { root } = planSelect(main.select);
    const { outputs } = main.select;
    const build = buildPlan(root);
    const program = compileReading(build, typesOf(outputs));
    reads.push({ build, columnCount: outputs.length, evaluations: [], returned: undefined });
    const parted = { kind: "select", changes, reads, outputs, mainPlan: root } as const;
    return partedDml(compileParts(programs, program), parted, statement);
  }
  const made = compiledChange(main);
  changes.push(partOf(main, { name: undefined, rows: made.rows }));
  const { evaluations } = made.compiled;
  reads.push({ ...made.rows, evaluations, returned: undefined });
  const outputs = main.returning?.outputs;
  const parted = { kind: main.kind, changes, reads, outputs, mainPlan: undefined };
  return partedDml(compileParts(programs, made.compiled.program), parted, statement);
}

interface PartedChange {
  readonly kind: PreparedDml["kind"];
  readonly changes: readonly PreparedPart[];
  readonly reads: readonly PartRead[];
  readonly outputs: readonly BoundOutput[] | undefined;
  /** The plan of the main query or change after WITH. */
  readonly mainPlan: PlanNode | undefined;
}

function partedDml(
  program: DmlProgram,
  { changes, kind, mainPlan, outputs, reads }: PartedChange,
  statement: StatementBinding,
): PreparedDml {
  statement.requireNoWait("a statement whose WITH changes rows");
  if (statement.currentRow !== undefined) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      "Cannot use WHERE CURRENT OF in a statement whose WITH changes rows: it is not available yet",
      {
        position: statement.currentRow.cursor._location.start,
        hint: "run the UPDATE or DELETE as a separate statement",
      },
    );
  }
  if (statement.files.length > 0) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      "Cannot upload a file in a statement with a WITH that changes rows: only a single INSERT " +
        "or UPDATE can upload files",
      { hint: "upload the file with a separate INSERT or UPDATE" },
    );
  }
  return {
    kind,
    program,
    evaluations: [],
    changes,
    tableIds: [...new Set(changes.map(({ target }) => target.tableId))],
    currentRow: undefined,
    isOfParts: true,
    plan: undefined,
    mainPlan,
    reads,
    build: undefined,
    columnCount: 0,
    ...answerOf(outputs, statement),
  };
}

/**
 * Returns two groups of properties of a prepared change. One group describes its result, as
 * determined by RETURNING; the other was recorded during binding.
 */
function answerOf(
  outputs: readonly BoundOutput[] | undefined,
  { files, literals, pastReads, requirements, storedNumbers }: StatementBinding,
): Pick<
  PreparedDml,
  "cells" | "fields" | "files" | "literals" | "pastReads" | "requirements" | "storedNumbers"
> {
  return {
    storedNumbers,
    requirements,
    pastReads,
    literals,
    files,
    fields: outputs === undefined ? undefined : fieldsOf(outputs),
    cells: new CellRows(typesOf(outputs ?? [])),
  };
}

function partOf(
  bound: BoundChange,
  { name, rows: { plan } }: { name: string | undefined; rows: ReadingPlan },
): PreparedPart {
  const setPositions = setsOf(bound).map(({ position }) => position);
  const { kind, table: target } = bound;
  return { kind, name, target, setPositions, deletes: mayDelete(bound), plan };
}

/** Binds, plans and compiles a statement without yielding. @throws {DatabaseError} */
export function prepare(
  node: QueryStatement,
  parts: { deps: DmlDeps; statement: StatementBinding },
): Prepared {
  return runToCompletion(prepareInSteps(node, parts));
}

export function* preparedQuery(
  written: BoundSelect,
  statement: StatementBinding,
  cursor?: CursorReading,
): Generator<void, PreparedQuery> {
  const hoisted = withoutCalls(written, statement);
  const { calls } = hoisted;
  const { keys, select } =
    cursor === undefined
      ? { select: hoisted.select, keys: undefined }
      : withCursorKeys(hoisted.select, cursor);
  const plan = planSelect(select);
  yield;
  const columnCount = select.outputs.length;
  const width = written.outputs.length;
  const fields = fieldsOf(select.outputs.slice(0, width));
  return {
    kind: "query",
    types: select.outputs.map(({ expression }) => expression.type),
    build: buildPlan(plan.root),
    readRow: buildRowRead(plan.root) ?? buildGuardedRowRead(plan.root),
    plan: plan.root,
    columnCount,
    evaluations: [],
    cursorKeys: keys,
    calls,
    isOutgrown: outgrowthOf(plan.root),
    requirements: statement.requirements,
    pastReads: statement.pastReads,
    literals: statement.literals,
    files: [],
    fields,
    // The keys after the columns of the query stay values.
    cells: new CellRows(typesOf(select.outputs), (type, position) =>
      position < width ? cellMakerFor(type) : (value) => value,
    ),
  };
}

/**
 * Returns a function that tells whether a plan is outdated because tables have grown. Plans
 * without joins never become outdated, because they do not depend on row counts.
 */
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

/** A plan that reads the rows to be changed. */
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
    made: { rows },
    statement,
  }: { bound: BoundChange; made: MadeChange; statement: StatementBinding },
): PreparedDml {
  const { kind } = bound;
  statement.requireNoWait(kind.toUpperCase());
  return {
    kind,
    ...compiled,
    changes: [partOf(bound, { name: undefined, rows })],
    tableIds: [bound.table.tableId],
    currentRow: statement.currentRow,
    isOfParts: false,
    mainPlan: undefined,
    reads: [],
    ...rows,
    ...answerOf(bound.returning?.outputs, statement),
  };
}

function mayDelete(bound: BoundChange): boolean {
  if (bound.kind !== "merge") return bound.kind === "delete";
  return bound.clauses.some(({ action }) => action === "delete");
}

/** Returns the columns that a change sets in existing rows. */
function setsOf(bound: BoundChange): readonly { readonly position: number }[] {
  switch (bound.kind) {
    case "insert":
      return bound.conflict?.sets ?? [];
    case "update":
      return bound.sets;
    case "delete":
      return [];
    case "merge":
      return bound.clauses.flatMap(({ action, cells }) => (action === "update" ? cells : []));
  }
}

function typesOf(outputs: readonly BoundOutput[]): DataType[] {
  return outputs.map(({ expression }) => expression.type);
}

/** The statement to bind, and the caller for whom it is bound. */
export interface Binder {
  readonly statement: StatementBinding;
  readonly principal: Principal;
  readonly catalog: Catalog;
}

/**
 * Binds a statement for a caller. If the caller may not read or write a table, errors about its
 * columns become PERMISSION_DENIED, because they would reveal the columns.
 *
 * @throws {DatabaseError} PERMISSION_DENIED, and the errors that `bind` throws.
 */
export function boundFor<Bound>(binder: Binder, bind: () => Bound): Bound {
  try {
    return bind();
  } catch (error) {
    throw toldTo(binder, error);
  }
}

/** Binds a statement like {@linkcode boundFor}, but in small steps. @throws {DatabaseError} */
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

/**
 * Converts an error to a form that the caller is permitted to see.
 *
 * @throws {DatabaseError} PERMISSION_DENIED
 */
function toldTo({ catalog, principal, statement }: Binder, error: unknown): unknown {
  if (error instanceof DatabaseError) authorize(statement.requirements, principal, catalog);
  return error;
}
