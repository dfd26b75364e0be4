/** Implements functions that read strings in SQL syntax: character escapes and qualified names. */
import { DatabaseError } from "../../../base/errors.ts";
import { BOOLEAN, type DataType, excerpt, TEXT, type Value } from "../../../types/mod.ts";
import { functionsNamed, overload } from "../base/define.ts";
import type { ScalarFunction } from "../base/function.ts";

const TEXT_ARRAY: DataType = { kind: "array", element: TEXT };

/**
 * Matches a backslash followed by another backslash, or by a code point in one of four notations.
 */
const ESCAPE =
  /\\(?:(\\)|([0-9a-fA-F]{4})|\+([0-9a-fA-F]{6})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))?/g;

/** Replaces escaped code points such as `\0061` with the characters that they represent. */
function unistr([text = null]: readonly Value[]): string {
  const made = (text as string).replaceAll(ESCAPE, (whole, backslash, ...numbers) => {
    if (backslash !== undefined) return "\\";
    const digits = numbers.slice(0, 4).find((each) => each !== undefined);
    const code = Number.parseInt(digits ?? "", 16);
    if (!(code > 0 && code <= 0x10ffff)) throw invalidEscape(whole);
    return String.fromCodePoint(code);
  });
  if (made.isWellFormed()) return made;
  throw new DatabaseError(
    "INVALID_VALUE",
    "Cannot read the text: its escapes form an unpaired surrogate",
    {
      hint: ESCAPES,
    },
  );
}

const ESCAPES =
  "the escapes are \\\\, \\ with 4 hexadecimal digits, \\+ with 6, \\u with 4, and \\U with 8";

function invalidEscape(found: string): DatabaseError {
  return new DatabaseError("INVALID_VALUE", `Cannot read the character escape ${excerpt(found)}`, {
    hint: ESCAPES,
  });
}

/** Matches one part of a qualified name, quoted or unquoted. Whitespace around it is allowed. */
const NAME_PART = /\s*(?:"((?:[^"]|"")*)"|([\p{L}_][\p{L}\p{N}_$]*))\s*/uy;

/**
 * Splits a qualified name into its parts. Quotes are removed, and unquoted parts are converted to
 * lower case.
 */
function parseIdentifier([name = null, isStrict = true]: readonly Value[]): readonly string[] {
  const text = name as string;
  const parts: string[] = [];
  let at = 0;
  for (;;) {
    NAME_PART.lastIndex = at;
    const [, quoted, plain] = NAME_PART.exec(text) ?? [];
    if (quoted === "" || (quoted ?? plain) === undefined) throw notIdentifier(text);
    parts.push(quoted?.replaceAll('""', '"') ?? (plain ?? "").toLowerCase());
    at = NAME_PART.lastIndex;
    if (text[at] !== ".") break;
    at += 1;
  }
  if (isStrict === true && at < text.length) throw notIdentifier(text);
  return parts;
}

function notIdentifier(text: string): DatabaseError {
  return new DatabaseError("INVALID_VALUE", `Cannot read ${excerpt(text)} as a name`, {
    hint:
      "put names that contain characters other than letters, digits and _ in double quotes, as " +
      'in "my table".column',
  });
}

export const TEXT_SYNTAX_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(["unistr"], overload([TEXT], TEXT, unistr)),
  ...functionsNamed(["parse_ident"], {
    ...overload([TEXT, BOOLEAN], TEXT_ARRAY, parseIdentifier, { optionalCount: 1 }),
    parameterNames: ["str", "strict"],
  }),
];
