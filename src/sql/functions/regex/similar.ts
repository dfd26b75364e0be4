/**
 * Translates SIMILAR TO patterns into regular expressions: `%` and `_` work as in LIKE, and `| * +
 * ? {m,n} ( ) [ ]` as in regular expressions; everything else is literal. The pattern must match
 * the whole text. An escape character followed by a double quote is a separator: SUBSTRING returns
 * the part between two separators.
 */
import { DatabaseError } from "../../../base/errors.ts";
import { excerpt } from "../../../types/mod.ts";

const PARTS_MAX = 3;

/**
 * Translates a SIMILAR TO pattern. The resulting regular expression has a single group, which
 * captures the part between the separators, if any. A single separator ends the first part.
 *
 * @param escape One character, or "" for no escape character.
 * @throws {DatabaseError} INVALID_VALUE if the pattern has more than two separators.
 */
export function regexFromSimilar(pattern: string, escape: string): string {
  const parts = partsOf(Array.from(pattern), escape);
  if (parts.length > PARTS_MAX) {
    throw new DatabaseError(
      "INVALID_VALUE",
      `Cannot match ${excerpt(pattern)}: a SIMILAR TO pattern can contain at most two ` +
        "separators (the escape character followed by a double quote)",
    );
  }
  const [first = [], second, third = []] = parts;
  if (second === undefined) return `^(?:${regexOf(first, "")})$`;
  // The first part of the pattern matches as little as possible, and the second part as much as
  // possible.
  return `^(?:${regexOf(first, "?")})(${regexOf(second, "")})(?:${regexOf(third, "")})$`;
}

/**
 * An element of a SIMILAR TO pattern: an unescaped character, or a fragment already translated to
 * a regular expression.
 */
type SimilarPiece = { readonly character: string } | { readonly regex: string };

/** Splits a pattern at its separators. A trailing escape character is ignored. */
function partsOf(
  characters: readonly string[],
  escape: string,
): readonly (readonly SimilarPiece[])[] {
  const parts: SimilarPiece[][] = [[]];
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? "";
    const next = characters[at + 1];
    if (character === escape) {
      at += 1;
      if (next === '"') parts.push([]);
      else if (next !== undefined) parts.at(-1)?.push({ regex: escaped(next) });
    } else if (character === "[") {
      const { end, regex } = bracketsFrom(characters, at + 1, escape);
      parts.at(-1)?.push({ regex });
      at = end - 1;
    } else {
      parts.at(-1)?.push({ character });
    }
  }
  return parts;
}

/**
 * Translates the elements of one part of a SIMILAR TO pattern.
 *
 * @param greed The suffix of each repetition: "?" makes it match as little as possible.
 */
function regexOf(pieces: readonly SimilarPiece[], greed: "" | "?"): string {
  let regex = "";
  for (const piece of pieces) {
    if ("regex" in piece) {
      regex += piece.regex;
      continue;
    }
    const { character } = piece;
    if (character === "%") regex += `.*${greed}`;
    else if (character === "_") regex += ".";
    else if (character === "(") regex += "(?:";
    else if ("*+?}".includes(character)) regex += character + greed;
    else regex += "|{)".includes(character) ? character : plain(character);
  }
  return regex;
}

/**
 * Escapes a character. After a backslash, letters and digits have their special meaning: `\d` is a
 * digit, as in PostgreSQL.
 */
function escaped(character: string): string {
  return /[A-Za-z0-9]/.test(character) ? `\\${character}` : plain(character);
}

/**
 * Reads a bracket expression, beginning after its `[`. A `]` does not close it if it comes first,
 * is escaped or ends a class such as `[:alpha:]`. The regex parser reports unclosed bracket
 * expressions.
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
      regex += next === "-" ? "\\-" : escaped(next);
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

/** Returns the position after the `:]` that ends a character class, or the end of the text. */
function classEnd(characters: readonly string[], from: number, mark: string): number {
  for (let at = from; at < characters.length; at += 1) {
    if (characters[at] === mark && characters[at + 1] === "]") return at + 2;
  }
  return characters.length;
}

function plain(character: string): string {
  return /[\\^$.[\]|()*+?{}]/.test(character) ? `\\${character}` : character;
}
