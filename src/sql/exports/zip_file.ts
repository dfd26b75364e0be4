/**
 * Writes a ZIP archive to a file, entry by entry. Memory use is bounded, however long the archive
 * is.
 *
 *     entry      local header │ name │ extra field │ content, stored or deflated
 *     …
 *     directory  for each entry its sizes, its checksum, its name and the offset of its header
 *     end        [record and locator of ZIP64 │] number of entries, place of the directory
 *
 * - A header is written after the content of its entry, into space reserved for it, because its
 *   checksum and sizes are known only then. Its extra field always has room for the ZIP64 sizes,
 *   so that every header has the same length.
 * - The directory is collected in a second file, because it may be too large for memory, and is
 *   appended at the end.
 * - Each block of the content is deflated separately and ends on a whole byte, as in
 *   `server/http/gzip_stream.ts`.
 *
 * Format: PKWARE's APPNOTE 6.3.10, RFC 1951.
 */
import { promisify } from "node:util";
import { constants, deflateRaw } from "node:zlib";
import { assert } from "../../base/assert.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import { crc32 } from "../../base/checksum.ts";
import type { Disk, DiskFile } from "../../base/disk.ts";

/** The number of bytes of content collected before they are compressed and written. */
const PIECE_BYTES: number = 256 * 1024;

/**
 * The number of bytes written between two syncs. A larger sync would block other disk work for
 * longer.
 */
const SYNC_BYTES: number = 8 * 1024 * 1024;

const HEADER_BYTES = 30;
const EXTRA_BYTES = 20;

/** The format versions required by ZIP64 and by UTF-8 names with deflate. */
const VERSION_ZIP64 = 45;
const VERSION = 20;

/** The ZIP flag that marks file names as UTF-8. */
const UTF8_NAMES = 0x0800;

const STORED = 0;
const DEFLATED = 8;

/** The ids of the ZIP64 extra field and of a padding field that no program interprets. */
const ZIP64_FIELD = 0x0001;
const PADDING_FIELD = 0x6d54;

/**
 * These constants mark the archive as written on Unix, and its entries as regular files with mode
 * 0644.
 */
const UNIX = 3 << 8;
const REGULAR_FILE: number = 0o100_644 * 2 ** 16;

/** Placeholders in a 32-bit or 16-bit field. The actual number is in the ZIP64 field. */
const SEE_ZIP64 = 0xffff_ffff;
const SEE_ZIP64_COUNT = 0xffff;

/** The empty block that ends deflated content. */
const LAST_BLOCK: Uint8Array<ArrayBuffer> = Uint8Array.of(3, 0);

const DEFLATE_OPTIONS = { finishFlush: constants.Z_SYNC_FLUSH };

const deflateOffLoop = promisify(deflateRaw);

export interface ZipOptions {
  readonly disk: Disk;
  /**
   * The path of the archive, which must not exist yet. The archive's directory is collected in
   * `{path}.list`.
   */
  readonly path: string;
  /** The time stamp of all entries in an archive, in Unix milliseconds. */
  readonly timeMs: number;
  /**
   * Called before the archive grows by `bytes` bytes.
   *
   * @throws An error that ends the export.
   */
  readonly onGrow?: (bytes: number) => void;
  /**
   * The largest number that a 32-bit field may contain. Only tests set this option, in order to
   * produce ZIP64 fields.
   */
  readonly shortMax?: number;
}

interface OpenEntry {
  readonly name: Uint8Array;
  readonly method: typeof STORED | typeof DEFLATED;
  /** The offset of the entry's header in the archive. */
  readonly offset: number;
  crc: number;
  plainBytes: number;
}

/** An entry whose content has been completely written, with its checksum and sizes. */
type EndedEntry = OpenEntry & { readonly storedBytes: number };

export class ZipFile {
  readonly #options: ZipOptions;
  readonly #file: DiskFile;
  readonly #list: DiskFile;
  readonly #shortMax: number;
  #offset = 0;
  #listBytes = 0;
  #entryCount = 0;
  #unsyncedBytes = 0;
  #isClosed = false;
  #entry: OpenEntry | undefined;
  /** The content that has been collected but not written yet. */
  readonly #piece = new ByteWriter();

  /**
   * Creates the files for the archive and for its list of entries.
   * @throws {DiskError}
   */
  constructor(options: ZipOptions) {
    const { disk, path, shortMax = SEE_ZIP64 - 1 } = options;
    this.#options = options;
    this.#shortMax = shortMax;
    this.#file = disk.open(path, { create: true, exclusive: true });
    try {
      this.#list = disk.open(`${path}.list`, { create: true, exclusive: true });
    } catch (error) {
      this.#file.close();
      throw error;
    }
  }

  /**
   * Starts an entry of the archive.
   * @param name The path of the entry within the archive.
   */
  begin(name: string, { isCompressed }: { isCompressed: boolean }): void {
    assert(this.#entry === undefined, "ZIP writer: previous entry has not been ended");
    this.#entry = {
      name: new TextEncoder().encode(name),
      method: isCompressed ? DEFLATED : STORED,
      offset: this.#offset,
      crc: 0,
      plainBytes: 0,
    };
    this.#offset += HEADER_BYTES + this.#entry.name.length + EXTRA_BYTES;
  }

  /**
   * Appends bytes to the content of the current entry.
   * @throws {DiskError}
   * @throws Errors of `onGrow`.
   */
  async write(bytes: Uint8Array): Promise<void> {
    this.#opened();
    for (let start = 0; start < bytes.length; start += PIECE_BYTES) {
      this.#piece.raw(bytes.subarray(start, start + PIECE_BYTES));
      if (this.#piece.length >= PIECE_BYTES) await this.#flush();
    }
  }

  /**
   * Ends the current entry. Returns the size of its content.
   * @throws {DiskError}
   */
  async end(): Promise<number> {
    await this.#flush();
    const entry = this.#opened();
    if (entry.method === DEFLATED) await this.#append(LAST_BLOCK);
    const contentStart = entry.offset + HEADER_BYTES + entry.name.length + EXTRA_BYTES;
    const ended = { ...entry, storedBytes: this.#offset - contentStart };
    this.#file.write(this.#localHeader(ended), entry.offset);
    const record = this.#directoryRecord(ended);
    this.#options.onGrow?.(record.length);
    this.#list.write(record, this.#listBytes);
    this.#listBytes += record.length;
    this.#entryCount += 1;
    this.#entry = undefined;
    return ended.plainBytes;
  }

  /**
   * Writes the archive durably to disk, and closes it. Returns its size.
   * @throws {DiskError}
   */
  async finish(): Promise<number> {
    assert(this.#entry === undefined, "ZIP writer: last entry has not been ended");
    const directoryOffset = this.#offset;
    const piece = new Uint8Array(PIECE_BYTES);
    for (let at = 0; at < this.#listBytes; ) {
      const count = this.#list.read(piece, at);
      await this.#append(piece.subarray(0, count));
      at += count;
    }
    await this.#append(this.#endRecords(directoryOffset));
    await this.#file.sync();
    this.#close();
    return this.#offset;
  }

  /**
   * Abandons the archive. The caller has to remove its file.
   * @throws {DiskError}
   */
  discard(): void {
    if (!this.#isClosed) this.#close();
  }

  #close(): void {
    this.#isClosed = true;
    this.#file.close();
    this.#list.close();
    this.#options.disk.remove(`${this.#options.path}.list`);
  }

  #opened(): OpenEntry {
    assert(this.#entry !== undefined, "ZIP writer: content written outside an entry");
    return this.#entry;
  }

  async #flush(): Promise<void> {
    const piece = this.#piece.copy();
    this.#piece.reset();
    if (piece.length === 0) return;
    const entry = this.#opened();
    entry.crc = crc32(piece, entry.crc);
    entry.plainBytes += piece.length;
    await this.#append(
      entry.method === DEFLATED ? await deflateOffLoop(piece, DEFLATE_OPTIONS) : piece,
    );
  }

  async #append(bytes: Uint8Array): Promise<void> {
    this.#options.onGrow?.(bytes.length);
    this.#file.write(bytes, this.#offset);
    this.#offset += bytes.length;
    this.#unsyncedBytes += bytes.length;
    if (this.#unsyncedBytes < SYNC_BYTES) return;
    this.#unsyncedBytes = 0;
    await this.#file.sync();
  }

  #localHeader(entry: EndedEntry): Uint8Array {
    const { name, plainBytes, storedBytes } = entry;
    const isLong = plainBytes > this.#shortMax || storedBytes > this.#shortMax;
    const header = new ByteWriter();
    header.u32(0x04034b50);
    header.u16(isLong ? VERSION_ZIP64 : VERSION);
    this.#describe(header, entry, isLong ? [SEE_ZIP64, SEE_ZIP64] : [storedBytes, plainBytes]);
    header.u16(EXTRA_BYTES);
    header.raw(name);
    header.u16(isLong ? ZIP64_FIELD : PADDING_FIELD);
    header.u16(EXTRA_BYTES - 4);
    u64(header, isLong ? plainBytes : 0);
    u64(header, isLong ? storedBytes : 0);
    return header.view();
  }

  #directoryRecord(entry: EndedEntry): Uint8Array {
    const { name, offset, plainBytes, storedBytes } = entry;
    // The ZIP64 field contains, in this order, the numbers that are too large for the directory
    // record.
    const long = [plainBytes, storedBytes, offset].filter((number) => this.#isLong(number));
    const record = new ByteWriter();
    record.u32(0x02014b50);
    record.u16(UNIX | VERSION_ZIP64);
    record.u16(long.length > 0 ? VERSION_ZIP64 : VERSION);
    this.#describe(record, entry, [this.#short(storedBytes), this.#short(plainBytes)]);
    record.u16(long.length === 0 ? 0 : 4 + 8 * long.length);
    // These zeros are the length of the comment, the disk number and the text flag.
    for (let zero = 0; zero < 3; zero += 1) record.u16(0);
    record.u32(REGULAR_FILE);
    record.u32(this.#short(offset));
    record.raw(name);
    if (long.length === 0) return record.view();
    record.u16(ZIP64_FIELD);
    record.u16(8 * long.length);
    for (const number of long) u64(record, number);
    return record.view();
  }

  /** Writes the fields that an entry's header and its directory record have in common. */
  #describe(
    into: ByteWriter,
    { crc, method, name }: OpenEntry,
    [storedBytes, plainBytes]: readonly [number, number],
  ): void {
    const { date, time } = dosTimeOf(this.#options.timeMs);
    into.u16(UTF8_NAMES);
    into.u16(method);
    into.u16(time);
    into.u16(date);
    into.u32(crc);
    into.u32(storedBytes);
    into.u32(plainBytes);
    into.u16(name.length);
  }

  #endRecords(directoryOffset: number): Uint8Array {
    const count = this.#entryCount;
    const directoryBytes = this.#listBytes;
    const end = new ByteWriter();
    const isLong =
      count >= SEE_ZIP64_COUNT || this.#isLong(directoryOffset) || this.#isLong(directoryBytes);
    if (isLong) {
      end.u32(0x06064b50);
      u64(end, 44);
      end.u16(UNIX | VERSION_ZIP64);
      end.u16(VERSION_ZIP64);
      end.u32(0);
      end.u32(0);
      for (const number of [count, count, directoryBytes, directoryOffset]) u64(end, number);
      end.u32(0x07064b50);
      end.u32(0);
      u64(end, directoryOffset + directoryBytes);
      end.u32(1);
    }
    end.u32(0x06054b50);
    end.u16(0);
    end.u16(0);
    end.u16(Math.min(count, SEE_ZIP64_COUNT));
    end.u16(Math.min(count, SEE_ZIP64_COUNT));
    end.u32(this.#short(directoryBytes));
    end.u32(this.#short(directoryOffset));
    end.u16(0);
    return end.view();
  }

  #isLong(number: number): boolean {
    return number > this.#shortMax;
  }

  #short(number: number): number {
    return this.#isLong(number) ? SEE_ZIP64 : number;
  }
}

function u64(into: ByteWriter, value: number): void {
  into.u32(value % 2 ** 32);
  into.u32(Math.floor(value / 2 ** 32));
}

/**
 * Converts a time to the MS-DOS format, which has a resolution of two seconds and covers 1980 to
 * 2107.
 */
function dosTimeOf(timeMs: number): { readonly date: number; readonly time: number } {
  const at = new Date(timeMs);
  const year = Math.min(Math.max(at.getUTCFullYear() - 1980, 0), 127);
  return {
    date: (year << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate(),
    time: (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1),
  };
}
