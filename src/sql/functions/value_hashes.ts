/**
 * Defines PostgreSQL's hash functions of times, addresses, numbers and arrays. They return the same
 * numbers as PostgreSQL, which hashes the bytes of a value as they are in its memory.
 */
import { DatabaseError } from "../../base/errors.ts";
import {
  type ArrayValue,
  BIGINT,
  DATE_INFINITY,
  DATE_MINUS_INFINITY,
  type DataType,
  elementsOf,
  hardwareBytes,
  INET,
  INT,
  INTERVAL,
  type Interval,
  inetOfValue,
  inetWidth,
  MACADDR,
  MACADDR8,
  NUMERIC,
  OID,
  PG_LSN,
  TEXT,
  TIME,
  TIMESTAMP,
  TIMESTAMP_INFINITY,
  TIMESTAMP_MINUS_INFINITY,
  TIMETZ,
  textFromNumeric,
  textFromValue,
  typeName,
  type Value,
  type Whole,
  wholeFromBigint,
  zonedTimeOf,
} from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { ScalarFunction } from "./base/function.ts";
import {
  bigHashOf,
  type Hash,
  hashing,
  hashOfBytes,
  hashOfDouble,
  hashOfText,
  hashOfUuid,
  hashOfWhole,
  hashOfWord,
  NO_SEED,
} from "./hashes.ts";

type HashOf = (value: Value, seed: bigint) => Hash;

/** The time from 1970 to 2000, from which PostgreSQL counts. */
const MICROS_TO_2000 = 946_684_800_000_000n;
const DAYS_TO_2000 = 10_957;
const MICROS_PER_DAY = 86_400_000_000n;
const DAYS_PER_MONTH = 30;

/** PostgreSQL's numbers for the two families of addresses. */
const FAMILY_NUMBERS = { 4: 2, 6: 3 } as const;

/** The number of decimal digits in an element of a NUMERIC. */
const GROUP_DIGITS = 4;

const hashOfMicros = (value: Value, seed: bigint): Hash => hashOfWhole(value as Whole, seed);

const hashOfMoment: HashOf = (value, seed) => {
  const micros = BigInt(value as Whole);
  const isFinite = micros !== TIMESTAMP_INFINITY && micros !== TIMESTAMP_MINUS_INFINITY;
  return hashOfWhole(isFinite ? wholeFromBigint(micros - MICROS_TO_2000) : micros, seed);
};

const hashOfDate: HashOf = (value, seed) => {
  const days = value as number;
  const isFinite = days !== DATE_INFINITY && days !== DATE_MINUS_INFINITY;
  return hashOfWord(isFinite ? days - DAYS_TO_2000 : days, seed);
};

const hashOfHardware: HashOf = (value, seed) =>
  hashOfBytes(Uint8Array.from(hardwareBytes(value as string)), seed);

const hashOfOid: HashOf = (value, seed) => hashOfWord(Number(textFromValue(OID, value)) | 0, seed);

function hashOfZonedTime(value: Value, seed: bigint): Hash {
  const { micros, offset } = zonedTimeOf(value as string);
  return exclusive(hashOfWhole(micros, seed), hashOfWord(-offset, seed));
}

function exclusive(left: Hash, right: Hash): Hash {
  return { high: left.high ^ right.high, low: left.low ^ right.low };
}

function hashOfInterval(value: Value, seed: bigint): Hash {
  const { days, micros, months } = value as Interval;
  const span = BigInt(micros) + BigInt(months * DAYS_PER_MONTH + days) * MICROS_PER_DAY;
  return hashOfWhole(wholeFromBigint(BigInt.asIntN(64, span)), seed);
}

function hashOfInet(value: Value, seed: bigint): Hash {
  const { address, family, length } = inetOfValue(value as string);
  const digits = address.toString(16).padStart(inetWidth(family) / 4, "0");
  return hashOfBytes(
    Uint8Array.from([FAMILY_NUMBERS[family], length, ...Buffer.from(digits, "hex")]),
    seed,
  );
}

function hashOfLsn(value: Value, seed: bigint): Hash {
  const [high = "0", low = "0"] = textFromValue(PG_LSN, value).split("/");
  const whole = (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`);
  return hashOfWhole(wholeFromBigint(BigInt.asIntN(64, whole)), seed);
}

/** Hashes the groups of four digits without the leading and trailing groups that are zero. */
function hashOfNumeric(value: Value, seed: bigint): Hash {
  const text = textFromNumeric(value as string);
  if (!/^-?\d/.test(text)) return hashOfSeed(seed);
  const [whole = "", fraction = ""] = text.replace("-", "").split(".");
  const before = Math.ceil(whole.length / GROUP_DIGITS);
  const after = Math.ceil(fraction.length / GROUP_DIGITS);
  const digits =
    whole.padStart(before * GROUP_DIGITS, "0") + fraction.padEnd(after * GROUP_DIGITS, "0");
  const groups = (digits.match(/\d{4}/g) ?? []).map(Number);
  const first = groups.findIndex((group) => group !== 0);
  if (first < 0) return hashOfSeed(seed - 1n);
  const kept = groups.slice(first, groups.findLastIndex((group) => group !== 0) + 1);
  const bytes = Uint8Array.from(kept.flatMap((group) => [group & 0xff, group >> 8]));
  const weight = before - 1 - first;
  return exclusive(hashOfBytes(bytes, seed), { high: weight >> 31, low: weight });
}

/** Returns a seed as a hash. Without a seed, it is 0. */
function hashOfSeed(seed: bigint): Hash {
  return {
    high: Number(BigInt.asIntN(32, seed >> 32n)),
    low: Number(BigInt.asIntN(32, seed)),
  };
}

/** Returns the hash function of a type; undefined if arrays of it cannot be hashed here. */
function hashOfType({ kind }: DataType): HashOf | undefined {
  switch (kind) {
    case "smallint":
    case "int":
      return (value, seed) => hashOfWord(value as number, seed);
    case "date":
      return hashOfDate;
    case "bigint":
    case "time":
      return hashOfMicros;
    case "float":
    case "double":
      return (value, seed) => hashOfDouble(value as number, seed);
    case "timestamp":
    case "datetime":
      return hashOfMoment;
    case "text":
      return (value, seed) => hashOfText(value as string, seed);
    case "uuid":
      return (value, seed) => hashOfUuid(value as string, seed);
    default:
      return FURTHER_HASHES.get(kind);
  }
}

const FURTHER_HASHES: ReadonlyMap<DataType["kind"], HashOf> = new Map<DataType["kind"], HashOf>([
  ["timetz", hashOfZonedTime],
  ["interval", hashOfInterval],
  ["macaddr", hashOfHardware],
  ["macaddr8", hashOfHardware],
  ["inet", hashOfInet],
  ["cidr", hashOfInet],
  ["numeric", hashOfNumeric],
  ["pg_lsn", hashOfLsn],
  ["oid", hashOfOid],
]);

/** Returns the hash of an array, of which PostgreSQL keeps 32 or 64 bits. */
function hashOfArray(value: Value, [type]: readonly DataType[], seed: bigint): bigint {
  const element = type?.kind === "array" ? type.element : TEXT;
  const hashOf = hashOfType(element);
  if (hashOf === undefined) {
    throw new DatabaseError(
      "UNSUPPORTED_FEATURE",
      `Cannot hash an array of ${typeName(element)}: values of this type have no hash function`,
    );
  }
  let hash = 1n;
  for (const item of elementsOf(value as ArrayValue)) {
    const own = item === null ? 0n : BigInt.asUintN(64, bigHashOf(hashOf(item, seed)));
    hash = BigInt.asUintN(64, hash * 31n + own);
  }
  return hash;
}

export const VALUE_HASH_FUNCTIONS: readonly ScalarFunction[] = [
  ...hashing(["hashoid", "hashoidextended"], OID, hashOfOid),
  ...hashing(["hashname", "hashnameextended"], TEXT, (value, seed) =>
    hashOfText(value as string, seed),
  ),
  ...hashing(["hashbpchar", "hashbpcharextended"], TEXT, (value, seed) =>
    hashOfText((value as string).replace(/ +$/, ""), seed),
  ),
  ...hashing(["hashmacaddr", "hashmacaddrextended"], MACADDR, hashOfHardware),
  ...hashing(["hashmacaddr8", "hashmacaddr8extended"], MACADDR8, hashOfHardware),
  ...hashing(["hashinet", "hashinetextended"], INET, hashOfInet),
  ...hashing(["hash_numeric", "hash_numeric_extended"], NUMERIC, hashOfNumeric),
  ...hashing(["pg_lsn_hash", "pg_lsn_hash_extended"], PG_LSN, hashOfLsn),
  ...hashing(["time_hash", "time_hash_extended"], TIME, hashOfMicros),
  ...hashing(["timetz_hash", "timetz_hash_extended"], TIMETZ, hashOfZonedTime),
  ...hashing(["interval_hash", "interval_hash_extended"], INTERVAL, hashOfInterval),
  ...hashing(["timestamp_hash", "timestamp_hash_extended"], TIMESTAMP, hashOfMoment),
  ...functionsNamed(
    ["hash_array"],
    overload(["array"], INT, ([value = null], _, types) =>
      Number(BigInt.asIntN(32, hashOfArray(value, types, NO_SEED))),
    ),
  ),
  ...functionsNamed(
    ["hash_array_extended"],
    overload(["array", BIGINT], BIGINT, ([value = null, seed = null], _, types) =>
      wholeFromBigint(BigInt.asIntN(64, hashOfArray(value, types, BigInt(seed as Whole)))),
    ),
  ),
];
