/**
 * Defines functions on the names and OIDs of objects, on log positions (PG_LSN), and on
 * transaction ids.
 */
import type { ErrorCode } from "../../base/error_code.ts";
import { DatabaseError } from "../../base/errors.ts";
import {
  excerpt,
  INT,
  NUMERIC,
  OBJECT_NAME_KINDS,
  type ObjectNameKind,
  OID,
  oidOfObjectName,
  PG_LSN,
  REGCLASS,
  TEXT,
  textFromObjectName,
  type Value,
  valueFromText,
  XID8,
} from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { CallDeps, ObjectCalls, ScalarFunction } from "./base/function.ts";
import { distance, positionOfNumber } from "./operator/operator_unsigned.ts";

const STABLE = { volatility: "stable" } as const;

export const OBJECT_FUNCTIONS: readonly ScalarFunction[] = [
  ...OBJECT_NAME_KINDS.flatMap((kind) =>
    functionsNamed(
      [`to_${kind}`],
      overload([TEXT], { kind }, ([name], call) => foundName(kind, name as string, call), STABLE),
    ),
  ),
  ...functionsNamed(
    ["format_type"],
    overload([OID, INT], TEXT, formatType, { ...STABLE, seesNull: true }),
  ),
  ...functionsNamed(
    ["pg_partition_root"],
    overload([REGCLASS], REGCLASS, ([value], call) => rootOf(value as string, call), STABLE),
  ),
  ...functionsNamed(
    ["pg_lsn"],
    overload([NUMERIC], PG_LSN, ([count = null]) => positionOfNumber(count)),
    overload([PG_LSN], PG_LSN, ([position = null]) => position),
  ),
  ...functionsNamed(
    ["pg_wal_lsn_diff"],
    overload([PG_LSN, PG_LSN], NUMERIC, ([left = null, right = null]) => distance(left, right)),
  ),
  ...functionsNamed(
    ["xid8cmp"],
    overload([XID8, XID8], INT, ([left, right]) => {
      return left === right ? 0 : (left as string) < (right as string) ? -1 : 1;
    }),
  ),
];

/**
 * Reads text as a value of an object type such as REGCLASS. The text is the name of an object, its
 * OID, or `-` for no object.
 *
 * @throws {DatabaseError} TABLE_NOT_FOUND, FUNCTION_NOT_FOUND, …, INVALID_NAME
 */
export function objectInText(kind: ObjectNameKind, text: string, objects: ObjectCalls): string {
  const trimmed = text.trim();
  if (trimmed === "-") return objects.withOid(kind, valueFromText(OID, "0") as string);
  if (/^\d+$/.test(trimmed)) return objects.withOid(kind, valueFromText(OID, trimmed) as string);
  return objectWithName(kind, text, objects);
}

/**
 * Returns the value of an object type for the name of an object.
 *
 * @throws {DatabaseError} TABLE_NOT_FOUND, FUNCTION_NOT_FOUND, …, INVALID_NAME
 */
export function objectWithName(kind: ObjectNameKind, name: string, objects: ObjectCalls): string {
  const found = objects.named(kind, name);
  if (found !== null) return found;
  const [code, what] = OBJECTS[kind];
  throw new DatabaseError(code, `Cannot find ${what} ${excerpt(name)}`, {
    hint: `to_${kind}(name) returns NULL for an unknown name`,
  });
}

const OBJECTS: Readonly<Record<ObjectNameKind, readonly [code: ErrorCode, what: string]>> = {
  regclass: ["TABLE_NOT_FOUND", "table"],
  regcollation: ["OBJECT_NOT_FOUND", "collation"],
  regnamespace: ["NAMESPACE_NOT_FOUND", "namespace"],
  regproc: ["FUNCTION_NOT_FOUND", "function"],
  regprocedure: ["FUNCTION_NOT_FOUND", "function"],
  regrole: ["USER_NOT_FOUND", "user"],
  regtype: ["OBJECT_NOT_FOUND", "type"],
};

/** Finds an object by name. Unlike in a cast, a number is not interpreted as an OID. */
function foundName(kind: ObjectNameKind, name: string, { objects }: CallDeps): Value {
  return /^\s*(?:\d+|-)\s*$/.test(name) ? null : objects.named(kind, name);
}

function rootOf(value: string, { objects }: CallDeps): Value {
  return objects.partitions(oidOfObjectName(value), "ancestors").at(-1)?.relation ?? null;
}

/** The number that PostgreSQL adds to the length or precision of a type. */
const MODIFIER_OFFSET = 4;

/** Returns the name of a type with its length or precision, which a single number encodes. */
function formatType([oid = null, modifier = null]: readonly Value[], { objects }: CallDeps): Value {
  if (oid === null) return null;
  const name = textFromObjectName(objects.withOid("regtype", oid as string));
  if (/^\d+$/.test(name)) return "???";
  const size = modifier === null ? -1 : (modifier as number);
  if (size < 0) return name;
  switch (name) {
    case "character varying":
      return size > MODIFIER_OFFSET ? `${name}(${size - MODIFIER_OFFSET})` : name;
    case "numeric": {
      const encoded = size - MODIFIER_OFFSET;
      return encoded < 0 ? name : `${name}(${encoded >> 16},${encoded & 0xffff})`;
    }
    case "bit":
    case "bit varying":
      return `${name}(${size})`;
    default:
      return name.replace(/^(time(?:stamp)?) /, `$1(${size}) `);
  }
}
