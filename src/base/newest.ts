/** Limits the size of maps by removing their oldest entries. */

/**
 * Adds an entry at the end of a map, or moves it there. If the map then has more than `countMax`
 * entries, removes the first.
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
