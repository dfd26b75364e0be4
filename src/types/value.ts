/**
 * Defines how a SQL value is represented in memory. The static {@linkcode DataType} determines the
 * representation:
 *
 *     boolean                      boolean
 *     smallint, int                number, an integer
 *     bigint                       number while its magnitude is at most 2^53-1, else bigint
 *     float                        number already rounded to 32 bits (Math.fround); else as double
 *     double                       number; -0 equals 0, and NaN equals itself and is above all others
 *     decimal(p,s)                 the unscaled integer, as bigint type does: 12.30 at scale 2 is 1230
 *     numeric                      string that sorts in the order of the values (see `numeric.ts`)
 *     text                         string without NUL
 *     json                         string: the text (JSON) or the canonical text (JSONB)
 *     timestamp, datetime          microseconds since 1970-01-01 (datetime: UTC), as bigint type does
 *     date                         number, days since 1970-01-01
 *     time                         number, microseconds since midnight
 *     timetz                       string that sorts in the order of the values (see `zoned_time.ts`)
 *     uuid                         string, lower case, hyphenated
 *     money                        cents, as bigint type does
 *     bit                          string of the characters 0 and 1
 *     inet, cidr                   string that sorts in the order of the values (see `inet_address.ts`)
 *     macaddr, macaddr8            string, lower case, with colons
 *     oid, xid, xid8, pg_lsn       string that sorts in the order of the values (see `unsigned.ts`)
 *     regclass, regtype …          string that begins with the OID (see `object_name.ts`)
 *     bytes                        Uint8Array
 *     embedding(n)                 Float32Array of n finite numbers
 *     file                         string: the file reference as JSON text
 *     interval                     Interval
 *     enum                         number, the position of its label in the order of the type
 *     point, lseg, line, box,
 *       path, polygon, circle      string: the text that PostgreSQL prints (see `geometry.ts`)
 *     range, multirange            string that sorts in the order of the values (see `range.ts`)
 *     array                        array of values of the element type, or of arrays with the same
 *                                  dimensions (see `array_shape.ts`)
 *     row                          RowValue
 *     NULL of any type             null
 *
 * A whole number has exactly one form ({@linkcode wholeFromBigint}), so `===` compares whole
 * numbers correctly, and hot loops encounter bigint only where a value needs it.
 */

export interface Interval {
  readonly months: number;
  readonly days: number;
  readonly micros: number;
}

/** The fields of a row, in the order defined by its type. */
export interface RowValue {
  readonly cells: readonly Value[];
}

/** An integer. It is a bigint only if its magnitude exceeds 2^53 - 1. */
export type Whole = number | bigint;

export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | Float32Array
  | Interval
  | RowValue
  | readonly Value[];

/** The values of one row, in the order of a list of columns. */
export type Row = readonly Value[];

const SAFE_MAX = BigInt(Number.MAX_SAFE_INTEGER);

/** Returns the canonical form of an integer: a number if it is safe, otherwise a bigint. */
export function wholeFromBigint(value: bigint): Whole {
  return value <= SAFE_MAX && value >= -SAFE_MAX ? Number(value) : value;
}

export function isRowValue(value: Value): value is RowValue {
  return typeof value === "object" && value !== null && "cells" in value;
}

export function isInterval(value: Value): value is Interval {
  return typeof value === "object" && value !== null && "months" in value;
}
