/**
 * The first key of a sort as numbers beside the rows: nearly every comparison is between two of
 * them. The others, and all of kinds that no number says, are left to the values themselves.
 */
import { type DataType, typeOrder } from "../../../types/mod.ts";
import type { HeldRows } from "../held/held_rows.ts";
import type { SortKey } from "./sort_key.ts";

/** In the order of the sort, so that lower numbers come first; equal ones say nothing. */
export interface SortPrefix {
  readonly first: Float64Array;
  /** Of texts, what follows. */
  readonly second: Float64Array | undefined;
}

/** Rows between two steps, about two milliseconds. */
const STEP_ROWS = 16_384;

/** Bytes that a number holds exactly. */
const BYTES = 6;

/** The first bytes of a text, and zeros behind its end: texts are in the order of their UTF-8. */
const scratch = Buffer.alloc(2 * BYTES);

/** Made once, when all rows are there; undefined for a type whose order no number says. */
export function* prefixSteps(
  rows: HeldRows,
  key: Omit<SortKey, "evaluate">,
  position: number,
): Generator<undefined, SortPrefix | undefined> {
  const kind = prefixKindOf(key.type);
  if (kind === undefined) return undefined;
  const { rowCount } = rows;
  const first = new Float64Array(rowCount);
  const second = kind === "text" ? new Float64Array(rowCount) : undefined;
  const direction = key.isDescending ? -1 : 1;
  const ofNull = key.nullsFirst ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  for (let row = 0; row < rowCount; row += 1) {
    if (rows.isNullAt(position, row)) {
      first[row] = ofNull;
    } else if (second === undefined) {
      first[row] = direction * Number(rows.valueAt(position, row));
    } else {
      const end = rows.copyBytes({ position, row }, scratch);
      if (end === undefined) return undefined;
      scratch.fill(0, end);
      first[row] = direction * scratchNumber(0);
      second[row] = direction * scratchNumber(BYTES);
    }
    if ((row + 1) % STEP_ROWS === 0) yield undefined;
  }
  return { first, second };
}

function prefixKindOf(type: DataType): "number" | "text" | undefined {
  switch (typeOrder(type)) {
    case "whole":
    case "double":
    case "boolean":
      return "number";
    case "text":
    case "unknown":
      return "text";
    case "json":
    case "bytes":
    case "embedding":
    case "interval":
    case "array":
      return undefined;
  }
}

function scratchNumber(at: number): number {
  return scratch.readUIntBE(at, BYTES);
}
