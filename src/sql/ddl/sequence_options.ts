/** Reads the options of CREATE SEQUENCE, ALTER SEQUENCE and identity columns, as in PostgreSQL. */
import { DatabaseError } from "../../base/errors.ts";
import type { SequenceEntry, SequenceMark } from "../../catalog/mod.ts";
import type { DataType } from "../../types/mod.ts";
import { resolveType } from "../bind/expression/types.ts";
import type { SequenceNumber, SequenceOption } from "../parse/ast/ast.ts";

/**
 * The options that determine how a sequence counts: its type, start, increment and bounds, and
 * whether it cycles.
 */
export type SequenceShape = Pick<
  SequenceEntry,
  "cache" | "cycles" | "increment" | "maximum" | "minimum" | "start" | "type"
>;

type CountedType = SequenceEntry["type"];

/**
 * The highest value of each integer type. The lowest value is minus the highest value, minus one.
 */
const HIGHEST: Readonly<Record<CountedType, bigint>> = {
  smallint: 32_767n,
  int: 2_147_483_647n,
  bigint: 9_223_372_036_854_775_807n,
};

const CACHE_MAX = 1_000_000n;

/** Returns the integer type of a column if a sequence can number it; undefined otherwise. */
export function countedType({ kind }: DataType): CountedType | undefined {
  return kind === "smallint" || kind === "int" || kind === "bigint" ? kind : undefined;
}

/**
 * Returns the options of a sequence after the given options have been applied.
 *
 * @param base The sequence that the options change; for a new sequence, just its type.
 * @throws {DatabaseError} INVALID_DEFINITION
 */
export function sequenceShape(
  options: readonly SequenceOption[],
  base: SequenceShape | CountedType,
): SequenceShape {
  const before = typeof base === "string" ? newShape(base) : base;
  const type = typeIn(options) ?? before.type;
  const increment = numberIn(options, "increment") ?? BigInt(before.increment);
  if (increment === 0n) throw invalid(options, "increment", "INCREMENT must not be 0");
  const bounds = boundsIn(options, { before, increment, type });
  const { maximum, minimum } = bounds;
  const first = increment > 0n ? minimum : maximum;
  const isNew = typeof base === "string";
  const start = numberIn(options, "start") ?? (isNew ? first : BigInt(before.start));
  requireBetween(start, bounds, { options, name: "start" });
  const cache = numberIn(options, "cache") ?? BigInt(before.cache);
  if (cache < 1n || cache > CACHE_MAX) {
    throw invalid(options, "cache", `CACHE must be between 1 and ${CACHE_MAX}`);
  }
  const cycle = options.find((option) => option.type === "cycle");
  return {
    type,
    increment: increment.toString(),
    minimum: minimum.toString(),
    maximum: maximum.toString(),
    start: start.toString(),
    cycles: cycle === undefined ? before.cycles : cycle.cycles,
    cache: Number(cache),
  };
}

/** Returns the default options of a new sequence. */
function newShape(type: CountedType): SequenceShape {
  const maximum = HIGHEST[type].toString();
  return { type, increment: "1", minimum: "1", maximum, start: "1", cycles: false, cache: 1 };
}

interface Bounds {
  readonly minimum: bigint;
  readonly maximum: bigint;
}

/**
 * Returns the bounds of a sequence. A bound that the statement does not set stays the same or, in
 * a new sequence, is the limit of its type.
 */
function boundsIn(
  options: readonly SequenceOption[],
  { before, increment, type }: { before: SequenceShape; increment: bigint; type: CountedType },
): Bounds {
  const usual = boundsOf(type, increment);
  const usualBefore = boundsOf(before.type, BigInt(before.increment));
  // A bound that is a limit of the old type becomes the limit of the new type.
  const retypedBefore = retyped(before, type);
  const kept = (bound: "maximum" | "minimum"): bigint =>
    BigInt(before[bound]) === usualBefore[bound] ? usual[bound] : BigInt(retypedBefore[bound]);
  const minimum = boundIn(options, "minvalue", usual.minimum) ?? kept("minimum");
  const maximum = boundIn(options, "maxvalue", usual.maximum) ?? kept("maximum");
  requireOfType(minimum, { options, name: "minvalue", type });
  requireOfType(maximum, { options, name: "maxvalue", type });
  if (minimum <= maximum) return { minimum, maximum };
  throw invalid(options, "minvalue", `MINVALUE ${minimum} is greater than MAXVALUE ${maximum}`);
}

function requireOfType(
  value: bigint,
  { name, options, type }: { options: readonly SequenceOption[]; name: string; type: CountedType },
): void {
  if (value <= HIGHEST[type] && value >= -HIGHEST[type] - 1n) return;
  throw invalid(
    options,
    name,
    `${name.toUpperCase()} ${value} is outside the range of the sequence's type`,
  );
}

/**
 * Returns the position from which a sequence continues if ALTER SEQUENCE restarts it; undefined
 * otherwise.
 *
 * @param used The current position of the sequence.
 *
 * @throws {DatabaseError} INVALID_DEFINITION
 */
export function restartedMark(
  options: readonly SequenceOption[],
  shape: SequenceShape,
  used: SequenceMark,
): SequenceMark | undefined {
  const bounds = { minimum: BigInt(shape.minimum), maximum: BigInt(shape.maximum) };
  const restart = options.find((option) => option.type === "restart");
  if (restart === undefined) {
    const last = BigInt(used.value);
    if (last >= bounds.minimum && last <= bounds.maximum) return undefined;
    // A sequence that has never been used starts at the new start value.
    if (!used.isCalled) return { ...used, value: shape.start };
    const why =
      `the last number that the sequence returned is ${last}, but must be between ` +
      `${shape.minimum} and ${shape.maximum}`;
    throw invalid(options, "minvalue", why);
  }
  const value = numberIn(options, "restart") ?? BigInt(shape.start);
  requireBetween(value, bounds, { options, name: "restart" });
  return { sequenceId: used.sequenceId, value: value.toString(), isCalled: false };
}

function boundsOf(type: CountedType, increment: bigint): Bounds {
  return increment > 0n
    ? { minimum: 1n, maximum: HIGHEST[type] }
    : { minimum: -HIGHEST[type] - 1n, maximum: -1n };
}

function typeIn(options: readonly SequenceOption[]): CountedType | undefined {
  const option = options.find(({ type }) => type === "as");
  if (option?.type !== "as") return undefined;
  const type = countedType(resolveType(option.dataType));
  if (type !== undefined) return type;
  throw new DatabaseError(
    "INVALID_DEFINITION",
    "Cannot define the sequence: its type must be SMALLINT, INTEGER or BIGINT",
    { position: option._location.start },
  );
}

function optionNamed(options: readonly SequenceOption[], name: string): SequenceNumber | undefined {
  const option = options.find(({ type }) => type === name);
  return option !== undefined && "value" in option ? option : undefined;
}

function numberIn(
  options: readonly SequenceOption[],
  name: SequenceNumber["type"],
): bigint | undefined {
  const value = optionNamed(options, name)?.value;
  return value === undefined ? undefined : BigInt(value);
}

/**
 * Returns the value to which the options set a bound of a sequence. NO MINVALUE and NO MAXVALUE
 * set the bound to its default.
 */
function boundIn(
  options: readonly SequenceOption[],
  name: "maxvalue" | "minvalue",
  usual: bigint,
): bigint | undefined {
  const isGiven = options.some(({ type }) => type === name);
  return isGiven ? (numberIn(options, name) ?? usual) : undefined;
}

function requireBetween(
  value: bigint,
  { maximum, minimum }: Bounds,
  { name, options }: { options: readonly SequenceOption[]; name: "restart" | "start" },
): void {
  if (value >= minimum && value <= maximum) return;
  const shown = `${name.toUpperCase()} ${value}`;
  throw invalid(options, name, `${shown} must be between ${minimum} and ${maximum}`);
}

function invalid(options: readonly SequenceOption[], name: string, why: string): DatabaseError {
  const option = options.find(({ type }) => type === name) ?? options[0];
  const details = option === undefined ? {} : { position: option._location.start };
  return new DatabaseError("INVALID_DEFINITION", `Cannot define the sequence: ${why}`, details);
}

/**
 * Returns the options of a sequence after its type has changed. Bounds that equal the limits of
 * the old type become the limits of the new type.
 */
export function retyped(shape: SequenceShape, type: CountedType): SequenceShape {
  const highest = HIGHEST[shape.type].toString();
  const lowest = (-HIGHEST[shape.type] - 1n).toString();
  return {
    type,
    increment: shape.increment,
    minimum: shape.minimum === lowest ? (-HIGHEST[type] - 1n).toString() : shape.minimum,
    maximum: shape.maximum === highest ? HIGHEST[type].toString() : shape.maximum,
    start: shape.start,
    cycles: shape.cycles,
    cache: shape.cache,
  };
}
