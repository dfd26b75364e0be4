/**
 * Creates text search queries from strings. Words are normalised by the same configuration as the
 * words of documents, and stop words are removed.
 */
import {
  parsedTsQuery,
  TS_NOTHING,
  type TsQuery,
  type TsQueryPart,
  withoutNothing,
} from "../../../types/mod.ts";
import { foundWords, type SearchConfiguration } from "./configurations.ts";

/** The operator that joins the words of a string into a text search query. */
type Joining = "and" | "phrase";

interface WordMarks {
  readonly isPrefix: boolean;
  readonly weights: number;
}

const PLAIN: WordMarks = { isPrefix: false, weights: 0 };

/**
 * Evaluates `to_tsquery`, which parses a string with operators. @throws {DatabaseError}
 * INVALID_SQL
 */
export function queryFromOperators(
  text: string,
  configuration: SearchConfiguration,
): TsQuery | undefined {
  return withoutNothing(
    parsedTsQuery(text, (word) => joinedWords(word.word, { configuration, as: "phrase" }, word)),
  );
}

/**
 * Evaluates `plainto_tsquery`, for which the words may occur in any order, and `phraseto_tsquery`,
 * for which they must occur in the given order.
 */
export function queryFromWords(
  text: string,
  configuration: SearchConfiguration,
  as: Joining,
): TsQuery | undefined {
  return withoutNothing(joinedWords(text, { configuration, as }, PLAIN));
}

/**
 * Joins the words of a string with an operator. Stop words still count in the distances of a
 * phrase.
 */
function joinedWords(
  text: string,
  { as, configuration }: { configuration: SearchConfiguration; as: Joining },
  { isPrefix, weights }: WordMarks,
): TsQueryPart {
  let query: TsQueryPart | undefined;
  let before = 0;
  for (const { position, word } of foundWords(text, configuration)) {
    if (word === undefined) continue;
    for (; query !== undefined && before + 1 < position; before += 1) {
      query = joined(query, TS_NOTHING, as);
    }
    before = position;
    const operand: TsQueryPart = { kind: "word", word, isPrefix, weights };
    query = query === undefined ? operand : joined(query, operand, as);
  }
  return query ?? TS_NOTHING;
}

function joined(left: TsQueryPart, right: TsQueryPart, as: Joining): TsQueryPart {
  return as === "and" ? { kind: "and", left, right } : { kind: "phrase", distance: 1, left, right };
}

/**
 * Matches a part of a web search query: a quoted phrase, a word or a punctuation mark, after any
 * minus signs.
 */
const WEB_PART =
  /\s*((?:-\s*)*)(?:"([^"]*)(?:"|$)|(or(?![\p{L}\p{N}_-])|[^\s"!&|()<:]+|[!&|()<:]))/iuy;

/**
 * Evaluates `websearch_to_tsquery`, which supports `or` between words, `-` before a word that must
 * not occur, and quotes around a phrase. Every string is valid.
 */
export function queryFromWeb(
  text: string,
  configuration: SearchConfiguration,
): TsQuery | undefined {
  let either: TsQueryPart | undefined;
  let both: TsQueryPart | undefined;
  let isOr = false;
  for (const { minusCount, word, quoted } of webParts(text)) {
    const isWord = word !== undefined;
    if (isWord && minusCount === 0 && /^or$/i.test(word) && both !== undefined && !isOr) {
      isOr = true;
      continue;
    }
    let part = joinedWords(word ?? quoted ?? "", { configuration, as: "phrase" }, PLAIN);
    for (let count = 0; count < minusCount; count += 1) part = { kind: "not", operand: part };
    if (isOr) {
      either =
        either === undefined ? both : { kind: "or", left: either, right: both ?? TS_NOTHING };
      both = part;
      isOr = false;
    } else {
      both = both === undefined ? part : { kind: "and", left: both, right: part };
    }
  }
  if (isOr && both !== undefined) {
    const or = joinedWords("or", { configuration, as: "phrase" }, PLAIN);
    both = { kind: "and", left: both, right: or };
  }
  const right = both ?? TS_NOTHING;
  return withoutNothing(either === undefined ? right : { kind: "or", left: either, right });
}

interface WebPart {
  readonly minusCount: number;
  readonly word: string | undefined;
  readonly quoted: string | undefined;
}

function* webParts(text: string): Generator<WebPart> {
  WEB_PART.lastIndex = 0;
  let at = 0;
  for (;;) {
    WEB_PART.lastIndex = at;
    const match = WEB_PART.exec(text);
    if (match === null) return;
    at = WEB_PART.lastIndex;
    const signs = (match[1] ?? "").replaceAll(/\s/g, "");
    yield { minusCount: signs.length, quoted: match[2], word: match[3] };
  }
}
