/**
 * Checks uploaded files. Each listed file must exist, and its length and SHA-256 hash must match
 * the length and hash of the upload. Files that are not listed are reported, too.
 */
import { filesBelow } from "../../base/copy_file.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError } from "../../base/errors.ts";
import type { SegmentEntry } from "../contract/manifest.ts";
import { blobPath, type DataPaths, FILES_DIRECTORY } from "../directory/file_names.ts";
import { readable } from "../directory/readable.ts";
import { type CheckListener, damageFinding, noteFinding } from "./findings.ts";
import { type ListedBlob, namedFiles } from "./named_files.ts";

/** The number of bytes of a file that are read at once. */
const PIECE_BYTES: number = 1 << 20;

export interface BlobCheckOptions {
  readonly disk: Disk;
  readonly paths: DataPaths;
  readonly blobs: readonly ListedBlob[];
  /**
   * The segments in the manifest, in which the check looks for rows that refer to a missing file.
   */
  readonly segments: readonly SegmentEntry[];
  /** The first log file in which the check looks for rows that refer to a missing file. */
  readonly firstLogFile: number | undefined;
}

/**
 * Returns uploaded files that are damaged, and uploaded files that are missing although a row
 * refers to them. Changes nothing.
 */
export function checkBlobs(options: BlobCheckOptions, listener: CheckListener): ListedBlob[] {
  const { disk, paths, blobs } = options;
  const pathOf = (blob: ListedBlob): string => `${paths.root}/${blobPath(blob)}`;
  const isMissing = new Set(blobs.filter((blob) => !disk.exists(pathOf(blob))));
  const named = isMissing.size === 0 ? isMissing : namedFiles(options, [...isMissing]);
  const damaged: ListedBlob[] = [];
  for (const blob of blobs) {
    const path = pathOf(blob);
    if (isMissing.has(blob) && !named.has(blob)) {
      const what =
        "the file is listed but missing, because a crash interrupted its upload; no row refers " +
        "to it";
      listener.onFinding(noteFinding(path, what, blob.tableId));
      continue;
    }
    try {
      if (isMissing.has(blob)) throw new CorruptionError(path, 0, "the file is missing");
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
    listener.onFinding(
      noteFinding(path, "the catalog does not list this file, and nothing refers to it"),
    );
  }
  return damaged;
}

/** Checks one uploaded file. @throws {CorruptionError} @throws {DiskError} */
function checkBlob(
  disk: Disk,
  path: string,
  { blob, listener }: { blob: ListedBlob; listener: CheckListener },
): void {
  const file = disk.open(path, { readOnly: true });
  try {
    const size = file.size();
    if (size !== blob.size) {
      const what = `the file has ${size} bytes instead of ${blob.size}`;
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
    throw new CorruptionError(
      path,
      0,
      "the SHA-256 hash differs from the hash that was recorded at the upload",
    );
  } finally {
    file.close();
  }
}
