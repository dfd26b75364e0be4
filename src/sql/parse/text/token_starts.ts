/**
 * Tables of the kinds of tokens that each ASCII character can begin, so that the lexer needs a
 * single lookup per token. They are filled when the module is loaded, and never change.
 */

/** The kinds of tokens that a character can begin. */
export const Start = {
  bad: 0,
  space: 1,
  word: 2,
  digit: 3,
  quote: 4,
  doubleQuote: 5,
  dollar: 6,
  dot: 7,
  /** A single-character symbol that cannot begin a longer symbol. */
  single: 8,
  operator: 9,
} as const;

/** The {@linkcode Start} of each ASCII character. */
export const STARTS: Uint8Array = new Uint8Array(128);

/** Contains 1 for each ASCII character that can continue a word, and 0 for all others. */
export const IS_WORD_PART: Uint8Array = new Uint8Array(128);

/** The single-character symbols, indexed by character code; empty for other characters. */
export const SINGLE: string[] = Array.from({ length: 128 }, () => "");

function mark(characters: string, start: number): void {
  for (const character of characters) STARTS[character.charCodeAt(0)] = start;
}

const LETTERS = "abcdefghijklmnopqrstuvwxyz";
mark("\t\n\v\f\r ", Start.space);
mark(`${LETTERS}${LETTERS.toUpperCase()}_`, Start.word);
mark("0123456789", Start.digit);
mark("'", Start.quote);
mark('"', Start.doubleQuote);
mark("$", Start.dollar);
mark(".", Start.dot);
mark("()[],;", Start.single);
mark("+-*/<>=~!@#%^&|?:", Start.operator);
for (let code = 0; code < 128; code++) {
  const start = STARTS[code];
  if (start === Start.word || start === Start.digit || code === 36) IS_WORD_PART[code] = 1;
  if (start === Start.single || start === Start.operator || start === Start.dot) {
    SINGLE[code] = String.fromCharCode(code);
  }
}
