/**
 * Defines SQL's data types: a closed union, with the facts about each type that every layer needs.
 *
 * A parameter that changes which values fit (precision, scale, length, dimensions) is part of the
 * type. Only expressions have the type `unknown`: an untyped literal, NULL, or a parameter before
 * its context is known.
 */
import { type Collation, sameCollation } from "./collation.ts";
import type { DomainType } from "./domain_type.ts";
import { type EnumType, enumName, qualifiedTypeName } from "./enum_type.ts";
import { isObjectNameKind, type ObjectNameKind } from "./object_name.ts";
import { isUnsignedKind, type UnsignedKind } from "./unsigned.ts";

export type DataType =
  | { readonly kind: "boolean" }
  | { readonly kind: "smallint" }
  | { readonly kind: "int" }
  | { readonly kind: "bigint" }
  | { readonly kind: "float" }
  | { readonly kind: "double" }
  /** All values have the same scale. Only expressions have a precision above 38. */
  | { readonly kind: "decimal"; readonly precision: number; readonly scale: number }
  /**
   * A number with any number of digits; each value has its own scale. `size` is set only if
   * `decimal` cannot represent that size. `isTrimmed` marks a key column: its values have no
   * trailing zeros, so equal values are equal strings.
   */
  | { readonly kind: "numeric"; readonly size?: NumericSize; readonly isTrimmed?: true }
  /**
   * `lengthMax` is the maximum number of code points; undefined for TEXT. `isExplicit` marks an
   * expression with a COLLATE clause, which overrides the collations of columns.
   */
  | {
      readonly kind: "text";
      readonly lengthMax?: number;
      readonly collation?: Collation;
      readonly isExplicit?: true;
    }
  /**
   * A JSON value keeps its text as written. `binary` marks JSONB, whose text is in canonical form.
   */
  | { readonly kind: "json"; readonly binary: boolean }
  | { readonly kind: "timestamp"; readonly digits?: number }
  | { readonly kind: "datetime"; readonly digits?: number }
  | { readonly kind: "date" }
  | { readonly kind: "time"; readonly digits?: number }
  | { readonly kind: "timetz"; readonly digits?: number }
  | { readonly kind: "uuid" }
  | { readonly kind: "money" }
  /** `length` is undefined for a literal and for BIT VARYING without a maximum length. */
  | { readonly kind: "bit"; readonly length?: number; readonly isVarying?: true }
  /** A network address with the length of its network prefix, and a network. */
  | { readonly kind: "inet" }
  | { readonly kind: "cidr" }
  | { readonly kind: "macaddr" }
  | { readonly kind: "macaddr8" }
  | { readonly kind: "bytes" }
  | { readonly kind: "embedding"; readonly dimensions: number }
  | { readonly kind: "file" }
  | { readonly kind: "interval" }
  /** A path into JSON documents, as canonical text. */
  | { readonly kind: "jsonpath" }
  /** An XML document, or the content of an element, as text. Its values have no order. */
  | { readonly kind: "xml" }
  | { readonly kind: "enum"; readonly enumType: EnumType }
  /** A document's lexemes, and a condition on such lexemes. Both are stored as canonical text. */
  | { readonly kind: "tsvector" }
  | { readonly kind: "tsquery" }
  /** `domain` is set if the elements have a domain. A cast or a write checks its conditions. */
  | { readonly kind: "array"; readonly element: DataType; readonly domain?: DomainType }
  /**
   * Unsigned integers with which PostgreSQL identifies objects, transactions and positions in
   * its log.
   */
  | { readonly kind: UnsignedKind }
  /** References to objects of the database. No column can have these types. */
  | { readonly kind: ObjectNameKind }
  /** The geometric types. Their values have no order. */
  | { readonly kind: GeometricKind }
  /**
   * A range between two bounds of the type `bound`, and a set of such ranges. `named` is set if
   * CREATE TYPE has defined the two types.
   */
  | { readonly kind: "range"; readonly bound: DataType; readonly named?: NamedRange }
  | { readonly kind: "multirange"; readonly bound: DataType; readonly named?: NamedRange }
  /**
   * A row. Columns can have this type only if CREATE TYPE has defined it, which gives it a name.
   */
  | { readonly kind: "row"; readonly fields: readonly RowField[]; readonly named?: TypeLabel }
  /**
   * An expression whose type is not known yet. `isNull` is set for a literal NULL, which has no
   * digits to keep. `isJson` is set for a request parameter that is a list or an object; its text
   * is JSON.
   */
  | { readonly kind: "unknown"; readonly isNull?: true; readonly isJson?: true };

/**
 * The declared precision and scale of a NUMERIC. The scale may be negative, or larger than the
 * precision.
 */
export interface NumericSize {
  readonly precision: number;
  readonly scale: number;
}

/** A field of a row type. */
export interface RowField {
  readonly name: string;
  readonly type: DataType;
  /**
   * The domain of a field in a named row type. A cast or a write checks the domain's conditions.
   */
  readonly domain?: DomainType;
}

/** The name and id of a type defined by CREATE TYPE, or of the type of a table's rows. */
export interface TypeLabel {
  /** The id of the type or of the table. No type has the same id as a table. */
  readonly typeId: number;
  readonly namespace: string;
  readonly name: string;
  /** Set for the type of a table's rows. No column can have such a type. */
  readonly isOfTable?: true;
}

/** The name and id of a range type defined by CREATE TYPE, and those of its multirange type. */
export interface NamedRange extends TypeLabel {
  readonly multirange: TypeLabel;
}

export const GEOMETRIC_KINDS = [
  "point",
  "lseg",
  "line",
  "box",
  "path",
  "polygon",
  "circle",
] as const;

export type GeometricKind = (typeof GEOMETRIC_KINDS)[number];

export type GeometricType = DataType & { readonly kind: GeometricKind };

export type UnsignedType = DataType & { readonly kind: UnsignedKind };

export type ObjectNameType = DataType & { readonly kind: ObjectNameKind };

export type RangeType = DataType & { readonly kind: "range" | "multirange" };

export type NumericType = DataType & { readonly kind: "numeric" };

export type TypeKind = DataType["kind"];

export const BOOLEAN: DataType = { kind: "boolean" };
export const SMALLINT: DataType = { kind: "smallint" };
export const INT: DataType = { kind: "int" };
export const BIGINT: DataType = { kind: "bigint" };
export const FLOAT: DataType = { kind: "float" };
export const DOUBLE: DataType = { kind: "double" };
export const NUMERIC: NumericType = { kind: "numeric" };
export const TRIMMED_NUMERIC: NumericType = { kind: "numeric", isTrimmed: true };
export const TEXT: DataType = { kind: "text" };
export const JSON_TEXT: DataType = { kind: "json", binary: false };
export const JSONB: DataType = { kind: "json", binary: true };
export const TIMESTAMP: DataType = { kind: "timestamp" };
export const DATETIME: DataType = { kind: "datetime" };
export const DATE: DataType = { kind: "date" };
export const TIME: DataType = { kind: "time" };
export const TIMETZ: DataType = { kind: "timetz" };
export const UUID: DataType = { kind: "uuid" };
export const MONEY: DataType = { kind: "money" };
export const BIT: DataType = { kind: "bit" };
export const VARBIT: DataType = { kind: "bit", isVarying: true };
export const INET: DataType = { kind: "inet" };
export const CIDR: DataType = { kind: "cidr" };
export const MACADDR: DataType = { kind: "macaddr" };
export const MACADDR8: DataType = { kind: "macaddr8" };
export const BYTES: DataType = { kind: "bytes" };
export const FILE: DataType = { kind: "file" };
export const INTERVAL: DataType = { kind: "interval" };
export const JSONPATH: DataType = { kind: "jsonpath" };
export const XML: DataType = { kind: "xml" };
export const TSVECTOR: DataType = { kind: "tsvector" };
export const TSQUERY: DataType = { kind: "tsquery" };
export const OID: UnsignedType = { kind: "oid" };
export const XID: UnsignedType = { kind: "xid" };
export const XID8: UnsignedType = { kind: "xid8" };
export const PG_LSN: UnsignedType = { kind: "pg_lsn" };
export const REGCLASS: ObjectNameType = { kind: "regclass" };
export const POINT: GeometricType = { kind: "point" };
export const BOX: GeometricType = { kind: "box" };
export const UNKNOWN: DataType = { kind: "unknown" };
export const UNKNOWN_NULL: DataType = { kind: "unknown", isNull: true };
export const UNKNOWN_JSON: DataType = { kind: "unknown", isJson: true };

/** The maximum precision of a column of type `decimal`. */
export const DECIMAL_PRECISION_MAX = 38;

/** The maximum precision of an expression of type `decimal`. */
export const COMPUTED_PRECISION_MAX = 1000;

export function decimalType(precision: number, scale: number): DataType {
  return { kind: "decimal", precision, scale };
}

/** Whether two types are the same, including their parameters. */
export function sameType(left: DataType, right: DataType): boolean {
  if (left.kind !== right.kind) return false;
  switch (left.kind) {
    case "text":
      return right.kind === "text" && sameText(left, right);
    case "json":
      return right.kind === "json" && left.binary === right.binary;
    case "embedding":
      return right.kind === "embedding" && left.dimensions === right.dimensions;
    case "enum":
      return isSameEnum(left, right);
    case "decimal":
    case "bit":
    case "numeric":
      return sameSizes(left, right);
    case "array":
    case "row":
    case "range":
    case "multirange":
      return sameParts(left, right);
    case "timestamp":
    case "datetime":
    case "time":
    case "timetz":
      return sameDigits(left, right);
    default:
      return true;
  }
}

function sameText(left: DataType & { kind: "text" }, right: typeof left): boolean {
  return left.lengthMax === right.lengthMax && sameCollation(left.collation, right.collation);
}

type TimeType = DataType & { kind: "timestamp" | "datetime" | "time" | "timetz" };

function sameDigits(left: TimeType, right: DataType): boolean {
  return right.kind === left.kind && (left.digits ?? 6) === (right.digits ?? 6);
}

function sameSizes(
  left: DataType & { kind: "bit" | "decimal" | "numeric" },
  right: DataType,
): boolean {
  if (left.kind === "numeric") {
    if (right.kind !== "numeric" || left.isTrimmed !== right.isTrimmed) return false;
    const { size } = right;
    return left.size?.precision === size?.precision && left.size?.scale === size?.scale;
  }
  if (left.kind === "bit") {
    return (
      right.kind === "bit" && left.length === right.length && left.isVarying === right.isVarying
    );
  }
  return (
    right.kind === "decimal" && left.precision === right.precision && left.scale === right.scale
  );
}

function isSameEnum(left: DataType & { kind: "enum" }, right: DataType): boolean {
  return right.kind === "enum" && left.enumType.typeId === right.enumType.typeId;
}

function sameParts(left: DataType, right: DataType): boolean {
  if ("bound" in left) {
    return "bound" in right && sameRanges(left, right) && sameType(left.bound, right.bound);
  }
  if (left.kind === "array") return right.kind === "array" && sameType(left.element, right.element);
  return left.kind === "row" && right.kind === "row" && sameFields(left.fields, right.fields);
}

function sameFields(left: readonly RowField[], right: readonly RowField[]): boolean {
  if (left.length !== right.length) return false;
  return left.every(({ name, type }, index) => {
    const other = right[index];
    return other !== undefined && name === other.name && sameType(type, other.type);
  });
}

export function isInteger(type: DataType): boolean {
  return type.kind === "smallint" || type.kind === "int" || type.kind === "bigint";
}

/** Whether values of a type are represented as strings in memory. */
export function isStringKind(kind: TypeKind): boolean {
  switch (kind) {
    case "numeric":
    case "text":
    case "json":
    case "uuid":
    case "file":
    case "jsonpath":
    case "xml":
    case "tsvector":
    case "tsquery":
    case "timetz":
    case "bit":
    case "inet":
    case "cidr":
    case "macaddr":
    case "macaddr8":
    case "range":
    case "multirange":
      return true;
    default:
      return isGeometricKind(kind) || isUnsignedKind(kind) || isObjectNameKind(kind);
  }
}

function isGeometricKind(kind: TypeKind): kind is GeometricKind {
  return (GEOMETRIC_KINDS as readonly string[]).includes(kind);
}

export function isGeometric(type: DataType): type is GeometricType {
  return isGeometricKind(type.kind);
}

export function isUnsigned(type: DataType): type is UnsignedType {
  return isUnsignedKind(type.kind);
}

/**
 * Whether values of a type identify objects of the database and are shown as the names of these
 * objects.
 */
export function isObjectName(type: DataType): type is ObjectNameType {
  return isObjectNameKind(type.kind);
}

/**
 * Whether values of a type can be sorted and grouped. XML has no operators `=` and `<`. The
 * operators of geometric types, if any, compare areas or lengths with a tolerance.
 */
export function hasOrder(type: DataType): boolean {
  if (type.kind === "array") return hasOrder(type.element);
  if (type.kind === "row") return type.fields.every((field) => hasOrder(field.type));
  return type.kind !== "xml" && !isGeometric(type);
}

/**
 * Whether two types are for the same ranges, or for sets of them. A bound in a key counts as the
 * same as one outside a key.
 */
export function sameRanges(left: RangeType, right: RangeType): boolean {
  return left.bound.kind === right.bound.kind && left.named?.typeId === right.named?.typeId;
}

/** Returns the type of the ranges in the values of a type. */
export function rangeTypeOf(type: RangeType): RangeType {
  return { ...type, kind: "range" };
}

/** Returns the type of sets of the ranges in the values of a type. */
export function multirangeTypeOf(type: RangeType): RangeType {
  return { ...type, kind: "multirange" };
}

/** Returns the name that CREATE TYPE gave to a type; undefined if it gave none. */
export function definedNameOf(type: DataType): TypeLabel | undefined {
  switch (type.kind) {
    case "enum":
      return type.enumType;
    case "row":
    case "range":
      return type.named;
    case "multirange":
      return type.named?.multirange;
    default:
      return undefined;
  }
}

/** Whether values of a type are ranges or sets of ranges. */
export function isRangeType(type: DataType): type is RangeType {
  return type.kind === "range" || type.kind === "multirange";
}

/** Whether a type is NUMERIC in SQL, in either of its two representations. */
export function isExactDecimal(type: DataType): boolean {
  return type.kind === "decimal" || type.kind === "numeric";
}

export function isNumeric(type: DataType): boolean {
  return isInteger(type) || isExactDecimal(type) || type.kind === "float" || type.kind === "double";
}

/**
 * Returns a type's name for `PG_TYPEOF`, messages and information_schema. Types that PostgreSQL
 * also has keep their PostgreSQL names.
 */
export function typeName(type: DataType): string {
  switch (type.kind) {
    case "decimal":
      return `numeric(${type.precision},${type.scale})`;
    case "numeric":
      return numericTypeName(type.size);
    case "text":
      return type.lengthMax === undefined ? "text" : `character varying(${type.lengthMax})`;
    case "json":
      return type.binary ? "jsonb" : "json";
    case "timestamp":
      return `timestamp${digitsText(type.digits)} without time zone`;
    case "datetime":
      return `timestamp${digitsText(type.digits)} with time zone`;
    case "time":
      return `time${digitsText(type.digits)} without time zone`;
    case "timetz":
      return `time${digitsText(type.digits)} with time zone`;
    case "bit":
      return bitTypeName(type);
    case "embedding":
      return `embedding(${type.dimensions})`;
    case "enum":
      return enumName(type.enumType);
    case "array":
      return `${type.domain ? qualifiedTypeName(type.domain) : typeName(type.element)}[]`;
    case "row":
      return type.named === undefined ? "record" : qualifiedTypeName(type.named);
    case "unknown":
      return type.isJson === true ? "list or object" : type.kind;
    default:
      return otherTypeName(type);
  }
}

function otherTypeName(type: DataType): string {
  if (isRangeType(type)) {
    const defined = definedNameOf(type);
    if (defined !== undefined) return qualifiedTypeName(defined);
    return `${RANGE_PREFIXES[type.bound.kind] ?? ""}${type.kind}`;
  }
  return OTHER_NAMES[type.kind] ?? type.kind;
}

/** Returns the name of a type without its parameters, as `pg_typeof` shows it. */
export function bareTypeName(type: DataType): string {
  switch (type.kind) {
    case "decimal":
    case "numeric":
      return "numeric";
    case "text":
      return type.lengthMax === undefined ? "text" : "character varying";
    case "timestamp":
    case "datetime":
    case "time":
    case "timetz":
      return typeName({ kind: type.kind });
    case "bit":
      return type.isVarying === true ? "bit varying" : "bit";
    case "array":
      return `${type.domain ? qualifiedTypeName(type.domain) : bareTypeName(type.element)}[]`;
    default:
      return typeName(type);
  }
}

/** The names, without parameters, of types whose name differs from their kind. */
const OTHER_NAMES: Readonly<Partial<Record<TypeKind, string>>> = {
  int: "integer",
  float: "real",
  double: "double precision",
  bytes: "bytea",
};

/** The prefixes of the names of range types, by the type of their bounds. */
const RANGE_PREFIXES: Readonly<Partial<Record<TypeKind, string>>> = {
  int: "int4",
  bigint: "int8",
  numeric: "num",
  date: "date",
  timestamp: "ts",
  datetime: "tstz",
};

/** The built-in types of ranges and multiranges. */
export const RANGE_TYPES: readonly RangeType[] = [
  INT,
  BIGINT,
  NUMERIC,
  DATE,
  TIMESTAMP,
  DATETIME,
].flatMap((bound): RangeType[] => [
  { kind: "range", bound },
  { kind: "multirange", bound },
]);

function numericTypeName(size: NumericSize | undefined): string {
  return size === undefined ? "numeric" : `numeric(${size.precision},${size.scale})`;
}

function bitTypeName({ isVarying, length }: DataType & { kind: "bit" }): string {
  const name = isVarying === true ? "bit varying" : "bit";
  return length === undefined ? name : `${name}(${length})`;
}

function digitsText(digits: number | undefined): string {
  return digits === undefined ? "" : `(${digits})`;
}
