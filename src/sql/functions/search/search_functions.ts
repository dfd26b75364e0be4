/** Defines the text search functions on documents (TSVECTOR) and queries (TSQUERY). */
import { DatabaseError } from "../../../base/errors.ts";
import {
  type DataType,
  FLOAT,
  INT,
  isJsonArray,
  isJsonObject,
  type JsonNode,
  jsonTree,
  quotedTsWord,
  TEXT,
  TSQUERY,
  TSVECTOR,
  type TsQuery,
  type TsWeight,
  type TsWord,
  textFromJson,
  textFromTsQuery,
  textFromTsVector,
  tsQueryFromText,
  tsVectorFromText,
  tsVectorOf,
  tsWeightOf,
  type Value,
} from "../../../types/mod.ts";
import { functionsNamed, overload } from "../base/define.ts";
import type { Overload, ParameterType, ScalarFunction } from "../base/function.ts";
import { remembering } from "../base/remembering.ts";
import {
  configurationOf,
  DEFAULT_CONFIGURATION,
  foundWords,
  type SearchConfiguration,
  wordsOfDictionary,
} from "./configurations.ts";
import { headlineOf } from "./headline.ts";
import { jsonFilter, jsonStrings, STRINGS_ONLY } from "./json_strings.ts";
import { queryFromOperators, queryFromWeb, queryFromWords } from "./query_texts.ts";
import { densityRankOf, type RankOptions, rankOf, rankWeights } from "./rank.ts";

const TEXTS: DataType = { kind: "array", element: TEXT };
const FLOATS: DataType = { kind: "array", element: FLOAT };

/**
 * Parses a text search query. The result is cached, because a query is often used for many rows.
 */
export const queryOf = remembering((text) => ({ query: tsQueryFromText(text) }));

export function vectorOfText(text: string, configuration = DEFAULT_CONFIGURATION): TsWord[] {
  return vectorOfTexts([text], configuration);
}

/**
 * Combines several strings into a single document. A gap of one position between the strings keeps
 * phrases from matching across them.
 */
function vectorOfTexts(texts: Iterable<string>, configuration: SearchConfiguration): TsWord[] {
  const words: TsWord[] = [];
  let before = 0;
  for (const text of texts) {
    let last = 0;
    let isFound = false;
    for (const { position, word } of foundWords(text, configuration)) {
      last = position;
      if (word === undefined) continue;
      isFound = true;
      words.push({ word, positions: [{ at: before + position, weight: 0 }] });
    }
    before += last + (isFound ? 1 : 0);
  }
  return tsVectorOf(words);
}

/**
 * Creates the overloads of a function with and without a text search configuration as its first
 * argument.
 */
function configured(
  parameters: readonly ParameterType[],
  result: DataType,
  make: (texts: readonly string[], configuration: SearchConfiguration) => string,
): Overload[] {
  return [
    overload(parameters, result, (texts) => make(texts as string[], DEFAULT_CONFIGURATION)),
    overload([TEXT, ...parameters], result, ([name = null, ...texts]) =>
      make(texts as string[], configurationOf(name as string)),
    ),
  ];
}

function queries(
  name: string,
  make: (text: string, configuration: SearchConfiguration) => TsQuery | undefined,
): ScalarFunction[] {
  return functionsNamed(
    [name],
    ...configured([TEXT], TSQUERY, ([text = ""], configuration) =>
      textFromTsQuery(make(text, configuration)),
    ),
  );
}

/**
 * Returns the text search weight for a letter from A to D.
 * @throws {DatabaseError} INVALID_VALUE
 */
function weightFrom(letter: Value): TsWeight {
  const weight = tsWeightOf(letter as string);
  if (weight !== undefined) return weight;
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot use "${letter as string}" as a word weight: the weights are A, B, C and D`,
  );
}

function setWeight([vector = null, letter = null, chosen]: readonly Value[]): string {
  const weight = weightFrom(letter);
  const only = chosen === undefined ? undefined : new Set(chosen as readonly Value[]);
  return textFromTsVector(
    tsVectorFromText(vector as string).map((each) =>
      only === undefined || only.has(each.word)
        ? { word: each.word, positions: each.positions.map(({ at }) => ({ at, weight })) }
        : each,
    ),
  );
}

/**
 * Concatenates two documents. The positions of the second document continue after the last
 * position of the first.
 */
export function joinedVectors(left: Value, right: Value): string {
  const first = tsVectorFromText(left as string);
  const last = first.reduce((most, { positions }) => Math.max(most, positions.at(-1)?.at ?? 0), 0);
  const second = tsVectorFromText(right as string).map(({ positions, word }) => ({
    word,
    positions: positions.map(({ at, weight }) => ({ at: Math.min(at + last, 16_383), weight })),
  }));
  return textFromTsVector(tsVectorOf([...first, ...second]));
}

export function joinedQueries(
  kind: "and" | "or" | "phrase",
  left: Value,
  right: Value,
  distance = 1,
): string {
  const [a, b] = [queryOf(left as string).query, queryOf(right as string).query];
  if (a === undefined || b === undefined) return textFromTsQuery(a ?? b);
  return textFromTsQuery(
    kind === "phrase" ? { kind, distance, left: a, right: b } : { kind, left: a, right: b },
  );
}

export function negatedQuery(query: Value): string {
  const operand = queryOf(query as string).query;
  return operand === undefined ? "" : textFromTsQuery({ kind: "not", operand });
}

type Rank = (words: readonly TsWord[], query: TsQuery | undefined, options: RankOptions) => number;

function ranks(name: string, rank: Rank): ScalarFunction[] {
  const evaluate = (weights: Value | undefined, rest: readonly Value[]): number => {
    const [vector = null, query = null, normalization = 0] = rest;
    return rank(tsVectorFromText(vector as string), queryOf(query as string).query, {
      weights: rankWeights(weights as readonly Value[] | undefined),
      normalization: normalization as number,
    });
  };
  return functionsNamed(
    [name],
    overload([TSVECTOR, TSQUERY, INT], FLOAT, (values) => evaluate(undefined, values), {
      optionalCount: 1,
    }),
    overload(
      [FLOATS, TSVECTOR, TSQUERY, INT],
      FLOAT,
      ([weights = null, ...rest]) => evaluate(weights, rest),
      { optionalCount: 1 },
    ),
  );
}

/** Creates the overloads of ts_headline for texts or for JSON. */
function headlines(parameter: DataType | "json"): Overload[] {
  const evaluate = (
    [document = null, query = null, options = ""]: readonly Value[],
    types: readonly DataType[],
    configuration: SearchConfiguration,
  ): string => {
    const sought = queryOf(query as string).query;
    const given = { configuration, options: options as string };
    const headline = (text: string): string => headlineOf(text, sought, given);
    if (parameter !== "json") return headline(document as string);
    const changed = mappedStrings(jsonTree(document as string), headline);
    return isBinary(types.find(isJson)) ? textFromJson(changed) : compactJson(changed);
  };
  return [
    overload(
      [parameter, TSQUERY, TEXT],
      jsonOrText,
      (values, _, types) => evaluate(values, types, DEFAULT_CONFIGURATION),
      { optionalCount: 1 },
    ),
    overload(
      [TEXT, parameter, TSQUERY, TEXT],
      jsonOrText,
      ([name = null, ...values], _, types) =>
        evaluate(values, types, configurationOf(name as string)),
      { optionalCount: 1 },
    ),
  ];
}

function jsonOrText(types: readonly DataType[]): DataType {
  return types.find(isJson) ?? TEXT;
}

function isJson({ kind }: DataType): boolean {
  return kind === "json";
}

function isBinary(type: DataType | undefined): boolean {
  return type?.kind === "json" && type.binary;
}

/** Formats a JSON document without whitespace between its tokens. */
function compactJson(node: JsonNode): string {
  if (node === null || typeof node !== "object") return textFromJson(node);
  if (isJsonArray(node)) return `[${node.map(compactJson).join(",")}]`;
  if (!isJsonObject(node)) return textFromJson(node);
  const members = [...node].map(([key, value]) => `${JSON.stringify(key)}:${compactJson(value)}`);
  return `{${members.join(",")}}`;
}

function mappedStrings(node: JsonNode, change: (text: string) => string): JsonNode {
  if (typeof node === "string") return change(node);
  if (node === null || typeof node === "boolean") return node;
  if (isJsonArray(node)) return node.map((element) => mappedStrings(element, change));
  if (!isJsonObject(node)) return node;
  return new Map([...node].map(([key, value]) => [key, mappedStrings(value, change)]));
}

function partCount(query: TsQuery | undefined): number {
  if (query === undefined) return 0;
  if (query.kind === "word") return 1;
  if (query.kind === "not") return 1 + partCount(query.operand);
  return 1 + partCount(query.left) + partCount(query.right);
}

function onWords(
  parameters: readonly ParameterType[],
  change: (words: TsWord[], rest: readonly Value[]) => readonly TsWord[],
): Overload {
  return overload(parameters, TSVECTOR, ([vector = null, ...rest]) =>
    textFromTsVector(change(tsVectorFromText(vector as string), rest)),
  );
}

function withoutWords(words: readonly TsWord[], removed: readonly Value[]): TsWord[] {
  const gone = new Set(removed);
  return words.filter(({ word }) => !gone.has(word));
}

/**
 * Returns the words that have positions with one of the given weights. Other positions of these
 * words are omitted.
 */
function filtered(words: readonly TsWord[], letters: readonly Value[]): TsWord[] {
  const kept = new Set(letters.map(weightFrom));
  return words
    .map(({ positions, word }) => ({
      word,
      positions: positions.filter(({ weight }) => kept.has(weight)),
    }))
    .filter(({ positions }) => positions.length > 0);
}

const wordCount = ([vector = null]: readonly Value[]): number =>
  tsVectorFromText(vector as string).length;

/** The overload of `length` for a document, which returns the number of distinct words. */
export const VECTOR_LENGTH: Overload = overload([TSVECTOR], INT, wordCount);

export const SEARCH_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["to_tsvector"],
    ...configured([TEXT], TSVECTOR, ([text = ""], configuration) =>
      textFromTsVector(vectorOfText(text, configuration)),
    ),
    ...configured(["json"], TSVECTOR, ([json = ""], configuration) =>
      textFromTsVector(vectorOfTexts(jsonStrings(jsonTree(json), STRINGS_ONLY), configuration)),
    ),
  ),
  ...functionsNamed(
    ["json_to_tsvector", "jsonb_to_tsvector"],
    ...configured(["json", "json"], TSVECTOR, ([json = "", filter = ""], configuration) =>
      textFromTsVector(
        vectorOfTexts(jsonStrings(jsonTree(json), jsonFilter(filter)), configuration),
      ),
    ),
  ),
  ...queries("to_tsquery", queryFromOperators),
  ...queries("plainto_tsquery", (text, own) => queryFromWords(text, own, "and")),
  ...queries("phraseto_tsquery", (text, own) => queryFromWords(text, own, "phrase")),
  ...queries("websearch_to_tsquery", queryFromWeb),
  ...functionsNamed(
    ["ts_lexize"],
    overload([TEXT, TEXT], TEXTS, ([name = null, token = null]) => [
      ...wordsOfDictionary(name as string, token as string),
    ]),
  ),
  ...functionsNamed(["ts_headline"], ...headlines(TEXT), ...headlines("json")),
  ...ranks("ts_rank", rankOf),
  ...ranks("ts_rank_cd", densityRankOf),
  ...functionsNamed(
    ["setweight"],
    overload([TSVECTOR, TEXT, TEXTS], TSVECTOR, setWeight, { optionalCount: 1 }),
  ),
  ...functionsNamed(
    ["strip"],
    onWords([TSVECTOR], (words) => words.map(({ word }) => ({ word, positions: [] }))),
  ),
  ...functionsNamed(
    ["ts_delete"],
    onWords([TSVECTOR, TEXT], withoutWords),
    onWords([TSVECTOR, TEXTS], (words, [removed]) => withoutWords(words, removed as Value[])),
  ),
  ...functionsNamed(
    ["ts_filter"],
    onWords([TSVECTOR, TEXTS], (words, [letters]) => filtered(words, letters as Value[])),
  ),
  ...functionsNamed(
    ["tsvector_to_array"],
    overload([TSVECTOR], TEXTS, ([vector = null]) =>
      tsVectorFromText(vector as string).map(({ word }) => word),
    ),
  ),
  ...functionsNamed(
    ["array_to_tsvector"],
    overload([TEXTS], TSVECTOR, ([words = null]) =>
      textFromTsVector(tsVectorOf((words as readonly Value[]).map(wordOfElement))),
    ),
  ),
  ...functionsNamed(
    ["numnode"],
    overload([TSQUERY], INT, ([query = null]) => partCount(queryOf(query as string).query)),
  ),
  ...functionsNamed(
    ["tsquery_phrase"],
    overload(
      [TSQUERY, TSQUERY, INT],
      TSQUERY,
      ([left = null, right = null, distance = 1]) =>
        joinedQueries("phrase", left, right, distance as number),
      { optionalCount: 1 },
    ),
  ),
];

function wordOfElement(word: Value): TsWord {
  if (typeof word === "string" && word !== "") return { word, positions: [] };
  throw new DatabaseError(
    "INVALID_VALUE",
    `Cannot create a tsvector from ${word === null ? "NULL" : quotedTsWord("")}: its words ` +
      "must not be NULL or empty",
  );
}
