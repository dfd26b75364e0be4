/**
 * Defines families of types: values of one family can be compared and unified, whereas different
 * families are connected only by casts. Also defines how the values of each type compare, which is
 * all that an index or a sort needs to know.
 */
import { isCollated } from "./collation.ts";
import type { DataType, GeometricKind, TypeKind } from "./data_type.ts";
import { isObjectNameKind } from "./object_name.ts";

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
  | "oid"
  | "xid"
  | "xid8"
  | "pg_lsn"
  | "bytes"
  | "embedding"
  | "array"
  | "range"
  | "multirange"
  | GeometricKind
  | "jsonpath"
  | "xml"
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
      return isObjectNameKind(type.kind) ? "oid" : type.kind;
  }
}

/**
 * The kinds of equality and order. Types of the same kind compare their values in the same way.
 */
export type TypeOrder =
  /**
   * Integers, represented as numbers or bigints. A DECIMAL is represented by its unscaled integer.
   */
  | "whole"
  | "double"
  /** Strings that sort like the values. Equal values may have different strings. */
  | "numeric"
  | "boolean"
  /**
   * Text, ordered by UTF-8 bytes. Geometric values and XML have no order in SQL, but storage and
   * live queries use this order to tell their values apart.
   */
  | "text"
  /** Text, ordered by an ICU collation. */
  | "collated"
  | "json"
  /** TSVECTOR and TSQUERY values, in PostgreSQL's order. */
  | "search"
  | "bytes"
  | "embedding"
  | "interval"
  | "array"
  | "row"
  /** Values of a type that is not known yet: strings, or NULL. */
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
  oid: "text",
  xid: "text",
  xid8: "text",
  pg_lsn: "text",
  regclass: "text",
  regcollation: "text",
  regnamespace: "text",
  regproc: "text",
  regprocedure: "text",
  regrole: "text",
  regtype: "text",
  bytes: "bytes",
  embedding: "embedding",
  file: "json",
  interval: "interval",
  jsonpath: "text",
  xml: "text",
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

/** Returns the kind of order by which values of a type are compared. */
export function typeOrder(
  type: Exclude<DataType, { readonly kind: "array" | "row" }>,
): Exclude<TypeOrder, "array" | "row">;
export function typeOrder(type: DataType): TypeOrder;
export function typeOrder(type: DataType): TypeOrder {
  return isCollated(type) ? "collated" : ORDERS[type.kind];
}

/** Whether a type's values are represented in memory as integers and compared as integers. */
export function isWholeType(type: DataType): boolean {
  return typeOrder(type) === "whole";
}

/** Whether a type's values are numbers or bigints in memory, which sort numerically. */
export function isNumberType(type: DataType): boolean {
  const order = typeOrder(type);
  return order === "whole" || order === "double";
}

/** Whether a type's values are compared as strings and ordered by their bytes. */
export function isTextType(type: DataType): boolean {
  return typeOrder(type) === "text";
}
