/**
 * Tests whether a document matches a text search query.
 *
 * Phrases are matched by sets of positions. Each part of a phrase yields the positions at which it
 * ends or, if it is negated, the positions at which it does not end.
 */
import {
  compareCodePoints,
  type TsPosition,
  type TsQuery,
  type TsQueryWord,
  type TsWord,
} from "../../../types/mod.ts";

/** A document in which text search looks up words. */
export interface SearchedDocument {
  /** Returns the words of the document that match a query word. */
  wordsFor(operand: TsQueryWord): readonly TsWord[];
}

/** Creates a document from the sorted words of a tsvector. It finds words by binary search. */
export function documentOf(words: readonly TsWord[]): SearchedDocument {
  return {
    wordsFor: ({ isPrefix, word }) => {
      const from = firstFrom(words, word);
      if (!isPrefix) return words[from]?.word === word ? words.slice(from, from + 1) : [];
      let end = from;
      while (words[end]?.word.startsWith(word) === true) end += 1;
      return words.slice(from, end);
    },
  };
}

/** Returns the index of the first word that is equal to `sought` or sorts after it. */
function firstFrom(words: readonly TsWord[], sought: string): number {
  let low = 0;
  let high = words.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareCodePoints(words[middle]?.word ?? "", sought) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Tests whether a document matches a query. A word without positions matches any weight. A phrase
 * that contains such a word matches nothing, whether negated or not.
 */
export function matchesQuery(document: SearchedDocument, query: TsQuery): boolean {
  switch (query.kind) {
    case "word":
      return document
        .wordsFor(query)
        .some(
          ({ positions }) =>
            positions.length === 0 || positions.some((each) => hasWeight(query, each)),
        );
    case "not":
      return !matchesQuery(document, query.operand);
    case "and":
      return matchesQuery(document, query.left) && matchesQuery(document, query.right);
    case "or":
      return matchesQuery(document, query.left) || matchesQuery(document, query.right);
    case "phrase":
      return isSomewhere(placesOf(document, query));
  }
}

function hasWeight({ weights }: TsQueryWord, { weight }: TsPosition): boolean {
  return weights === 0 || (weights & (1 << weight)) !== 0;
}

/** The positions in a document at which a part of a phrase query ends. */
interface PhrasePlaces {
  /** The positions at which the part of the phrase ends, in ascending order. */
  readonly positions: readonly number[];
  /**
   * Whether the part of the phrase is negated: it matches at every position except the listed
   * ones.
   */
  readonly isNegated: boolean;
  /** The distance between the first and the last word of the phrase part, in positions. */
  readonly width: number;
  /** Whether the document contains the part of the phrase but does not record its positions. */
  readonly isUnknown?: true;
}

const NOWHERE: PhrasePlaces = { positions: [], isNegated: false, width: 0 };
const UNKNOWN: PhrasePlaces = { positions: [], isNegated: true, width: 0, isUnknown: true };

function isSomewhere(places: PhrasePlaces): boolean {
  return places.isUnknown !== true && !isNowhere(places);
}

function isNowhere({ isNegated, positions }: PhrasePlaces): boolean {
  return !isNegated && positions.length === 0;
}

function placesOf(document: SearchedDocument, query: TsQuery): PhrasePlaces {
  switch (query.kind) {
    case "word": {
      const positions = new Set<number>();
      for (const word of document.wordsFor(query)) {
        if (word.positions.length === 0) return UNKNOWN;
        for (const each of word.positions) if (hasWeight(query, each)) positions.add(each.at);
      }
      return { positions: [...positions].toSorted(ascending), isNegated: false, width: 0 };
    }
    case "not": {
      const inner = placesOf(document, query.operand);
      if (inner.isUnknown === true) return inner;
      return { ...inner, isNegated: !inner.isNegated, width: isNowhere(inner) ? 0 : inner.width };
    }
    case "or":
      return eitherOf(placesOf(document, query.left), placesOf(document, query.right));
    default:
      return bothOf(document, query);
  }
}

function bothOf(
  document: SearchedDocument,
  query: Exclude<TsQuery, { kind: "word" | "not" | "or" }>,
): PhrasePlaces {
  const left = placesOf(document, query.left);
  if (isNowhere(left)) return NOWHERE;
  const right = placesOf(document, query.right);
  if (isNowhere(right)) return NOWHERE;
  if (left.isUnknown === true || right.isUnknown === true) return UNKNOWN;
  if (query.kind === "phrase") {
    const width = query.distance + left.width + right.width;
    return meeting(shifted(left, query.distance + right.width), right, width);
  }
  const width = Math.max(left.width, right.width);
  return meeting(shifted(left, width - left.width), shifted(right, width - right.width), width);
}

function shifted(places: PhrasePlaces, by: number): PhrasePlaces {
  if (by === 0) return places;
  return { ...places, positions: places.positions.map((position) => position + by) };
}

/**
 * Returns the positions at which both parts of a phrase end. The result is negated if both parts
 * are.
 */
function meeting(left: PhrasePlaces, right: PhrasePlaces, width: number): PhrasePlaces {
  if (left.isNegated && right.isNegated) {
    return { positions: union(left.positions, right.positions), isNegated: true, width };
  }
  if (left.isNegated) {
    return { positions: without(right.positions, left.positions), isNegated: false, width };
  }
  const kept = right.isNegated
    ? without(left.positions, right.positions)
    : common(left.positions, right.positions);
  return { positions: kept, isNegated: false, width };
}

/** Returns the positions at which at least one of two parts of a phrase ends. */
function eitherOf(left: PhrasePlaces, right: PhrasePlaces): PhrasePlaces {
  if (isNowhere(left)) return right;
  if (isNowhere(right)) return left;
  if (left.isUnknown === true || right.isUnknown === true) return UNKNOWN;
  const width = Math.max(left.width, right.width);
  const l = shifted(left, width - left.width);
  const r = shifted(right, width - right.width);
  if (l.isNegated && r.isNegated) {
    return { positions: common(l.positions, r.positions), isNegated: true, width };
  }
  if (l.isNegated) {
    return { positions: without(l.positions, r.positions), isNegated: true, width };
  }
  if (r.isNegated) {
    return { positions: without(r.positions, l.positions), isNegated: true, width };
  }
  return { positions: union(l.positions, r.positions), isNegated: false, width };
}

function union(left: readonly number[], right: readonly number[]): number[] {
  return [...new Set([...left, ...right])].toSorted(ascending);
}

function common(left: readonly number[], right: readonly number[]): number[] {
  const kept = new Set(right);
  return left.filter((each) => kept.has(each));
}

function without(left: readonly number[], right: readonly number[]): number[] {
  const removed = new Set(right);
  return left.filter((each) => !removed.has(each));
}

function ascending(left: number, right: number): number {
  return left - right;
}
