/**
 * Copies files in pieces of a megabyte, each of which is durable before the next one is written,
 * and computes the checksum of the copy. If a large file were synced only once at its end, other
 * writers to that disk would be blocked for a long time. Other work can run between two pieces.
 */
import { crc32 } from "./checksum.ts";
import type { Disk, DiskFile } from "./disk.ts";
import { DatabaseError } from "./errors.ts";

/** The number of bytes read and written at a time. */
const PIECE_BYTES: number = 1 << 20;

export interface CopyOptions {
  readonly disk: Disk;
  /** The number of bytes to copy; absent for the entire file. */
  readonly upTo?: number;
  /** The source file, if the caller has already opened it. The caller also closes it. */
  readonly source?: DiskFile;
  /** Lets other work run. The promise resolves when copying may continue. */
  readonly pause: () => Promise<void>;
  /**
   * Called after each piece is copied. If it throws an error, the copy is aborted.
   *
   * @throws {DatabaseError}
   */
  readonly onCopied: (byteCount: number) => void;
}

export interface Copied {
  readonly bytes: number;
  /** The CRC-32 of the copied bytes. */
  readonly crc: number;
}

/**
 * Copies a file in pieces, so that other work can run in between.
 * @param to The target file, which must not exist yet.
 * @throws {DiskError}
 * @throws Errors of `onCopied`.
 */
export async function copyFile(from: string, to: string, options: CopyOptions): Promise<Copied> {
  const copy = new FileCopy(from, to, options);
  try {
    return await copy.finish();
  } finally {
    copy.close();
  }
}

/**
 * The copy of a file, which advances only as far as its caller requests. The source is opened when
 * the first piece is copied.
 */
export class FileCopy {
  readonly #from: string;
  readonly #options: CopyOptions;
  readonly #copy: DiskFile;
  #source: DiskFile | undefined;
  #offset = 0;
  #crc = 0;

  /**
   * Creates the target file. The source is opened later.
   * @param to The target file, which must not exist yet.
   * @throws {DiskError}
   */
  constructor(from: string, to: string, options: CopyOptions) {
    this.#from = from;
    this.#options = options;
    this.#source = options.source;
    this.#copy = options.disk.open(to, {
      create: true,
      exclusive: true,
      writesThrough: true,
    });
  }

  /**
   * Copies further pieces of the file, up to the last that lies entirely below an offset.
   *
   * @throws {DiskError} @throws Errors of `onCopied`.
   */
  async advance(below: number): Promise<void> {
    if (below - this.#offset < PIECE_BYTES) return;
    await this.#copyUpTo(below - ((below - this.#offset) % PIECE_BYTES));
  }

  /** Copies the rest of the file. @throws {DiskError} @throws Errors of `onCopied`. */
  async finish(): Promise<Copied> {
    await this.#copyUpTo(this.#options.upTo ?? this.#opened().size());
    return { bytes: this.#offset, crc: this.#crc };
  }

  close(): void {
    this.#copy.close();
    if (this.#source !== this.#options.source) this.#source?.close();
  }

  async #copyUpTo(end: number): Promise<void> {
    const { onCopied, pause } = this.#options;
    const source = this.#opened();
    const piece = new Uint8Array(Math.min(PIECE_BYTES, Math.max(1, end - this.#offset)));
    while (this.#offset < end) {
      const wanted = Math.min(piece.length, end - this.#offset);
      const count = source.read(piece.subarray(0, wanted), this.#offset);
      if (count === 0) throw shorter(this.#from, this.#offset, end);
      const bytes = piece.subarray(0, count);
      this.#crc = crc32(bytes, this.#crc);
      await this.#copy.writeDurably(bytes, this.#offset);
      this.#offset += count;
      onCopied(count);
      await pause();
    }
  }

  #opened(): DiskFile {
    this.#source ??= this.#options.disk.open(this.#from, { readOnly: true });
    return this.#source;
  }
}

/**
 * Returns the length and the CRC-32 of a file. With `upTo`, only the first bytes of the file
 * count.
 * @throws {DiskError}
 */
export function checksumOfFile(disk: Disk, path: string, upTo: number = Infinity): Copied {
  const file = disk.open(path, { readOnly: true });
  try {
    const piece = new Uint8Array(PIECE_BYTES);
    let crc = 0;
    let bytes = 0;
    for (;;) {
      const wanted = Math.min(piece.length, upTo - bytes);
      const count = file.read(piece.subarray(0, wanted), bytes);
      if (count === 0) return { bytes, crc };
      crc = crc32(piece.subarray(0, count), crc);
      bytes += count;
    }
  } finally {
    file.close();
  }
}

/** Removes a directory and its contents, if it exists. @throws {DiskError} */
export function removeTree(disk: Disk, path: string): void {
  if (!disk.exists(path)) return;
  emptyDirectory(disk, path);
  disk.removeDirectory(path);
}

/**
 * Removes the contents of a directory but not the directory itself.
 *
 * @throws {DiskError}
 */
export function emptyDirectory(disk: Disk, path: string): void {
  for (const { name, isDirectory } of disk.list(path)) {
    if (isDirectory) removeTree(disk, `${path}/${name}`);
    else disk.remove(`${path}/${name}`);
  }
}

/**
 * Removes a directory and its contents like {@linkcode removeTree}, but outside the event loop,
 * one file at a time. Rejects with a DiskError.
 */
export async function removeTreeSoon(disk: Disk, path: string): Promise<void> {
  if (!disk.exists(path)) return;
  for (const { name, isDirectory } of disk.list(path)) {
    if (isDirectory) await removeTreeSoon(disk, `${path}/${name}`);
    else await disk.removeSoon(`${path}/${name}`);
  }
  disk.removeDirectory(path);
}

/**
 * Returns the paths of all files in a directory and its subdirectories; none if the directory does
 * not exist.
 * @throws {DiskError}
 */
export function* filesBelow(disk: Disk, directory: string): Generator<string> {
  if (!disk.exists(directory)) return;
  for (const { name, isDirectory } of disk.list(directory)) {
    const path = `${directory}/${name}`;
    if (isDirectory) yield* filesBelow(disk, path);
    else yield path;
  }
}

/**
 * Creates the missing parent directories of a file below an existing root. Returns the paths of
 * the created directories.
 */
export function makeDirectoryOf(disk: Disk, root: string, path: string): string[] {
  const made: string[] = [];
  let directory = root;
  for (const part of path.split("/").slice(0, -1)) {
    directory = `${directory}/${part}`;
    if (disk.exists(directory)) continue;
    disk.makeDirectory(directory);
    made.push(directory);
  }
  return made;
}

function shorter(path: string, offset: number, end: number): DatabaseError {
  return new DatabaseError(
    "DATA_DAMAGED",
    `Cannot copy ${path}: it has ${offset} bytes instead of ${end}`,
    { hint: "to list the damage, run tidemark verify" },
  );
}
