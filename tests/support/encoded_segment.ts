/** A complete segment in memory: its rows, and the bytes of its file. */
import { ByteWriter } from "../../src/base/byte_writer.ts";
import { groupEnd } from "../../src/storage/segment/group_size.ts";
import {
  type SegmentColumn,
  type SegmentEnd,
  type SegmentOutline,
  type SegmentRows,
  SegmentWriter,
} from "../../src/storage/segment/writer.ts";
import { slice, type Vector } from "../../src/types/mod.ts";

/** All rows of a segment, in ascending order of (owner, seq). */
export interface SegmentInput extends Omit<SegmentRows, "vectors">, SegmentOutline {
  readonly columns: readonly (SegmentColumn & { readonly vector: Vector })[];
}

/** Returns the bytes of a segment file without writing a file. */
export function encodeSegment(input: SegmentInput): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter(65536);
  const pieces = segmentChunks(input);
  for (;;) {
    const step = pieces.next();
    if (step.done !== true) {
      writer.raw(step.value);
      continue;
    }
    const bytes = writer.copy();
    if (step.value.header !== undefined) bytes.set(step.value.header);
    return bytes;
  }
}

/** Yields the bytes of a segment file in order. Some chunks are empty, to let other work run. */
export function* segmentChunks(input: SegmentInput): Generator<Uint8Array, SegmentEnd> {
  const vectors = input.columns.map(({ vector }) => vector);
  const rowCount = input.seqs.length;
  const writer = new SegmentWriter(input);
  let start = 0;
  while (start < rowCount) {
    const end = groupEnd(vectors, start, rowCount);
    const groupStart = start;
    yield* writer.group({
      vectors: vectors.map((vector) => slice(vector, groupStart, end)),
      owners: input.owners.subarray(start, end),
      seqs: input.seqs.subarray(start, end),
      prevs: input.prevs.subarray(start, end),
      commitSeqs: input.commitSeqs.subarray(start, end),
      deleted: input.deleted.subarray(start, end),
      replacingSeqs: input.replacingSeqs?.subarray(start, end),
    });
    start = end;
  }
  return yield* writer.finish();
}
