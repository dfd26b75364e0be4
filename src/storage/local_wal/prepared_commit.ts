/**
 * Encodes the log frames of a large commit before the commit's position in the log and its seqs
 * are known.
 *
 * - Each part is a complete frame in separate memory; `seal` fills in its header.
 * - A row is identified by its index within the commit. If a row's seq does not follow the seq of
 *   the previous row, space is reserved for it, which `seal` fills in as well.
 */
import { assert, defined } from "../../base/assert.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import type { Batch, Row } from "../../types/mod.ts";
import type { PreparedCommit } from "../contract/commit_log.ts";
import type { StoredColumn } from "../contract/table_definition.ts";
import type { TableWrite } from "../contract/writes.ts";
import { beginFrame, type FrameHead, sealFrame } from "./format.ts";
import { writeColumns } from "./frame_columns.ts";
import { type RowHead, requireCommitFits, writeHead, writeRow, writeRowAt } from "./frame_rows.ts";

/**
 * The approximate size in bytes of the frames into which a commit is split. A full frame is
 * slightly larger. A smaller frame would take just as long to sync.
 */
export const PART_BYTES_MAX: number = 4 * 1024 * 1024;

const PART_BYTES_AT_START = 64 * 1024;

export interface PreparedOptions {
  /**
   * The size in bytes at which a part of the commit is full. The row that crosses this limit is
   * still added to the part.
   */
  readonly partBytes: number;
  readonly rowBytesMax: number;
  /**
   * The maximum total size in bytes of all parts of a commit. A part that crosses the limit is
   * refused.
   */
  readonly commitBytesMax: number;
  /** Returns the offset of a row's seq from the first row's seq. */
  readonly offsetOf: (index: number) => number;
}

interface FramePart {
  readonly bytes: ByteWriter;
  /** The index, within the commit, of the first row in the part. */
  readonly first: number;
  last: number;
  /**
   * The rows whose seqs have to be written, because they do not follow the seq of the previous
   * row. `at` is the offset where each seq belongs.
   */
  readonly jumps: { readonly index: number; readonly at: number }[];
}

/** The fields of a frame's header that the caller of `seal` supplies. */
export type PreparedHead = Omit<FrameHead, "kind" | "firstSeq" | "lastSeq">;

export class PreparedFrames implements PreparedCommit {
  readonly #options: PreparedOptions;
  readonly #partBytes: number;
  readonly #parts: FramePart[] = [];
  #part: FramePart | undefined;
  /** The total size of the full parts in bytes. */
  #fullBytes = 0;
  #write: TableWrite | undefined;
  #columns: readonly StoredColumn[] = [];
  #rowCountOffset = 0;
  #rowCount = 0;
  #nextOffset = -1;

  constructor(options: PreparedOptions) {
    this.#options = options;
    this.#partBytes = Math.min(PART_BYTES_MAX, options.partBytes);
  }

  get partCount(): number {
    return this.#parts.length;
  }

  beginWrite(write: TableWrite, columns: readonly StoredColumn[]): void {
    // Consecutive slices of a write are encoded as one write, which lets recovery decide from the
    // frame's head whether it needs the frame at all.
    if (this.#columns === columns && isAlike(this.#write, write)) return;
    this.#endWrite();
    this.#write = write;
    this.#columns = columns;
  }

  addRow(row: Row, index: number, prev: number): void {
    const head = this.#beginRow(index, prev);
    writeRow(this.#partAt(index).bytes, row, head);
    this.#endRow(index);
  }

  addBatch({ columns, rowCount }: Batch, first: number, prevs: Float64Array): void {
    if (rowCount > 0 && this.#addColumns({ columns, rowCount }, first, prevs)) return;
    for (let row = 0; row < rowCount; row += 1) {
      const index = first + row;
      const head = this.#beginRow(index, prevs[row] ?? 0);
      writeRowAt(this.#partAt(index).bytes, { columns, row }, head);
      this.#endRow(index);
    }
  }

  /**
   * Writes columnar rows if they fit into the part and their columns are supported. Returns false
   * otherwise.
   */
  #addColumns({ columns, rowCount }: Batch, first: number, prevs: Float64Array): boolean {
    const { offsetOf, rowBytesMax } = this.#options;
    const part = this.#partAt(first);
    const { bytes, jumps } = part;
    const seqs = new Float64Array(rowCount);
    for (let row = 0; row < rowCount; row += 1) seqs[row] = offsetOf(first + row);
    const nextSeq = first === part.first ? (seqs[0] ?? 0) : this.#nextOffset;
    const bytesMax = this.#partBytes - bytes.length;
    const onSeq = (row: number, at: number): void => {
      jumps.push({ index: first + row, at });
    };
    const heads = { seqs, prevs, nextSeq, rowBytesMax, bytesMax, onSeq };
    if (!writeColumns(bytes, { columns, rowCount }, heads)) return false;
    part.last = first + rowCount - 1;
    this.#nextOffset = (seqs.at(-1) ?? 0) + 1;
    this.#rowCount += rowCount;
    return true;
  }

  /**
   * Returns the part of the commit to which the next row belongs. A new part begins with the head
   * of the current write.
   */
  #partAt(index: number): FramePart {
    const part = this.#part ?? this.#beginPart(index);
    if (this.#rowCountOffset === 0) {
      const write = defined(this.#write, "prepared commit: row belongs to no table write");
      this.#rowCountOffset = writeHead(part.bytes, write, this.#columns);
    }
    return part;
  }

  #beginRow(index: number, prev: number): RowHead {
    const part = this.#partAt(index);
    const { rowBytesMax } = this.#options;
    const isNext = index === part.first || this.#options.offsetOf(index) === this.#nextOffset;
    if (!isNext) part.jumps.push({ index, at: part.bytes.length + 1 });
    return { seq: isNext ? undefined : 0, prev, rowBytesMax };
  }

  #endRow(index: number): void {
    const part = this.#partAt(index);
    part.last = index;
    this.#nextOffset = this.#options.offsetOf(index) + 1;
    this.#rowCount += 1;
    if (part.bytes.length > this.#partBytes) {
      this.#fullBytes += part.bytes.length;
      requireCommitFits(this.#fullBytes, this.#options.commitBytesMax);
      this.#endWrite();
      this.#part = undefined;
    }
  }

  end(): void {
    this.#endWrite();
    this.#part = undefined;
  }

  /** Returns the length that a part of the commit will have once it is sealed. */
  sealedLength(part: number): number {
    return Math.ceil(this.#at(part).bytes.length / 8) * 8;
  }

  /** Returns the highest seq in a part of the commit. */
  lastSeqOf(part: number, firstSeq: number): number {
    return firstSeq + this.#options.offsetOf(this.#at(part).last);
  }

  /** Fills in the missing fields of a part of the commit, and returns the part's bytes. */
  seal(part: number, head: PreparedHead, firstSeq: number): Uint8Array {
    const { bytes, first, jumps } = this.#at(part);
    const { offsetOf } = this.#options;
    for (const { index, at } of jumps) bytes.setU53(at, firstSeq + offsetOf(index));
    const isLast = part === this.#parts.length - 1;
    sealFrame(bytes, 0, {
      ...head,
      kind: part > 0 ? (isLast ? "partEnd" : "part") : isLast ? "commit" : "partBegin",
      firstSeq: firstSeq + offsetOf(first),
      lastSeq: this.lastSeqOf(part, firstSeq),
    });
    return bytes.view();
  }

  #at(part: number): FramePart {
    return defined(this.#parts[part], "prepared commit: frame part does not exist");
  }

  #beginPart(first: number): FramePart {
    const bytes = new ByteWriter(PART_BYTES_AT_START);
    assert(beginFrame(bytes) === 0, "prepared commit: frame part does not begin at offset 0");
    const part: FramePart = { bytes, first, last: first, jumps: [] };
    this.#parts.push(part);
    this.#part = part;
    return part;
  }

  /** Fills in the row count of the write that ends in the current part. */
  #endWrite(): void {
    if (this.#rowCountOffset !== 0) {
      this.#part?.bytes.setU32(this.#rowCountOffset, this.#rowCount);
    }
    this.#rowCountOffset = 0;
    this.#rowCount = 0;
  }
}

function isAlike(
  before: TableWrite | undefined,
  { operation, owner, tableId }: TableWrite,
): boolean {
  if (before === undefined || before.tableId !== tableId) return false;
  return before.owner === owner && before.operation === operation;
}
