/**
 * How an inverted index derives terms from values:
 *
 * - words: the lexemes of a TSVECTOR
 * - trigrams: the trigrams of a string
 * - document: the keys and values of a JSONB document, with their paths
 * - elements: the elements of an array
 */
export type TermKind = "words" | "trigrams" | "document" | "elements";
