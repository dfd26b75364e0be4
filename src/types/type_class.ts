/**
 * Families of types: within one, values compare and unify; between two, only casts lead.
 */
import type { DataType } from "./data_type.ts";

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
