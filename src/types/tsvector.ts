/**
 * Implements the type TSVECTOR: the lexemes of a document and their positions. A value is stored
 * as its text.
 *
 *     'cat':3A,7 'hat':5          word, positions, weights A to C; weight D is omitted
 *
 * Lexemes are ordered by their UTF-8 bytes, and each occurs once.
 */
import { DatabaseError } from "../base/errors.ts";
import { compareCodePoints } from "./code_points.ts";
import { excerpt } from "./excerpt.ts";

/** The weight of a position. The numbers 0 to 3 represent D, C, B and A. */
export type TsWeight = 0 | 1 | 2 | 3;

export interface TsPosition {
  readonly at: number;
  readonly weight: TsWeight;
}

export interface TsWord {
  readonly word: string;
  /** The positions of the lexeme in ascending order; empty if they are unknown. */
  readonly positions: readonly TsPosition[];
}

/** The highest possible position of a word in a document. All later words share it. */
export const TS_POSITION_MAX = 16_383;
const POSITIONS_OF_WORD_MAX = 255;
/** The maximum size of a lexeme, and of all lexemes of a document, in UTF-8 bytes. */
export const TS_WORD_BYTES_MAX = 2046;
const VECTOR_BYTES_MAX = 1_048_575;

const WEIGHTS = "DCBA";

/** Returns the weight that a letter denotes; undefined for any other string. */
export function tsWeightOf(letter: string): TsWeight | undefined {
  const weight = letter.length === 1 ? WEIGHTS.indexOf(letter.toUpperCase()) : -1;
  return weight < 0 ? undefined : (weight as TsWeight);
}

export function tsWeightLetter(weight: TsWeight): string {
  return WEIGHTS.charAt(weight);
}

/**
 * Matches a word, its positions, and the whitespace after them. A quoted word needs no whitespace
 * after it.
 */
const ENTRY =
  /(?:'((?:[^'\\]|''|\\[\s\S])*)'|((?:[^\s:'\\]|\\[\s\S])(?:[^\s:\\]|\\[\s\S])*))(?::(\d+[A-Da-d*]*(?:,\d+[A-Da-d*]*)*))?(?:\s+|$|(?<='))/uy;

/** Parses the lexemes of a document. @throws {DatabaseError} INVALID_SQL, VALUE_TOO_LONG */
export function tsVectorFromText(text: string): TsWord[] {
  const words: TsWord[] = [];
  let at = text.length - text.trimStart().length;
  while (at < text.length) {
    ENTRY.lastIndex = at;
    const match = ENTRY.exec(text);
    if (match === null || match[1] === "") {
      throw new DatabaseError(
        "INVALID_SQL",
        `Cannot read ${excerpt(text)} as tsvector: ${excerpt(text.slice(at))} is not a word ` +
          "with optional positions",
        {
          hint:
            "a tsvector has the form 'cat':3A,7 'hat':5; to create one from a string, call " +
            "to_tsvector",
        },
      );
    }
    const word = unescapedTsWord(match[1] ?? match[2] ?? "", match[1] !== undefined);
    words.push({ word, positions: positionsFrom(match[3], text) });
    at = ENTRY.lastIndex;
  }
  return tsVectorOf(words);
}

/**
 * Removes the escapes from a word. If the word is quoted, also replaces each doubled quote with a
 * single one.
 */
export function unescapedTsWord(written: string, isQuoted: boolean): string {
  const word = isQuoted ? written.replaceAll("''", "'") : written;
  return word.includes("\\") ? word.replaceAll(/\\([\s\S])/gu, "$1") : word;
}

function positionsFrom(written: string | undefined, text: string): TsPosition[] {
  if (written === undefined) return [];
  return written.split(",").map((each) => {
    const digits = Number.parseInt(each, 10);
    const letter = each.at(-1) ?? "";
    if (digits === 0) {
      throw new DatabaseError(
        "INVALID_SQL",
        `Cannot read ${excerpt(text)} as tsvector: positions start at 1`,
      );
    }
    const weight = letter === "*" ? 3 : (tsWeightOf(letter) ?? 0);
    return { at: Math.min(digits, TS_POSITION_MAX), weight };
  });
}

/** Sorts lexemes and merges equal lexemes. @throws {DatabaseError} VALUE_TOO_LONG */
export function tsVectorOf(words: readonly TsWord[]): TsWord[] {
  const byWord = new Map<string, TsPosition[]>();
  for (const { positions, word } of words) {
    const known = byWord.get(word);
    if (known === undefined) byWord.set(word, [...positions]);
    else known.push(...positions);
  }
  let bytes = 0;
  const made: TsWord[] = [];
  for (const [word, positions] of byWord) {
    const length = Buffer.byteLength(word);
    if (length > TS_WORD_BYTES_MAX) {
      throw new DatabaseError(
        "VALUE_TOO_LONG",
        `Cannot store the word ${excerpt(word)} in a tsvector: it is ${length} bytes long, but ` +
          `the maximum is ${TS_WORD_BYTES_MAX}`,
      );
    }
    bytes += length;
    made.push({ word, positions: distinctPositions(positions) });
  }
  if (bytes > VECTOR_BYTES_MAX) {
    throw new DatabaseError(
      "VALUE_TOO_LONG",
      `Cannot create the tsvector: its words have ${bytes} bytes in total, but the maximum is ` +
        VECTOR_BYTES_MAX,
    );
  }
  return made.toSorted((left, right) => compareCodePoints(left.word, right.word));
}

/** Returns each position once, with its highest weight. */
function distinctPositions(positions: readonly TsPosition[]): TsPosition[] {
  if (positions.length < 2) return [...positions];
  const ordered = positions.toSorted((a, b) => a.at - b.at || b.weight - a.weight);
  return ordered
    .filter(({ at }, i) => i === 0 || at !== ordered[i - 1]?.at)
    .slice(0, POSITIONS_OF_WORD_MAX);
}

export function textFromTsVector(words: readonly TsWord[]): string {
  return words
    .map(({ positions, word }) => {
      const list = positions.map(({ at, weight }) => `${at}${weight === 0 ? "" : WEIGHTS[weight]}`);
      return quotedTsWord(word) + (list.length === 0 ? "" : `:${list.join(",")}`);
    })
    .join(" ");
}

export function quotedTsWord(word: string): string {
  return `'${word.replaceAll("'", "''").replaceAll("\\", "\\\\")}'`;
}
