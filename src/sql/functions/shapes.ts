/** Defines functions on geometric values: constructors, conversions and measurements. */
import {
  areNear,
  BOOLEAN,
  BOX,
  boundsOf,
  boxBetween,
  castValue,
  type DataType,
  DOUBLE,
  GEOMETRIC_KINDS,
  type GeometricKind,
  INT,
  isZero,
  lineOfPoints,
  multiply,
  POINT,
  polygonOfCircle,
  type Shapes,
  shapeOf,
  shapeValue,
  slope,
  subtract,
  type Value,
} from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { Overload, ScalarFunction } from "./base/function.ts";
import { lengthOf } from "./geometry/closest.ts";
import { areaOfPath, lengthOfPath } from "./geometry/outlines.ts";
import { areaOfBox, areaOfCircle, resolveGeometry } from "./operator/operator_geometry.ts";

/** Creates a function of a single shape. */
function of<K extends GeometricKind>(
  kind: K,
  result: DataType,
  compute: (shape: Shapes[K]) => Value,
): Overload {
  return overload([{ kind }], result, ([value = null]) => compute(shapeOf(kind, value)));
}

/** Creates a function of two shapes of the same kind. */
function ofTwo<K extends GeometricKind>(
  kind: K,
  result: DataType,
  compute: (one: Shapes[K], other: Shapes[K]) => Value,
): Overload {
  return overload([{ kind }, { kind }], result, ([one = null, other = null]) =>
    compute(shapeOf(kind, one), shapeOf(kind, other)),
  );
}

/** Creates a function that applies a cast from one geometric type to another. */
function cast(from: GeometricKind, to: GeometricKind): Overload {
  const options = { from: { kind: from }, to: { kind: to }, mode: "explicit" } as const;
  return overload([options.from], options.to, ([value = null]) => castValue(value, options));
}

/** Creates a function that applies an operator to two values of the same kind. */
function operator(op: string, kind: GeometricKind): Overload[] {
  const form = resolveGeometry(op, { kind }, { kind });
  return form === undefined ? [] : [overload([{ kind }, { kind }], form.result, form.evaluate)];
}

/**
 * The target and source types of the functions that convert geometric values. Each function is
 * named after its target type.
 */
const CASTS: readonly (readonly [to: GeometricKind, from: readonly GeometricKind[]])[] = [
  ["point", ["box", "circle", "lseg", "polygon"]],
  ["box", ["circle", "point", "polygon"]],
  ["lseg", ["box"]],
  ["path", ["polygon"]],
  ["polygon", ["box", "circle", "path"]],
  ["circle", ["box", "polygon"]],
];

/**
 * As in PostgreSQL, an untyped argument of `point('…')` is read as a point, because the overload
 * for points comes first.
 */
const NAMED_BY_TYPE: readonly ScalarFunction[] = [
  ...GEOMETRIC_KINDS.flatMap((kind) =>
    functionsNamed(
      [kind],
      overload([{ kind }], { kind }, ([value = null]) => value),
    ),
  ),
  ...CASTS.flatMap(([to, from]) => functionsNamed([to], ...from.map((each) => cast(each, to)))),
];

const CONSTRUCTORS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["point"],
    overload([DOUBLE, DOUBLE], POINT, ([x = null, y = null]) =>
      shapeValue("point", { x: x as number, y: y as number }),
    ),
  ),
  ...functionsNamed(
    ["box"],
    ofTwo("point", BOX, (one, other) => shapeValue("box", boxBetween(one, other))),
  ),
  ...functionsNamed(
    ["lseg"],
    ofTwo("point", { kind: "lseg" }, (from, to) => shapeValue("lseg", { from, to })),
  ),
  ...functionsNamed(
    ["line"],
    ofTwo("point", { kind: "line" }, (one, other) => shapeValue("line", lineOfPoints(one, other))),
  ),
  ...functionsNamed(
    ["circle"],
    overload([POINT, DOUBLE], { kind: "circle" }, ([center = null, radius = null]) =>
      shapeValue("circle", { center: shapeOf("point", center), radius: radius as number }),
    ),
  ),
  ...functionsNamed(
    ["polygon"],
    overload([INT, { kind: "circle" }], { kind: "polygon" }, ([count = null, circle = null]) =>
      shapeValue("polygon", polygonOfCircle(shapeOf("circle", circle), count as number)),
    ),
  ),
];

const MEASURES: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["area"],
    of("box", DOUBLE, areaOfBox),
    of("circle", DOUBLE, areaOfCircle),
    of("path", DOUBLE, areaOfPath),
  ),
  ...functionsNamed(
    ["width"],
    of("box", DOUBLE, ({ high, low }) => subtract(high.x, low.x)),
  ),
  ...functionsNamed(
    ["height"],
    of("box", DOUBLE, ({ high, low }) => subtract(high.y, low.y)),
  ),
  ...functionsNamed(
    ["radius"],
    of("circle", DOUBLE, ({ radius }) => radius),
  ),
  ...functionsNamed(
    ["diameter"],
    of("circle", DOUBLE, ({ radius }) => multiply(radius, 2)),
  ),
  ...functionsNamed(["length"], of("lseg", DOUBLE, lengthOf), of("path", DOUBLE, lengthOfPath)),
  ...functionsNamed(
    ["npoints"],
    of("path", INT, ({ points }) => points.length),
    of("polygon", INT, ({ points }) => points.length),
  ),
  ...functionsNamed(["slope"], ofTwo("point", DOUBLE, slope)),
];

const PARTS: readonly ScalarFunction[] = [
  ...functionsNamed(["center"], cast("box", "point"), cast("circle", "point")),
  ...functionsNamed(["box_center"], cast("box", "point")),
  ...functionsNamed(["circle_center"], cast("circle", "point")),
  ...functionsNamed(["lseg_center"], cast("lseg", "point")),
  ...functionsNamed(["poly_center"], cast("polygon", "point")),
  ...functionsNamed(["diagonal"], cast("box", "lseg")),
  ...functionsNamed(
    ["bound_box"],
    ofTwo("box", BOX, (one, other) =>
      shapeValue("box", boundsOf([one.low, one.high, other.low, other.high])),
    ),
  ),
  ...functionsNamed(
    ["isclosed"],
    of("path", BOOLEAN, ({ isClosed }) => isClosed),
  ),
  ...functionsNamed(
    ["isopen"],
    of("path", BOOLEAN, ({ isClosed }) => !isClosed),
  ),
  ...functionsNamed(
    ["pclose"],
    of("path", { kind: "path" }, (path) => shapeValue("path", { ...path, isClosed: true })),
  ),
  ...functionsNamed(
    ["popen"],
    of("path", { kind: "path" }, (path) => shapeValue("path", { ...path, isClosed: false })),
  ),
  ...functionsNamed(
    ["ishorizontal"],
    of("line", BOOLEAN, ({ a }) => isZero(a)),
    of("lseg", BOOLEAN, ({ from, to }) => areNear(from.y, to.y)),
    ...operator("?-", "point"),
  ),
  ...functionsNamed(
    ["isvertical"],
    of("line", BOOLEAN, ({ b }) => isZero(b)),
    of("lseg", BOOLEAN, ({ from, to }) => areNear(from.x, to.x)),
    ...operator("?|", "point"),
  ),
  ...functionsNamed(["isparallel"], ...operator("?||", "line"), ...operator("?||", "lseg")),
  ...functionsNamed(["isperp"], ...operator("?-|", "line"), ...operator("?-|", "lseg")),
];

export const SHAPE_FUNCTIONS: readonly ScalarFunction[] = [
  ...NAMED_BY_TYPE,
  ...CONSTRUCTORS,
  ...MEASURES,
  ...PARTS,
];
