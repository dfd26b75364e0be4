/**
 * Defines functions on bit strings. `substring` counts positions from 1; get_bit and set_bit count
 * from 0.
 */
import { DatabaseError } from "../../base/errors.ts";
import { BIGINT, BIT, INT, type Value } from "../../types/mod.ts";
import { functionsNamed, overload } from "./base/define.ts";
import type { ScalarFunction } from "./base/function.ts";
import { overlay, positionOf, substring } from "./text/text_positions.ts";

/** Requires that a bit string has a bit at an index. @throws {DatabaseError} VALUE_OUT_OF_RANGE */
function checkPlace(bits: string, place: number): void {
  if (place >= 0 && place < bits.length) return;
  throw new DatabaseError(
    "VALUE_OUT_OF_RANGE",
    `Cannot access bit ${place}: the value has ${bits.length} bits, numbered from 0`,
  );
}

function getBit([value = null, place = null]: readonly Value[]): number {
  const bits = value as string;
  checkPlace(bits, place as number);
  return Number(bits.charAt(place as number));
}

function setBit([value = null, place = null, bit = null]: readonly Value[]): string {
  const bits = value as string;
  const at = place as number;
  checkPlace(bits, at);
  if (bit !== 0 && bit !== 1) {
    const found = bit as number;
    throw new DatabaseError("INVALID_VALUE", `Cannot set a bit to ${found}: it must be 0 or 1`);
  }
  return `${bits.slice(0, at)}${bit}${bits.slice(at + 1)}`;
}

function bitCount([value = null]: readonly Value[]): number {
  return (value as string).replaceAll("0", "").length;
}

export const BIT_FUNCTIONS: readonly ScalarFunction[] = [
  ...functionsNamed(
    ["length", "bit_length"],
    overload([BIT], INT, ([bits = null]) => (bits as string).length),
  ),
  ...functionsNamed(
    ["octet_length"],
    overload([BIT], INT, ([bits = null]) => Math.ceil((bits as string).length / 8)),
  ),
  ...functionsNamed(["substring"], overload([BIT, INT, INT], BIT, substring, { optionalCount: 1 })),
  ...functionsNamed(
    ["position"],
    // Like PostgreSQL, finds nothing in an empty bit string, not even another empty one.
    overload([BIT, BIT], INT, ([needle = null, haystack = null]) =>
      haystack === "" ? 0 : positionOf(needle as string, haystack as string),
    ),
  ),
  ...functionsNamed(
    ["overlay"],
    overload([BIT, BIT, INT, INT], BIT, overlay, { optionalCount: 1 }),
  ),
  ...functionsNamed(["get_bit"], overload([BIT, INT], INT, getBit)),
  ...functionsNamed(["set_bit"], overload([BIT, INT, INT], BIT, setBit)),
  ...functionsNamed(["bit_count"], overload([BIT], BIGINT, bitCount)),
];
