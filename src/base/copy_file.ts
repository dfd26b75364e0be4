/**
 * Copies files from one directory to another in pieces, synced, with the checksum of what was
 * copied. Between pieces other work has its turn.
 */
import { crc32 } from "./checksum.ts";
import type { Disk, DiskFile } from "./disk.ts";
import { DatabaseError } from "./errors.ts";

/** Read and written at a time. */
const PIECE_BYTES: number = 1 << 20;

export interface CopyOptions {
  readonly disk: Disk;
  /** Bytes to copy; the whole file when absent. */
  readonly upTo?: number;
  /** The file to read, when it is open already; it stays open. */
  readonly source?: DiskFile;
  /** Lets others work; resolves when it may go on. */
  readonly pause: () => Promise<void>;
  /** @throws {DatabaseError} To end the copying. */
  readonly onCopied: (byteCount: number) => void;
}

export interface Copied {
  readonly bytes: number;
  /** CRC-32 of the copy. */
  readonly crc: number;
}

/** @param to A file that is not there yet. @throws {DiskError} @throws What `onCopied` throws. */
export async function copyFile(from: string, to: string, options: CopyOptions): Promise<Copied> {
  const { disk, pause, onCopied } = options;
  const source = options.source ?? disk.open(from, { readOnly: true });
  try {
    const copy = disk.open(to, { create: true, exclusive: true });
    try {
      const end = options.upTo ?? source.size();
      const piece = new Uint8Array(Math.min(PIECE_BYTES, Math.max(1, end)));
      let crc = 0;
      let offset = 0;
      while (offset < end) {
        const count = source.read(piece.subarray(0, Math.min(piece.length, end - offset)), offset);
        if (count === 0) throw shorter(from, offset, end);
        crc = crc32(piece.subarray(0, count), crc);
        copy.write(piece.subarray(0, count), offset);
        offset += count;
        onCopied(count);
        await pause();
      }
      await copy.sync();
      return { bytes: offset, crc };
    } finally {
      copy.close();
    }
  } finally {
    if (options.source === undefined) source.close();
  }
}

/** Length and CRC-32 of a file, or of its first bytes. @throws {DiskError} */
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

/** Removes a directory and all that is in it, if it is there. @throws {DiskError} */
export function removeTree(disk: Disk, path: string): void {
  if (!disk.exists(path)) return;
  for (const { name, isDirectory } of disk.list(path)) {
    if (isDirectory) removeTree(disk, `${path}/${name}`);
    else disk.remove(`${path}/${name}`);
  }
  disk.removeDirectory(path);
}

/** The same off the event loop, one file after the other. Rejects with DiskError. */
export async function removeTreeSoon(disk: Disk, path: string): Promise<void> {
  if (!disk.exists(path)) return;
  for (const { name, isDirectory } of disk.list(path)) {
    if (isDirectory) await removeTreeSoon(disk, `${path}/${name}`);
    else await disk.removeSoon(`${path}/${name}`);
  }
  disk.removeDirectory(path);
}

/** Paths of all files in a directory and those below it; none if it is not there. @throws {DiskError} */
export function* filesBelow(disk: Disk, directory: string): Generator<string> {
  if (!disk.exists(directory)) return;
  for (const { name, isDirectory } of disk.list(directory)) {
    const path = `${directory}/${name}`;
    if (isDirectory) yield* filesBelow(disk, path);
    else yield path;
  }
}

/** Makes the directory of a file below a root, which is there. Returns those that are new. */
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
    `Cannot copy ${path}: it has ${offset} bytes, and should have ${end}`,
    { hint: "tidemark verify says what is damaged" },
  );
}
