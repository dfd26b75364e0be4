/**
 * Defines trigonometric functions in degrees. Round results are exact: sind(30) is 0.5.
 *
 * As in PostgreSQL, an angle is reduced to a part of the first quadrant. The result is divided by
 * the computed value of a reference angle (30, 45 or 60 degrees), so that rounding errors at these
 * angles cancel out.
 */
import { DatabaseError } from "../../base/errors.ts";
import { DOUBLE } from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { ScalarFunction } from "./base/function.ts";

const RADIANS = Math.PI / 180;

/**
 * The values of trigonometric functions and their inverses at the reference angles, as computed.
 */
const SINE_30 = Math.sin(30 * RADIANS);
const COSINE_60_RISE = 1 - Math.cos(60 * RADIANS);
const ASIN_HALF = Math.asin(0.5);
const ACOS_HALF = Math.acos(0.5);
const ATAN_1 = Math.atan(1);

/** Computes the sine of an angle from 0 to 30 degrees. */
function smallSine(degrees: number): number {
  return Math.sin(degrees * RADIANS) / SINE_30 / 2;
}

function smallCosine(degrees: number): number {
  return 1 - (1 - Math.cos(degrees * RADIANS)) / COSINE_60_RISE / 2;
}

/** Computes the sine of an angle from 0 to 90 degrees. */
function quarterSine(degrees: number): number {
  return degrees <= 30 ? smallSine(degrees) : smallCosine(90 - degrees);
}

function quarterCosine(degrees: number): number {
  return degrees <= 60 ? smallCosine(degrees) : smallSine(90 - degrees);
}

const TANGENT_45 = quarterSine(45) / quarterCosine(45);
const COTANGENT_45 = quarterCosine(45) / quarterSine(45);

/**
 * An angle reduced to the first quadrant, and the signs of its sine and cosine in the original
 * quadrant.
 */
interface QuarterAngle {
  readonly degrees: number;
  readonly sineSign: number;
  readonly cosineSign: number;
}

function quarterOf(name: string, angle: number): QuarterAngle {
  if (Math.abs(angle) === Number.POSITIVE_INFINITY) throw undefinedFor(name, angle);
  let degrees = Math.abs(angle % 360);
  let sineSign = angle < 0 ? -1 : 1;
  let cosineSign = 1;
  if (degrees > 180) {
    degrees = 360 - degrees;
    sineSign = -sineSign;
  }
  if (degrees > 90) {
    degrees = 180 - degrees;
    cosineSign = -1;
  }
  return { degrees, sineSign, cosineSign };
}

function undefinedFor(name: string, value: number): DatabaseError {
  return new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot compute ${name}(${value}): the result is undefined`,
  );
}

function sine(angle: number): number {
  const { degrees, sineSign } = quarterOf("sind", angle);
  return sineSign * quarterSine(degrees);
}

function cosine(angle: number): number {
  const { cosineSign, degrees } = quarterOf("cosd", angle);
  return cosineSign * quarterCosine(degrees);
}

function tangent(angle: number): number {
  const { cosineSign, degrees, sineSign } = quarterOf("tand", angle);
  // Adding 0 turns -0 to 0.
  return (sineSign * cosineSign * quarterSine(degrees)) / quarterCosine(degrees) / TANGENT_45 + 0;
}

function cotangent(angle: number): number {
  const { cosineSign, degrees, sineSign } = quarterOf("cotd", angle);
  const value = quarterCosine(degrees) / quarterSine(degrees);
  return (sineSign * cosineSign * value) / COTANGENT_45 + 0;
}

/** Computes the arcsine of a value from 0 to 1, in degrees. */
function quarterArcSine(value: number): number {
  return value <= 0.5
    ? (Math.asin(value) / ASIN_HALF) * 30
    : 90 - (Math.acos(value) / ACOS_HALF) * 60;
}

function quarterArcCosine(value: number): number {
  return value <= 0.5
    ? 90 - (Math.asin(value) / ASIN_HALF) * 30
    : (Math.acos(value) / ACOS_HALF) * 60;
}

function arcSine(value: number): number {
  if (Math.abs(value) > 1) throw undefinedFor("asind", value);
  return value >= 0 ? quarterArcSine(value) : -quarterArcSine(-value);
}

function arcCosine(value: number): number {
  if (Math.abs(value) > 1) throw undefinedFor("acosd", value);
  return value >= 0 ? quarterArcCosine(value) : 90 + quarterArcSine(-value);
}

function arcTangent(value: number): number {
  return (Math.atan(value) / ATAN_1) * 45;
}

function ofOne(name: string, compute: (value: number) => number): ScalarFunction[] {
  return functionsNamed(
    [name],
    overload([DOUBLE], DOUBLE, ([value = null]) => compute(value as number)),
  );
}

export const MATH_DEGREES_FUNCTIONS: readonly ScalarFunction[] = [
  ...ofOne("sind", sine),
  ...ofOne("cosd", cosine),
  ...ofOne("tand", tangent),
  ...ofOne("cotd", cotangent),
  ...ofOne("asind", arcSine),
  ...ofOne("acosd", arcCosine),
  ...ofOne("atand", arcTangent),
  ...functionsNamed(
    ["atan2d"],
    overload(
      [DOUBLE, DOUBLE],
      DOUBLE,
      ([y = null, x = null]) => (Math.atan2(y as number, x as number) / ATAN_1) * 45,
    ),
  ),
];
