/** Words the responses to DROP statements. */

/**
 * Returns the response message for a statement that drops objects.
 *
 * @param missing The names that IF EXISTS skipped.
 */
export function droppedMessage(
  kind:
    | "collation"
    | "domain"
    | "function"
    | "index"
    | "materialized view"
    | "sequence"
    | "table"
    | "type"
    | "view",
  { dropped, missing }: { dropped: readonly string[]; missing: readonly string[] },
): string {
  const parts: string[] = [];
  if (dropped.length > 0) parts.push(`${kind} ${dropped.join(", ")} dropped`);
  for (const name of missing) parts.push(`${kind} ${name} does not exist`);
  const message = parts.join("; ");
  return `${message.slice(0, 1).toUpperCase()}${message.slice(1)}`;
}
