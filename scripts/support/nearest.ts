/** Finds the name that a misspelt word was most likely meant to be. */

/** Returns the most similar of `names`; undefined if none is similar enough. */
export function nearestOf(word: string, names: readonly string[]): string | undefined {
  const [nearest] = names
    .map((name) => ({ name, distance: distanceOf(word, name) }))
    .filter(({ name, distance }) => name.startsWith(word) || distance <= name.length / 3)
    .toSorted((a, b) => a.distance - b.distance);
  return nearest?.name;
}

/**
 * Returns the edit distance between two words: how many characters have to be inserted, deleted or
 * replaced to turn one word into the other.
 */
function distanceOf(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [index, letter] of from.split("").entries()) {
    const next = [index + 1];
    for (const [column, other] of to.split("").entries()) {
      const replaced = (row[column] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
