/**
 * Finds the types that polymorphic types denote in a call. There are two families, each with an
 * element, arrays, ranges and multiranges of it:
 *
 *     anyelement     anyarray             anyrange             anymultirange
 *     anycompatible  anycompatiblearray   anycompatiblerange   anycompatiblemultirange
 *
 * All types of a family depend on the same element. The element of the first family comes from the
 * arguments as they are, and that of the second is their common type. Here, numbers in arguments
 * of the first family are unified, too, unless a range determines their type.
 */
import type { PolymorphicType, RoutineType } from "../../../catalog/mod.ts";
import {
  commonType,
  type DataType,
  isExactDecimal,
  isRangeType,
  multirangeTypeOf,
  type RangeType,
  rangeTypeOf,
  sameRanges,
} from "../../../types/mod.ts";
import { arrayTypeOf } from "../expression/types.ts";

type Family = "compatible" | "same";
type PolymorphicShape = "array" | "element" | "multirange" | "range";

interface FamilyMember {
  readonly family: Family;
  readonly shape: PolymorphicShape;
}

const MEMBERS: ReadonlyMap<PolymorphicType, FamilyMember> = new Map([
  ["anyelement", { family: "same", shape: "element" }],
  ["anyarray", { family: "same", shape: "array" }],
  ["anyrange", { family: "same", shape: "range" }],
  ["anymultirange", { family: "same", shape: "multirange" }],
  ["anycompatible", { family: "compatible", shape: "element" }],
  ["anycompatiblearray", { family: "compatible", shape: "array" }],
  ["anycompatiblerange", { family: "compatible", shape: "range" }],
  ["anycompatiblemultirange", { family: "compatible", shape: "multirange" }],
]);

/** The types that a family denotes. */
interface FamilyTypes {
  readonly element: DataType;
  /** The range type; undefined if no argument determines it. */
  readonly range: RangeType | undefined;
}

/** The types that polymorphic types denote in a call, by family. */
export type ActualTypes = Partial<Readonly<Record<Family, FamilyTypes>>>;

function memberOf(type: RoutineType): FamilyMember | undefined {
  return typeof type === "string" ? MEMBERS.get(type) : undefined;
}

export function isPolymorphic(type: RoutineType): boolean {
  return memberOf(type) !== undefined;
}

/** Whether a type is an array, whatever its elements. */
export function isArrayType(type: RoutineType): boolean {
  return typeof type === "string" ? memberOf(type)?.shape === "array" : type.kind === "array";
}

/** Whether a parameter of one type determines what another type denotes. */
export function determines(parameter: RoutineType, type: RoutineType): boolean {
  const given = memberOf(parameter);
  const wanted = memberOf(type);
  if (wanted === undefined) return true;
  return given?.family === wanted.family && (isOfRange(given) || !isOfRange(wanted));
}

function isOfRange({ shape }: FamilyMember): boolean {
  return shape === "range" || shape === "multirange";
}

/** Returns the type of one of the arguments that a variadic parameter packs into an array. */
export function elementOfType(type: RoutineType): RoutineType {
  if (type === "anyarray") return "anyelement";
  if (type === "anycompatiblearray") return "anycompatible";
  return typeof type === "string" || type.kind !== "array" ? type : type.element;
}

/**
 * Returns the types that the arguments of a call determine; undefined if the arguments contradict
 * one another.
 */
export function actualTypesOf(
  parameters: readonly RoutineType[],
  given: readonly DataType[],
): ActualTypes | undefined {
  const actual: Partial<Record<Family, FamilyTypes>> = {};
  for (const family of ["same", "compatible"] as const) {
    const ofFamily = parameters.flatMap((parameter, i): FamilyArgument[] => {
      const member = memberOf(parameter);
      const type = given[i];
      if (member?.family !== family || type === undefined) return [];
      return [{ shape: member.shape, type }];
    });
    const types = familyTypesOf(ofFamily, family);
    if (types === "none") return undefined;
    if (types !== undefined) actual[family] = types;
  }
  return actual;
}

/** An argument whose parameter has a polymorphic type. */
interface FamilyArgument {
  readonly shape: PolymorphicShape;
  readonly type: DataType;
}

/**
 * Returns the types that the arguments of a family determine; undefined if they determine none, and
 * "none" if they contradict one another.
 */
function familyTypesOf(
  given: readonly FamilyArgument[],
  family: Family,
): FamilyTypes | "none" | undefined {
  const elements: DataType[] = [];
  let range: RangeType | undefined;
  for (const { shape, type } of given) {
    if (shape === "element") elements.push(type);
    if (shape === "element" || type.kind === "unknown") continue;
    if (type.kind !== shape) return "none";
    if (type.kind === "array") elements.push(type.element);
    if (!isRangeType(type)) continue;
    if (range !== undefined && !sameRanges(range, type)) return "none";
    range = rangeTypeOf(type);
  }
  if (elements.length === 0 && range === undefined) return undefined;
  if (family === "same" && range !== undefined) {
    const { bound } = range;
    const fits = elements.every((type) => type.kind === "unknown" || isOneType(type, bound));
    return fits ? { element: bound, range } : "none";
  }
  // The elements of an untyped literal keep their lengths and scales.
  elements.push(...given.filter(isUntypedArray).map(({ type }) => type));
  const element = commonType(range === undefined ? elements : [...elements, range.bound]);
  if (element === undefined) return "none";
  if (range === undefined) return { element, range };
  return isOneType(element, range.bound) ? { element: range.bound, range } : "none";
}

function isUntypedArray({ shape, type }: FamilyArgument): boolean {
  return shape === "array" && type.kind === "unknown";
}

/** Whether two types are equal, apart from the size of decimal numbers. */
function isOneType(left: DataType, right: DataType): boolean {
  return left.kind === right.kind || (isExactDecimal(left) && isExactDecimal(right));
}

/**
 * Returns the type that a polymorphic type denotes; undefined if the arguments do not determine it.
 */
export function actualType(type: RoutineType, actual: ActualTypes): DataType | undefined {
  if (typeof type !== "string") return type;
  const member = memberOf(type);
  const known = member && actual[member.family];
  if (member === undefined || known === undefined) return undefined;
  switch (member.shape) {
    case "array":
      return arrayTypeOf(known.element);
    case "element":
      return known.element;
    case "range":
      return known.range;
    case "multirange":
      return known.range && multirangeTypeOf(known.range);
  }
}
