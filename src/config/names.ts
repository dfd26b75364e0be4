/**
 * Finds "did you mean" suggestions for the names of the configuration. These names are long, so
 * even a key with several typing errors can be recognised by its other letters.
 */
import { nearestName } from "../base/nearest_name.ts";

/** Returns the name most similar to a given name; undefined if no name is similar enough. */
export function nearestKey(given: string, names: Iterable<string>): string | undefined {
  return nearestName(given, names, Math.max(2, Math.floor(given.length / 3)));
}
