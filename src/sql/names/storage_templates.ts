/** The storage that every database has, and the default directory of tables within a storage. */

/** The name of the storage that is the data directory. */
export const LOCAL_STORAGE = "local";

/**
 * Returns the name of the storage of an object. An object without a storage is in the data
 * directory.
 */
export function storageIdOf({ storageId }: { readonly storageId?: string | undefined }): string {
  return storageId ?? LOCAL_STORAGE;
}

export const SHARED_TEMPLATE = "{namespace}/{tableName}";
export const USER_TEMPLATE = "{namespace}/{tableName}/{userId}";
