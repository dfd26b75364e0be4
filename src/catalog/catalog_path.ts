/**
 * Where the catalog lies in a data directory, and in a backup, which is built like one.
 */

/** Its name there. */
export const CATALOG_FILE = "catalog.sqlite";

/** Names of what SQLite keeps beside it. */
export const CATALOG_SIDE_FILES: readonly string[] = ["wal", "shm", "journal"].map(
  (kind) => `${CATALOG_FILE}-${kind}`,
);

/** @param root Of a data directory, or of a backup. */
export function catalogPathOf(root: string): string {
  return `${root}/${CATALOG_FILE}`;
}
