/**
 * Reads the chunk directory of an open segment. The whole directory is verified when the file is
 * opened. After that, it is read from the mapped file.
 */
import { assert, defined } from "../../base/assert.ts";
import { ByteReader } from "../../base/byte_reader.ts";
import { CorruptionError } from "../../base/errors.ts";
import { ROW_GROUP_ROWS_MAX } from "../../base/limits.ts";
import { BIGINT, BOOLEAN, type DataType } from "../../types/mod.ts";
import { DELETED_COLUMN_ID } from "../contract/system_columns.ts";
import {
  CHUNK_ENTRY_BYTES,
  DIRECTORY_FIXED_BYTES,
  decodeHeader,
  decodeTrailer,
  directorySeed,
  HEADER_BYTES,
  type Header,
  HISTORY_COLUMN_IDS,
  isHistoryFormat,
  type Layout,
  layoutOf,
  PAGE_BYTES,
  padded,
  pageSeed,
  SECTION_NAMES,
  type SectionName,
  SYSTEM_COLUMN_IDS,
  TRAILER_BYTES,
  type Trailer,
} from "./format.ts";
import type { SegmentFile } from "./segment_file.ts";

/**
 * The contents of a segment's chunk directory. Its typed arrays and views share the memory of the
 * mapped file.
 */
export interface Directory {
  readonly format: number;
  readonly segmentId: number;
  readonly tableId: number;
  readonly rowCount: number;
  readonly groupCount: number;
  readonly ownerCount: number;
  readonly keyCount: number;
  readonly minSeq: number;
  readonly maxSeq: number;
  readonly keyColumnIds: readonly number[];
  /** The ids of all columns in chunk order, system columns first. */
  readonly columnIds: readonly number[];
  readonly columnIndexes: ReadonlyMap<number, number>;
  /** The types of the table's columns, by column id. */
  readonly types: ReadonlyMap<number, DataType>;
  layoutOf(columnId: number): Layout;
  /** The first row of each row group, followed by the total row count. */
  readonly groupStarts: Uint32Array;
  readonly chunkEntries: DataView;
  readonly sections: Readonly<Record<SectionName, Section>>;
  // The section with the owners of the rows. As in every section, a page is verified before it is
  // first read.
  readonly owners: Float64Array;
  readonly ownerStarts: Uint32Array;
  readonly keyHashes: Uint32Array;
  readonly keyRows: Uint32Array;
  readonly keyFilter: Uint8Array;
}

/**
 * Reads and verifies a segment's chunk directory.
 * @throws {CorruptionError} If the header, trailer or directory is damaged.
 */
export function readDirectory(file: SegmentFile): Directory {
  const fileBytes = file.bytes.length;
  if (fileBytes < HEADER_BYTES + DIRECTORY_FIXED_BYTES + TRAILER_BYTES) {
    throw new CorruptionError(file.path, fileBytes, "the file is too short for a segment");
  }
  const trailerAt = fileBytes - TRAILER_BYTES;
  const header = decodeHeader(file.read(0, HEADER_BYTES));
  if (header === undefined)
    throw new CorruptionError(file.path, 0, "the file does not begin with a segment header");
  const trailer = decodeTrailer(file.read(trailerAt, TRAILER_BYTES));
  if (trailer?.segmentId !== header.segmentId) {
    throw new CorruptionError(file.path, trailerAt, "the trailer does not belong to this segment");
  }
  const { directoryOffset, directoryBytes, directoryHash } = trailer;
  if (directoryOffset + directoryBytes !== trailerAt) {
    throw new CorruptionError(file.path, trailerAt, "the directory does not end at the trailer");
  }
  file.check({
    offset: directoryOffset,
    byteCount: directoryBytes,
    seed: directorySeed(header.segmentId),
    hash: directoryHash,
    what: "the checksum of the directory",
  });
  // The checksums are correct, so the directory is as `SegmentWriter` wrote it, and valid.
  return parseDirectory(file, header, trailer);
}

function parseDirectory(file: SegmentFile, header: Header, trailer: Trailer): Directory {
  const { segmentId } = header;
  const { directoryOffset, directoryBytes } = trailer;
  const { buffer, byteOffset } = file.bytes;
  assert(byteOffset === 0, "segment directory: mapping is not at the start of its buffer");
  const reader = new ByteReader(new Uint8Array(buffer, directoryOffset, directoryBytes), {
    path: file.path,
    fileOffset: directoryOffset,
  });
  const rowCount = reader.u32();
  const groupCount = reader.u32();
  const columnCount = reader.u32();
  const ownerCount = reader.u32();
  const keyCount = reader.u32();
  const tableBytes = reader.u32();
  const minSeq = reader.f64();
  const maxSeq = reader.f64();
  const places = SECTION_NAMES.map(() => ({ offset: reader.u53(), byteCount: reader.u53() }));
  assert(rowCount > 0, "segment directory: segment has no rows");
  assert(groupCount >= Math.ceil(rowCount / ROW_GROUP_ROWS_MAX), "segment: too few row groups");
  assert(minSeq <= maxSeq, "segment directory: lowest seq is above the highest seq");
  const systemIds = isHistoryFormat(header.format) ? HISTORY_COLUMN_IDS : SYSTEM_COLUMN_IDS;
  const { keyColumnIds, types } = readColumns(reader, columnCount - systemIds.length);
  reader.position = DIRECTORY_FIXED_BYTES + tableBytes;
  const groupsAt = directoryOffset + reader.position;
  reader.skip(padded((groupCount + 1) * 4));
  const entriesAt = directoryOffset + reader.position;
  const entriesBytes = groupCount * columnCount * CHUNK_ENTRY_BYTES;
  reader.skip(entriesBytes);

  const sections = places.map(({ offset, byteCount }, index) => {
    const hashesOffset = directoryOffset + reader.position;
    reader.skip(pageCount(byteCount) * 8);
    const section = SECTION_NAMES[index] as SectionName;
    return new Section(file, { segmentId, section, offset, byteCount, hashesOffset });
  });
  assert(reader.remaining === 0, "segment directory: unexpected bytes after the page hashes");
  const [owners, ownerStarts, keyHashes, keyRows, keyFilter] = sections as [
    Section,
    Section,
    Section,
    Section,
    Section,
  ];
  const columnIds = [...systemIds, ...types.keys()];
  const layouts = new Map(columnIds.map((id) => [id, layoutOf(types.get(id) ?? systemType(id))]));
  const u32s = (section: Section, count: number): Uint32Array =>
    new Uint32Array(buffer, section.place.offset, count);
  return {
    ...header,
    rowCount,
    groupCount,
    ownerCount,
    keyCount,
    minSeq,
    maxSeq,
    keyColumnIds,
    columnIds,
    columnIndexes: new Map(columnIds.map((columnId, index) => [columnId, index])),
    types,
    layoutOf: (columnId) => defined(layouts.get(columnId), "segment: column has no layout"),
    groupStarts: new Uint32Array(buffer, groupsAt, groupCount + 1),
    chunkEntries: new DataView(buffer, entriesAt, entriesBytes),
    sections: { owners, ownerStarts, keyHashes, keyRows, keyFilter },
    owners: new Float64Array(buffer, owners.place.offset, ownerCount),
    ownerStarts: u32s(ownerStarts, ownerCount + 1),
    keyHashes: u32s(keyHashes, keyCount),
    keyRows: u32s(keyRows, keyCount),
    keyFilter: new Uint8Array(buffer, keyFilter.place.offset, keyFilter.place.byteCount),
  };
}

function readColumns(
  reader: ByteReader,
  columnCount: number,
): { keyColumnIds: number[]; types: Map<number, DataType> } {
  const keyColumnIds = Array.from({ length: reader.varint() }, () => reader.i32());
  const types = new Map<number, DataType>();
  for (let index = 0; index < columnCount; index += 1) {
    const columnId = reader.i32();
    types.set(columnId, JSON.parse(reader.text()) as DataType);
  }
  return { keyColumnIds, types };
}

function systemType(columnId: number): DataType {
  return columnId === DELETED_COLUMN_ID ? BOOLEAN : BIGINT;
}

interface SectionPlace {
  readonly segmentId: number;
  readonly section: SectionName;
  readonly offset: number;
  readonly byteCount: number;
  /** The file offset where the hashes of the section's pages begin. */
  readonly hashesOffset: number;
}

/** A section of a mapped segment file. Each page is verified when first used (see `format.ts`). */
class Section {
  readonly place: SectionPlace;
  readonly #file: SegmentFile;
  /** One byte per page. It is 1 once the page's checksum has been verified. */
  readonly #isChecked: Uint8Array;

  constructor(file: SegmentFile, place: SectionPlace) {
    this.#file = file;
    this.place = place;
    this.#isChecked = new Uint8Array(pageCount(place.byteCount));
  }

  /**
   * Verifies the page that contains the given byte of the section.
   *
   * @throws {CorruptionError} If the page's checksum does not match.
   */
  touch(byteIndex: number): void {
    const pageIndex = Math.floor(byteIndex / PAGE_BYTES);
    if (this.#isChecked[pageIndex] === 1) return;
    const { segmentId, section, offset, byteCount, hashesOffset } = this.place;
    const start = pageIndex * PAGE_BYTES;
    const view = new DataView(this.#file.bytes.buffer, hashesOffset + pageIndex * 8, 8);
    this.#file.check({
      offset: offset + start,
      byteCount: Math.min(PAGE_BYTES, byteCount - start),
      seed: pageSeed({ segmentId, section, pageIndex }),
      hash: { low: view.getUint32(0, true), high: view.getUint32(4, true) },
      what: `the checksum of page ${pageIndex} of the ${section}`,
    });
    this.#isChecked[pageIndex] = 1;
  }

  /** Verifies one page per step. Each step yields the offset where the section begins. */
  *touchSteps(): Generator<number> {
    for (let start = 0; start < this.place.byteCount; start += PAGE_BYTES) {
      this.touch(start);
      yield this.place.offset;
    }
  }
}

function pageCount(byteCount: number): number {
  return Math.ceil(byteCount / PAGE_BYTES);
}
