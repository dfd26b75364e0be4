/**
 * Defines families of types: values of one family compare and unify; only casts connect different
 * families. Also defines how the values of each type compare, which is all that an index or a sort
 * needs to know.
 */
import { isCollated } from "./collation.ts";
import type { DataType, GeometricKind, TypeKind } from "./data_type.ts";

export type TypeClass =
  | "boolean"
  | "number"
  | "text"
  | "json"
  | "moment"
  | "time"
  | "interval"
  | "enum"
  | "uuid"
  | "money"
  | "bit"
  | "inet"
  | "macaddr"
  | "macaddr8"
  | "bytes"
  | "embedding"
  | "array"
  | "range"
  | "multirange"
  | GeometricKind
  | "jsonpath"
  | "row"
  | "tsvector"
  | "tsquery"
  | "unknown";

export function typeClass(type: DataType): TypeClass {
  switch (type.kind) {
    case "smallint":
    case "int":
    case "bigint":
    case "decimal":
    case "numeric":
    case "float":
    case "double":
      return "number";
    case "date":
    case "timestamp":
    case "datetime":
      return "moment";
    case "file":
      return "json";
    case "cidr":
      return "inet";
    case "timetz":
      return "time";
    default:
      return type.kind;
  }
}

/** Types with the same kind have the same equality and order of values. */
export type TypeOrder =
  /**
   * Integers, represented by numbers or bigints. A DECIMAL is represented by its unscaled integer.
   */
  | "whole"
  | "double"
  /** Strings that sort in the order of the values; equal values may have different strings. */
  | "numeric"
  | "boolean"
  /**
   * Text, ordered by UTF-8 bytes. Geometric values, which have no order in SQL, have this one where
   * storage and live queries tell values apart.
   */
  | "text"
  /** Text, ordered by a collation of ICU. */
  | "collated"
  | "json"
  /** The words of documents, and conditions over such words, in PostgreSQL's order. */
  | "search"
  | "bytes"
  | "embedding"
  | "interval"
  | "array"
  | "row"
  /** Values whose type is not known yet: strings, or NULL. */
  | "unknown";

const ORDERS: Readonly<Record<TypeKind, TypeOrder>> = {
  boolean: "boolean",
  smallint: "whole",
  int: "whole",
  bigint: "whole",
  float: "double",
  double: "double",
  decimal: "whole",
  numeric: "numeric",
  text: "text",
  json: "json",
  timestamp: "whole",
  datetime: "whole",
  date: "whole",
  time: "whole",
  timetz: "text",
  uuid: "text",
  money: "whole",
  bit: "text",
  inet: "text",
  cidr: "text",
  macaddr: "text",
  macaddr8: "text",
  bytes: "bytes",
  embedding: "embedding",
  file: "json",
  interval: "interval",
  jsonpath: "text",
  enum: "double",
  tsvector: "search",
  tsquery: "search",
  range: "numeric",
  multirange: "numeric",
  point: "text",
  lseg: "text",
  line: "text",
  box: "text",
  path: "text",
  polygon: "text",
  circle: "text",
  array: "array",
  row: "row",
  unknown: "unknown",
};

/** Returns the kind of equality and order of a type's values. */
export function typeOrder(
  type: Exclude<DataType, { readonly kind: "array" | "row" }>,
): Exclude<TypeOrder, "array" | "row">;
export function typeOrder(type: DataType): TypeOrder;
export function typeOrder(type: DataType): TypeOrder {
  return isCollated(type) ? "collated" : ORDERS[type.kind];
}

/** Whether values of a type are integers in memory, and are compared as integers. */
export function isWholeType(type: DataType): boolean {
  return typeOrder(type) === "whole";
}

/** Whether values of a type are numbers or bigints in memory, which sort numerically. */
export function isNumberType(type: DataType): boolean {
  const order = typeOrder(type);
  return order === "whole" || order === "double";
}

/** Whether values of a type are compared as strings and ordered by their bytes. */
export function isTextType(type: DataType): boolean {
  return typeOrder(type) === "text";
}
