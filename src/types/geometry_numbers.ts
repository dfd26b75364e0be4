/**
 * Computes with the coordinates of shapes as PostgreSQL does: arithmetic refuses results beyond
 * the range of doubles, and comparisons have a tolerance of 1e-6. A comparison with tolerance is
 * false if a number is NaN.
 */
import { DatabaseError } from "../base/errors.ts";
import type { Box, Line, PlanePoint } from "./geometry.ts";

/** Coordinates at most this far apart are considered equal. */
const TOLERANCE = 1e-6;

export function isZero(value: number): boolean {
  return Math.abs(value) <= TOLERANCE;
}

export function areNear(left: number, right: number): boolean {
  return left === right || Math.abs(left - right) <= TOLERANCE;
}

export function areApart(left: number, right: number): boolean {
  return left !== right && Math.abs(left - right) > TOLERANCE;
}

export function isBelow(left: number, right: number): boolean {
  return left + TOLERANCE < right;
}

export function isUpTo(left: number, right: number): boolean {
  return left <= right + TOLERANCE;
}

export function isAbove(left: number, right: number): boolean {
  return left > right + TOLERANCE;
}

export function isFrom(left: number, right: number): boolean {
  return left + TOLERANCE >= right;
}

/** Whether `left` is below `right`, without tolerance. NaN is above all numbers. */
export function isLess(left: number, right: number): boolean {
  return Number.isNaN(right) ? !Number.isNaN(left) : left < right;
}

function areSame(left: number, right: number): boolean {
  return left === right || (Number.isNaN(left) && Number.isNaN(right));
}

export function lesser(left: number, right: number): number {
  return isLess(left, right) ? left : right;
}

export function greater(left: number, right: number): number {
  return isLess(right, left) ? left : right;
}

function isInfinite(value: number): boolean {
  return value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY;
}

function outOfRange(): DatabaseError {
  return new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    "Cannot compute the shape: one of its numbers is outside the range of double precision",
  );
}

/** @throws {DatabaseError} VALUE_OUT_OF_RANGE */
export function add(left: number, right: number): number {
  const sum = left + right;
  if (isInfinite(sum) && !isInfinite(left) && !isInfinite(right)) throw outOfRange();
  return sum;
}

/** @throws {DatabaseError} VALUE_OUT_OF_RANGE */
export function subtract(left: number, right: number): number {
  return add(left, -right);
}

/** @throws {DatabaseError} VALUE_OUT_OF_RANGE */
export function multiply(left: number, right: number): number {
  const product = left * right;
  if (isInfinite(product) && !isInfinite(left) && !isInfinite(right)) throw outOfRange();
  if (product === 0 && left !== 0 && right !== 0) throw outOfRange();
  return product;
}

/** @throws {DatabaseError} VALUE_OUT_OF_RANGE, DIVISION_BY_ZERO */
export function divide(left: number, right: number): number {
  if (right === 0 && !Number.isNaN(left)) {
    throw new DatabaseError("DIVISION_BY_ZERO", "Cannot divide by zero");
  }
  const quotient = left / right;
  if (isInfinite(quotient) && !isInfinite(left)) throw outOfRange();
  if (quotient === 0 && left !== 0 && !isInfinite(right)) throw outOfRange();
  return quotient;
}

/**
 * Returns the length of the hypotenuse. The formula is PostgreSQL's, because other formulas give
 * results that differ in the last digit.
 */
export function hypotenuse(width: number, height: number): number {
  if (isInfinite(width) || isInfinite(height)) return Number.POSITIVE_INFINITY;
  if (Number.isNaN(width) || Number.isNaN(height)) return Number.NaN;
  const long = Math.max(Math.abs(width), Math.abs(height));
  const short = Math.min(Math.abs(width), Math.abs(height));
  if (short === 0) return long;
  const ratio = short / long;
  const length = long * Math.sqrt(1 + ratio * ratio);
  if (isInfinite(length) || length === 0) throw outOfRange();
  return length;
}

export function distance(one: PlanePoint, other: PlanePoint): number {
  return hypotenuse(subtract(one.x, other.x), subtract(one.y, other.y));
}

function hasNan({ x, y }: PlanePoint): boolean {
  return Number.isNaN(x) || Number.isNaN(y);
}

/**
 * Whether two points are the same. If a coordinate is NaN, the points are the same only if all of
 * their coordinates are identical.
 */
export function areSamePoint(one: PlanePoint, other: PlanePoint): boolean {
  if (hasNan(one) || hasNan(other)) return areSame(one.x, other.x) && areSame(one.y, other.y);
  return areNear(one.x, other.x) && areNear(one.y, other.y);
}

export function areSameLine(one: Line, other: Line): boolean {
  const isExact = [one.a, one.b, one.c, other.a, other.b, other.c].some(Number.isNaN);
  if (isExact) {
    return areSame(one.a, other.a) && areSame(one.b, other.b) && areSame(one.c, other.c);
  }
  const ratio = ratioOf(one, other);
  return (
    areNear(one.a, multiply(ratio, other.a)) &&
    areNear(one.b, multiply(ratio, other.b)) &&
    areNear(one.c, multiply(ratio, other.c))
  );
}

/** Returns the factor between the coefficients of two representations of the same line. */
function ratioOf(one: Line, other: Line): number {
  if (!isZero(other.a)) return divide(one.a, other.a);
  if (!isZero(other.b)) return divide(one.b, other.b);
  return isZero(other.c) ? 1 : divide(one.c, other.c);
}

/** Returns the slope of the line through two points; infinity if the line is vertical. */
export function slope(one: PlanePoint, other: PlanePoint): number {
  if (areNear(one.x, other.x)) return Number.POSITIVE_INFINITY;
  if (areNear(one.y, other.y)) return 0;
  return divide(subtract(one.y, other.y), subtract(one.x, other.x));
}

export function lineThrough(point: PlanePoint, gradient: number): Line {
  if (isInfinite(gradient)) return { a: -1, b: 0, c: point.x };
  if (gradient === 0) return { a: 0, b: -1, c: point.y };
  // Adding 0 turns -0 into 0.
  const c = subtract(point.y, multiply(gradient, point.x)) + 0;
  return { a: gradient, b: -1, c };
}

/** Returns the midpoint of two points. */
export function middle(one: PlanePoint, other: PlanePoint): PlanePoint {
  return { x: divide(add(one.x, other.x), 2), y: divide(add(one.y, other.y), 2) };
}

/** Returns the box with the given opposite corners. */
export function boxBetween(one: PlanePoint, other: PlanePoint): Box {
  const [left, right] = isLess(other.x, one.x) ? [other.x, one.x] : [one.x, other.x];
  const [bottom, top] = isLess(other.y, one.y) ? [other.y, one.y] : [one.y, other.y];
  return { high: { x: right, y: top }, low: { x: left, y: bottom } };
}
