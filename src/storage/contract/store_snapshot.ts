/**
 * Everything that a copy of the store at one moment consists of. While it is held, no file of it is
 * removed, renamed or written again below where it ends.
 */
import type { Seq } from "../../base/seq.ts";
import type { SegmentEntry } from "./manifest.ts";

export interface StoreSnapshot {
  /** Highest seq in the log at that moment. */
  readonly seq: Seq;
  readonly segments: readonly SegmentEntry[];
  /** Log files that recovery needs, in order. */
  readonly logFiles: readonly number[];
  /** Bytes of the last one that were written at that moment. */
  readonly logEnd: number;
  /** No id of SNOWFLAKE_ID() above this was handed out. */
  readonly reservedIds: number;
  /** Lets the files go. */
  release(): void;
}
