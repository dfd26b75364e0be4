/** Builds the parts of a segment's inverted index from its rows. */
import { type IndexColumn, joinedTermsOf, termExpressionsOf } from "../contract/key_expressions.ts";
import { rowTerms } from "../contract/terms.ts";
import type { SegmentReader } from "../segment/reader.ts";
import { type TermPart, TermPartBuilder } from "../segment/term_part.ts";
import { groupVectors } from "./index_values.ts";

/**
 * Builds the part of an inverted index that covers one row group, in steps of a few milliseconds.
 * @throws {CorruptionError}
 */
export function* termPart(
  reader: SegmentReader,
  { columns }: { readonly columns: readonly IndexColumn[] },
  group: number,
): Generator<void, TermPart> {
  const builder = new TermPartBuilder(reader.groupStart(group));
  for (const { rowCount, vectors } of groupVectors(reader, termExpressionsOf(columns), group)) {
    const texts = vectors.map(joinedTermsOf);
    for (let row = 0; row < rowCount; row += 1) {
      builder.add(rowTerms(texts.map((each) => each[row] ?? null)));
    }
    yield;
  }
  return builder.finished();
}

/** Builds all parts of an inverted index in memory, because its file cannot be read. */
export function allTermParts(
  reader: SegmentReader,
  columns: readonly IndexColumn[],
): readonly TermPart[] {
  const parts: TermPart[] = [];
  for (let group = 0; group < reader.groupCount; group += 1) {
    const steps = termPart(reader, { columns }, group);
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    parts.push(step.value);
  }
  return parts;
}
