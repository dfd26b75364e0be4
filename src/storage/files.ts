/**
 * The second door: the files of a data directory and of a backup, by name, form and soundness, for
 * who checks, mends, copies or restores them. What serves rows asks the store, by `mod.ts`.
 */

export { checkBackup } from "./check/check_backup.ts";
export { checkBlobs } from "./check/check_blobs.ts";
export { checkLog, type LogCheck } from "./check/check_log.ts";
export { checkSegments, isLost, requireSoundSegment } from "./check/check_segments.ts";
export { type CheckListener, damageFinding, type Finding, noteFinding } from "./check/findings.ts";
export { cutLog, endLog, type LogCut, plannedCut } from "./check/repair_log.ts";
export { dropSegments, quarantineSegments } from "./check/repair_segments.ts";
export {
  directoryFormat,
  holdsRows,
  inUse,
  refuseBackup,
  refuseForeignDirectory,
  requireFormat,
} from "./data_directory.ts";
export {
  type BackupFile,
  type BackupList,
  backupAround,
  backupListPath,
  listedFault,
  readBackupList,
  writeBackupList,
} from "./directory/backup_list.ts";
export {
  blobPath,
  copyPathsOf,
  type DataPaths,
  dataPathsOf,
  deletionVectorPath,
  segmentPath,
  walFileNumberFromName,
  walFilePath,
} from "./directory/file_names.ts";
export { moveToLostAndFound } from "./directory/lost_and_found.ts";
export { readSealedText, writeSealedText } from "./directory/sealed_text.ts";
export { storageFault } from "./directory/storage_directory.ts";
export { decodeWalHeader, WAL_HEADER_BYTES } from "./local_wal/format.ts";
export { rewriteNumberFile } from "./local_wal/high_water.ts";
export { findLogPoint, type LogPoint, shortenLog } from "./log_point.ts";
export { refuseNewerFiles } from "./newer_files.ts";
export { reservationAt } from "./snowflake_ids.ts";
