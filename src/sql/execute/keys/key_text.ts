/** Encodes keys of several values as a single string, for use in maps and sets. */
import { assert } from "../../../base/assert.ts";
import { type DataType, groupKeyOf, type Value } from "../../../types/mod.ts";

/** Returns a string for a key. Only equal keys have equal strings. NULL equals NULL. */
export function keyTextOf(types: readonly DataType[], key: readonly Value[]): string {
  let text = "";
  for (let i = 0; i < key.length; i += 1) {
    const type = types[i];
    assert(type !== undefined, "key encoding: key column has no type");
    const value = key[i] ?? null;
    if (value === null) {
      text += "n";
      continue;
    }
    const part = String(groupKeyOf(type, value));
    text += `${part.length}:${part}`;
  }
  return text;
}
