/**
 * Takes calls to programs out of a query, so that they run before it, as separate statements that
 * may change rows. This is possible if the query reads no table, and each call is evaluated
 * exactly once:
 *
 *     SELECT f(1) + g(2)              f, then g, then the sum of their values
 *     SELECT * FROM f(1) WHERE a > 2  f, then a query over its rows
 *
 * Any other call runs while its query is evaluated, and must not change any data.
 */
import type { Value } from "../../types/mod.ts";
import type { StatementBinding } from "../bind/binding.ts";
import type { BoundFrom, BoundRelation, BoundSelect, BoundTableFunction } from "../bind/bound.ts";
import type { BoundExpression } from "../bind/bound_expressions.ts";
import { hasSubquery, mapChildren, readsColumn } from "../bind/walk.ts";
import type { ExecutionContext } from "../execute/context/execution_context.ts";
import { compileScalar } from "../execute/evaluate/scalar.ts";
import type { CalledProgram } from "../functions/base/function.ts";

/**
 * A call to a program that runs before the query. The query reads the call's value from a slot.
 */
export interface HoistedCall {
  readonly program: CalledProgram;
  /** Functions that compute the arguments. An argument may read the slots of earlier calls. */
  readonly args: readonly ((context: ExecutionContext) => Value)[];
  /** Whether the program runs even if an argument is NULL. */
  readonly seesNull: boolean;
}

/**
 * A query or expression, and the calls taken out of it. The slots of the calls follow the
 * parameters of the statement, in the order of the list.
 */
export interface Hoisted<Part> {
  readonly select: Part;
  readonly calls: readonly HoistedCall[];
}

/** Takes out of a query the calls that can run before the query. */
export function withoutCalls(
  select: BoundSelect,
  { parameterTypes, requirements }: StatementBinding,
): Hoisted<BoundSelect> {
  if (!requirements.some(({ action }) => action === "call-program")) return { select, calls: [] };
  if (requirements.some((each) => "table" in each || each.action === "read-system")) {
    return { select, calls: [] };
  }
  const hoisting = new Hoisting(parameterTypes.length);
  return { select: hoisting.select(select), calls: hoisting.calls };
}

/** Takes out of an expression the calls that can run before the expression is evaluated. */
export function expressionWithoutCalls(
  expression: BoundExpression,
  { parameterTypes }: StatementBinding,
): { readonly expression: BoundExpression; readonly calls: readonly HoistedCall[] } {
  const hoisting = new Hoisting(parameterTypes.length);
  return { expression: hoisting.value(expression), calls: hoisting.calls };
}

class Hoisting {
  readonly calls: HoistedCall[] = [];
  readonly #base: number;

  constructor(base: number) {
    this.#base = base;
  }

  select(select: BoundSelect): BoundSelect {
    const { expansions, from, limit, offset, outputs, where } = select;
    const read = from === undefined ? undefined : this.#from(from);
    // Outputs are evaluated exactly once only if the query has a single row, without FROM or
    // conditions.
    const isOneRow = from === undefined && where === undefined && !select.isAggregated;
    if (!isOneRow || limit !== undefined || offset !== undefined) return { ...select, from: read };
    return {
      ...select,
      from: read,
      expansions: expansions.map(({ columns, functions, stage }) => ({
        columns,
        functions: functions.map((call) => this.#tableFunction(call)),
        stage,
      })),
      outputs: outputs.map(({ expression, name }) => ({
        name,
        expression: this.value(expression),
      })),
    };
  }

  #from(from: BoundFrom): BoundFrom {
    if (from.kind === "relation") return { ...from, relation: this.#relation(from.relation) };
    const isFree = from.outerReferences === undefined || from.outerReferences.length === 0;
    const left = this.#from(from.left);
    return { ...from, left, right: isFree ? this.#from(from.right) : from.right };
  }

  #relation(relation: BoundRelation): BoundRelation {
    switch (relation.kind) {
      case "function": {
        const functions = relation.functions.map((call) => this.#tableFunction(call));
        return { ...relation, functions };
      }
      case "query":
        return { ...relation, query: this.select(relation.query) };
      default:
        return relation;
    }
  }

  #tableFunction(call: BoundTableFunction): BoundTableFunction {
    return { ...call, args: call.args.map((argument) => this.value(argument)) };
  }

  /**
   * Takes out of an expression the calls that are evaluated regardless of the values of other
   * operands.
   */
  value(expression: BoundExpression): BoundExpression {
    switch (expression.kind) {
      case "and":
      case "or":
      case "coalesce": {
        const [first, ...others] = expression.operands;
        if (first === undefined) return expression;
        return { ...expression, operands: [this.value(first), ...others] };
      }
      case "case":
      case "subquery":
        return expression;
      default: {
        const inner = mapChildren(expression, (child) => this.value(child));
        return inner.kind === "call" && inner.program !== undefined ? this.#call(inner) : inner;
      }
    }
  }

  #call(call: Extract<BoundExpression, { kind: "call" }>): BoundExpression {
    const { args, program, seesNull, type } = call;
    const isFree = !args.some((each) => readsColumn(each) || hasSubquery(each) || readsOuter(each));
    if (program === undefined || !isFree) return call;
    const slot = this.#base + this.calls.length;
    this.calls.push({ program, args: args.map(compileScalar), seesNull });
    return { kind: "slot", type, slot };
  }
}

function readsOuter(expression: BoundExpression): boolean {
  let isRead = expression.kind === "outer";
  mapChildren(expression, (child) => {
    isRead ||= readsOuter(child);
    return child;
  });
  return isRead;
}
