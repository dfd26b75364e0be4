/**
 * Caches compiled patterns. The pattern rarely changes from row to row, and compiling it costs
 * more than matching with it.
 */

/**
 * The maximum number of compiled patterns in the cache. If a column contains more distinct
 * patterns than this, many of them are compiled again for each row.
 */
const PATTERNS_KEPT = 64;

/** Caches the results of `compile` for the most recently used strings. */
export function remembering<T>(compile: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  let lastText: string | undefined;
  let lastMade: T | undefined;
  return (text) => {
    if (text === lastText && lastMade !== undefined) return lastMade;
    let made = known.get(text);
    if (made === undefined) {
      made = compile(text);
      if (known.size >= PATTERNS_KEPT) known.clear();
      known.set(text, made);
    }
    lastText = text;
    lastMade = made;
    return made;
  };
}
