/**
 * Implements `ts_rank` and `ts_rank_cd`, which rate how well a document matches a query, with
 * PostgreSQL's formulas.
 *
 * ts_rank adds up the weights of the positions of each word; each further position counts less.
 * Words joined by AND are rated by their distance. ts_rank_cd adds up the densities of the
 * shortest extents of the document that match the query. Numbers are rounded to 32 bits wherever
 * PostgreSQL does so.
 */

import { DatabaseError } from "../../../base/errors.ts";
import {
  compareCodePoints,
  type TsQuery,
  type TsQueryWord,
  type TsWord,
} from "../../../types/mod.ts";
import type { CallEffort } from "../base/call_effort.ts";
import { documentOf, matchesQuery, type SearchedDocument } from "./query_match.ts";
import { searchEffort } from "./search_effort.ts";

const { fround } = Math;

const WEIGHTS_DEFAULT = [0.1, 0.2, 0.4, 1].map(fround);

/**
 * Returns the weights for the labels D, C, B and A, in this order.
 * @throws {DatabaseError} INVALID_VALUE, VALUE_OUT_OF_RANGE
 */
export function rankWeights(given: readonly unknown[] | undefined): readonly number[] {
  if (given === undefined) return WEIGHTS_DEFAULT;
  if (given.length < 4 || given.some((weight) => typeof weight !== "number")) {
    throw new DatabaseError(
      "INVALID_VALUE",
      "Cannot rank a document: the weights must be four numbers, for D, C, B and A",
    );
  }
  return (given as readonly number[]).slice(0, 4).map((weight, i) => {
    if (weight > 1) {
      throw new DatabaseError(
        "VALUE_OUT_OF_RANGE",
        `Cannot rank a document: the weight ${weight} is greater than 1`,
      );
    }
    return weight < 0 ? (WEIGHTS_DEFAULT[i] ?? 0) : fround(weight);
  });
}

export interface RankOptions {
  readonly weights: readonly number[];
  /**
   * A bit mask that selects how ranks are normalised: 1 and 2 divide by the document's length, 8
   * and 16 by the number of distinct words, and 32 divides the rank by itself plus 1.
   */
  readonly normalization: number;
}

interface RankedPlace {
  readonly at: number;
  readonly weight: number;
}

/** The position assumed for a word whose positions are unknown. */
const UNKNOWN_AT = 16_383;
const UNKNOWN_PLACES: readonly RankedPlace[] = [{ at: UNKNOWN_AT - 1, weight: 0 }];
/** The sum of 1/i² over all i, by which ranks are scaled to at most 1. */
const SQUARES = 1.644_934_066_85;

/** Returns the distinct words of a query, sorted. */
function operandsOf(query: TsQuery): TsQueryWord[] {
  const found: TsQueryWord[] = [];
  const visit = (part: TsQuery): void => {
    if (part.kind === "word") found.push(part);
    else if (part.kind === "not") visit(part.operand);
    else {
      visit(part.left);
      visit(part.right);
    }
  };
  visit(query);
  const ordered = found.toSorted((a, b) => compareCodePoints(a.word, b.word));
  return ordered.filter(({ word }, i) => i === 0 || word !== ordered[i - 1]?.word);
}

export function rankOf(
  words: readonly TsWord[],
  query: TsQuery | undefined,
  { normalization, weights }: RankOptions,
): number {
  if (query === undefined || words.length === 0) return 0;
  const document = documentOf(words);
  const operands = operandsOf(query);
  const isTogether = query.kind === "and" || query.kind === "phrase";
  const rank =
    isTogether && operands.length > 1
      ? rankTogether(document, operands, weights)
      : rankAlone(document, operands, weights);
  const bits = normalization;
  return normalized(rank < 0 ? fround(1e-20) : rank, words, { bits, round: fround });
}

function rankAlone(
  document: SearchedDocument,
  operands: readonly TsQueryWord[],
  weights: readonly number[],
): number {
  let rank = 0;
  for (const operand of operands) {
    for (const { positions } of document.wordsFor(operand)) {
      const places = positions.length > 0 ? positions : UNKNOWN_PLACES;
      let sum = 0;
      let best = -1;
      let bestAt = 0;
      for (const [i, place] of places.entries()) {
        const weight = weights[place.weight] ?? 0;
        sum = fround(sum + fround(weight / ((i + 1) * (i + 1))));
        if (weight > best) {
          best = weight;
          bestAt = i;
        }
      }
      const own = fround(fround(best + sum) - fround(best / ((bestAt + 1) * (bestAt + 1))));
      rank = fround(rank + own / SQUARES);
    }
  }
  return operands.length > 0 ? fround(rank / operands.length) : rank;
}

function rankTogether(
  document: SearchedDocument,
  operands: readonly TsQueryWord[],
  weights: readonly number[],
): number {
  const effort = searchEffort();
  const known: (readonly RankedPlace[])[] = operands.map(() => []);
  let rank = -1;
  for (const [i, operand] of operands.entries()) {
    for (const { positions } of document.wordsFor(operand)) {
      const places = positions.length > 0 ? positions : UNKNOWN_PLACES;
      known[i] = places;
      for (const others of known.slice(0, i)) {
        effort.spend(places.length * others.length);
        for (const closeness of closenesses(places, others, weights)) {
          rank = fround(rank < 0 ? closeness : 1 - (1 - rank) * (1 - closeness));
        }
      }
    }
  }
  return rank;
}

/** Yields a closeness rating for each pair of positions of two words. */
function* closenesses(
  places: readonly RankedPlace[],
  others: readonly RankedPlace[],
  weights: readonly number[],
): Generator<number> {
  const isUnknown = places === UNKNOWN_PLACES || others === UNKNOWN_PLACES;
  for (const left of places) {
    for (const right of others) {
      const found = Math.abs(left.at - right.at);
      if (found === 0 && !isUnknown) continue;
      const distance = found === 0 ? UNKNOWN_AT + 1 : found;
      const product = fround((weights[left.weight] ?? 0) * (weights[right.weight] ?? 0));
      yield fround(Math.sqrt(fround(product * nearness(distance))));
    }
  }
}

function nearness(distance: number): number {
  if (distance > 100) return fround(1e-30);
  return fround(1 / (1.005 + 0.05 * Math.exp(distance / 1.5 - 2)));
}

function lengthOf(words: readonly TsWord[]): number {
  return words.reduce((sum, { positions }) => sum + Math.max(positions.length, 1), 0);
}

/**
 * Normalises a rank as the normalization bits request.
 *
 * @param round Rounds each intermediate result. ts_rank computes in 32 bits, and ts_rank_cd in 64.
 */
function normalized(
  rank: number,
  words: readonly TsWord[],
  { bits, round }: { bits: number; round: (value: number) => number },
): number {
  let value = rank;
  if ((bits & 1) !== 0) value = round(value / (Math.log(lengthOf(words) + 1) / Math.LN2));
  if ((bits & 2) !== 0) value = round(value / lengthOf(words));
  if ((bits & 8) !== 0) value = round(value / words.length);
  if ((bits & 16) !== 0) value = round(value / (Math.log(words.length + 1) / Math.LN2));
  return (bits & 32) === 0 ? value : round(value / round(value + 1));
}

function identity(value: number): number {
  return value;
}

/** A position in a document at which words of the query occur. */
interface DensityPlace {
  readonly at: number;
  readonly weight: number;
  readonly operands: ReadonlySet<string>;
}

interface DensityExtent {
  readonly first: number;
  readonly last: number;
}

export function densityRankOf(
  words: readonly TsWord[],
  query: TsQuery | undefined,
  { normalization, weights }: RankOptions,
): number {
  if (query === undefined) return 0;
  const places = densityPlaces(words, query);
  const inverse = weights.map((weight) => 1 / weight);
  const effort = searchEffort();
  let sum = 0;
  let distances = 0;
  let extents = 0;
  let lastMiddle = 0;
  for (let from = 0; ; ) {
    const extent = nextExtent(places, query, { from, effort });
    if (extent === undefined) break;
    const { first, last } = extent;
    let weight = 0;
    for (const place of places.slice(first, last + 1)) weight += inverse[place.weight] ?? 0;
    const [begin, end] = [places[first]?.at ?? 0, places[last]?.at ?? 0];
    const noise = end - begin - (last - first);
    const quiet = noise < 0 ? (last - first) / 2 : noise;
    sum += (last - first + 1) / weight / (1 + quiet);
    const middle = (begin + end) / 2;
    if (extents > 0 && middle > lastMiddle) distances += 1 / (middle - lastMiddle);
    lastMiddle = middle;
    extents += 1;
    from = first + 1;
  }
  let value = sum;
  const isSpread = (normalization & 4) !== 0 && extents > 0 && distances > 0;
  if ((normalization & 1) !== 0) value /= Math.log(lengthOf(words) + 1);
  if ((normalization & 2) !== 0) value /= lengthOf(words);
  if (isSpread) value /= extents / distances;
  return fround(normalized(value, words, { bits: normalization & ~7, round: identity }));
}

/** An occurrence of a word of the document. Several words may have the same position. */
interface WordPlace extends DensityPlace {
  readonly word: string;
  readonly operands: Set<string>;
}

function densityPlaces(words: readonly TsWord[], query: TsQuery): DensityPlace[] {
  const document = documentOf(words);
  const byPlace = new Map<string, WordPlace>();
  for (const operand of operandsOf(query)) {
    for (const { positions, word } of document.wordsFor(operand)) {
      for (const { at, weight } of positions) {
        if (operand.weights !== 0 && (operand.weights & (1 << weight)) === 0) continue;
        const key = `${at} ${word}`;
        const known = byPlace.get(key);
        if (known === undefined) {
          byPlace.set(key, { at, weight, word, operands: new Set([operand.word]) });
        } else known.operands.add(operand.word);
      }
    }
  }
  return [...byPlace.values()].toSorted(
    (a, b) => a.at - b.at || a.weight - b.weight || compareCodePoints(a.word, b.word),
  );
}

/** Returns the next shortest extent of positions in a document that matches the query. */
function nextExtent(
  places: readonly DensityPlace[],
  query: TsQuery,
  { effort, from }: { from: number; effort: CallEffort },
): DensityExtent | undefined {
  const last = reach(places, query, { from, to: places.length, step: 1, effort });
  if (last === undefined) return undefined;
  const first = reach(places, query, { from: last, to: from - 1, step: -1, effort });
  return first === undefined ? undefined : { first, last };
}

function reach(
  places: readonly DensityPlace[],
  query: TsQuery,
  { effort, from, step, to }: { from: number; to: number; step: 1 | -1; effort: CallEffort },
): number | undefined {
  const met = new Map<string, DensityPlace[]>();
  const document: SearchedDocument = {
    wordsFor: ({ word }) => {
      const found = met.get(word);
      if (found === undefined) return [];
      const ascending = step > 0 ? found : found.toReversed();
      return [{ word, positions: ascending as TsWord["positions"] }];
    },
  };
  for (let at = from; at !== to; at += step) {
    const place = places[at];
    if (place === undefined) return undefined;
    effort.spend(Math.abs(at - from) + 1);
    for (const word of place.operands) {
      const known = met.get(word);
      if (known === undefined) met.set(word, [place]);
      else known.push(place);
    }
    if (matchesQuery(document, query)) return at;
  }
  return undefined;
}
