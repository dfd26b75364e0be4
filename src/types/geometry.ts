/**
 * Represents the geometric types: points, line segments, lines, boxes, paths, polygons and
 * circles.
 *
 * A value is the text that PostgreSQL prints, such as `(1,2.5)` or `<(0,0),3>`. Its numbers have
 * the fewest digits that identify a double, so nothing is lost. Values have no order: shapes are
 * compared only by operators with a tolerance.
 *
 *     point     (x,y)
 *     lseg      [(x1,y1),(x2,y2)]
 *     line      {A,B,C}, the line Ax + By + C = 0
 *     box       (x1,y1),(x2,y2), the upper right corner first
 *     path      [(x1,y1),…] if it is open, ((x1,y1),…) if it is closed
 *     polygon   ((x1,y1),…)
 *     circle    <(x,y),radius>
 */
import type { GeometricKind } from "./data_type.ts";
import { textFromDouble } from "./float_text.ts";
import type { Value } from "./value.ts";

export interface PlanePoint {
  readonly x: number;
  readonly y: number;
}

export interface Segment {
  readonly from: PlanePoint;
  readonly to: PlanePoint;
}

/** The line `ax + by + c = 0`. */
export interface Line {
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

/** A rectangle. Each coordinate of `low` is at or below the corresponding coordinate of `high`. */
export interface Box {
  readonly high: PlanePoint;
  readonly low: PlanePoint;
}

/** A path with at least one point. */
export interface Path {
  readonly isClosed: boolean;
  readonly points: readonly PlanePoint[];
}

/** A polygon with at least one point. */
export interface Polygon {
  readonly points: readonly PlanePoint[];
}

export interface Circle {
  readonly center: PlanePoint;
  readonly radius: number;
}

/** For each geometric type, the shape that its values represent. */
export interface Shapes {
  readonly point: PlanePoint;
  readonly lseg: Segment;
  readonly line: Line;
  readonly box: Box;
  readonly path: Path;
  readonly polygon: Polygon;
  readonly circle: Circle;
}

/** Returns the shape that a value of a geometric type represents. */
export function shapeOf<K extends GeometricKind>(kind: K, value: Value): Shapes[K] {
  if (lastRead?.kind === kind && lastRead.value === value) return lastRead.shape as Shapes[K];
  const shape = shapeOfNumbers(kind, numbersOfShape(value), (value as string).startsWith("("));
  if (kind === "path" || kind === "polygon") lastRead = { kind, value, shape };
  return shape;
}

/**
 * The path or polygon that was parsed last. A filter uses the same constant shape, which may have
 * many points, for every row.
 */
let lastRead: { kind: GeometricKind; value: Value; shape: Shapes[GeometricKind] } | undefined;

/** Returns the value that represents a shape. */
export function shapeValue<K extends GeometricKind>(kind: K, shape: Shapes[K]): string {
  return WRITERS[kind](shape);
}

/**
 * Returns the shape with the given numbers, which are in the same order as in its text. Paths are
 * closed unless stated otherwise.
 */
export function shapeOfNumbers<K extends GeometricKind>(
  kind: K,
  numbers: readonly number[],
  isClosed = true,
): Shapes[K] {
  return MAKERS[kind](numbers, isClosed);
}

/** Returns the numbers in a geometric value, in the order of its text. */
export function numbersOfShape(value: Value): number[] {
  return ((value as string).match(NUMBERS) ?? []).map(Number);
}

/** Matches the numbers in a value, that is, everything but brackets and commas. */
const NUMBERS = /[^()[\]{}<>,]+/g;

type Makers = {
  readonly [K in GeometricKind]: (numbers: readonly number[], isClosed: boolean) => Shapes[K];
};
type Writers = { readonly [K in GeometricKind]: (shape: Shapes[K]) => string };

const MAKERS: Makers = {
  point: ([x = 0, y = 0]) => ({ x, y }),
  lseg: ([x1 = 0, y1 = 0, x2 = 0, y2 = 0]) => ({ from: { x: x1, y: y1 }, to: { x: x2, y: y2 } }),
  line: ([a = 0, b = 0, c = 0]) => ({ a, b, c }),
  box: ([x1 = 0, y1 = 0, x2 = 0, y2 = 0]) => ({ high: { x: x1, y: y1 }, low: { x: x2, y: y2 } }),
  path: (numbers, isClosed) => ({ isClosed, points: pointsOf(numbers) }),
  polygon: (numbers) => ({ points: pointsOf(numbers) }),
  circle: ([x = 0, y = 0, radius = 0]) => ({ center: { x, y }, radius }),
};

function pointsOf(numbers: readonly number[]): PlanePoint[] {
  const points: PlanePoint[] = [];
  for (let at = 0; at < numbers.length; at += 2) {
    points.push({ x: numbers[at] ?? 0, y: numbers[at + 1] ?? 0 });
  }
  return points;
}

const WRITERS: Writers = {
  point: pointText,
  lseg: ({ from, to }) => `[${pointText(from)},${pointText(to)}]`,
  line: ({ a, b, c }) => `{${textFromDouble(a)},${textFromDouble(b)},${textFromDouble(c)}}`,
  box: ({ high, low }) => `${pointText(high)},${pointText(low)}`,
  path: ({ isClosed, points }) =>
    isClosed ? `(${pointTexts(points)})` : `[${pointTexts(points)}]`,
  polygon: ({ points }) => `(${pointTexts(points)})`,
  circle: ({ center, radius }) => `<${pointText(center)},${textFromDouble(radius)}>`,
};

function pointText({ x, y }: PlanePoint): string {
  return `(${textFromDouble(x)},${textFromDouble(y)})`;
}

function pointTexts(points: readonly PlanePoint[]): string {
  return points.map(pointText).join(",");
}
