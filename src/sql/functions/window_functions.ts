/**
 * Defines the window functions that are not aggregates: their names, arguments and result types.
 *
 * The window operator evaluates these functions, because only it has access to the neighbouring
 * rows.
 */
import { BIGINT, type DataType, DOUBLE, INT } from "../../types/mod.ts";

export type WindowName =
  | "row_number"
  | "rank"
  | "dense_rank"
  | "percent_rank"
  | "cume_dist"
  | "ntile"
  | "lag"
  | "lead"
  | "first_value"
  | "last_value"
  | "nth_value";

export interface WindowFunctionShape {
  readonly name: WindowName;
  /** The minimum and maximum number of arguments that the window function accepts. */
  readonly arity: readonly [least: number, most: number];
  /** The result type; undefined if it is the type of the first argument. */
  readonly result: DataType | undefined;
  /** The indexes of the arguments that are counts, such as a number of rows or tiles. */
  readonly counts: readonly number[];
  /** The index of the argument that must have the same type as the first argument. */
  readonly alike?: number;
}

const SHAPES: readonly WindowFunctionShape[] = [
  { name: "row_number", arity: [0, 0], result: BIGINT, counts: [] },
  { name: "rank", arity: [0, 0], result: BIGINT, counts: [] },
  { name: "dense_rank", arity: [0, 0], result: BIGINT, counts: [] },
  { name: "percent_rank", arity: [0, 0], result: DOUBLE, counts: [] },
  { name: "cume_dist", arity: [0, 0], result: DOUBLE, counts: [] },
  { name: "ntile", arity: [1, 1], result: INT, counts: [0] },
  { name: "lag", arity: [1, 3], result: undefined, counts: [1], alike: 2 },
  { name: "lead", arity: [1, 3], result: undefined, counts: [1], alike: 2 },
  { name: "first_value", arity: [1, 1], result: undefined, counts: [] },
  { name: "last_value", arity: [1, 1], result: undefined, counts: [] },
  { name: "nth_value", arity: [2, 2], result: undefined, counts: [1] },
];

const SHAPE_BY_NAME: ReadonlyMap<string, WindowFunctionShape> = new Map(
  SHAPES.map((shape) => [shape.name, shape]),
);

/** Returns the names of all window functions that are not aggregates. */
export function windowFunctionNames(): Iterable<string> {
  return SHAPE_BY_NAME.keys();
}

/** Whether `name`, in lower case, is a window function that is not an aggregate. */
export function isWindowName(name: string): boolean {
  return SHAPE_BY_NAME.has(name);
}

/**
 * Returns the arguments and result type of a window function, or undefined if there is no such
 * function or it does not accept this number of arguments.
 */
export function windowFunctionShape(
  name: string,
  argumentCount: number,
): WindowFunctionShape | undefined {
  const shape = SHAPE_BY_NAME.get(name);
  if (shape === undefined) return undefined;
  const [least, most] = shape.arity;
  return argumentCount >= least && argumentCount <= most ? shape : undefined;
}
