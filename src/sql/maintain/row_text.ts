/**
 * Converts a row to a string. Two rows have the same string if and only if their values are
 * identical.
 */
import type { Value } from "../../types/mod.ts";

export function textOfRow(values: readonly Value[]): string {
  let text = "";
  let separator = "";
  for (const value of values) {
    text += separator + textOf(value);
    separator = ",";
  }
  return text;
}

function textOf(value: Value): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "number":
      return textOfNumber(value);
    case "object":
      return value === null ? "null" : JSON.stringify(plainOf(value));
    default:
      return String(value);
  }
}

/** Converts arrays, bytes and intervals to a form that JSON represents without loss. */
function plainOf(value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`;
  // JSON has no negative zero, and writes NaN and infinities as null.
  if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0))) {
    return { number: textOfNumber(value) };
  }
  if (value instanceof Uint8Array) return Array.from(value);
  if (value instanceof Float32Array) return Array.from(value, plainOf);
  if (Array.isArray(value)) return value.map(plainOf);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value).map(([name, inner]) => [name, plainOf(inner)]);
}

function textOfNumber(value: number): string {
  return Object.is(value, -0) ? "-0" : String(value);
}
