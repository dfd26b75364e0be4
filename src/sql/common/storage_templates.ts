/**
 * The storage that every database has, and where in a storage tables lie unless it says otherwise.
 */

/** The data directory. */
export const LOCAL_STORAGE = "local";

export const SHARED_TEMPLATE = "{namespace}/{tableName}";
export const USER_TEMPLATE = "{namespace}/{tableName}/{userId}";
