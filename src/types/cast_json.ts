/**
 * Reading the scalar that a JSON document is.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";
import { jsonKindAt, jsonRoot } from "./json_text.ts";
import type { Value } from "./value.ts";

/**
 * Returns the boolean or the text of the number; JSON null becomes NULL.
 *
 * @throws {DatabaseError} INVALID_VALUE if the document is of another kind.
 */
export function scalarFromJson(text: string, wanted: "boolean" | "number"): Value {
  const root = jsonRoot(text);
  const kind = jsonKindAt(text, root.start);
  if (kind === "null") return null;
  if (kind === wanted) {
    const scalar = text.slice(root.start, root.end);
    return wanted === "boolean" ? scalar === "true" : scalar;
  }
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot cast the JSON ${excerpt(text)} to a ${wanted}: it is of kind ${kind}`,
  );
}
