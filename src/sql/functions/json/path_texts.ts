/**
 * The path of a JSON operator or function: an array of keys and positions, as texts.
 */
import { assert } from "../../../base/assert.ts";
import type { Value } from "../../../types/mod.ts";

/** The texts of an array, without its NULLs. */
export function textsOf(value: Value): string[] {
  assert(Array.isArray(value), "a text array is an array");
  return (value as readonly Value[]).filter((item) => typeof item === "string");
}
