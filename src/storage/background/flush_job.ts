/**
 * The part of a flush that needs nothing but rows and a file: a frozen memtable is written into one
 * draft, which its caller syncs. A job is plain data, most of it in shared memory, so that another
 * thread can do it while the event loop goes on.
 */
import type { Disk, DiskFile } from "../../base/disk.ts";
import type { Compression } from "../contract/store.ts";
import { type FrozenRows, frozenPieces, segmentOrder } from "../memtable/memtable_segment.ts";
import { type SegmentEnd, type SegmentSummary, writeSegment } from "../segment/writer.ts";

export interface FlushJob {
  readonly segmentId: number;
  readonly tableId: number;
  readonly keyColumnIds: readonly number[];
  readonly compression: Compression | undefined;
  readonly rows: FrozenRows;
  /** Where the segment is written. */
  readonly draft: string;
}

export interface FlushOutcome {
  readonly summary: SegmentSummary;
  /** For each row of the segment: which one of the memtable it is. */
  readonly order: Uint32Array<ArrayBuffer>;
}

/** Does a job in steps of a few milliseconds, until it is done or cancelled. @throws {DiskError} */
export function* flushSteps(
  disk: Disk,
  { draft, rows, ...outline }: FlushJob,
  isCancelled: () => boolean,
): Generator<void, FlushOutcome | undefined> {
  const { columns } = rows;
  const order = yield* segmentOrder(rows);
  const pieces = frozenPieces(rows, order, { ...outline, columns });
  const summary = yield* draftSteps(disk, { draft, pieces, isCancelled });
  return summary === undefined ? undefined : { summary, order };
}

/** Writes the pieces of a segment into a draft. @throws {DiskError} */
export function* draftSteps(
  disk: Disk,
  {
    draft,
    isCancelled,
    pieces,
  }: {
    draft: string;
    pieces: Generator<Uint8Array, SegmentEnd>;
    isCancelled: () => boolean;
  },
): Generator<void, SegmentSummary | undefined> {
  // Piece by piece: the log's writes wait behind what is written back at once, 10 ms for 16 MiB.
  const file: DiskFile = disk.open(draft, { create: true, writesThrough: true });
  try {
    file.truncate(0);
    const steps = writeSegment(file, pieces);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
      yield;
      if (isCancelled()) return undefined;
    }
  } finally {
    file.close();
  }
}
