/** Classifies characters and short character sequences, for the lexer and the normaliser. */

/**
 * Returns the offset of the quote that ends a string whose contents start at `from`, or -1 if
 * there is none.
 *
 * @param backslashes Whether a backslash escapes the next character.
 */
export function closingQuote(text: string, from: number, backslashes: boolean): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 92 && backslashes) at += 1;
    else if (code === 39) {
      if (text.charCodeAt(at + 1) !== 39) return at;
      at += 1;
    }
  }
  return -1;
}

/**
 * Returns the offset of the opening quote with which a string continues after a part that ended
 * before `from`, or -1 if it does not continue.
 */
export function stringContinuation(text: string, from: number): number {
  let hasBreak = false;
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 10 || code === 13) hasBreak = true;
    else if (code === 39) return hasBreak ? at : -1;
    else if (code !== 32 && (code < 9 || code > 13)) return -1;
  }
  return -1;
}

/** Whether a character code is a digit from 0 to 9. */
export function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/**
 * Returns the offset after a run of digits, which may contain single underscores between digits.
 */
export function skipDigits(text: string, from: number): number {
  let at = from;
  for (;;) {
    const code = text.charCodeAt(at);
    const isSeparator = code === 95 && at > from && isDigit(text.charCodeAt(at + 1));
    if (!isDigit(code) && !isSeparator) return at;
    at += 1;
  }
}

/**
 * Returns the offset after the digits of a number with the prefix 0x, 0o or 0b. A `_` may precede
 * each digit.
 *
 * @param radix The character code of the prefix letter: 120 for x, 111 for o, 98 for b.
 */
export function skipRadixDigits(text: string, from: number, radix: number): number {
  const base = radix === 120 ? 16 : radix === 111 ? 8 : 2;
  let at = from;
  for (;;) {
    const digit = text.charCodeAt(at) === 95 ? at + 1 : at;
    if (Number.isNaN(Number.parseInt(text.charAt(digit), base))) return at;
    at = digit + 1;
  }
}

/** Whether a character code is non-ASCII whitespace. */
export function isUnicodeSpace(code: number): boolean {
  return (
    code === 0xa0 ||
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000 ||
    code === 0xfeff
  );
}

/**
 * Returns a hint about a character that cannot begin a token, if it suggests a keyboard layout or
 * a habit from another system.
 */
export function hintOf(character: string): { readonly hint?: string } {
  if (character === "") return {};
  const hint = HINTS.find(([characters]) => characters.includes(character))?.[1];
  if (hint !== undefined) return { hint };
  return character > "\x7f"
    ? { hint: 'put a name with such characters in double quotes: "…"' }
    : {};
}

/** Advice for the parameter placeholders of other systems. */
export const PARAMETER_ADVICE =
  "write parameters as $1, $2, …, and send their values in the same order in params";

const HINTS: readonly (readonly [characters: string, hint: string])[] = [
  ["`", 'put names that need quotes in double quotes: "name"'],
  ["‘’‚‛′´", "put strings in straight single quotes: 'text'"],
  ["“”„‟″«»", "use straight quotes: single quotes for strings ('text'), double quotes for names"],
  ["–—−", "write a minus sign as -"],
  ["≠", "write != or <>"],
  ["≤", "write <="],
  ["≥", "write >="],
  ["×", "write *"],
  ["÷", "write /"],
  ["，；（）＝", "use ASCII commas, semicolons, parentheses and equals signs"],
  ["$", PARAMETER_ADVICE],
  ["{}", `${PARAMETER_ADVICE}; write JSON values as strings: '{"a": 1}'`],
  ["!", "write NOT before a condition"],
  [
    "\\",
    "psql commands are not SQL; to list tables, use SHOW TABLES; to see the columns of a " +
      "table, use DESCRIBE t",
  ],
];
