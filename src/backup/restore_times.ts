/**
 * Finds the times of the seqs that follow a backup. The backup itself contains only the eras up to
 * its own end. Later eras are in the catalog of the database that was backed up, or in the archive
 * of its log.
 */
import type { Clock } from "../base/clock.ts";
import { removeTree } from "../base/copy_file.ts";
import type { Disk } from "../base/disk.ts";
import type { Log } from "../base/log.ts";
import type { SeqEra } from "../base/seq_times.ts";
import {
  type CatalogDatabase,
  catalogPathOf,
  checkCatalog,
  seqErasIn,
  seqErasOf,
} from "../catalog/mod.ts";
import { archivedFiles, INCARNATION, readUnit } from "./archive_units.ts";

export interface RestoreTimesOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  /** The path of the backup to restore. */
  readonly source: string;
  readonly archivePath: string | undefined;
  /** The catalog of the database being replaced, if it could be read. */
  readonly replaced: CatalogDatabase | undefined;
  /** A directory for a copy of the backup's catalog, which must not exist yet. */
  readonly scratch: string;
}

/**
 * Returns the eras of all seqs that a restore may reach.
 *
 * @throws {CorruptionError} If a list in the archive is damaged.
 * @throws {DatabaseError} STORAGE_UNAVAILABLE if a newer version wrote such a list.
 * @throws {DiskError}
 */
export function erasBehind(options: RestoreTimesOptions): readonly SeqEra[] {
  const { archivePath, disk, replaced, scratch, source } = options;
  const path = catalogPathOf(source);
  disk.makeDirectory(scratch);
  const { catalog } = checkCatalog({ ...options, path });
  try {
    // If the backup's catalog is damaged, the backup cannot be restored anyway, because copying it
    // fails.
    if (catalog === undefined) return [];
    const incarnation = catalog.setting(INCARNATION) ?? "";
    const isSame = replaced !== undefined && (replaced.setting(INCARNATION) ?? "") === incarnation;
    if (isSame) return seqErasOf(replaced);
    const hasArchive = archivePath !== undefined && incarnation !== "";
    const later = hasArchive
      ? archivedEras(disk, `${archivePath}/${incarnation}`, catalog.journal.end)
      : undefined;
    return later ?? seqErasOf(catalog);
  } finally {
    catalog?.close();
    removeTree(disk, scratch);
  }
}

/**
 * Returns the latest eras recorded in an archive; undefined if they have not changed since the
 * journal entry `afterId`.
 */
function archivedEras(disk: Disk, root: string, afterId: number): readonly SeqEra[] | undefined {
  for (const number of archivedFiles(disk, root).toReversed()) {
    const { journal, journalEnd } = readUnit(disk, root, number);
    if (journalEnd <= afterId) return undefined;
    const eras = seqErasIn(journal.filter(({ id }) => id > afterId));
    if (eras !== undefined) return eras;
  }
  return undefined;
}
