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
  let regex = "^(?:";
  let isEscaped = false;
  let isInBrackets = false;
  for (const character of pattern) {
    if (isEscaped) {
      regex += plain(character);
      isEscaped = false;
    } else if (character === escape) {
      isEscaped = true;
    } else if (isInBrackets) {
      regex += character === "\\" ? "\\\\" : character;
      isInBrackets = character !== "]";
    } else if (character === "[") {
      regex += "[";
      isInBrackets = true;
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
  if (!isEscaped) return `${regex})$`;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot match ${excerpt(pattern)}: a SIMILAR TO pattern must not end with its escape character`,
  );
}

function plain(character: string): string {
  return /[\\^$.[\]|()*+?{}]/.test(character) ? `\\${character}` : character;
}
