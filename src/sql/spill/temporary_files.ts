/**
 * Temporary files of statements: their directory, their limits, and their removal.
 *
 *     SpillSpace        one per engine: directory, bounds, names
 *     TemporaryFiles    one per statement: counts its bytes, removes remaining files at its end
 *     SpillFile         one per operator whose rows exceed its memory: blocks, written once
 *
 * - The operator that created a file removes it, at the latest when the operator is closed. Files
 *   left by a failure are removed at the end of the statement. Files left by a crash are removed
 *   on the next startup, which empties the directory.
 * - Nothing is synced, because the data is useless once the process has ended.
 * - The length and checksum of each block are kept in memory, so a block changed on disk is
 *   detected.
 */
import { assert } from "../../base/assert.ts";
import { ByteWriter } from "../../base/byte_writer.ts";
import { crc32 } from "../../base/checksum.ts";
import type { Disk, DiskFile } from "../../base/disk.ts";
import { CorruptionError, DatabaseError, DiskError } from "../../base/errors.ts";
import { BATCH_ROWS_MAX } from "../../base/limits.ts";
import type { Log } from "../../base/log.ts";
import { type Batch, slice } from "../../types/mod.ts";
import {
  type BlockForm,
  readBlock,
  readCountedBlocks,
  writeBlock,
  writeCountedBlock,
} from "./block_codec.ts";

const MIB = 1024 * 1024;

/**
 * The number of bytes collected before a write. A system call per block would cost more than
 * writing the bytes.
 */
const WRITE_BYTES = 256 * 1024;

/** The number of bytes written between two checks of the free space. */
const LOOK_BYTES: number = 16 * MIB;

/**
 * The free disk space reserved for the log, in addition to the free space below which the server
 * is read-only.
 */
const SPARE_BYTES: number = 64 * MIB;

interface SpillSpaceOptions {
  readonly disk: Disk;
  readonly log: Log;
  /** The directory for temporary files. It must exist, and is emptied on each startup. */
  readonly directory: string;
  /** The prefix of file names, unique among the engines that share a directory. */
  readonly prefix?: string;
  /** The maximum total size of a statement's files in bytes; 0 keeps all rows in memory. */
  readonly bytesMax: number;
  /** The free disk space below which the server is read-only. */
  readonly minFreeBytes: number;
}

export class SpillSpace {
  readonly options: SpillSpaceOptions;
  #fileCount = 0;

  constructor(options: SpillSpaceOptions) {
    this.options = options;
  }

  nextPath(): string {
    this.#fileCount += 1;
    const { directory, prefix = "spill" } = this.options;
    return `${directory}/${prefix}.${this.#fileCount}`;
  }

  /** Removes the files that a terminated thread left behind. */
  clear(): void {
    const { directory, disk, log, prefix = "spill" } = this.options;
    try {
      for (const { name } of disk.list(directory)) {
        if (name.startsWith(`${prefix}.`)) disk.remove(`${directory}/${name}`);
      }
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // Ignoring the error is safe: the next startup empties the directory.
      log.warn("temporary files could not be removed", { directory, code: error.code });
    }
  }
}

export interface FileOptions {
  /** The number of columns in each batch of the file. */
  readonly columnCount: number;
  /** Called with the number of bytes of each block. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
}

/** The temporary files of one statement. */
export class TemporaryFiles {
  readonly #space: SpillSpace;
  readonly #open = new Set<SpillFile>();
  #bytes = 0;
  /**
   * The number of bytes that may be written before the next check of the free space. Removing a
   * file does not postpone the check.
   */
  #bytesToLook = 0;

  constructor(space: SpillSpace) {
    this.#space = space;
  }

  get isAllowed(): boolean {
    return this.#space.options.bytesMax > 0;
  }

  /** The number of bytes that the statement has on disk or is about to write. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Creates a temporary file. @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE */
  create(options: FileOptions): SpillFile {
    const path = this.#space.nextPath();
    const { disk } = this.#space.options;
    const file = onDisk(() => disk.open(path, { create: true, exclusive: true }));
    const spilled = new SpillFile(file, this, options);
    this.#open.add(spilled);
    return spilled;
  }

  /** Removes the statement's remaining files. */
  close(): void {
    for (const file of this.#open) file.close();
  }

  /**
   * Counts bytes against the statement's limit. Called by {@linkcode SpillFile}.
   *
   * @throws {DatabaseError} MEMORY_EXCEEDED, DISK_FULL
   */
  take(bytes: number): void {
    const { bytesMax, directory, disk, minFreeBytes } = this.#space.options;
    this.#bytes += bytes;
    if (this.#bytes > bytesMax) {
      throw new DatabaseError(
        "MEMORY_EXCEEDED",
        `Cannot run the statement: it needs more than ${bytesMax} bytes of temporary files`,
        { hint: "read fewer rows, or raise performance.query_temporary_bytes" },
      );
    }
    this.#bytesToLook -= bytes;
    if (this.#bytesToLook > 0) return;
    this.#bytesToLook = LOOK_BYTES;
    if (disk.freeBytes(directory) >= minFreeBytes + SPARE_BYTES) return;
    throw temporaryDiskFull();
  }

  /** Records that a file was removed. Called by {@linkcode SpillFile}. */
  gone(file: SpillFile, { bytes, path }: { bytes: number; path: string }): void {
    const { disk, log } = this.#space.options;
    this.#open.delete(file);
    this.#bytes -= bytes;
    try {
      disk.remove(path);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // Ignoring the error is safe: the statement already has all the data it needs, and the next
      // startup empties the directory.
      log.warn("a temporary file could not be removed", { path, code: error.code });
    }
  }
}

/** The location of bytes that are written and read in a single operation. */
export interface Extent {
  readonly offset: number;
  readonly byteCount: number;
  readonly checksum: number;
}

/** The location of a block in a file, for {@linkcode SpillFile.read}. */
export interface BlockRef extends Extent {
  readonly rowCount: number;
}

/** A temporary file with blocks of rows, written one after another and read in any order. */
export class SpillFile {
  readonly #file: DiskFile;
  readonly #owner: TemporaryFiles;
  readonly #options: FileOptions;
  /** The bytes not yet written to the disk. */
  readonly #pending = new ByteWriter();
  /** The number of bytes on disk, which is also the file offset of the bytes not yet written. */
  #flushedBytes = 0;
  #isClosed = false;

  constructor(file: DiskFile, owner: TemporaryFiles, options: FileOptions) {
    this.#file = file;
    this.#owner = owner;
    this.#options = options;
  }

  /**
   * Writes a batch. The file keeps no reference to the batch.
   *
   * @throws {DatabaseError} MEMORY_EXCEEDED, DISK_FULL, STORAGE_UNAVAILABLE
   */
  append(batch: Batch): BlockRef {
    this.#check(batch);
    const start = this.#pending.length;
    writeBlock(this.#pending, batch);
    return { ...this.#placed(start), rowCount: batch.rowCount };
  }

  /**
   * Encodes a batch at the end of `into`, for a later {@linkcode appendEncoded}. The encoded bytes
   * keep no reference to the batch.
   */
  encode(into: ByteWriter, batch: Batch): void {
    this.#check(batch);
    writeCountedBlock(into, batch);
  }

  /**
   * Writes encoded batches that are read back together. @throws The errors of {@linkcode append}.
   */
  appendEncoded(encoded: ByteWriter): Extent {
    const start = this.#pending.length;
    this.#pending.raw(encoded.view());
    return this.#placed(start);
  }

  /**
   * Reads a block and verifies its checksum.
   * @throws {DatabaseError} STORAGE_UNAVAILABLE if the bytes differ from the bytes written.
   */
  read(block: BlockRef): Batch {
    const { rowCount } = block;
    return this.#decoded(block, (bytes, form) => readBlock(bytes, { ...form, rowCount }));
  }

  /**
   * Reads the batches that were written together in one extent. @throws {DatabaseError} The errors
   * of {@linkcode read}.
   */
  readExtent(extent: Extent): readonly Batch[] {
    return this.#decoded(extent, readCountedBlocks);
  }

  /** Removes the file. A second call has no effect. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#file.close();
    const bytes = this.#flushedBytes + this.#pending.length;
    this.#owner.gone(this, { bytes, path: this.#file.path });
  }

  #check({ columns }: Batch): void {
    assert(!this.#isClosed, "temporary file: written after it was closed");
    assert(
      columns.length === this.#options.columnCount,
      "temporary file: block has the wrong number of columns",
    );
  }

  /**
   * Returns the location of the bytes just encoded, which begin at `start` in the buffer of
   * unwritten bytes.
   */
  #placed(start: number): Extent {
    const byteCount = this.#pending.length - start;
    this.#owner.take(byteCount);
    this.#options.onBytes?.(byteCount);
    const checksum = crc32(this.#pending.range(start, start + byteCount));
    const extent: Extent = { offset: this.#flushedBytes + start, byteCount, checksum };
    if (this.#pending.length >= WRITE_BYTES) this.#flush();
    return extent;
  }

  #decoded<T>(extent: Extent, decode: (bytes: Uint8Array, form: BlockForm) => T): T {
    assert(!this.#isClosed, "temporary file: read after it was closed");
    if (extent.offset + extent.byteCount > this.#flushedBytes) this.#flush();
    const bytes = new Uint8Array(extent.byteCount);
    const readCount = onDisk(() => this.#file.read(bytes, extent.offset));
    if (readCount < extent.byteCount) throw damaged("the end of the file is missing");
    if (crc32(bytes) !== extent.checksum) throw damaged("the checksum of a block does not match");
    const { columnCount } = this.#options;
    try {
      return decode(bytes, { columnCount, path: this.#file.path });
    } catch (error) {
      if (error instanceof CorruptionError) throw damaged(error.what);
      throw error;
    }
  }

  #flush(): void {
    onDisk(() => this.#file.write(this.#pending.view(), this.#flushedBytes));
    this.#flushedBytes += this.#pending.length;
    this.#pending.reset();
  }
}

/**
 * Splits a batch into pieces of about `bytes` bytes each. No piece exceeds the row limit of a
 * batch.
 */
export function* piecesOf(
  batch: Batch,
  { bytes, bytesMax }: { bytes: number; bytesMax: number },
): Generator<Batch, void> {
  const { columns, rowCount } = batch;
  const fitting = Math.floor((bytesMax * rowCount) / Math.max(1, bytes));
  const rowsMax = Math.min(BATCH_ROWS_MAX, Math.max(1, fitting));
  if (rowCount <= rowsMax) {
    yield batch;
    return;
  }
  for (let start = 0; start < rowCount; start += rowsMax) {
    const end = Math.min(rowCount, start + rowsMax);
    yield { rowCount: end - start, columns: columns.map((column) => slice(column, start, end)) };
  }
}

/** Runs a disk operation. If it fails, only the statement fails. */
function onDisk<T>(operation: () => T): T {
  try {
    return operation();
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    if (error.code === "ENOSPC") throw temporaryDiskFull(error);
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot run the statement: an operation on a temporary file failed with ${error.code}`,
      { cause: error },
    );
  }
}

function temporaryDiskFull(cause?: DiskError): DatabaseError {
  return new DatabaseError(
    "DISK_FULL",
    "Cannot run the statement: it needs temporary files, but the disk is full",
    { hint: "read fewer rows, or free up disk space", cause },
  );
}

function damaged(what: string): DatabaseError {
  return new DatabaseError("STORAGE_UNAVAILABLE", `Cannot read a temporary file: ${what}`);
}
