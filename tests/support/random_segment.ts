/** Creates segments with random contents, along with the plain arrays from which they are made. */

import {
  BIGINT,
  BOOLEAN,
  BYTES,
  constVector,
  DATE,
  DATETIME,
  type DataType,
  DOUBLE,
  decimalType,
  FILE,
  FLOAT,
  INT,
  INTERVAL,
  JSONB,
  SMALLINT,
  TEXT,
  TIME,
  TIMESTAMP,
  UUID,
  type Value,
  type Vector,
  vectorFromValues,
  wholeFromBigint,
} from "../../src/types/mod.ts";
import type { SegmentInput } from "./encoded_segment.ts";
import type { SeededRandom } from "./seeded_random.ts";

/** How the values in a column are distributed, which determines its encoding. */
export type Shape = "one" | "few" | "near" | "any";
export type NullShape = "none" | "some" | "most" | "all";

export const SHAPES: readonly Shape[] = ["one", "few", "near", "any"];
export const NULL_SHAPES: readonly NullShape[] = ["none", "some", "most", "all"];

/** The column types that segment files in format 2 support. */
export const SCALAR_TYPES: readonly DataType[] = [
  BOOLEAN,
  SMALLINT,
  INT,
  BIGINT,
  FLOAT,
  DOUBLE,
  decimalType(12, 2),
  decimalType(38, 0),
  TEXT,
  JSONB,
  TIMESTAMP,
  DATETIME,
  DATE,
  TIME,
  UUID,
  BYTES,
  { kind: "embedding", dimensions: 3 },
  FILE,
];

export const COLUMN_TYPES: readonly DataType[] = [
  ...SCALAR_TYPES,
  INTERVAL,
  { kind: "array", element: TEXT },
  { kind: "array", element: BIGINT },
];

const TEXTS = ["", "a", "tide", "Ebbe", "naïve", "日本語", "\u{1f30a}\u{1f41a}", "x".repeat(300)];

const NULL_CHANCE: Readonly<Record<NullShape, number>> = { none: 0, some: 0.2, most: 0.9, all: 1 };

/** Returns an array of up to four elements, or a two-dimensional array. */
function randomArray(random: SeededRandom, element: DataType, shape: Shape): Value {
  const list = (length: number): Value[] =>
    Array.from({ length }, () => (random.chance(0.1) ? null : randomValue(random, element, shape)));
  return random.chance(0.2) ? [list(2), list(2)] : list(random.below(5));
}

/**
 * Returns a random value of a type, never NULL. `shape` determines how many different values are
 * possible.
 */
function randomValue(random: SeededRandom, type: DataType, shape: Shape): Value {
  const index = shape === "one" ? 0 : shape === "few" ? random.below(5) : random.below(100_000);
  switch (type.kind) {
    case "boolean":
      return shape === "one" || random.chance(0.5);
    case "smallint":
      return shape === "near" ? -20_000 + (index % 250) : (index % 65_536) - 32_768;
    case "int":
    case "date":
      if (shape === "near") return -2_147_483_648 + (index % 60_000);
      return shape === "any" ? random.u32() | 0 : index;
    case "float":
      return Math.fround(shape === "near" ? 1e6 + index : random.unit() * 10 ** (index % 30));
    case "double":
      if (shape !== "any") return shape === "near" ? index * 40_000 : index / 4;
      return (random.unit() - 0.5) * 10 ** random.between(-300, 300);
    case "bigint":
    case "timestamp":
    case "datetime":
    case "time":
      if (shape === "near") return 1_767_225_600_000_000 + index * 1000;
      if (shape !== "any" || random.chance(0.9)) return index * 1_000_003 - 7;
      return wholeFromBigint(BigInt.asIntN(64, randomBigint(random, 2)));
    case "decimal":
      if (type.precision < 17 || shape !== "any") return index - 50_000;
      return wholeFromBigint(BigInt.asIntN(128, randomBigint(random, 4)));
    case "bytes":
      return new Uint8Array(random.bytes(shape === "one" ? 0 : index % 20));
    case "embedding":
      return Float32Array.from({ length: type.dimensions }, () => random.unit() - 0.5);
    case "interval":
      return { months: index % 50, days: -index, micros: index * 1_000_003 };
    case "array":
      return randomArray(random, type.element, shape);
    default:
      if (shape === "one") return "one";
      return shape === "few" ? (TEXTS[index] ?? "") : `${random.pick(TEXTS)}${index}`;
  }
}

function randomBigint(random: SeededRandom, words: number): bigint {
  let value = 0n;
  for (let word = 0; word < words; word += 1) value = (value << 32n) | BigInt(random.u32());
  return value;
}

/** Returns random values for a single column, including NULLs. */
export function randomValues(
  random: SeededRandom,
  type: DataType,
  { shape, nulls, count }: { shape: Shape; nulls: NullShape; count: number },
): Value[] {
  const one = randomValue(random, type, shape);
  return Array.from({ length: count }, () => {
    if (random.chance(NULL_CHANCE[nulls])) return null;
    return shape === "one" ? one : randomValue(random, type, shape);
  });
}

/** Returns the given values as a vector, in one of the forms that are possible for their type. */
export function randomVector(random: SeededRandom, type: DataType, values: Value[]): Vector {
  const [first = null] = values;
  const isOne = values.every((value) => value === first);
  if (isOne && random.chance(0.5)) return constVector(first, values.length);
  if (random.chance(0.3)) return { kind: "any", length: values.length, values };
  const isText = values.every((value) => value === null || typeof value === "string");
  if (!isText || first === null) return vectorFromValues(type, values);
  return random.chance(0.5) ? utf8Vector(values) : dictionaryVector(values);
}

function utf8Vector(values: readonly Value[]): Vector {
  // The buffer has bytes before the first string and after the last, as in a slice of a larger
  // vector.
  const texts = [
    "before",
    ...values.map((value) => (typeof value === "string" ? value : "?")),
    "!",
  ];
  const encoded = texts.map((text) => Buffer.from(text));
  const ends = new Uint32Array(texts.length + 1);
  for (const [index, text] of encoded.entries()) ends[index + 1] = (ends[index] ?? 0) + text.length;
  return {
    kind: "utf8",
    length: values.length,
    bytes: Buffer.concat(encoded),
    offsets: ends.subarray(1, values.length + 2),
    nulls: nullsOf(values),
  };
}

function dictionaryVector(values: readonly Value[]): Vector {
  const distinct = [...new Set(values.filter((value) => value !== null))];
  const codeOf = new Map(distinct.map((value, code) => [value, code]));
  return {
    kind: "dict",
    length: values.length,
    codes: Uint32Array.from(values, (value) => codeOf.get(value ?? "") ?? 0),
    values: distinct,
    nulls: nullsOf(values),
  };
}

function nullsOf(values: readonly Value[]): Uint8Array | undefined {
  if (!values.includes(null)) return undefined;
  return Uint8Array.from(values, (value) => (value === null ? 1 : 0));
}

export interface SegmentModel {
  readonly input: SegmentInput;
  /** The values of each column, by column id. */
  readonly values: ReadonlyMap<number, readonly Value[]>;
}

/**
 * Returns a random segment. Key columns come first, with ids from 1, followed by one column of
 * each type.
 */
export function randomSegment(
  random: SeededRandom,
  options: { rowCount: number; ownerCount: number; keyTypes: readonly DataType[] },
): SegmentModel {
  const { rowCount, ownerCount, keyTypes } = options;
  const owners = Float64Array.from(
    { length: rowCount },
    () => random.below(ownerCount) * 3,
  ).toSorted();
  const seqs = new Float64Array(rowCount);
  const startSeq = random.below(2 ** 30) * 2 ** 20;
  let seq = startSeq;
  for (let row = 0; row < rowCount; row += 1) {
    if (row > 0 && owners[row] !== owners[row - 1]) seq = startSeq + random.below(100);
    seq += 1 + random.below(random.chance(0.01) ? 2 ** 33 : 5000);
    seqs[row] = seq;
  }
  const values = new Map<number, readonly Value[]>();
  const columns = [...keyTypes, ...SCALAR_TYPES].map((type, index) => {
    const isKey = index < keyTypes.length;
    const shape = isKey ? random.pick(["few", "near"] as const) : random.pick(SHAPES);
    const nulls = isKey ? "none" : random.pick(NULL_SHAPES);
    const columnId = index + 1;
    const columnValues = randomValues(random, type, { shape, nulls, count: rowCount });
    values.set(columnId, columnValues);
    return { columnId, type, vector: randomVector(random, type, columnValues) };
  });
  const gap = random.below(3);
  const input: SegmentInput = {
    segmentId: 1 + random.below(1000),
    tableId: 7,
    keyColumnIds: keyTypes.map((_, index) => index + 1),
    columns,
    owners,
    seqs,
    prevs: seqs.map((each) => (random.chance(0.6) ? 0 : each - 1 - random.below(1000))),
    commitSeqs: seqs.map((each) => each + (gap === 0 ? 0 : random.below(gap * 10))),
    deleted: Uint8Array.from({ length: rowCount }, () => (random.chance(0.05) ? 1 : 0)),
  };
  return { input, values };
}
