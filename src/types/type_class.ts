/**
 * Families of types: within one, values compare and unify; between two, only casts lead. And by
 * what values of a type are equal and in order, which is all that an index or a sort need to know
 * of it.
 */
import type { DataType, TypeKind } from "./data_type.ts";

export type TypeClass =
  | "boolean"
  | "number"
  | "text"
  | "json"
  | "moment"
  | "time"
  | "interval"
  | "uuid"
  | "bytes"
  | "embedding"
  | "array"
  | "unknown";

export function typeClass(type: DataType): TypeClass {
  switch (type.kind) {
    case "smallint":
    case "int":
    case "bigint":
    case "decimal":
    case "float":
    case "double":
      return "number";
    case "date":
    case "timestamp":
    case "datetime":
      return "moment";
    case "file":
      return "json";
    default:
      return type.kind;
  }
}

/** Of types whose values are equal by the same, and in the order of the same. */
export type TypeOrder =
  /** Numbers without a fraction, or bigints; a DECIMAL is one, in units of its scale. */
  | "whole"
  | "double"
  | "boolean"
  /** UTF-8. */
  | "text"
  | "json"
  | "bytes"
  | "embedding"
  | "interval"
  | "array"
  /** What is not typed yet: text, or NULL. */
  | "unknown";

const ORDERS: Readonly<Record<TypeKind, TypeOrder>> = {
  boolean: "boolean",
  smallint: "whole",
  int: "whole",
  bigint: "whole",
  float: "double",
  double: "double",
  decimal: "whole",
  text: "text",
  json: "json",
  timestamp: "whole",
  datetime: "whole",
  date: "whole",
  time: "whole",
  uuid: "text",
  bytes: "bytes",
  embedding: "embedding",
  file: "json",
  interval: "interval",
  array: "array",
  unknown: "unknown",
};

/** By what the values of a type are equal and in order. */
export function typeOrder(
  type: Exclude<DataType, { readonly kind: "array" }>,
): Exclude<TypeOrder, "array">;
export function typeOrder(type: DataType): TypeOrder;
export function typeOrder({ kind }: DataType): TypeOrder {
  return ORDERS[kind];
}

/** Whether values of a type are whole numbers in memory, and equal as such. */
export function isWholeType(type: DataType): boolean {
  return typeOrder(type) === "whole";
}

/** Whether values of a type are numbers in memory, in their order. */
export function isNumberType(type: DataType): boolean {
  const order = typeOrder(type);
  return order === "whole" || order === "double";
}

/** Whether values of a type are equal as texts are, and in the order of their bytes. */
export function isTextType(type: DataType): boolean {
  return typeOrder(type) === "text";
}
