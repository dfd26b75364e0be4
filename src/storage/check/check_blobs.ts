/**
 * Checks uploaded files: that each one that the catalog lists is there, has its length, and is what
 * was uploaded by its SHA-256; and looks for files that are not listed.
 */
import { filesBelow } from "../../base/copy_file.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import type { BlobPath } from "../contract/blob_store.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import { blobPath, type DataPaths, FILES_DIRECTORY } from "../directory/file_names.ts";
import { readable } from "../directory/readable.ts";
import { type CheckListener, damageFinding, noteFinding } from "./findings.ts";
import { namedFiles, type ReferencedFile } from "./named_files.ts";

/** Read at a time. */
const PIECE_BYTES: number = 1 << 20;

/** An uploaded file as the catalog lists it. */
export interface ListedBlob extends BlobPath, ReferencedFile {
  readonly size: number;
  readonly sha256: string;
}

export interface BlobCheckOptions<Blob> {
  readonly disk: Disk;
  readonly paths: DataPaths;
  readonly blobs: readonly Blob[];
  /** Segments that the manifest lists, to look for rows that name what is missing. */
  readonly segments: readonly SegmentEntry[];
  /** Where the log begins, for the same. */
  readonly firstLogFile: number | undefined;
}

/** Returns those whose bytes are damaged, or missing and named by a row; changes nothing. */
export function checkBlobs<Blob extends ListedBlob>(
  options: BlobCheckOptions<Blob>,
  listener: CheckListener,
): Blob[] {
  const { disk, paths, blobs } = options;
  const pathOf = (blob: Blob): string => `${paths.root}/${blobPath(blob)}`;
  const isMissing = new Set(blobs.filter((blob) => !disk.exists(pathOf(blob))));
  const named = isMissing.size === 0 ? isMissing : namedFiles(options, [...isMissing]);
  const damaged: Blob[] = [];
  for (const blob of blobs) {
    const path = pathOf(blob);
    if (isMissing.has(blob) && !named.has(blob)) {
      const what = "listed and missing: a crash cut off its upload; no row names it";
      listener.onFinding(noteFinding(path, what, blob.tableId));
      continue;
    }
    try {
      if (isMissing.has(blob)) throw new CorruptionError(path, 0, "it is missing");
      readable(path, () => checkBlob(disk, path, { blob, listener }));
    } catch (error) {
      if (!(error instanceof CorruptionError)) throw error;
      damaged.push(blob);
      listener.onFinding(damageFinding(error, blob.tableId));
    }
  }
  const listed = new Set(blobs.map(pathOf));
  for (const path of filesBelow(disk, `${paths.root}/${FILES_DIRECTORY}`)) {
    if (listed.has(path)) continue;
    listener.onFinding(noteFinding(path, "the catalog does not list it; nothing names it"));
  }
  return damaged;
}

/** @throws {CorruptionError} @throws {DiskError} */
function checkBlob(
  disk: Disk,
  path: string,
  { blob, listener }: { blob: ListedBlob; listener: CheckListener },
): void {
  const file = disk.open(path, { readOnly: true });
  try {
    const size = file.size();
    if (size !== blob.size) {
      const what = `the file has ${size} bytes and should have ${blob.size}`;
      throw new CorruptionError(path, Math.min(size, blob.size), what);
    }
    const hasher = new Bun.CryptoHasher("sha256");
    const piece = new Uint8Array(Math.min(size, PIECE_BYTES));
    for (let offset = 0; offset < size; offset += piece.length) {
      const count = file.read(piece.subarray(0, Math.min(piece.length, size - offset)), offset);
      hasher.update(piece.subarray(0, count));
      listener.onChecked(path, count);
    }
    if (hasher.digest("hex") === blob.sha256) return;
    throw new CorruptionError(path, 0, "its SHA-256 is not that of what was uploaded");
  } finally {
    file.close();
  }
}
