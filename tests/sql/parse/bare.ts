/**
 * Removes from syntax trees the parts that comparisons must ignore: positions, source texts,
 * absent members and, if one of the trees has been printed, secrets.
 */

/** Replaces a secret in a printed statement. */
const MASK = "***";

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * Returns a syntax tree as plain data with sorted keys, without `_location`, `source`,
 * `sourceStart` and absent members.
 */
export function bare(node: unknown): Json {
  if (Array.isArray(node)) return node.map(bare);
  if (node instanceof Uint8Array || node instanceof Int32Array) return [...node];
  if (typeof node !== "object" || node === null) return node as Json;
  const members = Object.entries(node)
    .filter(([key, value]) => key !== "_location" && key !== "sourceStart" && value !== undefined)
    // The `source` of RESTORE is data. Any other `source` repeats SQL text.
    .filter(([key]) => key !== "source" || ("type" in node && node.type === "restore"))
    .map(([key, value]) => [key, bare(value)] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members);
}

/** Masks every secret in a stripped tree, because a printed statement masks secrets. */
export function masked(tree: Json): Json {
  return rewrite(tree, (node) => {
    const copy = { ...node };
    const isSetting = node["name"] === "credentials" || node["name"] === "config";
    if (isSetting && typeof node["value"] === "string") copy["value"] = MASK;
    if (typeof node["password"] === "string") copy["password"] = MASK;
    if (typeof node["oauth"] === "string") copy["oauth"] = MASK;
    return copy;
  });
}

/** Rewrites every object of a tree, starting from the leaves. */
export function rewrite(node: Json, change: (node: { [key: string]: Json }) => Json): Json {
  if (Array.isArray(node)) return node.map((one: Json) => rewrite(one, change));
  if (typeof node !== "object" || node === null) return node;
  const copy: { [key: string]: Json } = {};
  for (const [key, value] of Object.entries(node)) copy[key] = rewrite(value, change);
  return change(copy);
}

export type { Json };
