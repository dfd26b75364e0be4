/**
 * "Did you mean" of the configuration. Its names are long, and a key with several mistakes is still
 * known by the rest of it.
 */
import { nearestName } from "../base/nearest_name.ts";

/** The nearest of `names`, or undefined when none is near. */
export function nearestKey(given: string, names: Iterable<string>): string | undefined {
  return nearestName(given, names, Math.max(2, Math.floor(given.length / 3)));
}
