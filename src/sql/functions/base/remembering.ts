/**
 * What was made of the latest texts, kept: patterns are mostly the same from row to row, and cost
 * more to compile than to use.
 */

/** Compiled patterns kept at a time; a column of patterns falls back to compiling each. */
const PATTERNS_KEPT = 64;

/** Remembers what `compile` made of the latest texts. */
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
