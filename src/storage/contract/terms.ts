/**
 * Defines the terms of an inverted index, and conditions on them.
 *
 * An inverted index lists, for each term, the rows that contain it. The SQL layer derives terms
 * from a row's values, for example the words of a document, and turns a condition into a query
 * over terms. Such a query may return rows that do not match, but never misses a matching row: the
 * condition itself is then tested on each row.
 *
 * The terms of a value are passed as a single string, joined by {@linkcode TERM_SEPARATOR}.
 */

/** Separates joined terms. No term contains this character. */
export const TERM_SEPARATOR = "\0";

/** A condition on the terms of an indexed row. */
export type TermQuery =
  | { readonly kind: "term"; readonly term: string; readonly isPrefix: boolean }
  /**
   * Requires that at least `least` of the conditions hold: 1 for OR, the number of parts for AND.
   */
  | { readonly kind: "some"; readonly least: number; readonly parts: readonly TermQuery[] };

/**
 * Returns the stored form of a term that belongs to a given part of an index. Parts are numbered
 * from 0.
 */
function termOfPart(term: string, part: number): string {
  return part === 0 ? term : `${String.fromCharCode(part)}${term}`;
}

/** Restricts a query to the terms of one part of an index. */
export function queryOfPart(query: TermQuery, part: number): TermQuery {
  if (part === 0) return query;
  if (query.kind === "term") return { ...query, term: termOfPart(query.term, part) };
  return { ...query, parts: query.parts.map((each) => queryOfPart(each, part)) };
}

/** Returns a row's terms in stored form, given the joined terms of each part of an index. */
export function rowTerms(parts: readonly (string | null)[]): string[] {
  const terms: string[] = [];
  for (const [part, joined] of parts.entries()) {
    if (joined === null || joined === "") continue;
    for (const term of joined.split(TERM_SEPARATOR)) terms.push(termOfPart(term, part));
  }
  return terms;
}
