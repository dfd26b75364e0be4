/**
 * The ways in which an inverted index derives terms from values:
 *
 * - words: the words of a TSVECTOR
 * - trigrams: the trigrams of a string
 * - document: the keys and the values of a JSONB document, with their paths
 * - elements: the elements of an array
 */
export type TermKind = "words" | "trigrams" | "document" | "elements";
