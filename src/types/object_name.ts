/**
 * Implements REGCLASS and its siblings: types whose values identify an object of the database, and
 * whose text is the name of the object.
 *
 * A value consists of the object's OID in 8 hexadecimal digits, followed by the text. Values
 * therefore sort and compare like OIDs, and their text can be read without a catalog. Only a
 * statement that knows the catalog can create a value, and no column stores one, because a name
 * may change.
 *
 *     00004005app.orders      OID 16389, the table app.orders
 *     00000000-               no object
 */

import { DatabaseError } from "../base/errors.ts";

export const OBJECT_NAME_KINDS = [
  "regclass",
  "regcollation",
  "regnamespace",
  "regproc",
  "regprocedure",
  "regrole",
  "regtype",
] as const;

export type ObjectNameKind = (typeof OBJECT_NAME_KINDS)[number];

export function isObjectNameKind(kind: string): kind is ObjectNameKind {
  return (OBJECT_NAME_KINDS as readonly string[]).includes(kind);
}

const OID_DIGITS = 8;

/** Returns the value that identifies an object. @param oid The OID as a value of type OID. */
export function objectNameValue(oid: string, text: string): string {
  return `${oid}${text}`;
}

/** Returns the OID of an object as a value of type OID. */
export function oidOfObjectName(value: string): string {
  return value.slice(0, OID_DIGITS);
}

export function textFromObjectName(value: string): string {
  return value.slice(OID_DIGITS);
}

/**
 * Refuses to look up an object in a place where no statement can look it up, for example inside an
 * array.
 *
 * @throws {DatabaseError} UNSUPPORTED_FEATURE
 */
export function refuseName(kind: ObjectNameKind): never {
  throw new DatabaseError(
    "UNSUPPORTED_FEATURE",
    `Cannot convert a value to ${kind} here: only a cast in an expression can look up an object`,
    { hint: `cast the value itself: value::${kind}` },
  );
}
