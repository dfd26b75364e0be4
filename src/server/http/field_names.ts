/**
 * Refuses a body in which a member has a commonly mistaken name, such as `{"query": …}` instead of
 * `{"sql": …}`. Other unknown members of SQL bodies are ignored, so that newer clients work with
 * older servers. The bodies of `/v1/api/auth/…` must not contain any unknown member: a misspelt
 * request to end all sessions would otherwise end only one and still look successful.
 */
import { DatabaseError } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";
import { withoutMiddle } from "../../base/short_text.ts";

/** The known members, each with the names that people mistakenly use for it. */
export type FieldNames = Readonly<Record<string, readonly string[]>>;

/**
 * The maximum length of an unknown name in a message, in UTF-16 code units. A longer name is
 * shortened.
 */
const NAME_SHOWN_MAX = 64;

/**
 * Refuses fields with a name that is a common mistake for a known field.
 * @throws {DatabaseError} INVALID_INPUT
 */
export function refuseNearMisses(
  fields: Readonly<Record<string, unknown>>,
  names: FieldNames,
): void {
  const miss = nearMissOf(fields, names);
  if (miss === undefined) return;
  throw new DatabaseError("INVALID_INPUT", `Cannot read ${miss}`);
}

/**
 * Returns a clause that names the mistaken member and the intended one; undefined if no member is
 * mistaken.
 */
export function nearMissOf(
  fields: Readonly<Record<string, unknown>>,
  names: FieldNames,
): string | undefined {
  for (const name in fields) {
    if (Object.hasOwn(names, name)) continue;
    const meant = meantBy(name, names);
    if (meant !== undefined && !Object.hasOwn(fields, meant)) {
      return `"${name}": did you mean "${meant}"?`;
    }
  }
  return undefined;
}

/**
 * Returns a clause that names an unknown member, and either the intended member or all known ones;
 * undefined if every member is known.
 */
export function unknownFieldOf(
  fields: Readonly<Record<string, unknown>>,
  names: FieldNames,
): string | undefined {
  const unknown = Object.keys(fields).find((name) => !Object.hasOwn(names, name));
  if (unknown === undefined) return undefined;
  const known = Object.keys(names).map((name) => `"${name}"`);
  const expected = known.length === 1 ? `only ${known[0]}` : `one of ${known.join(", ")}`;
  return (
    nearMissOf(fields, names) ?? `"${withoutMiddle(unknown, NAME_SHOWN_MAX)}": expected ${expected}`
  );
}

/**
 * Returns a clause about a URL parameter that belongs in the body; undefined if there is none.
 *
 * @param query The part of the URL after the question mark.
 */
export function misplacedInQuery(query: string, names: FieldNames): string | undefined {
  if (query === "") return undefined;
  for (const name of new URLSearchParams(query).keys()) {
    const member = Object.hasOwn(names, name) ? name : meantBy(name, names);
    if (member !== undefined) {
      return `"${name}" in the URL: in this endpoint, "${member}" belongs in the request body`;
    }
  }
  return undefined;
}

function meantBy(name: string, names: FieldNames): string | undefined {
  const lower = name.toLowerCase();
  for (const [known, others] of Object.entries(names)) {
    if (others.includes(lower)) return known;
  }
  return nearestName(name, Object.keys(names));
}

/** Returns a description of the type of a JSON value, for messages. */
export function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  switch (typeof value) {
    case "object":
      return "an object";
    case "string":
      return "a string";
    case "boolean":
      return `${value}`;
    default:
      return `a ${typeof value}`;
  }
}
