/** Converts geometric values from one type to another, as PostgreSQL's casts do. */
import { DatabaseError } from "../base/errors.ts";
import { PARTS_OF_TEXT_MAX } from "../base/limits.ts";
import type { CastMode, FoundCast } from "./cast.ts";
import type { GeometricKind } from "./data_type.ts";
import type { Box, Circle, Path, PlanePoint, Polygon, Shapes } from "./geometry.ts";
import { shapeOf, shapeValue } from "./geometry.ts";
import {
  add,
  boxBetween,
  distance,
  divide,
  isLess,
  isZero,
  middle,
  multiply,
  subtract,
} from "./geometry_numbers.ts";

/** Returns the smallest box around the points. There must be at least one point. */
export function boundsOf(points: readonly PlanePoint[]): Box {
  const [first = { x: 0, y: 0 }, ...others] = points;
  let { x: left, y: bottom } = first;
  let { x: right, y: top } = first;
  for (const { x, y } of others) {
    if (isLess(x, left)) left = x;
    if (isLess(right, x)) right = x;
    if (isLess(y, bottom)) bottom = y;
    if (isLess(top, y)) top = y;
  }
  return { high: { x: right, y: top }, low: { x: left, y: bottom } };
}

/**
 * Converts a polygon to a circle. The center is the mean of the corners, and the radius is their
 * mean distance from the center.
 */
export function circleOfPolygon({ points }: Polygon): Circle {
  const count = points.length;
  let [x, y, radius] = [0, 0, 0];
  for (const point of points) {
    x = add(x, point.x);
    y = add(y, point.y);
  }
  const center = { x: divide(x, count), y: divide(y, count) };
  for (const point of points) radius = add(radius, distance(point, center));
  return { center, radius: divide(radius, count) };
}

/**
 * Returns a polygon with `count` corners, all on a circle.
 * @throws {DatabaseError} INVALID_VALUE, VALUE_TOO_LONG
 */
export function polygonOfCircle({ center, radius }: Circle, count: number): Polygon {
  if (isZero(radius)) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot convert a circle to a polygon: its radius must be greater than 0",
    );
  }
  if (count < 2) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot convert a circle to a polygon with ${count} points: a polygon must have at least 2`,
    );
  }
  if (count > PARTS_OF_TEXT_MAX) {
    throw new DatabaseError(
      "VALUE_TOO_LONG",
      `Cannot convert a circle to a polygon with ${count} points: the maximum is ` +
        PARTS_OF_TEXT_MAX,
    );
  }
  const step = divide(2 * Math.PI, count);
  const points = Array.from({ length: count }, (_, at): PlanePoint => {
    const angle = multiply(step, at);
    return {
      x: subtract(center.x, multiply(radius, Math.cos(angle))),
      y: add(center.y, multiply(radius, Math.sin(angle))),
    };
  });
  return { points };
}

/** Returns the largest square that fits into a circle. */
function boxInCircle({ center, radius }: Circle): Box {
  const delta = divide(radius, Math.SQRT2);
  return {
    high: { x: add(center.x, delta), y: add(center.y, delta) },
    low: { x: subtract(center.x, delta), y: subtract(center.y, delta) },
  };
}

function polygonOfBox({ high, low }: Box): Polygon {
  return { points: [low, { x: low.x, y: high.y }, high, { x: high.x, y: low.y }] };
}

function polygonOfPath({ isClosed, points }: Path): Polygon {
  if (isClosed) return { points };
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot convert the path to a polygon: it is open, but must be closed",
    { hint: "to close the path, call pclose(path)" },
  );
}

function circleAroundBox({ high, low }: Box): Circle {
  const center = middle(high, low);
  return { center, radius: distance(center, high) };
}

interface Conversion {
  /** Whether the cast also applies when a value is written to a column. */
  readonly isAssigned: boolean;
  readonly convert: (value: string) => string;
}

const CONVERSIONS: ReadonlyMap<string, Conversion> = new Map([
  conversion("point", "box", (point) => boxBetween(point, point), true),
  conversion("lseg", "point", ({ from, to }) => middle(from, to)),
  conversion("box", "point", ({ high, low }) => middle(high, low)),
  conversion("box", "lseg", ({ high, low }) => ({ from: high, to: low })),
  conversion("box", "polygon", polygonOfBox, true),
  conversion("box", "circle", circleAroundBox),
  conversion("path", "polygon", polygonOfPath, true),
  conversion("polygon", "point", (polygon) => circleOfPolygon(polygon).center),
  conversion("polygon", "path", ({ points }) => ({ isClosed: true, points }), true),
  conversion("polygon", "box", ({ points }) => boundsOf(points)),
  conversion("polygon", "circle", circleOfPolygon),
  conversion("circle", "point", ({ center }) => center),
  conversion("circle", "box", boxInCircle),
  conversion("circle", "polygon", (circle) => polygonOfCircle(circle, 12)),
]);

function conversion<From extends GeometricKind, To extends GeometricKind>(
  from: From,
  to: To,
  convert: (shape: Shapes[From]) => Shapes[To],
  isAssigned = false,
): readonly [string, Conversion] {
  return [
    `${from} ${to}`,
    { isAssigned, convert: (value) => shapeValue(to, convert(shapeOf(from, value))) },
  ];
}

/**
 * Returns the cast from one geometric type to another; undefined if there is none in this context.
 */
export function castShape(from: GeometricKind, to: GeometricKind, mode: CastMode): FoundCast {
  if (from === to) return "same";
  const found = CONVERSIONS.get(`${from} ${to}`);
  const isAllowed = mode === "explicit" || (mode === "assignment" && found?.isAssigned === true);
  return found === undefined || !isAllowed ? undefined : (value) => found.convert(value as string);
}
