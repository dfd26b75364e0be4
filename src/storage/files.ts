/**
 * The second entry point of storage, for code that checks, repairs, copies or restores the files
 * of a data directory or a backup. Code that reads or writes rows goes through the store and
 * `mod.ts`.
 */

export { checkBackup } from "./check/check_backup.ts";
export { checkBlobs } from "./check/check_blobs.ts";
export { checkIndexes, type DamagedIndex, rebuildIndexes } from "./check/check_indexes.ts";
export { checkLog, type LogCheck } from "./check/check_log.ts";
export { checkSegments, isLost, requireSoundSegment } from "./check/check_segments.ts";
export { type CheckListener, damageFinding, type Finding, noteFinding } from "./check/findings.ts";
export type { ListedBlob } from "./check/named_files.ts";
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
  indexPath,
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
export type { IndexOutline } from "./table/index_builder.ts";
export { indexColumnsOf } from "./table/table_index.ts";
