/**
 * Finds intersections, closest points and distances between points, line segments, lines and
 * boxes.
 *
 * The computations run in PostgreSQL's order, because the order determines the last digits of a
 * result.
 */
import {
  add,
  areNear,
  areSamePoint,
  type Box,
  boxBetween,
  distance,
  divide,
  hypotenuse,
  isLess,
  isUpTo,
  isZero,
  type Line,
  lineThrough,
  middle,
  multiply,
  type PlanePoint,
  type Segment,
  slope,
  subtract,
} from "../../../types/mod.ts";

/**
 * The point of one shape that is closest to another shape, and the distance between the two
 * shapes.
 */
export interface Closest {
  readonly point: PlanePoint;
  /** The distance between the two shapes; NaN if no single point is the closest. */
  readonly distance: number;
}

/** Returns the intersection of two lines; undefined if they are parallel or the same. */
export function meetingOfLines(one: Line, other: Line): PlanePoint | undefined {
  if (isZero(one.b) && isZero(other.b)) return undefined;
  const first = isZero(one.b) ? other : one;
  const second = first === one ? other : one;
  if (areNear(second.a, multiply(first.a, divide(second.b, first.b)))) return undefined;
  const x = divide(
    subtract(multiply(first.b, second.c), multiply(second.b, first.c)),
    subtract(multiply(first.a, second.b), multiply(second.a, first.b)),
  );
  const y = divide(-add(multiply(first.a, x), first.c), first.b);
  // Adding 0 turns -0 into 0.
  return { x: x + 0, y: y + 0 };
}

export function slopeOfLine(line: Line): number {
  if (isZero(line.a)) return 0;
  return isZero(line.b) ? Number.POSITIVE_INFINITY : divide(line.a, -line.b);
}

function inverseSlopeOfLine(line: Line): number {
  if (isZero(line.a)) return Number.POSITIVE_INFINITY;
  return isZero(line.b) ? 0 : divide(line.b, line.a);
}

/** Returns the slope of the lines that are perpendicular to a segment. */
export function inverseSlope({ from, to }: Segment): number {
  if (areNear(from.x, to.x)) return 0;
  if (areNear(from.y, to.y)) return Number.POSITIVE_INFINITY;
  return divide(subtract(from.x, to.x), subtract(to.y, from.y));
}

export function slopeOf({ from, to }: Segment): number {
  return slope(from, to);
}

export function lengthOf({ from, to }: Segment): number {
  return distance(from, to);
}

export function lineHasPoint({ a, b, c }: Line, { x, y }: PlanePoint): boolean {
  return isZero(add(add(multiply(a, x), multiply(b, y)), c));
}

export function segmentHasPoint(segment: Segment, point: PlanePoint): boolean {
  const { from, to } = segment;
  return areNear(distance(point, from) + distance(point, to), distance(from, to));
}

export function meetingOfSegmentAndLine(segment: Segment, line: Line): PlanePoint | undefined {
  const { from, to } = segment;
  const meeting = meetingOfLines(lineThrough(from, slopeOf(segment)), line);
  if (meeting === undefined || !segmentHasPoint(segment, meeting)) return undefined;
  // The computed point may differ from an end point only in the last digit, so the exact end point
  // is returned.
  if (areSamePoint(from, meeting)) return from;
  return areSamePoint(to, meeting) ? to : meeting;
}

export function meetingOfSegments(one: Segment, other: Segment): PlanePoint | undefined {
  const meeting = meetingOfSegmentAndLine(one, lineThrough(other.from, slopeOf(other)));
  return meeting !== undefined && segmentHasPoint(other, meeting) ? meeting : undefined;
}

export function closestOnLine(line: Line, point: PlanePoint): Closest {
  const perpendicular = lineThrough(point, inverseSlopeOfLine(line));
  const foot = meetingOfLines(perpendicular, line);
  if (foot === undefined) return { point, distance: Number.NaN };
  return { point: foot, distance: distance(foot, point) };
}

/** Returns the point of a segment that is closest to a line. */
export function closestToLine(segment: Segment, line: Line): Closest {
  const meeting = meetingOfSegmentAndLine(segment, line);
  if (meeting !== undefined) return { point: meeting, distance: 0 };
  const first = closestOnLine(line, segment.from).distance;
  const last = closestOnLine(line, segment.to).distance;
  return first < last
    ? { point: segment.from, distance: first }
    : { point: segment.to, distance: last };
}

/** Returns the point of a segment that is closest to a point. */
export function closestToPoint(segment: Segment, point: PlanePoint): Closest {
  const perpendicular = lineThrough(point, inverseSlope(segment));
  const { point: found } = closestToLine(segment, perpendicular);
  return { point: found, distance: distance(found, point) };
}

/** Returns the point of one segment that is closest to another segment. */
export function closestToSegment(segment: Segment, other: Segment): Closest {
  const meeting = meetingOfSegments(segment, other);
  if (meeting !== undefined) return { point: meeting, distance: 0 };
  let closest = closestToPoint(segment, other.from);
  const last = closestToPoint(segment, other.to);
  if (isLess(last.distance, closest.distance)) closest = last;
  for (const point of [segment.from, segment.to]) {
    const { distance: away } = closestToPoint(other, point);
    if (isLess(away, closest.distance)) closest = { point, distance: away };
  }
  return closest;
}

export function centerOfBox({ high, low }: Box): PlanePoint {
  return middle(high, low);
}

export function boxHasPoint({ high, low }: Box, { x, y }: PlanePoint): boolean {
  return high.x >= x && low.x <= x && high.y >= y && low.y <= y;
}

export function boxesOverlap(one: Box, other: Box): boolean {
  return (
    isUpTo(one.low.x, other.high.x) &&
    isUpTo(other.low.x, one.high.x) &&
    isUpTo(one.low.y, other.high.y) &&
    isUpTo(other.low.y, one.high.y)
  );
}

/** Returns the sides of a box in the order left, upper, lower, right. */
function sidesOf({ high, low }: Box): readonly Segment[] {
  const upperLeft = { x: low.x, y: high.y };
  const lowerRight = { x: high.x, y: low.y };
  return [
    { from: low, to: upperLeft },
    { from: high, to: upperLeft },
    { from: low, to: lowerRight },
    { from: high, to: lowerRight },
  ];
}

/**
 * Returns the point with the smallest distance; if several have the same distance, the first of
 * them.
 */
function closestOf(points: readonly Closest[]): Closest {
  return points.reduce((best, next) => (isLess(next.distance, best.distance) ? next : best));
}

/** Returns the point in a box that is closest to a point. */
export function closestInBox(box: Box, point: PlanePoint): Closest {
  if (boxHasPoint(box, point)) return { point, distance: 0 };
  return closestOf(sidesOf(box).map((side) => closestToPoint(side, point)));
}

/** Returns the point in a box that is closest to a segment. */
export function closestInBoxToSegment(box: Box, segment: Segment): Closest {
  if (boxMeetsSegment(box, segment)) {
    return { point: closestToPoint(segment, centerOfBox(box)).point, distance: 0 };
  }
  return closestOf(sidesOf(box).map((side) => closestToSegment(side, segment)));
}

export function boxMeetsSegment(box: Box, segment: Segment): boolean {
  const { from, to } = segment;
  if (!boxesOverlap(boxBetween(from, to), box)) return false;
  if (boxHasPoint(box, from) || boxHasPoint(box, to)) return true;
  return sidesOf(box).some((side) => meetingOfSegments(side, segment) !== undefined);
}

export function boxMeetsLine(box: Box, line: Line): boolean {
  return sidesOf(box).some((side) => meetingOfSegmentAndLine(side, line) !== undefined);
}

/** Whether neither coefficient of a line is 0 or NaN. */
function areUsable(left: number, right: number): boolean {
  return [left, right].every((each) => !isZero(each) && !Number.isNaN(each));
}

/** Returns the distance between two lines, which is 0 if they intersect. */
export function distanceOfLines(one: Line, other: Line): number {
  if (meetingOfLines(one, other) !== undefined) return 0;
  let ratio = 1;
  if (areUsable(one.a, other.a)) ratio = divide(one.a, other.a);
  else if (areUsable(one.b, other.b)) ratio = divide(one.b, other.b);
  return divide(Math.abs(subtract(one.c, multiply(ratio, other.c))), hypotenuse(one.a, one.b));
}

export function arePerpendicular(one: Line, other: Line): boolean {
  if (isZero(one.a)) return isZero(other.b);
  if (isZero(other.a)) return isZero(one.b);
  if (isZero(one.b)) return isZero(other.a);
  if (isZero(other.b)) return isZero(one.a);
  return areNear(divide(multiply(one.a, other.a), multiply(one.b, other.b)), -1);
}
