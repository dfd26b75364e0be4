/**
 * The columns that every version has in addition to the columns of its table. No declared column
 * ever has one of their ids.
 */

/** Column id under which scans yield the seq of a version, as f64. */
export const SEQ_COLUMN_ID = -1;

/** Column id under which scans yield whether a version is a tombstone, as bool. */
export const DELETED_COLUMN_ID = -2;
