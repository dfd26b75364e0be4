/**
 * Counts exits from optimised code. An exit means that the runtime encountered something
 * unexpected, continued in slower code, and compiled the function again later. A few exits during
 * warm-up are normal. If a server that has been running for a while still has many, a function
 * stays slow.
 */

/**
 * Matches the report of an exit from optimised code. A function's name may begin with a hash sign,
 * or be empty. The hash after the name distinguishes functions with the same name.
 */
const EXIT =
  /Speculation failure in ([^\n]*?#[A-Za-z0-9]{6}):[^\n]{0,200}?\b(DFG|FTL)[^\n]{0,120}?\(bc#(\d+)[^,\n]*, (\w+)\)/g;

export interface Exits {
  /**
   * The function whose optimised code was left and the reason, as "FTL: name#a1B2c3 at 119:
   * reason".
   */
  readonly what: string;
  readonly count: number;
}

/**
 * Counts the exits from optimised code in the output of a process that prints them. The most
 * frequent exits come first.
 */
export function exitsIn(output: string): readonly Exits[] {
  const counts = new Map<string, number>();
  for (const [, name = "", tier = "", at = "", reason = ""] of output.matchAll(EXIT)) {
    const what = `${tier}: ${name} at ${at}: ${reason}`;
    counts.set(what, (counts.get(what) ?? 0) + 1);
  }
  const exits = [...counts].map(([what, count]) => ({ what, count }));
  return exits.toSorted((left, right) => right.count - left.count);
}
