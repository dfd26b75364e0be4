/**
 * Generates statements from patterns: every `#` in a pattern is replaced by each value in its
 * list.
 */

/**
 * Returns a SELECT for every combination of a pattern and values. Two lists of values produce
 * every pair of their values.
 */
export function selects(
  patterns: readonly string[],
  ...lists: readonly (readonly string[])[]
): string[] {
  const found: string[] = [];
  for (const pattern of patterns) {
    for (const values of combinations(lists)) {
      let at = 0;
      const text = pattern.replaceAll("#", () => {
        const value = values[at % values.length] ?? "";
        at += 1;
        return value;
      });
      found.push(`SELECT ${text}`);
    }
  }
  return found;
}

function combinations(lists: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const [list, ...others] = lists;
  if (list === undefined) return [[]];
  const tails = combinations(others);
  return list.flatMap((value) => tails.map((tail) => [value].concat(tail)));
}
