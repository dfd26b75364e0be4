/** Limits maps to their newest entries. */

/**
 * Moves an entry to the end of a map, and removes the first entry if there are more than
 * `countMax`.
 */
export function putNewest<Key, Value>(
  map: Map<Key, Value>,
  [key, value]: readonly [Key, Value],
  countMax: number,
): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= countMax) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
