/**
 * The storage that every database has, and where in a storage tables lie unless it says otherwise.
 */

/** The data directory. */
export const LOCAL_STORAGE = "local";

/** The name of a storage, for what names none where it lies in the data directory. */
export function storageIdOf({ storageId }: { readonly storageId?: string | undefined }): string {
  return storageId ?? LOCAL_STORAGE;
}

export const SHARED_TEMPLATE = "{namespace}/{tableName}";
export const USER_TEMPLATE = "{namespace}/{tableName}/{userId}";
