/** Traverses the expressions in window calls, and compares window calls. */

import type {
  BoundExpression,
  BoundFrameBound,
  BoundWindow,
  BoundWindowCall,
} from "../bound_expressions.ts";
import { formOfList } from "../equivalence.ts";
import { sameList, sameOptional, sameSorts } from "../walk.ts";

/**
 * Returns all expressions of a window call: its arguments, its filter and the expressions of its
 * window.
 */
export function expressionsOfCall({ args, filter, window }: BoundWindowCall): BoundExpression[] {
  const { frame, orderBy, partitionBy } = window;
  const bounds = [frame.start, frame.end];
  return [
    ...args,
    ...(filter === undefined ? [] : [filter]),
    ...partitionBy,
    ...orderBy.map(({ expression }) => expression),
    ...bounds.flatMap(({ offset, reach }) => [offset ?? [], reach?.key ?? []].flat()),
  ];
}

/** Returns a copy of a window call with `change` applied to its expressions. */
export function mapCall(
  call: BoundWindowCall,
  change: (expression: BoundExpression) => BoundExpression,
): BoundWindowCall {
  const { frame, orderBy, partitionBy } = call.window;
  const changedBound = (bound: BoundFrameBound): BoundFrameBound => ({
    ...bound,
    reach: bound.reach === undefined ? undefined : { ...bound.reach, key: change(bound.reach.key) },
  });
  return {
    ...call,
    args: call.args.map(change),
    filter: call.filter === undefined ? undefined : change(call.filter),
    window: {
      partitionBy: partitionBy.map(change),
      orderBy: orderBy.map(({ expression, isDescending, nullsFirst }) => ({
        expression: change(expression),
        isDescending,
        nullsFirst,
      })),
      frame: { ...frame, start: changedBound(frame.start), end: changedBound(frame.end) },
    },
  };
}

/** Whether two window calls have the same value in every row. */
export function sameCall(left: BoundWindowCall, right: BoundWindowCall): boolean {
  return (
    nameOf(left) === nameOf(right) &&
    sameList(left.args, right.args) &&
    sameOptional(left.filter, right.filter) &&
    sameOrder(left.window, right.window) &&
    left.window.frame.mode === right.window.frame.mode &&
    left.window.frame.exclude === right.window.frame.exclude &&
    sameBound(left.window.frame.start, right.window.frame.start) &&
    sameBound(left.window.frame.end, right.window.frame.end)
  );
}

function nameOf({ form }: BoundWindowCall): string {
  return form.kind === "function" ? form.name : form.aggregate.name;
}

/**
 * Returns a string for a window call. Calls that {@linkcode sameCall} considers equal have equal
 * strings.
 */
export function formOfCall({ args, filter, window }: BoundWindowCall): string {
  const { end, start } = window.frame;
  return `${formOfOrder(window)} ${formOfList([...args, filter, start.offset, end.offset])}`;
}

/** Whether two windows partition and sort the rows in the same way. */
export function sameOrder(left: BoundWindow, right: BoundWindow): boolean {
  return sameList(left.partitionBy, right.partitionBy) && sameSorts(left.orderBy, right.orderBy);
}

/**
 * Returns a string for the order of a window. Windows that {@linkcode sameOrder} considers equal
 * have equal strings.
 */
export function formOfOrder({ orderBy, partitionBy }: BoundWindow): string {
  return formOfList([...partitionBy, undefined, ...orderBy.map(({ expression }) => expression)]);
}

function sameBound(left: BoundFrameBound, right: BoundFrameBound): boolean {
  return left.type === right.type && sameOptional(left.offset, right.offset);
}
