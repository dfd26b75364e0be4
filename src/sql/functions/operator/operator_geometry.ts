/**
 * Defines operators on geometric values. Comparisons have a tolerance. `=`, `<` and similar
 * operators compare areas, lengths or numbers of points, so they do not define a total order.
 */
import {
  add,
  areApart,
  areNear,
  areSameLine,
  areSamePoint,
  BOOLEAN,
  type Box,
  boundsOf,
  boxBetween,
  type Circle,
  circleOfPolygon,
  type DataType,
  DOUBLE,
  distance,
  divide,
  GEOMETRIC_KINDS,
  type GeometricKind,
  greater,
  hypotenuse,
  INT,
  isAbove,
  isBelow,
  isFrom,
  isGeometric,
  isUpTo,
  isZero,
  lesser,
  middle,
  multiply,
  type PlanePoint,
  type Shapes,
  shapeOf,
  shapeValue,
  subtract,
  type Value,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm, prefixForm } from "../base/operator_form.ts";
import {
  arePerpendicular,
  boxesOverlap,
  boxHasPoint,
  boxMeetsLine,
  boxMeetsSegment,
  type Closest,
  centerOfBox,
  closestInBox,
  closestInBoxToSegment,
  closestOnLine,
  closestToLine,
  closestToPoint,
  closestToSegment,
  distanceOfLines,
  inverseSlope,
  lengthOf,
  lineHasPoint,
  meetingOfLines,
  meetingOfSegmentAndLine,
  meetingOfSegments,
  segmentHasPoint,
  slopeOf,
  slopeOfLine,
} from "../geometry/closest.ts";
import {
  areSamePolygons,
  boxHasBox,
  distanceOfPaths,
  distanceOfPolygons,
  distanceToCircle,
  distanceToPath,
  distanceToPolygon,
  isWithin,
  lengthOfPath,
  pathHasPoint,
  pathsMeet,
  polygonHasPolygon,
  polygonsOverlap,
} from "../geometry/outlines.ts";

/**
 * An operator on geometric values. Its name includes the kinds of its operands: `point <-> box`,
 * `@-@ path`.
 */
type GeometricOperator = readonly [name: string, form: OperatorForm];

/**
 * Creates a binary operator on shapes. @param result The type of the values that `compute`
 * returns.
 */
function binary<L extends GeometricKind, R extends GeometricKind>(
  [left, op, right]: readonly [L, string, R],
  result: DataType,
  compute: (left: Shapes[L], right: Shapes[R]) => Value,
): GeometricOperator {
  const form = binaryForm([{ kind: left }, { kind: right }], result, (l, r) =>
    compute(shapeOf(left, l), shapeOf(right, r)),
  );
  return [`${left} ${op} ${right}`, form];
}

/** Creates an operator that returns a shape, or NULL if its function returns undefined. */
function shaping<L extends GeometricKind, R extends GeometricKind, To extends GeometricKind>(
  names: readonly [L, string, R],
  kind: To,
  compute: (left: Shapes[L], right: Shapes[R]) => Shapes[To] | undefined,
): GeometricOperator {
  return binary(names, { kind }, (left, right) => {
    const shape = compute(left, right);
    return shape === undefined ? null : shapeValue(kind, shape);
  });
}

/** Creates operators that test a relation between two shapes of the same kind. */
function tests<K extends GeometricKind>(
  kind: K,
  list: Readonly<Record<string, (left: Shapes[K], right: Shapes[K]) => boolean>>,
): GeometricOperator[] {
  return Object.entries(list).map(([op, test]) => binary([kind, op, kind], BOOLEAN, test));
}

/** Creates the distance operator `<->` for two kinds of shapes, in both operand orders. */
function distances<L extends GeometricKind, R extends GeometricKind>(
  left: L,
  right: R,
  measure: (left: Shapes[L], right: Shapes[R]) => number | null,
): GeometricOperator[] {
  return [
    binary([left, "<->", right], DOUBLE, measure),
    binary([right, "<->", left], DOUBLE, (r, l) => measure(l, r)),
  ];
}

/**
 * Creates the containment operators `inner <@ outer` and, if PostgreSQL has it, `outer @> inner`.
 */
function contents<I extends GeometricKind, O extends GeometricKind>(
  inner: I,
  outer: O,
  test: (outer: Shapes[O], inner: Shapes[I]) => boolean,
  isBoth = true,
): GeometricOperator[] {
  const within = binary([inner, "<@", outer], BOOLEAN, (i, o) => test(o, i));
  return isBoth ? [within, binary([outer, "@>", inner], BOOLEAN, test)] : [within];
}

function prefix<K extends GeometricKind>(
  op: string,
  kind: K,
  result: DataType,
  compute: (shape: Shapes[K]) => Value,
): GeometricOperator {
  return [`${op} ${kind}`, prefixForm({ kind }, result, (value) => compute(shapeOf(kind, value)))];
}

function centering<K extends GeometricKind>(
  kind: K,
  compute: (shape: Shapes[K]) => PlanePoint,
): GeometricOperator {
  return prefix("@@", kind, { kind: "point" }, (shape) => shapeValue("point", compute(shape)));
}

/** Creates comparison operators that compare shapes by a number, such as their area. */
function comparisons<K extends GeometricKind>(
  kind: K,
  measure: (shape: Shapes[K]) => number,
): GeometricOperator[] {
  const ordered = (
    test: (left: number, right: number) => boolean,
  ): ((left: Shapes[K], right: Shapes[K]) => boolean) => {
    return (left, right) => test(measure(left), measure(right));
  };
  return tests(kind, {
    "=": ordered(areNear),
    "<": ordered(isBelow),
    "<=": ordered(isUpTo),
    ">": ordered(isAbove),
    ">=": ordered(isFrom),
  });
}

/** The functions that compare coordinates: with a tolerance or, for polygons, exactly. */
interface Comparison {
  readonly isBelow: (left: number, right: number) => boolean;
  readonly isUpTo: (left: number, right: number) => boolean;
}

const TOLERANT: Comparison = { isBelow, isUpTo };
const EXACT: Comparison = {
  isBelow: (left, right) => left < right,
  isUpTo: (left, right) => left <= right,
};

/** Creates the operators that test the relative position of two shapes by their bounding boxes. */
function positions<K extends GeometricKind>(
  kind: K,
  boundsOfShape: (shape: Shapes[K]) => Box,
  compared: Comparison,
): GeometricOperator[] {
  const boxes = (test: (left: Box, right: Box) => boolean) => {
    return (left: Shapes[K], right: Shapes[K]): boolean =>
      test(boundsOfShape(left), boundsOfShape(right));
  };
  const { isBelow: below, isUpTo: upTo } = compared;
  return tests(kind, {
    "<<": boxes((l, r) => below(l.high.x, r.low.x)),
    ">>": boxes((l, r) => below(r.high.x, l.low.x)),
    "&<": boxes((l, r) => upTo(l.high.x, r.high.x)),
    "&>": boxes((l, r) => upTo(r.low.x, l.low.x)),
    "<<|": boxes((l, r) => below(l.high.y, r.low.y)),
    "|>>": boxes((l, r) => below(r.high.y, l.low.y)),
    "&<|": boxes((l, r) => upTo(l.high.y, r.high.y)),
    "|&>": boxes((l, r) => upTo(r.low.y, l.low.y)),
  });
}

function boxAroundCircle({ center: { x, y }, radius }: Circle): Box {
  return {
    high: { x: add(x, radius), y: add(y, radius) },
    low: { x: subtract(x, radius), y: subtract(y, radius) },
  };
}

export function areaOfBox({ high, low }: Box): number {
  return multiply(subtract(high.x, low.x), subtract(high.y, low.y));
}

export function areaOfCircle({ radius }: Circle): number {
  return multiply(multiply(radius, radius), Math.PI);
}

function product(left: PlanePoint, right: PlanePoint): PlanePoint {
  return {
    x: subtract(multiply(left.x, right.x), multiply(left.y, right.y)),
    y: add(multiply(left.x, right.y), multiply(left.y, right.x)),
  };
}

function quotient(left: PlanePoint, right: PlanePoint): PlanePoint {
  const divisor = add(multiply(right.x, right.x), multiply(right.y, right.y));
  return {
    x: divide(add(multiply(left.x, right.x), multiply(left.y, right.y)), divisor),
    y: divide(subtract(multiply(left.y, right.x), multiply(left.x, right.y)), divisor),
  };
}

function sum(left: PlanePoint, right: PlanePoint): PlanePoint {
  return { x: add(left.x, right.x), y: add(left.y, right.y) };
}

function difference(left: PlanePoint, right: PlanePoint): PlanePoint {
  return { x: subtract(left.x, right.x), y: subtract(left.y, right.y) };
}

/**
 * The arithmetic operators on points, which are treated as complex numbers: `*` rotates and
 * scales, and `/` reverses this.
 */
const POINT_ARITHMETIC: readonly (readonly [
  string,
  (left: PlanePoint, right: PlanePoint) => PlanePoint,
])[] = [
  ["+", sum],
  ["-", difference],
  ["*", product],
  ["/", quotient],
];

const ARITHMETIC: readonly GeometricOperator[] = [
  ...POINT_ARITHMETIC.flatMap(([op, apply]): GeometricOperator[] => {
    const turns = op === "*" || op === "/";
    return [
      shaping(["point", op, "point"], "point", apply),
      shaping(["box", op, "point"], "box", ({ high, low }, point) => {
        const corners = [apply(high, point), apply(low, point)] as const;
        return turns ? boxBetween(...corners) : { high: corners[0], low: corners[1] };
      }),
      shaping(["path", op, "point"], "path", ({ isClosed, points }, point) => {
        return { isClosed, points: points.map((each) => apply(each, point)) };
      }),
      shaping(["circle", op, "point"], "circle", ({ center, radius }, point) => {
        const scale = turns ? hypotenuse(point.x, point.y) : 1;
        return {
          center: apply(center, point),
          radius: op === "/" ? divide(radius, scale) : multiply(radius, scale),
        };
      }),
    ];
  }),
  shaping(["path", "+", "path"], "path", (left, right) => {
    if (left.isClosed || right.isClosed) return undefined;
    return { isClosed: false, points: [...left.points, ...right.points] };
  }),
];

const DISTANCES: readonly GeometricOperator[] = [
  binary(["point", "<->", "point"], DOUBLE, distance),
  binary(["lseg", "<->", "lseg"], DOUBLE, (l, r) => closestToSegment(l, r).distance),
  binary(["line", "<->", "line"], DOUBLE, distanceOfLines),
  binary(["box", "<->", "box"], DOUBLE, (l, r) => distance(centerOfBox(l), centerOfBox(r))),
  binary(["path", "<->", "path"], DOUBLE, distanceOfPaths),
  binary(["polygon", "<->", "polygon"], DOUBLE, distanceOfPolygons),
  binary(["circle", "<->", "circle"], DOUBLE, (l, r) =>
    atLeastZero(subtract(distance(l.center, r.center), add(l.radius, r.radius))),
  ),
  ...distances("point", "line", (point, line) => closestOnLine(line, point).distance),
  ...distances("point", "lseg", (point, segment) => closestToPoint(segment, point).distance),
  ...distances("point", "box", (point, box) => closestInBox(box, point).distance),
  ...distances("point", "path", distanceToPath),
  ...distances("point", "polygon", distanceToPolygon),
  ...distances("point", "circle", (point, { center, radius }) =>
    atLeastZero(subtract(distance(point, center), radius)),
  ),
  ...distances("lseg", "line", (segment, line) => closestToLine(segment, line).distance),
  ...distances("lseg", "box", (segment, box) => closestInBoxToSegment(box, segment).distance),
  ...distances("circle", "polygon", distanceToCircle),
];

function atLeastZero(value: number): number {
  return value < 0 ? 0 : value;
}

function pointIfFound({ distance: away, point }: Closest): PlanePoint | undefined {
  return Number.isNaN(away) ? undefined : point;
}

/**
 * The operators that return a point: `a ## b` is the point of b closest to a, and `a # b` is the
 * intersection.
 */
const POINTS: readonly GeometricOperator[] = [
  shaping(["line", "##", "lseg"], "point", (line, segment) =>
    slopeOf(segment) === slopeOfLine(line) ? undefined : pointIfFound(closestToLine(segment, line)),
  ),
  shaping(["lseg", "##", "box"], "point", (segment, box) =>
    pointIfFound(closestInBoxToSegment(box, segment)),
  ),
  shaping(["lseg", "##", "lseg"], "point", (segment, other) =>
    slopeOf(segment) === slopeOf(other)
      ? undefined
      : pointIfFound(closestToSegment(other, segment)),
  ),
  shaping(["point", "##", "box"], "point", (point, box) => pointIfFound(closestInBox(box, point))),
  shaping(["point", "##", "line"], "point", (point, line) =>
    pointIfFound(closestOnLine(line, point)),
  ),
  shaping(["point", "##", "lseg"], "point", (point, segment) =>
    pointIfFound(closestToPoint(segment, point)),
  ),
  shaping(["line", "#", "line"], "point", meetingOfLines),
  shaping(["lseg", "#", "lseg"], "point", meetingOfSegments),
  shaping(["box", "#", "box"], "box", (left, right) => {
    if (!boxesOverlap(left, right)) return undefined;
    return {
      high: { x: lesser(left.high.x, right.high.x), y: lesser(left.high.y, right.high.y) },
      low: { x: greater(left.low.x, right.low.x), y: greater(left.low.y, right.low.y) },
    };
  }),
  centering("box", centerOfBox),
  centering("lseg", ({ from, to }) => middle(from, to)),
  centering("circle", ({ center }) => center),
  centering("polygon", (polygon) => circleOfPolygon(polygon).center),
];

const CONTENTS: readonly GeometricOperator[] = [
  ...contents("point", "box", boxHasPoint),
  ...contents("point", "path", pathHasPoint),
  ...contents("point", "polygon", ({ points }, point) => isWithin(point, points)),
  ...contents("point", "circle", ({ center, radius }, point) => distance(center, point) <= radius),
  ...contents("box", "box", boxHasBox),
  ...contents("polygon", "polygon", polygonHasPolygon),
  ...contents("circle", "circle", (outer, inner) =>
    isUpTo(distance(outer.center, inner.center), subtract(outer.radius, inner.radius)),
  ),
  ...contents("point", "line", lineHasPoint, false),
  ...contents("point", "lseg", segmentHasPoint, false),
  ...contents(
    "lseg",
    "line",
    (line, { from, to }) => lineHasPoint(line, from) && lineHasPoint(line, to),
    false,
  ),
  ...contents(
    "lseg",
    "box",
    (box, { from, to }) => boxHasPoint(box, from) && boxHasPoint(box, to),
    false,
  ),
];

const TESTS: readonly GeometricOperator[] = [
  ...comparisons("box", areaOfBox),
  ...comparisons("circle", areaOfCircle),
  ...comparisons("lseg", lengthOf),
  ...comparisons("path", ({ points }) => points.length),
  ...positions("point", (point) => ({ high: point, low: point }), TOLERANT).filter(
    ([name]) => !name.includes("&"),
  ),
  ...positions("box", (box) => box, TOLERANT),
  ...positions("polygon", ({ points }) => boundsOf(points), EXACT),
  ...positions("circle", boxAroundCircle, TOLERANT),
  ...tests("point", {
    "~=": areSamePoint,
    "<>": (left, right) => !areSamePoint(left, right),
    "<^": (left, right) => isBelow(left.y, right.y),
    ">^": (left, right) => isAbove(left.y, right.y),
    "?-": (left, right) => areNear(left.y, right.y),
    "?|": (left, right) => areNear(left.x, right.x),
  }),
  ...tests("lseg", {
    "=": (left, right) => areSamePoint(left.from, right.from) && areSamePoint(left.to, right.to),
    "<>": (left, right) => !areSamePoint(left.from, right.from) || !areSamePoint(left.to, right.to),
    "?#": (left, right) => meetingOfSegments(left, right) !== undefined,
    "?||": (left, right) => areNear(slopeOf(left), slopeOf(right)),
    "?-|": (left, right) => areNear(slopeOf(left), inverseSlope(right)),
  }),
  ...tests("line", {
    "=": areSameLine,
    "?#": (left, right) => meetingOfLines(left, right) !== undefined,
    "?||": (left, right) => meetingOfLines(left, right) === undefined,
    "?-|": arePerpendicular,
  }),
  ...tests("box", {
    "~=": (left, right) => areSamePoint(left.high, right.high) && areSamePoint(left.low, right.low),
    "&&": boxesOverlap,
    "?#": boxesOverlap,
    "<^": (left, right) => isUpTo(left.high.y, right.low.y),
    ">^": (left, right) => isFrom(left.low.y, right.high.y),
  }),
  ...tests("path", { "?#": pathsMeet }),
  ...tests("polygon", { "~=": areSamePolygons, "&&": polygonsOverlap }),
  ...tests("circle", {
    "<>": (left, right) => areApart(areaOfCircle(left), areaOfCircle(right)),
    "~=": areSameCircles,
    "&&": (left, right) =>
      isUpTo(distance(left.center, right.center), add(left.radius, right.radius)),
  }),
  binary(["line", "?#", "box"], BOOLEAN, (line, box) => boxMeetsLine(box, line)),
  binary(["lseg", "?#", "box"], BOOLEAN, (segment, box) => boxMeetsSegment(box, segment)),
  binary(["lseg", "?#", "line"], BOOLEAN, (segment, line) => {
    return meetingOfSegmentAndLine(segment, line) !== undefined;
  }),
  prefix("?-", "line", BOOLEAN, ({ a }) => isZero(a)),
  prefix("?|", "line", BOOLEAN, ({ b }) => isZero(b)),
  prefix("?-", "lseg", BOOLEAN, ({ from, to }) => areNear(from.y, to.y)),
  prefix("?|", "lseg", BOOLEAN, ({ from, to }) => areNear(from.x, to.x)),
  prefix("@-@", "lseg", DOUBLE, lengthOf),
  prefix("@-@", "path", DOUBLE, lengthOfPath),
  prefix("#", "path", INT, ({ points }) => points.length),
  prefix("#", "polygon", INT, ({ points }) => points.length),
];

function areSameCircles(left: Circle, right: Circle): boolean {
  const areBothNan = Number.isNaN(left.radius) && Number.isNaN(right.radius);
  const isSameRadius = areBothNan || areNear(left.radius, right.radius);
  return isSameRadius && areSamePoint(left.center, right.center);
}

const OPERATORS: ReadonlyMap<string, OperatorForm> = new Map([
  ...ARITHMETIC,
  ...DISTANCES,
  ...POINTS,
  ...CONTENTS,
  ...TESTS,
]);

/**
 * Returns the form of an operator on geometric values. An untyped operand takes the type of the
 * other operand. If there is no such operator, the untyped operand takes the only type that the
 * operator accepts at this position.
 */
export function resolveGeometry(
  op: string,
  left: DataType,
  right: DataType,
): OperatorForm | undefined {
  if (op === "IS DISTINCT FROM" || op === "IS NOT DISTINCT FROM") {
    const same = resolveGeometry("=", left, right);
    return same && distinctForm(same, op === "IS DISTINCT FROM");
  }
  if (isGeometric(left) && isGeometric(right)) {
    return OPERATORS.get(`${left.kind} ${op} ${right.kind}`);
  }
  if (isGeometric(left) && right.kind === "unknown") {
    return formBeside(left.kind, (other) => `${left.kind} ${op} ${other}`);
  }
  if (isGeometric(right) && left.kind === "unknown") {
    return formBeside(right.kind, (other) => `${other} ${op} ${right.kind}`);
  }
  return undefined;
}

function distinctForm(same: OperatorForm, whenDistinct: boolean): OperatorForm {
  return {
    ...same,
    seesNull: true,
    evaluate: (values) => {
      const hasNull = values.includes(null);
      const areSame = hasNull ? values.every((each) => each === null) : same.evaluate(values);
      return areSame !== whenDistinct;
    },
  };
}

function formBeside(
  known: GeometricKind,
  nameOf: (other: GeometricKind) => string,
): OperatorForm | undefined {
  const same = OPERATORS.get(nameOf(known));
  if (same !== undefined) return same;
  const forms = GEOMETRIC_KINDS.flatMap((kind) => OPERATORS.get(nameOf(kind)) ?? []);
  return forms.length === 1 ? forms[0] : undefined;
}

/** Returns the form of a prefix operator on a geometric value. */
export function resolveGeometryPrefix(op: string, operand: DataType): OperatorForm | undefined {
  return OPERATORS.get(`${op} ${operand.kind}`);
}
