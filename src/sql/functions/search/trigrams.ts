/**
 * Computes the similarity of strings from their trigrams, like PostgreSQL's pg_trgm.
 *
 * Each word of letters and digits is converted to lower case and padded with two spaces in front
 * and one behind. Every three consecutive characters are a trigram: `cat` has `␣␣c`, `␣ca`, `cat`
 * and `at␣`.
 */
import { BOOLEAN, compareCodePoints, FLOAT, TEXT, type Value } from "../../../types/mod.ts";
import { functionsNamed, overload } from "../base/define.ts";
import type { OperatorForm, ScalarFunction } from "../base/function.ts";
import { binaryForm } from "../base/operator_form.ts";
import { remembering } from "../base/remembering.ts";
import { literalRuns } from "../regex/like.ts";
import { searchEffort } from "./search_effort.ts";

/** The minimum similarity at which the operator `%` is true. */
const SIMILAR = 0.3;
const WORD_SIMILAR = 0.6;
const STRICT_WORD_SIMILAR = 0.5;

const WORD = /[\p{L}\p{M}\p{N}]+/gu;

interface OrderedTrigram {
  readonly trigram: string;
  readonly beginsWord: boolean;
  readonly endsWord: boolean;
}

function* orderedTrigrams(text: string): Generator<OrderedTrigram> {
  for (const [word] of text.toLowerCase().matchAll(WORD)) {
    const trigrams = [...trigramsIn(`  ${word} `)];
    const last = trigrams.length - 1;
    for (const [at, trigram] of trigrams.entries()) {
      yield { trigram, beginsWord: at === 0, endsWord: at === last };
    }
  }
}

/** Yields every sequence of three consecutive characters of a padded word. */
function* trigramsIn(padded: string): Generator<string> {
  if (!/[\ud800-\udfff]/.test(padded)) {
    for (let at = 0; at + 3 <= padded.length; at += 1) yield padded.slice(at, at + 3);
    return;
  }
  const characters = Array.from(padded);
  for (let at = 0; at + 3 <= characters.length; at += 1) {
    yield characters.slice(at, at + 3).join("");
  }
}

/** Returns the distinct trigrams of a string. */
export function distinctTrigrams(text: string): Set<string> {
  const found = new Set<string>();
  for (const [word] of text.toLowerCase().matchAll(WORD)) {
    for (const trigram of trigramsIn(`  ${word} `)) found.add(trigram);
  }
  return found;
}

const trigramsOf = remembering((text): ReadonlySet<string> => distinctTrigrams(text));

/**
 * Returns trigrams that occur in every text that matches a LIKE or ILIKE pattern.
 *
 *     'abc%'     ␣␣a ␣ab abc        the text begins with the word
 *     '%ab cd%'  ab␣ ␣␣c ␣cd        the words may continue beyond the pattern
 */
export function trigramsOfLike(pattern: string): Set<string> {
  const found = new Set<string>();
  const runs = literalRuns(pattern);
  for (const [at, run] of runs.entries()) {
    const isFirst = at === 0;
    const isLast = at === runs.length - 1;
    const text = run.toLowerCase();
    for (const match of text.matchAll(WORD)) {
      const [word] = match;
      const begins = match.index > 0 || isFirst;
      const ends = match.index + word.length < text.length || isLast;
      for (const trigram of trigramsIn(`${begins ? "  " : ""}${word}${ends ? " " : ""}`)) {
        // The lower case of the Greek letter sigma depends on the characters around it.
        if (!/[σς]/u.test(trigram)) found.add(trigram);
      }
    }
  }
  return found;
}

/**
 * Returns the minimum number of common trigrams, out of `count`, for which a similarity operator
 * can be true.
 */
export function leastCommon(count: number, operator: "%" | "<%" | "<<%"): number {
  const least = { "%": SIMILAR, "<%": WORD_SIMILAR, "<<%": STRICT_WORD_SIMILAR }[operator];
  for (let common = 1; common < count; common += 1) {
    if (Math.fround(common / count) >= Math.fround(least)) return common;
  }
  return count;
}

function shareOf(common: number, left: number, right: number): number {
  return common === 0 ? 0 : Math.fround(common / (left + right - common));
}

function similarity(left: Value, right: Value): number {
  const [a, b] = [trigramsOf(left as string), trigramsOf(right as string)];
  let common = 0;
  for (const each of a) if (b.has(each)) common += 1;
  return shareOf(common, a.size, b.size);
}

/**
 * Returns the greatest similarity between `sought` and any extent of `text`.
 *
 * @param isStrict Whether an extent must consist of whole words.
 */
function wordSimilarity(sought: Value, text: Value, isStrict: boolean): number {
  return new ExtentSearch(trigramsOf(sought as string), text as string, isStrict).best();
}

/**
 * Moves the end of an extent through a text, and moves its start as long as that increases the
 * similarity.
 */
class ExtentSearch {
  readonly #sought: ReadonlySet<string>;
  readonly #all: readonly OrderedTrigram[];
  readonly #isStrict: boolean;
  /** The last position of each trigram in the part of the text that has been compared so far. */
  readonly #lastAt = new Map<string, number>();
  #from = -1;
  #size = 0;
  #common = 0;
  readonly #effort = searchEffort();

  constructor(sought: ReadonlySet<string>, text: string, isStrict: boolean) {
    this.#sought = sought;
    this.#all = [...orderedTrigrams(text)];
    this.#isStrict = isStrict;
  }

  best(): number {
    let best = 0;
    for (const [at, { beginsWord, endsWord, trigram }] of this.#all.entries()) {
      const isSought = this.#sought.has(trigram);
      if (this.#from >= 0 || (this.#isStrict ? beginsWord : isSought)) {
        if (!this.#lastAt.has(trigram)) {
          this.#size += 1;
          if (isSought) this.#common += 1;
        }
        this.#lastAt.set(trigram, at);
      }
      if (this.#isStrict ? endsWord : isSought) best = Math.max(best, this.#endAt(at));
      else if (this.#isStrict && this.#from < 0 && beginsWord) this.#from = at;
    }
    return best;
  }

  /**
   * Returns the greatest similarity of any extent that ends at `end`, and records where that
   * extent begins.
   */
  #endAt(end: number): number {
    if (this.#from < 0) {
      this.#from = end;
      this.#size = 1;
    }
    const before = this.#from;
    let best = shareOf(this.#common, this.#sought.size, this.#size);
    let size = this.#size;
    let common = this.#common;
    this.#effort.spend(end - before);
    for (let from = before; from <= end; from += 1) {
      const first = this.#all[from];
      if (first === undefined) break;
      const share = shareOf(common, this.#sought.size, size);
      if (share > best && (!this.#isStrict || first.beginsWord)) {
        best = share;
        this.#size = size;
        this.#common = common;
        this.#from = from;
      }
      if (this.#lastAt.get(first.trigram) === from) {
        size -= 1;
        if (this.#sought.has(first.trigram)) common -= 1;
      }
    }
    for (const [i, { trigram }] of this.#all.slice(before, this.#from).entries()) {
      if (this.#lastAt.get(trigram) === before + i) this.#lastAt.delete(trigram);
    }
    return best;
  }
}

function distance(similar: number): number {
  return Math.fround(1 - similar);
}

type TextComparison = (left: Value, right: Value) => number | boolean;

const OPERATORS: ReadonlyMap<string, TextComparison> = new Map<string, TextComparison>([
  ["%", (left, right) => similarity(left, right) >= Math.fround(SIMILAR)],
  ["<%", (left, right) => wordSimilarity(left, right, false) >= Math.fround(WORD_SIMILAR)],
  ["%>", (left, right) => wordSimilarity(right, left, false) >= Math.fround(WORD_SIMILAR)],
  ["<<%", (left, right) => wordSimilarity(left, right, true) >= STRICT_WORD_SIMILAR],
  ["%>>", (left, right) => wordSimilarity(right, left, true) >= STRICT_WORD_SIMILAR],
  ["<->", (left, right) => distance(similarity(left, right))],
  ["<<->", (left, right) => distance(wordSimilarity(left, right, false))],
  ["<->>", (left, right) => distance(wordSimilarity(right, left, false))],
]);

/** Returns the form of a trigram operator on two strings; undefined for other operators. */
export function trigramOperator(op: string): OperatorForm | undefined {
  const compare = OPERATORS.get(op);
  if (compare === undefined) return undefined;
  return binaryForm([TEXT, TEXT], op.includes("%") ? BOOLEAN : FLOAT, compare);
}

export const TRIGRAM_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["similarity"],
    overload([TEXT, TEXT], FLOAT, ([left = null, right = null]) => similarity(left, right)),
  ),
  ...functionsNamed(
    ["word_similarity"],
    overload([TEXT, TEXT], FLOAT, ([left = null, right = null]) =>
      wordSimilarity(left, right, false),
    ),
  ),
  ...functionsNamed(
    ["strict_word_similarity"],
    overload([TEXT, TEXT], FLOAT, ([left = null, right = null]) =>
      wordSimilarity(left, right, true),
    ),
  ),
  ...functionsNamed(
    ["show_trgm"],
    overload([TEXT], { kind: "array", element: TEXT }, ([text = null]) =>
      [...trigramsOf(text as string)].toSorted(compareCodePoints),
    ),
  ),
];
