/**
 * Reading the scalar that a JSON document is.
 */
import { DatabaseError } from "../base/errors.ts";
import { excerpt } from "./excerpt.ts";
import { jsonKindAt, jsonRoot, jsonString, textOfJsonString } from "./json_text.ts";
import type { Value } from "./value.ts";

/**
 * The boolean, the text of the number, or the text: of a string its content, of anything else the
 * document. JSON null is NULL as boolean and number.
 *
 * @throws {DatabaseError} INVALID_VALUE if the document is of another kind, or what no text may
 * hold.
 */
export function scalarFromJson(text: string, wanted: "boolean" | "number" | "text"): Value {
  const root = jsonRoot(text);
  const kind = jsonKindAt(text, root.start);
  if (wanted === "text") {
    return kind === "string" ? textOfJsonString(jsonString(text, root)) : text;
  }
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
