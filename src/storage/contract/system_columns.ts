/**
 * Defines the columns that every version has in addition to the columns of its table. No declared
 * column ever has one of their ids.
 */

/** The id of the column in which scans return the seq of a version, as f64. */
export const SEQ_COLUMN_ID = -1;

/** The id of the column in which scans return whether a version is a tombstone, as bool. */
export const DELETED_COLUMN_ID = -2;
