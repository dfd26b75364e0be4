/**
 * Implements the assertions of regular expressions, which test the characters before and after a
 * position.
 */
import { isWordCharacter } from "./regex_sets.ts";
import type { Assertion } from "./regex_syntax.ts";

/** The kind of a neighbouring character, as far as assertions distinguish it. */
export type Neighbour = 0 | 1 | 2 | 3;
export const NOTHING: Neighbour = 0;
const LINE_END: Neighbour = 1;
const WORD: Neighbour = 2;
const OTHER: Neighbour = 3;

/** The code that represents the end of the text. */
export const END_OF_TEXT = -1;

export function neighbourOf(code: number): Neighbour {
  if (code === END_OF_TEXT) return NOTHING;
  if (code === 0x0a) return LINE_END;
  return isWordCharacter(code) ? WORD : OTHER;
}

export function assertionHolds(assertion: Assertion, before: Neighbour, after: Neighbour): boolean {
  switch (assertion) {
    case "start":
      return before === NOTHING;
    case "end":
      return after === NOTHING;
    case "lineStart":
      return before === NOTHING || before === LINE_END;
    case "lineEnd":
      return after === NOTHING || after === LINE_END;
    case "boundary":
      return (before === WORD) !== (after === WORD);
    case "notBoundary":
      return (before === WORD) === (after === WORD);
    case "wordStart":
      return before !== WORD && after === WORD;
    case "wordEnd":
      return before === WORD && after !== WORD;
  }
}
