/**
 * Refuses a directory that contains a file in a newer format. This happens before anything is
 * written, so an older program leaves the directory unchanged.
 *
 * In every file, the format number is where it was in the first version, and is covered by a
 * checksum. If the checksum does not match, the file is damaged. The code that reads the file
 * reports the damage.
 */
import { numberInMagic } from "../base/bytes.ts";
import { filesBelow } from "../base/copy_file.ts";
import type { Disk } from "../base/disk.ts";
import { CorruptionError, DatabaseError, DiskError } from "../base/errors.ts";
import {
  DELETIONS_FORMAT,
  DELETIONS_MAGIC_NAME,
  DeletionVector,
} from "./deletions/deletion_vector.ts";
import { type DataPaths, walFileNumberFromName } from "./directory/file_names.ts";
import { WAL_FORMAT, WAL_HEADER_BYTES, walFormatOf } from "./local_wal/format.ts";
import { HEADER_BYTES, SEGMENT_FORMAT, segmentFormatOf } from "./segment/format.ts";

/**
 * Refuses a directory that contains a file in a newer format.
 * @throws {DatabaseError} STORAGE_UNAVAILABLE, with the name of the file.
 */
export function refuseNewerFiles(disk: Disk, paths: DataPaths): void {
  for (const { name } of listed(disk, paths.wal)) {
    if (walFileNumberFromName(name) === undefined) continue;
    refuseNewer(`${paths.wal}/${name}`, WAL_FORMAT, (path) =>
      walFormatOf(headOf(disk, path, WAL_HEADER_BYTES)),
    );
  }
  refuseNewerSegments(disk, paths.segments);
}

/**
 * Checks the segments and deletion vectors below a directory.
 *
 * @throws {DatabaseError} STORAGE_UNAVAILABLE
 */
export function refuseNewerSegments(disk: Disk, segments: string): void {
  for (const path of filesBelow(disk, segments)) {
    if (path.endsWith(".seg")) {
      refuseNewer(path, SEGMENT_FORMAT, () => segmentFormatOf(headOf(disk, path, HEADER_BYTES)));
    } else if (path.endsWith(".dv")) {
      refuseNewer(path, DELETIONS_FORMAT, () => deletionsFormat(disk, path));
    }
  }
}

function refuseNewer(
  path: string,
  known: number,
  formatOf: (path: string) => number | undefined,
): void {
  let format: number | undefined;
  try {
    format = formatOf(path);
  } catch (error) {
    // Ignoring the error is safe: code that needs the file will run into the same error and report
    // it.
    if (error instanceof DiskError || error instanceof CorruptionError) return;
    throw error;
  }
  if (format === undefined || format <= known) return;
  throw new DatabaseError(
    "STORAGE_UNAVAILABLE",
    `Cannot read ${path}: it has format ${format}, but this version reads only ${known}`,
    { hint: "use the newer version of Tidemark that wrote it" },
  );
}

/**
 * Returns the format of a deletion vector file. If the format number looks newer, the whole file
 * is read to verify its checksum.
 */
function deletionsFormat(disk: Disk, path: string): number | undefined {
  const claimed = numberInMagic(headOf(disk, path, HEADER_BYTES), DELETIONS_MAGIC_NAME);
  if (claimed === undefined || claimed <= DELETIONS_FORMAT) return claimed;
  return DeletionVector.formatOf(disk.readFile(path));
}

function listed(disk: Disk, path: string): ReturnType<Disk["list"]> {
  return disk.exists(path) ? disk.list(path) : [];
}

function headOf(disk: Disk, path: string, byteCount: number): Uint8Array {
  const file = disk.open(path, {});
  try {
    const bytes = new Uint8Array(byteCount);
    return bytes.subarray(0, file.read(bytes, 0));
  } finally {
    file.close();
  }
}
