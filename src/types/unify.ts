/**
 * Finds the common type of several expressions: CASE, COALESCE, UNION, VALUES, ARRAY[…], IN.
 */
import { derivedCollation, type TextType, withCollation } from "./collation.ts";
import {
  BIT,
  COMPUTED_PRECISION_MAX,
  type DataType,
  isExactDecimal,
  isInteger,
  isNumeric,
  isRangeType,
  NUMERIC,
  OID,
  type RowField,
  sameRanges,
  sameType,
  TEXT,
  TIMETZ,
  TRIMMED_NUMERIC,
  VARBIT,
} from "./data_type.ts";
import { typeClass } from "./type_class.ts";

/**
 * Returns the type to which all expressions are cast implicitly. Untyped literals adopt the type
 * of the other expressions, or become text if all expressions are untyped.
 *
 * @returns undefined if there is no such type.
 */
export function commonType(types: readonly DataType[]): DataType | undefined {
  return commonBy(types, commonOfTwo);
}

/**
 * Returns the type in which values are compared. It is the same as {@linkcode commonType}, except
 * that numbers may be converted to a common scale, because a comparison does not display them.
 */
export function comparedType(types: readonly DataType[]): DataType | undefined {
  return commonBy(
    types,
    (left, right) =>
      comparedDecimal(left, right) ?? comparedKey(left, right) ?? commonOfTwo(left, right),
  );
}

/**
 * Returns the type of NUMERIC key columns if a value of this type is compared with an exact
 * number; otherwise undefined.
 */
function comparedKey(left: DataType, right: DataType): DataType | undefined {
  const isKey = [left, right].some((type) => type.kind === "numeric" && type.isTrimmed === true);
  const areExact = [left, right].every((type) => isInteger(type) || isExactDecimal(type));
  return isKey && areExact ? TRIMMED_NUMERIC : undefined;
}

function commonBy(types: readonly DataType[], join: typeof commonOfTwo): DataType | undefined {
  let common: DataType | undefined;
  let hasUntyped = false;
  for (const type of types) {
    if (type.kind === "unknown") {
      hasUntyped ||= type.isNull !== true;
      continue;
    }
    common = common === undefined ? type : join(common, type);
    if (common === undefined) return undefined;
  }
  if (common === undefined) return TEXT;
  return hasUntyped ? unbounded(common) : common;
}

/**
 * Returns the type that an untyped literal adopts from a value of the given type. It has no length
 * or precision, so the literal is neither truncated nor rounded.
 */
export function unbounded(type: DataType): DataType {
  switch (type.kind) {
    case "text":
      return type.collation === undefined ? TEXT : withoutLength(type);
    case "decimal":
    case "numeric":
      return NUMERIC;
    case "array":
      return { kind: "array", element: unbounded(type.element) };
    case "range":
    case "multirange":
      return { ...type, bound: unbounded(type.bound) };
    default:
      return withoutDigits(type);
  }
}

const NUMERIC_ORDER: readonly string[] = [
  "smallint",
  "int",
  "bigint",
  "decimal",
  "numeric",
  "float",
  "double",
];

function commonOfTwo(left: DataType, right: DataType): DataType | undefined {
  if (isNumeric(left) && isNumeric(right)) return commonNumeric(left, right);
  if (typeClass(left) !== typeClass(right)) return commonOid(left, right);
  if (left.kind === "array" && right.kind === "array") {
    const element = commonOfTwo(left.element, right.element);
    return element === undefined ? undefined : { kind: "array", element };
  }
  if (left.kind === "row" && right.kind === "row") return commonRow(left, right);
  if (isRangeType(left) && isRangeType(right)) {
    if (left.kind !== right.kind || !sameRanges(left, right)) return undefined;
    // Prefers the untrimmed type, because the bounds of ranges in a key column have lost their
    // trailing zeros.
    return sameType(left.bound, TRIMMED_NUMERIC) ? right : left;
  }
  if (left.kind === "text" && right.kind === "text") return commonText(left, right);
  if (left.kind === "embedding" || left.kind === "enum")
    return sameType(left, right) ? left : undefined;
  return left.kind === right.kind ? commonOfKind(left, right) : commonAcrossKinds(left, right);
}

/** Returns OID as the common type of an OID and an integer. */
function commonOid(left: DataType, right: DataType): DataType | undefined {
  const isCommon = [left, right].every((type) => typeClass(type) === "oid" || isInteger(type));
  return isCommon ? OID : undefined;
}

function commonText(left: TextType, right: TextType): DataType {
  const common = left.lengthMax === right.lengthMax ? left : TEXT;
  if (left.collation === undefined && right.collation === undefined) return common;
  const { collation, isExplicit } = derivedCollation([left, right]);
  return withCollation(common, collation, isExplicit);
}

function withoutLength({ collation, isExplicit }: TextType): DataType {
  return withCollation(TEXT, collation, isExplicit);
}

function commonOfKind(left: DataType, right: DataType): DataType {
  if (left.kind === "bit" && right.kind === "bit") {
    return sameType(left, right) ? left : commonBits(left, right);
  }
  if (left.kind === "json" && right.kind === "json") return left.binary ? left : right;
  return sameDigits(left, right) ? left : withoutDigits(left);
}

type RowType = Extract<DataType, { kind: "row" }>;

/** Unifies the fields of two rows by position. The result has the field names of the left row. */
function commonRow(left: RowType, right: RowType): DataType | undefined {
  if (left.named !== undefined && sameType(left, right)) return left;
  if (left.fields.length !== right.fields.length) return undefined;
  const fields: RowField[] = [];
  for (const [index, { name, type }] of left.fields.entries()) {
    const common = commonType([type, right.fields[index]?.type ?? type]);
    if (common === undefined) return undefined;
    fields.push({ name, type: common });
  }
  return { kind: "row", fields };
}

function commonAcrossKinds(left: DataType, right: DataType): DataType | undefined {
  const kinds = new Set([left.kind, right.kind]);
  if (typeClass(left) === "oid") return OID;
  if (kinds.has("cidr")) return left.kind === "cidr" ? right : left;
  // The common type of FILE and JSON is JSON. The common type of a date and a timestamp is the
  // timestamp type.
  if (kinds.has("file")) return left.kind === "file" ? right : left;
  if (kinds.has("time")) return TIMETZ;
  if (kinds.has("datetime")) return withoutDigits(left.kind === "datetime" ? left : right);
  return withoutDigits(left.kind === "timestamp" ? left : right);
}

function commonBits(left: DataType & { kind: "bit" }, right: typeof left): DataType {
  return left.isVarying === true || right.isVarying === true ? VARBIT : BIT;
}

function sameDigits(left: DataType, right: DataType): boolean {
  const leftDigits = "digits" in left ? left.digits : undefined;
  return leftDigits === ("digits" in right ? right.digits : undefined);
}

function withoutDigits(type: DataType): DataType {
  switch (type.kind) {
    case "timestamp":
    case "datetime":
    case "time":
    case "timetz":
      return { kind: type.kind };
    case "bit":
      return type.isVarying === true ? VARBIT : BIT;
    default:
      return type;
  }
}

/**
 * Returns the wider of two numeric types, as determined by implicit casts. For numbers of
 * different scales, the result is NUMERIC without a precision, in which each number keeps its
 * scale.
 */
function commonNumeric(left: DataType, right: DataType): DataType {
  const [narrow, wide] = rankOf(left) <= rankOf(right) ? [left, right] : [right, left];
  if (wide.kind === "numeric") return sameType(left, right) ? left : NUMERIC;
  if (wide.kind !== "decimal") return wide;
  const other = decimalOf(narrow);
  return other.scale === wide.scale ? widestDecimal(other, wide) : NUMERIC;
}

/** Returns the wider of two types if both are exact and their precision is known. */
function comparedDecimal(left: DataType, right: DataType): DecimalType | undefined {
  if (left.kind !== "decimal" && right.kind !== "decimal") return undefined;
  const areExact = [left, right].every((type) => isInteger(type) || type.kind === "decimal");
  return areExact ? widestDecimal(decimalOf(left), decimalOf(right)) : undefined;
}

function rankOf(type: DataType): number {
  return NUMERIC_ORDER.indexOf(type.kind);
}

export type DecimalType = Extract<DataType, { kind: "decimal" }>;

/** Returns the decimal type that can represent all values of an exact numeric type. */
export function decimalOf(type: DataType): DecimalType {
  switch (type.kind) {
    case "decimal":
      return type;
    case "smallint":
      return { kind: "decimal", precision: 5, scale: 0 };
    case "int":
      return { kind: "decimal", precision: 10, scale: 0 };
    default:
      return { kind: "decimal", precision: 19, scale: 0 };
  }
}

function widestDecimal(left: DecimalType, right: DecimalType): DecimalType {
  const scale = Math.max(left.scale, right.scale);
  const whole = Math.max(left.precision - left.scale, right.precision - right.scale);
  return {
    kind: "decimal",
    precision: Math.min(COMPUTED_PRECISION_MAX, Math.max(whole + scale, 1)),
    scale,
  };
}
