/**
 * Symbols of several characters. One ends before a comment that begins inside of it.
 */

// By their first character, longest first.
const SYMBOLS = new Map<number, readonly string[]>();
for (const symbol of [
  "!~~*",
  "||/ #>> ->> !~* ~~* !~~ <=> <-> <#>",
  ":: <> != <= >= || -> #> #- @> <@ ?| ?& && @@ ~* !~ ~~ ^@ << >> |/ => :=",
].flatMap((line) => line.split(" "))) {
  const code = symbol.charCodeAt(0);
  SYMBOLS.set(code, [...(SYMBOLS.get(code) ?? []), symbol]);
}

/** The longest symbol of several characters that begins at an offset, if one does. */
export function longSymbolAt(text: string, at: number): string | undefined {
  for (const symbol of SYMBOLS.get(text.charCodeAt(at)) ?? []) {
    if (text.startsWith(symbol, at) && !startsComment(text, at + symbol.length - 1)) return symbol;
  }
  return undefined;
}

// Whether "/*" or "--" starts at `at`, so that an operator must end before it.
function startsComment(text: string, at: number): boolean {
  return text.startsWith("/*", at) || text.startsWith("--", at);
}
