/**
 * Implements operations on paths and polygons: lengths, areas, containment, overlaps and
 * distances.
 *
 * Each call counts the segment pairs that it compares, because the cost grows with the product of
 * the numbers of points.
 */
import {
  add,
  areNear,
  areSamePoint,
  type Box,
  boundsOf,
  type Circle,
  distance,
  divide,
  isAbove,
  isBelow,
  isFrom,
  isLess,
  isUpTo,
  isZero,
  middle,
  multiply,
  type Path,
  type PlanePoint,
  type Polygon,
  type Segment,
  subtract,
} from "../../../types/mod.ts";
import { CallEffort } from "../base/call_effort.ts";
import {
  boxesOverlap,
  closestToPoint,
  closestToSegment,
  meetingOfSegments,
  segmentHasPoint,
} from "./closest.ts";

const EFFORT = {
  stepsMax: 1_000_000,
  message: "Cannot compare the shapes: the comparison requires",
  hint: "use shapes with fewer points",
} as const;

/**
 * The maximum depth of the recursion that divides a segment. This limit prevents a stack overflow.
 */
const DEPTH_MAX = 1000;

/** Returns the segments of a path. The closing segment comes first. */
function segmentsOf({ isClosed, points }: Path): Segment[] {
  const segments: Segment[] = [];
  let from = isClosed ? points.at(-1) : undefined;
  for (const to of points) {
    if (from !== undefined) segments.push({ from, to });
    from = to;
  }
  return segments;
}

function edgesOf({ points }: Polygon): Segment[] {
  return segmentsOf({ isClosed: true, points });
}

/** Returns the area that a closed path encloses; null for an open path. */
export function areaOfPath({ isClosed, points }: Path): number | null {
  if (!isClosed) return null;
  let area = 0;
  for (const [at, { x, y }] of points.entries()) {
    const next = points[(at + 1) % points.length] ?? { x, y };
    area = add(area, multiply(x, next.y));
    area = subtract(area, multiply(y, next.x));
  }
  return divide(Math.abs(area), 2);
}

export function lengthOfPath(path: Path): number {
  return segmentsOf(path).reduce((sum, { from, to }) => add(sum, distance(from, to)), 0);
}

export function pathsMeet(one: Path, other: Path): boolean {
  if (!boxesOverlap(boundsOf(one.points), boundsOf(other.points))) return false;
  return anyPair(
    segmentsOf(one),
    segmentsOf(other),
    (left, right) => meetingOfSegments(left, right) !== undefined,
  );
}

/**
 * The cost of computing the distance between two segments, in steps. An intersection costs one
 * step.
 */
const DISTANCE_STEPS = 8;

/**
 * Whether `test` is true for any pair of segments.
 *
 * @param steps The cost of one call to `test`. An intersection costs one step.
 * @throws {DatabaseError} LIMIT_EXCEEDED
 */
function anyPair(
  left: readonly Segment[],
  right: readonly Segment[],
  test: (left: Segment, right: Segment) => boolean,
  steps = 1,
): boolean {
  new CallEffort(EFFORT).spend(steps * left.length * right.length);
  return left.some((one) => right.some((other) => test(one, other)));
}

/** Returns the distance between two paths; null if one of them has no segment. */
export function distanceOfPaths(one: Path, other: Path): number | null {
  let least: number | null = null;
  const compare = (left: Segment, right: Segment): boolean => {
    const away = closestToSegment(left, right).distance;
    if (least === null || isLess(away, least)) least = away;
    return false;
  };
  anyPair(segmentsOf(one), segmentsOf(other), compare, DISTANCE_STEPS);
  return least;
}

/** Returns the distance from a point to a path; 0 if the path has no segment. */
export function distanceToPath(point: PlanePoint, path: Path): number {
  return leastDistance(point, segmentsOf(path));
}

function leastDistance(point: PlanePoint, segments: readonly Segment[]): number {
  const [first = 0, ...others] = segments.map((each) => closestToPoint(each, point).distance);
  return others.reduce((least, next) => (isLess(next, least) ? next : least), first);
}

/** Whether a point is on an open path, or on or within a closed path. */
export function pathHasPoint(path: Path, point: PlanePoint): boolean {
  if (path.isClosed) return isWithin(point, path.points);
  return segmentsOf(path).some(({ from, to }) =>
    areNear(add(distance(point, from), distance(point, to)), distance(from, to)),
  );
}

/** The result of `crossing` for a segment on which the origin lies. */
const ON_EDGE = Number.MAX_SAFE_INTEGER;

/**
 * Whether a point is within a polygon or on its edge. Sums the signed crossings of the edges with
 * the ray from the point to the right.
 */
export function isWithin(point: PlanePoint, corners: readonly PlanePoint[]): boolean {
  const relative = corners.map(({ x, y }): PlanePoint => {
    return { x: subtract(x, point.x), y: subtract(y, point.y) };
  });
  const [first] = relative;
  if (first === undefined) return false;
  let total = 0;
  let previous = first;
  for (const next of [...relative.slice(1), first]) {
    const count = crossing(next, previous);
    if (count === ON_EDGE) return true;
    total += count;
    previous = next;
  }
  return total !== 0;
}

/**
 * Returns how a segment crosses the ray from the origin to the right: 2 or -2 if it crosses the
 * ray, 1 or -1 if one end is on the ray, 0 if it does not cross, or `ON_EDGE`.
 */
function crossing({ x, y }: PlanePoint, previous: PlanePoint): number {
  if (isZero(y)) return crossingAtAxis(x, previous);
  const direction = isAbove(y, 0) ? 1 : -1;
  if (isZero(previous.y)) return isBelow(previous.x, 0) ? 0 : direction;
  const isSameSide = direction < 0 ? isBelow(previous.y, 0) : isAbove(previous.y, 0);
  if (isSameSide) return 0;
  if (isFrom(x, 0) && isAbove(previous.x, 0)) return 2 * direction;
  if (isBelow(x, 0) && isUpTo(previous.x, 0)) return 0;
  const side = subtract(multiply(subtract(x, previous.x), y), multiply(subtract(y, previous.y), x));
  if (isZero(side)) return ON_EDGE;
  const isLeft = direction < 0 ? isBelow(side, 0) : isAbove(side, 0);
  return isLeft ? 0 : 2 * direction;
}

/** Returns the result of `crossing` for a segment that ends on the axis, at `x`. */
function crossingAtAxis(x: number, previous: PlanePoint): number {
  if (isZero(x)) return ON_EDGE;
  const isOnAxis = isZero(previous.y);
  if (isAbove(x, 0)) {
    if (isOnAxis) return isAbove(previous.x, 0) ? 0 : ON_EDGE;
    return isBelow(previous.y, 0) ? 1 : -1;
  }
  if (isOnAxis) return isBelow(previous.x, 0) ? 0 : ON_EDGE;
  return 0;
}

export function polygonsOverlap(one: Polygon, other: Polygon): boolean {
  if (!boxesOverlap(boundsOf(one.points), boundsOf(other.points))) return false;
  const doMeet = anyPair(
    edgesOf(one),
    edgesOf(other),
    (left, right) => meetingOfSegments(left, right) !== undefined,
  );
  return doMeet || isFirstWithin(one, other) || isFirstWithin(other, one);
}

function isFirstWithin({ points: [first] }: Polygon, { points }: Polygon): boolean {
  return first !== undefined && isWithin(first, points);
}

export function distanceOfPolygons(one: Polygon, other: Polygon): number | null {
  if (polygonsOverlap(one, other)) return 0;
  return distanceOfPaths({ ...one, isClosed: true }, { ...other, isClosed: true });
}

export function distanceToPolygon(point: PlanePoint, polygon: Polygon): number {
  const { points } = polygon;
  if (isWithin(point, points)) return 0;
  const [first = point] = points;
  // The segments are in PostgreSQL's order. The first segment closes the polygon and begins at the
  // polygon's first point.
  const closing = { from: first, to: points.at(-1) ?? first };
  return leastDistance(point, [closing, ...segmentsOf({ isClosed: false, points })]);
}

export function distanceToCircle(circle: Circle, polygon: Polygon): number {
  const away = subtract(distanceToPolygon(circle.center, polygon), circle.radius);
  return away < 0 ? 0 : away;
}

export function boxHasBox(outer: Box, inner: Box): boolean {
  return (
    isFrom(outer.high.x, inner.high.x) &&
    isUpTo(outer.low.x, inner.low.x) &&
    isFrom(outer.high.y, inner.high.y) &&
    isUpTo(outer.low.y, inner.low.y)
  );
}

/** Whether the polygon `outer` contains the polygon `inner`. The two may share edges. */
export function polygonHasPolygon(outer: Polygon, inner: Polygon): boolean {
  if (!boxHasBox(boundsOf(outer.points), boundsOf(inner.points))) return false;
  const search = new EdgeSearch(outer);
  return edgesOf(inner).every(({ from, to }) => search.hasSegment(from, to, 0, 0));
}

/** Tests whether a polygon contains given segments. */
class EdgeSearch {
  readonly #points: readonly PlanePoint[];
  readonly #edges: readonly Segment[];
  readonly #effort = new CallEffort(EFFORT);

  constructor(polygon: Polygon) {
    this.#points = polygon.points;
    this.#edges = edgesOf(polygon);
  }

  /**
   * Whether the polygon contains a segment. A segment that crosses an edge is divided there, and
   * its parts are tested.
   *
   * @param start The index of the first edge with which to compare the segment. Earlier edges have
   *   already been compared.
   * @param depth The number of divisions that produced this segment.
   * @throws {DatabaseError} LIMIT_EXCEEDED
   */
  hasSegment(from: PlanePoint, to: PlanePoint, start: number, depth: number): boolean {
    if (depth > DEPTH_MAX) this.#effort.spend(EFFORT.stepsMax + 1);
    const tested: Segment = { from, to };
    let isCrossed = false;
    for (let at = start; at < this.#edges.length; at += 1) {
      const edge = this.#edges[at];
      if (edge === undefined) break;
      this.#effort.spend(1);
      const next = { start: at + 1, depth: depth + 1 };
      if (segmentHasPoint(edge, from)) {
        if (segmentHasPoint(edge, to)) return true;
        if (!this.#hasRest(from, to, edge, next)) return false;
      } else if (segmentHasPoint(edge, to)) {
        if (!this.#hasRest(to, from, edge, next)) return false;
      } else {
        const meeting = meetingOfSegments(tested, edge);
        if (meeting === undefined) continue;
        isCrossed = true;
        for (const end of [from, to]) {
          if (!this.hasSegment(end, meeting, next.start, next.depth)) return false;
        }
      }
    }
    if (isCrossed) return true;
    // Comparing a point with an edge costs only a fraction of comparing two segments.
    this.#effort.spend(this.#points.length / 8);
    return isWithin(middle(from, to), this.#points);
  }

  /**
   * Whether the remaining part of a segment that runs along an edge is within the polygon. The end
   * `on` of the segment lies on the edge, and the other end does not.
   */
  #hasRest(
    on: PlanePoint,
    off: PlanePoint,
    edge: Segment,
    { depth, start }: { start: number; depth: number },
  ): boolean {
    const tested: Segment = { from: on, to: off };
    const corners = areSamePoint(on, edge.from)
      ? [edge.to]
      : areSamePoint(on, edge.to)
        ? [edge.from]
        : [edge.from, edge.to];
    const corner = corners.find((each) => segmentHasPoint(tested, each));
    return corner === undefined || this.hasSegment(off, corner, start, depth);
  }
}

/**
 * Whether two polygons have the same corners, in either direction and from any starting corner.
 */
export function areSamePolygons(one: Polygon, other: Polygon): boolean {
  const count = one.points.length;
  if (count !== other.points.length) return false;
  const effort = new CallEffort(EFFORT);
  const isSameFrom = (start: number, step: 1 | -1): boolean =>
    one.points.every((point, at) => {
      effort.spend(1);
      const found = other.points[(start + step * at + count) % count];
      return found !== undefined && areSamePoint(found, point);
    });
  return other.points.some((_, start) => isSameFrom(start, 1) || isSameFrom(start, -1));
}
