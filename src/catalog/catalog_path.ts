/** Defines the path of the catalog in a data directory. A backup has the same structure. */

/** The name of the SQLite file that contains the catalog. */
export const CATALOG_FILE = "catalog.sqlite";

/** The suffixes of the files that SQLite creates next to the catalog file. */
export const CATALOG_SIDE_FILES: readonly string[] = ["wal", "shm", "journal"].map(
  (kind) => `${CATALOG_FILE}-${kind}`,
);

/** Returns the path of the catalog. @param root The data directory or the backup. */
export function catalogPathOf(root: string): string {
  return `${root}/${CATALOG_FILE}`;
}
