/**
 * Writes a segment file, one row group at a time (see `format.ts`).
 *
 * The bytes are produced in file order, so the caller can write each piece immediately and do
 * other work in between. Only the hash of each row's key, the first row of each owner, and the
 * entry of each chunk are kept until the end.
 */
import { assert, defined } from "../../base/assert.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import { bytesOf } from "../../base/bytes.ts";
import type { DiskFile } from "../../base/disk.ts";
import { ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import type { Seq } from "../../base/seq.ts";
import type { DataType, Vector } from "../../types/mod.ts";
import type { HistoryBounds } from "../contract/manifest.ts";
import { DELETED_COLUMN_ID, SEQ_COLUMN_ID } from "../contract/system_columns.ts";
import type { Compression } from "../contract/table_definition.ts";
import { type EncodedChunk, encodeChunk, encodeNumbers } from "./chunk_encoder.ts";
import {
  type ChunkEntry,
  COMMIT_COLUMN_ID,
  chunkSeed,
  DIRECTORY_FIXED_BYTES,
  directorySeed,
  encodeHeader,
  encodeTrailer,
  HISTORY_COLUMN_IDS,
  HISTORY_FORMAT,
  hashAt,
  type Layout,
  layoutOf,
  PACKED_FORMAT,
  PAGE_BYTES,
  PLAIN_FORMAT,
  PREV_COLUMN_ID,
  padded,
  pageSeed,
  REPLACING_COLUMN_ID,
  SECTION_NAMES,
  SEGMENT_BYTES_MAX,
  type SectionName,
  SYSTEM_COLUMN_IDS,
  VALUES_FORMAT,
  VALUES_HISTORY_FORMAT,
  writeChunkEntry,
} from "./format.ts";
import { hashKeys } from "./key_hash.ts";
import { buildFilter, sortKeys } from "./key_places.ts";
import { packedBytes } from "./packing.ts";

/** The number of bytes collected before they are written. */
const WRITE_BYTES: number = 1 << 20;

const NO_BYTES: Uint8Array = new Uint8Array(0);

export interface SegmentColumn {
  readonly columnId: number;
  readonly type: DataType;
}

/** The properties of a segment that are known before its rows are written. */
export interface SegmentOutline {
  readonly segmentId: number;
  readonly tableId: number;
  readonly keyColumnIds: readonly number[];
  readonly columns: readonly SegmentColumn[];
  /** Decides which chunks are packed; undefined if no chunk may be packed. */
  readonly compression?: Compression | undefined;
  /** Whether this is a history segment. Each of its rows includes the seq that replaced it. */
  readonly isHistory?: boolean;
}

/** Rows in ascending order of (owner, seq). */
export interface SegmentRows {
  /** The rows' values, in the order of the segment's columns. */
  readonly vectors: readonly Vector[];
  readonly owners: Float64Array;
  readonly seqs: Float64Array;
  readonly prevs: Float64Array;
  readonly commitSeqs: Float64Array;
  /** For each row, 1 if it is a tombstone, otherwise 0. */
  readonly deleted: Uint8Array;
  /** For each row, the seq that replaced it. Set only for a history segment. */
  readonly replacingSeqs?: Float64Array | undefined;
}

export interface SegmentSummary {
  readonly bytes: number;
  readonly rowCount: number;
  readonly minSeq: number;
  readonly maxSeq: number;
  /** How packed chunks are compressed; undefined if the segment has no packed chunk. */
  readonly compression?: "zstd";
  /**
   * The range of the seqs that replaced the rows of a history segment; undefined for other
   * segments.
   */
  readonly history?: HistoryBounds;
}

/** The properties of a segment that are known once it has been written. */
export interface SegmentEnd extends SegmentSummary {
  /**
   * A header that replaces the header at the start of the file, if the file has turned out to need
   * a newer format.
   */
  readonly header?: Uint8Array;
}

/**
 * Writes a complete segment file, yielding between steps of a few milliseconds. The caller syncs
 * the file.
 *
 * @throws {DiskError}
 */
export function* writeSegment(
  file: DiskFile,
  pieces: Generator<Uint8Array, SegmentEnd>,
): Generator<void, SegmentSummary> {
  const gathered = new ByteWriter(WRITE_BYTES);
  let offset = 0;
  for (;;) {
    const step = pieces.next();
    if (step.done !== true) gathered.raw(step.value);
    if (step.done === true || gathered.length >= WRITE_BYTES) {
      // A chunk of long strings is written in pieces, because a single large write would block the
      // disk for long.
      const bytes = gathered.view();
      for (let at = 0; at < bytes.length; at += WRITE_BYTES) {
        file.write(bytes.subarray(at, at + WRITE_BYTES), offset + at);
      }
      offset += bytes.length;
      gathered.reset();
    }
    if (step.done === true) {
      const { header, ...summary } = step.value;
      if (header !== undefined) file.write(header, 0);
      return summary;
    }
    yield;
  }
}

/** Writes a segment from groups of rows that arrive one after another. */
export class SegmentWriter {
  readonly #outline: SegmentOutline;
  readonly #columnIds: readonly number[];
  readonly #entries: ChunkEntry[] = [];
  readonly #groupStarts: number[] = [];
  /**
   * Stored as bytes of f64 and u32 values rather than as arrays of numbers, since a segment may
   * have millions of owners and rows.
   */
  readonly #owners = new ByteWriter();
  readonly #ownerStarts = new ByteWriter();
  readonly #keyHashes: Uint32Array[] = [];
  readonly #sections: { name: SectionName; offset: number; bytes: Uint8Array }[] = [];
  #rowCount = 0;
  #offset = 0;
  #minSeq = Infinity;
  #maxSeq = -Infinity;
  #lowestReplacing = Infinity;
  #highestReplacing = -Infinity;
  #lastOwner = -1;
  #lastSeq = -1;
  #hasPacked = false;

  constructor(outline: SegmentOutline) {
    const ids = outline.columns.map(({ columnId }) => columnId);
    assert(new Set(ids).size === ids.length, "segment writer: duplicate column id");
    for (const id of ids) assert(id > 0, "segment writer: column id is not positive");
    for (const id of outline.keyColumnIds)
      assert(ids.includes(id), "segment writer: key column is not a column of the segment");
    this.#outline = outline;
    this.#columnIds = [
      ...(outline.isHistory === true ? HISTORY_COLUMN_IDS : SYSTEM_COLUMN_IDS),
      ...ids,
    ];
  }

  /** The number of rows written so far. */
  get rowCount(): number {
    return this.#rowCount;
  }

  /**
   * The number of bytes written so far. The end of the file adds about 30 bytes per row. The total
   * must not exceed SEGMENT_BYTES_MAX.
   */
  get byteCount(): number {
    return this.#offset;
  }

  /** Adds a row group with the next 1 to ROW_GROUP_ROWS_MAX rows. Keeps no reference to them. */
  *group(rows: SegmentRows): Generator<Uint8Array, void> {
    const count = rows.seqs.length;
    assert(count > 0, "segment writer: row group is empty");
    assert(count <= ROW_GROUP_ROWS_MAX, "segment writer: row group exceeds the maximum size");
    assert(
      rows.vectors.length === this.#outline.columns.length,
      "segment writer: number of vectors differs from the number of columns",
    );
    const { isHistory = false } = this.#outline;
    assert(
      isHistory === (rows.replacingSeqs !== undefined),
      "segment writer: replacing seqs must be given for history segments only",
    );
    if (this.#offset === 0)
      yield this.#emit(this.#header(this.#formatFor({ isHistory, isPacked: false })));
    this.#addOrder(rows);
    const groupIndex = this.#groupStarts.length;
    this.#groupStarts.push(this.#rowCount);
    const place = { groupIndex, rowCount: count };
    yield* this.#chunk(place, encodeNumbers(rows.seqs));
    yield* this.#chunk(place, encodeFlags(rows.deleted));
    yield* this.#chunk(place, encodePrevs(rows.prevs));
    yield* this.#chunk(place, encodeNumbers(commitGaps(rows)));
    if (rows.replacingSeqs !== undefined) {
      this.#noteReplacing(rows, rows.replacingSeqs);
      yield* this.#chunk(place, encodeNumbers(rows.replacingSeqs));
    }
    for (const [index, { type }] of this.#outline.columns.entries()) {
      const vector = rows.vectors[index];
      assert(
        vector !== undefined && vector.length === count,
        "segment writer: vector length differs from the row count",
      );
      yield* this.#chunk({ ...place, layout: layoutOf(type) }, encodeChunk(type, vector));
    }
    yield* this.#hashKeys(rows);
    this.#rowCount += count;
  }

  /** Writes the sections, the directory and the trailer, and thereby completes the file. */
  *finish(): Generator<Uint8Array, SegmentEnd> {
    assert(this.#rowCount > 0, "segment writer: segment has no rows");
    yield* this.#section("owners", this.#owners.view());
    this.#ownerStarts.u32(this.#rowCount);
    yield* this.#section("ownerStarts", this.#ownerStarts.view());
    const keyCount = this.#outline.keyColumnIds.length === 0 ? 0 : this.#rowCount;
    if (keyCount > 0) yield* this.#keySections();
    const directory = this.#directory(keyCount);
    const directoryOffset = this.#offset;
    yield this.#emit(directory);
    const { segmentId } = this.#outline;
    const directoryHash = hashAt(directorySeed(segmentId), directory);
    const directoryBytes = directory.length;
    yield this.#emit(encodeTrailer({ segmentId, directoryOffset, directoryBytes, directoryHash }));
    assert(this.#offset <= SEGMENT_BYTES_MAX, "segment writer: segment is too large to be mapped");
    return {
      bytes: this.#offset,
      rowCount: this.#rowCount,
      minSeq: this.#minSeq,
      maxSeq: this.#maxSeq,
      ...this.#historyBounds(),
      ...this.#packedEnd(),
    };
  }

  #historyBounds(): Pick<SegmentSummary, "history"> {
    if (this.#outline.isHistory !== true) return {};
    const lowestReplacingSeq = this.#lowestReplacing as Seq;
    const highestReplacingSeq = this.#highestReplacing as Seq;
    return { history: { lowestReplacingSeq, highestReplacingSeq } };
  }

  #packedEnd(): Pick<SegmentEnd, "compression" | "header"> {
    if (!this.#hasPacked) return {};
    const isHistory = this.#outline.isHistory === true;
    const format = this.#formatFor({ isHistory, isPacked: true });
    return { compression: "zstd", header: this.#header(format) };
  }

  #formatFor({ isHistory, isPacked }: { isHistory: boolean; isPacked: boolean }): number {
    const hasValues = this.#outline.columns.some(({ type }) => layoutOf(type) === "values");
    if (hasValues) return isHistory ? VALUES_HISTORY_FORMAT : VALUES_FORMAT;
    if (isHistory) return HISTORY_FORMAT;
    return isPacked ? PACKED_FORMAT : PLAIN_FORMAT;
  }

  #header(format: number): Uint8Array {
    const { segmentId, tableId } = this.#outline;
    return encodeHeader({ format, segmentId, tableId });
  }

  /** Checks the order of the rows, and records where each owner's rows begin. */
  #addOrder({ owners, seqs }: SegmentRows): void {
    for (let row = 0; row < seqs.length; row += 1) {
      const owner = owners[row] as number;
      const seq = seqs[row] as number;
      if (owner !== this.#lastOwner) {
        assert(owner > this.#lastOwner, "segment writer: owners are not in ascending order");
        this.#owners.f64(owner);
        this.#ownerStarts.u32(this.#rowCount + row);
        this.#lastOwner = owner;
        this.#lastSeq = -1;
      }
      assert(
        seq > this.#lastSeq,
        "segment writer: rows of an owner are not in ascending order of seq",
      );
      this.#lastSeq = seq;
      if (seq < this.#minSeq) this.#minSeq = seq;
      if (seq > this.#maxSeq) this.#maxSeq = seq;
    }
  }

  #noteReplacing({ deleted, seqs }: SegmentRows, replacingSeqs: Float64Array): void {
    for (let row = 0; row < seqs.length; row += 1) {
      const seq = seqs[row] as number;
      const replacing = replacingSeqs[row] as number;
      const isReplaced = replacing > seq || (replacing === seq && deleted[row] === 1);
      assert(isReplaced, "segment writer: history row is neither replaced nor a tombstone");
      if (replacing < this.#lowestReplacing) this.#lowestReplacing = replacing;
      if (replacing > this.#highestReplacing) this.#highestReplacing = replacing;
    }
  }

  #emit(bytes: Uint8Array): Uint8Array {
    assert(bytes.length % 8 === 0, "segment writer: part of the file is not 8-byte aligned");
    this.#offset += bytes.length;
    return bytes;
  }

  /** Writes a chunk. The default layout, numbers, is the layout of the system columns. */
  *#chunk(
    { groupIndex, layout = "f64", rowCount }: ChunkInGroup,
    chunk: EncodedChunk,
  ): Generator<Uint8Array, void> {
    const columnCount = this.#columnIds.length;
    const columnId = this.#columnIds[this.#entries.length - groupIndex * columnCount];
    assert(columnId !== undefined, "segment writer: row group has more chunks than columns");
    const { compression = "none", segmentId } = this.#outline;
    const packed = yield* inEmptySteps(packedBytes({ chunk, layout, rowCount }, compression));
    const isPacked = packed !== undefined;
    const bytes = packed ?? chunk.bytes;
    const hash = hashAt(chunkSeed({ segmentId, columnId, groupIndex }), bytes);
    const place = { offset: this.#offset, byteCount: bytes.length, isPacked, hash };
    this.#entries.push({ ...chunk.header, ...place });
    this.#hasPacked ||= isPacked;
    yield this.#emit(bytes);
  }

  *#hashKeys({ owners, vectors }: SegmentRows): Generator<Uint8Array, void> {
    if (this.#outline.keyColumnIds.length === 0) return;
    const keyVectors = this.#outline.keyColumnIds.map((keyColumnId) => {
      const index = this.#outline.columns.findIndex(({ columnId }) => columnId === keyColumnId);
      return defined(vectors[index], "segment writer: key column has no vector");
    });
    this.#keyHashes.push(yield* inEmptySteps(hashKeys(owners, keyVectors)));
  }

  *#keySections(): Generator<Uint8Array, void> {
    const hashes = new Uint32Array(this.#rowCount);
    let at = 0;
    for (const part of this.#keyHashes) {
      hashes.set(part, at);
      at += part.length;
    }
    const sorted = yield* inEmptySteps(sortKeys(hashes));
    const filter = yield* inEmptySteps(buildFilter(sorted.hashes));
    yield* this.#section("keyHashes", bytesOf(sorted.hashes));
    yield* this.#section("keyRows", bytesOf(sorted.rows));
    yield* this.#section("keyFilter", filter);
  }

  *#section(name: SectionName, bytes: Uint8Array): Generator<Uint8Array, void> {
    const whole = new Uint8Array(padded(bytes.length));
    whole.set(bytes);
    this.#sections.push({ name, offset: this.#offset, bytes: whole });
    for (let start = 0; start < whole.length; start += WRITE_BYTES) {
      yield this.#emit(whole.subarray(start, start + WRITE_BYTES));
    }
  }

  #directory(keyCount: number): Uint8Array {
    const columnTable = this.#columnTable();
    const writer = new ByteWriter(DIRECTORY_FIXED_BYTES + columnTable.length);
    writer.u32(this.#rowCount);
    writer.u32(this.#groupStarts.length);
    writer.u32(this.#columnIds.length);
    writer.u32(this.#owners.length / 8);
    writer.u32(keyCount);
    writer.u32(columnTable.length);
    writer.f64(this.#minSeq);
    writer.f64(this.#maxSeq);
    const sections = SECTION_NAMES.map((wanted) =>
      this.#sections.find(({ name }) => name === wanted),
    );
    for (const section of sections) {
      writer.u53(section?.offset ?? this.#offset);
      writer.u53(section?.bytes.length ?? 0);
    }
    assert(
      writer.length === DIRECTORY_FIXED_BYTES,
      "segment writer: fixed part of the directory has the wrong size",
    );
    writer.raw(columnTable);
    for (const start of this.#groupStarts) writer.u32(start);
    writer.u32(this.#rowCount);
    writer.align(8);
    for (const entry of this.#entries) writeChunkEntry(writer, entry);
    for (const section of sections) if (section !== undefined) this.#pageHashes(writer, section);
    return writer.copy();
  }

  #columnTable(): Uint8Array {
    const writer = new ByteWriter();
    writer.varint(this.#outline.keyColumnIds.length);
    for (const keyColumnId of this.#outline.keyColumnIds) writer.i32(keyColumnId);
    for (const { columnId, type } of this.#outline.columns) {
      writer.i32(columnId);
      writer.text(JSON.stringify(type));
    }
    writer.align(8);
    return writer.copy();
  }

  #pageHashes(
    writer: ByteWriter,
    { name, bytes }: { readonly name: SectionName; readonly bytes: Uint8Array },
  ): void {
    for (let start = 0; start < bytes.length; start += PAGE_BYTES) {
      const place = {
        segmentId: this.#outline.segmentId,
        section: name,
        pageIndex: start / PAGE_BYTES,
      };
      const hash = hashAt(pageSeed(place), bytes.subarray(start, start + PAGE_BYTES));
      writer.u32(hash.low);
      writer.u32(hash.high);
    }
  }
}

interface ChunkInGroup {
  readonly groupIndex: number;
  readonly rowCount: number;
  readonly layout?: Layout;
}

/** Runs steps that produce no bytes yet, with an empty piece after each step. */
function* inEmptySteps<T>(steps: Generator<void, T>): Generator<Uint8Array, T> {
  let step = steps.next();
  while (step.done !== true) {
    yield NO_BYTES;
    step = steps.next();
  }
  return step.value;
}

function encodeFlags(flags: Uint8Array): EncodedChunk {
  const vector: Vector = { kind: "bool", length: flags.length, values: flags, nulls: undefined };
  return encodeChunk({ kind: "boolean" }, vector);
}

/**
 * Encodes the seqs of replaced versions. A 0 means that no version was replaced. It is encoded as
 * NULL, which keeps it out of the range of the other seqs.
 */
function encodePrevs(prevs: Float64Array): EncodedChunk {
  const nulls = new Uint8Array(prevs.length);
  for (let row = 0; row < prevs.length; row += 1) nulls[row] = prevs[row] === 0 ? 1 : 0;
  return encodeNumbers(prevs, nulls);
}

function commitGaps({ seqs, commitSeqs }: SegmentRows): Float64Array {
  const gaps = new Float64Array(seqs.length);
  for (let row = 0; row < gaps.length; row += 1) {
    gaps[row] = (commitSeqs[row] as number) - (seqs[row] as number);
    assert(
      (gaps[row] as number) >= 0,
      "segment writer: commit seq is lower than the seq of its row version",
    );
  }
  return gaps;
}

// The chunks of system columns are written in this order.
assert(
  SYSTEM_COLUMN_IDS[0] === SEQ_COLUMN_ID,
  "segment format: _seq is not the first system column",
);
assert(
  SYSTEM_COLUMN_IDS[1] === DELETED_COLUMN_ID,
  "segment format: tombstone flag is not the second system column",
);
assert(
  SYSTEM_COLUMN_IDS[2] === PREV_COLUMN_ID,
  "segment format: prev is not the third system column",
);
assert(
  SYSTEM_COLUMN_IDS[3] === COMMIT_COLUMN_ID,
  "segment format: commit seq is not the fourth system column",
);
assert(
  HISTORY_COLUMN_IDS[4] === REPLACING_COLUMN_ID,
  "segment format: replacing seq is not the fifth history column",
);
