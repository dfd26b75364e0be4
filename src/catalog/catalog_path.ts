/**
 * The path of the catalog in a data directory, and in a backup, which has the same structure.
 */

/** The name of the file. */
export const CATALOG_FILE = "catalog.sqlite";

/** The suffixes of the files that SQLite keeps beside it. */
export const CATALOG_SIDE_FILES: readonly string[] = ["wal", "shm", "journal"].map(
  (kind) => `${CATALOG_FILE}-${kind}`,
);

/** @param root The data directory or the backup. */
export function catalogPathOf(root: string): string {
  return `${root}/${CATALOG_FILE}`;
}
