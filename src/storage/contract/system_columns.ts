/**
 * Defines the columns that every version has in addition to the columns of its table. No declared
 * column ever has the id of such a column.
 */

/** The id of the column in which scans return a version's seq, as f64. */
export const SEQ_COLUMN_ID = -1;

/** The id of the column in which scans return, as bool, whether a version is a tombstone. */
export const DELETED_COLUMN_ID = -2;
