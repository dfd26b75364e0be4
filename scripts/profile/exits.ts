/**
 * Exits from optimised code: the runtime found what it had not expected, went on in slower code,
 * and compiled again later. Few at the start are how it learns; many in a server that has run for
 * a while mean a function that stays slow.
 */

/** Names may begin with a hash, and have none at all, before the one that tells functions apart. */
const EXIT =
  /Speculation failure in ([^\n]*?#[A-Za-z0-9]{6}):[^\n]{0,200}?\b(DFG|FTL)[^\n]{0,120}?\(bc#(\d+)[^,\n]*, (\w+)\)/g;

export interface Exits {
  /** "FTL: name#a1B2c3 at 119: reason" */
  readonly what: string;
  readonly count: number;
}

/** Counts exits in what a process wrote that prints each of them; most first. */
export function exitsIn(output: string): readonly Exits[] {
  const counts = new Map<string, number>();
  for (const [, name = "", tier = "", at = "", reason = ""] of output.matchAll(EXIT)) {
    const what = `${tier}: ${name} at ${at}: ${reason}`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  const exits = [...counts].map(([what, count]) => ({ what, count }));
  return exits.toSorted((left, right) => right.count - left.count);
}
