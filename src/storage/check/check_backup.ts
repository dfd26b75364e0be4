/**
 * Checks that the files of a backup match its file list. The contents of the files are examined by
 * the same checks as for any data directory.
 */

import { checksumOfFile } from "../../base/copy_file.ts";
import type { Disk } from "../../base/disk.ts";
import { CorruptionError, DatabaseError } from "../../base/errors.ts";
import { backupListPath, listedFault, readBackupList } from "../directory/backup_list.ts";
import { readable } from "../directory/readable.ts";
import { type CheckListener, damageFinding, noteFinding } from "./findings.ts";

/**
 * Checks the files of a backup against its file list.
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if the backup has a newer format.
 */
export function checkBackup(
  disk: Disk,
  root: string,
  listener: {
    onFinding(finding: Parameters<CheckListener["onFinding"]>[0], table: undefined): void;
  },
): void {
  const note = (error: CorruptionError): void =>
    listener.onFinding(damageFinding(error), undefined);
  let files: ReturnType<typeof readBackupList>["files"];
  try {
    ({ files } = readBackupList(disk, root));
  } catch (error) {
    if (error instanceof DatabaseError) throw error;
    if (!(error instanceof CorruptionError)) throw error;
    note(new CorruptionError(backupListPath(root), 0, error.what));
    return;
  }
  for (const path of backupsInside(disk, root)) {
    const what =
      "this directory contains a second backup that is not part of the first; removing the " +
      "directory removes both, so move the second backup elsewhere";
    listener.onFinding(noteFinding(path, what), undefined);
  }
  for (const file of files) {
    const path = `${root}/${file.path}`;
    try {
      const found = disk.exists(path)
        ? readable(path, () => checksumOfFile(disk, path))
        : { bytes: undefined };
      const fault = listedFault(file, path, found);
      if (fault !== undefined) note(fault);
    } catch (error) {
      if (!(error instanceof CorruptionError)) throw error;
      note(error);
    }
  }
}

/** Yields the paths of other backups that lie inside a backup's directory. */
function* backupsInside(disk: Disk, root: string): Generator<string> {
  for (const { isDirectory, name } of disk.list(root)) {
    const path = `${root}/${name}`;
    if (!isDirectory) continue;
    if (disk.exists(backupListPath(path))) yield path;
    yield* backupsInside(disk, path);
  }
}
