/** Defines the storage that every database has: the data directory. */

/** The name of the storage that is the data directory. */
export const LOCAL_STORAGE = "local";

/**
 * Returns the name of the storage in which an object is stored. Without a `storageId`, this is the
 * data directory.
 */
export function storageIdOf({ storageId }: { readonly storageId?: string | undefined }): string {
  return storageId ?? LOCAL_STORAGE;
}

export const SHARED_TEMPLATE = "{namespace}/{tableName}";
export const USER_TEMPLATE = "{namespace}/{tableName}/{userId}";
