/**
 * Handles the only listed fault of PostgreSQL: over grouping sets, it drops an ORDER BY key as
 * redundant if a join or WHERE makes the key equal to another key, although the key is NULL in a
 * set that does not contain it.
 *
 * PostgreSQL itself decides: it is asked again with the groups isolated by `OFFSET 0`, so that it
 * knows of no equality and orders the rows correctly. A wrong order from Tidemark therefore still
 * counts as a difference, even in such a query.
 */
import { findNode, list, type Node, node, textOf } from "./tree.ts";

/** The reason why PostgreSQL's rows may be in a different order. */
export const REDUNDANT_KEY =
  "PostgreSQL drops an ORDER BY key that equals another key, even if a grouping set makes it NULL";

/**
 * Rewrites a query so that PostgreSQL knows of no equality when it orders the groups. Returns
 * undefined if the rewrite does not apply.
 */
export function behindBarrier(root: Node): string | undefined {
  const outputs = findNode(root, "outputs");
  const tail = root.pieces.at(-1);
  const [, keys, ...limits] = typeof tail === "object" && tail.sort === "tail" ? tail.pieces : [];
  if (outputs === undefined || typeof keys !== "object") return undefined;
  const group = root.pieces.find((piece) => typeof piece === "object" && piece.sort === "group");
  if (typeof group !== "object" || findNode(group, "sets") === undefined) return undefined;
  const names = outputs.pieces.map((_, i) => `c${i + 1}`);
  const others: Node[] = [];
  const order = keys.pieces.map((key) => {
    const [by = "", direction = ""] = typeof key === "string" ? [key] : key.pieces;
    const text = textOf(by);
    if (/^\d+$/.test(text)) return `c${text}${textOf(direction)}`;
    others.push(node("other", by));
    return `k${others.length}${textOf(direction)}`;
  });
  const inner = root.pieces
    .slice(0, -1)
    .map((piece) => (piece === outputs ? list("outputs", [...outputs.pieces, ...others]) : piece));
  const columns = [...names, ...others.map((_, i) => `k${i + 1}`)].join(", ");
  return (
    `SELECT ${names.join(", ")} FROM (${inner.map(textOf).join("")} OFFSET 0) AS q(${columns})` +
    ` ORDER BY ${order.join(", ")}${limits.map(textOf).join("")}`
  );
}
