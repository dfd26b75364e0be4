/**
 * The frames of a large commit, encoded before its place in the log and its seqs are known.
 *
 * - Each part is a whole frame in bytes of its own, but for its head, which `seal` fills in.
 * - A row is named by its index in the commit; where its seq is not the one after the row before,
 *   there is room for it, and `seal` fills that in, too.
 */
import { assert, defined } from "../../base/assert.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import type { Batch, Row } from "../../types/mod.ts";
import type { CommitDraft } from "../contract/commit_log.ts";
import type { StoredColumn, TableWrite } from "../contract/store.ts";
import { beginFrame, type FrameHead, sealFrame } from "./format.ts";
import { writeColumns } from "./frame_columns.ts";
import { type RowHead, requireCommitFits, writeHead, writeRow, writeRowAt } from "./frame_rows.ts";

/**
 * A commit is split into frames of about this size, and a part that is full is a little larger: a
 * sync of less costs as much.
 */
export const PART_BYTES_MAX: number = 4 * 1024 * 1024;

const PART_BYTES_AT_START = 64 * 1024;

export interface DraftOptions {
  /** Bytes of a part; the row that crosses it is still in it. */
  readonly partBytes: number;
  readonly rowBytesMax: number;
  /** Bytes of all parts; the part that crosses it is refused. */
  readonly commitBytesMax: number;
  /** How far the seq of a row is behind that of the first row. */
  readonly offsetOf: (index: number) => number;
}

interface Part {
  readonly bytes: ByteWriter;
  /** First and last row. */
  readonly first: number;
  last: number;
  /** Rows whose seq is written, and where. */
  readonly jumps: { readonly index: number; readonly at: number }[];
}

/** What `seal` is told about a frame; the rest it knows. */
export type DraftHead = Omit<FrameHead, "kind" | "firstSeq" | "lastSeq">;

export class FrameDraft implements CommitDraft {
  readonly #options: DraftOptions;
  readonly #partBytes: number;
  readonly #parts: Part[] = [];
  #part: Part | undefined;
  /** Of parts that are full. */
  #fullBytes = 0;
  #write: TableWrite | undefined;
  #columns: readonly StoredColumn[] = [];
  #rowCountOffset = 0;
  #rowCount = 0;
  #nextOffset = -1;

  constructor(options: DraftOptions) {
    this.#options = options;
    this.#partBytes = Math.min(PART_BYTES_MAX, options.partBytes);
  }

  get partCount(): number {
    return this.#parts.length;
  }

  beginWrite(write: TableWrite, columns: readonly StoredColumn[]): void {
    // A write that comes in slices is one: a start then sees whether it needs the frame at all.
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

  /** Writes rows that fit the part, if they are of a form that is written by columns. */
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

  /** The part that a row goes into, with the head of its write. */
  #partAt(index: number): Part {
    const part = this.#part ?? this.#beginPart(index);
    if (this.#rowCountOffset === 0) {
      const write = defined(this.#write, "a row belongs to a write");
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

  /** Bytes of a part once it is sealed. */
  sealedLength(part: number): number {
    return Math.ceil(this.#at(part).bytes.length / 8) * 8;
  }

  /** The highest seq in a part. */
  lastSeqOf(part: number, firstSeq: number): number {
    return firstSeq + this.#options.offsetOf(this.#at(part).last);
  }

  /** Fills in what was not known, and gives the bytes of a part away. */
  seal(part: number, head: DraftHead, firstSeq: number): Uint8Array {
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

  #at(part: number): Part {
    return defined(this.#parts[part], "a draft has the part");
  }

  #beginPart(first: number): Part {
    const bytes = new ByteWriter(PART_BYTES_AT_START);
    assert(beginFrame(bytes) === 0, "a part is a frame of its own");
    const part: Part = { bytes, first, last: first, jumps: [] };
    this.#parts.push(part);
    this.#part = part;
    return part;
  }

  /** Fills in how many rows the write has in this part. */
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
