/**
 * Refuses members that stand in for a known one that is absent: `{"query": …}` for `{"sql": …}`.
 * Unknown members are ignored otherwise, so that newer clients can talk to older servers.
 */
import { DatabaseError } from "../../base/errors.ts";
import { nearestName } from "../../base/nearest_name.ts";

/** The known members, each with names that people use for it by mistake. */
export type FieldNames = Readonly<Record<string, readonly string[]>>;

/** @throws {DatabaseError} INVALID_INPUT */
export function refuseNearMisses(
  fields: Readonly<Record<string, unknown>>,
  names: FieldNames,
): void {
  const miss = nearMissOf(fields, names);
  if (miss === undefined) return;
  throw new DatabaseError("INVALID_INPUT", `Cannot read ${miss}`);
}

/** A clause that names the mistaken member and the meant one; undefined where there is none. */
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

function meantBy(name: string, names: FieldNames): string | undefined {
  const lower = name.toLowerCase();
  for (const [known, others] of Object.entries(names)) {
    if (others.includes(lower)) return known;
  }
  return nearestName(name, Object.keys(names));
}

/** Names a JSON value in a message. */
export function kindOf(value: unknown): string {
  if (value === undefined) return "absent";
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  switch (typeof value) {
    case "object":
      return "an object";
    case "string":
      return "text";
    case "boolean":
      return `${value}`;
    default:
      return `a ${typeof value}`;
  }
}
