/**
 * Defines the text search operators. `@@` tests whether a document matches a query; `||`, `&&` and
 * `<->` combine documents or queries.
 *
 * A string on the left of `@@` is parsed as a document, and a string on the right as plain words.
 */
import {
  BOOLEAN,
  type DataType,
  TEXT,
  TSQUERY,
  TSVECTOR,
  type TsQuery,
  type TsWord,
  tsVectorFromText,
  type Value,
} from "../../../types/mod.ts";
import type { OperatorForm } from "../base/function.ts";
import { binaryForm, prefixForm } from "../base/operator_form.ts";
import { remembering } from "../base/remembering.ts";
import { DEFAULT_CONFIGURATION } from "../search/configurations.ts";
import { documentOf, matchesQuery } from "../search/query_match.ts";
import { queryFromWords } from "../search/query_texts.ts";
import {
  joinedQueries,
  joinedVectors,
  negatedQuery,
  queryOf,
  vectorOfText,
} from "../search/search_functions.ts";
import { trigramOperator } from "../search/trigrams.ts";

/** Whether an operand is a string, or a literal that can be read as a string. */
function isText({ kind }: DataType): boolean {
  return kind === "text" || kind === "unknown";
}

export function resolveSearch(
  op: string,
  left: DataType,
  right: DataType,
): OperatorForm | undefined {
  if (op === "@@") return resolveMatch(left, right);
  const hasText = left.kind === "text" || right.kind === "text";
  if (hasText && isText(left) && isText(right)) return trigramOperator(op);
  const type = left.kind === "unknown" ? right : left;
  const isSame = left.kind === right.kind || left.kind === "unknown" || right.kind === "unknown";
  if (!isSame) return undefined;
  if (type.kind === "tsvector") {
    return op === "||" ? binaryForm([TSVECTOR, TSVECTOR], TSVECTOR, joinedVectors) : undefined;
  }
  const joining = type.kind === "tsquery" ? JOININGS.get(op) : undefined;
  if (joining === undefined) return undefined;
  return binaryForm([TSQUERY, TSQUERY], TSQUERY, (l, r) => joinedQueries(joining, l, r));
}

const JOININGS: ReadonlyMap<string, "and" | "or" | "phrase"> = new Map([
  ["&&", "and"],
  ["||", "or"],
  ["<->", "phrase"],
]);

/** Returns the form of the operator in `!! query`. */
export function resolveSearchPrefix(op: string, operand: DataType): OperatorForm | undefined {
  const isQuery = operand.kind === "tsquery" || operand.kind === "unknown";
  return op === "!!" && isQuery ? prefixForm(TSQUERY, TSQUERY, negatedQuery) : undefined;
}

const queryOfWords = remembering((text) => ({
  query: queryFromWords(text, DEFAULT_CONFIGURATION, "and"),
}));

function resolveMatch(left: DataType, right: DataType): OperatorForm | undefined {
  if (left.kind === "tsquery" && (right.kind === "tsvector" || right.kind === "unknown")) {
    return binaryForm([TSQUERY, TSVECTOR], BOOLEAN, (query, vector) => matches(vector, query));
  }
  if (left.kind === "tsvector" && (right.kind === "tsquery" || right.kind === "unknown")) {
    return binaryForm([TSVECTOR, TSQUERY], BOOLEAN, matches);
  }
  if (left.kind === "unknown" && right.kind === "tsvector") {
    return binaryForm([TSQUERY, TSVECTOR], BOOLEAN, (query, vector) => matches(vector, query));
  }
  if (!isText(left)) return undefined;
  if (right.kind === "tsquery") {
    return binaryForm([TEXT, TSQUERY], BOOLEAN, (text, query) =>
      fulfils(vectorOfText(text as string), queryOf(query as string).query),
    );
  }
  if (!isText(right)) return undefined;
  return binaryForm([TEXT, TEXT], BOOLEAN, (text, words) =>
    fulfils(vectorOfText(text as string), queryOfWords(words as string).query),
  );
}

function matches(vector: Value, query: Value): boolean {
  return fulfils(tsVectorFromText(vector as string), queryOf(query as string).query);
}

/** Whether a document matches a query. An empty query matches nothing. */
function fulfils(words: readonly TsWord[], query: TsQuery | undefined): boolean {
  return query !== undefined && matchesQuery(documentOf(words), query);
}
