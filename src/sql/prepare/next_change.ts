/**
 * Finds the next time at which the result of a comparison with the clock changes for some row.
 *
 * A statement finds the smallest column value that the clock has not reached. The time at which
 * the clock reaches that value is found by bisection. The clock may therefore be any expression
 * that never decreases, such as a date, the start of an hour, or NOW() minus an interval. The
 * statement ignores the other conditions of the query. It therefore misses no change, but at some
 * of the times that it finds, no row of the result changes.
 */
import type { Principal } from "../../auth/mod.ts";
import { assert } from "../../base/assert.ts";
import {
  castValue,
  compareValues,
  type DataType,
  TEXT,
  typeName,
  type Value,
} from "../../types/mod.ts";
import { StatementBinding } from "../bind/binding.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { compileScalar } from "../execute/evaluate/scalar.ts";
import type { SelectStatement } from "../parse/ast/ast.ts";
import { isSelectNode } from "../parse/ast/query_nodes.ts";
import { parseRequest } from "../parse/parser.ts";
import { nameText } from "../parse/print/print_expressions.ts";
import { parseLimitsOf } from "../ports/parameters.ts";
import { dmlDepsOf } from "./binding_deps.ts";
import type { ClockTerm } from "./clock_terms.ts";
import type { LivePlanDeps } from "./live_planner.ts";
import { type PreparedQuery, prepare } from "./prepared.ts";

/**
 * The longest time in milliseconds until the clock is checked again. The wall clock may be set
 * forward, and no timer reports that.
 */
const LOOK_MS_MAX = 3_600_000;

/**
 * Finds the next change of a comparison with the clock: contains the statement that finds the next
 * column value, and the comparison of that value with the clock.
 */
export interface NextChange {
  readonly node: SelectStatement;
  readonly types: readonly DataType[];
  /**
   * The statement that returns, as text, the smallest column value that the clock has not reached,
   * if there is such a value. Its parameter is the value of the clock.
   */
  readonly prepared: PreparedQuery;
  /** Evaluates the clock side of the comparison in an execution context. */
  readonly clock: (context: ExecutionContext) => Value;
  /**
   * Returns whether the clock has advanced so far that the result of comparing it with a value has
   * changed.
   */
  readonly isOver: (clock: Value, value: Value) => boolean;
  /** Parses a value that the statement has returned as text. */
  readonly valueOf: (text: string) => Value;
}

export function nextChangeOf(
  deps: LivePlanDeps,
  { casts, clock, columnId, isPassed, table, type }: ClockTerm,
  principal: Principal,
): NextChange {
  const column = table.columns.find((each) => each.columnId === columnId);
  assert(
    column !== undefined,
    "live query: column of the time condition is missing from the table",
  );
  const value = casts.reduce<string>(
    (text, to) => `CAST(${text} AS ${typeName(to)})`,
    nameText(column.name),
  );
  const sql =
    `SELECT (${value})::text FROM ${nameText(table.namespace)}.${nameText(table.name)} ` +
    `WHERE ${value} ${isPassed ? ">=" : ">"} $1 ORDER BY ${value} LIMIT 1`;
  const [node] = parseRequest(sql, parseLimitsOf(deps.limits)).statements;
  assert(
    node !== undefined && isSelectNode(node),
    "live query: statement for the next change is not a SELECT",
  );
  const statement = new StatementBinding([type]);
  const dmlDeps = dmlDepsOf(deps, { namespace: table.namespace, principal, statement });
  const prepared = prepare(node, { deps: dmlDeps, statement });
  assert(prepared.kind === "query", "live query: statement for the next change is not a query");
  return {
    node,
    types: [type],
    prepared,
    clock: compileScalar(clock),
    isOver: (reached, given) => {
      const order = compareValues(type, reached, given);
      return isPassed ? order > 0 : order >= 0;
    },
    valueOf: (text) => castValue(text, { from: TEXT, to: type, mode: "explicit", nowMicros: 0 }),
  };
}

/**
 * Returns the first millisecond after `nowMs` at which a condition holds, or the time of the next
 * check if that is earlier. Once the condition holds, it must not become false again.
 */
export function firstMsAfter(nowMs: number, holds: (atMs: number) => boolean): number {
  let before = nowMs;
  let at = nowMs + LOOK_MS_MAX;
  if (!holds(at)) return at;
  while (at - before > 1) {
    const middle = Math.floor((before + at) / 2);
    if (holds(middle)) at = middle;
    else before = middle;
  }
  return at;
}
