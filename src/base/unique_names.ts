/**
 * Parses JSON objects in which every name is unique. Programs disagree on which value to use if a
 * name occurs twice, so a token with a repeated name could mean one thing to its issuer and
 * another to this server.
 */

/**
 * Parses a JSON object in which every name is unique. Nested objects are not checked, because no
 * decision depends on their names.
 *
 * @returns Undefined if the bytes are not UTF-8, or do not form an object with unique names.
 */
export function objectWithUniqueNames(
  bytes: Uint8Array,
): Readonly<Record<string, unknown>> | undefined {
  let value: unknown;
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    // Bytes that are not UTF-8 or not JSON do not form an object. The caller reports the error.
    return undefined;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  if (topLevelNameCount(text) !== Object.keys(value).length) return undefined;
  return value as Readonly<Record<string, unknown>>;
}

/** Counts the names in the outermost object of a valid JSON text, including repeated names. */
function topLevelNameCount(json: string): number {
  let depth = 0;
  let count = 0;
  for (const [token] of json.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:]/g)) {
    if (token === "{" || token === "[") depth += 1;
    else if (token === "}" || token === "]") depth -= 1;
    else if (token === ":" && depth === 1) count += 1;
  }
  return count;
}
