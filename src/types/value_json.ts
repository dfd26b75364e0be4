/** Converts SQL values to JSON and back, whatever their type. */
import { isArrayValue } from "./array_shape.ts";
import { isRowValue, type Value } from "./value.ts";

/** A SQL value as JSON. A value that JSON cannot represent is an object with a type tag. */
export type ValueJson =
  | null
  | boolean
  | number
  | string
  | { readonly bigint: string }
  | { readonly bytes: string }
  | { readonly floats: readonly number[] }
  | { readonly interval: readonly [months: number, days: number, micros: number] }
  | { readonly array: readonly ValueJson[] }
  | { readonly row: readonly ValueJson[] };

export function jsonFromValue(value: Value): ValueJson {
  if (typeof value === "bigint") return { bigint: value.toString() };
  if (value === null || typeof value !== "object") return value;
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString("base64") };
  if (value instanceof Float32Array) return { floats: [...value] };
  if (isArrayValue(value)) return { array: value.map(jsonFromValue) };
  if (isRowValue(value)) return { row: value.cells.map(jsonFromValue) };
  return { interval: [value.months, value.days, value.micros] };
}

export function valueFromJson(json: ValueJson): Value {
  if (json === null || typeof json !== "object") return json;
  if ("bigint" in json) return BigInt(json.bigint);
  if ("bytes" in json) return new Uint8Array(Buffer.from(json.bytes, "base64"));
  if ("floats" in json) return Float32Array.from(json.floats);
  if ("array" in json) return json.array.map(valueFromJson);
  if ("row" in json) return { cells: json.row.map(valueFromJson) };
  const [months, days, micros] = json.interval;
  return { months, days, micros };
}
