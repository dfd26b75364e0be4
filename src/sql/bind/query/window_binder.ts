/**
 * Binds window calls, `f(…) OVER (…)` and `OVER w`, and the windows defined in a WINDOW clause.
 *
 * A call becomes a column of its block, like an aggregate. It is computed after grouping, so its
 * arguments and its window may contain aggregates, but no other window call.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { WINDOWS_MAX } from "../../../base/limits.ts";
import { BIGINT } from "../../../types/mod.ts";
import { isAggregate } from "../../functions/aggregate/aggregates.ts";
import { requireOrder } from "../../functions/base/required_order.ts";
import { functionExists } from "../../functions/registry.ts";
import { resolveReach } from "../../functions/time/frame_reach.ts";
import { isWindowName, windowFunctionShape } from "../../functions/window_functions.ts";
import type {
  AstNode,
  CallOver,
  ExprCall,
  FrameBound,
  WindowDefinition as NamedWindowNode,
  WindowFrame,
} from "../../parse/ast/ast.ts";
import {
  type Bind,
  type ExpressionContext,
  type NamedWindow,
  unknownFunction,
  type WindowSink,
} from "../binding.ts";
import type {
  BoundExpression,
  BoundFrame,
  BoundFrameBound,
  BoundSort,
  BoundWindow,
  BoundWindowCall,
} from "../bound_expressions.ts";
import { columnValue } from "../bound_nodes.ts";
import { EquivalenceClasses } from "../equivalence.ts";
import { castTo, castToCommonType } from "../expression/casts.ts";
import { Scope } from "../scope.ts";
import { bindAggregateArguments, bindFilter } from "./aggregate_binder.ts";
import { aggregatesOf } from "./routine_resolution.ts";
import { sortOf } from "./sort_entry.ts";
import { formOfCall, formOfOrder, sameCall, sameOrder } from "./window_walk.ts";

/** Creates the sink for the window calls of a query block. */
export function newWindowSink(): WindowSink {
  const known = new EquivalenceClasses(CALL_LIKENESS);
  const knownOrders = new EquivalenceClasses(ORDER_LIKENESS);
  return { calls: [], known, orders: [], knownOrders, named: new Map() };
}

const CALL_LIKENESS = { formOf: formOfCall, areEquivalent: sameCall };
const ORDER_LIKENESS = { formOf: formOfOrder, areEquivalent: sameOrder };

/**
 * Binds a call with OVER.
 * @throws {DatabaseError} INVALID_QUERY, FUNCTION_NOT_FOUND
 */
export function bindWindowCall(
  call: ExprCall,
  context: ExpressionContext,
  bind: Bind,
): BoundExpression {
  const { name } = call.function;
  const sink = context.windows;
  const isOfRoutine = aggregatesOf(call, context) !== undefined;
  checkForm(call, isOfRoutine ? undefined : name);
  if (sink === undefined) {
    throw misuse(
      `Cannot use the window function ${name} in ${context.clause}`,
      call,
      "compute it in a subquery in FROM, and use the subquery's column here",
    );
  }
  const inner: ExpressionContext = {
    ...context,
    windows: undefined,
    expansions: undefined,
    clause: `the arguments of window function ${name}`,
  };
  const { args, form, type } =
    isOfRoutine || isAggregate(name)
      ? aggregateOver(call, inner, bind)
      : functionOver(call, inner, bind);
  const made: BoundWindowCall = {
    column: context.statement.newColumn({ name, type }),
    form,
    args,
    filter:
      call.filter === undefined
        ? undefined
        : bindFilter(call.filter, { ...inner, sink: undefined, clause: "FILTER" }, bind),
    window: windowOf(call.over ?? call, context, { sink, bind }),
  };
  const known = sink.known.find(made);
  if (known === undefined) {
    addOrder(made.window, sink, call);
    sink.calls.push(made);
    sink.known.add(made);
  }
  const { column } = known ?? made;
  return columnValue(column);
}

/**
 * Adds the window of a call, unless an equal window is already known.
 * @throws {DatabaseError} LIMIT_EXCEEDED
 */
function addOrder(window: BoundWindow, { knownOrders, orders }: WindowSink, call: ExprCall): void {
  if (knownOrders.find(window) !== undefined) return;
  orders.push(window);
  knownOrders.add(window);
  if (orders.length <= WINDOWS_MAX) return;
  throw new DatabaseError(
    "LIMIT_EXCEEDED",
    `Cannot use this window: a query can use at most ${WINDOWS_MAX} different windows`,
    {
      position: call._location.start,
      hint: "compute some of the window functions in a subquery in FROM",
    },
  );
}

/**
 * Refuses clauses that a call with OVER cannot have.
 *
 * @param builtIn The name of the function; undefined for a user-defined aggregate.
 * @throws {DatabaseError}
 */
function checkForm(call: ExprCall, builtIn: string | undefined): void {
  const { name } = call.function;
  const isOfWindow = builtIn !== undefined && isWindowName(builtIn);
  if (builtIn !== undefined && !isOfWindow && functionExists(builtIn)) {
    throw misuse(
      `Cannot use OVER with ${name}: it is neither a window function nor an aggregate function`,
      call,
      "remove OVER",
    );
  }
  const words = [call.filter, call.distinct, call.orderBy, call.withinGroup];
  if (isOfWindow && words.some((word) => word !== undefined)) {
    throw misuse(
      `Cannot call ${name} with DISTINCT, ORDER BY or FILTER: it is not an aggregate function`,
      call,
      "remove them; to order the window, write ORDER BY inside OVER (…)",
    );
  }
  const isPlain = call.orderBy === undefined && call.withinGroup === undefined;
  if (isPlain && call.distinct !== "distinct") return;
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot call ${name} with DISTINCT, ORDER BY or WITHIN GROUP together with OVER`,
    {
      position: call._location.start,
      hint: "call the aggregate in a subquery in FROM, or write ORDER BY inside OVER (…)",
    },
  );
}

type BoundForm = Pick<BoundWindowCall, "args" | "form"> & { type: BoundExpression["type"] };

function aggregateOver(call: ExprCall, inner: ExpressionContext, bind: Bind): BoundForm {
  const { args, form, steps } = bindAggregateArguments(call, inner, bind);
  if (form.isOrderedSet === true) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot call ${form.name} with OVER: it is an ordered-set aggregate`,
      {
        position: call._location.start,
        hint: "compute it in a subquery with GROUP BY, and join the result",
      },
    );
  }
  return { args, form: { kind: "aggregate", aggregate: form, steps }, type: form.result };
}

function functionOver(call: ExprCall, inner: ExpressionContext, bind: Bind): BoundForm {
  const { name } = call.function;
  const shape = windowFunctionShape(name, call.args.length);
  const given = call.args.map((argument) => bind(argument, inner));
  if (shape === undefined) {
    const types = given.map(({ type }) => type);
    throw unknownFunction(name, types, call);
  }
  const args = given.map((argument, i) =>
    shape.counts.includes(i)
      ? castTo(argument, { to: BIGINT, mode: "implicit", node: call.args[i] })
      : argument,
  );
  // An untyped literal gets the type of the related argument. If there is no such argument, the
  // literal becomes text.
  const valued = [args[0], shape.alike === undefined ? undefined : args[shape.alike]];
  const present = valued.flatMap((value) => value ?? []);
  let { result: type } = shape;
  if (type === undefined) {
    const alike = castToCommonType(present, call.args, name);
    type = alike.type;
    for (const [i, position] of [0, shape.alike ?? 0].entries()) {
      const value = alike.expressions[i];
      if (value !== undefined) args[position] = value;
    }
  }
  return { args, form: { kind: "function", name: shape.name }, type };
}

interface Around {
  readonly sink: WindowSink;
  readonly bind: Bind;
}

/**
 * Binds the windows defined in a WINDOW clause. A window may extend windows defined before it.
 * @throws {DatabaseError}
 */
export function bindNamedWindows(
  windows: readonly NamedWindowNode[],
  context: ExpressionContext,
  around: Around,
): void {
  const { named } = around.sink;
  for (const { name, window } of windows) {
    if (named.has(name.name))
      throw misuse(
        `Cannot define the window "${name.name}" twice`,
        name,
        "give the windows different names",
      );
    const hasFrame = window.frame !== undefined;
    named.set(name.name, { window: windowOf(window, context, around), hasFrame });
  }
}

function windowOf(
  node: AstNode | CallOver,
  context: ExpressionContext,
  { bind, sink }: Around,
): BoundWindow {
  const over: CallOver = node;
  if (over.name !== undefined) return namedWindow(over.name, sink).window;
  const base = over.base === undefined ? undefined : extended(over, namedWindow(over.base, sink));
  const inner: ExpressionContext = { ...context, windows: undefined, clause: "a window" };
  const own = over.orderBy?.map((sort) => sortOf(sort, settledKey(bind(sort.by, inner))));
  const orderBy = own ?? base?.orderBy ?? [];
  return {
    partitionBy:
      over.partitionBy?.map((expression) => {
        const key = settledKey(bind(expression, inner));
        requireOrder(key.type, "PARTITION BY", expression._location.start);
        return key;
      }) ??
      base?.partitionBy ??
      [],
    orderBy,
    frame:
      over.frame === undefined ? DEFAULT_FRAME : frameOf(over.frame, { orderBy, bind, context }),
  };
}

function namedWindow(name: AstNode & { readonly name: string }, sink: WindowSink): NamedWindow {
  const known = sink.named.get(name.name);
  if (known !== undefined) return known;
  throw misuse(
    `Cannot find window "${name.name}": the WINDOW clause does not define it`,
    name,
    `add WINDOW ${name.name} AS (…) after HAVING`,
  );
}

/**
 * Returns the window that `OVER (name …)` derives from a named window.
 *
 * @throws {DatabaseError} If the named window cannot be extended in this way.
 */
function extended(over: CallOver, { hasFrame, window }: NamedWindow): BoundWindow {
  const name = over.base?.name ?? "";
  if (over.partitionBy !== undefined) {
    throw misuse(
      `Cannot extend window "${name}" with PARTITION BY: only ORDER BY and a frame can be ` +
        "added to a named window",
      over,
    );
  }
  if (over.orderBy !== undefined && window.orderBy.length > 0) {
    throw misuse(`Cannot extend window "${name}" with ORDER BY: it already has one`, over);
  }
  if (hasFrame) {
    throw misuse(
      `Cannot extend window "${name}": it already has a frame`,
      over,
      `write OVER ${name}`,
    );
  }
  return window;
}

/**
 * Accepts an untyped literal as a key of a window. Whatever its value, it puts all rows into the
 * same group.
 */
function settledKey(expression: BoundExpression): BoundExpression {
  if (expression.type.kind !== "unknown") return expression;
  return castTo(expression, { to: { kind: "text" }, mode: "implicit", node: undefined });
}

const DEFAULT_FRAME: BoundFrame = {
  mode: "range",
  start: { type: "unbounded preceding", offset: undefined, reach: undefined },
  end: { type: "current row", offset: undefined, reach: undefined },
  exclude: undefined,
};

/** The rank of each kind of frame bound. The start of a frame must not rank after its end. */
const PLACES: Readonly<Record<FrameBound["type"], number>> = {
  "unbounded preceding": 0,
  preceding: 1,
  "current row": 2,
  following: 3,
  "unbounded following": 4,
};

interface FrameAround {
  readonly orderBy: readonly BoundSort[];
  readonly bind: Bind;
  readonly context: ExpressionContext;
}

function frameOf(frame: WindowFrame, around: FrameAround): BoundFrame {
  const { end, exclude, mode, start } = frame;
  if (PLACES[start.type] > PLACES[end.type]) {
    throw misuse(
      `Cannot use a frame from ${start.type.toUpperCase()} to ${end.type.toUpperCase()}: the ` +
        "frame would end before it starts",
      frame,
      "swap the two bounds",
    );
  }
  if (mode === "groups" && around.orderBy.length === 0) {
    throw misuse(
      "Cannot use a GROUPS frame in a window without ORDER BY: ORDER BY determines the groups",
      frame,
      "add ORDER BY to the window, or use ROWS",
    );
  }
  return {
    mode,
    start: boundOf(start, mode, { ...around, side: "start" }),
    end: boundOf(end, mode, { ...around, side: "end" }),
    exclude,
  };
}

function boundOf(
  bound: FrameBound,
  mode: WindowFrame["mode"],
  { bind, context, orderBy, side }: FrameAround & { readonly side: "start" | "end" },
): BoundFrameBound {
  const { type } = bound;
  if (bound.offset === undefined) return { type, offset: undefined, reach: undefined };
  const offset = bind(bound.offset, {
    ...context,
    scope: new Scope([]),
    sink: undefined,
    windows: undefined,
    expansions: undefined,
    outer: undefined,
    clause: "the offset of a frame",
  });
  if (mode !== "range") {
    const counted = castTo(offset, { to: BIGINT, mode: "implicit", node: bound });
    return { type, offset: counted, reach: undefined };
  }
  const [sort, ...others] = orderBy;
  if (sort === undefined || others.length > 0) {
    throw misuse(
      "Cannot use a RANGE frame with an offset: the ORDER BY of the window must have exactly " +
        "one sort key",
      bound,
      "order the window by a single expression, or use ROWS",
    );
  }
  const reach = resolveReach(sort.expression.type, offset.type);
  if (reach === undefined) {
    throw new DatabaseError(
      "TYPE_MISMATCH",
      "Cannot use a RANGE frame with this offset: it cannot be added to the ORDER BY value",
      {
        position: bound._location.start,
        hint: "use a number if ORDER BY sorts numbers, or an interval if it sorts dates or times",
      },
    );
  }
  const ways = {
    direction: (type === "preceding") === sort.isDescending ? 1 : -1,
    outward: (side === "start") === sort.isDescending ? 1 : -1,
  } as const;
  return {
    type,
    offset: castTo(offset, { to: reach.offsetType, mode: "implicit", node: bound }),
    reach: {
      key: castTo(sort.expression, { to: reach.keyType, mode: "implicit", node: bound }),
      step: (key, by) => reach.step(key, by, ways),
      isNegative: (by) => reach.isNegative(by),
    },
  };
}

function misuse(message: string, node: AstNode, hint?: string): DatabaseError {
  const position = node._location.start;
  const details = hint === undefined ? { position } : { position, hint };
  return new DatabaseError("INVALID_QUERY", message, details);
}
