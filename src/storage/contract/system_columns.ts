/**
 * Columns that every version has besides those of its table, under ids that no declared column has.
 */

/** Column id under which scans yield the seq of a version, as f64. */
export const SEQ_COLUMN_ID = -1;

/** Column id under which scans yield whether a version is a tombstone, as bool. */
export const DELETED_COLUMN_ID = -2;
