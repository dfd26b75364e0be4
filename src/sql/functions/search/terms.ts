/**
 * Derives the terms of an inverted index from values, and term queries from conditions.
 *
 *     words       'cat':3 'hat':5          cat  hat                @@: as the query says
 *     trigrams    cat                      ␣␣c ␣ca cat at␣         LIKE: trigrams of the pattern
 *     document    {"a": {"b": 1}}          ka  ka.b  va.b#1        @>: all terms of the document
 *     elements    {1,2}                    1  2                    @>: all elements, &&: any
 *
 * A term query finds all rows that satisfy the condition. It may also find other rows, so the
 * condition is still tested on each row.
 */
import { TERM_SEPARATOR, type TermQuery } from "../../../storage/mod.ts";
import {
  type ArrayValue,
  type DataType,
  elementsOf,
  groupKeyOf,
  isJsonArray,
  isJsonObject,
  type JsonNode,
  jsonTree,
  type TermKind,
  type TsQuery,
  tsVectorFromText,
  type Value,
} from "../../../types/mod.ts";
import { queryOf } from "./search_functions.ts";
import { distinctTrigrams, leastCommon, trigramsOfLike } from "./trigrams.ts";

/**
 * The maximum number of characters of a value in its term. Longer values with the same prefix
 * share a term.
 */
const VALUE_CHARACTERS = 64;

/** The separator that follows each key in the path of a JSON term. */
const KEY_END = "\u0001";

/** Returns the index terms of a non-NULL value, joined into one string. */
export function joinedTerms(kind: TermKind, type: DataType, value: Value): string {
  return [...termsOf(kind, type, value)].map(withoutSeparator).join(TERM_SEPARATOR);
}

function termsOf(kind: TermKind, type: DataType, value: Value): Iterable<string> {
  switch (kind) {
    case "words":
      return tsVectorFromText(value as string).map(({ word }) => word);
    case "trigrams":
      return distinctTrigrams(value as string);
    case "document":
      return documentTerms(jsonTree(value as string));
    case "elements":
      return elementTerms(type, value);
  }
}

function withoutSeparator(term: string): string {
  return term.includes(TERM_SEPARATOR) ? term.replaceAll(TERM_SEPARATOR, " ") : term;
}

function elementTerms(type: DataType, value: Value): Set<string> {
  const terms = new Set<string>();
  if (type.kind !== "array") return terms;
  for (const item of elementsOf(value as ArrayValue)) {
    if (item !== null) terms.add(shortened(String(groupKeyOf(type.element, item))));
  }
  return terms;
}

function shortened(text: string): string {
  return text.slice(0, VALUE_CHARACTERS).toWellFormed();
}

function documentTerms(node: JsonNode): Set<string> {
  const terms = new Set<string>();
  addDocument(node, "", terms);
  return terms;
}

/**
 * Adds the index terms of a JSON document. Array positions are not part of a path, because
 * containment ignores them.
 */
function addDocument(node: JsonNode, path: string, terms: Set<string>): void {
  if (isJsonArray(node)) {
    for (const each of node) addDocument(each, path, terms);
    return;
  }
  if (!isJsonObject(node)) {
    terms.add(valueTerm(path, scalarText(node)));
    return;
  }
  for (const [key, value] of node) {
    const inner = `${path}${key.toWellFormed()}${KEY_END}`;
    terms.add(`k${inner}`);
    addDocument(value, inner, terms);
  }
}

function valueTerm(path: string, text: string): string {
  return `v${path}${text}`;
}

function scalarText(node: null | boolean | string | { readonly number: string }): string {
  if (node === null) return "n";
  if (typeof node === "string") return `s${shortened(node)}`;
  if (typeof node === "boolean") return node ? "t" : "f";
  // Equal numbers with different text, such as 1.0 and 1, have the same term.
  return `#${Number(node.number)}`;
}

/** The operators that an inverted index supports. The indexed value is the left operand. */
export type TermOperator =
  | "@@"
  | "LIKE"
  | "ILIKE"
  | "%"
  | "<%"
  | "<<%"
  | "@>"
  | "&&"
  | "?"
  | "?|"
  | "?&";

/**
 * The index operators that correspond to an SQL operator, depending on whether the indexed value
 * is its left or right operand.
 */
type OperatorSides = Readonly<{ left?: TermOperator; right?: TermOperator }>;

const OPERATORS: Readonly<Record<TermKind, ReadonlyMap<string, OperatorSides>>> = {
  words: new Map<string, OperatorSides>([["@@", { left: "@@", right: "@@" }]]),
  trigrams: new Map<string, OperatorSides>([
    ["LIKE", { left: "LIKE" }],
    ["ILIKE", { left: "ILIKE" }],
    ["%", { left: "%", right: "%" }],
    ["<%", { right: "<%" }],
    ["%>", { left: "<%" }],
    ["<<%", { right: "<<%" }],
    ["%>>", { left: "<<%" }],
  ]),
  document: new Map<string, OperatorSides>([
    ["@>", { left: "@>" }],
    ["<@", { right: "@>" }],
    ["?", { left: "?" }],
    ["?|", { left: "?|" }],
    ["?&", { left: "?&" }],
  ]),
  elements: new Map<string, OperatorSides>([
    ["@>", { left: "@>" }],
    ["<@", { right: "@>" }],
    ["&&", { left: "&&", right: "&&" }],
  ]),
};

/**
 * Returns the index operator that finds rows for an SQL operator; undefined if there is none.
 *
 * @param side The operand of the SQL operator that is indexed.
 */
export function termOperatorOf(
  kind: TermKind,
  operator: string,
  side: "left" | "right",
): TermOperator | undefined {
  return OPERATORS[kind].get(operator)?.[side];
}

/**
 * Returns the term query for a condition; undefined if any row may satisfy the condition. @throws
 * {DatabaseError}
 */
export function termQueryOf(
  operator: TermOperator,
  {
    kind,
    type,
    value,
  }: { readonly kind: TermKind; readonly type: DataType; readonly value: Value },
): TermQuery | undefined {
  // The condition is NULL for every row, so no row satisfies it.
  if (value === null) return NOTHING;
  switch (operator) {
    case "@@":
      return queryOfWords(queryOf(value as string).query);
    case "LIKE":
    case "ILIKE":
      return allOf(trigramsOfLike(value as string));
    case "%":
    case "<%":
    case "<<%": {
      const trigrams = distinctTrigrams(value as string);
      return someOf(leastCommon(Math.max(1, trigrams.size), operator), trigrams);
    }
    case "@>":
      return kind === "elements" && hasNull(value) ? NOTHING : allOf(termsOf(kind, type, value));
    case "&&":
      return someOf(1, elementTerms(type, value));
    case "?":
      return queryOfKey(value as string);
    case "?|":
      return anyOf(keysIn(value).map(queryOfKey));
    case "?&": {
      const parts = keysIn(value).map(queryOfKey);
      return parts.length === 0 ? undefined : { kind: "some", least: parts.length, parts };
    }
  }
}

const NOTHING: TermQuery = { kind: "some", least: 1, parts: [] };

function hasNull(value: Value): boolean {
  return elementsOf(value as ArrayValue).includes(null);
}

function keysIn(value: Value): string[] {
  return elementsOf(value as ArrayValue).flatMap((key) => (key === null ? [] : [key as string]));
}

/**
 * Returns the term query for documents that have a key according to `?`: as a key of the top-level
 * object, as a string in the top-level array, or as the document itself.
 */
function queryOfKey(key: string): TermQuery {
  return anyOf([
    exactly(`k${key.toWellFormed()}${KEY_END}`),
    exactly(valueTerm("", scalarText(key))),
  ]);
}

function exactly(term: string): TermQuery {
  return { kind: "term", term: withoutSeparator(term), isPrefix: false };
}

function anyOf(parts: readonly TermQuery[]): TermQuery {
  return { kind: "some", least: 1, parts };
}

function someOf(least: number, terms: Iterable<string>): TermQuery {
  return { kind: "some", least, parts: Array.from(terms, exactly) };
}

/**
 * Returns a query for rows that have all of the given terms; undefined if there are no terms,
 * because then every row qualifies.
 */
function allOf(terms: Iterable<string>): TermQuery | undefined {
  const parts = Array.from(terms, exactly);
  return parts.length === 0 ? undefined : { kind: "some", least: parts.length, parts };
}

/** Returns the term query for a text search. An empty tsquery matches no document. */
function queryOfWords(query: TsQuery | undefined): TermQuery | undefined {
  return query === undefined ? NOTHING : queryOfOperand(query);
}

function queryOfOperand(query: TsQuery): TermQuery | undefined {
  switch (query.kind) {
    case "word":
      return { kind: "term", term: withoutSeparator(query.word), isPrefix: query.isPrefix };
    case "not":
      return undefined;
    case "or": {
      const left = queryOfOperand(query.left);
      const right = queryOfOperand(query.right);
      return left && right && anyOf([left, right]);
    }
    default: {
      const left = queryOfOperand(query.left);
      const right = queryOfOperand(query.right);
      if (left === undefined || right === undefined) return left ?? right;
      return { kind: "some", least: 2, parts: [left, right] };
    }
  }
}
