/**
 * Trees without what comparisons must not see: positions, source texts, absent members.
 */

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A tree as plain data with sorted keys, without `_location`, `source`, `sourceStart` and absent members. */
export function bare(node: unknown): Json {
  if (Array.isArray(node)) return node.map(bare);
  if (node instanceof Uint8Array || node instanceof Int32Array) return [...node];
  if (typeof node !== "object" || node === null) return node as Json;
  const members = Object.entries(node)
    .filter(([key, value]) => key !== "_location" && key !== "sourceStart" && value !== undefined)
    // RESTORE has a source that is no text of the statement.
    .filter(([key]) => key !== "source" || ("type" in node && node.type === "restore"))
    .map(([key, value]) => [key, bare(value)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members);
}

/** Changes every object of a tree from the leaves up. */
export function rewrite(node: Json, change: (node: { [key: string]: Json }) => Json): Json {
  if (Array.isArray(node)) return node.map((one: Json) => rewrite(one, change));
  if (typeof node !== "object" || node === null) return node;
  const copy: { [key: string]: Json } = {};
  for (const [key, value] of Object.entries(node)) copy[key] = rewrite(value, change);
  return change(copy);
}

export type { Json };
