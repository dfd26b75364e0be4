/**
 * Writes the conditions of partitions as SQL text.
 *
 * Each condition is true or false for every row, never NULL, so that its negation selects exactly
 * the other rows. Values are written as untyped literals, which take the type of the partition
 * key.
 */
import type { Partitioning, PartitionValue, StoredBounds } from "../../catalog/mod.ts";
import { stringText } from "../parse/print/print_expressions.ts";

const TRUE = "TRUE";
const FALSE = "FALSE";

/** A partition of a table or of another partition, together with its own partitions. */
export interface PartitionNode {
  readonly bound: StoredBounds;
  /** The partitions into which the partition is itself divided; absent if it is not divided. */
  readonly within?: PartitionTree | undefined;
}

export interface PartitionTree {
  readonly partitioning: Partitioning;
  /** The SQL text of the value to hash, for each key. Only hash partitions use these texts. */
  readonly hashed: readonly string[];
  readonly parts: readonly PartitionNode[];
}

/** Returns the condition for a row to belong to the partition with the given bounds. */
export function conditionOf(tree: PartitionTree, bound: StoredBounds): string {
  if (bound.kind !== "default") return unionOf(tree, [bound]);
  const others = tree.parts.flatMap((part) => (part.bound.kind === "default" ? [] : [part.bound]));
  return others.length === 0 ? TRUE : `NOT (${unionOf(tree, others)})`;
}

/**
 * Returns the condition for a row to belong to any partition; undefined if the partitions cover
 * every row.
 */
export function acceptedBy(tree: PartitionTree): string | undefined {
  const whole: StoredBounds[] = [];
  const partial: { readonly condition: string; readonly within: string }[] = [];
  for (const { bound, within } of tree.parts) {
    const accepted = within && acceptedBy(within);
    if (accepted === undefined) whole.push(bound);
    else partial.push({ condition: conditionOf(tree, bound), within: accepted });
  }
  if (tree.parts.some(({ bound }) => bound.kind === "default")) {
    const texts = partial.map(({ condition, within }) => `(NOT (${condition}) OR (${within}))`);
    return texts.length === 0 ? undefined : texts.join(" AND ");
  }
  if (coversAllHashes(whole)) return undefined;
  const texts = partial.map(({ condition, within }) => `(${condition}) AND (${within})`);
  if (whole.length > 0) texts.unshift(unionOf(tree, whole));
  return texts.length === 0 ? FALSE : texts.map((text) => `(${text})`).join(" OR ");
}

/**
 * Returns the condition for a row to be within any of the given bounds, none of which is DEFAULT.
 */
function unionOf(tree: PartitionTree, bounds: readonly StoredBounds[]): string {
  const { partitioning, hashed } = tree;
  const keys = partitioning.keys.map(({ isColumn, sql }) => (isColumn ? sql : `(${sql})`));
  const listed = bounds.flatMap((bound) => (bound.kind === "list" ? bound.values : []));
  const texts = [
    ...(listed.length === 0 ? [] : [listText(keys[0] ?? "", listed)]),
    ...joinedRanges(bounds).map((range) => rangeText(keys, range)),
    ...bounds.flatMap((bound) => (bound.kind === "hash" ? [hashText(hashed, bound)] : [])),
  ];
  return texts.length === 1 ? (texts[0] ?? FALSE) : texts.map((text) => `(${text})`).join(" OR ");
}

function listText(key: string, values: readonly (string | null)[]): string {
  const known = values.flatMap((value) => (value === null ? [] : [stringText(value)]));
  const isNull = `${key} IS NULL`;
  if (known.length === 0) return isNull;
  const isListed = `${key} IN (${known.join(", ")})`;
  return known.length < values.length
    ? `${isNull} OR ${isListed}`
    : `${key} IS NOT NULL AND ${isListed}`;
}

type RangeBounds = Extract<StoredBounds, { kind: "range" }>;

/** Returns the ranges of partitions, after merging adjacent ranges. */
function joinedRanges(bounds: readonly StoredBounds[]): RangeBounds[] {
  const ranges = bounds.flatMap((bound) => (bound.kind === "range" ? [bound] : []));
  const next = new Map(ranges.map((range) => [textOf(range.from), range]));
  const ends = new Set(ranges.map(({ to }) => textOf(to)));
  return ranges.flatMap((range) => {
    if (ends.has(textOf(range.from))) return [];
    let { to } = range;
    for (let after = next.get(textOf(to)); after !== undefined; after = next.get(textOf(to))) {
      ({ to } = after);
    }
    return [{ ...range, to }];
  });
}

function textOf(values: readonly PartitionValue[]): string {
  return JSON.stringify(values);
}

function rangeText(keys: readonly string[], { from, to }: RangeBounds): string {
  const bounds = [notBelow(keys, from), below(keys, to)].filter((text) => text !== TRUE);
  return [...keys.map((key) => `${key} IS NOT NULL`), ...bounds].join(" AND ");
}

/** Returns the condition for the keys to be greater than or equal to the values. */
function notBelow(keys: readonly string[], values: readonly PartitionValue[]): string {
  const [key] = keys;
  const [value] = values;
  if (key === undefined || value === undefined || value === "minvalue") return TRUE;
  if (value === "maxvalue") return FALSE;
  const rest = notBelow(keys.slice(1), values.slice(1));
  const literal = stringText(value.text);
  if (rest === TRUE) return `${key} >= ${literal}`;
  if (rest === FALSE) return `${key} > ${literal}`;
  return `${key} >= ${literal} AND (${key} > ${literal} OR (${rest}))`;
}

/** Returns the condition for the keys to be less than the values. */
function below(keys: readonly string[], values: readonly PartitionValue[]): string {
  const [key] = keys;
  const [value] = values;
  if (key === undefined || value === undefined || value === "minvalue") return FALSE;
  if (value === "maxvalue") return TRUE;
  const rest = below(keys.slice(1), values.slice(1));
  const literal = stringText(value.text);
  if (rest === TRUE) return `${key} <= ${literal}`;
  if (rest === FALSE) return `${key} < ${literal}`;
  return `${key} <= ${literal} AND (${key} < ${literal} OR (${rest}))`;
}

/** The largest non-negative 32-bit hash, used as a mask to clear the sign bit. */
const HASH_MASK = 0x7fff_ffff;

function hashText(
  hashed: readonly string[],
  { modulus, remainder }: { readonly modulus: number; readonly remainder: number },
): string {
  const text = hashed.join(" || chr(31) || ");
  return `(hashtext(${text}) & ${HASH_MASK}) % ${modulus} = ${remainder}`;
}

/** Whether the hash partitions together cover every row, given that no two of them overlap. */
function coversAllHashes(bounds: readonly StoredBounds[]): boolean {
  const moduli = bounds.flatMap((bound) => (bound.kind === "hash" ? [bound.modulus] : []));
  const largest = Math.max(0, ...moduli);
  return largest > 0 && moduli.reduce((sum, modulus) => sum + largest / modulus, 0) === largest;
}
