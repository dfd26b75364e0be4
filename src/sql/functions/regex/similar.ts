/**
 * SIMILAR TO patterns as regular expressions: `%` and `_` as in LIKE, `| * + ? {m,n} ( ) [ ]` as
 * in regular expressions, everything else plain; the pattern matches the whole text.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { excerpt } from "../../../types/mod.ts";

/**
 * @param escape One character, or "" for none.
 * @throws {DatabaseError} INVALID_VALUE if the pattern ends in a lone escape.
 */
export function regexFromSimilar(pattern: string, escape: string): string {
  const characters = Array.from(pattern);
  let regex = "^(?:";
  let at = 0;
  while (at < characters.length) {
    const character = characters[at] ?? "";
    at += 1;
    if (character === escape) {
      const escaped = characters[at];
      if (escaped === undefined) throw endingInEscape(pattern);
      regex += plain(escaped);
      at += 1;
    } else if (character === "[") {
      const brackets = bracketsFrom(characters, at, escape);
      regex += brackets.regex;
      at = brackets.end;
    } else if (character === "%") {
      regex += ".*";
    } else if (character === "_") {
      regex += ".";
    } else if (character === "(") {
      regex += "(?:";
    } else {
      regex += "|*+?{})".includes(character) ? character : plain(character);
    }
  }
  return `${regex})$`;
}

/**
 * Brackets, given where they go on behind their `[`: a `]` that comes first, is escaped or ends a
 * class such as `[:alpha:]` is not their end. Those without an end are left to who reads the regex.
 */
function bracketsFrom(
  characters: readonly string[],
  from: number,
  escape: string,
): { readonly regex: string; readonly end: number } {
  const isInverted = characters[from] === "^";
  const first = isInverted ? from + 1 : from;
  let regex = isInverted ? "[^" : "[";
  for (let at = first; at < characters.length; at += 1) {
    const character = characters[at] ?? "";
    const next = characters[at + 1] ?? "";
    if (character === escape) {
      regex += plain(next);
      at += 1;
    } else if (character === "[" && /^[:.=]$/.test(next)) {
      const end = classEnd(characters, at + 2, next);
      regex += characters.slice(at, end).join("");
      at = end - 1;
    } else if (character === "]" && at > first) {
      return { regex: `${regex}]`, end: at + 1 };
    } else {
      regex += character === "\\" ? "\\\\" : character;
    }
  }
  return { regex, end: characters.length };
}

/** Behind the `:]` that ends a class, or behind everything. */
function classEnd(characters: readonly string[], from: number, mark: string): number {
  for (let at = from; at < characters.length; at += 1) {
    if (characters[at] === mark && characters[at + 1] === "]") return at + 2;
  }
  return characters.length;
}

function endingInEscape(pattern: string): DatabaseError {
  return new DatabaseError(
    "INVALID_VALUE",
    `Cannot match ${excerpt(pattern)}: a SIMILAR TO pattern must not end with its escape character`,
  );
}

function plain(character: string): string {
  return /[\\^$.[\]|()*+?{}]/.test(character) ? `\\${character}` : character;
}
