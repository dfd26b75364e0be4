/**
 * Temporary files of statements: where they lie, how large they may become, and that none stays.
 *
 *     SpillSpace        one for an engine: directory, bounds, names
 *     TemporaryFiles    one for a statement: counts its bytes, removes what is left at its end
 *     SpillFile         one for an operator that holds more than it may: blocks, written once
 *
 * - A file is removed by the operator that made it, at the latest when that is closed; what a
 *   failure leaves is removed at the end of the statement, and what a crash leaves at the next
 *   start, which empties the directory.
 * - Nothing is synced: what is lost with the process is needed by nobody.
 * - Length and checksum of each block are kept in memory, so a block that comes back otherwise than
 *   it was written is noticed, wherever the disk may have it from.
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

/** Bytes that are gathered before a write: a call for each block would cost more than its bytes. */
const WRITE_BYTES = 256 * 1024;

/** Bytes between two looks at the free space. */
const LOOK_BYTES: number = 16 * MIB;

/** What stays free for the log, beyond the reserve below which the server only reads. */
const SPARE_BYTES: number = 64 * MIB;

interface SpillSpaceOptions {
  readonly disk: Disk;
  readonly log: Log;
  /** Exists, and is emptied at each start. */
  readonly directory: string;
  /** How the names of files begin; no two spaces of a directory share one. */
  readonly prefix?: string;
  /** Of one statement; 0 keeps all in memory. */
  readonly bytesMax: number;
  /** Free bytes of the disk below which the server only reads. */
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

  /** Removes the files that a thread left in its space when it ended. */
  clear(): void {
    const { directory, disk, log, prefix = "spill" } = this.options;
    try {
      for (const { name } of disk.list(directory)) {
        if (name.startsWith(`${prefix}.`)) disk.remove(`${directory}/${name}`);
      }
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // The next start empties the directory.
      log.warn("temporary files could not be removed", { directory, code: error.code });
    }
  }
}

export interface FileOptions {
  /** Columns of each batch. */
  readonly columnCount: number;
  /** Told the bytes of each block. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
}

/** The temporary files of one statement. */
export class TemporaryFiles {
  readonly #space: SpillSpace;
  readonly #open = new Set<SpillFile>();
  #bytes = 0;
  /** Of files that are gone, too: when to look at the free space again. */
  #bytesToLook = 0;

  constructor(space: SpillSpace) {
    this.#space = space;
  }

  get isAllowed(): boolean {
    return this.#space.options.bytesMax > 0;
  }

  /** Bytes that lie on the disk now, or are about to. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws {DatabaseError} DISK_FULL, STORAGE_UNAVAILABLE */
  create(options: FileOptions): SpillFile {
    const path = this.#space.nextPath();
    const { disk } = this.#space.options;
    const file = onDisk(() => disk.open(path, { create: true, exclusive: true }));
    const spilled = new SpillFile(file, this, options);
    this.#open.add(spilled);
    return spilled;
  }

  /** Removes what is left. */
  close(): void {
    for (const file of this.#open) file.close();
  }

  /** Of {@linkcode SpillFile}. @throws {DatabaseError} MEMORY_EXCEEDED, DISK_FULL */
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

  /** Of {@linkcode SpillFile}. */
  gone(file: SpillFile, { bytes, path }: { bytes: number; path: string }): void {
    const { disk, log } = this.#space.options;
    this.#open.delete(file);
    this.#bytes -= bytes;
    try {
      disk.remove(path);
    } catch (error) {
      if (!(error instanceof DiskError)) throw error;
      // The statement has all that it needs; the next start empties the directory.
      log.warn("a temporary file could not be removed", { path, code: error.code });
    }
  }
}

/** Where bytes lie that are written and read as one. */
export interface Extent {
  readonly offset: number;
  readonly byteCount: number;
  readonly checksum: number;
}

/** Where one block lies: what {@linkcode SpillFile.read} is asked for. */
export interface BlockRef extends Extent {
  readonly rowCount: number;
}

/** Blocks of rows, written one after the other and read in any order. */
export class SpillFile {
  readonly #file: DiskFile;
  readonly #owner: TemporaryFiles;
  readonly #options: FileOptions;
  /** What is not on the disk yet. */
  readonly #pending = new ByteWriter();
  /** Bytes on the disk: where what is pending goes to. */
  #flushedBytes = 0;
  #isClosed = false;

  constructor(file: DiskFile, owner: TemporaryFiles, options: FileOptions) {
    this.#file = file;
    this.#owner = owner;
    this.#options = options;
  }

  /**
   * Writes a batch, which is not aliased.
   *
   * @throws {DatabaseError} MEMORY_EXCEEDED, DISK_FULL, STORAGE_UNAVAILABLE
   */
  append(batch: Batch): BlockRef {
    this.#check(batch);
    const start = this.#pending.length;
    writeBlock(this.#pending, batch);
    return { ...this.#placed(start), rowCount: batch.rowCount };
  }

  /** Adds a batch, which is not aliased, to bytes for {@linkcode appendEncoded}. */
  encode(into: ByteWriter, batch: Batch): void {
    this.#check(batch);
    writeCountedBlock(into, batch);
  }

  /** Writes batches that were encoded, to be read together. @throws As {@linkcode append}. */
  appendEncoded(encoded: ByteWriter): Extent {
    const start = this.#pending.length;
    this.#pending.raw(encoded.view());
    return this.#placed(start);
  }

  /** @throws {DatabaseError} STORAGE_UNAVAILABLE if the bytes are not those that were written. */
  read(block: BlockRef): Batch {
    const { rowCount } = block;
    return this.#decoded(block, (bytes, form) => readBlock(bytes, { ...form, rowCount }));
  }

  /** The batches that were encoded there. @throws {DatabaseError} As {@linkcode read}. */
  readExtent(extent: Extent): readonly Batch[] {
    return this.#decoded(extent, readCountedBlocks);
  }

  /** Removes the file. Doing so twice changes nothing. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#file.close();
    const bytes = this.#flushedBytes + this.#pending.length;
    this.#owner.gone(this, { bytes, path: this.#file.path });
  }

  #check({ columns }: Batch): void {
    assert(!this.#isClosed, "a temporary file is open while it is written");
    assert(columns.length === this.#options.columnCount, "a block has the columns of its file");
  }

  /** Accounts for what was just written behind `start`. */
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
    assert(!this.#isClosed, "a temporary file is open while it is read");
    if (extent.offset + extent.byteCount > this.#flushedBytes) this.#flush();
    const bytes = new Uint8Array(extent.byteCount);
    const readCount = onDisk(() => this.#file.read(bytes, extent.offset));
    if (readCount < extent.byteCount) throw damaged("its end is missing");
    if (crc32(bytes) !== extent.checksum) throw damaged("its checksum does not match");
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

/** Cuts a batch into pieces of about so many bytes, and at most as many rows as a batch has. */
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

/** Runs an operation of the disk; its failure fails the statement and nothing else. */
function onDisk<T>(operation: () => T): T {
  try {
    return operation();
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    if (error.code === "ENOSPC") throw temporaryDiskFull(error);
    throw new DatabaseError(
      "STORAGE_UNAVAILABLE",
      `Cannot run the statement: a temporary file failed with ${error.code}`,
      { cause: error },
    );
  }
}

function temporaryDiskFull(cause?: DiskError): DatabaseError {
  return new DatabaseError(
    "DISK_FULL",
    "Cannot run the statement: it needs temporary files, and the disk is full",
    { hint: "read fewer rows, or free some space", cause },
  );
}

function damaged(what: string): DatabaseError {
  return new DatabaseError("STORAGE_UNAVAILABLE", `Cannot read a temporary file: ${what}`);
}
