/**
 * Finds the known name closest to an unknown one, for "did you mean …".
 */

/** The maximum number of edits between a suggested name and the unknown one. */
const EDITS_MAX = 2;

/** The maximum length of a name for which only a single edit is allowed. */
const SHORT_NAME_MAX = 5;

/**
 * Returns the most similar of `names`, or the first of several equally similar ones; undefined if
 * none is similar enough. Case is ignored.
 *
 * @param editsMax The maximum number of edits, inclusive.
 */
export function nearestName(
  name: string,
  names: Iterable<string>,
  editsMax: number = editsOf(name),
): string | undefined {
  let best: string | undefined;
  let bestEdits = editsMax + 1;
  for (const candidate of names) {
    if (Math.abs(candidate.length - name.length) >= bestEdits) continue;
    const edits = editsBetween(name.toLowerCase(), candidate.toLowerCase());
    if (edits >= bestEdits) continue;
    best = candidate;
    bestEdits = edits;
  }
  return best;
}

/**
 * Returns the number of edits allowed for a name. A name of a single letter allows none. In `a.b`,
 * only the length of the last part counts.
 */
function editsOf(name: string): number {
  const { length } = name.slice(name.lastIndexOf(".") + 1);
  if (length < 2) return 0;
  return length <= SHORT_NAME_MAX ? 1 : EDITS_MAX;
}

/**
 * Returns the Levenshtein distance of two words, computed row by row. Swapping two adjacent
 * letters counts as a single edit.
 */
function editsBetween(left: string, right: string): number {
  let before: number[] = [];
  let above = Array.from({ length: right.length + 1 }, (_, i) => i);
  for (let i = 1; i <= left.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const isSame = left[i - 1] === right[j - 1];
      let edits = Math.min(
        (above[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (above[j - 1] ?? 0) + (isSame ? 0 : 1),
      );
      const isSwap = i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      if (isSwap) edits = Math.min(edits, (before[j - 2] ?? 0) + 1);
      row.push(edits);
    }
    before = above;
    above = row;
  }
  return above[right.length] ?? 0;
}
