/** Defines the name of the storage that every database has: its data directory. */

/** The name of the storage in the data directory. */
export const LOCAL_STORAGE = "local";

/**
 * Returns the name of the storage that contains an object. An object without a `storageId` is in
 * the data directory.
 */
export function storageIdOf({ storageId }: { readonly storageId?: string | undefined }): string {
  return storageId ?? LOCAL_STORAGE;
}

export const SHARED_TEMPLATE = "{namespace}/{tableName}";
export const USER_TEMPLATE = "{namespace}/{tableName}/{userId}";
