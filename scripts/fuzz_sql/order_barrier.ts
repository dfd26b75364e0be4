/**
 * The one fault of PostgreSQL that is listed: over grouping sets it takes an ORDER BY key for
 * redundant that a join or WHERE makes equal to another, though a set without it makes it NULL.
 *
 * PostgreSQL itself is the judge: it is asked again with the groups behind `OFFSET 0`, where it
 * knows of no equality, and the order of those rows is right. So an order of Tidemark's that is
 * wrong stays a difference, also in such a query.
 */
import { findNode, list, type Node, node, textOf } from "./tree.ts";

/** Why the order of PostgreSQL's rows may be another one. */
export const REDUNDANT_KEY =
  "PostgreSQL leaves out an ORDER BY key that equals another but where a grouping set makes it NULL";

/** The query that orders its groups where no equality is known; undefined for any other query. */
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
