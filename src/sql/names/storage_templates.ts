/**
 * The storage that every database has, and the default place of tables within a storage.
 */

/** The data directory. */
export const LOCAL_STORAGE = "local";

/** Returns the storage name of an object. An object without one is in the data directory. */
export function storageIdOf({ storageId }: { readonly storageId?: string | undefined }): string {
  return storageId ?? LOCAL_STORAGE;
}

export const SHARED_TEMPLATE = "{namespace}/{tableName}";
export const USER_TEMPLATE = "{namespace}/{tableName}/{userId}";
