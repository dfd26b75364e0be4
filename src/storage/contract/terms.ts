/**
 * The terms of an inverted index, and conditions on them.
 *
 * An inverted index lists, for each term, the rows that have it. The SQL layer derives the terms
 * from the value of a row, for example the words of a document, and turns a condition into a query
 * of terms. The rows of a query may be too many, but never too few: the condition itself is tested
 * on each of them.
 *
 * The terms of one value travel as one string, joined by {@linkcode TERM_SEPARATOR}.
 */

/** Separates terms. A term contains no such character. */
export const TERM_SEPARATOR = "\0";

/** A condition on the terms of a row. */
export type TermQuery =
  | { readonly kind: "term"; readonly term: string; readonly isPrefix: boolean }
  /** At least a number of conditions hold: one for OR, all for AND. */
  | { readonly kind: "some"; readonly least: number; readonly parts: readonly TermQuery[] };

/** Returns a term as it is stored for a part of an index, counted from 0. */
function termOfPart(term: string, part: number): string {
  return part === 0 ? term : `${String.fromCharCode(part)}${term}`;
}

/** Returns a query over the terms of a part of an index. */
export function queryOfPart(query: TermQuery, part: number): TermQuery {
  if (part === 0) return query;
  if (query.kind === "term") return { ...query, term: termOfPart(query.term, part) };
  return { ...query, parts: query.parts.map((each) => queryOfPart(each, part)) };
}

/** Returns the terms of a row, given the joined terms of each part of an index. */
export function rowTerms(parts: readonly (string | null)[]): string[] {
  const terms: string[] = [];
  for (const [part, joined] of parts.entries()) {
    if (joined === null || joined === "") continue;
    for (const term of joined.split(TERM_SEPARATOR)) terms.push(termOfPart(term, part));
  }
  return terms;
}
