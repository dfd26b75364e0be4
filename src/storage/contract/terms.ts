/**
 * Defines the terms of an inverted index, and the conditions on them.
 *
 * An inverted index lists, for each term, the rows that contain it. The SQL layer derives terms
 * from the values of a row, for example the words of a document, and turns a condition into a query
 * over terms. Such a query may return rows that do not match, but never misses a row that does: the
 * condition itself is tested on each row.
 *
 * The terms of one value are passed as one string, joined by {@linkcode TERM_SEPARATOR}.
 */

/** Separates terms. No term contains this character. */
export const TERM_SEPARATOR = "\0";

/** A condition on the terms of an indexed row. */
export type TermQuery =
  | { readonly kind: "term"; readonly term: string; readonly isPrefix: boolean }
  /** At least `least` of the conditions hold: one of them for OR, all of them for AND. */
  | { readonly kind: "some"; readonly least: number; readonly parts: readonly TermQuery[] };

/** Returns the stored form of a term for one part of an index; parts are counted from 0. */
function termOfPart(term: string, part: number): string {
  return part === 0 ? term : `${String.fromCharCode(part)}${term}`;
}

/** Returns a query over the terms of one part of an index. */
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
